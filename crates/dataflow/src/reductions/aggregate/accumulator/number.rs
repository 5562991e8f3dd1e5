//! How aggregates read their inputs.

use arrow::datatypes::{DataType, TimeUnit};

use crate::rows::codec::{CodecError, KeyCodec};

/// How the inputs of an aggregate are read.
#[derive(Clone, Debug)]
pub(super) enum Number {
    /// Only whether it is NULL matters.
    Any,
    /// Integers with a sign, and durations.
    Signed,
    Unsigned,
    Float,
    /// With this scale.
    Decimal128(i8),
    Decimal256(i8),
    /// Any type with an order.
    Ordered(KeyCodec),
}

impl Number {
    /// `None` if values of the type cannot be summed.
    pub(super) fn summed(data_type: &DataType) -> Option<Self> {
        Some(match data_type {
            DataType::Int8
            | DataType::Int16
            | DataType::Int32
            | DataType::Int64
            | DataType::Duration(_) => Self::Signed,
            DataType::UInt8 | DataType::UInt16 | DataType::UInt32 | DataType::UInt64 => {
                Self::Unsigned
            }
            DataType::Float32 | DataType::Float64 => Self::Float,
            DataType::Decimal128(_, scale) => Self::Decimal128(*scale),
            DataType::Decimal256(_, scale) => Self::Decimal256(*scale),
            _ => return None,
        })
    }

    /// Values that are compared.
    pub(super) fn ordered(data_type: &DataType) -> Result<Self, CodecError> {
        Ok(Self::Ordered(KeyCodec::new(std::slice::from_ref(data_type))?))
    }
}

/// The unit of a duration.
pub(super) fn duration(data_type: &DataType) -> Option<TimeUnit> {
    match data_type {
        DataType::Duration(unit) => Some(*unit),
        _ => None,
    }
}
