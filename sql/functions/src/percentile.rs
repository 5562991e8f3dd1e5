//! `percentile_cont`, interpolated exactly.
//!
//! DataFusion rounds the place between two values to six digits.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Float64Array, ListArray, RecordBatch};
use arrow::buffer::OffsetBuffer;
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, FieldRef, Float64Type};
use datafusion_common::{Result, ScalarValue, not_impl_err};
use datafusion_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, ColumnarValue, EmitTo, GroupsAccumulator,
    Signature,
};
use datafusion_functions_aggregate::percentile_cont::percentile_cont_udaf;

/// The function.
pub(super) fn function() -> Arc<AggregateUDF> {
    Arc::new(AggregateUDF::from(PercentileCont { others: percentile_cont_udaf() }))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct PercentileCont {
    /// DataFusion's, which has the signature and refuses a number that is no percentile.
    others: Arc<AggregateUDF>,
}

/// Where the result is among the values in order.
#[derive(Clone, Copy, Debug)]
struct Place {
    /// From 0 to 1.
    fraction: f64,
    descending: bool,
}

impl PercentileCont {
    /// The place of the result; `None` if its fraction is no such number.
    fn place(arguments: &AccumulatorArgs<'_>) -> Option<Place> {
        let nothing = RecordBatch::new_empty(Arc::new(arguments.schema.clone()));
        let Ok(ColumnarValue::Scalar(place)) = arguments.exprs.get(1)?.evaluate(&nothing) else {
            return None;
        };
        let ScalarValue::Float64(Some(fraction)) = place.cast_to(&DataType::Float64).ok()? else {
            return None;
        };
        let descending = arguments.order_bys.first().is_some_and(|order| order.options.descending);
        (0.0..=1.0).contains(&fraction).then_some(Place { fraction, descending })
    }
}

impl AggregateUDFImpl for PercentileCont {
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

    fn state_fields(&self, arguments: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        let values = Field::new_list_field(DataType::Float64, true);
        Ok(vec![Arc::new(Field::new_list(format!("{}[values]", arguments.name), values, true))])
    }

    fn supports_within_group_clause(&self) -> bool {
        true
    }

    fn accumulator(&self, arguments: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        let Some(place) = Self::place(&arguments) else {
            return self.others.accumulator(arguments);
        };
        let (result, is_distinct) = (arguments.return_type().clone(), arguments.is_distinct);
        Ok(Box::new(Percentile { place, is_distinct, result, values: Vec::new() }))
    }

    fn create_sliding_accumulator(
        &self,
        arguments: AccumulatorArgs<'_>,
    ) -> Result<Box<dyn Accumulator>> {
        if arguments.is_distinct {
            return not_impl_err!("PERCENTILE_CONT(DISTINCT …) over a frame whose start moves");
        }
        self.accumulator(arguments)
    }

    fn groups_accumulator_supported(&self, arguments: AccumulatorArgs<'_>) -> bool {
        !arguments.is_distinct && Self::place(&arguments).is_some()
    }

    fn create_groups_accumulator(
        &self,
        arguments: AccumulatorArgs<'_>,
    ) -> Result<Box<dyn GroupsAccumulator>> {
        let Some(place) = Self::place(&arguments) else {
            return self.others.create_groups_accumulator(arguments);
        };
        let result = arguments.return_type().clone();
        Ok(Box::new(Percentiles { place, result, groups: Vec::new() }))
    }
}

/// The value at `place` of values, which are brought into another order.
fn percentile(values: &mut [f64], Place { fraction, descending }: Place) -> Option<f64> {
    let last = values.len().checked_sub(1)?;
    let place = fraction * last as f64;
    let place = if descending { last as f64 - place } else { place };
    let below = place.floor() as usize;
    let (_, &mut lower, above) = values.select_nth_unstable_by(below, f64::total_cmp);
    let fraction = place - below as f64;
    let upper = above.iter().copied().min_by(f64::total_cmp);
    Some(match upper {
        Some(upper) if fraction > 0.0 => lower + (upper - lower) * fraction,
        _ => lower,
    })
}

/// The percentile of one group.
#[derive(Debug)]
struct Percentile {
    place: Place,
    is_distinct: bool,
    result: DataType,
    values: Vec<f64>,
}

/// The values of a column of numbers as DOUBLE.
fn doubles(column: &ArrayRef) -> Result<Float64Array> {
    Ok(cast(column, &DataType::Float64)?.as_primitive::<Float64Type>().clone())
}

impl Accumulator for Percentile {
    fn update_batch(&mut self, columns: &[ArrayRef]) -> Result<()> {
        self.values.extend(doubles(&columns[0])?.iter().flatten());
        Ok(())
    }

    fn retract_batch(&mut self, columns: &[ArrayRef]) -> Result<()> {
        let mut gone: Vec<f64> = doubles(&columns[0])?.iter().flatten().collect();
        gone.sort_unstable_by(f64::total_cmp);
        self.values.sort_unstable_by(f64::total_cmp);
        let mut gone = gone.into_iter().peekable();
        self.values.retain(|value| gone.next_if(|next| next.total_cmp(value).is_eq()).is_none());
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        if self.is_distinct {
            self.values.sort_unstable_by(f64::total_cmp);
            self.values.dedup_by(|one, other| one.total_cmp(other).is_eq());
        }
        let value = percentile(&mut self.values, self.place);
        ScalarValue::Float64(value).cast_to(&self.result)
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.values.capacity() * size_of::<f64>()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![ScalarValue::List(Arc::new(lists(std::slice::from_ref(&self.values))))])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        for state in states[0].as_list::<i32>().iter().flatten() {
            self.update_batch(&[state])?;
        }
        Ok(())
    }
}

/// The percentiles of many groups.
#[derive(Debug)]
struct Percentiles {
    place: Place,
    result: DataType,
    groups: Vec<Vec<f64>>,
}

/// A list of values for each group.
fn lists(groups: &[Vec<f64>]) -> ListArray {
    let lengths = OffsetBuffer::from_lengths(groups.iter().map(Vec::len));
    let values = Float64Array::from_iter_values(groups.iter().flatten().copied());
    let field = Arc::new(Field::new_list_field(DataType::Float64, true));
    ListArray::new(field, lengths, Arc::new(values), None)
}

impl GroupsAccumulator for Percentiles {
    fn update_batch(
        &mut self,
        columns: &[ArrayRef],
        groups: &[usize],
        condition: Option<&BooleanArray>,
        count: usize,
    ) -> Result<()> {
        self.groups.resize_with(count, Vec::new);
        let holds = |row: usize| {
            condition.is_none_or(|condition| condition.is_valid(row) && condition.value(row))
        };
        let values = doubles(&columns[0])?;
        for (row, (value, &group)) in values.iter().zip(groups).enumerate() {
            if let Some(value) = value
                && holds(row)
            {
                self.groups[group].push(value);
            }
        }
        Ok(())
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        let groups = emit_to.take_needed(&mut self.groups);
        let values = groups.into_iter().map(|mut values| percentile(&mut values, self.place));
        let values: ArrayRef = Arc::new(values.collect::<Float64Array>());
        Ok(cast(&values, &self.result)?)
    }

    fn state(&mut self, emit_to: EmitTo) -> Result<Vec<ArrayRef>> {
        Ok(vec![Arc::new(lists(&emit_to.take_needed(&mut self.groups)))])
    }

    fn merge_batch(&mut self, states: &[ArrayRef], groups: &[usize], count: usize) -> Result<()> {
        self.groups.resize_with(count, Vec::new);
        for (values, &group) in states[0].as_list::<i32>().iter().zip(groups) {
            let Some(values) = values else { continue };
            self.groups[group].extend(doubles(&values)?.iter().flatten());
        }
        Ok(())
    }

    fn convert_to_state(
        &self,
        columns: &[ArrayRef],
        condition: Option<&BooleanArray>,
    ) -> Result<Vec<ArrayRef>> {
        let values = doubles(&columns[0])?;
        let holds = |row: usize| {
            condition.is_none_or(|condition| condition.is_valid(row) && condition.value(row))
        };
        let values = values
            .iter()
            .enumerate()
            .map(|(row, value)| value.filter(|_| holds(row)).into_iter().collect::<Vec<f64>>());
        Ok(vec![Arc::new(lists(&values.collect::<Vec<_>>()))])
    }

    fn size(&self) -> usize {
        let values: usize = self.groups.iter().map(Vec::capacity).sum();
        size_of_val(self)
            + values * size_of::<f64>()
            + self.groups.capacity() * size_of::<Vec<f64>>()
    }
}
