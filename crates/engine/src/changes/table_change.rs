//! Changed rows of one table, from where they are staged to the table's dataflow.

use std::sync::Arc;

use alluvium_trace::memory::MemoryBudget;
use arrow::array::{ArrayRef, AsArray, Int64Array, RecordBatch};
use arrow::buffer::ScalarBuffer;
use arrow::compute::concat_batches;
use arrow::datatypes::{DataType, Field, Int64Type, Schema};

use super::late::Bounds;
use super::rows::Rows;
use crate::catalog::Entry;
use crate::error::{Error, Result};

/// Changes of fewer rows than this are merged.
const SMALL: usize = 1024;

/// And of fewer bytes than this, up to as many.
const SMALL_BYTES: usize = 1 << 20;

/// Rows of a table, by how much each of them changes, and their place among the changes of a transaction.
#[derive(Clone, Debug)]
pub(crate) struct TableChange {
    /// With the table's columns. With [`Weights::Column`] one more follows.
    rows: Rows,
    weights: Weights,
    /// The bounds for rows to be changed; `None` if all are.
    bounds: Option<Bounds>,
    /// The number of the first row among the transaction's changes to the table; the others follow. Set on commit.
    sequence: u64,
    /// Whether no other rows may have the keys of these, which are inserted. That is checked before the commit, and not recorded.
    has_new_keys: bool,
}

/// By how much rows change: a positive weight inserts that many copies of a row, a negative one deletes them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Weights {
    /// Every row is inserted once.
    Insert,
    /// Every row is deleted once.
    Delete,
    /// Every row has a weight of its own, in the last column: it is counted, sliced and spilled with the row.
    Column,
}

impl Weights {
    /// Rows as they are kept, without their weights, and these.
    fn split(self, mut rows: RecordBatch) -> (RecordBatch, Option<ScalarBuffer<i64>>) {
        let weights = match self {
            Self::Insert => None,
            Self::Delete => Some(ScalarBuffer::from(vec![-1_i64; rows.num_rows()])),
            Self::Column => {
                let weights = rows.remove_column(rows.num_columns() - 1);
                Some(weights.as_primitive::<Int64Type>().values().clone())
            }
        };
        (rows, weights)
    }
}

impl TableChange {
    /// Inserts every row once.
    pub(crate) fn insertions(rows: RecordBatch) -> Self {
        Self::new(rows.into(), Weights::Insert)
    }

    /// Deletes every row once.
    pub(crate) fn deletions(rows: RecordBatch) -> Self {
        Self::new(rows.into(), Weights::Delete)
    }

    /// Changes every row by its weight; there are as many weights as rows.
    pub(crate) fn weighted(rows: &RecordBatch, weights: ScalarBuffer<i64>) -> Result<Self> {
        let weight = Arc::new(Field::new("weight", DataType::Int64, false));
        let fields = rows.schema_ref().fields().iter().cloned().chain([weight]);
        let weights: ArrayRef = Arc::new(Int64Array::new(weights, None));
        let columns = rows.columns().iter().cloned().chain([weights]);
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        let rows = RecordBatch::try_new(schema, columns.collect())?;
        Ok(Self::new(rows.into(), Weights::Column))
    }

    fn new(rows: Rows, weights: Weights) -> Self {
        Self { rows, weights, bounds: None, sequence: 0, has_new_keys: false }
    }

    /// The same insertions, which no other rows may be in the way of.
    pub(crate) fn of_new_keys(self) -> Self {
        Self { has_new_keys: true, ..self }
    }

    /// Whether no other rows may have the keys of these.
    pub(crate) fn has_new_keys(&self) -> bool {
        self.has_new_keys
    }

    /// The number of rows, with those that are out of its bounds.
    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether every row is inserted once.
    pub(crate) fn inserts(&self) -> bool {
        self.weights == Weights::Insert
    }

    /// Whether every row is deleted once.
    pub(crate) fn deletes(&self) -> bool {
        self.weights == Weights::Delete
    }

    /// The weights of its own [`rows`](Self::rows), if each has one.
    pub(crate) fn weights_in<'a>(&self, rows: &'a RecordBatch) -> Option<&'a Int64Array> {
        match self.weights {
            Weights::Insert | Weights::Delete => None,
            Weights::Column => rows.columns().last()?.as_primitive_opt(),
        }
    }

    /// The same change of the rows that are within bounds. They are filtered when they are loaded: rows in a file stay there.
    pub(crate) fn within(self, bounds: Option<Bounds>) -> Self {
        Self { bounds, ..self }
    }

    /// All rows, whatever its bounds are; a column of weights may follow those of the table.
    pub(crate) fn rows(&self) -> &Rows {
        &self.rows
    }

    /// The same change of rows that are kept elsewhere.
    pub(crate) fn with_rows(&self, rows: Rows) -> Self {
        Self { rows, bounds: self.bounds.clone(), ..*self }
    }

    /// As [`Rows::count`].
    pub(crate) fn count(&mut self, budget: &MemoryBudget) -> usize {
        self.rows.count(budget)
    }

    /// The number of the first row among the transaction's changes to the table.
    pub(crate) fn sequence(&self) -> u64 {
        self.sequence
    }

    /// The rows within its bounds, read from a file if they are in one, and their weights; without weights every row is inserted once.
    pub(crate) fn load(&self) -> Result<(RecordBatch, Option<ScalarBuffer<i64>>)> {
        self.split(self.rows.load()?)
    }

    /// As [`load`](Self::load), for a program: the rows are not counted.
    pub(crate) fn take(self) -> Result<(RecordBatch, Option<ScalarBuffer<i64>>)> {
        let rows = self.rows.clone().take()?;
        self.split(rows)
    }

    fn split(&self, rows: RecordBatch) -> Result<(RecordBatch, Option<ScalarBuffer<i64>>)> {
        let rows = match &self.bounds {
            Some(bounds) => bounds.in_time(rows)?,
            None => rows,
        };
        Ok(self.weights.split(rows))
    }

    /// Fails if its rows are not of this table's columns.
    pub(crate) fn check(&self, table: &Entry) -> Result<()> {
        let (rows, _) = self.load()?;
        let types = |schema: &Schema| -> Vec<DataType> {
            schema.fields().iter().map(|field| field.data_type().clone()).collect()
        };
        match types(rows.schema_ref()) == types(&table.schema) {
            true => Ok(()),
            false => {
                Err(Error::data(format!("its rows are not of the columns of \"{}\"", table.name)))
            }
        }
    }

    /// How its rows are weighted, as a number, and the rows, as an Arrow stream.
    pub(crate) fn encode(&self) -> Result<(u8, Vec<u8>)> {
        let weights = match self.weights {
            Weights::Insert => 0,
            Weights::Delete => 1,
            Weights::Column => 2,
        };
        Ok((weights, self.rows.encode()?))
    }

    /// The change that was [encoded](Self::encode) so.
    pub(crate) fn decode(weights: u8, rows: Vec<u8>) -> Result<Self> {
        let weights = match weights {
            0 => Weights::Insert,
            1 => Weights::Delete,
            2 => Weights::Column,
            other => return Err(Error::data(format!("there are no weights of kind {other}"))),
        };
        Ok(Self::new(Rows::decode(rows)?, weights))
    }

    /// The same change in parts of at most `length` rows. Rows in a file are a part already.
    pub(crate) fn parts(&self, length: usize) -> impl Iterator<Item = Self> {
        let mut sequence = self.sequence;
        self.rows.parts(length).map(move |rows| {
            let part = Self { sequence, ..self.with_rows(rows) };
            sequence += part.len() as u64;
            part
        })
    }

    /// Numbers the rows of changes, and merges small changes that follow each other: a transaction of a thousand INSERTs
    /// is not a thousand batches. `budget` counts the merged rows.
    pub(crate) fn coalesce(changes: Vec<Self>, budget: &MemoryBudget) -> Result<Vec<Self>> {
        let mut coalesced: Vec<Self> = Vec::with_capacity(changes.len());
        let mut sequence = 0;
        let mut bytes = 0;
        let mut joins = |one: &Self, next: &Self| {
            bytes += one.rows.bytes();
            let joins = one.is_followed_by(next) && bytes + next.rows.bytes() < SMALL_BYTES;
            bytes = if joins { bytes } else { 0 };
            joins
        };
        for run in changes.chunk_by(|one, next| joins(one, next)) {
            let rows = match run[0].rows.in_memory() {
                Some(batch) if run.len() > 1 => {
                    let batches = run.iter().filter_map(|change| change.rows.in_memory());
                    let mut rows = Rows::from(concat_batches(batch.schema_ref(), batches)?);
                    rows.count(budget);
                    rows
                }
                _ => run[0].rows.clone(),
            };
            let change = Self { sequence, ..run[0].with_rows(rows) };
            sequence += change.len() as u64;
            coalesced.push(change);
        }
        Ok(coalesced)
    }

    fn is_followed_by(&self, next: &Self) -> bool {
        let is_small = |rows: &Rows| rows.in_memory().is_some() && rows.len() < SMALL;
        self.weights == next.weights && is_small(&self.rows) && is_small(&next.rows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(rows: std::ops::Range<i64>) -> RecordBatch {
        let column: ArrayRef = Arc::new(Int64Array::from_iter_values(rows));
        RecordBatch::try_from_iter([("n", column)]).expect("one column")
    }

    #[test]
    fn small_changes_are_merged_in_order_and_numbered() {
        let large = 10..10 + SMALL as i64;
        let changes = vec![
            TableChange::insertions(rows(0..1)),
            TableChange::insertions(rows(1..3)),
            TableChange::deletions(rows(3..4)),
            TableChange::insertions(rows(4..10)),
            TableChange::insertions(rows(large.clone())),
        ];
        let budget = MemoryBudget::unlimited();
        let coalesced = TableChange::coalesce(changes, &budget).expect("the columns agree");
        // The others are counted where they were staged.
        assert_eq!(budget.used(), 8 * 3);
        let shapes: Vec<_> = coalesced
            .iter()
            .map(|change| (change.sequence, change.len(), change.weights))
            .collect();
        assert_eq!(
            shapes,
            [
                (0, 3, Weights::Insert),
                (3, 1, Weights::Delete),
                (4, 6, Weights::Insert),
                (10, SMALL, Weights::Insert)
            ]
        );
        let numbers = |change: &TableChange| {
            let (rows, _) = change.load().expect("they are in memory");
            rows.column(0).as_primitive::<Int64Type>().values().to_vec()
        };
        let numbers: Vec<i64> = coalesced.iter().flat_map(numbers).collect();
        assert_eq!(numbers, (0..large.end).collect::<Vec<_>>());
    }

    #[test]
    fn weights_stay_with_their_rows() {
        let weights = ScalarBuffer::from(vec![1_i64, -2, 3, -4, 5]);
        let mut change = TableChange::weighted(&rows(0..5), weights).expect("as many as rows");
        change.sequence = 7;
        let parts: Vec<_> = change.parts(2).collect();
        assert_eq!(parts.iter().map(TableChange::sequence).collect::<Vec<_>>(), [7, 9, 11]);
        let (middle, weights) = parts[1].load().expect("they are in memory");
        assert_eq!(middle, rows(2..4));
        assert_eq!(weights.as_deref(), Some(&[3, -4][..]));
    }
}
