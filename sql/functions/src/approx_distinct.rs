//! `approx_distinct` of floats, which DataFusion's does not have, at any depth.
//!
//! It counts their bits, with one NaN and one zero.

use std::sync::Arc;

use alluvium_dataflow::rows::codec::{canonical_floats, has_floats};
use arrow::array::{ArrayRef, AsArray, UInt64Array};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, FieldRef, Float64Type};
use datafusion_common::{Result, ScalarValue};
use datafusion_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, Documentation, GroupsAccumulator, Signature,
};
use datafusion_functions_aggregate::approx_distinct::approx_distinct_udaf;

/// The function.
pub(super) fn function() -> Arc<AggregateUDF> {
    Arc::new(AggregateUDF::from(ApproxDistinct { others: approx_distinct_udaf() }))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct ApproxDistinct {
    /// DataFusion's, for all other types.
    others: Arc<AggregateUDF>,
}

fn of_floats(arguments: &AccumulatorArgs<'_>) -> bool {
    arguments.expr_fields.first().is_some_and(|field| has_floats(field.data_type()))
}

impl AggregateUDFImpl for ApproxDistinct {
    fn name(&self) -> &str {
        self.others.name()
    }

    fn aliases(&self) -> &[String] {
        self.others.aliases()
    }

    fn signature(&self) -> &Signature {
        self.others.signature()
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        self.others.return_type(arguments)
    }

    fn default_value(&self, kind: &DataType) -> Result<ScalarValue> {
        self.others.default_value(kind)
    }

    fn is_nullable(&self) -> bool {
        self.others.is_nullable()
    }

    fn state_fields(&self, arguments: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        self.others.state_fields(arguments)
    }

    fn accumulator(&self, arguments: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        if !of_floats(&arguments) {
            return self.others.accumulator(arguments);
        }
        let fields: Vec<FieldRef> = arguments
            .expr_fields
            .iter()
            .map(|field| match field.data_type().is_floating() {
                true => Arc::new(Field::new(field.name(), DataType::UInt64, true)),
                false => Arc::clone(field),
            })
            .collect();
        let bits =
            self.others.accumulator(AccumulatorArgs { expr_fields: &fields, ..arguments })?;
        Ok(Box::new(Canonical { bits }))
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.others.documentation()
    }

    fn groups_accumulator_supported(&self, arguments: AccumulatorArgs<'_>) -> bool {
        !of_floats(&arguments) && self.others.groups_accumulator_supported(arguments)
    }

    fn create_groups_accumulator(
        &self,
        arguments: AccumulatorArgs<'_>,
    ) -> Result<Box<dyn GroupsAccumulator>> {
        self.others.create_groups_accumulator(arguments)
    }
}

/// Counts floats by their bits.
#[derive(Debug)]
struct Canonical {
    bits: Box<dyn Accumulator>,
}

/// The bits of floats, or a column in which equal floats have equal bits.
fn bits(column: &ArrayRef) -> Result<ArrayRef> {
    let column = canonical_floats(column)?;
    if !column.data_type().is_floating() {
        return Ok(column);
    }
    let doubles = cast(&column, &DataType::Float64)?;
    let doubles = doubles.as_primitive::<Float64Type>();
    let bits: UInt64Array = doubles.iter().map(|number| number.map(f64::to_bits)).collect();
    Ok(Arc::new(bits))
}

impl Accumulator for Canonical {
    fn update_batch(&mut self, columns: &[ArrayRef]) -> Result<()> {
        let columns = columns.iter().map(bits).collect::<Result<Vec<_>>>()?;
        self.bits.update_batch(&columns)
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        self.bits.evaluate()
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.bits.size()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        self.bits.state()
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.bits.merge_batch(states)
    }
}
