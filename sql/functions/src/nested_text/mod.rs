//! Lists, structs and maps as texts, in the form that DuckDB writes and reads.
//!
//! ```text
//! list    [1, 2]  [NULL, 'a, b', "c"]  [[1], [2, 3]]
//! struct  {'a': 1, b: x}  (1, x)   fields that are left out are NULL
//! map     {k=1, 'l'=2}
//! ```
//!
//! [`parts`] splits a text, [`read`](mod@read) makes values of the parts, one column for each level of the type, and
//! [`write`](mod@write) makes texts that are read as the same values. Nothing here is as deep as a text, only as deep as a type.

mod parts;
mod read;
mod write;

use arrow::datatypes::DataType;

pub(crate) use self::read::read;
pub(crate) use self::write::write;

/// Whether values of this type are read here.
pub(crate) fn is_nested(kind: &DataType) -> bool {
    matches!(kind, DataType::List(_) | DataType::Struct(_) | DataType::Map(..))
}
