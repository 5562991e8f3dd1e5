//! What the spines of a thread hold.
//!
//! A thread that is to be looked at from outside [attaches](Metrics::attach) a metrics before it makes spines. Each of
//! them has an counters there, and keeps it up to date: whenever its list of batches changes, and until it is dropped.
//! Accounts are counters: a lock is taken only where one is opened or closed, and by those who look. Batches that
//! somebody else holds on to, when their spine has merged them, are not counted.
//!
//! Spines are made by operators that do not know what they are part of, so a thread says beforehand [what it
//! builds](build) and [what is next](label).

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

thread_local! {
    static ATTACHED: RefCell<Arc<Metrics>> = RefCell::default();
    static LABEL: RefCell<Label> = RefCell::default();
}

/// What a spine is for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Label {
    /// The table, view or index it is part of.
    pub relation: String,
    /// The operator that keeps it.
    pub operator: String,
    /// The columns that its rows are found by; empty where it has other keys.
    pub key: String,
}

/// What is built on this thread from now on belongs to `relation`.
pub fn build(relation: &str) {
    LABEL.with_borrow_mut(|label| label.relation = relation.to_owned());
}

/// The next spine of this thread is kept by `operator`, by these columns.
pub fn label(operator: &str, key: String) {
    LABEL.with_borrow_mut(|label| {
        label.operator = operator.to_owned();
        label.key = key;
    });
}

/// What one spine holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SpineMetrics {
    /// What it is for.
    pub label: Label,
    /// How many updates: for most spines the number of its rows, once times are compacted.
    pub rows: u64,
    /// How many bytes its pages and their fences take that are on the heap.
    pub memory: u64,
    /// How many bytes its files have.
    pub disk: u64,
    /// In how many batches.
    pub batches: u64,
    /// How many merges it has done.
    pub merges: u64,
}

/// What the spines of a thread hold, each.
#[derive(Debug, Default)]
pub struct Metrics {
    spines: Mutex<Vec<Arc<Counters>>>,
}

#[derive(Debug, Default)]
struct Counters {
    label: Label,
    rows: AtomicU64,
    memory: AtomicU64,
    disk: AtomicU64,
    batches: AtomicU64,
    merges: AtomicU64,
}

impl Metrics {
    /// Keeps counters of the spines that are made on this thread from now on.
    pub fn attach(self: &Arc<Self>) {
        ATTACHED.set(Arc::clone(self));
    }

    /// What each spine holds now, in the order they were made.
    pub fn spines(&self) -> Vec<SpineMetrics> {
        let counters = |counters: &Arc<Counters>| SpineMetrics {
            label: counters.label.clone(),
            rows: counters.rows.load(Ordering::Relaxed),
            memory: counters.memory.load(Ordering::Relaxed),
            disk: counters.disk.load(Ordering::Relaxed),
            batches: counters.batches.load(Ordering::Relaxed),
            merges: counters.merges.load(Ordering::Relaxed),
        };
        self.spines.lock().iter().map(counters).collect()
    }
}

/// The counters of one spine, which is closed when this is dropped.
pub(crate) struct Open {
    metrics: Arc<Metrics>,
    counters: Arc<Counters>,
}

impl Open {
    /// Opens an counters with the metrics of this thread.
    pub(crate) fn new() -> Self {
        let metrics = ATTACHED.with_borrow(Arc::clone);
        let label = LABEL.with_borrow(Label::clone);
        let counters = Arc::new(Counters { label, ..Counters::default() });
        metrics.spines.lock().push(Arc::clone(&counters));
        Self { metrics, counters }
    }

    /// The spine holds so much now: rows, bytes on the heap and in files, and batches.
    pub(crate) fn set(&self, [rows, memory, disk, batches]: [usize; 4]) {
        self.counters.rows.store(rows as u64, Ordering::Relaxed);
        self.counters.memory.store(memory as u64, Ordering::Relaxed);
        self.counters.disk.store(disk as u64, Ordering::Relaxed);
        self.counters.batches.store(batches as u64, Ordering::Relaxed);
    }

    /// The spine has merged.
    pub(crate) fn merged(&self) {
        self.counters.merges.fetch_add(1, Ordering::Relaxed);
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.metrics.spines.lock().retain(|counters| !Arc::ptr_eq(counters, &self.counters));
    }
}
