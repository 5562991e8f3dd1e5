//! Results of accumulators, on their way into a column.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, Decimal128Array, Decimal256Array, Float64Array, Int64Array, PrimitiveArray,
    UInt64Array, new_null_array,
};
use arrow::compute::cast;
use arrow::datatypes::{DataType, DecimalType, i256};
use arrow::error::ArrowError;

use crate::rows::codec::{Encoded, KeyCodec};

/// The results of one aggregate, a place per state.
pub(super) enum Results {
    Integers(Vec<Option<i128>>),
    Floats(Vec<Option<f64>>),
    Decimals(Vec<Option<i256>>),
    /// Key bytes, and those of NULL.
    Ordered {
        keys: Encoded,
        null: Vec<u8>,
        codec: KeyCodec,
    },
}

impl Results {
    /// Results that are encoded by `codec`.
    pub(super) fn ordered(codec: KeyCodec) -> Self {
        let mut null = Encoded::new();
        codec
            .encode(&[new_null_array(&codec.types()[0], 1)], 1, &mut null)
            .expect("NULL is of every type");
        Self::Ordered { keys: Encoded::new(), null: null.get(0).to_vec(), codec }
    }

    /// A place without a result.
    pub(super) fn push_null(&mut self) {
        match self {
            Self::Integers(column) => column.push(None),
            Self::Floats(column) => column.push(None),
            Self::Decimals(column) => column.push(None),
            Self::Ordered { keys, null, .. } => keys.push(null),
        }
    }

    /// The results as a column of `data_type`, which every result fits.
    pub(super) fn into_array(self, data_type: &DataType) -> ArrayRef {
        let array = match (self, data_type) {
            (Self::Integers(column), DataType::UInt64) => {
                let column = column.into_iter().map(|x| x.map(|x| x as u64));
                Ok(Arc::new(UInt64Array::from_iter(column)) as ArrayRef)
            }
            (Self::Integers(column), _) => {
                let column = column.into_iter().map(|x| x.map(|x| x as i64));
                // To itself, or to a duration, which is the same number.
                cast(&Int64Array::from_iter(column), data_type)
            }
            (Self::Floats(column), _) => Ok(Arc::new(Float64Array::from(column)) as ArrayRef),
            (Self::Decimals(column), DataType::Decimal128(..)) => {
                let column = column.into_iter().map(|x| x.and_then(i256::to_i128));
                retyped(Decimal128Array::from_iter(column), data_type)
            }
            (Self::Ordered { keys, codec, .. }, _) => {
                let mut columns = codec.decode(keys.iter()).expect("a codec reads what it wrote");
                Ok(columns.remove(0))
            }
            (Self::Decimals(column), _) => retyped(Decimal256Array::from_iter(column), data_type),
        };
        array.expect("results are of their type")
    }
}

/// Decimals with the precision and scale of `data_type`.
fn retyped<T: DecimalType>(
    column: PrimitiveArray<T>,
    data_type: &DataType,
) -> Result<ArrayRef, ArrowError> {
    Ok(Arc::new(column.with_data_type(data_type.clone())))
}
