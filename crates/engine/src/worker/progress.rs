//! The progress of the workers and their snapshots: all that other threads see of them.

use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};
use std::hint;
use std::num::NonZero;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::task::Waker;
use std::thread;
use std::time::{Duration, Instant};

use alluvium_dataflow::movement::import::ScannedRows;
use alluvium_dataflow::state::snapshot::Snapshot;
use alluvium_trace::{Epoch, Metrics};
use parking_lot::{Mutex, MutexGuard};

use super::command::DataflowId;
use super::delays::{DelayHistograms, Delays};
use super::failures::Failures;
use super::published::{Published, Reached};
use super::wanted::{Durable, Readable, Wanted};
use crate::clock::Moment;
use crate::error::{Error, Result};
use crate::fault::{Fault, armed};
use crate::poison::{Poison, Waited};
use crate::wait::{self, Look, WaitList};

/// How long a thread looks for what it waits for before it sleeps, if each has a processor: to wake a thread takes longer than
/// a small epoch.
const SPIN: Duration = Duration::from_micros(50);

/// Dataflows as of one epoch that is complete in all of them.
pub(crate) struct Pinned {
    /// The epoch.
    pub(crate) epoch: Epoch,
    /// Its time.
    pub(crate) time: Moment,
    /// For each dataflow, in the order of the request, what each worker published; nothing of one that was not needed and could
    /// not be read.
    pub(crate) dataflows: Vec<Vec<Published>>,
}

/// An epoch that a transaction reads as of: nothing is compacted beyond it for a while, or until this is dropped.
pub(crate) struct Held {
    progress: Arc<Progress>,
    pub(crate) epoch: Epoch,
    number: u64,
}

impl Drop for Held {
    fn drop(&mut self) {
        self.progress.state.lock().held.remove(&(self.epoch, self.number));
    }
}

/// How a dataflow is.
pub(crate) enum Condition {
    /// It can be read; with what each worker has published of it.
    Runs(Vec<Published>),
    /// It has not caught up; with how far the import of rows has come on the workers.
    Fills(Vec<Arc<ScannedRows>>),
    /// It has failed, or what it reads.
    Failed(Arc<str>),
    /// It is there no more.
    Gone,
}

/// Who keeps a pinned version of a dataflow until there is another one.
pub(crate) trait Reader: Send + Sync {
    /// There is another version, or none any more.
    fn give_up(&self);
}

/// The workers' progress.
///
/// *An epoch is complete* when it is on every worker, in every dataflow that has caught up, and durable if the engine has a
/// journal. *It is complete in a relation* when it is on every worker in the dataflow of that, and durable: a reader waits for
/// the relations that it reads, not for all.
///
/// In one critical section a worker publishes how far it has come and the snapshots of all dataflows that have changed before
/// that; it compacts only up to the epoch that was complete when it last published. A reader takes snapshots as of an epoch
/// that is not before the complete one, and in which their dataflows are complete, in one critical section too. So each
/// snapshot has reached that epoch and none is compacted past it.
///
/// Workers publish when an epoch is complete on them. While a thread [waits](Self::is_awaited) for a relation, they publish
/// whenever a dataflow has come further.
pub(crate) struct Progress {
    state: Mutex<State>,
    /// The last complete epoch of the state, for those who look for it without the lock.
    complete: AtomicU64,
    /// The last durable epoch, likewise.
    durable: AtomicU64,
    /// How long they do.
    spin: Duration,
    waits: Waits,
    /// The metrics of each worker.
    metrics: Vec<Arc<Metrics>>,
    /// Readers that read dataflows again and again.
    readers: Mutex<Vec<(DataflowId, Weak<dyn Reader>)>>,
    failures: Failures,
    poison: Arc<Poison>,
}

/// The waiters, by their conditions.
#[derive(Default)]
struct Waits {
    /// That an epoch is complete.
    complete: WaitList<Epoch>,
    /// That an epoch is durable, whether or not it is complete.
    durable: WaitList<Epoch>,
    /// That an epoch is complete in a dataflow, and durable if that is asked for.
    relations: WaitList<(DataflowId, Epoch, Durable)>,
    /// That a dataflow has caught up.
    filled: WaitList<DataflowId>,
    /// That there is room for another epoch.
    capacity: WaitList<()>,
}

impl Waits {
    fn wake_all(&self) {
        self.complete.wake_all();
        self.durable.wake_all();
        self.relations.wake_all();
        self.filled.wake_all();
        self.capacity.wake_all();
    }

    /// Takes out those whose wait is over.
    fn take(&self, state: &State, before: Epoch) -> Vec<Waker> {
        let mut woken = self.relations.take(|(id, epoch, durable)| {
            // One that is gone is noticed by looking again.
            state.reached(*id, *durable).is_none_or(|reached| reached >= *epoch)
        });
        if armed(Fault::LoseWaker) {
            woken.clear();
        }
        woken.extend(self.filled.take(|id| !state.filling.contains_key(id)));
        woken.extend(self.durable.take(|epoch| *epoch <= state.durable));
        if state.complete > before {
            woken.extend(self.complete.take(|epoch| *epoch <= state.complete));
            woken.extend(self.capacity.take(|()| true));
        }
        woken
    }
}

struct State {
    workers: Vec<Shown>,
    complete: Epoch,
    /// All epochs up to this one are durable; the last of all if they need not be.
    durable: Epoch,
    /// The times of epochs: of the last complete one and, in order, of those in flight.
    times: VecDeque<(Epoch, Moment)>,
    /// The dataflows that have not caught up on every worker, with how far each worker is that has built it.
    filling: BTreeMap<DataflowId, Vec<Arc<ScannedRows>>>,
    /// How many subscriptions have more epochs waiting than they may.
    congested: usize,
    /// The epochs that transactions read as of, by numbers that tell them apart, and until when nothing is compacted beyond each.
    held: BTreeMap<(Epoch, u64), Instant>,
    /// Numbers them.
    next_held: u64,
    /// How long epochs take.
    delays: Delays,
}

impl State {
    /// Completes all epochs that are durable and that every worker has reached. Returns the last complete one.
    fn advance(&mut self) -> Epoch {
        let reached = self.workers.iter().map(|shown| shown.reached.frontier).min().unwrap_or(1);
        self.complete = self.complete.max(self.durable.min(reached - 1));
        self.delays.advance(self.durable, self.complete);
        while self.times.get(1).is_some_and(|(epoch, _)| *epoch <= self.complete) {
            self.times.pop_front();
        }
        self.complete
    }

    /// The epoch up to which workers may compact: the last complete one, or an earlier one that a transaction reads as of.
    fn compactible(&mut self) -> Epoch {
        while let Some(first) = self.held.first_entry() {
            if Instant::now() < *first.get() {
                return self.complete.min(first.key().0);
            }
            first.remove();
        }
        self.complete
    }

    /// The last epoch that is complete in a dataflow and, if that is asked for, durable; `None` if it cannot be read, or no longer.
    fn reached(&self, id: DataflowId, durable: Durable) -> Option<Epoch> {
        let on_worker = |shown: &Shown| {
            let behind = &shown.reached.behind;
            let frontier = behind.iter().find(|(behind, _)| *behind == id);
            let frontier = frontier.filter(|_| !armed(Fault::ReadEarly));
            let frontier = frontier.map_or(shown.reached.sent, |(_, frontier)| *frontier);
            shown.dataflows.contains_key(&id).then(|| frontier - 1)
        };
        let least = self.workers.iter().map(on_worker).min()??;
        Some(match durable {
            Durable::Yes => least.min(self.durable),
            Durable::No => least,
        })
    }

    /// The first epoch that all of these dataflows can be read as of.
    fn since(&self, ids: &[DataflowId]) -> Epoch {
        let of = |shown: &'_ Shown| {
            let published = ids.iter().filter_map(|id| shown.dataflows.get(id));
            published.map(|published| published.since).max()
        };
        self.workers.iter().filter_map(of).max().unwrap_or(0)
    }

    /// The epoch that dataflows can be read as of, if that is at least this one.
    fn readable(&self, ids: &[DataflowId], wanted: Wanted) -> Readable {
        let Wanted { at_least, durable, is_held } = wanted;
        // State may be compacted up to the complete epoch, if that is not held, and a new dataflow has nothing as of earlier ones.
        let at_least = match is_held {
            true => at_least,
            false => self.since(ids).max(self.complete).max(at_least),
        };
        let mut epoch = Epoch::MAX;
        for id in ids {
            match self.reached(*id, durable) {
                Some(reached) if reached >= at_least => epoch = epoch.min(reached),
                Some(_) => return Readable::Later(*id, at_least),
                None if self.filling.contains_key(id) => return Readable::Filling(*id),
                None => return Readable::Never,
            }
        }
        Readable::At(if ids.is_empty() { at_least } else { epoch })
    }

    /// For each dataflow of `ids` and then of `others` what each worker published, nothing of those of `others` that are not among
    /// `read`. `None` if one is gone.
    fn pinned(
        &self,
        ids: &[DataflowId],
        others: &[DataflowId],
        read: &[DataflowId],
    ) -> Option<Vec<Vec<Published>>> {
        let one = |id: &DataflowId| -> Option<Vec<Published>> {
            self.workers.iter().map(|shown| shown.dataflows.get(id).cloned()).collect()
        };
        let other = |id: &DataflowId| match read.contains(id) {
            true => one(id),
            false => Some(Vec::new()),
        };
        ids.iter().map(one).chain(others.iter().map(other)).collect()
    }

    /// The time of an epoch that is not before the complete one.
    fn time(&self, epoch: Epoch) -> Moment {
        let end = self.times.partition_point(|(known, _)| *known <= epoch);
        self.times.get(end.saturating_sub(1)).map_or(0, |(_, time)| *time)
    }

    fn is_filled(&self, id: DataflowId) -> bool {
        self.workers.iter().all(|shown| shown.dataflows.contains_key(&id))
    }
}

/// The progress that one worker publishes.
struct Shown {
    reached: Reached,
    dataflows: BTreeMap<DataflowId, Published>,
}

impl Progress {
    /// The progress of `workers` workers, once the epoch `start` is complete, which has this time.
    pub(crate) fn new(
        workers: usize,
        start: Epoch,
        time: Moment,
        poison: Arc<Poison>,
    ) -> Arc<Self> {
        let reached = || Reached { frontier: start + 1, sent: start + 1, behind: Vec::new() };
        let shown = || Shown { reached: reached(), dataflows: BTreeMap::new() };
        let processors = thread::available_parallelism().map_or(1, NonZero::get);
        let spin = if workers < processors { SPIN } else { Duration::ZERO };
        let metrics = (0..workers).map(|_| Arc::default()).collect();
        let workers = (0..workers).map(|_| shown()).collect();
        let times = VecDeque::from([(start, time)]);
        let durable = Epoch::MAX;
        let filling = BTreeMap::new();
        let state = State {
            workers,
            complete: start,
            durable,
            times,
            filling,
            congested: 0,
            held: BTreeMap::new(),
            next_held: 0,
            delays: Delays::default(),
        };
        let (state, waits) = (Mutex::new(state), Waits::default());
        let readers = Mutex::default();
        let (complete, durable) = (AtomicU64::new(start), AtomicU64::new(durable));
        let failures = Failures::default();
        let progress = Arc::new(Self {
            state,
            complete,
            durable,
            spin,
            waits,
            metrics,
            readers,
            failures,
            poison,
        });
        progress.poison.register(&progress);
        progress
    }

    /// The dataflows that have failed.
    pub(crate) fn failures(&self) -> &Failures {
        &self.failures
    }

    /// The metrics of each worker.
    pub(crate) fn metrics(&self) -> &[Arc<Metrics>] {
        &self.metrics
    }

    /// Shows how far `worker` has come, what of its dataflows has changed, and which of them are gone. Returns the last
    /// complete epoch, and the one up to which the worker may compact.
    pub(crate) fn publish(
        &self,
        worker: usize,
        reached: Reached,
        changed: Vec<(DataflowId, Published)>,
        removed: &[DataflowId],
    ) -> (Epoch, Epoch) {
        let mut state = self.state.lock();
        let given_up = self.given_up(changed.iter().map(|(id, _)| id).chain(removed));
        let shown = &mut state.workers[worker];
        let mut before = Vec::with_capacity(changed.len() + removed.len());
        before.extend(removed.iter().map(|id| shown.dataflows.remove(id)));
        before.extend(changed.into_iter().map(|(id, now)| shown.dataflows.insert(id, now)));
        shown.reached = reached;
        if !state.filling.is_empty() {
            let mut filling = std::mem::take(&mut state.filling);
            filling.retain(|id, _| !state.is_filled(*id));
            state.filling = filling;
        }
        let advanced = self.advance(state);
        given_up.iter().for_each(|reader| reader.give_up());
        // The last reference to a batch frees it, which takes a while.
        drop(before);
        advanced
    }

    /// Those who keep a version of one of these dataflows.
    fn given_up<'a>(
        &self,
        ids: impl Iterator<Item = &'a DataflowId> + Clone,
    ) -> Vec<Arc<dyn Reader>> {
        let readers = self.readers.lock();
        let is_changed = |(id, _): &&(DataflowId, Weak<dyn Reader>)| ids.clone().any(|of| of == id);
        readers.iter().filter(is_changed).filter_map(|(_, reader)| reader.upgrade()).collect()
    }

    /// Tells this one whenever there is another version of a dataflow, until it is dropped.
    pub(crate) fn tell(&self, id: DataflowId, reader: Weak<dyn Reader>) {
        let mut readers = self.readers.lock();
        readers.retain(|(_, reader)| reader.strong_count() > 0);
        readers.push((id, reader));
    }

    /// Completes epochs, and wakes those whose wait is over. Returns the last complete one, and up to which one may be compacted.
    fn advance(&self, mut state: MutexGuard<'_, State>) -> (Epoch, Epoch) {
        let before = state.complete;
        let complete = state.advance();
        let compactible = state.compactible();
        self.complete.store(complete, Ordering::Release);
        let woken = self.waits.take(&state, before);
        drop(state);
        woken.into_iter().for_each(Waker::wake);
        (complete, compactible)
    }

    /// Whether a thread waits for a relation, so that it matters how far each is. Does not block.
    pub(super) fn is_awaited(&self) -> bool {
        !self.waits.relations.is_empty() || !self.waits.filled.is_empty()
    }

    /// From now on an epoch is complete only once it is durable; all up to `last` are.
    pub(crate) fn require_durable(&self, last: Epoch) {
        let mut state = self.state.lock();
        state.durable = last;
        self.durable.store(last, Ordering::Release);
    }

    /// All epochs up to this one are durable.
    pub(crate) fn set_durable(&self, epoch: Epoch) {
        let mut state = self.state.lock();
        state.durable = state.durable.max(epoch);
        self.durable.store(state.durable, Ordering::Release);
        self.advance(state);
    }

    /// Wakes this one once an epoch is durable. The caller looks whether it is so already after this.
    pub(crate) fn watch(&self, epoch: Epoch, waker: Waker) {
        self.waits.durable.keep(epoch, waker);
    }

    /// All epochs up to this one are durable, whatever their number if they need not be. Does not block.
    pub(crate) fn durable(&self) -> Epoch {
        self.durable.load(Ordering::Acquire)
    }

    /// Whether all epochs up to this one are durable.
    pub(crate) fn is_durable(&self, epoch: Epoch) -> bool {
        self.durable() >= epoch
    }

    /// The last complete epoch.
    pub(crate) fn complete(&self) -> Epoch {
        self.complete.load(Ordering::Acquire)
    }

    /// For how long a worker, too, looks for work before it sleeps.
    pub(super) fn spin(&self) -> Duration {
        self.spin
    }

    /// Looks for a moment whether `epoch` is complete, which takes a processor from others; not if what is waited for `is_there` already.
    fn look_for(&self, epoch: Epoch, is_there: impl FnOnce() -> bool) {
        if self.complete() < epoch && !self.spin.is_zero() && !is_there() {
            let start = Instant::now();
            while self.complete() < epoch && start.elapsed() < self.spin {
                hint::spin_loop();
            }
        }
    }

    /// Waits until `epoch` is complete.
    pub(crate) fn wait(&self, epoch: Epoch) -> Result<()> {
        self.look_for(epoch, || false);
        self.until(|state, waker| match state.complete >= epoch {
            true => Look::Found(()),
            false => Look::Waits(self.waits.complete.enter(epoch, waker)),
        })
    }

    /// A dataflow is about to be built: until it has caught up on every worker it can be [waited for](Self::wait_filled).
    pub(crate) fn expect_filled(&self, id: DataflowId) {
        self.state.lock().filling.insert(id, Vec::new());
    }

    /// A worker has built a dataflow that is filled, and shows how far it is.
    pub(super) fn show_filling(&self, id: DataflowId, scanned: &Arc<ScannedRows>) {
        if let Some(workers) = self.state.lock().filling.get_mut(&id) {
            workers.push(Arc::clone(scanned));
        }
    }

    /// How these dataflows are at the moment. Does not block.
    pub(crate) fn conditions(&self, ids: &[DataflowId]) -> Result<Vec<Condition>> {
        self.poison.check()?;
        let state = self.state.lock();
        let condition = |id: &DataflowId| match (self.failures.get(*id), state.filling.get(id)) {
            (Some(failed), _) => Condition::Failed(failed.reason),
            (None, Some(workers)) => Condition::Fills(workers.clone()),
            (None, None) if state.is_filled(*id) => {
                let workers = state.workers.iter();
                Condition::Runs(workers.filter_map(|of| of.dataflows.get(id).cloned()).collect())
            }
            (None, None) => Condition::Gone,
        };
        Ok(ids.iter().map(condition).collect())
    }

    /// Whether a dataflow has not caught up on every worker.
    pub(crate) fn is_filling(&self, id: DataflowId) -> bool {
        self.state.lock().filling.contains_key(&id)
    }

    /// Whether a dataflow has caught up on every worker, and is there.
    pub(crate) fn is_filled(&self, id: DataflowId) -> bool {
        self.state.lock().is_filled(id)
    }

    /// A dataflow is about to be removed: no thread waits for it any longer.
    pub(crate) fn give_up_filling(&self, id: DataflowId) {
        let mut state = self.state.lock();
        if state.filling.remove(&id).is_some() {
            self.advance(state);
        }
    }

    /// Waits until a dataflow has caught up on every worker. Fails if it does, or is removed, before.
    pub(crate) fn wait_filled(&self, id: DataflowId) -> Result<()> {
        let is_filled = self.until(|state, waker| match self.failures.get(id) {
            Some(failed) => Look::Found(Err(failed.error())),
            None if state.filling.contains_key(&id) => {
                Look::Waits(self.waits.filled.enter(id, waker))
            }
            None => Look::Found(Ok(state.is_filled(id))),
        })?;
        match is_filled? {
            true => Ok(()),
            false => Err(Error::sql("the relation was dropped while it was filled")),
        }
    }

    /// Whether there is nothing to wait for.
    pub(crate) fn has_capacity(&self, last: Epoch, bound: u64) -> bool {
        let state = self.state.lock();
        last < state.complete + bound && state.congested == 0
    }

    /// Waits until fewer than `bound` of the epochs up to `last` are in flight, and no subscription is
    /// congested. The bound is asked for whenever an epoch is complete.
    pub(crate) fn wait_capacity(&self, last: Epoch, bound: impl Fn() -> u64) -> Result<()> {
        self.until(|state, waker| match last < state.complete + bound() && state.congested == 0 {
            true => Look::Found(()),
            false => Look::Waits(self.waits.capacity.enter((), waker)),
        })
    }

    /// Pins dataflows, and those of `others` that can be read, as of the last epoch that is complete in all of them, once that is
    /// at least this one; `None` if one of the first cannot be read, or no longer. Fails if one of those has.
    pub(crate) fn pin(
        &self,
        ids: &[DataflowId],
        others: &[DataflowId],
        at_least: Epoch,
    ) -> Result<Option<Pinned>> {
        let wanted = Wanted::new(at_least, Durable::Yes);
        self.readable(ids, others, wanted, |state, epoch, read| {
            let dataflows = state.pinned(ids, others, read)?;
            Some(Pinned { epoch, time: state.time(epoch), dataflows })
        })
    }

    /// As [`Progress::pin`], and keeps all dataflows from being compacted beyond the epoch for `time`, so that others can be
    /// [pinned as of it](Self::pin_held) later.
    pub(crate) fn pin_and_hold(
        self: &Arc<Self>,
        ids: &[DataflowId],
        others: &[DataflowId],
        (at_least, durable): (Epoch, Durable),
        time: Duration,
    ) -> Result<Option<(Held, Vec<Vec<Published>>)>> {
        let until = Instant::now() + time;
        let wanted = Wanted::new(at_least, durable);
        self.readable(ids, others, wanted, |state, epoch, read| {
            let dataflows = state.pinned(ids, others, read)?;
            let number = state.next_held;
            state.next_held += 1;
            state.held.insert((epoch, number), until);
            Some((Held { progress: self.clone(), epoch, number }, dataflows))
        })
    }

    /// Pins dataflows, and those of `others` that can be read, as of an epoch that is held. `None` if one of the first cannot be
    /// read, or the epoch was held for too long.
    pub(crate) fn pin_held(
        &self,
        held: &Held,
        ids: &[DataflowId],
        others: &[DataflowId],
        durable: Durable,
    ) -> Result<Option<Vec<Vec<Published>>>> {
        let key = (held.epoch, held.number);
        let wanted = Wanted { is_held: true, ..Wanted::new(held.epoch, durable) };
        self.readable(ids, others, wanted, |state, _, read| {
            state.held.get(&key).filter(|until| Instant::now() < **until)?;
            state.pinned(ids, others, read)
        })
    }

    /// The published state of dataflows from each worker, whatever epoch it has; nothing of those that cannot be read. Does not block.
    pub(crate) fn published(&self, ids: &[DataflowId]) -> Result<Vec<Published>> {
        self.poison.check()?;
        let state = self.state.lock();
        let of_worker = |shown: &Shown| -> Vec<Published> {
            ids.iter().filter_map(|id| shown.dataflows.get(id).cloned()).collect()
        };
        Ok(state.workers.iter().flat_map(of_worker).collect())
    }

    /// A dataflow as far as it is computed on all workers: the epoch, and what each has published; `None` if it is gone. Does not block.
    pub(crate) fn computed(&self, id: DataflowId) -> Result<Option<(Epoch, Vec<Published>)>> {
        self.poison.check()?;
        let state = self.state.lock();
        let Some(epoch) = state.reached(id, Durable::No) else { return Ok(None) };
        let parts = state.pinned(&[id], &[], &[]).and_then(|mut all| all.pop());
        Ok(parts.map(|parts| (epoch, parts)))
    }

    /// As [`Progress::pin`], of the rows of one dataflow, one snapshot per worker.
    pub(crate) fn pin_one(
        &self,
        id: DataflowId,
        at_least: Epoch,
    ) -> Result<Option<(Epoch, Vec<Snapshot>)>> {
        self.readable(&[id], &[], Wanted::new(at_least, Durable::Yes), |state, epoch, _| {
            let contents = |shown: &Shown| shown.dataflows.get(&id)?.contents.clone();
            let snapshots: Option<Vec<_>> = state.workers.iter().map(contents).collect();
            Some((epoch, snapshots?))
        })
    }

    /// Waits until dataflows, and those of `others` that can be read at all, can be read, and reads them as of an epoch; `read` also gets the ones that it can read of both.
    fn readable<R>(
        &self,
        ids: &[DataflowId],
        others: &[DataflowId],
        wanted: Wanted,
        mut read: impl FnMut(&mut State, Epoch, &[DataflowId]) -> Option<R>,
    ) -> Result<Option<R>> {
        self.look_for(wanted.at_least, || {
            !matches!(self.state.lock().readable(ids, wanted), Readable::Later(..))
        });
        let Waits { relations, filled, .. } = &self.waits;
        self.until(|state, waker| {
            // One that has failed comes no further.
            if let Err(error) = self.failures.check(ids) {
                return Look::Found(Err(error));
            }
            let mut all = Cow::Borrowed(ids);
            if !others.is_empty() {
                let is_there =
                    |id: &&DataflowId| state.is_filled(**id) && self.failures.check([*id]).is_ok();
                all.to_mut().extend(others.iter().filter(is_there));
            }
            match state.readable(&all, wanted) {
                Readable::At(epoch) => Look::Found(Ok(read(state, epoch, &all))),
                Readable::Never => Look::Found(Ok(None)),
                Readable::Later(id, epoch) => {
                    Look::Waits((Some(relations.enter((id, epoch, wanted.durable), waker)), None))
                }
                Readable::Filling(id) => Look::Waits((None, Some(filled.enter(id, waker)))),
            }
        })?
    }

    /// An epoch is about to be committed; epochs come in order.
    pub(crate) fn expect(&self, epoch: Epoch, time: Moment) {
        let mut state = self.state.lock();
        state.times.push_back((epoch, time));
        state.delays.begin(epoch);
    }

    /// How long the epochs so far took from their commit.
    pub(crate) fn delays(&self) -> DelayHistograms {
        self.state.lock().delays.histograms()
    }

    /// The last durable epoch that is complete in each of these dataflows; `None` of one that cannot be read. Does not block.
    pub(crate) fn reached(&self, ids: &[DataflowId]) -> Vec<Option<Epoch>> {
        let state = self.state.lock();
        ids.iter().map(|id| state.reached(*id, Durable::Yes)).collect()
    }

    /// Whether a subscription holds up commits.
    pub(crate) fn is_congested(&self) -> bool {
        self.state.lock().congested > 0
    }

    /// A subscription has become congested.
    pub(crate) fn congest(&self) {
        self.state.lock().congested += 1;
    }

    /// A subscription is no longer congested.
    pub(crate) fn decongest(&self) {
        self.state.lock().congested -= 1;
        self.waits.capacity.wake_all();
    }

    /// Looks at the state until what this thread waits for is found.
    fn until<T, W>(&self, mut look: impl FnMut(&mut State, &Waker) -> Look<T, W>) -> Result<T> {
        wait::until(|waker| {
            let mut state = self.state.lock();
            self.poison.check()?;
            Ok(look(&mut state, waker))
        })
    }
}

impl Waited for Progress {
    fn wake(&self) {
        // A thread that has checked the poison and is not on a list yet holds the lock.
        drop(self.state.lock());
        self.waits.wake_all();
    }
}
