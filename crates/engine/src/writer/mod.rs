//! The writer: the write lock, the time of transactions, and the next epoch.
//!
//! [`Writer`] hands out the [write lock](WriteGuard), reads the clock, evaluates DEFAULTs and turns a transaction's
//! changes into the next epoch of the [`Sequencer`]. [`Transaction`](crate::transaction::Transaction) is its client.

mod defaults;
mod lock;
mod row_locks;

use std::sync::Arc;
use std::time::SystemTime;

use alluvium_trace::Epoch;
use alluvium_trace::memory::StateContext;
pub(crate) use defaults::{Defaults, column_names, complete_with_nulls};
pub(crate) use lock::{WriteGuard, WriteLock};
pub(crate) use row_locks::{HeldLocks, Mode, Resource, RowLocks, ShownLock};

use crate::catalog::{Catalog, Entry};
use crate::changes::late::Bounds;
use crate::clock::{Clock, Moment, moment};
use crate::durable::portion::InputName;
use crate::error::{Error, Result};
use crate::poison::Poison;
use crate::query::QueryEngine;
use crate::sequencer::{Changed, Commit, Committed, Defined, LateRows, RecordedChanges, Sequencer};
use crate::source::SourcePosition;
use crate::worker::DataflowId;

/// The part of an engine that transactions write through.
pub(crate) struct Writer {
    pub(crate) catalog: Arc<Catalog>,
    /// The budget and files of rows that wait for their commit.
    pub(crate) context: StateContext,
    pub(crate) poison: Arc<Poison>,
    lock: Arc<WriteLock>,
    /// The locks on rows that transactions write.
    pub(crate) row_locks: Arc<RowLocks>,
    clock: Clock,
    sequencer: Arc<Sequencer>,
    query: Arc<QueryEngine>,
}

impl Writer {
    pub(crate) fn new(
        clock: Clock,
        sequencer: Arc<Sequencer>,
        catalog: Arc<Catalog>,
        query: Arc<QueryEngine>,
        context: StateContext,
        poison: Arc<Poison>,
    ) -> Self {
        let lock = WriteLock::new(poison.clone());
        let row_locks = RowLocks::new(poison.clone());
        Self { catalog, context, poison, lock, row_locks, clock, sequencer, query }
    }

    /// Waits for the write lock.
    pub(crate) fn lock(&self) -> Result<WriteGuard> {
        self.lock.acquire()
    }

    /// The time of the clock.
    pub(crate) fn now(&self) -> Result<Moment> {
        self.clock.now()
    }

    /// The time of a transaction that begins now: `at` if it is given, or else the clock's, but never before the time
    /// of the last epoch.
    pub(crate) fn next_time(&self, at: Option<SystemTime>) -> Result<Moment> {
        self.time_of_epoch(at.map(moment).transpose()?)
    }

    /// The time of the next epoch: `given` if it is, or else the clock's, but never before that of the last epoch. The caller
    /// holds the write lock.
    pub(crate) fn time_of_epoch(&self, given: Option<Moment>) -> Result<Moment> {
        let last = self.sequencer.time();
        match given {
            Some(time) if last.is_some_and(|last| time < last) => {
                Err(Error::data("the time is before that of the last epoch"))
            }
            Some(time) => Ok(time),
            None => Ok(self.not_before_last(self.now()?)),
        }
    }

    /// A time, or that of the last epoch if that is later. The caller holds the write lock.
    pub(crate) fn not_before_last(&self, time: Moment) -> Moment {
        time.max(self.sequencer.time().unwrap_or(Moment::MIN))
    }

    /// The table of this name, unless the engine is poisoned.
    pub(crate) fn table(&self, name: &str) -> Result<Arc<Entry>> {
        self.poison.check()?;
        let entry = self.catalog.get(name)?;
        entry.as_table()?;
        Ok(entry)
    }

    /// The last epoch that was committed.
    pub(crate) fn last(&self) -> Epoch {
        self.sequencer.last()
    }

    /// The bounds for rows of a table to be in time in the next epoch; `None` if all are.
    pub(crate) fn bounds(&self, table: DataflowId) -> Option<Bounds> {
        self.sequencer.waterlines(table)?.bounds()
    }

    /// Records the first of many changes, before the caller has the write lock.
    pub(crate) fn record_changes(
        &self,
        changes: &[Changed],
    ) -> Result<Option<RecordedChanges<'_>>> {
        self.sequencer.record_changes(changes)
    }

    /// Makes one epoch of the changes, as [`Sequencer::commit`] does. The caller holds the write lock.
    pub(crate) fn commit(
        &self,
        commit: Commit<'_>,
        ordered: impl FnOnce(Epoch, &[LateRows]) -> Result<()>,
    ) -> Result<Committed> {
        self.sequencer.commit(commit, ordered)
    }

    /// Has definitions take effect without an epoch, as [`Sequencer::define`] does. The caller holds the write lock.
    pub(crate) fn define(&self, defined: Defined<'_>) -> Result<Committed> {
        self.sequencer.define(defined)
    }

    /// The epoch of the transaction that was committed with a key, which is durable then.
    pub(crate) fn committed(&self, key: &str) -> Result<Option<Epoch>> {
        let committed = self.sequencer.committed(key);
        if let Some(epoch) = committed {
            self.sequencer.sync(epoch)?;
        }
        Ok(committed)
    }

    /// Fails if the owner of a key has as many as it may have, and this is another one.
    pub(crate) fn check_key_room(&self, key: &str) -> Result<()> {
        self.sequencer.check_key_room(key, self.now()?)
    }

    /// How far an input was read, if it can be read from there.
    pub(crate) fn position(&self, input: &InputName) -> Option<SourcePosition> {
        self.sequencer.position(input).map(|position| position.position())
    }

    /// Waits until a committed epoch is durable, if the engine has a journal. The caller no longer holds the write lock:
    /// those who commit meanwhile share the sync of the disk.
    pub(crate) fn sync(&self, committed: &Committed) -> Result<()> {
        self.sequencer.durable().sync_epoch(committed.epoch, committed.record)
    }

    /// Runs `act` while the clock stands at `now`.
    pub(crate) fn with_time<R>(&self, now: Moment, act: impl FnOnce() -> R) -> R {
        self.clock.stop(Some(now));
        let done = act();
        self.clock.stop(None);
        done
    }
}
