//! SUM of integers, accumulated in 128 bits.

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::{DataType, Decimal128Type, Field, FieldRef, Int64Type, UInt64Type};
use datafusion::common::{Result, ScalarValue, exec_datafusion_err, exec_err, not_impl_err};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::format_state_name;
use datafusion::logical_expr::{Accumulator, AggregateUDFImpl, Signature, Volatility};

/// SUM of BIGINTs, signed or unsigned: fails if the total, and only if the total, is too large.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct CheckedSum {
    signature: Signature,
}

impl CheckedSum {
    pub(super) fn new() -> Self {
        Self { signature: Signature::any(1, Volatility::Immutable) }
    }
}

impl AggregateUDFImpl for CheckedSum {
    fn name(&self) -> &str {
        "sum"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        Ok(arguments[0].clone())
    }

    fn state_fields(&self, arguments: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        let name = format_state_name(arguments.name, "sum");
        Ok(vec![Field::new(name, DataType::Decimal128(38, 0), true).into()])
    }

    fn accumulator(&self, arguments: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        let result = arguments.return_field.data_type().clone();
        Ok(Box::new(Total { total: None, result }))
    }
}

#[derive(Debug)]
struct Total {
    /// `None` while there is no value.
    total: Option<i128>,
    result: DataType,
}

impl Total {
    fn add(&mut self, value: i128) -> Result<()> {
        let total = self.total.unwrap_or(0).checked_add(value);
        self.total = Some(total.ok_or_else(|| exec_datafusion_err!("the sum is too large"))?);
        Ok(())
    }
}

impl Accumulator for Total {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        match values[0].data_type() {
            DataType::Int64 => values[0]
                .as_primitive::<Int64Type>()
                .iter()
                .flatten()
                .try_for_each(|value| self.add(value.into())),
            DataType::UInt64 => values[0]
                .as_primitive::<UInt64Type>()
                .iter()
                .flatten()
                .try_for_each(|value| self.add(value.into())),
            other => not_impl_err!("SUM of {other} in 128 bits"),
        }
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        states[0]
            .as_primitive::<Decimal128Type>()
            .iter()
            .flatten()
            .try_for_each(|total| self.add(total))
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![ScalarValue::Decimal128(self.total, 38, 0)])
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let Some(total) = self.total else {
            return ScalarValue::try_from(&self.result);
        };
        match self.result {
            DataType::Int64 if let Ok(total) = i64::try_from(total) => Ok(total.into()),
            DataType::UInt64 if let Ok(total) = u64::try_from(total) => Ok(total.into()),
            _ => exec_err!("the sum {total} is outside of {}", self.result),
        }
    }

    fn size(&self) -> usize {
        size_of_val(self)
    }
}
