//! Where events come from: one ordered sequence, cut into epochs of equally many events, each of which is a
//! batch per stream.
//!
//! [`generator`] makes them, [`files`] keeps them as Parquet; [`Source`] says which of the ways a run takes.
//! The sequence is the same however it is made, and each time: event number *n* depends on *n* alone.

pub mod files;
mod generator;

use std::path::PathBuf;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, RecordBatch, TimestampNanosecondArray};
use arrow::datatypes::TimestampNanosecondType;

use self::files::Files;
pub use self::generator::{Generator, RATE};
use crate::error::Result;
use crate::stream::Stream;

/// Some consecutive events.
#[derive(Clone, Debug)]
pub struct Events {
    /// The rows of each stream, in order; batches may be empty.
    pub batches: [RecordBatch; 3],
}

impl Events {
    /// The rows of a stream.
    pub fn of(&self, stream: Stream) -> &RecordBatch {
        &self.batches[stream as usize]
    }

    /// How much memory they take.
    pub fn bytes(&self) -> usize {
        self.batches.iter().map(RecordBatch::get_array_memory_size).sum()
    }

    /// When the last of them happens: nanoseconds since 1970. Zero if there are none.
    pub fn last(&self) -> i64 {
        let last = |stream: &Stream| {
            let times = self.of(*stream).column_by_name("date_time")?;
            let times = times.as_primitive::<TimestampNanosecondType>();
            times.values().last().copied()
        };
        Stream::ALL.iter().filter_map(last).max().unwrap_or(0)
    }

    /// The rows of each stream with the columns of its table.
    ///
    /// The clock of whoever drives the events is theirs: they arrive, together, when the last one happens.
    /// So processing time passes at the rate of the generator, and is the same in every run.
    pub fn arrive(&self) -> Result<[RecordBatch; 3]> {
        let [person, auction, bid] = self.batches.clone();
        let arrival: ArrayRef =
            Arc::new(TimestampNanosecondArray::from_value(self.last(), bid.num_rows()));
        let columns = bid.columns().iter().cloned().chain([arrival]).collect();
        let bid = RecordBatch::try_new(Stream::Bid.table_schema(), columns)?;
        Ok([person, auction, bid])
    }
}

/// What a run reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// Events that are made before the run and stay in memory to its end.
    Memory,
    /// Events that are made while the queries run, on the same cores.
    Generator,
    /// Events in Parquet files of this folder; those that are not there are written before the run.
    Parquet(PathBuf),
}

/// How many events there are, and how they are cut.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Extent {
    /// Events in all.
    pub events: u64,
    /// Events per epoch.
    pub epoch_rows: u64,
    /// Events in each second of event time.
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
    /// As they are made.
    Generator(Extent),
    /// In files.
    Parquet(Box<Files>),
}

impl Input {
    /// Makes ready what `source` needs before a run.
    pub fn prepare(source: &Source, extent: Extent) -> Result<Self> {
        Ok(match source {
            Source::Memory => Self::Memory(Generator::new(extent).collect::<Result<_>>()?),
            Source::Generator => Self::Generator(extent),
            Source::Parquet(folder) => Self::Parquet(Box::new(Files::ensure(folder, extent)?)),
        })
    }

    /// All events, an epoch at a time.
    pub fn epochs(&self) -> Box<dyn Iterator<Item = Result<Events>> + '_> {
        match self {
            Self::Memory(epochs) => Box::new(epochs.iter().cloned().map(Ok)),
            Self::Generator(extent) => Box::new(Generator::new(*extent)),
            Self::Parquet(files) => Box::new(files.epochs()),
        }
    }

    /// How much memory the events take that are there before and after a run.
    pub fn bytes(&self) -> usize {
        match self {
            Self::Memory(epochs) => epochs.iter().map(Events::bytes).sum(),
            Self::Generator(_) | Self::Parquet(_) => 0,
        }
    }
}
