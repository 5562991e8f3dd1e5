//! A guard around an aggregate and its accumulators.

use std::sync::Arc;

use arrow::array::ArrayRef;
use arrow::datatypes::{DataType, FieldRef};
use datafusion_common::{Result, ScalarValue};
use datafusion_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion_expr::{Accumulator, AggregateUDF, AggregateUDFImpl, Signature};

use super::distinct::{self, Distinct};
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

    /// The accumulator that `make` makes for a call.
    fn guard(
        &self,
        mut call: AccumulatorArgs<'_>,
        make: impl FnOnce(&AggregateUDF, AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>>,
    ) -> Result<Box<dyn Accumulator>> {
        let result = Arc::clone(&call.return_field);
        let (is_distinct, fields) = (std::mem::take(&mut call.is_distinct), call.expr_fields);
        let accumulator = guarded(&self.name, || make(&self.function, call))?;
        let guarded = GuardedAccumulator { name: self.name.clone(), result, accumulator };
        match is_distinct {
            true => Ok(Box::new(Distinct::new(Box::new(guarded), fields)?)),
            false => Ok(Box::new(guarded)),
        }
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
        match arguments.is_distinct {
            true => Ok(distinct::state_fields(&arguments)),
            false => guarded(&self.name, || self.function.state_fields(arguments)),
        }
    }

    fn accumulator(&self, arguments: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        self.guard(arguments, AggregateUDF::accumulator)
    }

    fn create_sliding_accumulator(
        &self,
        arguments: AccumulatorArgs<'_>,
    ) -> Result<Box<dyn Accumulator>> {
        self.guard(arguments, AggregateUDF::create_sliding_accumulator)
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
