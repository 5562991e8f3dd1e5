//! Query trees, which are generated, written as SQL, evaluated naively and shrunk.
//!
//! In reading order: [`kind`] defines the types of columns, [`value`] their values, [`zone`] time zones and lengths of time, [`expression`] and [`select`] the
//! trees. [`pivot`] finds those that are a PIVOT, [`visit`] traverses trees, [`text`] writes them in the SQL dialect of each database, and [`construct`] and [`uses`]
//! list the SQL constructs that a tree uses.

pub(crate) mod construct;
pub(crate) mod expression;
pub(crate) mod kind;
pub(crate) mod pivot;
pub(crate) mod select;
pub(crate) mod text;
pub(crate) mod uses;
pub(crate) mod value;
pub(crate) mod visit;
pub(crate) mod zone;

pub(crate) use expression::{Aggregate, Bound, Expr, Frame, Function, Op, Order, Units, Window};
pub(crate) use kind::Kind;
pub(crate) use select::{
    Body, Distinct, From, Group, Item, Join, JoinKind, Query, Recursion, Select, SetOperation,
    Sets, Span, Top,
};
pub(crate) use text::{Dialect, sql};
pub(crate) use value::Value;
pub(crate) use zone::{Length, Zone};
