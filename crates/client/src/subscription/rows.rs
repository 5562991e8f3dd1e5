//! Rows of SUBSCRIBE, which become changes.

use std::mem;
use std::pin::Pin;

use arrow::array::{AsArray, RecordBatch, RecordBatchOptions};
use arrow::compute::{cast, concat_batches};
use arrow::datatypes::{DataType, Int64Type, Schema, SchemaRef};
use futures::StreamExt;
use tokio_postgres::RowStream;

use super::Change;
use crate::connection::Connection;
use crate::error::{Error, Result};
use crate::values::read_stream;

/// The columns before those of the relation: the epoch, whether the row only tells that no change of an earlier epoch comes any more, and
/// the weight.
const EPOCH: usize = 0;
const PROGRESSED: usize = 1;
const WEIGHT: usize = 2;
const OURS: usize = 3;

/// The rows of SUBSCRIBE over one connection.
pub(super) struct ChangeRows {
    /// It ends when this is dropped, as SUBSCRIBE has no end.
    connection: Connection,
    stream: Pin<Box<RowStream>>,
    /// Rows that have come, and how many of them were taken.
    coming: Option<(Told, usize)>,
    /// The epoch whose rows have begun to come.
    epoch: Option<u64>,
    /// The columns of the relation.
    schema: SchemaRef,
    weights: Vec<i64>,
    /// Rows of the epoch.
    batches: Vec<RecordBatch>,
    /// Whether the first change is a snapshot, and has not come.
    is_snapshot: bool,
    /// The last epoch of which no more comes.
    whole: Option<u64>,
}

/// Rows as they come.
struct Told {
    epochs: Vec<u64>,
    /// Whether a row only tells that no change of an earlier epoch comes any more.
    progressed: Vec<bool>,
    weights: Vec<i64>,
    rows: RecordBatch,
}

impl Told {
    /// Splits the columns.
    fn of(rows: &RecordBatch) -> Result<Self> {
        let schema = own_columns(rows.schema_ref())?;
        let (theirs, ours) = rows.columns().split_at(OURS);
        let numbers = |column: usize| -> Result<Vec<i64>> {
            let numbers = cast(&theirs[column], &DataType::Int64)?;
            Ok(numbers.as_primitive::<Int64Type>().values().to_vec())
        };
        let epochs = numbers(EPOCH)?.into_iter().map(u64::try_from);
        let epochs = epochs.collect::<Result<_, _>>().map_err(|_| unexpected())?;
        let progressed = theirs[PROGRESSED].as_boolean_opt().ok_or_else(unexpected)?;
        let progressed = (0..progressed.len()).map(|row| progressed.value(row)).collect();
        let options = RecordBatchOptions::new().with_row_count(Some(rows.num_rows()));
        let weights = numbers(WEIGHT)?;
        let rows = RecordBatch::try_new_with_options(schema, ours.to_vec(), &options)?;
        Ok(Self { epochs, progressed, weights, rows })
    }

    /// How many rows from one on are changes of one epoch.
    fn count_from(&self, first: usize) -> usize {
        let is_same =
            |row: &usize| !self.progressed[*row] && self.epochs[*row] == self.epochs[first];
        (first..self.epochs.len()).take_while(is_same).count()
    }
}

/// The columns of the relation. They may be NULL, as are those of rows that only tell.
fn own_columns(schema: &SchemaRef) -> Result<SchemaRef> {
    let fields = schema.fields().get(OURS..).ok_or_else(unexpected)?;
    Ok(Schema::new_with_metadata(fields, schema.metadata().clone()).into())
}

impl ChangeRows {
    /// Runs a statement that subscribes.
    pub(super) async fn begin(
        connection: Connection,
        sql: &str,
        is_snapshot: bool,
    ) -> Result<Self> {
        let stream = Box::pin(connection.rows(sql).await?);
        let mut changes = Self {
            connection,
            stream,
            coming: None,
            epoch: None,
            schema: Schema::empty().into(),
            weights: Vec::new(),
            batches: Vec::new(),
            is_snapshot,
            whole: None,
        };
        let first = changes.receive().await?.ok_or_else(unexpected)?;
        changes.schema = own_columns(first.schema_ref())?;
        // The first row only tells where changes begin; before it the server may refuse them.
        while changes.coming.is_none() {
            let Some(rows) = changes.receive().await? else { return Ok(changes) };
            changes.keep(&rows)?;
        }
        match changes.coming.as_mut() {
            Some((told, taken)) if told.progressed.first() == Some(&true) => *taken = 1,
            _ => return Err(unexpected()),
        }
        Ok(changes)
    }

    /// The next rows; `None` after the last.
    async fn receive(&mut self) -> Result<Option<RecordBatch>> {
        let Some(row) = self.stream.next().await else { return Ok(None) };
        let row = row.map_err(|error| self.connection.explain(error))?;
        read_stream(row.try_get(0)?).map(Some)
    }

    fn keep(&mut self, rows: &RecordBatch) -> Result<()> {
        self.coming =
            (rows.num_rows() > 0).then(|| Told::of(rows)).transpose()?.map(|told| (told, 0));
        Ok(())
    }

    /// The columns of the relation.
    pub(super) fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    /// The last epoch of which no more comes; `None` if that is not known.
    pub(super) fn whole(&self) -> Option<u64> {
        self.whole
    }

    /// The changes of the next epoch, once all have come; also none, if it is known that no others come up to an epoch.
    pub(super) async fn next(&mut self) -> Result<Option<Change>> {
        loop {
            let Some((told, taken)) = self.coming.take() else {
                match self.receive().await? {
                    Some(rows) => self.keep(&rows)?,
                    // The relation is dropped, and its last changes are whole.
                    None => {
                        return self.epoch.map(|epoch| self.change(epoch, Some(epoch))).transpose();
                    }
                }
                continue;
            };
            let Some(&epoch) = told.epochs.get(taken) else { continue };
            let begun = self.epoch.filter(|begun| *begun != epoch);
            if told.progressed[taken] {
                self.coming = Some((told, taken + 1));
                let before = epoch.checked_sub(1);
                match (begun, before) {
                    (Some(begun), _) => return self.change(begun, before).map(Some),
                    (None, Some(before)) if self.epoch.is_none() => {
                        return self.change(before, Some(before)).map(Some);
                    }
                    _ => {}
                }
                continue;
            }
            // With a row of a later epoch the one before is whole.
            let change = match begun {
                Some(begun) if begun < epoch => Some(self.change(begun, epoch.checked_sub(1))?),
                Some(_) => return Err(unexpected()),
                None => None,
            };
            self.epoch = Some(epoch);
            let count = told.count_from(taken);
            self.weights.extend_from_slice(&told.weights[taken..taken + count]);
            self.batches.push(told.rows.slice(taken, count));
            self.coming = Some((told, taken + count));
            if change.is_some() {
                return Ok(change);
            }
        }
    }

    /// The changes of an epoch, as no more come up to the epoch `whole`.
    fn change(&mut self, epoch: u64, whole: Option<u64>) -> Result<Change> {
        self.whole = whole.max(self.whole);
        let batches = mem::take(&mut self.batches);
        let rows = match &batches[..] {
            [one] => one.clone(),
            several => concat_batches(&self.schema, several)?,
        };
        self.epoch = None;
        Ok(Change {
            epoch,
            rows,
            weights: mem::take(&mut self.weights).into(),
            is_snapshot: mem::take(&mut self.is_snapshot),
        })
    }
}

impl Drop for ChangeRows {
    fn drop(&mut self) {
        self.connection.end();
    }
}

fn unexpected() -> Error {
    Error::value("the server's answer to SUBSCRIBE is none that this client knows")
}
