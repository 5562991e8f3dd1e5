//! Band joins: pairs of times that are near each other.
//!
//! ```sql
//! … FROM bid AS b JOIN highest AS h ON b.price = h.price AND b.time BETWEEN h.window_end - INTERVAL '10' SECOND AND h.window_end
//! ```
//!
//! A comparison is no key, so a change of one side would meet all rows of the other that agree on the keys, however far away in time.
//! So time is divided into slots as long as the band (as in DeWitt, Naughton and Schneider: An Evaluation of Non-Equijoin
//! Algorithms, 1991). A row of one side is in the slot of its time, a row of the other in each slot that its band touches, of which
//! there are at most two, and the slot is the first of the keys. The comparisons stay: they decide which pairs there are.
//!
//! That repeats each row of one side. It is done where there are no keys, and where that side has the groups of an aggregate and
//! its time is one of their keys, as windows are.

use std::sync::{Arc, LazyLock};

use alluvium_sql_syntax::options::OPTIONS;
use arrow::array::{Array, ArrayRef, AsArray, Int64Array, ListArray};
use arrow::buffer::OffsetBuffer;
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, Int64Type, SchemaRef};
use datafusion_common::{Result, ScalarValue, internal_err};
use datafusion_expr::{
    ColumnarValue, Operator, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use datafusion_physical_expr::ScalarFunctionExpr;
use datafusion_physical_expr::expressions::{BinaryExpr, Literal};

use crate::bounds::{conjuncts, shift};
use crate::expression::{self, Expression};
use crate::fault::{self, Fault};
use crate::{IncrementalPlan, Node};

/// The pairs whose times differ by no less than `from` and no more than `to`, both in the unit of the times.
struct Band {
    /// The columns of the times, each of its side.
    left: usize,
    right: usize,
    /// How far the left time is behind the right one.
    from: i64,
    to: i64,
}

/// The two sides of a join, keyed by slots as well, if its filter has a band for which that pays. `schema` has the columns of both
/// sides, the first `width` are left ones; `on` has the keys of the join. The slots are the last columns of the sides.
pub(super) fn keyed_by_slots(
    left: &IncrementalPlan,
    right: &IncrementalPlan,
    on: &[(usize, usize)],
    filter: &Expression,
    (schema, width): (&SchemaRef, usize),
) -> Result<Option<(IncrementalPlan, IncrementalPlan)>> {
    if left.is_clock() || right.is_clock() {
        return Ok(None);
    }
    let Some(band) = Band::find(filter, schema, width) else { return Ok(None) };
    let (of_left, of_right) = (is_group_key(left, band.left), is_group_key(right, band.right));
    if !on.is_empty() && of_left == of_right {
        return Ok(None);
    }
    let length = band.to.saturating_sub(band.from).max(1);
    let (left, right) = match of_left && !of_right {
        true => (
            // Where the right time may be, seen from the left one.
            in_slots(left.clone(), band.left, (-band.to, -band.from), length)?,
            in_slot(right.clone(), band.right, length)?,
        ),
        false => (
            in_slot(left.clone(), band.left, length)?,
            in_slots(right.clone(), band.right, (band.from, band.to), length)?,
        ),
    };
    Ok(Some((left, right)))
}

impl Band {
    /// The narrowest band that comparisons of one time of each side give.
    fn find(filter: &Expression, schema: &SchemaRef, width: usize) -> Option<Self> {
        let conditions = conjuncts(Some(filter));
        let differences: Vec<Difference> = conditions
            .iter()
            .filter_map(|condition| Difference::of(condition, schema, width))
            .collect();
        differences.iter().find_map(|first| {
            let same = differences.iter().filter(|one| one.columns == first.columns);
            let (mut from, mut to) = (None, None);
            for one in same {
                match one.is_least {
                    true => from = from.max(Some(one.by)),
                    false => to = Some(to.map_or(one.by, |to: i64| to.min(one.by))),
                }
            }
            let (from, to) = (from?, to?);
            let (left, right) = first.columns;
            (from <= to).then_some(Self { left, right, from, to })
        })
    }
}

/// A condition that the left time is at least, or at most, so far behind the right one.
struct Difference {
    columns: (usize, usize),
    is_least: bool,
    by: i64,
}

impl Difference {
    fn of(condition: &Expression, schema: &SchemaRef, width: usize) -> Option<Self> {
        let comparison = condition.downcast_ref::<BinaryExpr>()?;
        let operator = match comparison.op() {
            Operator::Gt | Operator::GtEq => Operator::GtEq,
            Operator::Lt | Operator::LtEq => Operator::LtEq,
            _ => return None,
        };
        let (one, other) = (shift(comparison.left(), schema)?, shift(comparison.right(), schema)?);
        let is_swapped = one.0 >= width;
        let (left, right) = if is_swapped { (other, one) } else { (one, other) };
        if left.0 >= width || right.0 < width {
            return None;
        }
        let unit = |column: usize| match schema.field(column).data_type() {
            DataType::Timestamp(unit, _) => Some(*unit),
            _ => None,
        };
        if unit(left.0)? != unit(right.0)? {
            return None;
        }
        Some(Self {
            columns: (left.0, right.0 - width),
            is_least: (operator == Operator::GtEq) != is_swapped,
            // The opposite is a number, too.
            by: right.1.checked_sub(left.1).filter(|by| *by > i64::MIN)?,
        })
    }
}

/// Whether a column is a key of the groups of which a plan has the results, or always as much later or earlier as one.
fn is_group_key(plan: &IncrementalPlan, column: usize) -> bool {
    match &plan.node {
        Node::Map(map) => shift(&map.project[column], &map.input.schema)
            .is_some_and(|(column, _)| is_group_key(&map.input, column)),
        Node::Aggregate(aggregate) => column < aggregate.keys.len(),
        _ => false,
    }
}

/// The rows with the slot of the time in a column, without those whose time is NULL.
fn in_slot(plan: IncrementalPlan, time: usize, length: i64) -> Result<IncrementalPlan> {
    let time = expression::column(&plan.schema, time);
    let present = match expression::is_nullable(&time, &plan.schema)? {
        true => Some(expression::is_not_null(&time)),
        false => None,
    };
    with_column(plan, present, &SLOT, vec![time, number(length)])
}

/// The rows once for each slot that the band around their time touches, which is in a column.
fn in_slots(
    plan: IncrementalPlan,
    time: usize,
    (from, to): (i64, i64),
    length: i64,
) -> Result<IncrementalPlan> {
    let time = expression::column(&plan.schema, time);
    let arguments = vec![time, number(from), number(to), number(length)];
    let place = plan.width();
    IncrementalPlan::unnest(with_column(plan, None, &SLOTS, arguments)?, vec![place], false)
}

/// The rows for which `filter` is true, and then what `function` gives for them.
fn with_column(
    plan: IncrementalPlan,
    filter: Option<Expression>,
    function: &Arc<ScalarUDF>,
    arguments: Vec<Expression>,
) -> Result<IncrementalPlan> {
    let (function, options) = (Arc::clone(function), Arc::clone(&OPTIONS));
    let call = ScalarFunctionExpr::try_new(function, arguments, &plan.schema, options)?;
    let mut project = plan.identity();
    project.push((Arc::new(call), "slot".to_string()));
    IncrementalPlan::map(plan, filter, project)
}

fn number(number: i64) -> Expression {
    Arc::new(Literal::new(ScalarValue::Int64(Some(number))))
}

/// Whether no list of an expression has an element twice.
pub(crate) fn has_distinct_elements(lists: &Expression) -> bool {
    let call = lists.downcast_ref::<ScalarFunctionExpr>();
    call.is_some_and(|call| call.fun() == &**SLOTS)
}

/// `time_slot(time, length)`: the number of the slot that a time is in; NULL for NULL.
static SLOT: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
    let signature = Signature::any(2, Volatility::Immutable);
    Arc::new(ScalarUDF::from(Slots { signature, are_lists: false }))
});

/// `time_slots(time, from, to, length)`: the numbers of the slots between `time + from` and `time + to`, in ascending order; NULL for
/// NULL.
static SLOTS: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
    let signature = Signature::any(4, Volatility::Immutable);
    Arc::new(ScalarUDF::from(Slots { signature, are_lists: true }))
});

/// Slots of time: of equal lengths, numbered from 1970 on. Times and lengths are in the unit of the times. There are slots for all
/// times, and for what lies outside of the range of times.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Slots {
    signature: Signature,
    are_lists: bool,
}

impl ScalarUDFImpl for Slots {
    fn name(&self) -> &str {
        if self.are_lists { "time_slots" } else { "time_slot" }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(match self.are_lists {
            true => DataType::new_list(DataType::Int64, true),
            false => DataType::Int64,
        })
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let Some((times, lengths)) = arguments.args.split_first() else {
            return internal_err!("{} takes a time", self.name());
        };
        let lengths: Option<Vec<i64>> = lengths
            .iter()
            .map(|length| match length {
                ColumnarValue::Scalar(ScalarValue::Int64(length)) => *length,
                _ => None,
            })
            .collect();
        let times = cast(&times.to_array(arguments.number_rows)?, &DataType::Int64)?;
        let times = times.as_primitive::<Int64Type>();
        let slots: ArrayRef = match (self.are_lists, lengths.as_deref()) {
            (false, Some(&[length])) => {
                Arc::new(times.unary::<_, Int64Type>(|time| slot(time, 0, length)))
            }
            (true, Some(&[from, to, length])) => Arc::new(lists(times, (from, to), length)?),
            _ => return internal_err!("the lengths of {} are constant", self.name()),
        };
        Ok(ColumnarValue::Array(slots))
    }
}

fn lists(times: &Int64Array, (from, to): (i64, i64), length: i64) -> Result<ListArray> {
    let mut slots: Vec<i64> = Vec::with_capacity(2 * times.len());
    let mut sizes: Vec<usize> = Vec::with_capacity(times.len());
    for time in times {
        let start = slots.len();
        if let Some(time) = time {
            let last = slot(time, to, length);
            let first = match fault::armed(Fault::LastSlotOnly) {
                true => last,
                false => slot(time, from, length),
            };
            slots.extend(first..=last);
        }
        sizes.push(slots.len() - start);
    }
    let element = Arc::new(Field::new_list_field(DataType::Int64, true));
    let offsets = OffsetBuffer::from_lengths(sizes);
    Ok(ListArray::try_new(
        element,
        offsets,
        Arc::new(Int64Array::from(slots)),
        times.nulls().cloned(),
    )?)
}

/// The slot of `time + by`.
fn slot(time: i64, by: i64, length: i64) -> i64 {
    let slot = (i128::from(time) + i128::from(by)).div_euclid(i128::from(length));
    // Only the ends of the range of times need more, where a slot may be as short as the unit of the times.
    slot.clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_within_a_band_share_one_slot() {
        for (from, to) in [(-10, 0), (-3, 4), (5, 6), (7, 7), (-20, -13)] {
            let length = (to - from).max(1);
            for right in -40..40 {
                let slots = slot(right, from, length)..=slot(right, to, length);
                assert!(slots.clone().count() <= 2);
                for left in -70..70 {
                    let is_near = (from..=to).contains(&(left - right));
                    assert!(!is_near || slots.contains(&slot(left, 0, length)), "{left} {right}");
                }
            }
        }
    }

    #[test]
    fn all_times_have_slots() {
        let times = Int64Array::from(vec![Some(i64::MIN), None, Some(i64::MAX)]);
        let slots = lists(&times, (-1, 0), 1).expect("lists of numbers");
        assert_eq!(slots.value_offsets(), [0, 1, 1, 3]);
        let slots = lists(&times, (i64::MIN, i64::MAX), i64::MAX).expect("lists of numbers");
        assert!(slots.value_offsets()[3] <= 8);
    }
}
