//! The context that the state of a worker shares: the budget, the storage, the metrics.
//!
//! A [`StateContext`] is handed to everything that makes state: builders, row buffers, merges and spines. Only
//! differential-dataflow makes traces without a way to hand one in: [`Trace::new`] uses the context that the thread
//! has [entered](StateContext::scope).
//!
//! [`Trace::new`]: differential_dataflow::trace::Trace::new

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::{io, mem};

use alluvium_storage::{Compaction, Storage};
use parking_lot::Mutex;

#[cfg(doc)]
use super::MemoryPolicy;
use super::{DiskFullGate, MemoryBudget};
use crate::bound::Pruning;
use crate::metrics::{Label, Metrics};
use crate::schedule::Schedule;

/// The budget that state is counted in, where it goes beyond that, and how it is labelled.
///
/// A clone is the same context. Contexts derived with [`for_worker`](Self::for_worker),
/// [`for_relation`](Self::for_relation) and [`for_operator`](Self::for_operator) share the budget, the storage and
/// the gate.
#[derive(Clone, Debug, Default)]
pub struct StateContext {
    shared: Arc<Shared>,
}

#[derive(Clone, Debug)]
struct Shared {
    budget: MemoryBudget,
    storage: Option<Arc<dyn Storage>>,
    disk_full: DiskFullGate,
    metrics: Arc<Metrics>,
    label: Label,
    schedule: Schedule,
    /// Which rows are no longer needed; `None` if all are needed.
    pruning: Option<Arc<dyn Pruning>>,
    /// The compaction that merges in the background; `None` if there is none.
    compaction: Option<Arc<dyn Compaction>>,
    worker: Arc<WorkerState>,
    /// Whether the dataflow that the state belongs to is closed on its own.
    is_closed: Arc<AtomicBool>,
}

/// The part that the contexts of one worker share.
#[derive(Debug)]
struct WorkerState {
    /// Tells workers apart.
    number: u64,
    is_closing: AtomicBool,
    is_busy: AtomicBool,
    is_filling: AtomicBool,
    /// The threads that do something for it, apart from the compaction's.
    threads: Mutex<Vec<JoinHandle<()>>>,
    /// How many results of merges its spines have installed.
    installed: AtomicU64,
}

/// Numbers the workers of this process.
static WORKERS: AtomicU64 = AtomicU64::new(0);

impl Default for WorkerState {
    fn default() -> Self {
        Self {
            number: WORKERS.fetch_add(1, Ordering::Relaxed),
            is_closing: AtomicBool::new(false),
            is_busy: AtomicBool::new(false),
            is_filling: AtomicBool::new(false),
            threads: Mutex::default(),
            installed: AtomicU64::new(0),
        }
    }
}

impl Default for Shared {
    fn default() -> Self {
        Shared {
            budget: MemoryBudget::unlimited(),
            storage: None,
            disk_full: DiskFullGate::default(),
            metrics: Arc::default(),
            label: Label::default(),
            schedule: Schedule::default(),
            pruning: None,
            compaction: None,
            worker: Arc::default(),
            is_closed: Arc::default(),
        }
    }
}

impl StateContext {
    /// A context with this budget. Batches that exceed it go to `storage`; without storage everything stays in
    /// memory, whatever the limit.
    pub fn new(budget: MemoryBudget, storage: Option<Arc<dyn Storage>>) -> Self {
        StateContext { shared: Arc::new(Shared { budget, storage, ..Shared::default() }) }
    }

    /// The same context with another schedule.
    pub fn with_schedule(&self, schedule: Schedule) -> Self {
        self.with(|shared| shared.schedule = schedule)
    }

    /// The same context, whose spines submit their merges here.
    pub fn with_compaction(&self, compaction: Arc<dyn Compaction>) -> Self {
        self.with(|shared| shared.compaction = Some(compaction))
    }

    /// The same context, whose spines drop the rows below a bound.
    pub fn with_pruning(&self, pruning: Arc<dyn Pruning>) -> Self {
        self.with(|shared| shared.pruning = Some(pruning))
    }

    /// The same context, whose spines keep all rows.
    pub fn without_pruning(&self) -> Self {
        self.with(|shared| shared.pruning = None)
    }

    /// The context of one worker: its spines report to `metrics`, and it is [closed](Self::close) on its own.
    pub fn for_worker(&self, metrics: Arc<Metrics>) -> Self {
        self.with(|shared| {
            shared.metrics = metrics;
            shared.worker = Arc::default();
        })
    }

    /// The context of one dataflow of a worker, which can be [closed](Self::close_dataflow) on its own.
    pub fn for_dataflow(&self) -> Self {
        self.with(|shared| shared.is_closed = Arc::default())
    }

    /// The context of the state of a table, view or index.
    pub fn for_relation(&self, relation: &str) -> Self {
        self.with(|shared| shared.label.relation = relation.to_owned())
    }

    /// The context of a state of the relation; `fingerprint` says what its bytes mean.
    pub fn for_state(&self, id: &str, fingerprint: &str) -> Self {
        self.with(|shared| {
            shared.label.id = id.to_owned();
            shared.label.fingerprint = fingerprint.to_owned();
        })
    }

    /// The context of the state of an operator; `key` names the columns that its rows are found by.
    pub fn for_operator(&self, operator: &str, key: String) -> Self {
        self.with(|shared| {
            shared.label.operator = operator.to_owned();
            shared.label.key = key;
        })
    }

    /// The context of a job that may be done on any thread: it waits for room on the disk only until `is_cancelled` is
    /// set.
    pub fn for_job(&self, is_cancelled: &Arc<AtomicBool>) -> Self {
        self.with(|shared| {
            // A thread of the compaction must not be its last owner.
            shared.compaction = None;
            shared.disk_full = shared.disk_full.until(is_cancelled);
        })
    }

    fn with(&self, change: impl FnOnce(&mut Shared)) -> Self {
        let mut shared = Shared::clone(&self.shared);
        change(&mut shared);
        StateContext { shared: Arc::new(shared) }
    }

    /// The budget that counts all state.
    pub fn budget(&self) -> &MemoryBudget {
        &self.shared.budget
    }

    /// The storage of batches that are not kept in memory.
    pub fn storage(&self) -> Option<&Arc<dyn Storage>> {
        self.shared.storage.as_ref()
    }

    /// Where writers wait while the storage is full.
    pub fn disk_full(&self) -> &DiskFullGate {
        &self.shared.disk_full
    }

    /// When state is merged and how batches are cut.
    pub fn schedule(&self) -> Schedule {
        self.shared.schedule
    }

    /// Which rows of the state are no longer needed; `None` if all are needed.
    pub fn pruning(&self) -> Option<&Arc<dyn Pruning>> {
        self.shared.pruning.as_ref()
    }

    /// The compaction that merges in the background; `None` if there is none.
    pub fn compaction(&self) -> Option<&Arc<dyn Compaction>> {
        self.shared.compaction.as_ref()
    }

    /// A number that no other worker of this process has.
    pub(crate) fn worker(&self) -> u64 {
        self.shared.worker.number
    }

    /// Says whether the worker has changes to process. While it has none, its spines advance merges that wait.
    pub fn set_busy(&self, is_busy: bool) {
        self.shared.worker.is_busy.store(is_busy, Ordering::Relaxed);
    }

    /// Whether the worker has changes to process.
    pub(crate) fn is_busy(&self) -> bool {
        self.shared.worker.is_busy.load(Ordering::Relaxed)
    }

    /// Says whether the worker fills dataflows beside others, which should not wait for them.
    pub fn set_filling(&self, is_filling: bool) {
        self.shared.worker.is_filling.store(is_filling, Ordering::Relaxed);
    }

    /// Whether the worker fills dataflows beside others.
    pub(crate) fn is_filling(&self) -> bool {
        self.shared.worker.is_filling.load(Ordering::Relaxed)
    }

    /// How many bytes of rows an operator emits each time it runs: [less](MemoryPolicy::activation_when_filling) while the worker
    /// fills dataflows beside others.
    pub fn activation(&self) -> usize {
        let policy = self.budget().policy();
        if self.is_filling() { policy.activation_when_filling } else { policy.activation }
    }

    /// Does something for the worker on a thread of its own.
    pub(crate) fn spawn(&self, name: &str, act: impl FnOnce() + Send + 'static) -> io::Result<()> {
        let mut threads = self.shared.worker.threads.lock();
        threads.retain(|thread| !thread.is_finished());
        threads.push(thread::Builder::new().name(name.to_owned()).spawn(act)?);
        Ok(())
    }

    /// Waits until no thread does anything for the worker any more, apart from the compaction's.
    pub fn join(&self) {
        let threads = mem::take(&mut *self.shared.worker.threads.lock());
        for thread in threads {
            // Its failure is reported to those who wait for it.
            let _ = thread.join();
        }
    }

    /// How often spines of the worker have replaced batches by merged ones, apart from those times when they got a new
    /// one: a version that was pinned before keeps the replaced ones.
    pub fn installed(&self) -> u64 {
        self.shared.worker.installed.load(Ordering::Relaxed)
    }

    /// Counts results of merges that a spine has installed.
    pub(crate) fn install(&self) {
        self.shared.worker.installed.fetch_add(1, Ordering::Relaxed);
    }

    /// The metrics that spines report to.
    pub fn metrics(&self) -> &Arc<Metrics> {
        &self.shared.metrics
    }

    /// The purpose of the state.
    pub fn label(&self) -> &Label {
        &self.shared.label
    }

    /// From now on the worker only drops its state: spines neither merge nor spill. The work would be wasted, and
    /// where a file cannot be written a thread that unwinds would panic a second time.
    pub fn close(&self) {
        self.shared.worker.is_closing.store(true, Ordering::Relaxed);
    }

    /// As [`StateContext::close`], for the state of this [dataflow](Self::for_dataflow) alone.
    pub fn close_dataflow(&self) {
        self.shared.is_closed.store(true, Ordering::Relaxed);
    }

    /// Whether spines should leave their state as it is: the context is closed, or this thread unwinds.
    pub(crate) fn is_closing(&self) -> bool {
        self.shared.worker.is_closing.load(Ordering::Relaxed)
            || self.shared.is_closed.load(Ordering::Relaxed)
            || std::thread::panicking()
    }

    /// Runs `act` with this as the context of traces that differential-dataflow makes on this thread.
    pub fn scope<R>(&self, act: impl FnOnce() -> R) -> R {
        let _restored = Restored(CURRENT.replace(self.clone()));
        act()
    }
}

thread_local! {
    static CURRENT: RefCell<StateContext> = RefCell::default();
}

/// The context to go back to when a [scope](StateContext::scope) ends.
struct Restored(StateContext);

impl Drop for Restored {
    fn drop(&mut self) {
        CURRENT.set(mem::take(&mut self.0));
    }
}

/// Makes this the context of traces that differential-dataflow makes on this thread from now on.
pub fn enter(context: StateContext) {
    CURRENT.set(context);
}

/// The context that this thread has entered; unlimited and without storage if it has entered none.
pub fn current() -> StateContext {
    CURRENT.with_borrow(StateContext::clone)
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;

    #[test]
    fn derived_contexts_share_the_budget_and_have_labels_of_their_own() {
        let context = StateContext::new(MemoryBudget::new(1000), None);
        let view = context.for_relation("view");
        let state = view.for_state("join.1", "c0ffee");
        let operator = state.for_operator("Join", "key".to_owned());
        let _charge = operator.budget().charge(10);
        assert_eq!(context.budget().used(), 10);
        let expected = Label {
            relation: "view".to_owned(),
            operator: "Join".to_owned(),
            key: "key".to_owned(),
            id: "join.1".to_owned(),
            fingerprint: "c0ffee".to_owned(),
        };
        assert_eq!(operator.label(), &expected);
        assert_eq!(context.label(), &Label::default());
    }

    #[test]
    fn closing_a_worker_closes_what_derives_from_it_and_no_other_worker() {
        let context = StateContext::default();
        let (one, other) = (context.for_worker(Arc::default()), context.for_worker(Arc::default()));
        let relation = one.for_relation("view");
        one.close();
        assert!(relation.is_closing() && !other.is_closing() && !context.is_closing());
    }

    #[test]
    fn closing_a_dataflow_closes_no_other() {
        let worker = StateContext::default().for_worker(Arc::default());
        let (one, other) = (worker.for_dataflow(), worker.for_dataflow());
        let relation = one.for_relation("view");
        one.close_dataflow();
        assert!(relation.is_closing() && !other.is_closing() && !worker.is_closing());
    }

    #[test]
    fn a_scope_ends_with_its_call_also_by_a_panic() {
        let outer = StateContext::default().for_relation("outer");
        let inner = StateContext::default().for_relation("inner");
        let relation = || current().label().relation.clone();
        outer.scope(|| {
            assert_eq!(inner.scope(relation), "inner");
            assert_eq!(relation(), "outer");
            let fails = AssertUnwindSafe(|| inner.scope(|| panic!("on command")));
            let failed = catch_unwind(fails);
            assert!(failed.is_err());
            assert_eq!(relation(), "outer");
        });
        assert_eq!(relation(), "");
    }
}
