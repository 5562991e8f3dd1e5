//! The larger merges and moves to files: those that are in progress, and the last that have ended.

use std::collections::VecDeque;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use alluvium_storage::{Job, Work};
use parking_lot::Mutex;
use tracing::debug;

use super::Label;

/// The least input of those that are listed, in bytes: there are many smaller ones, which end at once.
pub(crate) const LEAST: u64 = 64 << 10;

/// One that has taken so long is logged.
const LONG: Duration = Duration::from_millis(100);

/// How many are listed that have ended.
const ENDED: usize = 64;

/// The kind of a compaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompactionKind {
    /// A merge, to keep the sizes of batches in proportion.
    Merge,
    /// A merge that look-ups have paid for.
    MergeForReads,
    /// A merge of updates that may cancel.
    MergeForChurn,
    /// Batches are written again without the rows that are no longer needed.
    Prune,
    /// A batch is moved to a file.
    Spill,
}

/// A compaction of one spine.
#[derive(Clone, Debug)]
pub struct CompactionMetrics {
    /// The purpose of the spine.
    pub label: Label,
    /// The kind.
    pub kind: CompactionKind,
    /// The updates of the input.
    pub rows: u64,
    /// The bytes of the input.
    pub bytes: u64,
    /// The bytes of the input that it has gone through.
    pub done: u64,
    /// The bytes of the result; `None` while it is in progress.
    pub written: Option<u64>,
    /// The time since it was begun, or until it had ended; it may have waited for others meanwhile.
    pub time: Duration,
    /// How long ago it was begun.
    pub age: Duration,
}

/// The compactions of one worker.
#[derive(Debug, Default)]
pub(super) struct Compactions(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    running: Vec<Arc<Begun>>,
    /// The last ones, the oldest first.
    ended: VecDeque<Ended>,
}

/// A compaction that was begun.
#[derive(Debug)]
pub(super) struct Begun {
    label: Label,
    kind: CompactionKind,
    rows: u64,
    bytes: u64,
    at: Instant,
    /// Tells how far it is, if it is done in slices.
    job: Option<Weak<Job<dyn Work>>>,
}

#[derive(Debug)]
struct Ended {
    begun: Arc<Begun>,
    written: u64,
    time: Duration,
}

impl Begun {
    pub(super) fn new(
        label: &Label,
        kind: CompactionKind,
        (rows, bytes): (usize, usize),
        job: Option<Weak<Job<dyn Work>>>,
    ) -> Arc<Self> {
        let (rows, bytes, at) = (rows as u64, bytes as u64, Instant::now());
        Arc::new(Self { label: label.clone(), kind, rows, bytes, at, job })
    }

    /// Tells the log of the program that it has ended.
    fn log(&self, written: u64, time: Duration) {
        let Self { label, kind, rows, bytes, .. } = self;
        let milliseconds = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let (relation, operator) = (&*label.relation, &*label.operator);
        debug!(relation, operator, ?kind, rows, bytes, written, milliseconds, "state compacted");
    }

    fn metrics(&self, now: Instant) -> CompactionMetrics {
        let job = self.job.as_ref().and_then(Weak::upgrade);
        let age = now.saturating_duration_since(self.at);
        CompactionMetrics {
            label: self.label.clone(),
            kind: self.kind,
            rows: self.rows,
            bytes: self.bytes,
            done: job.map_or(0, |job| job.progress().min(self.bytes)),
            written: None,
            time: age,
            age,
        }
    }
}

impl Compactions {
    pub(super) fn begin(&self, begun: &Arc<Begun>) {
        self.0.lock().running.push(begun.clone());
    }

    /// One has ended, with a result of so many bytes, or without one.
    pub(super) fn end(&self, begun: &Arc<Begun>, written: Option<usize>) {
        let (written, time) = (written.map(|bytes| bytes as u64), begun.at.elapsed());
        if let Some(written) = written.filter(|_| time >= LONG) {
            begun.log(written, time);
        }
        let state = &mut *self.0.lock();
        state.running.retain(|other| !Arc::ptr_eq(other, begun));
        let Some(written) = written else { return };
        if state.ended.len() == ENDED {
            state.ended.pop_front();
        }
        state.ended.push_back(Ended { begun: begun.clone(), written, time });
    }

    /// Those in progress, and then the last that have ended, the newest first.
    pub(super) fn list(&self, now: Instant) -> Vec<CompactionMetrics> {
        let state = self.0.lock();
        let running = state.running.iter().map(|begun| begun.metrics(now));
        let ended = state.ended.iter().rev().map(|ended| CompactionMetrics {
            done: ended.begun.bytes,
            written: Some(ended.written),
            time: ended.time,
            ..ended.begun.metrics(now)
        });
        running.chain(ended).collect()
    }
}
