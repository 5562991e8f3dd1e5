//! A guard around an aggregate and its accumulators.

use std::sync::Arc;

use arrow::array::ArrayRef;
use arrow::datatypes::{DataType, FieldRef};
use datafusion_common::{Result, ScalarValue};
use datafusion_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion_expr::{Accumulator, AggregateUDF, AggregateUDFImpl, Signature};

use super::{check_type, guarded};

/// An aggregate of a program, by one of its names.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct GuardedAggregate {
    name: String,
    function: Arc<AggregateUDF>,
}

impl GuardedAggregate {
    pub(super) fn new(name: &str, function: Arc<AggregateUDF>) -> Self {
        Self { name: name.to_owned(), function }
    }

    fn guard(
        &self,
        result: FieldRef,
        make: impl FnOnce() -> Result<Box<dyn Accumulator>>,
    ) -> Result<Box<dyn Accumulator>> {
        let accumulator = guarded(&self.name, make)?;
        Ok(Box::new(GuardedAccumulator { name: self.name.clone(), result, accumulator }))
    }
}

impl AggregateUDFImpl for GuardedAggregate {
    fn name(&self) -> &str {
        &self.name
    }

    fn signature(&self) -> &Signature {
        self.function.signature()
    }

    fn coerce_types(&self, arguments: &[DataType]) -> Result<Vec<DataType>> {
        guarded(&self.name, || self.function.coerce_types(arguments))
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        guarded(&self.name, || self.function.return_type(arguments))
    }

    fn return_field(&self, arguments: &[FieldRef]) -> Result<FieldRef> {
        guarded(&self.name, || self.function.return_field(arguments))
    }

    fn is_nullable(&self) -> bool {
        self.function.is_nullable()
    }

    fn default_value(&self, data_type: &DataType) -> Result<ScalarValue> {
        guarded(&self.name, || self.function.default_value(data_type))
    }

    fn state_fields(&self, arguments: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        guarded(&self.name, || self.function.state_fields(arguments))
    }

    fn accumulator(&self, arguments: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        let result = Arc::clone(&arguments.return_field);
        self.guard(result, || self.function.accumulator(arguments))
    }

    fn create_sliding_accumulator(
        &self,
        arguments: AccumulatorArgs<'_>,
    ) -> Result<Box<dyn Accumulator>> {
        let result = Arc::clone(&arguments.return_field);
        self.guard(result, || self.function.create_sliding_accumulator(arguments))
    }
}

/// An accumulator of a program.
#[derive(Debug)]
struct GuardedAccumulator {
    name: String,
    result: FieldRef,
    accumulator: Box<dyn Accumulator>,
}

impl Accumulator for GuardedAccumulator {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        guarded(&self.name, || self.accumulator.update_batch(values))
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        guarded(&self.name, || self.accumulator.retract_batch(values))
    }

    fn supports_retract_batch(&self) -> bool {
        self.accumulator.supports_retract_batch()
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let value = guarded(&self.name, || self.accumulator.evaluate())?;
        check_type(&self.name, &value.data_type(), self.result.data_type())?;
        Ok(value)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        guarded(&self.name, || self.accumulator.state())
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        guarded(&self.name, || self.accumulator.merge_batch(states))
    }

    fn size(&self) -> usize {
        // A size that cannot be told counts as none.
        let size = guarded(&self.name, || Ok(self.accumulator.size())).unwrap_or(0);
        size_of_val(self) + self.name.capacity() + size
    }
}
