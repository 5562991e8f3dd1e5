//! Types whose equality is that of their bytes.

use arrow::datatypes::DataType;

/// Whether values of a type are equal just if they are the same: floats have two zeros.
pub fn compares_by_bytes(data_type: &DataType) -> bool {
    data_type.is_integer()
        || data_type.is_decimal()
        || matches!(
            data_type,
            DataType::Boolean
                | DataType::Utf8
                | DataType::Binary
                | DataType::Date32
                | DataType::Time64(_)
                | DataType::Timestamp(..)
        )
}
