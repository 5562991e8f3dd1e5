//! SUM of integers and decimals that fails where DataFusion's wraps around.
//!
//! It uses DataFusion's SUM over a wider type, and fails only if the total does not fit the result type. Views compute sums
//! with an operator of their own ([`alluvium_dataflow::reductions::aggregate::Function`]); this function serves ad-hoc queries. Sums of
//! durations, intervals and floats are DataFusion's.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, BooleanArray};
use arrow::compute::{CastOptions, cast, cast_with_options};
use arrow::datatypes::{
    DECIMAL128_MAX_PRECISION, DECIMAL256_MAX_PRECISION, DataType, Field, FieldRef,
};
use arrow::util::display::array_value_to_string;
use datafusion_common::{Result, ScalarValue, exec_err, not_impl_err};
use datafusion_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion_expr::utils::AggregateOrderSensitivity;
use datafusion_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, EmitTo, GroupsAccumulator, ReversedUDAF, Signature,
};
use datafusion_functions_aggregate::sum::sum_udaf;

/// The function.
pub(super) fn function() -> Arc<AggregateUDF> {
    Arc::new(AggregateUDF::from(Sum { sum: sum_udaf() }))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Sum {
    /// DataFusion's.
    sum: Arc<AggregateUDF>,
}

/// The type of DataFusion's sum whose total cannot wrap around, for a sum of type `result`.
fn wide(result: &DataType) -> Option<DataType> {
    match *result {
        DataType::Decimal128(_, scale) => {
            Some(DataType::Decimal256(DECIMAL256_MAX_PRECISION, scale))
        }
        _ if result.is_integer() => Some(DataType::Decimal128(DECIMAL128_MAX_PRECISION, 0)),
        _ => None,
    }
}

/// The arguments of DataFusion's sum of type `wide`.
fn widened<'a>(arguments: AccumulatorArgs<'a>, wide: &DataType) -> AccumulatorArgs<'a> {
    let field = Field::new(arguments.return_field.name(), wide.clone(), true);
    AccumulatorArgs { return_field: Arc::new(field), ..arguments }
}

impl AggregateUDFImpl for Sum {
    fn name(&self) -> &str {
        self.sum.name()
    }

    fn signature(&self) -> &Signature {
        self.sum.signature()
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        self.sum.return_type(arguments)
    }

    fn state_fields(&self, arguments: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        let return_field = match wide(arguments.return_type()) {
            Some(wide) => Arc::new(Field::new(arguments.name, wide, true)),
            None => Arc::clone(&arguments.return_field),
        };
        self.sum.state_fields(StateFieldsArgs { return_field, ..arguments })
    }

    fn accumulator(&self, arguments: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        let result = arguments.return_type().clone();
        let Some(wide) = wide(&result) else { return self.sum.accumulator(arguments) };
        let sum = self.sum.accumulator(widened(arguments, &wide))?;
        Ok(Box::new(Checked { sum, wide, result }))
    }

    fn create_sliding_accumulator(
        &self,
        arguments: AccumulatorArgs<'_>,
    ) -> Result<Box<dyn Accumulator>> {
        let result = arguments.return_type().clone();
        let Some(wide) = wide(&result) else {
            return self.sum.create_sliding_accumulator(arguments);
        };
        if arguments.is_distinct {
            return not_impl_err!("SUM(DISTINCT …) over a frame whose start moves");
        }
        let sum = self.sum.create_sliding_accumulator(widened(arguments, &wide))?;
        Ok(Box::new(Checked { sum, wide, result }))
    }

    fn groups_accumulator_supported(&self, arguments: AccumulatorArgs<'_>) -> bool {
        self.sum.groups_accumulator_supported(arguments)
    }

    fn create_groups_accumulator(
        &self,
        arguments: AccumulatorArgs<'_>,
    ) -> Result<Box<dyn GroupsAccumulator>> {
        let result = arguments.return_type().clone();
        let Some(wide) = wide(&result) else {
            return self.sum.create_groups_accumulator(arguments);
        };
        let sum = self.sum.create_groups_accumulator(widened(arguments, &wide))?;
        Ok(Box::new(Checked { sum, wide, result }))
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        ReversedUDAF::Identical
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        AggregateOrderSensitivity::Insensitive
    }
}

/// A sum of wider numbers.
#[derive(Debug)]
struct Checked<Sum> {
    sum: Sum,
    wide: DataType,
    result: DataType,
}

impl<Sum> Checked<Sum> {
    fn widen(&self, values: &[ArrayRef]) -> Result<Vec<ArrayRef>> {
        values.iter().map(|column| Ok(cast(column, &self.wide)?)).collect()
    }

    /// The totals in the type of the result.
    fn narrow(&self, totals: &ArrayRef) -> Result<ArrayRef> {
        let or_null = CastOptions { safe: true, ..CastOptions::default() };
        let narrow = cast_with_options(totals, &self.result, &or_null)?;
        if narrow.null_count() == totals.null_count() {
            return Ok(narrow);
        }
        let lost = (0..totals.len()).find(|&row| narrow.is_null(row) && totals.is_valid(row));
        let total = array_value_to_string(totals, lost.unwrap_or_default())?;
        exec_err!("the sum {total} is outside {}", name(&self.result))
    }
}

/// The name of a type in SQL.
fn name(result: &DataType) -> String {
    match result {
        DataType::Int64 => "BIGINT".to_owned(),
        DataType::UInt64 => "BIGINT UNSIGNED".to_owned(),
        DataType::Decimal128(precision, scale) => format!("DECIMAL({precision}, {scale})"),
        other => other.to_string(),
    }
}

impl Accumulator for Checked<Box<dyn Accumulator>> {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.sum.update_batch(&self.widen(values)?)
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.sum.retract_batch(&self.widen(values)?)
    }

    fn supports_retract_batch(&self) -> bool {
        self.sum.supports_retract_batch()
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let total = self.sum.evaluate()?.to_array()?;
        ScalarValue::try_from_array(&self.narrow(&total)?, 0)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        self.sum.state()
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.sum.merge_batch(states)
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.sum.size()
    }
}

impl GroupsAccumulator for Checked<Box<dyn GroupsAccumulator>> {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        groups: &[usize],
        filter: Option<&BooleanArray>,
        count: usize,
    ) -> Result<()> {
        self.sum.update_batch(&self.widen(values)?, groups, filter, count)
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        let totals = self.sum.evaluate(emit_to)?;
        self.narrow(&totals)
    }

    fn state(&mut self, emit_to: EmitTo) -> Result<Vec<ArrayRef>> {
        self.sum.state(emit_to)
    }

    fn merge_batch(&mut self, states: &[ArrayRef], groups: &[usize], count: usize) -> Result<()> {
        self.sum.merge_batch(states, groups, count)
    }

    fn convert_to_state(
        &self,
        values: &[ArrayRef],
        filter: Option<&BooleanArray>,
    ) -> Result<Vec<ArrayRef>> {
        self.sum.convert_to_state(&self.widen(values)?, filter)
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.sum.size()
    }
}
