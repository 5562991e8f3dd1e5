//! An aggregate whose result depends on every input, on how often it occurs, and on the order.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray};
use arrow::datatypes::{DataType, Int64Type};
use datafusion_common::{Result, ScalarValue, exec_err};
use datafusion_expr::function::AccumulatorArgs;
use datafusion_expr::{Accumulator, AggregateUDF, AggregateUDFImpl, Signature, Volatility};

/// The digest of `values` in this order; NULL without values.
pub fn digest(values: impl IntoIterator<Item = Option<i64>>) -> Option<i64> {
    let step = |digest: i64, value: Option<i64>| {
        digest.wrapping_mul(1_000_003).wrapping_add(value.unwrap_or(-77)).wrapping_add(5)
    };
    values.into_iter().fold(None, |digest, value| Some(step(digest.unwrap_or(1), value)))
}

/// [`digest`] as an aggregate function of DataFusion.
pub fn function() -> Arc<AggregateUDF> {
    let signature = Signature::exact(vec![DataType::Int64], Volatility::Immutable);
    Arc::new(AggregateUDF::from(Digest { signature }))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Digest {
    signature: Signature,
}

impl AggregateUDFImpl for Digest {
    fn name(&self) -> &str {
        "digest"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arguments: &[DataType]) -> Result<DataType> {
        Ok(DataType::Int64)
    }

    fn accumulator(&self, _arguments: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        Ok(Box::new(Numbers { values: Vec::new() }))
    }
}

#[derive(Debug)]
struct Numbers {
    values: Vec<Option<i64>>,
}

impl Accumulator for Numbers {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let column = values[0].as_primitive::<Int64Type>();
        self.values.extend(column.iter());
        Ok(())
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        Ok(ScalarValue::Int64(digest(self.values.iter().copied())))
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.values.capacity() * size_of::<Option<i64>>()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        exec_err!("a digest has no partial state")
    }

    fn merge_batch(&mut self, _states: &[ArrayRef]) -> Result<()> {
        exec_err!("a digest has no partial state")
    }
}
