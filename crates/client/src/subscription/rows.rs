//! Rows of SUBSCRIBE, which become changes.

use std::mem;
use std::pin::Pin;

use arrow::array::RecordBatch;
use arrow::compute::concat_batches;
use arrow::datatypes::SchemaRef;
use futures::StreamExt;
use tokio_postgres::{Row, RowStream};

use super::Change;
use crate::connection::Connection;
use crate::error::{Error, Result};
use crate::session::columns;
use crate::values::Rows;

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
    /// The epoch whose rows have begun to come.
    epoch: Option<u64>,
    rows: Rows,
    weights: Vec<i64>,
    /// Rows of the epoch that have become batches.
    batches: Vec<RecordBatch>,
    /// Whether the first change is a snapshot, and has not come.
    is_snapshot: bool,
    /// The last epoch of which no more comes.
    whole: Option<u64>,
}

impl ChangeRows {
    /// Runs a statement that subscribes.
    pub(super) async fn begin(
        connection: Connection,
        sql: &str,
        is_snapshot: bool,
    ) -> Result<Self> {
        let statement = connection.session().prepare(sql).await?;
        let mut columns = columns(&statement)?;
        if columns.len() < OURS {
            return Err(unexpected());
        }
        let rows = Rows::new(columns.split_off(OURS));
        let mut stream = Box::pin(connection.rows(&statement).await?);
        // The first row only tells where changes begin; before it the server may refuse them.
        if let Some(first) = stream.next().await {
            let first = first.map_err(|error| connection.explain(error))?;
            if !first.try_get::<_, bool>(PROGRESSED)? {
                return Err(unexpected());
            }
        }
        Ok(Self {
            connection,
            stream,
            epoch: None,
            rows,
            weights: Vec::new(),
            batches: Vec::new(),
            is_snapshot,
            whole: None,
        })
    }

    /// The columns of the relation.
    pub(super) fn schema(&self) -> SchemaRef {
        self.rows.columns()
    }

    /// The last epoch of which no more comes; `None` if that is not known.
    pub(super) fn whole(&self) -> Option<u64> {
        self.whole
    }

    /// The changes of the next epoch, once all have come; also none, if it is known that no others come up to an epoch.
    pub(super) async fn next(&mut self) -> Result<Option<Change>> {
        while let Some(row) = self.stream.next().await {
            let row = row.map_err(|error| self.connection.explain(error))?;
            let epoch = u64::try_from(row.try_get::<_, i64>(EPOCH)?).map_err(|_| unexpected())?;
            let begun = self.epoch.filter(|begun| *begun != epoch);
            if row.try_get::<_, bool>(PROGRESSED)? {
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
            self.add(&row)?;
            if change.is_some() {
                return Ok(change);
            }
        }
        // The relation is dropped, and its last changes are whole.
        self.epoch.map(|epoch| self.change(epoch, Some(epoch))).transpose()
    }

    fn add(&mut self, row: &Row) -> Result<()> {
        self.weights.push(row.try_get(WEIGHT)?);
        self.rows.add(row, OURS)?;
        if self.rows.is_full() {
            self.batches.push(self.rows.take()?);
        }
        Ok(())
    }

    /// The changes of an epoch, as no more come up to the epoch `whole`.
    fn change(&mut self, epoch: u64, whole: Option<u64>) -> Result<Change> {
        self.whole = whole.max(self.whole);
        self.batches.push(self.rows.take()?);
        let batches = mem::take(&mut self.batches);
        let rows = match &batches[..] {
            [one] => one.clone(),
            several => concat_batches(several[0].schema_ref(), several)?,
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
