//! Conversions between Python's values and Arrow's columns.
//!
//! [`from_python`] makes columns, with [`array`] of a known type, such as a column of a table has, and with [`parameter`] one value, whose type it
//! infers. [`to_python`] makes values, of a [`column`], or of the [`rows`] of a batch. [`sql_type`] names a type.
//!
//! What holds:
//!
//! - A value that does not fit its column raises `DataError`, which names the column, the row and the value. No object loses a fraction, a
//!   time of day or a zone unnoticed; only digits behind the scale of a DECIMAL are rounded, as `CAST` rounds them.
//! - A text in a column of numbers, booleans or times is read as `CAST` reads it. Nothing but texts and `uuid.UUID` becomes a text.
//! - No value makes a panic. Recursion is as deep as the type, and the types of parameters have bounds.
//! - NULL is `None`, and `pandas.NA` and `pandas.NaT` on the way in. A NaN is a number.
//! - What [`column`] makes of a column, [`array`] makes that column of again, except for months and nanoseconds of an INTERVAL and digits of
//!   a timestamp beyond microseconds, which Python's classes cannot hold.

mod fault;
mod from_python;
mod python;
mod to_python;

pub(crate) use alluvium::unstable::type_name as sql_type;
pub(crate) use from_python::{array, exact, parameter};
pub(crate) use to_python::{column, rows};
