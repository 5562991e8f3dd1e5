//! Unnesting: a row for each element of a row's lists.

use std::sync::Arc;

use alluvium_trace::PageTime;
use alluvium_trace::memory::StateContext;
use arrow::array::{Array, ArrayRef, AsArray, ListArray, UInt32Array};
use arrow::compute::take;
use arrow::datatypes::SchemaRef;

use crate::fault::{self, Fault};
use crate::movement::delta::{Delta, DeltaStream, batch};
use crate::movement::fuel::fueled;
use crate::rows::widths::{average, widths};

/// The most rows of an output delta.
const LONGEST: usize = 65_536;

/// Each row of `stream` once for each element of its lists, with the element in the list's place and all
/// other columns as they are.
///
/// `lists` are distinct columns of type [`arrow::datatypes::DataType::List`], at least one. Several lists are unnested side
/// by side: there are as many rows as the longest has elements, and NULLs past the end of a shorter one. A row whose lists
/// are all NULL or empty is dropped, or kept once with NULLs if `keeps_all`. `schema` is that of `stream` with nullable elements
/// in place of lists.
///
/// Panics if there is no list, or a column in `lists` is not one.
pub fn unnest<'scope, T: PageTime>(
    stream: DeltaStream<'scope, T>,
    lists: Vec<usize>,
    keeps_all: bool,
    schema: SchemaRef,
    context: &StateContext,
) -> DeltaStream<'scope, T> {
    assert!(!lists.is_empty(), "there is a list to unnest");
    let most = context.budget().policy().activation;
    let (rows, _) = fueled(
        stream,
        "Unnest",
        context,
        {
            let lists = lists.clone();
            move |delta: &mut Delta<T>, open| {
                open(Work::new(std::mem::take(delta), &lists, keeps_all))
            }
        },
        move |work| Some(expand(&work.next(most)?, &lists, &schema).into()),
    );
    rows
}

/// A delta whose elements are unnested piece by piece.
struct Work<T> {
    delta: Delta<T>,
    /// How many rows each row becomes.
    lengths: Vec<u32>,
    /// How many bytes each of these has.
    widths: Vec<usize>,
    /// The next row, and how many of its elements are done.
    row: usize,
    done: u32,
}

/// Rows of a delta, and the elements of them that come next.
struct Piece<T> {
    rows: Delta<T>,
    /// How many elements of the first row come before.
    skipped: u32,
    /// How many elements of each row there are.
    lengths: Vec<u32>,
}

impl<T: Clone> Work<T> {
    fn new(delta: Delta<T>, lists: &[usize], keeps_all: bool) -> Self {
        let mut bytes = vec![0; delta.len()];
        for (number, column) in delta.rows.columns().iter().enumerate() {
            match lists.contains(&number) {
                true => bytes
                    .iter_mut()
                    .for_each(|bytes| *bytes += average(column.as_list::<i32>().values())),
                false => {
                    bytes.iter_mut().zip(widths(column)).for_each(|(bytes, width)| *bytes += width)
                }
            }
        }
        let mut lengths = lengths(&delta, lists);
        if keeps_all {
            lengths.iter_mut().for_each(|length| *length = (*length).max(1));
        }
        Self { delta, lengths, widths: bytes, row: 0, done: 0 }
    }

    /// The next elements: some rows' worth, of `most` bytes or one element. `None` if there are no more.
    fn next(&mut self, most: usize) -> Option<Piece<T>> {
        while self.lengths.get(self.row) == Some(&0) {
            self.row += 1;
        }
        let (start, skipped) = (self.row, self.done);
        let (mut rows, mut bytes) = (0, 0);
        let mut lengths = Vec::new();
        while let Some(&length) = self.lengths.get(self.row)
            && rows < LONGEST
            && (bytes < most || rows == 0)
        {
            let width = self.widths[self.row].max(1);
            let room = (most.saturating_sub(bytes) / width).max(1).min(LONGEST - rows);
            let taken = (length - self.done).min(u32::try_from(room).unwrap_or(u32::MAX));
            lengths.push(taken);
            rows += taken as usize;
            bytes += taken as usize * width;
            self.done += taken;
            if self.done < length {
                break;
            }
            (self.row, self.done) = (self.row + 1, 0);
        }
        let rows = self.delta.slice(start.min(self.delta.len()), lengths.len());
        (!lengths.is_empty()).then_some(Piece { rows, skipped, lengths })
    }
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

/// The rows of a piece, each repeated by its length, with the elements of the lists.
fn expand<T: Clone>(piece: &Piece<T>, lists: &[usize], schema: &SchemaRef) -> Delta<T> {
    let Piece { rows: delta, lengths, .. } = piece;
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
        true => elements(delta.rows.column(column).as_list(), piece, total),
        false => Arc::clone(kept.next().expect("each other column is among the repeated ones")),
    });
    let rows = batch(schema.clone(), columns.collect(), total);
    Delta::new(rows, repeated.times, repeated.weights)
}

/// The elements of every list in the piece, followed by NULLs up to its row's length.
fn elements<T>(list: &ListArray, piece: &Piece<T>, total: usize) -> ArrayRef {
    let offsets = list.value_offsets();
    let skipped = |row: usize| if row == 0 { piece.skipped } else { 0 };
    // Where the elements of a row begin, and how many there are.
    let own = |row: usize, length: u32| {
        let all = if list.is_valid(row) { list.value_length(row) as u32 } else { 0 };
        (offsets[row] as u32 + skipped(row), all.saturating_sub(skipped(row)).min(length))
    };
    let lengths = || piece.lengths.iter().copied().enumerate();
    let is_whole = list.nulls().is_none_or(|nulls| {
        nulls.null_count() == 0
            || (0..list.len()).all(|row| nulls.is_valid(row) || list.value_length(row) == 0)
    });
    // Of the last row there may be more.
    let is_all = |(row, length): (usize, u32)| match own(row, u32::MAX).1 {
        all if row + 1 == piece.lengths.len() => all >= length,
        all => all == length,
    };
    if is_whole && lengths().all(is_all) {
        // No other list is longer than this one anywhere: its elements are the column.
        return list.values().slice(own(0, 0).0 as usize, total);
    }
    let mut places: Vec<Option<u32>> = Vec::with_capacity(total);
    for (row, length) in lengths() {
        let (start, count) = own(row, length);
        places.extend((0..length).map(|place| (place < count).then_some(start + place)));
    }
    take(list.values(), &UInt32Array::from(places), None).expect("each place is an element's")
}

#[cfg(test)]
mod tests {
    use arrow::array::{Int64Array, RecordBatch};
    use arrow::datatypes::{DataType, Field, Int64Type, Schema};

    use super::*;
    use crate::movement::delta::Times;

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

    /// All rows, made in pieces of `most` bytes.
    fn unnested(delta: &Delta<u64>, keeps_all: bool, most: usize) -> Vec<Unnested> {
        let field = |name| Field::new(name, DataType::Int64, true);
        let schema = Arc::new(Schema::new(vec![field("a"), field("n"), field("b")]));
        let mut work = Work::new(delta.clone(), &[0, 2], keeps_all);
        let mut rows = Vec::new();
        while let Some(piece) = work.next(most) {
            let part = expand(&piece, &[0, 2], &schema);
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
        for most in [1, 30, 60, 90, 1 << 20] {
            assert_eq!(unnested(&delta(&rows), false, most), expected);
            // A part of a batch has offsets of its own.
            assert_eq!(unnested(&delta(&rows).slice(2, 2), false, most), expected[2..]);
        }
        let mut expected = expected.to_vec();
        expected.insert(2, (None, 11, None, 1, 2));
        for most in [1, 30, 60, 90, 1 << 20] {
            assert_eq!(unnested(&delta(&rows), true, most), expected);
            assert_eq!(unnested(&delta(&rows).slice(1, 3), true, most), expected[2..]);
        }
    }

    #[test]
    fn long_lists_and_long_rows_are_unnested_in_pieces() {
        let long = |length: usize| Some(vec![Some(0); length]);
        let rows: Vec<(List, i64, List)> =
            [LONGEST - 1, 0, 2, 2 * LONGEST, 1].map(|length| (long(length), 0, None)).to_vec();
        let delta = delta(&rows);
        let pieces = |most: usize| {
            let mut work = Work::new(delta.clone(), &[0, 2], false);
            std::iter::from_fn(move || work.next(most))
                .map(|piece| piece.lengths.iter().sum::<u32>() as usize)
                .collect::<Vec<_>>()
        };
        assert_eq!(pieces(usize::MAX), [LONGEST, LONGEST, LONGEST, 2]);
        let small = pieces(16 << 10);
        assert_eq!(small.iter().sum::<usize>(), 3 * LONGEST + 2);
        assert!(small.iter().all(|rows| *rows <= 1 << 10), "{small:?}");
        assert_eq!(unnested(&delta, false, 1 << 20).len(), 3 * LONGEST + 2);
    }
}
