//! The progress of the workers and their snapshots: all that other threads see of them.

use std::collections::{BTreeMap, VecDeque};
use std::hint;
use std::num::NonZero;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::task::Waker;
use std::thread;
use std::time::{Duration, Instant};

use alluvium_dataflow::snapshot::Snapshot;
use alluvium_dataflow::waterlines::Waterlines;
use alluvium_trace::{Epoch, Metrics};
use parking_lot::{Condvar, Mutex, MutexGuard};

use super::command::DataflowId;
use crate::clock::Moment;
use crate::error::Result;
use crate::interrupt;
use crate::poison::{Poison, Waited};

/// How long a thread looks for what it waits for before it sleeps, if each has a processor: to wake a thread takes longer than
/// a small epoch.
const SPIN: Duration = Duration::from_micros(50);

/// What one worker publishes of one dataflow that has caught up.
#[derive(Clone, Default)]
pub(crate) struct Published {
    /// Its rows, if it keeps them.
    pub(crate) contents: Option<Snapshot>,
    /// Its errors, if it can have any.
    pub(crate) errors: Option<Snapshot>,
    /// How many deletions of absent rows were refused, if it is a table.
    pub(crate) refused: Option<Arc<AtomicU64>>,
    /// How many writes to rows behind a waterline were dropped, if it is a table, or changes, if it is a view with lateness.
    pub(crate) late: Option<Arc<AtomicU64>>,
    /// The waterlines of such a view.
    pub(crate) waterlines: Option<Waterlines>,
}

impl Published {
    /// How many deletions were refused.
    pub(crate) fn refused(&self) -> u64 {
        self.refused.as_ref().map_or(0, |count| count.load(Ordering::Relaxed))
    }

    /// How many writes or changes were dropped.
    pub(crate) fn late(&self) -> u64 {
        self.late.as_ref().map_or(0, |count| count.load(Ordering::Relaxed))
    }
}

/// Dataflows as of one complete epoch.
pub(crate) struct Pinned {
    /// The epoch.
    pub(crate) epoch: Epoch,
    /// Its time.
    pub(crate) time: Moment,
    /// For each dataflow, in the order of the request, what each worker published.
    pub(crate) dataflows: Vec<Vec<Published>>,
}

/// Who keeps a pinned version of a dataflow until there is another one.
pub(crate) trait Reader: Send + Sync {
    /// There is another version, or none any more.
    fn give_up(&self);
}

/// The workers' progress.
///
/// *An epoch is complete* when it is on every worker, in every dataflow, and durable if the engine has a journal. In one
/// critical section a worker publishes its
/// frontier and the snapshots of all dataflows that have changed before it; it compacts only up to the epoch that was
/// complete when it last published. A reader takes the complete epoch and the snapshots in one critical section too, so
/// each snapshot has reached that epoch and none is compacted past it.
pub(crate) struct Progress {
    state: Mutex<State>,
    /// The last complete epoch of the state, for those who look for it without the lock.
    complete: AtomicU64,
    /// How long they do.
    spin: Duration,
    changed: Condvar,
    /// What each worker holds.
    metrics: Vec<Arc<Metrics>>,
    /// Those who wait for epochs to become durable, whether or not these are complete.
    durable: Mutex<BTreeMap<Epoch, Vec<Waker>>>,
    /// What reads dataflows again and again.
    readers: Mutex<Vec<(DataflowId, Weak<dyn Reader>)>>,
    poison: Arc<Poison>,
}

struct State {
    workers: Vec<Shown>,
    complete: Epoch,
    /// All epochs up to this one are durable; the last of all if they need not be.
    durable: Epoch,
    /// The times of epochs: of the last complete one and, in order, of those in flight.
    times: VecDeque<(Epoch, Moment)>,
    /// How many subscriptions have more epochs waiting than they may.
    congested: usize,
}

impl State {
    /// Completes all epochs that are durable and that every worker has reached. Returns the last complete one.
    fn advance(&mut self) -> Epoch {
        let reached = self.workers.iter().map(|shown| shown.frontier).min().unwrap_or(1);
        self.complete = self.complete.max(self.durable.min(reached - 1));
        while self.times.get(1).is_some_and(|(epoch, _)| *epoch <= self.complete) {
            self.times.pop_front();
        }
        self.complete
    }
}

/// What one worker publishes.
#[derive(Default)]
struct Shown {
    /// All epochs before this one are complete on the worker.
    frontier: Epoch,
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
        let shown = || Shown { frontier: start + 1, dataflows: BTreeMap::new() };
        let processors = thread::available_parallelism().map_or(1, NonZero::get);
        let spin = if workers < processors { SPIN } else { Duration::ZERO };
        let metrics = (0..workers).map(|_| Arc::default()).collect();
        let workers = (0..workers).map(|_| shown()).collect();
        let times = VecDeque::from([(start, time)]);
        let durable = Epoch::MAX;
        let state = State { workers, complete: start, durable, times, congested: 0 };
        let (state, changed) = (Mutex::new(state), Condvar::new());
        let (awaited, readers) = Default::default();
        let complete = AtomicU64::new(start);
        let progress = Arc::new(Self {
            state,
            complete,
            spin,
            changed,
            metrics,
            durable: awaited,
            readers,
            poison,
        });
        progress.poison.register(&progress);
        progress
    }

    /// The metrics of each worker.
    pub(crate) fn metrics(&self) -> &[Arc<Metrics>] {
        &self.metrics
    }

    /// Shows how far `worker` has come, what of its dataflows has changed, and which of them are gone. Returns the last
    /// complete epoch, to which the worker may compact.
    pub(crate) fn publish(
        &self,
        worker: usize,
        frontier: Epoch,
        changed: Vec<(DataflowId, Published)>,
        removed: &[DataflowId],
    ) -> Epoch {
        let mut state = self.state.lock();
        let given_up = self.given_up(changed.iter().map(|(id, _)| id).chain(removed));
        let shown = &mut state.workers[worker];
        shown.frontier = frontier;
        let mut before = Vec::with_capacity(changed.len() + removed.len());
        before.extend(removed.iter().map(|id| shown.dataflows.remove(id)));
        before.extend(changed.into_iter().map(|(id, now)| shown.dataflows.insert(id, now)));
        let complete = self.advance(state);
        given_up.iter().for_each(|reader| reader.give_up());
        // The last reference to a batch frees it, which takes a while.
        drop(before);
        complete
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

    /// Completes epochs, and wakes who waits. Returns the last complete one.
    fn advance(&self, mut state: MutexGuard<'_, State>) -> Epoch {
        let complete = state.advance();
        self.complete.store(complete, Ordering::Release);
        drop(state);
        self.changed.notify_all();
        complete
    }

    /// From now on an epoch is complete only once it is durable; all up to `last` are.
    pub(crate) fn require_durable(&self, last: Epoch) {
        self.state.lock().durable = last;
    }

    /// All epochs up to this one are durable.
    pub(crate) fn set_durable(&self, epoch: Epoch) {
        let mut state = self.state.lock();
        state.durable = state.durable.max(epoch);
        self.advance(state);
        let mut waiting = self.durable.lock();
        let later = waiting.split_off(&epoch.saturating_add(1));
        let over = std::mem::replace(&mut *waiting, later);
        drop(waiting);
        over.into_values().flatten().for_each(Waker::wake);
    }

    /// Wakes this one once an epoch is durable. The caller looks whether it is so already after this.
    pub(crate) fn watch(&self, epoch: Epoch, waker: Waker) {
        self.durable.lock().entry(epoch).or_default().push(waker);
    }

    /// All epochs up to this one are durable.
    pub(crate) fn durable(&self) -> Epoch {
        self.state.lock().durable
    }

    /// Whether all epochs up to this one are durable.
    pub(crate) fn is_durable(&self, epoch: Epoch) -> bool {
        self.state.lock().durable >= epoch
    }

    /// The last complete epoch.
    pub(crate) fn complete(&self) -> Epoch {
        self.complete.load(Ordering::Acquire)
    }

    /// For how long a worker, too, looks for work before it sleeps.
    pub(super) fn spin(&self) -> Duration {
        self.spin
    }

    /// Looks for a moment whether `epoch` is complete.
    fn look_for(&self, epoch: Epoch) {
        if self.complete() < epoch && !self.spin.is_zero() {
            let start = Instant::now();
            while self.complete() < epoch && start.elapsed() < self.spin {
                hint::spin_loop();
            }
        }
    }

    /// Waits until `epoch` is complete.
    pub(crate) fn wait(&self, epoch: Epoch) -> Result<()> {
        self.look_for(epoch);
        self.wait_until(|state| state.complete >= epoch).map(drop)
    }

    /// Waits until a dataflow has caught up on every worker.
    pub(crate) fn wait_ready(&self, id: DataflowId) -> Result<()> {
        self.wait_until(|state| state.workers.iter().all(|shown| shown.dataflows.contains_key(&id)))
            .map(drop)
    }

    /// Whether there is nothing to wait for.
    pub(crate) fn has_capacity(&self, last: Epoch, bound: u64) -> bool {
        let state = self.state.lock();
        last < state.complete + bound && state.congested == 0
    }

    /// Waits until fewer than `bound` of the epochs up to `last` are in flight, and no subscription is
    /// congested. The bound is asked for whenever an epoch is complete.
    pub(crate) fn wait_capacity(&self, last: Epoch, bound: impl Fn() -> u64) -> Result<()> {
        self.wait_until(|state| last < state.complete + bound() && state.congested == 0).map(drop)
    }

    /// Pins dataflows as of the last complete epoch; `None` if one of them has been removed.
    pub(crate) fn pin(&self, ids: &[DataflowId]) -> Result<Option<Pinned>> {
        self.poison.check()?;
        let state = self.state.lock();
        let one = |id: &DataflowId| {
            state.workers.iter().map(|shown| shown.dataflows.get(id).cloned()).collect()
        };
        let dataflows: Option<Vec<Vec<_>>> = ids.iter().map(one).collect();
        let time = state.times.front().map_or(0, |(_, time)| *time);
        Ok(dataflows.map(|dataflows| Pinned { epoch: state.complete, time, dataflows }))
    }

    /// Waits until `at_least` is complete, then pins the rows of one dataflow as of the last complete epoch, one snapshot per
    /// worker; `None` if it has been removed.
    pub(crate) fn pin_one(
        &self,
        id: DataflowId,
        at_least: Epoch,
    ) -> Result<Option<(Epoch, Vec<Snapshot>)>> {
        self.look_for(at_least);
        let state = self.wait_until(|state| state.complete >= at_least)?;
        let contents = |shown: &Shown| shown.dataflows.get(&id)?.contents.clone();
        let snapshots: Option<Vec<_>> = state.workers.iter().map(contents).collect();
        Ok(snapshots.map(|snapshots| (state.complete, snapshots)))
    }

    /// An epoch is about to be committed; epochs come in order.
    pub(crate) fn expect(&self, epoch: Epoch, time: Moment) {
        self.state.lock().times.push_back((epoch, time));
    }

    /// A subscription has become congested.
    pub(crate) fn congest(&self) {
        self.state.lock().congested += 1;
    }

    /// A subscription is no longer congested.
    pub(crate) fn decongest(&self) {
        self.state.lock().congested -= 1;
        self.changed.notify_all();
    }

    fn wait_until(
        &self,
        mut condition: impl FnMut(&State) -> bool,
    ) -> Result<MutexGuard<'_, State>> {
        let mut state = self.state.lock();
        loop {
            self.poison.check()?;
            interrupt::check()?;
            if condition(&state) {
                return Ok(state);
            }
            self.changed.wait(&mut state);
        }
    }
}

impl Waited for Progress {
    fn wake(&self) {
        // A thread that has checked the poison and does not wait yet holds the lock.
        drop(self.state.lock());
        self.changed.notify_all();
    }
}
