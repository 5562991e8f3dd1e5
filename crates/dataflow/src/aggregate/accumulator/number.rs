//! The inputs of an aggregate.

use arrow::array::{Array, AsArray};
use arrow::datatypes::*;

/// How the inputs of an aggregate are read.
#[derive(Clone, Copy, Debug)]
pub(super) enum Number {
    /// Only whether it is NULL matters.
    Any,
    Int8,
    Int16,
    Int32,
    Int64,
    UInt8,
    UInt16,
    UInt32,
    UInt64,
    Duration(TimeUnit),
    Float32,
    Float64,
    Decimal128(i8),
    Decimal256(i8),
}

impl Number {
    /// `None` if such values do not add up.
    pub(super) fn new(data_type: &DataType) -> Option<Self> {
        Some(match data_type {
            DataType::Int8 => Self::Int8,
            DataType::Int16 => Self::Int16,
            DataType::Int32 => Self::Int32,
            DataType::Int64 => Self::Int64,
            DataType::UInt8 => Self::UInt8,
            DataType::UInt16 => Self::UInt16,
            DataType::UInt32 => Self::UInt32,
            DataType::UInt64 => Self::UInt64,
            DataType::Duration(unit) => Self::Duration(*unit),
            DataType::Float32 => Self::Float32,
            DataType::Float64 => Self::Float64,
            DataType::Decimal128(_, scale) => Self::Decimal128(*scale),
            DataType::Decimal256(_, scale) => Self::Decimal256(*scale),
            _ => return None,
        })
    }

    /// Row `row` of a column of integers or durations, which is not NULL.
    #[inline]
    pub(super) fn integer(self, column: &dyn Array, row: usize) -> i128 {
        fn read<T: ArrowPrimitiveType<Native: Into<i128>>>(column: &dyn Array, row: usize) -> i128 {
            column.as_primitive::<T>().value(row).into()
        }
        match self {
            Self::Int8 => read::<Int8Type>(column, row),
            Self::Int16 => read::<Int16Type>(column, row),
            Self::Int32 => read::<Int32Type>(column, row),
            Self::Int64 => read::<Int64Type>(column, row),
            Self::UInt8 => read::<UInt8Type>(column, row),
            Self::UInt16 => read::<UInt16Type>(column, row),
            Self::UInt32 => read::<UInt32Type>(column, row),
            Self::UInt64 => read::<UInt64Type>(column, row),
            Self::Duration(TimeUnit::Second) => read::<DurationSecondType>(column, row),
            Self::Duration(TimeUnit::Millisecond) => read::<DurationMillisecondType>(column, row),
            Self::Duration(TimeUnit::Microsecond) => read::<DurationMicrosecondType>(column, row),
            Self::Duration(TimeUnit::Nanosecond) => read::<DurationNanosecondType>(column, row),
            Self::Any
            | Self::Float32
            | Self::Float64
            | Self::Decimal128(_)
            | Self::Decimal256(_) => unreachable!("only integers are summed as integers"),
        }
    }

    /// Row `row` of a column of floats, which is not NULL.
    #[inline]
    pub(super) fn float(self, column: &dyn Array, row: usize) -> f64 {
        match self {
            Self::Float32 => column.as_primitive::<Float32Type>().value(row).into(),
            _ => column.as_primitive::<Float64Type>().value(row),
        }
    }
}
