//! The task of a side.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use alluvium_nexmark::query::Query;
use alluvium_nexmark::source::{Extent, Source};
use serde_json::{Value, json};

use crate::mode::Mode;

/// A query over some events.
#[derive(Clone, Debug)]
pub struct Task {
    /// The query.
    pub query: Query,
    /// The conditions.
    pub mode: Mode,
    /// The events, and their division into epochs.
    pub extent: Extent,
    /// The number of workers.
    pub workers: NonZeroUsize,
    /// How many bytes of memory the side may use beside the program and the events; the rest of its state is in files.
    pub memory: Option<usize>,
    /// Where these files are.
    pub directory: PathBuf,
}

/// The goal of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Goal {
    /// The time, over events that exist before.
    Time,
    /// The memory, with events that are made epoch by epoch.
    Memory,
    /// The checksums of the view.
    Answer,
}

impl Goal {
    /// Where the events come from. Those that exist before would be released during the run, so that the
    /// memory of a side cannot be told from theirs; with a budget, they would take it.
    pub fn source(self, task: &Task) -> Source {
        match self {
            Self::Time if task.memory.is_none() => Source::Memory,
            Self::Time | Self::Memory | Self::Answer => Source::Generator,
        }
    }
}

/// The resources that a run has used, from the first event to the completion of the last epoch.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Figures {
    /// The time in seconds.
    pub seconds: f64,
    /// The processor time of the process in seconds.
    pub processor: f64,
    /// The largest growth of resident memory in bytes.
    pub used_bytes: u64,
}

impl Figures {
    /// As JSON.
    pub fn to_json(&self) -> Value {
        let Self { seconds, processor, used_bytes } = self;
        json!({ "seconds": seconds, "processor_s": processor, "used_bytes": used_bytes })
    }

    /// From JSON; `None` if a field is missing.
    pub fn from_json(value: &Value) -> Option<Self> {
        Some(Self {
            seconds: value.get("seconds")?.as_f64()?,
            processor: value.get("processor_s")?.as_f64()?,
            used_bytes: value.get("used_bytes")?.as_u64()?,
        })
    }
}
