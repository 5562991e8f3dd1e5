//! Results over all rows from the beginning of a partition on.
//!
//! The state of the rows before a slice is carried by the result of the last of them, so only the rows of the slice are
//! added.

use std::cmp::Ordering;
use std::ops::Range;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BinaryBuilder, UInt32Array, UInt64Array, make_comparator,
};
use arrow::compute::{SortOptions, concat, take};
use arrow::datatypes::{DataType, UInt64Type};

use super::function::{Failure, Function, Known, Which};
use super::near::{Filter, Totals};
use super::slices::Version;
use crate::reductions::aggregate::accumulator::{Accumulators, State};

/// Places, ascending in each span; the state before each of them is computed.
pub(super) struct Stops {
    places: Vec<usize>,
    /// How many are in each span.
    numbers: Vec<usize>,
}

impl Stops {
    /// After each emitted row with all of its copies.
    pub(super) fn rows(version: &Version) -> Self {
        let mut places: Vec<usize> = Vec::with_capacity(version.emitted());
        for span in &version.spans {
            let mut end = span.emitted.start;
            for place in span.emitted.clone() {
                if end <= place {
                    let row = version.rows[place];
                    let others = version.rows[place..span.emitted.end].iter();
                    end = place + others.take_while(|&&other| other == row).count();
                }
                places.push(end);
            }
        }
        Self { places, numbers: Self::emitted(version) }
    }

    /// After the frame of each emitted place.
    pub(super) fn frames(version: &Version, frames: &[Range<usize>]) -> Self {
        let places = frames.iter().map(|frame| frame.end).collect();
        Self { places, numbers: Self::emitted(version) }
    }

    /// Before a place of the last span.
    pub(super) fn last(version: &Version, place: usize) -> Self {
        let mut numbers = vec![0; version.spans.len()];
        if let Some(last) = numbers.last_mut() {
            *last = 1;
        }
        Self { places: vec![place], numbers }
    }

    fn emitted(version: &Version) -> Vec<usize> {
        version.spans.iter().map(|span| span.emitted.len()).collect()
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.places.len()
    }

    /// Calls `begin` with the number of each span that has stops, then `pass` with the rows up to each stop, and `stop`.
    fn walk<S>(
        &self,
        version: &Version,
        state: &mut S,
        begin: impl Fn(&mut S, usize),
        pass: impl Fn(&mut S, &[u32]),
        mut stop: impl FnMut(&mut S),
    ) {
        let mut first = 0;
        for (number, (span, &stops)) in version.spans.iter().zip(&self.numbers).enumerate() {
            if stops == 0 {
                continue;
            }
            begin(state, number);
            let mut passed = span.all.start;
            for &place in &self.places[first..first + stops] {
                pass(state, &version.rows[passed..place]);
                passed = place;
                stop(state);
            }
            first += stops;
        }
    }
}

/// The types of the columns that a running function with results of this type carries.
pub(super) fn carried_types(function: &Function, result: &DataType) -> Vec<DataType> {
    match function {
        Function::Total { .. } => vec![DataType::Binary],
        Function::Extreme { .. } => vec![result.clone()],
        // How many rows were passed, up to the one that is sought, and its value.
        Function::Value { .. } => vec![DataType::UInt64, result.clone()],
        Function::DenseRank => vec![DataType::UInt64],
        Function::Shift { .. } | Function::RowNumber | Function::Rank => Vec::new(),
    }
}

/// The results of a running function at the stops.
pub(super) fn results(
    function: &Function,
    known: &Known<'_>,
    stops: &Stops,
    failures: &mut Vec<Failure>,
) -> ArrayRef {
    match function {
        Function::Total { accumulators, input, filter, .. } => {
            let mut results = accumulators.collect();
            let mut number = 0;
            totals(accumulators, (*input, *filter), known, stops, |state| {
                results.push(state, |_, message| failures.push((number, message)));
                number += 1;
            });
            results.finish().remove(0)
        }
        // Other carried state ends with the result itself.
        _ => carried(function, known, stops).pop().expect("a running function carries something"),
    }
}

/// The state that a running function carries at the stops.
pub(super) fn carried(function: &Function, known: &Known<'_>, stops: &Stops) -> Vec<ArrayRef> {
    match function {
        Function::Total { accumulators, input, filter, .. } => {
            let mut carried = BinaryBuilder::with_capacity(stops.len(), 16 * stops.len());
            let mut bytes = Vec::new();
            totals(accumulators, (*input, *filter), known, stops, |state| {
                bytes.clear();
                accumulators.encode(state, &mut bytes);
                carried.append_value(&bytes);
            });
            vec![Arc::new(carried.finish())]
        }
        Function::Extreme { input, is_max, filter, .. } => {
            vec![extremes((*input, *filter), *is_max, known, stops)]
        }
        &Function::Value { input, which: Which::Nth(number), .. } => {
            values(number, &(known.column)(input), known, stops)
        }
        Function::DenseRank => vec![groups(known, stops)],
        _ => Vec::new(),
    }
}

/// Calls `stop` with the total of the rows before each stop.
fn totals(
    accumulators: &Accumulators,
    (input, filter): (Option<usize>, Option<usize>),
    known: &Known<'_>,
    stops: &Stops,
    stop: impl FnMut(&mut State),
) {
    let inputs = accumulators.inputs(input.map(known.column).as_slice());
    let filter = filter.map(|filter| Filter::new(&(known.column)(filter)));
    let totals = Totals { accumulators, inputs: &inputs, filter };
    let carried = known.carried[0].as_binary::<i32>();
    stops.walk(
        known.version,
        &mut accumulators.fresh(),
        |state, span| match known.starts[span] {
            Some(start) => accumulators.decode(carried.value(start.row), state),
            None => state.clear(),
        },
        |state, rows| totals.add(state, rows, 1),
        stop,
    );
}

/// The smallest or largest values before the stops.
fn extremes(
    (input, filter): (usize, Option<usize>),
    is_max: bool,
    known: &Known<'_>,
    stops: &Stops,
) -> ArrayRef {
    let (values, first) = with_carried(&(known.column)(input), &known.carried[0]);
    let options = SortOptions { descending: is_max, nulls_first: false };
    let compare =
        make_comparator(&values, &values, options).expect("a type with an order has a comparator");
    let nulls = values.logical_nulls();
    let is_there = |row: usize| nulls.as_ref().is_none_or(|nulls| nulls.is_valid(row));
    let filter = filter.map(|filter| Filter::new(&(known.column)(filter)));
    let mut best: Vec<Option<u32>> = Vec::with_capacity(stops.len());
    stops.walk(
        known.version,
        &mut None,
        |state, span| {
            let row = known.starts[span].map(|start| first + start.row);
            *state = row.filter(|&row| is_there(row)).map(|row| row as u32);
        },
        |state: &mut Option<u32>, rows| {
            for &row in rows {
                let counts = is_there(row as usize)
                    && filter.as_ref().is_none_or(|filter| filter.admits(row as usize));
                let is_better = |best: u32| compare(row as usize, best as usize) == Ordering::Less;
                if counts && state.is_none_or(is_better) {
                    *state = Some(row);
                }
            }
        },
        |state| best.push(*state),
    );
    take(&values, &UInt32Array::from(best), None).expect("each index is below the length")
}

/// How many rows are before the stops, at most `number`, and the value of the row of this number if it is among them.
fn values(number: usize, values: &ArrayRef, known: &Known<'_>, stops: &Stops) -> Vec<ArrayRef> {
    let (values, first) = with_carried(values, &known.carried[1]);
    let passed = known.carried[0].as_primitive::<UInt64Type>();
    let (mut numbers, mut rows) =
        (Vec::with_capacity(stops.len()), Vec::with_capacity(stops.len()));
    // How many were passed, and the row.
    let mut state: (usize, Option<u32>) = (0, None);
    stops.walk(
        known.version,
        &mut state,
        |state, span| {
            *state = match known.starts[span] {
                Some(start) => {
                    let passed = passed.value(start.row) as usize;
                    (passed, (passed == number).then_some((first + start.row) as u32))
                }
                None => (0, None),
            };
        },
        |(passed, row), rows| {
            let missing = number - *passed;
            if row.is_none() && missing <= rows.len() {
                *row = Some(rows[missing - 1]);
            }
            *passed = number.min(*passed + rows.len());
        },
        |&mut (passed, row)| {
            numbers.push(passed as u64);
            rows.push(row);
        },
    );
    let values = take(&values, &UInt32Array::from(rows), None);
    vec![Arc::new(UInt64Array::from(numbers)), values.expect("each index is below the length")]
}

/// How many groups of peers are before the stops, or in part.
fn groups(known: &Known<'_>, stops: &Stops) -> ArrayRef {
    let carried = known.carried[0].as_primitive::<UInt64Type>();
    let mut groups: Vec<u64> = Vec::with_capacity(stops.len());
    let mut state: (u64, Option<&[u8]>) = (0, None);
    stops.walk(
        known.version,
        &mut state,
        |state, span| {
            *state = match known.starts[span] {
                Some(start) => (carried.value(start.row), Some(start.order)),
                None => (0, None),
            };
        },
        |(groups, last), rows| {
            for &row in rows {
                let order = known.peers.get(row as usize);
                if *last != Some(order) {
                    *groups += 1;
                    *last = Some(order);
                }
            }
        },
        |&mut (passed, _)| groups.push(passed),
    );
    Arc::new(UInt64Array::from(groups))
}

/// The values followed by the carried ones, and where these begin.
fn with_carried(values: &ArrayRef, carried: &ArrayRef) -> (ArrayRef, usize) {
    if carried.is_empty() {
        return (Arc::clone(values), values.len());
    }
    let all = concat(&[values.as_ref(), carried.as_ref()]).expect("both have one type");
    (all, values.len())
}
