//! Queries as trees: what is generated, written as SQL, evaluated naively and shrunk.
//!
//! In reading order: [`kind`] are the types of columns, [`value`] the values, [`expression`] and [`select`] the
//! trees, [`visit`] walks over them, [`text`] and [`from`] write them in the SQL of who is asked, and [`construct`]
//! names what a tree is made of.

pub(crate) mod construct;
pub(crate) mod expression;
mod from;
pub(crate) mod kind;
pub(crate) mod select;
pub(crate) mod text;
pub(crate) mod value;
pub(crate) mod visit;

pub(crate) use expression::{Aggregate, Bound, Expr, Frame, Function, Op, Order, Units, Window};
pub(crate) use kind::Kind;
pub(crate) use select::{
    Body, Distinct, From, Group, Item, Join, JoinKind, Query, Select, SetOperation, Sets, Span, Top,
};
pub(crate) use text::{Dialect, sql};
pub(crate) use value::Value;
