//! Functions over the rows around each row.

use std::cmp::Ordering;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, DynComparator, UInt32Array, UInt64Array,
    make_comparator,
};
use arrow::compute::{SortOptions, concat, take};
use arrow::datatypes::{DataType, SchemaRef};
use datafusion_common::ScalarValue;

use super::frame::{Edge, Frame};
use super::slices::Version;
use super::{Argument, WindowFunction};
use crate::aggregate::accumulator::{Accumulators, Inputs, State};
use crate::aggregate::{Aggregate, Function as Kind};
use crate::layout::types_of;

/// A function whose results are computed from the rows around each row, and from how many rows are before it.
#[derive(Clone, Debug)]
pub(super) enum Function {
    /// COUNT, SUM or AVG over a frame.
    Total { accumulators: Accumulators, input: Option<usize>, filter: Option<usize>, frame: Frame },
    /// MIN, or MAX, over a frame.
    Extreme { input: usize, is_max: bool, filter: Option<usize>, frame: Frame },
    /// LAG or LEAD: the value so many rows behind the row, or before it if negative.
    Shift { input: usize, offset: i64, default: ScalarValue },
    /// ROW_NUMBER.
    RowNumber,
    /// RANK.
    Rank,
}

/// A failure: the number of the place among the emitted ones, and a message.
pub(super) type Failure = (usize, String);

impl Function {
    /// `None` if the function has to see the whole partition.
    pub(super) fn compile(
        function: &WindowFunction,
        input: &SchemaRef,
        order: &[(usize, SortOptions)],
    ) -> Option<Self> {
        if function.distinct || function.ignore_nulls {
            return None;
        }
        let result = function.result.data_type();
        let columns: Vec<usize> = order.iter().map(|&(column, _)| column).collect();
        let frame = || Frame::compile(&function.frame, order, &types_of(input, &columns));
        let argument = function.arguments.first();
        let of = |column: usize| input.field(column).data_type();
        match (function.function.name(), argument) {
            ("row_number", None) if function.filter.is_none() => {
                (*result == DataType::UInt64).then_some(Self::RowNumber)
            }
            ("rank", None) if function.filter.is_none() && !order.is_empty() => {
                (*result == DataType::UInt64).then_some(Self::Rank)
            }
            (name @ ("lag" | "lead"), Some(&Argument::Column(column))) => {
                let fits = function.filter.is_none() && of(column) == result;
                fits.then(|| shift(name == "lag", column, &function.arguments, result)).flatten()
            }
            (_, Some(_)) if function.arguments.len() > 1 => None,
            ("count", Some(Argument::Constant(constant))) if !constant.is_null() => {
                Self::total(Kind::Count, None, function, input, frame()?)
            }
            ("count", Some(&Argument::Column(column))) => {
                Self::total(Kind::Count, Some(column), function, input, frame()?)
            }
            ("sum", Some(&Argument::Column(column))) => {
                Self::total(Kind::Sum, Some(column), function, input, frame()?)
            }
            ("avg", Some(&Argument::Column(column))) => {
                Self::total(Kind::Avg, Some(column), function, input, frame()?)
            }
            (name @ ("min" | "max"), Some(&Argument::Column(column))) => {
                let frame = frame()?;
                let is_max = name == "max";
                (of(column) == result && has_order(result)).then_some(Self::Extreme {
                    input: column,
                    is_max,
                    filter: function.filter,
                    frame,
                })
            }
            _ => None,
        }
    }

    fn total(
        kind: Kind,
        column: Option<usize>,
        function: &WindowFunction,
        input: &SchemaRef,
        frame: Frame,
    ) -> Option<Self> {
        let aggregate = Aggregate {
            function: kind,
            input: column.map(|_| 0),
            rank: None,
            distinct: false,
            result: function.result.data_type().clone(),
        };
        let types = types_of(input, column.as_slice());
        let accumulators = Accumulators::new(&[aggregate], &types).ok()?;
        Some(Self::Total { accumulators, input: column, filter: function.filter, frame })
    }

    /// The columns of the input that it reads.
    pub(super) fn columns(&self) -> impl Iterator<Item = usize> {
        let (input, filter) = match self {
            Self::Total { input, filter, .. } => (*input, *filter),
            Self::Extreme { input, filter, .. } => (Some(*input), *filter),
            Self::Shift { input, .. } => (Some(*input), None),
            Self::RowNumber | Self::Rank => (None, None),
        };
        input.into_iter().chain(filter)
    }

    /// The frame whose places [`results`](Self::results) takes.
    pub(super) fn frame(&self) -> Option<Frame> {
        match self {
            Self::Total { frame, .. } | Self::Extreme { frame, .. } => Some(frame.clone()),
            Self::Rank => Some(Frame::Range(Edge::Peers, Edge::Peers)),
            Self::Shift { .. } | Self::RowNumber => None,
        }
    }

    /// The results of the emitted places of `version`, whose frames are `places`, and the failures, whose results are NULL.
    /// `column` returns a column of the rows.
    pub(super) fn results(
        &self,
        version: &Version,
        places: &[Range<usize>],
        column: &dyn Fn(usize) -> ArrayRef,
        failures: &mut Vec<Failure>,
    ) -> ArrayRef {
        let filter = |filter: &Option<usize>| filter.map(|filter| Filter::new(&column(filter)));
        match self {
            Self::Total { accumulators, input, filter: condition, .. } => {
                let inputs = accumulators.inputs(input.map(column).as_slice());
                let totals = Totals { accumulators, inputs: &inputs, filter: filter(condition) };
                totals.results(version, places, failures)
            }
            Self::Extreme { input, is_max, filter: condition, .. } => {
                extremes(version, places, &column(*input), *is_max, filter(condition).as_ref())
            }
            Self::Shift { input, offset, default } => {
                shifted(version, &column(*input), *offset, default)
            }
            Self::RowNumber => numbers(version, |span, place| span.before + place as i64 + 1),
            Self::Rank => {
                let mut peers = places.iter();
                numbers(version, |span, _| {
                    let first = peers.next().map_or(0, |peers| peers.start - span.all.start);
                    span.before + first as i64 + 1
                })
            }
        }
    }
}

/// LAG or LEAD of a column.
fn shift(
    is_lag: bool,
    input: usize,
    arguments: &[Argument],
    result: &DataType,
) -> Option<Function> {
    let constant = |number: usize| match arguments.get(number) {
        None => Some(ScalarValue::Null),
        Some(Argument::Constant(constant)) => Some(constant.clone()),
        Some(Argument::Column(_)) => None,
    };
    let (offset, default) = (constant(1)?, constant(2)?);
    let offset = match offset {
        ScalarValue::Null => 1,
        offset => match offset.cast_to(&DataType::Int64) {
            Ok(ScalarValue::Int64(Some(offset))) => offset,
            _ => return None,
        },
    };
    // Offsets that lead farther than this lead behind most partitions, and slices should stay small.
    const FAR: i64 = 1 << 20;
    if arguments.len() > 3 || !(-FAR..=FAR).contains(&offset) {
        return None;
    }
    let default = match default.is_null() {
        true => ScalarValue::try_from(result).ok()?,
        false => default.cast_to(result).ok()?,
    };
    Some(Function::Shift { input, offset: if is_lag { -offset } else { offset }, default })
}

/// Whether comparing two values of the type is comparing their parts, so that equal values are the same.
fn has_order(data_type: &DataType) -> bool {
    match data_type {
        DataType::Interval(_) | DataType::Null => false,
        other => {
            other.is_primitive()
                || other.is_string()
                || other.is_binary()
                || *other == DataType::Boolean
        }
    }
}

/// Which rows count.
struct Filter(BooleanArray);

impl Filter {
    fn new(column: &ArrayRef) -> Self {
        Self(column.as_boolean().clone())
    }

    fn admits(&self, row: usize) -> bool {
        self.0.is_valid(row) && self.0.value(row)
    }
}

/// Sums over frames.
struct Totals<'a> {
    accumulators: &'a Accumulators,
    inputs: &'a Inputs,
    filter: Option<Filter>,
}

impl Totals<'_> {
    fn add(&self, state: &mut State, rows: &[u32], weight: i64) {
        for &row in rows {
            let row = row as usize;
            if self.filter.as_ref().is_none_or(|filter| filter.admits(row)) {
                self.accumulators.add(state, self.inputs, row, weight);
            }
        }
    }

    /// The results for the frames of the emitted places.
    fn results(
        &self,
        version: &Version,
        frames: &[Range<usize>],
        failures: &mut Vec<Failure>,
    ) -> ArrayRef {
        let mut results = self.accumulators.collect();
        let mut state = self.accumulators.fresh();
        let mut number = 0;
        for span in &version.spans {
            state.clear();
            // What the state is the sum of.
            let mut held = span.all.start..span.all.start;
            for frame in &frames[number..number + span.emitted.len()] {
                if frame.start >= held.end {
                    state.clear();
                    held = frame.start..frame.start;
                }
                self.add(&mut state, &version.rows[held.start..frame.start], -1);
                self.add(&mut state, &version.rows[held.end..frame.end.max(held.end)], 1);
                held = frame.start..frame.end.max(held.end);
                results.push(&state, |_, message| failures.push((number, message)));
                number += 1;
            }
        }
        results.finish().remove(0)
    }
}

/// The smallest or largest values in frames.
fn extremes(
    version: &Version,
    frames: &[Range<usize>],
    values: &ArrayRef,
    is_max: bool,
    filter: Option<&Filter>,
) -> ArrayRef {
    let options = SortOptions { descending: is_max, nulls_first: false };
    let compare: DynComparator =
        make_comparator(values, values, options).expect("a type with an order has a comparator");
    let nulls = values.logical_nulls();
    let counts = |row: usize| {
        nulls.as_ref().is_none_or(|nulls| nulls.is_valid(row))
            && filter.is_none_or(|filter| filter.admits(row))
    };
    let mut best: Vec<Option<u32>> = Vec::with_capacity(frames.len());
    // Places of which each is better than all behind it in the frame.
    let mut candidates: VecDeque<usize> = VecDeque::new();
    for span in &version.spans {
        candidates.clear();
        let mut end = span.all.start;
        let number = best.len();
        for frame in &frames[number..number + span.emitted.len()] {
            for place in end.max(frame.start)..frame.end {
                let row = version.rows[place] as usize;
                if !counts(row) {
                    continue;
                }
                let is_worse =
                    |&last: &usize| compare(version.rows[last] as usize, row) != Ordering::Less;
                while candidates.back().is_some_and(is_worse) {
                    candidates.pop_back();
                }
                candidates.push_back(place);
            }
            end = end.max(frame.end);
            while candidates.front().is_some_and(|&first| first < frame.start) {
                candidates.pop_front();
            }
            best.push(candidates.front().map(|&first| version.rows[first]));
        }
    }
    take(values, &UInt32Array::from(best), None).expect("each index is below the length")
}

/// The values so many rows away, or the default beyond the partition.
fn shifted(version: &Version, values: &ArrayRef, offset: i64, default: &ScalarValue) -> ArrayRef {
    // The default is behind all values.
    let beyond = values.len() as u32;
    let mut rows: Vec<u32> = Vec::with_capacity(version.emitted());
    for span in &version.spans {
        rows.extend(span.emitted.clone().map(|place| {
            let place = place as i64 + offset;
            match span.all.start as i64 <= place && place < span.all.end as i64 {
                true => version.rows[place as usize],
                false => beyond,
            }
        }));
    }
    let default = default.to_array().expect("a default was cast to the type of its column");
    let values = concat(&[values.as_ref(), default.as_ref()]).expect("both have one type");
    take(&values, &UInt32Array::from(rows), None).expect("each index is below the length")
}

/// A number for each emitted place, which `number` makes of its span and its number in it.
fn numbers(
    version: &Version,
    mut number: impl FnMut(&super::slices::Span, usize) -> i64,
) -> ArrayRef {
    let mut numbers: Vec<u64> = Vec::with_capacity(version.emitted());
    for span in &version.spans {
        numbers.extend(
            span.emitted.clone().map(|place| number(span, place - span.all.start).unsigned_abs()),
        );
    }
    Arc::new(UInt64Array::from(numbers))
}
