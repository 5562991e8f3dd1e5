//! State that outlives an engine, in memory.

use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use alluvium::Builder;
use alluvium::unstable::BuilderParts;
use alluvium_storage::error::Failure;
use alluvium_storage::{
    Arriving, ClaimedStorage, Elsewhere, Expected, Followed, Heard, Journal, MemoryJournal,
    MemoryManifests, MemoryStorage, Position, Replay, Result,
};
use bytes::Bytes;

/// The state that an engine leaves to the next one: its journal and its checkpoints.
#[derive(Clone, Debug, Default)]
pub(crate) struct Kept {
    journal: Arc<MemoryJournal>,
    manifests: Arc<MemoryManifests>,
    blobs: MemoryStorage,
}

impl Kept {
    /// Sets an engine up that begins with it.
    pub(crate) fn resume(&self, builder: Builder) -> alluvium::Result<Builder> {
        let blobs = ClaimedStorage::open(Arc::new(self.blobs.clone()));
        let blobs = blobs.map_err(|error| alluvium::Error::data(error.to_string()))?;
        Ok(builder.store(self.journal.clone(), self.manifests.clone(), Arc::new(blobs)))
    }

    /// Sets an engine up that follows the one which has this state, with checkpoints of its own.
    pub(crate) fn follow(&self, builder: Builder) -> alluvium::Result<Builder> {
        let own = Kept { journal: self.journal.clone(), ..Kept::default() };
        let beside = Beside { journal: self.journal.clone() };
        Ok(own.resume(builder)?.elsewhere(Arc::new(beside)).follow("standby"))
    }
}

/// A journal in memory, as those have it who follow its writer. Nothing keeps the writer from writing once another one has opened it.
#[derive(Clone, Debug)]
struct Beside {
    journal: Arc<MemoryJournal>,
}

impl Beside {
    /// The position after the last durable record.
    fn durable(&self) -> Position {
        let start = self.journal.range().start;
        let records = self.journal.replay(start).map_or(0, |records| records.count() as u64);
        Position(start.0 + records)
    }
}

impl Elsewhere for Beside {
    fn url(&self) -> String {
        "mem:journal".to_owned()
    }

    fn open(&self, _: &Expected) -> Result<(String, Arc<dyn Journal>)> {
        Ok((self.url(), self.journal.clone()))
    }

    fn follow(&self, _: &Expected, _: &str) -> Result<(String, Arc<dyn Followed>)> {
        Ok((self.url(), Arc::new(self.clone())))
    }
}

impl Journal for Beside {
    fn append(&self, _: &[u8]) -> Result<Position> {
        let cause = io::Error::other("another one writes to it");
        Err(Failure::new("append to", self.url(), cause).error())
    }

    fn write(&self, _: Position) -> Result<()> {
        Ok(())
    }

    fn sync(&self, _: Position) -> Result<()> {
        Ok(())
    }

    fn replay(&self, from: Position) -> Result<Replay> {
        self.journal.replay(from)
    }

    fn release(&self, _: Position) -> Result<()> {
        Ok(())
    }

    fn range(&self) -> Range<Position> {
        self.journal.range().start..self.durable()
    }
}

impl Followed for Beside {
    fn follow(&self, from: Position) -> Box<dyn Arriving> {
        Box::new(Coming { journal: self.journal.clone(), next: from })
    }

    fn heard(&self) -> Heard {
        let Range { start, end } = self.range();
        Heard { term: 1, end, released: start, at: Instant::now() }
    }

    fn leave(&self) -> Result<()> {
        Ok(())
    }
}

/// The records from one on.
#[derive(Debug)]
struct Coming {
    journal: Arc<MemoryJournal>,
    next: Position,
}

impl Arriving for Coming {
    fn next(&mut self, patience: Duration) -> Result<Option<(Position, Bytes)>> {
        match self.journal.replay(self.next)?.next().transpose()? {
            Some((position, record)) => {
                self.next = Position(position.0 + 1);
                Ok(Some((position, record)))
            }
            None => {
                thread::sleep(patience.min(Duration::from_millis(1)));
                Ok(None)
            }
        }
    }
}
