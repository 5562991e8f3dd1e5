//! The sequencer: the one order of epochs, and of the dataflows that come and go between them.
//!
//! A commit makes one epoch; epochs are numbered from 1 without gaps. Up to [`IN_FLIGHT`] epochs may be on
//! their way through the dataflows at a time, then committing waits. An epoch has a time, never before that of
//! the one before it.

mod comments;
mod defined;
mod facts;
mod failed;
mod install;
mod moved;
mod partition;
mod parts;
mod roles;
mod sequences;
mod state;
mod temporary;
mod writes;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use alluvium_storage::Position;
use alluvium_trace::Epoch;
use alluvium_trace::memory::MemoryBudget;
use crossbeam_channel::{Receiver, unbounded};
pub(crate) use defined::Defined;
pub use facts::owned_key;
use facts::{Applied, Raised, Sifted};
pub(crate) use facts::{
    Comments, LateRows, Persisted, Said, SavePoint, Saving, TableWaterlines, with_columns,
};
pub(crate) use install::Role;
use parking_lot::Mutex;
use parts::OpenParts;
pub(crate) use parts::RecordedChanges;
pub(crate) use sequences::HeldSequences;
use sequences::LiveSequences;
pub(crate) use state::Kept;
use state::State;
pub(crate) use temporary::OwnedDataflow;
use writes::Writes;
pub(crate) use writes::{EpochWrites, WritesAfter};

use crate::catalog::Entry;
use crate::changes::TableChange;
use crate::clock::Moment;
use crate::durable::Durable;
use crate::durable::checkpoint::Checkpoint;
use crate::durable::portion::{EnteredPortion, InputName, SavedPosition};
use crate::durable::record::{Record, Recorded};
use crate::durable::refused::RefusedRows;
use crate::durable::restore::Restored;
use crate::error::Result;
use crate::fault::{Fault, armed};
use crate::history::History;
use crate::interrupt;
use crate::poison::Poison;
use crate::roles::LiveRoles;
use crate::worker::{Advance, Command, DataflowId, Failures, Pool, Progress, Shard};

/// How many epochs may be in flight, as long as there is memory for them.
const IN_FLIGHT: u64 = 64;

/// Numbers epochs, and broadcasts commands to the workers in one order.
pub(crate) struct Sequencer {
    /// The last epoch that was committed; changes under the lock of the state.
    last: AtomicU64,
    /// The last epoch that somebody knows of, although it may not be durable.
    reported: AtomicU64,
    state: Mutex<State>,
    /// Those of the state.
    roles: LiveRoles,
    progress: Arc<Progress>,
    poison: Arc<Poison>,
    pool: Pool,
    budget: MemoryBudget,
    /// Where everything that it orders is recorded.
    durable: Durable,
    /// How far back the changes of relations are kept.
    history: Arc<History>,
    /// The transactions of which parts are recorded. Taken under the lock of the state or alone.
    parts: Mutex<OpenParts>,
    /// Where sequences are. Taken before the state.
    sequences: Mutex<LiveSequences>,
    /// How many transactions want to know what is written.
    observers: AtomicUsize,
}

/// Everything that is there after an epoch.
pub(crate) struct Pin {
    pub(crate) epoch: Epoch,
    pub(crate) workers: u32,
    /// The position in the journal of the first record that is not part of it.
    pub(crate) end: Position,
    /// Where to begin to replay: parts of transactions that are not part of it may come before `end`.
    pub(crate) replay: Position,
    /// The part of a checkpoint that saves all facts.
    pub(crate) facts: Vec<Box<dyn Saving>>,
    /// The dataflows, apart from those of subscriptions.
    pub(crate) kept: BTreeMap<DataflowId, Kept>,
    /// Gets the state of each worker.
    pub(crate) shards: Receiver<(usize, BTreeMap<DataflowId, Shard>)>,
}

/// An epoch that was committed, and its record in the journal, if there is one.
pub(crate) struct Committed {
    pub(crate) epoch: Epoch,
    pub(crate) record: Option<Position>,
}

/// The parts of an epoch.
pub(crate) struct Commit<'a> {
    pub(crate) changes: Vec<Changed>,
    /// The changes as they are recorded; `None` without a journal, or if a portion is recorded instead.
    pub(crate) recorded: Option<RecordedChanges<'a>>,
    pub(crate) time: Moment,
    /// The portion of an input that it is, if that has a position.
    pub(crate) entered: Option<EnteredPortion>,
    /// The key of the transaction, which is committed once.
    pub(crate) key: Option<String>,
    /// The table that is created with its rows.
    pub(crate) completes: Option<String>,
    /// The rows that sources refused to bring in, if they are recorded.
    pub(crate) refused: Vec<RefusedRows>,
    /// Its definitions.
    pub(crate) definitions: Option<Defined<'a>>,
}

/// The changes of one table.
pub(crate) struct Changed {
    pub(crate) table: DataflowId,
    /// Its name.
    pub(crate) name: String,
    /// Whether its rows are told apart by a key, or by values that are UNIQUE.
    pub(crate) has_key: bool,
    /// Whether it is a session's own, whose rows are not recorded.
    pub(crate) is_temporary: bool,
    pub(crate) changes: Vec<TableChange>,
}

/// A transaction that reads as of an epoch: later writes are remembered until this is dropped.
pub(crate) struct Observed {
    sequencer: Arc<Sequencer>,
    /// The epoch.
    pub(crate) from: Epoch,
}

impl Observed {
    /// Somebody learns of an epoch before it is durable, as with [`Sequencer::report`].
    pub(crate) fn report(&self, epoch: Epoch) {
        self.sequencer.report(epoch);
    }
}

impl Drop for Observed {
    fn drop(&mut self) {
        self.sequencer.observers.fetch_sub(1, Ordering::Relaxed);
        let mut state = self.sequencer.state.lock();
        state.writes.end(self.from);
        state.writes.forget(self.sequencer.progress.complete());
    }
}

/// A table that keeps nothing.
pub(crate) struct Stream {
    pub(crate) id: DataflowId,
    pub(crate) name: String,
}

impl Sequencer {
    pub(crate) fn new(
        pool: Pool,
        progress: Arc<Progress>,
        poison: Arc<Poison>,
        budget: MemoryBudget,
        history: Arc<History>,
    ) -> Self {
        let durable = Durable::new(progress.clone(), poison.clone());
        let (last, state) = (AtomicU64::new(progress.complete()), State::default());
        let (roles, state) = (state.roles.clone(), Mutex::new(state));
        let (parts, sequences, observers) = Default::default();
        let reported = AtomicU64::default();
        Self {
            last,
            reported,
            state,
            roles,
            progress,
            poison,
            pool,
            budget,
            durable,
            history,
            parts,
            sequences,
            observers,
        }
    }

    /// Why it may have stopped.
    pub(crate) fn poison(&self) -> &Poison {
        &self.poison
    }

    /// The dataflows that have failed.
    pub(crate) fn failures(&self) -> &Failures {
        self.progress.failures()
    }

    /// How many workers there are.
    pub(crate) fn workers(&self) -> usize {
        self.pool.len()
    }

    /// The last epoch that was committed. Does not block.
    pub(crate) fn last(&self) -> Epoch {
        self.last.load(Ordering::Acquire)
    }

    /// Somebody learns of an epoch before it is durable: who reads from now on has to see it, and waits until it is.
    pub(crate) fn report(&self, epoch: Epoch) {
        self.reported.fetch_max(epoch, Ordering::AcqRel);
    }

    /// The epoch that a read has to see: the last one that is durable or that somebody knows of. Does not block.
    ///
    /// Later ones are on their way to the disk, and those who have committed them do not know yet whether they are there. So a reader
    /// need not wait for the disk.
    pub(crate) fn reported(&self) -> Epoch {
        let last = self.last();
        self.reported.load(Ordering::Acquire).max(self.progress.durable()).min(last)
    }

    /// The memory budget, in which state is counted.
    pub(crate) fn budget(&self) -> &MemoryBudget {
        &self.budget
    }

    /// The durable record of commits.
    pub(crate) fn durable(&self) -> &Durable {
        &self.durable
    }

    /// Its time; `None` before the first.
    pub(crate) fn time(&self) -> Option<Moment> {
        self.state.lock().time.0
    }

    /// From now on the writes of later epochs than the last one are remembered.
    pub(crate) fn observe_last(self: &Arc<Self>) -> Observed {
        self.observe(|_| self.last())
    }

    /// From now on the writes of later epochs than one that a read has to see are remembered: the first such one after which all
    /// are known.
    pub(crate) fn observe_reported(self: &Arc<Self>) -> Observed {
        self.observe(|writes| self.reported().max(writes.since()))
    }

    fn observe(self: &Arc<Self>, from: impl FnOnce(&Writes) -> Epoch) -> Observed {
        self.observers.fetch_add(1, Ordering::Relaxed);
        let mut state = self.state.lock();
        let from = from(&state.writes);
        state.writes.observe(from);
        Observed { sequencer: self.clone(), from }
    }

    /// The writes to a table after an epoch that is observed.
    pub(crate) fn writes_after(&self, table: DataflowId, epoch: Epoch) -> WritesAfter {
        self.state.lock().writes.after(table, epoch)
    }

    /// Makes one epoch of changes, at a time not before the last epoch's. Waits while too many
    /// epochs are in flight, while the memory budget is exceeded and epochs in flight may release some, and while a
    /// subscription is congested. Does not wait until the epoch is complete, or its record durable.
    ///
    /// Rows that come too late are recorded with the others, and dropped. A portion of an input that can be read again is
    /// recorded by its position. `ordered` is told the epoch, and the late rows that are shown, before there is another one
    /// or a checkpoint.
    ///
    /// The caller holds the write lock, so that no other commit takes the place waited for.
    pub(crate) fn commit(
        &self,
        commit: Commit<'_>,
        ordered: impl FnOnce(Epoch, &[LateRows]) -> Result<()>,
    ) -> Result<Committed> {
        let Commit {
            mut changes,
            mut recorded,
            time,
            entered,
            key,
            completes,
            refused,
            definitions,
        } = commit;
        let bound = || match self.budget.is_exceeded() {
            true => 1,
            false => IN_FLIGHT,
        };
        self.poison.check()?;
        interrupt::check()?;
        if !self.progress.has_capacity(self.last(), bound()) {
            // Epochs that are not durable would never be complete.
            self.sync(self.last())?;
            self.progress.wait_capacity(self.last(), bound)?;
        }
        if armed(Fault::LoseTable) && changes.len() > 1 {
            changes.pop();
        }
        let (sifted, late) = self.sift(&mut changes)?;
        let mut tables: Vec<DataflowId> = changes.iter().map(|changed| changed.table).collect();
        let is_observed = self.observers.load(Ordering::Relaxed) > 0;
        let written = |changed: &Changed| {
            let changes = (is_observed && changed.has_key).then(|| changed.changes.clone());
            (changed.table, changes)
        };
        let written: Vec<_> = changes.iter().map(written).collect();
        let changes = changes.into_iter().map(|changed| (changed.table, changed.changes)).collect();
        let mut shares = partition::partition(changes, self.workers());
        let mut state = self.state.lock();
        let number = self.last() + 1;
        let record = match (recorded.as_mut().map(RecordedChanges::take), &entered) {
            (Some((transaction, parts, changes)), _) => {
                let key = key.clone();
                let end = entered.as_ref().map(|entered| {
                    let (input, end) = entered.end();
                    (input.clone(), end.clone())
                });
                let epoch =
                    Record::Epoch { number, time, transaction, parts, changes, key, refused, end };
                match (&completes, &definitions) {
                    (None, None) => self.durable.append(&epoch)?,
                    (Some(table), _) => self.durable.append(&epoch.completing(table)?)?,
                    (None, Some(defined)) => self.durable.append(&defined.record(Some(&epoch))?)?,
                }
            }
            (None, Some(EnteredPortion::ReadAgain(portion))) => {
                self.durable.count(portion.bytes);
                self.durable.append(&Record::Read { number, time, portion: portion.clone() })?
            }
            (None, _) => None,
        };
        drop(recorded);
        let effects = state.apply(&Applied {
            epoch: number,
            time,
            tables: &tables,
            sifted: &sifted,
            end: entered.as_ref().map(EnteredPortion::end),
            key: key.as_deref(),
            completes: completes.as_deref(),
        })?;
        match state.writes.is_observed() {
            true => {
                state.writes.forget(self.progress.complete());
                written
                    .into_iter()
                    .for_each(|(table, changes)| state.writes.add(table, number, changes));
                effects
                    .changes
                    .iter()
                    .for_each(|(table, _)| state.writes.add(*table, number, None));
            }
            false => state.writes.skip(number),
        }
        for (table, change) in effects.changes {
            tables.push(table);
            shares[0].push((table, vec![change]));
        }
        tables.extend(effects.risen);
        self.raise(number + 1, effects.raised);
        let epoch = match definitions {
            None => self.make_epoch(&mut state, &tables, shares, time),
            Some(defined) => defined.take_place((self, &mut state), number, |state| {
                self.make_epoch(state, &tables, shares, time)
            }),
        };
        ordered(epoch, &late)?;
        Ok(Committed { epoch, record })
    }

    /// Drops the changes that come too late. Nothing else is committed meanwhile.
    fn sift(&self, changes: &mut [Changed]) -> Result<(Vec<Sifted>, Vec<LateRows>)> {
        let waterlines: Vec<_> = {
            let state = self.state.lock();
            changes.iter().map(|changed| state.waterlines.of(changed.table).cloned()).collect()
        };
        let (mut all, mut shown) = (Vec::new(), Vec::new());
        for (changed, waterlines) in changes.iter_mut().zip(waterlines) {
            let Some(waterlines) = waterlines else { continue };
            let (sifted, late) =
                waterlines.sift(changed.table, &mut changed.changes, &self.budget)?;
            all.push(sifted);
            shown.extend(late);
        }
        Ok((all, shown))
    }

    /// Tells the workers of waterlines that hold from an epoch on.
    fn raise(&self, epoch: Epoch, raised: Raised) {
        if raised.is_empty() {
            return;
        }
        let raised: Arc<[_]> = raised.into();
        self.pool.broadcast(|_| Command::Raise { epoch, raised: raised.clone() });
    }

    /// The waterlines of a table as they are for the next epoch; `None` if it has none.
    pub(crate) fn waterlines(&self, table: DataflowId) -> Option<TableWaterlines> {
        self.state.lock().waterlines.of(table).cloned()
    }

    /// A table is there, before anything is committed to it.
    pub(crate) fn declare(&self, entry: &Entry) {
        let Ok(table) = entry.as_table() else { return };
        if !table.lateness.is_empty() {
            let mut state = self.state.lock();
            let raised = state.waterlines.declare(table.id, entry, table);
            self.raise(self.last() + 1, raised);
        }
    }

    /// Makes the records of epochs durable, up to this one at least.
    pub(crate) fn sync(&self, epoch: Epoch) -> Result<()> {
        if self.progress.is_durable(epoch) {
            return Ok(());
        }
        let (last, end) = {
            let _order = self.state.lock();
            (self.last(), self.durable.end())
        };
        self.durable.sync_epoch(last, end.0.checked_sub(1).map(Position))
    }

    /// Waits until an epoch is complete.
    pub(crate) fn wait(&self, epoch: Epoch) -> Result<()> {
        self.sync(epoch.min(self.last()))?;
        self.progress.wait(epoch)
    }

    /// Has all workers pin what they keep after the last epoch, and saves all facts, those that are kept `elsewhere` as well, before
    /// there is another one.
    pub(crate) fn pin(&self, elsewhere: &[&dyn Persisted]) -> Result<Pin> {
        self.poison.check()?;
        let state = self.state.lock();
        let epoch = self.last();
        let mut facts = state.save(epoch);
        let at = SavePoint { epoch, dataflows: &state.kept };
        facts.extend(elsewhere.iter().map(|fact| fact.save(&at)));
        let parts = self.parts.lock();
        let end = self.durable.end();
        let (reply, shards) = unbounded();
        self.pool.broadcast(|_| Command::Pin(reply.clone()));
        let first = self.history.first(epoch);
        let mut kept = state.kept.clone();
        kept.values_mut().for_each(|kept| kept.since = kept.since.max(first));
        let first = parts.first().into_iter().chain(self.durable.first_open()).min();
        let (workers, replay) = (self.workers() as u32, first.unwrap_or(end).min(end));
        Ok(Pin { epoch, workers, end, replay, facts, kept, shards })
    }

    /// The epoch of the transaction that was committed with a key, if it is remembered.
    pub(crate) fn committed(&self, key: &str) -> Option<Epoch> {
        self.state.lock().committed.get(key)
    }

    /// Fails if the owner of a key has as many as it may have, and this is another one.
    pub(crate) fn check_key_room(&self, key: &str, now: Moment) -> Result<()> {
        self.state.lock().committed.check_room(key, now)
    }

    /// How far an input was read, if it can be read from there.
    pub(crate) fn position(&self, input: &InputName) -> Option<SavedPosition> {
        self.state.lock().positions.get(input).cloned()
    }

    /// Whether rows have entered a table.
    pub(crate) fn has_passed(&self, table: DataflowId) -> bool {
        self.state.lock().changed.has(table)
    }

    /// When a relation was created, if its definition is recorded.
    pub(crate) fn defined_at(&self, name: &str) -> Option<Moment> {
        self.state.lock().definitions.time(name)
    }

    /// The statements that declared and created a relation, if they are recorded.
    pub(crate) fn definition(&self, name: &str) -> Option<String> {
        self.state.lock().definitions.text(name)
    }

    /// Restores all facts from a checkpoint.
    pub(crate) fn restore_facts(&self, checkpoint: &mut Checkpoint) -> Result<()> {
        let mut state = self.state.lock();
        state.since = checkpoint.epoch;
        state.restore(checkpoint)
    }

    /// Resumes from a checkpoint, whose dataflows start with their state there.
    pub(crate) fn restore(&self, restored: Restored) {
        self.state.lock().restored = Some(restored);
    }

    /// All dataflows of the checkpoint are there again. Fails if a table is without its rows.
    pub(crate) fn finish_restoring(&self) -> Result<()> {
        let state = &mut *self.state.lock();
        let Some(restored) = state.restored.take() else { return Ok(()) };
        restored.check_taken()?;
        state.changed.finish_restoring(&state.kept);
        Ok(())
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
        let changes = || shares.iter().flatten().flat_map(|(_, changes)| changes);
        self.history.commit(epoch, || changes().map(|change| change.rows().size()).sum());
        let rows = changes().map(TableChange::len).sum();
        // Before workers have it: a reader that sees it in a relation, and all later ones, must find that it is committed.
        self.last.store(epoch, Ordering::Release);
        self.pool.broadcast(|worker| Command::Commit {
            epoch,
            advance: advance.clone(),
            rows,
            changes: std::mem::take(&mut shares[worker]),
        });
        state.time.0 = Some(time);
        epoch
    }

    /// Records the definition of a relation that has no dataflow.
    pub(crate) fn record(&self, recorded: &Recorded) -> Result<()> {
        let mut state = self.state.lock();
        self.durable.append(&recorded.definition)?;
        state.define(recorded);
        Ok(())
    }

    /// Notes that a table which is created with its rows has them.
    pub(crate) fn complete_table(&self, table: &str) {
        self.state.lock().definitions.complete_table(table);
    }

    /// Records that the source of a table pauses, or goes on.
    pub(crate) fn pause_source(&self, record: &Record, table: &str, pauses: bool) -> Result<()> {
        let mut state = self.state.lock();
        self.durable.append(record)?;
        state.paused.set(table, pauses);
        Ok(())
    }

    /// The table that paused is another one now, which is recorded.
    pub(crate) fn forget_pause(&self, table: &str) {
        self.state.lock().paused.set(table, false);
    }

    /// Records an output of a relation, with which it goes.
    pub(crate) fn record_output(&self, relation: &str, output: Record) -> Result<()> {
        let mut state = self.state.lock();
        self.durable.append(&output)?;
        state.definitions.add_output(relation, output);
        Ok(())
    }

    /// Records that relations are dropped, all by this statement.
    pub(crate) fn record_drop<'a>(
        &self,
        statement: &Record,
        names: impl IntoIterator<Item = &'a str>,
    ) -> Result<()> {
        let mut state = self.state.lock();
        self.durable.append(statement)?;
        names.into_iter().for_each(|name| state.forget(name));
        Ok(())
    }

    /// Forgets all definitions of these, with all that belongs to them.
    pub(crate) fn forget<'a>(&self, names: impl IntoIterator<Item = &'a str>) {
        let mut state = self.state.lock();
        names.into_iter().for_each(|name| state.forget(name));
    }

    /// Runs a function on every worker's thread.
    #[cfg(test)]
    pub(crate) fn run_on_workers(&self, act: fn()) {
        let _order = self.state.lock();
        self.pool.broadcast(|_| Command::Run(act));
    }
}
