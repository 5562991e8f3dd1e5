//! The sequencer: the one order of epochs, and of the dataflows that come and go between them.
//!
//! A commit makes one epoch; epochs are numbered from 1 without gaps. Up to [`IN_FLIGHT`] epochs may be on
//! their way through the dataflows at a time, then committing waits. An epoch has a time, never before that of
//! the one before it.

mod partition;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use alluvium_sql::catalog::KEEPING;
use alluvium_sql::physical::Table;
use alluvium_sql::planner::{CLOCK, CLOCK_SCHEMA};
use alluvium_storage::Position;
use alluvium_trace::Epoch;
use alluvium_trace::memory::MemoryBudget;
use arrow::array::{RecordBatch, TimestampMicrosecondArray};
use parking_lot::Mutex;

use crate::clock::Moment;
use crate::durable::Durable;
use crate::durable::record::{self, ChangedTable, Record, Recorded};
use crate::error::{Error, Result};
use crate::poison::Poison;
use crate::transaction::change::TableChange;
use crate::worker::{Advance, Command, Dataflow, DataflowId, Pool, Progress};

/// How many epochs may be in flight, as long as there is memory for them.
const IN_FLIGHT: u64 = 64;

/// Numbers epochs, and broadcasts commands to the workers in one order.
pub(crate) struct Sequencer {
    /// The last epoch that was committed; changes under the lock of the state.
    last: AtomicU64,
    state: Mutex<State>,
    progress: Arc<Progress>,
    poison: Arc<Poison>,
    pool: Pool,
    budget: MemoryBudget,
    /// Where everything that it orders is recorded.
    durable: Durable,
}

/// An epoch that was committed, and its record in the journal, if there is one.
pub(crate) struct Committed {
    pub(crate) epoch: Epoch,
    pub(crate) record: Option<Position>,
}

/// The changes of one table.
pub(crate) struct Changed {
    pub(crate) table: DataflowId,
    /// Its name.
    pub(crate) name: String,
    pub(crate) changes: Vec<TableChange>,
}

/// Guarded by the lock under which everything is broadcast.
struct State {
    /// The time of the last epoch; `None` before the first.
    time: Option<Moment>,
    next_dataflow: u64,
    /// The tables that have been changed since they were made.
    changed: BTreeSet<DataflowId>,
    clock: Option<RunningClock>,
}

/// A table that keeps nothing.
pub(crate) struct Stream {
    pub(crate) id: DataflowId,
    pub(crate) name: String,
}

/// The dataflow whose one row is the time of the epoch.
struct RunningClock {
    id: DataflowId,
    /// The value of the row.
    time: Moment,
}

impl Sequencer {
    pub(crate) fn new(
        pool: Pool,
        progress: Arc<Progress>,
        poison: Arc<Poison>,
        budget: MemoryBudget,
    ) -> Self {
        let state = State { time: None, next_dataflow: 0, changed: BTreeSet::new(), clock: None };
        let durable = Durable::new(progress.clone(), poison.clone());
        let (last, state) = (AtomicU64::new(0), Mutex::new(state));
        Self { last, state, progress, poison, pool, budget, durable }
    }

    /// How many workers there are.
    pub(crate) fn workers(&self) -> usize {
        self.pool.len()
    }

    /// The last epoch that was committed. Does not block.
    pub(crate) fn last(&self) -> Epoch {
        self.last.load(Ordering::Acquire)
    }

    /// What is recorded.
    pub(crate) fn durable(&self) -> &Durable {
        &self.durable
    }

    /// Its time; `None` before the first.
    pub(crate) fn time(&self) -> Option<Moment> {
        self.state.lock().time
    }

    /// Makes one epoch of the changes to each table, at a time not before the last epoch's. Waits while too many
    /// epochs are in flight, while the memory budget is exceeded and epochs in flight may release some, and while a
    /// subscription is congested. Does not wait until the epoch is complete, or its record durable.
    ///
    /// The caller holds the write lock, so that no other commit takes the place waited for.
    pub(crate) fn commit(&self, changes: Vec<Changed>, time: Moment) -> Result<Committed> {
        self.progress.wait_capacity(self.last(), || match self.budget.is_exceeded() {
            true => 1,
            false => IN_FLIGHT,
        })?;
        let record = self.record_changes(&changes)?;
        let mut tables: Vec<DataflowId> = changes.iter().map(|changed| changed.table).collect();
        let changes = changes.into_iter().map(|changed| (changed.table, changed.changes)).collect();
        let mut shares = partition::partition(changes, self.workers());
        let mut state = self.state.lock();
        let record = match record {
            Some((parts, changes)) => {
                let number = self.last() + 1;
                self.durable.append(&Record::Epoch { number, time, parts, changes })?
            }
            None => None,
        };
        state.changed.extend(&tables);
        if let Some(clock) = &mut state.clock {
            tables.push(clock.id);
            shares[0].push((clock.id, vec![clock.advance(time)?]));
        }
        let epoch = self.make_epoch(&mut state, &tables, shares, time);
        Ok(Committed { epoch, record })
    }

    /// Records the first changes of an epoch, if there are many. Returns in how many parts, and the others; `None` without
    /// a journal.
    fn record_changes(&self, changes: &[Changed]) -> Result<Option<(u32, Vec<ChangedTable>)>> {
        if !self.durable.is_attached() {
            return Ok(None);
        }
        let changes = changes.iter().map(|changed| (&*changed.name, &*changed.changes));
        record::split(changes, |part| self.durable.append(&part).map(drop)).map(Some)
    }

    fn make_epoch(
        &self,
        state: &mut State,
        tables: &[DataflowId],
        mut shares: Vec<Vec<(DataflowId, Vec<TableChange>)>>,
        time: Moment,
    ) -> Epoch {
        let epoch = self.last() + 1;
        let advance = match self.budget.is_over() {
            true => Advance::All,
            false => Advance::Changed(tables.into()),
        };
        self.progress.expect(epoch, time);
        self.pool.broadcast(|worker| Command::Commit {
            epoch,
            advance: advance.clone(),
            changes: std::mem::take(&mut shares[worker]),
        });
        state.time = Some(time);
        self.last.store(epoch, Ordering::Release);
        epoch
    }

    /// Makes the time of the epoch a relation, [`CLOCK`], unless it is one already. It begins in an epoch of
    /// its own, at the time of the last one or, if there is none, at `now`.
    pub(crate) fn start_clock(&self, now: Moment) -> Result<()> {
        let id = {
            let mut state = self.state.lock();
            if state.clock.is_some() {
                return Ok(());
            }
            let table = Arc::new(Table::compile(&CLOCK_SCHEMA, &[])?);
            let id = self.install_now(&mut state, |_, _, _| Dataflow::Table {
                name: CLOCK.to_owned(),
                table: table.clone(),
            })?;
            let time = state.time.unwrap_or(now);
            let mut shares: Vec<Vec<_>> = (0..self.workers()).map(|_| Vec::new()).collect();
            shares[0].push((id, vec![RunningClock::row(&[(time, 1)])?]));
            let before = state.time;
            let record = self.durable.append(&Record::Clock { now })?;
            let epoch = self.make_epoch(&mut state, &[id], shares, time);
            // A transaction with a time of its own is not bound by the clock's.
            state.time = before;
            state.clock = Some(RunningClock { id, time });
            drop(state);
            self.durable.sync_epoch(epoch, record)?;
            id
        };
        self.progress.wait_ready(id)
    }

    /// Builds a dataflow as of the last committed epoch, and waits until it has caught up with it.
    /// `dataflow` makes each worker's part. `definition` is recorded in its place among the epochs.
    ///
    /// Fails if rows have passed through one of the `streams` that it reads: they are not kept anywhere.
    /// Commits wait until the epochs in flight are complete, but not until the dataflow has caught up.
    pub(crate) fn install(
        &self,
        streams: &[Stream],
        definition: Option<&Recorded>,
        dataflow: impl FnMut(usize, DataflowId, Epoch) -> Dataflow,
    ) -> Result<DataflowId> {
        let id = {
            let mut state = self.state.lock();
            if let Some(Stream { name, .. }) =
                streams.iter().find(|stream| state.changed.contains(&stream.id))
            {
                return Err(Error::sql(format!(
                    "rows have passed through \"{name}\" already and are not kept, so nothing new can \
                     read it: {KEEPING}"
                )));
            }
            let id = self.install_now(&mut state, dataflow)?;
            definition.map(|recorded| self.durable.append(&recorded.definition)).transpose()?;
            id
        };
        // It is of no use to a caller that no longer waits for it.
        self.progress.wait_ready(id).inspect_err(|_| {
            self.remove(id);
            // If this fails the engine has stopped.
            let _ = definition.map(|recorded| self.record(&recorded.undo));
        })?;
        Ok(id)
    }

    fn install_now(
        &self,
        state: &mut State,
        mut dataflow: impl FnMut(usize, DataflowId, Epoch) -> Dataflow,
    ) -> Result<DataflowId> {
        let as_of = self.last();
        self.progress.wait(as_of)?;
        let id = DataflowId(state.next_dataflow);
        state.next_dataflow += 1;
        self.pool.broadcast(|worker| Command::Install {
            id,
            as_of,
            dataflow: dataflow(worker, id, as_of),
        });
        Ok(id)
    }

    /// Records a definition that has no dataflow.
    pub(crate) fn record(&self, definition: &Record) -> Result<()> {
        let _order = self.state.lock();
        self.durable.append(definition).map(drop)
    }

    /// Runs a function on every worker's thread.
    #[cfg(test)]
    pub(crate) fn run_on_workers(&self, act: fn()) {
        let _order = self.state.lock();
        self.pool.broadcast(|_| Command::Run(act));
    }

    /// Removes a dataflow. Snapshots that readers have pinned stay readable.
    pub(crate) fn remove(&self, id: DataflowId) {
        if self.poison.is_spread() {
            return;
        }
        let mut state = self.state.lock();
        state.changed.remove(&id);
        self.pool.broadcast(|_| Command::Remove(id));
    }
}

impl RunningClock {
    /// Moves on to `time`.
    fn advance(&mut self, time: Moment) -> Result<TableChange> {
        let before = std::mem::replace(&mut self.time, time);
        Self::row(&[(before, -1), (time, 1)])
    }

    /// Changes of the row by weights.
    fn row(changes: &[(Moment, i64)]) -> Result<TableChange> {
        let times = changes.iter().map(|(time, _)| *time);
        let times = TimestampMicrosecondArray::from_iter_values(times).with_timezone("+00:00");
        let rows = RecordBatch::try_new(CLOCK_SCHEMA.clone(), vec![Arc::new(times)])?;
        let weights = changes.iter().map(|(_, weight)| *weight).collect();
        TableChange::weighted(&rows, weights)
    }
}
