//! A relation that keeps rows, to be read by key.

use std::collections::HashMap;
use std::fmt;
use std::ops::Bound;
use std::sync::{Arc, Weak};

use alluvium_dataflow::state::key_ranges::{KeyEncoder, KeyRanges};
use alluvium_dataflow::state::snapshot::{self, Rows, Snapshot};
use alluvium_sql::statement::KEEPING;
use alluvium_trace::Epoch;
use arrow::array::RecordBatch;
use arrow::compute::concat_batches;
use arrow::datatypes::SchemaRef;
use datafusion::scalar::ScalarValue;
use parking_lot::Mutex;

use super::key::Key;
use super::lookups::Lookups;
use crate::catalog::{Definition, Entry, RelationKind, Table};
use crate::error::{Error, Result, SqlState};
use crate::query::Reader;
use crate::worker::{self, DataflowId};

/// A table or a materialized view, whose rows are found by key.
pub(crate) struct Keyed {
    name: String,
    id: DataflowId,
    schema: SchemaRef,
    key: Key,
    lookups: Arc<Lookups>,
}

/// A version of a relation.
struct Pinned {
    epoch: Epoch,
    /// One per worker.
    snapshots: Vec<Snapshot>,
}

impl Keyed {
    fn new(reader: &Reader, entry: &Entry) -> Result<Self> {
        let name = entry.name.clone();
        if let Definition::Table(Table { kept: false, .. }) = &entry.definition {
            return Err(Error::sql(format!("\"{name}\" keeps no rows to read: {KEEPING}")));
        }
        let id = match (entry.kind(), entry.dataflow()) {
            (RelationKind::Table | RelationKind::MaterializedView, Some(id)) => id,
            (kind, _) => {
                return Err(Error::sql(format!(
                    "\"{name}\" is a {}, which keeps no rows to read; CREATE MATERIALIZED VIEW makes one that does",
                    kind.noun()
                )));
            }
        };
        let pinned = reader.progress.pin_one(id, 0)?;
        let snapshots = pinned.map(|(_, snapshots)| snapshots).unwrap_or_default();
        let layout = snapshots.first().map(Snapshot::layout).ok_or_else(|| dropped(&name))?;
        let encoder = KeyEncoder::new(layout)
            .map_err(|error| Error::sql(format!("\"{name}\" cannot be read by key: {error}")))?;
        let schema = entry.schema.clone();
        let key = Key::new(encoder, layout.sorted_by().to_vec(), schema.clone());
        let lookups = Arc::new(Lookups::new());
        let told: Arc<dyn worker::Reader> = lookups.clone();
        reader.progress.tell(id, Arc::downgrade(&told));
        Ok(Self { name, id, schema, key, lookups })
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// The columns of the key.
    pub(crate) fn key(&self) -> &[usize] {
        self.key.columns()
    }

    /// The keys that start with these values.
    pub(super) fn prefix(&self, values: &[ScalarValue]) -> Result<KeyRanges> {
        self.key.prefix(values)
    }

    /// The keys between two bounds.
    pub(super) fn between(
        &self,
        low: Bound<&[ScalarValue]>,
        high: Bound<&[ScalarValue]>,
    ) -> Result<KeyRanges> {
        self.key.between(low, high)
    }

    /// Some columns of the rows with a key, as of `at_least` this epoch; `None` if there are none. Reads a version that stays
    /// pinned.
    pub(crate) fn get(
        &self,
        reader: &Reader,
        key: &[ScalarValue],
        columns: &[usize],
        at_least: Epoch,
    ) -> Result<Option<RecordBatch>> {
        let ranges = self.key.prefix(key)?;
        let pin = || {
            let Pinned { epoch, snapshots } = self.pin(reader, at_least)?;
            Ok(snapshot::Lookups::new(snapshots, epoch))
        };
        let read =
            self.lookups.read(at_least, pin, |lookups| match lookups.read(&ranges, columns) {
                Some(rows) => all(rows),
                None => Err(dropped(&self.name)),
            })?;
        // Another thread reads what this one would.
        read.unwrap_or_else(|| all(self.rows(reader, &ranges, columns, at_least)?))
    }

    /// Some columns of the rows with keys in these ranges, as of `at_least` this epoch.
    pub(super) fn rows(
        &self,
        reader: &Reader,
        ranges: &KeyRanges,
        columns: &[usize],
        at_least: Epoch,
    ) -> Result<Rows> {
        let Pinned { epoch, snapshots } = self.pin(reader, at_least)?;
        let rows = Snapshot::read_ranges(&snapshots, epoch, columns, ranges);
        rows.ok_or_else(|| dropped(&self.name))
    }

    fn pin(&self, reader: &Reader, at_least: Epoch) -> Result<Pinned> {
        let pinned = reader.progress.pin_one(self.id, at_least)?;
        let (epoch, snapshots) = pinned.ok_or_else(|| dropped(&self.name))?;
        Ok(Pinned { epoch, snapshots })
    }

    /// Whether it is this relation, with these columns.
    fn is(&self, entry: &Entry) -> bool {
        self.name == entry.name && self.schema == entry.schema
    }
}

impl fmt::Debug for Keyed {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Keyed").field("name", &self.name).finish_non_exhaustive()
    }
}

/// All rows as one batch; `None` if there are none.
pub(super) fn all(mut rows: impl Iterator<Item = RecordBatch>) -> Result<Option<RecordBatch>> {
    let Some(first) = rows.next() else { return Ok(None) };
    let Some(second) = rows.next() else { return Ok(Some(first)) };
    let schema = first.schema();
    let all: Vec<RecordBatch> = [first, second].into_iter().chain(rows).collect();
    Ok(Some(concat_batches(&schema, &all)?))
}

fn dropped(name: &str) -> Error {
    Error::sql(format!("\"{name}\" has been dropped")).with_sqlstate(SqlState::NO_RELATION)
}

/// The relations that are read by key: their readers share them, and with them the versions that stay pinned.
#[derive(Default)]
pub(crate) struct KeyedRelations {
    known: Mutex<HashMap<DataflowId, Weak<Keyed>>>,
}

impl Reader {
    /// A relation, to be read by key. Fails if it keeps no rows, or does not run.
    pub(crate) fn keyed(&self, entry: &Entry) -> Result<Arc<Keyed>> {
        entry.check_runs()?;
        let id = entry.dataflow();
        let known = id.and_then(|id| self.keyed.known.lock().get(&id).and_then(Weak::upgrade));
        if let Some(known) = known.filter(|known| known.is(entry)) {
            return Ok(known);
        }
        let keyed = Arc::new(Keyed::new(self, entry)?);
        let mut known = self.keyed.known.lock();
        known.retain(|_, keyed| keyed.strong_count() > 0);
        known.insert(keyed.id, Arc::downgrade(&keyed));
        Ok(keyed)
    }
}
