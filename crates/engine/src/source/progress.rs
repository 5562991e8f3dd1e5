//! The progress of sources.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

use super::Refusal;

/// The progress of an engine.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Progress {
    /// The inputs of tables, in the order they were defined.
    pub sources: Vec<SourceProgress>,
    /// The last epoch that was committed.
    pub committed: u64,
    /// The last epoch that is complete.
    pub complete: u64,
}

/// The progress of one input of a table.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SourceProgress {
    /// The table it fills.
    pub table: String,
    /// The connector's name; without one, its format.
    pub name: String,
    /// Where its rows come from.
    pub path: PathBuf,
    /// Its state.
    pub state: SourceState,
    /// How many rows it has brought in, in transactions that are committed.
    pub rows: u64,
    /// How many rows were refused.
    pub refused: u64,
    /// How many bytes were read, as they are stored.
    pub bytes: u64,
    /// The first ten rows that were refused.
    pub messages: Vec<Refusal>,
}

/// The state of an input.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SourceState {
    /// It has not been started.
    Waiting,
    /// It is being read, or waits for another input of the same table.
    Running,
    /// It has been read to its end, and its last epoch is complete; or its table was dropped.
    Finished,
    /// It cannot be read any further.
    Failed {
        /// Why.
        message: String,
    },
}

/// The counters of an input. Only its own thread writes them.
#[derive(Debug, Default)]
pub(super) struct Counters {
    rows: AtomicU64,
    refused: AtomicU64,
    bytes: AtomicU64,
}

impl Counters {
    pub(super) fn add(&self, rows: u64, refused: u64, bytes: u64) {
        self.rows.fetch_add(rows, Ordering::Relaxed);
        self.refused.fetch_add(refused, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(super) fn rows(&self) -> u64 {
        self.rows.load(Ordering::Relaxed)
    }

    pub(super) fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }
}
