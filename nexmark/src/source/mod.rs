//! Sources of events: one ordered sequence, divided into epochs of equal size. An epoch has one batch per stream.
//!
//! [`generator`] generates events, [`files`] stores them as Parquet, and [`Source`] selects the source of a run.
//! The sequence is the same for every source and every run: event *n* depends only on *n*. [`revised`] adds deletions
//! and updates.

pub mod files;
mod generator;
pub mod revised;

use std::path::PathBuf;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, RecordBatch, TimestampMicrosecondArray};
use arrow::datatypes::TimestampMicrosecondType;

use self::files::Files;
pub use self::generator::{Generator, RATE};
use self::revised::{Revised, Revision};
use crate::error::Result;
use crate::stream::Stream;

/// Some consecutive events.
#[derive(Clone, Debug)]
pub struct Events {
    /// The rows of each stream, in order; batches may be empty.
    pub batches: [RecordBatch; 3],
    /// Changes of earlier ones.
    pub revision: Option<Revision>,
}

impl Events {
    /// The rows of a stream.
    pub fn of(&self, stream: Stream) -> &RecordBatch {
        &self.batches[stream as usize]
    }

    /// Their size in memory, in bytes.
    pub fn bytes(&self) -> usize {
        let batches: usize = self.batches.iter().map(RecordBatch::get_array_memory_size).sum();
        batches + self.revision.as_ref().map_or(0, Revision::bytes)
    }

    /// The time of the last event in microseconds since 1970; zero without events.
    pub fn last(&self) -> i64 {
        let last = |stream: &Stream| {
            let times = self.of(*stream).column_by_name("date_time")?;
            let times = times.as_primitive::<TimestampMicrosecondType>();
            times.values().last().copied()
        };
        Stream::ALL.iter().filter_map(last).max().unwrap_or(0)
    }

    /// The rows of each stream, with the columns of its table.
    ///
    /// Processing time follows event time: all events of the epoch arrive at the time of the last one. It is
    /// therefore the same in every run.
    pub fn arrive(&self) -> Result<[RecordBatch; 3]> {
        let [person, auction, bid] = self.batches.clone();
        let arrival: ArrayRef =
            Arc::new(TimestampMicrosecondArray::from_value(self.last(), bid.num_rows()));
        let columns = bid.columns().iter().cloned().chain([arrival]).collect();
        let bid = RecordBatch::try_new(Stream::Bid.table_schema(), columns)?;
        Ok([person, auction, bid])
    }
}

/// The source of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// Events generated before the run and kept in memory until its end.
    Memory,
    /// Events generated while the queries run, on the same cores.
    Generator,
    /// Events in Parquet files of this folder. Missing files are written before the run.
    Parquet(PathBuf),
}

/// The number of events, and their division into epochs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Extent {
    /// The number of events.
    pub events: u64,
    /// Events per epoch.
    pub epoch_rows: u64,
    /// Events per second of event time.
    pub rate: u32,
}

impl Extent {
    /// The numbers of the events of each epoch, from zero.
    pub fn epochs(self) -> impl Iterator<Item = std::ops::Range<u64>> {
        let Self { events, epoch_rows, .. } = self;
        let step = epoch_rows.max(1);
        (0..events.div_ceil(step)).map(move |epoch| epoch * step..events.min((epoch + 1) * step))
    }
}

/// Events, ready to be read.
pub enum Input {
    /// In memory.
    Memory(Vec<Events>),
    /// Generated when needed.
    Generator(Extent),
    /// In files.
    Parquet(Box<Files>),
    /// Another one but in memory, with revisions.
    Revised(Box<Input>),
}

impl Input {
    /// Prepares a source for a run, with revisions if they are wanted.
    pub fn prepare(source: &Source, extent: Extent, revisions: bool) -> Result<Self> {
        let input = match source {
            Source::Memory if revisions => {
                return Ok(Self::Memory(
                    Revised::new(Generator::new(extent)).collect::<Result<_>>()?,
                ));
            }
            Source::Memory => Self::Memory(Generator::new(extent).collect::<Result<_>>()?),
            Source::Generator => Self::Generator(extent),
            Source::Parquet(folder) => Self::Parquet(Box::new(Files::ensure(folder, extent)?)),
        };
        Ok(if revisions { Self::Revised(Box::new(input)) } else { input })
    }

    /// All events, epoch by epoch.
    pub fn epochs(&self) -> Box<dyn Iterator<Item = Result<Events>> + '_> {
        match self {
            Self::Memory(epochs) => Box::new(epochs.iter().cloned().map(Ok)),
            Self::Generator(extent) => Box::new(Generator::new(*extent)),
            Self::Parquet(files) => Box::new(files.epochs()),
            Self::Revised(input) => Box::new(Revised::new(input.epochs())),
        }
    }

    /// The memory of the events that exist before and after a run, in bytes.
    pub fn bytes(&self) -> usize {
        match self {
            Self::Memory(epochs) => epochs.iter().map(Events::bytes).sum(),
            Self::Generator(_) | Self::Parquet(_) | Self::Revised(_) => 0,
        }
    }
}
