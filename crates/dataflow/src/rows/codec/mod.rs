//! Rows to bytes and back.
//!
//! State is bytes: a key is encoded so that comparing bytes compares keys in SQL order, a value so
//! that bytes are equal exactly when rows are. Everything below (merging, seeking, consolidating,
//! shipping) compares bytes and needs no types.

mod canonical;
mod encoded;
mod error;
mod fixed;
mod key;
mod value;

pub use canonical::{canonical_floats, has_floats, one_nan};
pub use encoded::Encoded;
pub use error::CodecError;
pub use key::KeyCodec;
pub(crate) use key::has_maps;
pub use value::ValueCodec;

use arrow::array::ArrayRef;
use arrow::datatypes::DataType;

/// Whether arrow-row gives every type inside `data_type` back as it was.
fn is_reversible(data_type: &DataType) -> bool {
    match data_type {
        DataType::List(field)
        | DataType::LargeList(field)
        | DataType::FixedSizeList(field, _)
        | DataType::Map(field, _) => is_reversible(field.data_type()),
        DataType::Struct(fields) => fields.iter().all(|field| is_reversible(field.data_type())),
        DataType::Float16
        | DataType::Dictionary(..)
        | DataType::RunEndEncoded(..)
        | DataType::Union(..)
        | DataType::ListView(_)
        | DataType::LargeListView(_) => false,
        _ => true,
    }
}

/// Checks that `columns` are of `types` and have `rows` rows each.
fn check(columns: &[ArrayRef], rows: usize, types: &[DataType]) -> Result<(), CodecError> {
    let shape = |found| CodecError::Shape { expected: types.len(), rows, found };
    if columns.len() != types.len() {
        return Err(shape(format!("{} columns", columns.len())));
    }
    for (column, (array, expected)) in columns.iter().zip(types).enumerate() {
        if array.len() != rows {
            return Err(shape(format!("a column of {} rows", array.len())));
        }
        if !array.data_type().equals_datatype(expected) {
            return Err(CodecError::Type {
                column,
                expected: expected.clone(),
                found: array.data_type().clone(),
            });
        }
    }
    Ok(())
}
