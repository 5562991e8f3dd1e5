//! Values: Postgres's binary form of each type that the server sends, and Arrow's.
//!
//! A [`Kind`] is a type, by its OID and its digits. [`Rows`] takes rows of fields and makes batches of them; a column of it is a
//! [`Column`](column::Column), with [`lists`] for arrays and [`numeric`] for numbers. A [`Writer`] is the way back, for COPY, and a [`Parameter`] that of a single value.
//!
//! Nothing is lost on the way: integers keep their size, also one that Postgres does not have, a `DECIMAL` its digits, timestamps their microseconds. Arrays of several dimensions are lists
//! of lists. Values of a STRUCT or a MAP come as text.

mod column;
mod kind;
mod lists;
mod malformed;
mod moment;
mod numeric;
mod parameter;
mod rows;
#[cfg(test)]
mod tests;
mod writer;
mod written;

pub(crate) use kind::Kind;
pub use parameter::Parameter;
pub(crate) use rows::Rows;
pub(crate) use writer::{END, HEAD, Writer};
