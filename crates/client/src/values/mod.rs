//! Values: Postgres's binary form of each type that the server sends, and Arrow's.
//!
//! A [`Kind`] is a type, by its OID and its digits. [`Rows`] takes rows of fields and makes batches of them; a column of it is a
//! [`Column`](column::Column), with [`lists`] for arrays and [`numeric`] for numbers. A [`Writer`] is the way back, for COPY.
//!
//! Nothing is lost on the way: integers keep their size, also one that Postgres does not have, a `DECIMAL` its digits, timestamps their microseconds. Arrays of several dimensions are lists
//! of lists. Values of a STRUCT or a MAP come as text.
//!
//! Statements with [`Parameter`]s have neither: their values, and their rows, are [`stream`]s of Arrow.

mod column;
mod kind;
mod lists;
mod malformed;
mod moment;
mod numeric;
mod parameter;
mod rows;
mod stream;
#[cfg(test)]
mod tests;
mod writer;
mod written;

pub(crate) use kind::Kind;
pub use parameter::Parameter;
pub(crate) use rows::Rows;
pub(crate) use stream::{Encoded, parameters_type, read_stream, write_stream, write_values};
pub(crate) use writer::{END, HEAD, Writer};
