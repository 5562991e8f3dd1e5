//! How the rows of a transaction are partitioned over the workers.

use crate::changes::TableChange;
use crate::worker::DataflowId;

/// The most rows that travel in one batch.
const MOST: usize = 65_536;

/// The fewest rows that are worth sending to another worker.
const LEAST: usize = 4_096;

/// For each worker, its share of the changes of each table. Any share will do: the dataflow exchanges every row by its
/// key, and this only distributes the work of encoding.
pub(super) fn partition(
    changes: Vec<(DataflowId, Vec<TableChange>)>,
    workers: usize,
) -> Vec<Vec<(DataflowId, Vec<TableChange>)>> {
    let mut shares: Vec<Vec<_>> = (0..workers).map(|_| Vec::with_capacity(changes.len())).collect();
    for (table, changes) in changes {
        let rows: usize = changes.iter().map(TableChange::len).sum();
        let length = rows.div_ceil(workers).clamp(LEAST, MOST);
        let mut parts: Vec<Vec<TableChange>> = vec![Vec::new(); workers];
        for (index, part) in changes.iter().flat_map(|change| change.parts(length)).enumerate() {
            parts[index % workers].push(part);
        }
        for (share, parts) in shares.iter_mut().zip(parts) {
            if !parts.is_empty() {
                share.push((table, parts));
            }
        }
    }
    shares
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use alluvium_trace::memory::MemoryBudget;
    use arrow::array::{ArrayRef, Int64Array, RecordBatch};

    use super::*;

    fn rows(rows: std::ops::Range<i64>) -> RecordBatch {
        let column: ArrayRef = Arc::new(Int64Array::from_iter_values(rows));
        RecordBatch::try_from_iter([("n", column)]).expect("one column")
    }

    #[test]
    fn every_row_goes_to_one_worker_with_its_own_number() {
        let changes =
            vec![TableChange::insertions(rows(0..100_000)), TableChange::deletions(rows(0..3))];
        let budget = MemoryBudget::unlimited();
        let changes = TableChange::coalesce(changes, &budget).expect("the columns agree");
        let shares = partition(vec![(DataflowId(7), changes)], 3);
        let mut parts: Vec<_> = shares.into_iter().flatten().flat_map(|(_, parts)| parts).collect();
        parts.sort_by_key(TableChange::sequence);
        let mut next = 0;
        for part in &parts {
            assert_eq!(part.sequence(), next);
            assert!(part.len() <= MOST);
            next += part.len() as u64;
        }
        assert_eq!(next, 100_003);
        let last = parts.last().expect("there are parts");
        let (_, weights) = last.load().expect("they are in memory");
        assert_eq!(weights.as_deref(), Some(&[-1, -1, -1][..]));
    }

    #[test]
    fn a_small_change_goes_to_one_worker() {
        let changes = vec![TableChange::insertions(rows(0..10))];
        let shares = partition(vec![(DataflowId(0), changes)], 2);
        assert_eq!(shares.iter().map(Vec::len).collect::<Vec<_>>(), [1, 0]);
    }
}
