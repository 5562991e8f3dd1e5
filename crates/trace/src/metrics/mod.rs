//! The metrics of each spine, of each operator, and of compactions.
//!
//! Every spine has counters in the [`Metrics`] of its [context](crate::memory::StateContext). It updates them whenever
//! its list of batches changes, and removes them when it is dropped. Counters are atomics: a lock is taken only to
//! open, close or list them. Batches that readers hold after their spine has merged them are not counted.

pub mod activity;
mod compactions;
mod recent;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use alluvium_storage::{Job, Work as JobWork};
use parking_lot::Mutex;

use self::activity::Activities;
pub use self::activity::{Activity, OperatorLabel, OperatorMetrics, Work};
use self::compactions::{Begun, Compactions};
pub use self::compactions::{CompactionKind, CompactionMetrics};
pub use self::recent::Recent;
use crate::bound::Pruning;
use crate::memory::StateContext;
use crate::spine::Reason;

/// The purpose of a spine, for people.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Label {
    /// The table, view or index it is part of.
    pub relation: String,
    /// The operator that keeps it.
    pub operator: String,
    /// The columns of its keys; empty where the keys are no columns.
    pub key: String,
    /// Which state of the relation it is part of.
    pub id: String,
    /// The fingerprint of that state's bytes, in hexadecimal digits.
    pub fingerprint: String,
}

/// The metrics of one spine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SpineMetrics {
    /// Its purpose.
    pub label: Label,
    /// The number of updates. For most spines that is the number of rows, once times are compacted.
    pub rows: u64,
    /// The bytes of pages on the heap and of their fences.
    pub memory: u64,
    /// The bytes of its files.
    pub disk: u64,
    /// The least value that is needed in some column, if the spine is pruned, for people.
    pub bound: Option<String>,
    /// The same as the number that is compared.
    pub least: Option<i64>,
    /// About how many updates are below that bound and not dropped yet; `None` if rows are not sorted by the column.
    pub below: Option<u64>,
    /// The number of batches.
    pub batches: u64,
    /// The number of merges.
    pub merges: u64,
    /// How many merges were chosen because look-ups had paid for them, by seeking keys in several batches: where they are
    /// the most, the spine is kept in few batches.
    pub merges_for_reads: u64,
    /// How many merges were chosen because enough of the updates might cancel.
    pub merges_for_churn: u64,
    /// How often look-ups have sought a key in a batch, as counted when the batches changed last. A look-up counts once for
    /// each batch.
    pub seeks: u64,
    /// The bytes of all batches that were inserted.
    pub inserted: u64,
    /// The bytes that merges and moves to files have written.
    pub written: u64,
    /// The number of jobs, merges and moves to files, that run or wait.
    pub jobs: u64,
    /// The bytes of input that they have not gone through.
    pub debt: u64,
}

impl SpineMetrics {
    /// How often each byte was written, in memory or to a file, counting the first time; `None` if nothing was inserted.
    pub fn write_amplification(&self) -> Option<f64> {
        let written = self.inserted as f64 + self.written as f64;
        (self.inserted > 0).then(|| written / self.inserted as f64)
    }
}

/// The counters of the spines and operators of one worker.
#[derive(Debug, Default)]
pub struct Metrics {
    spines: Mutex<Vec<Arc<Counters>>>,
    operators: Activities,
    compactions: Compactions,
}

#[derive(Debug, Default)]
struct Counters {
    label: Label,
    rows: AtomicU64,
    memory: AtomicU64,
    disk: AtomicU64,
    batches: AtomicU64,
    merges: AtomicU64,
    merges_for_reads: AtomicU64,
    merges_for_churn: AtomicU64,
    /// The seeks in batches that were replaced, and in those that are there.
    past_seeks: AtomicU64,
    present_seeks: AtomicU64,
    inserted: AtomicU64,
    written: AtomicU64,
    jobs: AtomicU64,
    debt: AtomicU64,
    pruned: Mutex<Option<Pruned>>,
}

/// How far a spine is pruned.
#[derive(Debug)]
struct Pruned {
    by: Arc<dyn Pruning>,
    least: i64,
    below: Option<u64>,
}

impl Metrics {
    /// The metrics of each spine now, in the order in which they were made.
    pub fn spines(&self) -> Vec<SpineMetrics> {
        let counters = |counters: &Arc<Counters>| {
            let pruned = counters.pruned.lock();
            let pruned = pruned.as_ref();
            SpineMetrics {
                label: counters.label.clone(),
                rows: counters.rows.load(Ordering::Relaxed),
                memory: counters.memory.load(Ordering::Relaxed),
                disk: counters.disk.load(Ordering::Relaxed),
                batches: counters.batches.load(Ordering::Relaxed),
                merges: counters.merges.load(Ordering::Relaxed),
                merges_for_reads: counters.merges_for_reads.load(Ordering::Relaxed),
                merges_for_churn: counters.merges_for_churn.load(Ordering::Relaxed),
                seeks: counters.past_seeks.load(Ordering::Relaxed)
                    + counters.present_seeks.load(Ordering::Relaxed),
                inserted: counters.inserted.load(Ordering::Relaxed),
                written: counters.written.load(Ordering::Relaxed),
                jobs: counters.jobs.load(Ordering::Relaxed),
                debt: counters.debt.load(Ordering::Relaxed),
                bound: pruned.map(|pruned| pruned.by.describe(pruned.least)),
                least: pruned.map(|pruned| pruned.least),
                below: pruned.and_then(|pruned| pruned.below),
            }
        };
        self.spines.lock().iter().map(counters).collect()
    }

    /// Counters of an operator, which are listed as long as they are held elsewhere.
    pub fn open_operator(&self, label: OperatorLabel) -> Arc<Activity> {
        self.operators.open(label)
    }

    /// Remembers the work of the operators up to now, if it is time to: to be called every few seconds while there is work.
    pub fn note_operators(&self) {
        self.operators.note(Instant::now());
    }

    /// The compactions in progress, and then the last that have ended, the newest first; those of small inputs are left out.
    pub fn compactions(&self) -> Vec<CompactionMetrics> {
        self.compactions.list(Instant::now())
    }

    /// The work of each operator up to now, in the order in which they were made.
    pub fn operators(&self) -> Vec<OperatorMetrics> {
        self.operators.list(Instant::now())
    }
}

/// The counters of one spine, removed from the metrics when this is dropped.
pub(crate) struct Open {
    metrics: Arc<Metrics>,
    counters: Arc<Counters>,
}

impl Open {
    /// Opens counters with the metrics and the label of this context.
    pub(crate) fn new(context: &StateContext) -> Self {
        let (metrics, label) = (Arc::clone(context.metrics()), context.label().clone());
        let counters = Arc::new(Counters { label, ..Counters::default() });
        metrics.spines.lock().push(Arc::clone(&counters));
        Self { metrics, counters }
    }

    /// Sets the present numbers: rows, bytes on the heap and in files, and batches.
    pub(crate) fn set(&self, [rows, memory, disk, batches]: [usize; 4]) {
        self.counters.rows.store(rows as u64, Ordering::Relaxed);
        self.counters.memory.store(memory as u64, Ordering::Relaxed);
        self.counters.disk.store(disk as u64, Ordering::Relaxed);
        self.counters.batches.store(batches as u64, Ordering::Relaxed);
    }

    /// Sets how many jobs run or wait, and the bytes that they have not gone through.
    pub(crate) fn set_jobs(&self, jobs: usize, debt: u64) {
        self.counters.jobs.store(jobs as u64, Ordering::Relaxed);
        self.counters.debt.store(debt, Ordering::Relaxed);
    }

    /// Sets the least value that is needed, and about how many updates are below it.
    pub(crate) fn set_bound(&self, by: &Arc<dyn Pruning>, least: i64, below: Option<u64>) {
        *self.counters.pruned.lock() = Some(Pruned { by: by.clone(), least, below });
    }

    /// Counts the bytes of a batch that is inserted.
    pub(crate) fn inserted(&self, bytes: usize) {
        self.counters.inserted.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Counts bytes that a merge or a move to a file has written.
    pub(crate) fn written(&self, bytes: usize) {
        self.counters.written.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Counts a merge that begins, if it is for another reason than sizes.
    pub(crate) fn chosen(&self, reason: Reason) {
        match reason {
            Reason::Size | Reason::Bound => {}
            Reason::Reads => _ = self.counters.merges_for_reads.fetch_add(1, Ordering::Relaxed),
            Reason::Churn => _ = self.counters.merges_for_churn.fetch_add(1, Ordering::Relaxed),
        }
    }

    /// A merge for a reason, or a move to a file, of so many bytes and updates begins. It is listed if it is not small.
    pub(crate) fn begin_compaction(
        &self,
        reason: Option<Reason>,
        bytes: usize,
        rows: impl FnOnce() -> usize,
        job: Option<&Arc<Job<dyn JobWork>>>,
    ) -> Option<Compaction> {
        if (bytes as u64) < compactions::LEAST {
            return None;
        }
        let kind = match reason {
            Some(Reason::Size) => CompactionKind::Merge,
            Some(Reason::Reads) => CompactionKind::MergeForReads,
            Some(Reason::Churn) => CompactionKind::MergeForChurn,
            Some(Reason::Bound) => CompactionKind::Prune,
            None => CompactionKind::Spill,
        };
        let begun =
            Begun::new(&self.counters.label, kind, (rows(), bytes), job.map(Arc::downgrade));
        self.metrics.compactions.begin(&begun);
        Some(Compaction { metrics: self.metrics.clone(), begun, written: None })
    }

    /// Counts seeks in batches that are replaced.
    pub(crate) fn sought(&self, seeks: u64) {
        self.counters.past_seeks.fetch_add(seeks, Ordering::Relaxed);
    }

    /// Sets how many seeks there were in the batches that are there.
    pub(crate) fn set_seeks(&self, seeks: u64) {
        self.counters.present_seeks.store(seeks, Ordering::Relaxed);
    }

    /// Counts a merge.
    pub(crate) fn merged(&self) {
        self.counters.merges.fetch_add(1, Ordering::Relaxed);
    }
}

/// A compaction in progress, until this is dropped.
pub(crate) struct Compaction {
    metrics: Arc<Metrics>,
    begun: Arc<Begun>,
    written: Option<usize>,
}

impl Compaction {
    /// It has ended with a result of so many bytes.
    pub(crate) fn end(mut self, written: usize) {
        self.written = Some(written);
    }
}

impl Drop for Compaction {
    fn drop(&mut self) {
        self.metrics.compactions.end(&self.begun, self.written);
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.metrics.spines.lock().retain(|counters| !Arc::ptr_eq(counters, &self.counters));
    }
}
