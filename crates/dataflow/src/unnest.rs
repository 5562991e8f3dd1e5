//! Unnesting: a row for each element of a row's lists.

use std::sync::Arc;

use alluvium_trace::Epoch;
use arrow::array::{Array, ArrayRef, AsArray, ListArray, UInt32Array};
use arrow::compute::take;
use arrow::datatypes::SchemaRef;
use timely::container::NoopBuilder;
use timely::dataflow::channels::pact::Pipeline;
use timely::dataflow::operators::generic::OutputBuilder;
use timely::dataflow::operators::generic::builder_rc::OperatorBuilder;

use crate::delta::{Delta, DeltaStream, batch};
use crate::fault::{self, Fault};

/// The most rows of an output delta, unless a single row has more elements.
const LONGEST: usize = 65_536;

/// Each row of `stream` once for each element of its lists, with the element in the list's place and all
/// other columns as they are.
///
/// `lists` are distinct columns of type [`arrow::datatypes::DataType::List`], at least one. Several lists are unnested side
/// by side: there are as many rows as the longest has elements, and NULLs behind the end of a shorter one. A row whose lists are all NULL or empty is dropped. `schema` is that of `stream` with
/// nullable elements in place of lists.
///
/// Panics if there is no list, or a column in `lists` is not one.
pub fn unnest<'scope>(
    stream: DeltaStream<'scope, Epoch>,
    lists: Vec<usize>,
    schema: SchemaRef,
) -> DeltaStream<'scope, Epoch> {
    assert!(!lists.is_empty(), "there is a list to unnest");
    let mut builder = OperatorBuilder::new("Unnest".to_owned(), stream.scope());
    let mut input = builder.new_input(stream, Pipeline);
    let (output, rows) = builder.new_output();
    let mut output = OutputBuilder::<Epoch, NoopBuilder<Delta<Epoch>>>::from(output);
    builder.build(move |_capabilities| {
        move |_frontiers| {
            let mut output = output.activate();
            input.for_each(|capability, delta: &mut Delta<Epoch>| {
                let capability = capability.retain(0);
                let delta = std::mem::take(delta);
                let lengths = lengths(&delta, &lists);
                for (start, length) in cuts(&lengths) {
                    let part = delta.slice(start, length);
                    let lengths = &lengths[start..start + length];
                    let mut unnested = expand(&part, lengths, &lists, &schema);
                    output.session_with_builder(&capability).give_container(&mut unnested);
                }
            });
        }
    });
    rows
}

/// The number of rows that each row becomes.
fn lengths<T: Clone>(delta: &Delta<T>, lists: &[usize]) -> Vec<u32> {
    let mut lengths = vec![0; delta.len()];
    for &list in lists {
        let list = delta.rows.column(list).as_list::<i32>();
        for (row, longest) in lengths.iter_mut().enumerate() {
            if list.is_valid(row) {
                // A list's length is never negative.
                *longest = (*longest).max(list.value_length(row) as u32);
            }
        }
    }
    if fault::armed(Fault::LoseElement) {
        lengths.iter_mut().for_each(|length| *length = length.saturating_sub(1));
    }
    lengths
}

/// Runs of rows, as starts and lengths, that become at most [`LONGEST`] rows or are a single row. Rows without elements are
/// dropped at the ends of runs.
fn cuts(lengths: &[u32]) -> Vec<(usize, usize)> {
    let mut cuts = Vec::new();
    let (mut start, mut rows) = (0, 0);
    for (row, &length) in lengths.iter().enumerate() {
        let length = length as usize;
        if rows > 0 && rows + length > LONGEST {
            cuts.push((start, row - start));
            (start, rows) = (row, 0);
        }
        rows += length;
    }
    if rows > 0 {
        cuts.push((start, lengths.len() - start));
    }
    cuts
}

/// The rows of `delta`, each repeated by its length, with the elements of the lists.
fn expand<T: Clone>(
    delta: &Delta<T>,
    lengths: &[u32],
    lists: &[usize],
    schema: &SchemaRef,
) -> Delta<T> {
    let total = lengths.iter().map(|&length| length as usize).sum();
    let mut rows = Vec::with_capacity(total);
    for (row, &length) in lengths.iter().enumerate() {
        rows.extend(std::iter::repeat_n(row as u32, length as usize));
    }
    let others: Vec<usize> =
        (0..delta.rows.num_columns()).filter(|column| !lists.contains(column)).collect();
    let repeated = delta.project(&others).take(&UInt32Array::from(rows));
    let mut kept = repeated.rows.columns().iter();
    let columns = (0..delta.rows.num_columns()).map(|column| match lists.contains(&column) {
        true => elements(delta.rows.column(column).as_list(), lengths, total),
        false => Arc::clone(kept.next().expect("each other column is among the repeated ones")),
    });
    let rows = batch(schema.clone(), columns.collect(), total);
    Delta::new(rows, repeated.times, repeated.weights)
}

/// The elements of every list, followed by NULLs up to its row's length.
fn elements(list: &ListArray, lengths: &[u32], total: usize) -> ArrayRef {
    let offsets = list.value_offsets();
    let (first, last) = (offsets[0] as usize, offsets[list.len()] as usize);
    let is_whole = list.nulls().is_none_or(|nulls| {
        nulls.null_count() == 0
            || (0..list.len()).all(|row| nulls.is_valid(row) || list.value_length(row) == 0)
    });
    if is_whole && last - first == total {
        // No other list is longer than this one anywhere: its elements are the column.
        return list.values().slice(first, total);
    }
    let mut places: Vec<Option<u32>> = Vec::with_capacity(total);
    for (row, &length) in lengths.iter().enumerate() {
        let own = if list.is_valid(row) { list.value_length(row) as u32 } else { 0 };
        let start = offsets[row] as u32;
        places.extend((0..length).map(|place| (place < own).then_some(start + place)));
    }
    take(list.values(), &UInt32Array::from(places), None).expect("each place is an element's")
}

#[cfg(test)]
mod tests {
    use arrow::array::{Int64Array, RecordBatch};
    use arrow::datatypes::{DataType, Field, Int64Type, Schema};

    use super::*;
    use crate::delta::Times;

    type List = Option<Vec<Option<i64>>>;
    type Unnested = (Option<i64>, i64, Option<i64>, u64, i64);

    /// Two lists beside a number; row `i` changes at time `i` by `i + 1`.
    fn delta(rows: &[(List, i64, List)]) -> Delta<u64> {
        let list = |column: fn(&(List, i64, List)) -> List| -> ArrayRef {
            Arc::new(ListArray::from_iter_primitive::<Int64Type, _, _>(rows.iter().map(column)))
        };
        let numbers = Int64Array::from_iter_values(rows.iter().map(|row| row.1));
        let columns = [
            ("a", list(|row| row.0.clone())),
            ("n", Arc::new(numbers) as ArrayRef),
            ("b", list(|row| row.2.clone())),
        ];
        Delta::new(
            RecordBatch::try_from_iter(columns).unwrap(),
            Times::Each((0..rows.len() as u64).collect()),
            Some((1..=rows.len() as i64).collect()),
        )
    }

    fn unnested(delta: &Delta<u64>) -> Vec<Unnested> {
        let field = |name| Field::new(name, DataType::Int64, true);
        let schema = Arc::new(Schema::new(vec![field("a"), field("n"), field("b")]));
        let lengths = lengths(delta, &[0, 2]);
        let mut rows = Vec::new();
        for (start, length) in cuts(&lengths) {
            let part = delta.slice(start, length);
            let part = expand(&part, &lengths[start..start + length], &[0, 2], &schema);
            let column =
                |column: usize| part.rows.column(column).as_primitive::<Int64Type>().clone();
            let value = |column: &Int64Array, row| column.is_valid(row).then(|| column.value(row));
            let (a, n, b) = (column(0), column(1), column(2));
            rows.extend((0..part.len()).map(|row| {
                (value(&a, row), n.value(row), value(&b, row), *part.time(row), part.weight(row))
            }));
        }
        rows
    }

    #[test]
    fn lists_side_by_side_are_as_long_as_the_longest() {
        let some = |values: &[i64]| Some(values.iter().map(|value| Some(*value)).collect());
        let rows = [
            (some(&[1, 2]), 10, some(&[7])),
            (None, 11, some(&[])),
            (Some(vec![None]), 12, None),
            (some(&[3]), 13, some(&[8, 9])),
        ];
        let expected = [
            (Some(1), 10, Some(7), 0, 1),
            (Some(2), 10, None, 0, 1),
            (None, 12, None, 2, 3),
            (Some(3), 13, Some(8), 3, 4),
            (None, 13, Some(9), 3, 4),
        ];
        assert_eq!(unnested(&delta(&rows)), expected);
        // A part of a batch has offsets of its own.
        assert_eq!(unnested(&delta(&rows).slice(2, 2)), expected[2..]);
    }

    #[test]
    fn long_outputs_are_split_into_several_deltas() {
        let long = |length: usize| Some(vec![Some(0); length]);
        let rows: Vec<(List, i64, List)> =
            [LONGEST - 1, 0, 2, 2 * LONGEST, 1].map(|length| (long(length), 0, None)).to_vec();
        let delta = delta(&rows);
        let lengths = lengths(&delta, &[0, 2]);
        assert_eq!(cuts(&lengths), [(0, 2), (2, 1), (3, 1), (4, 1)]);
        assert_eq!(unnested(&delta).len(), 3 * LONGEST + 2);
    }
}
