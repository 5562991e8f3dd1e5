//! What works behind the handles of Python: an [`engine`] of this process, or a [`server`] over connections.
//!
//! Each part has a trait, which says what its handle relies on. Calls may block, without the GIL, inside of a [`call`](crate::call), whose
//! request to end they heed.

pub(crate) mod engine;
pub(crate) mod server;

use std::ops::Bound;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use alluvium::arrow::array::RecordBatch;
use alluvium::arrow::datatypes::SchemaRef;
use alluvium::{Change, Policy, Prepared, Value};

use crate::failure::Fallible;
use crate::info::{Progress, RelationInfo, State};

/// A database: what begins everything else.
pub(crate) trait Backend: Send + Sync {
    fn session(&self) -> Fallible<Box<dyn Session>>;

    /// Begins a transaction of batches.
    fn begin(&self, key: Option<&str>) -> Fallible<Box<dyn Transaction>>;

    /// The epoch of the transaction that was committed with a key.
    fn committed(&self, key: &str) -> Fallible<Option<u64>>;

    fn subscribe(&self, relation: &str, options: Subscribing) -> Fallible<Box<dyn Changes>>;

    fn view(&self, name: &str) -> Fallible<Arc<dyn View>>;

    /// The columns of a table.
    fn table(&self, name: &str) -> Fallible<TableColumns>;

    fn relations(&self) -> Fallible<Vec<RelationInfo>>;

    /// Waits until all changes up to an epoch are in all views.
    fn wait(&self, epoch: u64) -> Fallible<()>;

    fn wait_for_sources(&self) -> Fallible<()>;

    fn finish(&self) -> Fallible<()>;

    fn checkpoint(&self) -> Fallible<()>;

    fn progress(&self) -> Fallible<Progress>;

    fn state(&self) -> Fallible<State>;
}

/// How a subscription begins, and what becomes of one that falls behind.
pub(crate) struct Subscribing {
    pub(crate) after: Option<u64>,
    pub(crate) policy: Policy,
    pub(crate) epochs: Option<u64>,
}

/// The columns of a table.
pub(crate) struct TableColumns {
    pub(crate) name: String,
    pub(crate) schema: SchemaRef,
    /// The columns of its primary key; empty without one.
    pub(crate) primary_key: Vec<usize>,
}

/// One client.
pub(crate) trait Session: Send {
    /// Runs statements one after the other, and returns what the last of them answers. Its rows are left to be taken.
    fn run(&mut self, sql: &str, values: &[Value]) -> Fallible<Answer>;

    fn in_transaction(&self) -> bool;

    /// Prepares a statement that is run for many rows; `None` if it cannot be, and has to be run to know why.
    fn prepare(&mut self, sql: &str) -> Fallible<Option<Prepared>>;

    /// Runs a statement for the rows of the relation of values; returns how many rows it has changed, and `None` if it fails for one of them.
    fn insert(&mut self, insert: &str) -> Fallible<Option<u64>>;

    /// Runs a statement for each row of values, and returns how many rows it has changed; `None` if it returns rows. `place` counts the rows
    /// that it was run for.
    fn run_each(
        &mut self,
        sql: &str,
        prepared: Option<&Prepared>,
        rows: &[Vec<Value>],
        place: &mut usize,
    ) -> Fallible<Option<u64>>;
}

/// Rows that are computed as they are taken.
pub(crate) type Rows = Box<dyn Iterator<Item = Fallible<RecordBatch>> + Send>;

/// The answer to a statement.
pub(crate) enum Answer {
    Rows(SchemaRef, Rows),
    /// So many rows were inserted, updated or deleted, in this epoch.
    Changed(u64, Option<u64>),
    /// A cursor has passed so many rows.
    Moved(u64),
    /// A plan.
    Text(String),
    /// It is a SUBSCRIBE, whose changes are not for who runs statements.
    Subscribed,
    Done,
}

/// What is done with rows.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Write {
    Insert,
    Upsert,
    Delete,
}

/// Changes of tables that are committed together.
pub(crate) trait Transaction: Send {
    /// Writes rows with these columns of a table.
    fn write(
        &mut self,
        write: Write,
        table: &TableColumns,
        names: &[String],
        rows: RecordBatch,
    ) -> Fallible<()>;

    /// Whether a write that failed has ended it.
    fn is_aborted(&self) -> bool;

    /// Commits it, and returns the epoch.
    fn commit(self: Box<Self>) -> Fallible<u64>;
}

/// A table or a view, read by key.
pub(crate) trait View: Send + Sync {
    fn name(&self) -> &str;

    fn schema(&self) -> &SchemaRef;

    fn key(&self) -> &[usize];

    /// The rows whose keys begin with these values.
    fn get(&self, key: &[Value]) -> Fallible<RecordBatch>;

    /// The rows between two keys, in the order of the key.
    fn range(&self, low: Bound<&[Value]>, high: Bound<&[Value]>) -> Fallible<(SchemaRef, Rows)>;

    /// The same view, whose reads do not wait.
    fn stale(&self) -> Fallible<Arc<dyn View>>;
}

/// The changes of a relation.
pub(crate) trait Changes: Send {
    fn schema(&self) -> &SchemaRef;

    /// The next change; `None` after the last one.
    fn next(&mut self) -> Fallible<Option<Change>>;

    /// The next change, if it comes within this time.
    fn next_within(&mut self, timeout: Duration) -> Fallible<Option<Change>>;

    /// The next change; the context is woken once there may be one.
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Fallible<Option<Change>>>;

    /// Whether nothing will come any more.
    fn is_over(&self) -> bool;

    /// The last epoch whose changes have been taken, with all before it, if it knows that of itself.
    fn passed(&self) -> Option<u64>;
}
