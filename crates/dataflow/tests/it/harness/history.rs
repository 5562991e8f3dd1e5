//! Rows of numbers, and how they change.

use std::collections::BTreeMap;
use std::sync::Arc;

use alluvium_dataflow::movement::delta::Delta;
use alluvium_trace::Epoch;
use arrow::array::{ArrayRef, Int64Array, RecordBatch};
use arrow::buffer::ScalarBuffer;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};

use super::Random;

/// A row of numbers, some of them NULL.
pub type Row = Vec<Option<i64>>;
/// A multiset of rows.
pub type Rows = BTreeMap<Row, i64>;
/// A row, an epoch, and by how much the row's weight changes then.
pub type Change = (Row, Epoch, i64);
/// Changes, in the order they were made.
pub type History = Vec<Change>;

/// A schema of nullable numbers.
pub fn numbers(columns: &[&str]) -> SchemaRef {
    let field = |name: &&str| Field::new(*name, DataType::Int64, true);
    Arc::new(Schema::new(columns.iter().map(field).collect::<Vec<_>>()))
}

/// The rows as a delta at `epoch`.
pub fn delta(schema: &SchemaRef, rows: &[(Row, i64)], epoch: Epoch) -> Delta<Epoch> {
    let columns = (0..schema.fields().len())
        .map(|column| {
            Arc::new(rows.iter().map(|(row, _)| row[column]).collect::<Int64Array>()) as ArrayRef
        })
        .collect();
    let weights: Vec<i64> = rows.iter().map(|(_, weight)| *weight).collect();
    let mut delta =
        Delta::insertions(RecordBatch::try_new(schema.clone(), columns).unwrap(), epoch);
    delta.weights = Some(ScalarBuffer::from(weights));
    delta
}

/// The multiset that `history` accumulates to by the end of `epoch`.
pub fn at(history: &History, epoch: Epoch) -> Rows {
    let mut rows = Rows::new();
    for (row, time, weight) in history {
        if *time <= epoch {
            *rows.entry(row.clone()).or_default() += weight;
        }
    }
    rows.retain(|_, weight| *weight != 0);
    rows
}

/// Draws changes in epochs 1 to `last`: rows made by `row` are inserted, repeatedly too, and deleted, but never more
/// often than they were inserted. Some epochs change nothing.
pub fn history(
    random: &mut Random,
    last: Epoch,
    mut row: impl FnMut(&mut Random) -> Row,
) -> History {
    let mut history = History::new();
    let mut present: Vec<Row> = Vec::new();
    for epoch in 1..=last {
        if random.once_in(5) {
            continue;
        }
        for _ in 0..random.below(9) {
            if !present.is_empty() && random.once_in(3) {
                let index = random.below(present.len() as u64) as usize;
                history.push((present.swap_remove(index), epoch, -1));
            } else {
                let row = row(random);
                present.push(row.clone());
                history.push((row, epoch, 1));
            }
        }
    }
    history
}
