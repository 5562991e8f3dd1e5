//! A journal in memory.

use std::collections::VecDeque;
use std::fmt::{self, Debug, Formatter};
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;

use crate::error::{Error, Result};
use crate::journal::{Journal, Position, Replay};

/// A journal in memory, for as long as there is a clone of it. Clones are the same journal.
#[derive(Clone, Default)]
pub struct MemoryJournal {
    records: Arc<Mutex<Records>>,
}

#[derive(Default)]
struct Records {
    /// The position of the first record that is kept.
    first: u64,
    kept: VecDeque<Bytes>,
    /// The position after the last record that was synced.
    durable: u64,
}

impl MemoryJournal {
    /// A journal without records.
    pub fn new() -> MemoryJournal {
        MemoryJournal::default()
    }

    fn records(&self) -> MutexGuard<'_, Records> {
        // No change is ever half done, so a panic has left nothing inconsistent.
        self.records.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The positions, without the records.
impl Debug for MemoryJournal {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_tuple("MemoryJournal").field(&self.records().range()).finish()
    }
}

impl Records {
    fn range(&self) -> Range<u64> {
        self.first..self.first + self.kept.len() as u64
    }

    fn missing(&self, operation: &'static str, position: Position) -> Error {
        let (place, range) = ("mem:journal".to_owned(), self.range());
        Error::NoRecord { place, operation, position: position.0, range }
    }
}

impl Journal for MemoryJournal {
    fn append(&self, record: &[u8]) -> Result<Position> {
        let mut records = self.records();
        records.kept.push_back(Bytes::copy_from_slice(record));
        Ok(Position(records.range().end - 1))
    }

    fn write(&self, upto: Position) -> Result<()> {
        self.sync(upto)
    }

    fn sync(&self, upto: Position) -> Result<()> {
        let mut records = self.records();
        if upto.0 >= records.range().end {
            return Err(records.missing("sync", upto));
        }
        records.durable = records.durable.max(upto.0 + 1);
        Ok(())
    }

    fn replay(&self, from: Position) -> Result<Replay> {
        let records = self.records();
        let range = records.range();
        if !(range.start..=range.end).contains(&from.0) {
            return Err(records.missing("replay", from));
        }
        let durable = from.0..records.durable;
        let first = records.first;
        let kept = records.kept.range((from.0 - first) as usize..);
        let kept: Vec<Bytes> = kept.cloned().collect();
        Ok(Box::new(durable.zip(kept).map(|(position, record)| Ok((Position(position), record)))))
    }

    fn release(&self, before: Position) -> Result<()> {
        let mut records = self.records();
        // As in files, records that are not durable stay.
        let released = before.0.min(records.durable).saturating_sub(records.first);
        records.kept.drain(..released as usize);
        records.first += released;
        Ok(())
    }

    fn range(&self) -> Range<Position> {
        let range = self.records().range();
        Position(range.start)..Position(range.end)
    }
}
