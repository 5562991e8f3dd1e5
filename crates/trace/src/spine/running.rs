//! The jobs of a spine that are not installed yet.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use alluvium_storage::{Job, Work};
use timely::scheduling::SyncActivator;

use super::policy::Reason;
use super::work::{Outcome, StateWork, Task};
use crate::memory::{Debt, StateContext};
use crate::metrics::{Compaction, Open};
use crate::time::PageTime;

/// How many bytes of a job have to be done for each that is inserted meanwhile. So a job is done before its spine has
/// grown by an eighth of the job's input.
const PACE: u64 = 8;

/// The share of a job's input, one in this many bytes, that may be inserted before its owner takes part in a job that
/// others do in the background.
const HEAD_START: u64 = 8;

/// The least that is done at a time.
const LEAST: u64 = 4 << 10;

/// The most that is done at a time. Other threads that do slices of the job wait as long.
const MOST: u64 = 256 << 10;

/// A job, and the open layers that its result will replace.
pub(super) struct Running<T: PageTime> {
    /// Never empty.
    pub(super) layers: Range<usize>,
    /// How many updates of the result may cancel later; an upper bound.
    pub(super) fresh: usize,
    /// Below what the result has no rows that are not needed, if that is known.
    pub(super) least: Option<i64>,
    /// Whether it moves a batch to a file.
    pub(super) is_spill: bool,
    /// Lists it as long as it is in progress, if it is not small.
    pub(super) listed: Option<Compaction>,
    job: Arc<Job<StateWork<T>>>,
    /// How many bytes were inserted since it began.
    inserted: u64,
    is_cancelled: Arc<AtomicBool>,
    owed: Debt,
}

impl<T: PageTime> Running<T> {
    /// Begins a job: a merge for a reason, or a move to a file. The compaction of the context does it, if there is one, and wakes the
    /// owner at the end. Counters list it.
    pub(super) fn begin(
        layers: Range<usize>,
        (fresh, least): (usize, Option<i64>),
        (task, reason): (Task<T>, Option<Reason>),
        context: &StateContext,
        waker: Option<SyncActivator>,
        counters: &Open,
    ) -> Self {
        let is_spill = matches!(task, Task::Spill(_));
        let (bytes, updates) = (task.bytes(), task.updates());
        let is_cancelled = Arc::default();
        let work = StateWork::new(task, context.for_job(&is_cancelled), waker);
        let job = Job::new(context.worker(), bytes as u64, work);
        let shared: Arc<Job<dyn Work>> = job.clone();
        let listed = counters.begin_compaction(reason, bytes, || updates, Some(&shared));
        if let Some(compaction) = context.compaction() {
            compaction.submit(shared);
        }
        let owed = context.budget().owe(bytes, is_spill);
        Running { layers, fresh, least, is_spill, listed, job, inserted: 0, is_cancelled, owed }
    }

    /// Whether there is a result to install.
    pub(super) fn is_done(&self) -> bool {
        self.job.is_done()
    }

    /// The result, if there is one.
    pub(super) fn take(&self) -> Option<Outcome<T>> {
        self.is_done().then(|| self.job.work().take()).flatten()
    }

    /// Counts the bytes that are left to do as what is owed; returns them.
    pub(super) fn count_debt(&self) -> u64 {
        let left = self.job.bytes().saturating_sub(self.job.progress());
        // A batch that is moved to a file stays on the heap until all of it is there.
        if !self.is_spill {
            self.owed.set(usize::try_from(left).unwrap_or(usize::MAX));
        }
        left
    }

    /// More was inserted.
    pub(super) fn insert(&mut self, bytes: u64) {
        self.inserted = self.inserted.saturating_add(bytes);
    }

    /// Does the work due by now, for insertions since the job began. A job that others do has a head start.
    pub(super) fn keep_pace(&self, has_head_start: bool) {
        let head_start = if has_head_start { self.job.bytes() / HEAD_START } else { 0 };
        self.reach(self.inserted.saturating_sub(head_start).saturating_mul(PACE));
    }

    /// Does all of it.
    pub(super) fn complete(&self) {
        self.reach(u64::MAX);
    }

    /// Does `bytes` more.
    pub(super) fn advance(&self, bytes: u64) {
        self.reach(self.job.progress().saturating_add(bytes));
    }

    /// Continues until so many bytes are done, or all.
    fn reach(&self, bytes: u64) {
        let is_all = bytes >= self.job.bytes();
        while !self.job.is_settled() && (is_all || self.job.progress() < bytes) {
            let missing = bytes.saturating_sub(self.job.progress());
            self.job.advance(missing.clamp(LEAST, MOST));
        }
        self.count_debt();
    }
}

impl<T: PageTime> Drop for Running<T> {
    fn drop(&mut self) {
        self.is_cancelled.store(true, Ordering::Relaxed);
        self.job.cancel();
    }
}

/// The parts of `0..layers` without those that jobs have, the youngest first. Jobs are in order, the oldest first.
pub(super) fn free<T: PageTime>(
    jobs: &[Running<T>],
    layers: usize,
) -> impl Iterator<Item = Range<usize>> + use<T> {
    let mut parts = Vec::with_capacity(jobs.len() + 1);
    let mut start = 0;
    for job in jobs {
        parts.push(start..job.layers.start);
        start = job.layers.end;
    }
    parts.push(start..layers);
    parts.into_iter().rev().filter(|part| !part.is_empty())
}
