//! Reads by key, without SQL: a table or materialized view that has been looked up once.
//!
//! A read pins the relation's batches, seeks in them and decodes what it finds: no statement is planned, and the
//! only lock is that of the workers' progress, held while references are counted up. `lookups` keeps a version pinned for point
//! reads until there is another one.

mod key;
mod lookups;

use std::fmt;
use std::ops::Bound;
use std::sync::Arc;

use alluvium_dataflow::key_ranges::{KeyEncoder, KeyRanges};
use alluvium_dataflow::snapshot::{self, Snapshot};
use alluvium_sql::catalog::KEEPING;
use alluvium_trace::Epoch;
use arrow::array::RecordBatch;
use arrow::compute::concat_batches;
use arrow::datatypes::SchemaRef;
use datafusion::scalar::ScalarValue;

use self::key::Key;
use self::lookups::Lookups;
use crate::catalog::{Definition, Entry, RelationKind, Table};
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::query::Rows;
use crate::worker::{DataflowId, Reader};

/// A table or a materialized view, to be read by key from any thread.
///
/// Rows are found by their *key*: the primary key of a table, or the columns of which a view knows that no two rows agree on
/// them, such as those of its GROUP BY. What has no such key is read with [`Engine::query`].
///
/// Reads are strictly serializable: they see everything that any handle committed before they began, and wait until that
/// is complete. They are not part of a transaction, so they do not see what is not committed. When the relation is
/// dropped, reads fail, also if another one of its name is created.
///
/// Clones are the same view. Each is a handle of its engine.
#[derive(Clone)]
pub struct View {
    inner: Arc<Inner>,
    is_stale: bool,
}

struct Inner {
    engine: Engine,
    name: String,
    id: DataflowId,
    schema: SchemaRef,
    columns: Vec<usize>,
    key: Key,
    lookups: Arc<Lookups>,
}

/// A version of the relation.
struct Pinned {
    epoch: Epoch,
    /// One per worker.
    snapshots: Vec<Snapshot>,
}

impl View {
    /// The table or view that `entry` is.
    pub(crate) fn new(engine: Engine, entry: &Entry) -> Result<Self> {
        let name = entry.name.clone();
        entry.check_runs()?;
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
        let pinned = engine.instance.reader.progress.pin_one(id, 0)?;
        let snapshots = pinned.map(|(_, snapshots)| snapshots).unwrap_or_default();
        let layout = snapshots.first().map(Snapshot::layout).ok_or_else(|| dropped(&name))?;
        let encoder = KeyEncoder::new(layout)
            .map_err(|error| Error::sql(format!("\"{name}\" cannot be read by key: {error}")))?;
        let schema = entry.schema.clone();
        let key = Key::new(encoder, layout.sorted_by().to_vec(), schema.clone());
        let columns = (0..schema.fields().len()).collect();
        let lookups = Arc::new(Lookups::new());
        let told: Arc<dyn Reader> = lookups.clone();
        engine.instance.reader.progress.tell(id, Arc::downgrade(&told));
        let inner = Arc::new(Inner { engine, name, id, schema, columns, key, lookups });
        Ok(Self { inner, is_stale: false })
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// The columns of its rows.
    pub fn schema(&self) -> &SchemaRef {
        &self.inner.schema
    }

    /// The columns that rows are found by, in order; none if it has no key.
    pub fn key(&self) -> &[usize] {
        self.inner.key.columns()
    }

    /// The same view, whose reads do not wait: they answer as of the last complete epoch, and so may miss the newest
    /// commits.
    pub fn stale(&self) -> Self {
        Self { inner: self.inner.clone(), is_stale: true }
    }

    /// The rows whose key columns have these values: the first value is that of the first key column, and so on. With a
    /// value for each key column that is one row or none; with fewer, all rows that agree with those given, by key.
    /// A NULL finds NULL.
    ///
    /// A value of another type than its column's is converted, for example an `i64` for an INTEGER column. Fails if that
    /// would change it, if there are more values than key columns, or if the view has no key.
    pub fn get(&self, key: &[ScalarValue]) -> Result<RecordBatch> {
        self.guard(|| {
            let ranges = self.inner.key.prefix(key)?;
            let Inner { engine, schema, columns, lookups, .. } = &*self.inner;
            if key.len() < self.key().len() {
                return one(schema, self.rows(&ranges)?);
            }
            engine.instance.poison.check()?;
            let at_least = self.at_least()?;
            let pin = || {
                let Pinned { epoch, snapshots } = self.pin(at_least)?;
                Ok(snapshot::Lookups::new(snapshots, epoch, columns))
            };
            let read = lookups.read(at_least, pin, |lookups| match lookups.read(&ranges) {
                Some(rows) => one(schema, rows),
                None => Err(dropped(&self.inner.name)),
            })?;
            // Another thread reads what this one would.
            read.unwrap_or_else(|| one(schema, self.rows(&ranges)?))
        })
    }

    /// The rows between two keys, by key, NULLs first; a batch at a time. A bound may have fewer values than there are key
    /// columns: then all keys that start with them are within if it is included, and none if it is excluded.
    ///
    /// All batches are of one epoch. The version they are read from takes memory, or room on the disk, until this is dropped.
    ///
    /// Fails as [`View::get`] does.
    pub fn range(&self, low: Bound<&[ScalarValue]>, high: Bound<&[ScalarValue]>) -> Result<Rows> {
        self.guard(|| {
            let ranges = self.inner.key.between(low, high)?;
            let Inner { engine, schema, .. } = &*self.inner;
            let memory = engine.instance.reader.query.memory();
            let rows = self.rows(&ranges)?;
            Ok(Rows::read(schema.clone(), rows, memory, &engine.instance.poison))
        })
    }

    fn rows(&self, ranges: &KeyRanges) -> Result<snapshot::Rows> {
        let Pinned { epoch, snapshots } = self.pin(self.at_least()?)?;
        let rows = Snapshot::read_ranges(&snapshots, epoch, &self.inner.columns, ranges);
        rows.ok_or_else(|| dropped(&self.inner.name))
    }

    /// The epoch that a read has to see.
    fn at_least(&self) -> Result<Epoch> {
        let reader = &self.inner.engine.instance.reader;
        reader.check_views()?;
        Ok(if self.is_stale { reader.progress.complete() } else { reader.last() })
    }

    fn pin(&self, at_least: Epoch) -> Result<Pinned> {
        let reader = &self.inner.engine.instance.reader;
        let pinned = reader.progress.pin_one(self.inner.id, at_least)?;
        let (epoch, snapshots) = pinned.ok_or_else(|| dropped(&self.inner.name))?;
        Ok(Pinned { epoch, snapshots })
    }

    fn guard<R>(&self, read: impl FnOnce() -> Result<R>) -> Result<R> {
        self.inner.engine.instance.poison.guard(read)
    }
}

/// All rows as one batch.
fn one(schema: &SchemaRef, mut rows: impl Iterator<Item = RecordBatch>) -> Result<RecordBatch> {
    let Some(first) = rows.next() else { return Ok(RecordBatch::new_empty(schema.clone())) };
    let Some(second) = rows.next() else { return Ok(first) };
    let all: Vec<RecordBatch> = [first, second].into_iter().chain(rows).collect();
    Ok(concat_batches(schema, &all)?)
}

fn dropped(name: &str) -> Error {
    Error::sql(format!("\"{name}\" has been dropped"))
}

impl fmt::Debug for View {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("View").field("name", &self.inner.name).finish_non_exhaustive()
    }
}
