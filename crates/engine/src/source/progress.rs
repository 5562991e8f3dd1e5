//! The progress of sources.

use std::path::PathBuf;
use std::time::SystemTime;

use super::{Refusal, SourcePosition};

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
    /// How many inputs of the table come before it.
    pub number: u32,
    /// The connector's name; without one, its format.
    pub name: String,
    /// What it is read by: `file`, or the [name](super::System::name) of a transport.
    pub kind: String,
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
    /// How many bytes of a file that is followed were read before the engine was opened.
    pub(crate) begun: u64,
    /// The rows of the last 60 to 70 seconds.
    pub minute_rows: u64,
    /// The bytes of the last 60 to 70 seconds.
    pub minute_bytes: u64,
    /// When it last brought rows in.
    pub last_rows: Option<SystemTime>,
    /// Where reading continues, if it has begun and the path can be read again from there.
    pub position: Option<SourcePosition>,
    /// How many rows there are after those that it has read, if it is no file, and the source knows.
    pub unread: Option<u64>,
    /// How many bytes there are after those that it has read, if it is no file, and the source knows them instead.
    pub unread_bytes: Option<u64>,
    /// The first ten rows that were refused.
    pub messages: Vec<Refusal>,
}

/// As much as a source knows of what it has not read.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Unread {
    pub(crate) rows: Option<u64>,
    pub(crate) bytes: Option<u64>,
}

/// The state of an input.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SourceState {
    /// It has not been started.
    Waiting,
    /// It is being read, or waits for another input of the same table.
    Running,
    /// It keeps its position and brings no rows in until `ALTER SOURCE … RESUME`.
    Paused,
    /// It has been read to its end, and its last epoch is complete; or its table was dropped.
    Finished,
    /// It cannot be read any further.
    Failed {
        /// Why.
        message: String,
    },
}

impl SourceState {
    /// As system relations have it.
    pub(crate) fn word(&self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Running => "running",
            Self::Paused => "paused",
            Self::Finished => "finished",
            Self::Failed { .. } => "failed",
        }
    }
}
