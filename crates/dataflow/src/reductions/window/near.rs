//! Results over the rows near each row.

use std::cmp::Ordering;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, DynComparator, UInt32Array, UInt64Array,
    make_comparator,
};
use arrow::compute::{SortOptions, concat, take};
use datafusion_common::ScalarValue;

use super::function::{Failure, Which};
use super::slices::{Span, Version};
use crate::reductions::aggregate::accumulator::{Accumulators, Inputs, State};

/// Which rows count.
pub(super) struct Filter(BooleanArray);

impl Filter {
    pub(super) fn new(column: &ArrayRef) -> Self {
        Self(column.as_boolean().clone())
    }

    pub(super) fn admits(&self, row: usize) -> bool {
        self.0.is_valid(row) && self.0.value(row)
    }
}

/// Sums over frames.
pub(super) struct Totals<'a> {
    pub(super) accumulators: &'a Accumulators,
    pub(super) inputs: &'a Inputs,
    pub(super) filter: Option<Filter>,
}

impl Totals<'_> {
    /// Adds rows with a weight.
    pub(super) fn add(&self, state: &mut State, rows: &[u32], weight: i64) {
        for &row in rows {
            let row = row as usize;
            if self.filter.as_ref().is_none_or(|filter| filter.admits(row)) {
                self.accumulators.add(state, self.inputs, row, weight);
            }
        }
    }

    /// The results for the frames of the emitted places.
    pub(super) fn results(
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
            // The rows that the state is the sum of.
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
pub(super) fn extremes(
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
    // Places of which each is better than all after it in the frame.
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

/// The value of one row of each frame, or NULL if it has fewer rows.
pub(super) fn chosen(
    frames: &[Range<usize>],
    version: &Version,
    which: Which,
    values: &ArrayRef,
) -> ArrayRef {
    let row = |frame: &Range<usize>| {
        let place = match which {
            Which::Last => frame.end.checked_sub(1)?,
            Which::Nth(number) => frame.start.checked_add(number - 1)?,
        };
        frame.contains(&place).then(|| version.rows[place])
    };
    let rows: UInt32Array = frames.iter().map(row).collect();
    take(values, &rows, None).expect("each index is below the length")
}

/// The values so many rows away, or the default beyond the partition.
pub(super) fn shifted(
    version: &Version,
    values: &ArrayRef,
    offset: i64,
    default: &ScalarValue,
) -> ArrayRef {
    // The default comes after all values.
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
pub(super) fn numbers(version: &Version, mut number: impl FnMut(&Span, usize) -> i64) -> ArrayRef {
    let mut numbers: Vec<u64> = Vec::with_capacity(version.emitted());
    for span in &version.spans {
        numbers.extend(
            span.emitted.clone().map(|place| number(span, place - span.all.start).unsigned_abs()),
        );
    }
    Arc::new(UInt64Array::from(numbers))
}
