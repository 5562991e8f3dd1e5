//! How the rows of a transaction are partitioned over the workers.

use arrow::buffer::ScalarBuffer;

use crate::transaction::{Direction, Write};
use crate::worker::{DataflowId, Portion};

/// The most rows that travel in one batch.
const MOST: usize = 65_536;

/// The fewest rows that are worth sending to another worker.
const LEAST: usize = 4_096;

/// For each worker, its share of the changes of each table. Any share will do: the dataflow exchanges every row by its
/// key, and this only distributes the work of encoding.
pub(super) fn partition(
    changes: Vec<(DataflowId, Vec<Write>)>,
    workers: usize,
) -> Vec<Vec<(DataflowId, Vec<Portion>)>> {
    let mut shares: Vec<Vec<_>> = (0..workers).map(|_| Vec::with_capacity(changes.len())).collect();
    for (table, changes) in changes {
        let rows: usize = changes.iter().map(|change| change.rows.len()).sum();
        let length = rows.div_ceil(workers).clamp(LEAST, MOST);
        let mut portions: Vec<Vec<Portion>> = vec![Vec::new(); workers];
        let mut sequence = 0;
        let parts = changes
            .iter()
            .flat_map(|change| change.rows.parts(length).map(|rows| (rows, change.direction)));
        for (index, (rows, direction)) in parts.enumerate() {
            let length = rows.len();
            let weights = match direction {
                Direction::Enter => None,
                Direction::Leave => Some(ScalarBuffer::from(vec![-1_i64; length])),
            };
            portions[index % workers].push(Portion { rows, weights, sequence });
            sequence += length as u64;
        }
        for (share, portions) in shares.iter_mut().zip(portions) {
            if !portions.is_empty() {
                share.push((table, portions));
            }
        }
    }
    shares
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, Int64Array, RecordBatch};

    use super::*;

    fn change(rows: std::ops::Range<i64>, direction: Direction) -> Write {
        let column: ArrayRef = Arc::new(Int64Array::from_iter_values(rows));
        let rows = RecordBatch::try_from_iter([("n", column)]).expect("one column");
        Write { rows: rows.into(), direction }
    }

    #[test]
    fn every_row_goes_to_one_worker_with_its_own_number() {
        let changes = vec![change(0..100_000, Direction::Enter), change(0..3, Direction::Leave)];
        let shares = partition(vec![(DataflowId(7), changes)], 3);
        let mut portions: Vec<_> =
            shares.into_iter().flatten().flat_map(|(_, portions)| portions).collect();
        portions.sort_by_key(|portion| portion.sequence);
        let mut next = 0;
        for portion in &portions {
            assert_eq!(portion.sequence, next);
            assert!(portion.rows.len() <= MOST);
            next += portion.rows.len() as u64;
        }
        assert_eq!(next, 100_003);
        let last = portions.last().expect("there are portions");
        assert_eq!(last.weights.as_deref(), Some(&[-1, -1, -1][..]));
    }

    #[test]
    fn a_small_change_goes_to_one_worker() {
        let shares = partition(vec![(DataflowId(0), vec![change(0..10, Direction::Enter)])], 2);
        assert_eq!(shares.iter().map(Vec::len).collect::<Vec<_>>(), [1, 0]);
    }
}
