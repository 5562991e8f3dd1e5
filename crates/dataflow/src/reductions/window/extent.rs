//! How far changes are felt: by how much the first column of the order can be less than in a changed row.

use arrow::compute::SortOptions;
use arrow::datatypes::{DataType, IntervalMonthDayNano, SchemaRef};
use datafusion_common::ScalarValue;

use super::WindowFunction;
use super::frame::{Direction, Edge};
use super::function::Function;
use super::reach::Reach;
use crate::fault::{self, Fault};

/// How much less than in a changed row the first column of the order can be.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Extent {
    /// In rows whose results change.
    pub results: Distance,
    /// In rows that these results are computed from.
    pub rows: Distance,
    /// How many rows that have less these results are computed from, if they are counted from row to row; `None` if their number
    /// is not known.
    pub counted: Option<usize>,
}

/// A difference of values of a column. NULL is not less than anything.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Distance {
    /// Any.
    #[default]
    Any,
    /// None.
    Zero,
    /// At most this.
    By(ScalarValue),
}

/// The nanoseconds of a day.
const DAY: i128 = 86_400 * 1_000_000_000;

impl Extent {
    /// Of changes of rows of the schema `input` in `order`.
    pub fn of(
        functions: &[WindowFunction],
        input: &SchemaRef,
        order: &[(usize, SortOptions)],
    ) -> Self {
        let compiled = functions.iter().map(|it| Function::compile(it, input, order));
        match (compiled.collect::<Option<Vec<_>>>(), order.first()) {
            (Some(functions), Some(&(column, options))) => {
                Self::in_order(&Reach::of(&functions), input.field(column), options)
            }
            _ => Self::default(),
        }
    }

    fn in_order(reach: &Reach, column: &arrow::datatypes::Field, options: SortOptions) -> Self {
        let before = farthest(reach, Direction::Before);
        let behind = farthest(reach, Direction::Behind);
        let (Some(before), Some(behind)) = (before, behind) else { return Self::default() };
        let data_type = column.data_type();
        // Some functions see rows by their places, however far away: those before a row, and those after it.
        let sees_before = reach.before > 0 || reach.keeps_results();
        let sees_behind = reach.behind > 0;
        let (sees_greater, lower) = match options.descending {
            false => (sees_behind, behind),
            true => (sees_before, before),
        };
        // NULL may stand among the rows that are seen by those of any value.
        let nulls_are_least = options.nulls_first != options.descending;
        let sees_nulls = match options.nulls_first {
            true => sees_before,
            false => sees_behind,
        };
        let is_far = sees_greater || column.is_nullable() && nulls_are_least && sees_nulls;
        // A row with NULL changes the results of others however much less they have.
        let reaches_least = column.is_nullable() && nulls_are_least;
        let has_ranges = !reach.starts.is_empty() || !reach.ends.is_empty();
        let counted = match has_ranges || reach.keeps_results() || reaches_least {
            true => None,
            false => usize::try_from(reach.before + reach.behind).ok(),
        };
        let results = if is_far { Distance::Any } else { distance(lower, data_type) };
        let rows = match sees_before || sees_behind {
            true => Distance::Any,
            false if fault::armed(Fault::PruneReached) => Distance::Zero,
            false => distance(before + behind, data_type),
        };
        Self { results, rows, counted }
    }
}

/// The length of the longest range in a direction, in nanoseconds if it is an interval; `None` if that is not known.
fn farthest(reach: &Reach, towards: Direction) -> Option<i128> {
    let mut farthest = 0;
    for edge in reach.starts.iter().chain(&reach.ends) {
        let Edge::Away { direction, by } = edge else { continue };
        let length = length(by)?;
        farthest = farthest.max(if *direction == towards { length } else { -length });
    }
    Some(farthest)
}

/// An offset of a range, or more, in nanoseconds if it is an interval; `None` if it has several directions.
fn length(by: &ScalarValue) -> Option<i128> {
    match by {
        ScalarValue::IntervalMonthDayNano(Some(by)) => {
            // No month is longer.
            let days = 31 * i128::from(by.months) + i128::from(by.days);
            let signs = [by.months.signum(), by.days.signum(), by.nanoseconds.signum() as i32];
            let is_one_way = signs.iter().all(|&it| it >= 0) || signs.iter().all(|&it| it <= 0);
            is_one_way.then(|| days * DAY + i128::from(by.nanoseconds))
        }
        ScalarValue::Int16(Some(by)) => Some(i128::from(*by)),
        ScalarValue::Int32(Some(by)) => Some(i128::from(*by)),
        ScalarValue::Int64(Some(by)) => Some(i128::from(*by)),
        _ => None,
    }
}

/// A difference of so much, of values of this type.
fn distance(length: i128, data_type: &DataType) -> Distance {
    let interval = |days: i32, nanoseconds: i64| {
        let interval = IntervalMonthDayNano { months: 0, days, nanoseconds };
        ScalarValue::IntervalMonthDayNano(Some(interval))
    };
    let by = match data_type {
        _ if length == 0 => return Distance::Zero,
        DataType::Date32 => i32::try_from((length + DAY - 1) / DAY).ok().map(|it| interval(it, 0)),
        // A day may have another length where clocks are changed.
        DataType::Timestamp(..) => i64::try_from(length).ok().map(|it| interval(0, it)),
        DataType::Int16 => i16::try_from(length).ok().map(|it| ScalarValue::Int16(Some(it))),
        DataType::Int32 => i32::try_from(length).ok().map(|it| ScalarValue::Int32(Some(it))),
        DataType::Int64 => i64::try_from(length).ok().map(|it| ScalarValue::Int64(Some(it))),
        _ => None,
    };
    by.map_or(Distance::Any, Distance::By)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::datatypes::{Field, Schema, TimeUnit};
    use datafusion_expr::{
        WindowFrame, WindowFrameBound, WindowFrameUnits, WindowFunctionDefinition,
    };
    use datafusion_functions_aggregate::sum::sum_udaf;

    use super::*;
    use crate::reductions::window::Argument;

    const ASCENDING: SortOptions = SortOptions { descending: false, nulls_first: false };
    const DESCENDING: SortOptions = SortOptions { descending: true, nulls_first: true };

    fn before(by: ScalarValue) -> WindowFrameBound {
        WindowFrameBound::Preceding(by)
    }

    fn behind(by: ScalarValue) -> WindowFrameBound {
        WindowFrameBound::Following(by)
    }

    fn whole(by: i64) -> ScalarValue {
        ScalarValue::Int64(Some(by))
    }

    /// The extent of a SUM over a frame in the order of a column of a type.
    fn extent(
        data_type: DataType,
        options: SortOptions,
        units: WindowFrameUnits,
        start: WindowFrameBound,
        end: WindowFrameBound,
    ) -> Extent {
        let field = |name, data_type| Field::new(name, data_type, true);
        let schema = Schema::new(vec![field("at", data_type), field("n", DataType::Int64)]);
        let function = WindowFunction {
            function: WindowFunctionDefinition::AggregateUDF(sum_udaf()),
            arguments: vec![Argument::Column(1)],
            frame: Arc::new(WindowFrame::new_bounds(units, start, end)),
            filter: None,
            distinct: false,
            ignore_nulls: false,
            result: Arc::new(field("sum", DataType::Int64)),
        };
        Extent::of(&[function], &Arc::new(schema), &[(0, options)])
    }

    #[test]
    fn a_range_is_felt_as_far_as_it_leads() {
        let ranges = |options| {
            let (start, end) = (before(whole(7)), behind(whole(2)));
            extent(DataType::Int64, options, WindowFrameUnits::Range, start, end)
        };
        let by = |results, rows| Extent {
            results: Distance::By(whole(results)),
            rows: Distance::By(whole(rows)),
            counted: None,
        };
        assert_eq!(ranges(ASCENDING), by(2, 9));
        assert_eq!(ranges(DESCENDING), by(7, 9));
        let (start, end) = (before(whole(7)), before(whole(3)));
        let past = extent(DataType::Int64, ASCENDING, WindowFrameUnits::Range, start, end);
        assert_eq!(past.results, Distance::Zero);
        assert_eq!(past.rows, Distance::By(whole(7)));
    }

    #[test]
    fn a_month_has_at_most_31_days() {
        let interval = |months, days, nanoseconds| {
            let interval = IntervalMonthDayNano { months, days, nanoseconds };
            ScalarValue::IntervalMonthDayNano(Some(interval))
        };
        let of = |data_type, start| {
            let (units, end) = (WindowFrameUnits::Range, WindowFrameBound::CurrentRow);
            extent(data_type, ASCENDING, units, before(start), end).rows
        };
        let time = DataType::Timestamp(TimeUnit::Microsecond, None);
        let nanoseconds = |days: i64| days * DAY as i64;
        assert_eq!(
            of(time.clone(), interval(1, 1, 5)),
            Distance::By(interval(0, 0, nanoseconds(32) + 5))
        );
        assert_eq!(of(DataType::Date32, interval(1, 0, 0)), Distance::By(interval(0, 31, 0)));
        assert_eq!(of(time, interval(1, -1, 0)), Distance::Any, "it has two directions");
    }

    #[test]
    fn rows_that_are_counted_may_be_any_distance_away() {
        let number = |by| ScalarValue::UInt64(Some(by));
        let rows = |options, start, end| {
            extent(DataType::Int64, options, WindowFrameUnits::Rows, start, end)
        };
        let here = WindowFrameBound::CurrentRow;
        let far = |results, counted| Extent { results, rows: Distance::Any, counted };
        let last = rows(ASCENDING, before(number(2)), here.clone());
        assert_eq!(last, far(Distance::Zero, Some(2)));
        // The rows after a changed one have less.
        assert_eq!(rows(DESCENDING, before(number(2)), here.clone()), far(Distance::Any, Some(2)));
        let next = rows(DESCENDING, here.clone(), behind(number(2)));
        assert_eq!(next, far(Distance::Zero, Some(2)));
        assert_eq!(
            rows(ASCENDING, before(number(3)), behind(number(2))),
            far(Distance::Any, Some(5))
        );
        let running = rows(ASCENDING, before(ScalarValue::UInt64(None)), here.clone());
        assert_eq!(running, far(Distance::Zero, None));
        // A row with NULL is before all others, and they see it.
        let nulls_first = SortOptions { descending: false, nulls_first: true };
        assert_eq!(rows(nulls_first, before(number(2)), here), Extent::default());
    }
}
