//! Values as Postgres's clients write and read them, text and binary.
//!
//! ```text
//! RecordBatch ─ plain ─► column ─┬─► row_encoder: messages DataRow
//!                                └─► copy::CopyEncoder: messages CopyData
//! parameters ────────► parameter ──► Value
//! COPY … FROM STDIN ─► copy::CopyDecoder ─► builder ─► RecordBatch
//! ```
//!
//! [`PgType`] is the type of Postgres that a column has. [`plain`] reduces Arrow's types to those that [`column`] writes, and [`builder`]
//! makes arrays of [`field`]s that were read. How the values look is in [`numbers`], [`time`], [`arrays`] and [`bytea`].
//!
//! Texts are those of Postgres with `DateStyle` ISO, `IntervalStyle` postgres, `bytea_output` hex and `extra_float_digits` 1.
//! Where types differ:
//!
//! | here | there |
//! |---|---|
//! | integers of 1 byte and unsigned ones | the next larger integer, `UBIGINT` is `numeric(20,0)` |
//! | `VARCHAR` | `text`, as lengths are not enforced |
//! | a struct or a map | `text`, as CAST writes it: drivers cannot read records without their types, and it can be cast back |
//! | a list of lists | an array of as many dimensions. One whose inner lists differ in length is no array in Postgres: it is sent as text, in braces, and refused in binary |
//! | `UINTEGER` in a query of the catalog | `oid`, see [`with_catalog_types`] |
//! | NULL without a type | `text` |
//! | the first and the last microsecond of 64 bits, the first and the last day of 32 bits | `-infinity` and `infinity`, both ways |
//! | nanoseconds | are cut off |

mod arrays;
mod builder;
mod bytea;
mod catalog_type;
mod column;
pub(crate) mod copy;
mod escape;
mod field;
mod format;
mod line;
mod numbers;
mod parameter;
mod pg_type;
mod plain;
mod rejected;
mod row_encoder;
#[cfg(test)]
mod tests;
mod time;

pub(crate) use self::catalog_type::with_catalog_types;
pub(crate) use self::format::Format;
pub(crate) use self::parameter::decode;
pub(crate) use self::pg_type::{BYTEA, PgType, TEXT};
pub(crate) use self::rejected::Rejected;
pub(crate) use self::row_encoder::RowEncoder;
