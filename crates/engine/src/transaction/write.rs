//! A change to a table, staged.

use alluvium_trace::memory::MemoryBudget;
use arrow::array::RecordBatch;
use arrow::compute::concat_batches;

use super::rows::Rows;
use crate::error::Result;

/// Writes of fewer rows than this are put together.
const SMALL: usize = 1024;

/// Rows that all enter or all leave a table, with the table's columns.
#[derive(Clone, Debug)]
pub(crate) struct Write {
    pub(crate) rows: Rows,
    pub(crate) direction: Direction,
}

/// Which way rows go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    /// Into the table.
    Enter,
    /// Out of it.
    Leave,
}

impl Write {
    pub(crate) fn enter(rows: RecordBatch) -> Self {
        Self { rows: rows.into(), direction: Direction::Enter }
    }

    pub(crate) fn leave(rows: RecordBatch) -> Self {
        Self { rows: rows.into(), direction: Direction::Leave }
    }

    /// The same rows in the same order, in fewer batches where many small ones follow each other: a
    /// transaction of a thousand INSERTs is not a thousand batches.
    /// What is new is counted in `budget`.
    pub(crate) fn coalesce(writes: Vec<Self>, budget: &MemoryBudget) -> Result<Vec<Self>> {
        let mut coalesced: Vec<Self> = Vec::with_capacity(writes.len());
        for run in writes.chunk_by(|one, next| one.is_followed_by(next)) {
            let Write { rows: first, direction } = &run[0];
            let rows = match first.in_memory() {
                Some(batch) if run.len() > 1 => {
                    let batches = run.iter().filter_map(|write| write.rows.in_memory());
                    let mut rows = Rows::from(concat_batches(batch.schema_ref(), batches)?);
                    rows.count(budget);
                    rows
                }
                _ => first.clone(),
            };
            coalesced.push(Self { rows, direction: *direction });
        }
        Ok(coalesced)
    }

    fn is_followed_by(&self, next: &Self) -> bool {
        let is_small = |rows: &Rows| rows.in_memory().is_some() && rows.len() < SMALL;
        self.direction == next.direction && is_small(&self.rows) && is_small(&next.rows)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, AsArray, Int64Array};
    use arrow::datatypes::Int64Type;

    use super::*;

    fn rows(rows: std::ops::Range<i64>) -> RecordBatch {
        let column: ArrayRef = Arc::new(Int64Array::from_iter_values(rows));
        RecordBatch::try_from_iter([("n", column)]).expect("one column")
    }

    #[test]
    fn small_writes_are_put_together_in_order() {
        let large = 10..10 + SMALL as i64;
        let writes = vec![
            Write::enter(rows(0..1)),
            Write::enter(rows(1..3)),
            Write::leave(rows(3..4)),
            Write::enter(rows(4..10)),
            Write::enter(rows(large.clone())),
        ];
        let budget = MemoryBudget::unlimited();
        let coalesced = Write::coalesce(writes, &budget).expect("the columns agree");
        // What was not put together is counted by who staged it.
        assert_eq!(budget.used(), 8 * 3);
        let lengths: Vec<_> =
            coalesced.iter().map(|write| (write.rows.len(), write.direction)).collect();
        assert_eq!(
            lengths,
            [
                (3, Direction::Enter),
                (1, Direction::Leave),
                (6, Direction::Enter),
                (SMALL, Direction::Enter)
            ]
        );
        let numbers = |write: &Write| {
            let rows = write.rows.load().expect("they are in memory");
            rows.column(0).as_primitive::<Int64Type>().values().to_vec()
        };
        let numbers: Vec<i64> = coalesced.iter().flat_map(numbers).collect();
        assert_eq!(numbers, (0..large.end).collect::<Vec<_>>());
    }
}
