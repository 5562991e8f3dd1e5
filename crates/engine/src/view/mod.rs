//! Reads by key, without SQL: a table or materialized view that has been looked up once.
//!
//! A read pins the relation's batches, seeks in them and decodes what it finds: no statement is planned, and the
//! only lock is that of the workers' progress, held while references are counted up. `lookups` keeps a version pinned for point
//! reads until there is another one. A relation that is read so is `keyed`, once for all views and kept plans that read it.

mod key;
mod keyed;
mod lookups;

use std::fmt;
use std::ops::Bound;
use std::sync::Arc;

use alluvium_dataflow::state::key_ranges::KeyRanges;
use alluvium_dataflow::state::snapshot;
use alluvium_trace::Epoch;
use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;

pub(crate) use self::keyed::{Keyed, KeyedRelations};
use crate::catalog::Entry;
use crate::engine::Engine;
use crate::error::Result;
use crate::log;
use crate::query::Rows;
use crate::value::Value;

/// A table or a materialized view, to be read by key from any thread.
///
/// Rows are found by their *key*: the primary key of a table, or the columns of which a view knows that no two rows agree on
/// them, such as those of its GROUP BY. Relations without such a key are read with [`Engine::query`].
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
    relation: Arc<Keyed>,
    /// All columns.
    columns: Vec<usize>,
}

impl View {
    /// The table or view that `entry` is.
    pub(crate) fn new(engine: Engine, entry: &Entry) -> Result<Self> {
        let relation = engine.instance.reader.keyed(entry)?;
        let columns = (0..relation.schema().fields().len()).collect();
        let inner = Arc::new(Inner { engine, relation, columns });
        Ok(Self { inner, is_stale: false })
    }

    /// Its name.
    pub fn name(&self) -> &str {
        self.inner.relation.name()
    }

    /// The columns of its rows.
    pub fn schema(&self) -> &SchemaRef {
        self.inner.relation.schema()
    }

    /// The columns that rows are found by, in order; none if it has no key.
    pub fn key(&self) -> &[usize] {
        self.inner.relation.key()
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
    pub fn get(&self, key: &[Value]) -> Result<RecordBatch> {
        let _call = log::short_call!("get");
        self.guard(|| {
            let Inner { engine, relation, columns } = &*self.inner;
            if key.len() < self.key().len() {
                return one(relation.schema(), self.rows(&relation.prefix(Value::scalars(key))?)?);
            }
            engine.instance.poison.check()?;
            let at_least = self.at_least()?;
            let row =
                relation.get(&engine.instance.reader, Value::scalars(key), columns, at_least)?;
            Ok(row.unwrap_or_else(|| RecordBatch::new_empty(relation.schema().clone())))
        })
    }

    /// The rows between two keys, by key, NULLs first; a batch at a time. A bound may have fewer values than there are key
    /// columns: then all keys that start with them are within if it is included, and none if it is excluded.
    ///
    /// All batches are of one epoch. The version they are read from takes memory, or room on the disk, until this is dropped.
    ///
    /// Fails as [`View::get`] does.
    pub fn range(&self, low: Bound<&[Value]>, high: Bound<&[Value]>) -> Result<Rows> {
        let _call = log::short_call!("range");
        self.guard(|| {
            let Inner { engine, relation, .. } = &*self.inner;
            let ranges = relation.between(low.map(Value::scalars), high.map(Value::scalars))?;
            let memory = engine.instance.reader.query.memory();
            let rows = self.rows(&ranges)?;
            Ok(Rows::read(relation.schema().clone(), rows, memory, &engine.instance.poison))
        })
    }

    fn rows(&self, ranges: &KeyRanges) -> Result<snapshot::Rows> {
        let Inner { engine, relation, columns } = &*self.inner;
        relation.rows(&engine.instance.reader, ranges, columns, self.at_least()?)
    }

    /// The epoch that a read has to see.
    fn at_least(&self) -> Result<Epoch> {
        let reader = &self.inner.engine.instance.reader;
        reader.check_views()?;
        Ok(if self.is_stale { reader.progress.complete() } else { reader.reported() })
    }

    fn guard<R>(&self, read: impl FnOnce() -> Result<R>) -> Result<R> {
        self.inner.engine.instance.poison.guard(read)
    }
}

/// All rows as one batch.
fn one(schema: &SchemaRef, rows: impl Iterator<Item = RecordBatch>) -> Result<RecordBatch> {
    Ok(keyed::all(rows)?.unwrap_or_else(|| RecordBatch::new_empty(schema.clone())))
}

impl fmt::Debug for View {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("View").field("name", &self.name()).finish_non_exhaustive()
    }
}
