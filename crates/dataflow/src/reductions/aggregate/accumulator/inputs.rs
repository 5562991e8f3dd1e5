//! The inputs of aggregates, a batch at a time.

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::buffer::{NullBuffer, ScalarBuffer};
use arrow::compute::cast;
use arrow::datatypes::{
    DataType, Decimal128Type, Decimal256Type, Float64Type, Int64Type, UInt64Type, i256,
};

use super::number::Number;
use crate::fault::{self, Fault};
use crate::rows::codec::Encoded;

/// The input columns of accumulators, prepared for adding row by row.
#[derive(Debug, Default)]
pub struct Inputs(pub(super) Vec<Input>);

/// One column.
#[derive(Debug)]
pub(super) struct Input {
    nulls: Option<NullBuffer>,
    pub(super) values: Values,
}

/// The values of a column.
#[derive(Debug)]
pub(super) enum Values {
    /// Only whether it is NULL matters.
    Any,
    Signed(ScalarBuffer<i64>),
    Unsigned(ScalarBuffer<u64>),
    Float(ScalarBuffer<f64>),
    Decimal128(ScalarBuffer<i128>),
    Decimal256(ScalarBuffer<i256>),
    /// Bytes that sort as the values do.
    Ordered(Encoded),
}

impl Input {
    /// `column` must have the type that `number` was made for.
    pub(super) fn new(number: &Number, column: &ArrayRef) -> Self {
        let expectation = "a column has the type its accumulators were made for";
        let widened = |data_type: DataType| cast(column, &data_type).expect(expectation);
        let values = match number {
            Number::Any => Values::Any,
            Number::Signed => Values::Signed(
                widened(DataType::Int64).as_primitive::<Int64Type>().values().clone(),
            ),
            Number::Unsigned => Values::Unsigned(
                widened(DataType::UInt64).as_primitive::<UInt64Type>().values().clone(),
            ),
            Number::Float => Values::Float(
                widened(DataType::Float64).as_primitive::<Float64Type>().values().clone(),
            ),
            Number::Decimal128(_) => {
                Values::Decimal128(column.as_primitive::<Decimal128Type>().values().clone())
            }
            Number::Decimal256(_) => {
                Values::Decimal256(column.as_primitive::<Decimal256Type>().values().clone())
            }
            Number::Ordered(codec) => {
                let mut keys = Encoded::new();
                codec
                    .encode(std::slice::from_ref(column), column.len(), &mut keys)
                    .expect(expectation);
                Values::Ordered(keys)
            }
        };
        Self { nulls: column.logical_nulls(), values }
    }

    #[inline]
    pub(super) fn is_null(&self, row: usize) -> bool {
        self.nulls.as_ref().is_some_and(|nulls| nulls.is_null(row))
            && !fault::armed(Fault::CountNulls)
    }
}
