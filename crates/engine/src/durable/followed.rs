//! A journal that another engine writes to, and how far a standby has replayed it.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use alluvium_storage::{Followed, Heard, Position};
use parking_lot::{Mutex, MutexGuard};

use crate::error::{Error, Result};

/// No transaction is open.
const NONE: u64 = u64::MAX;

/// How far a standby is behind the engine that it follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Lag {
    /// The last epoch that is complete here.
    pub epoch: u64,
    /// How many durable records of the journal it has heard of and not replayed.
    pub records: u64,
    /// How long it has known of the oldest of them.
    pub behind: Duration,
    /// How long it has heard nothing of the journal, which tells of itself each second.
    pub silence: Duration,
}

/// A standby that was promoted: it writes from now on.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Promoted {
    /// The last epoch of the engine that it followed.
    pub epoch: u64,
    /// Why inputs have not started, if one could not be opened. Statements that read try again.
    pub not_started: Option<Error>,
}

/// What a standby does besides what all engines do. When it is dropped it ends.
pub(crate) trait Standing: Send + Sync {
    /// Takes the place of the engine that is followed.
    fn promote(&self) -> Result<Promoted>;
}

/// The journal that a standby follows.
pub(crate) struct Following {
    journal: Arc<dyn Followed>,
    /// Where the next record is that it replays.
    end: AtomicU64,
    /// The first record of transactions whose epochs have not come.
    first_open: AtomicU64,
    /// Ends of the journal that were heard of and are not reached, each later than the one before.
    heard: Mutex<VecDeque<Heard>>,
    /// What the writer needed no more when it had an end that is reached.
    released: AtomicU64,
    /// Held while a record is replayed, of which a checkpoint has all or nothing.
    replaying: Mutex<()>,
}

impl Following {
    pub(crate) fn new(journal: Arc<dyn Followed>) -> Self {
        let (end, first_open) = (AtomicU64::new(0), AtomicU64::new(NONE));
        let (heard, released, replaying) = Default::default();
        Self { journal, end, first_open, heard, released, replaying }
    }

    pub(crate) fn journal(&self) -> &Arc<dyn Followed> {
        &self.journal
    }

    /// Waits until no record is replayed, and keeps the next one from being replayed until this is dropped.
    pub(crate) fn hold(&self) -> MutexGuard<'_, ()> {
        self.replaying.lock()
    }

    /// The last news, which count from now on as something to be reached.
    pub(crate) fn hear(&self) -> Heard {
        let heard = self.journal.heard();
        let mut ends = self.heard.lock();
        match ends.back_mut() {
            _ if heard.end <= self.end() => self.reached(&heard),
            Some(last) if last.end >= heard.end => {
                last.released = last.released.max(heard.released)
            }
            _ => ends.push_back(heard),
        }
        heard
    }

    /// All records before `end` are replayed. Those of transactions whose epochs have not come begin with `first_open`.
    pub(crate) fn replayed(&self, end: Position, first_open: Option<Position>) {
        self.end.store(end.0, Ordering::Release);
        self.first_open.store(first_open.map_or(NONE, |first| first.0), Ordering::Release);
        let mut ends = self.heard.lock();
        while let Some(heard) = ends.pop_front_if(|heard| heard.end <= end) {
            self.reached(&heard);
        }
    }

    /// The writer needs no record before this position, and of the transactions that have ended by then all records are replayed.
    pub(crate) fn released(&self) -> Position {
        Position(self.released.load(Ordering::Acquire))
    }

    fn reached(&self, heard: &Heard) {
        self.released.fetch_max(heard.released.0, Ordering::AcqRel);
    }

    pub(crate) fn end(&self) -> Position {
        Position(self.end.load(Ordering::Acquire))
    }

    pub(crate) fn first_open(&self) -> Option<Position> {
        let first = self.first_open.load(Ordering::Acquire);
        (first != NONE).then_some(Position(first))
    }

    /// How far what is replayed is behind; the last epoch that is complete is known elsewhere.
    pub(crate) fn lag(&self, epoch: u64) -> Lag {
        let heard = self.hear();
        let records = heard.end.0.saturating_sub(self.end().0);
        let oldest = self.heard.lock().front().map_or(heard.at, |oldest| oldest.at);
        let behind = if records == 0 { Duration::ZERO } else { oldest.elapsed() };
        Lag { epoch, records, behind, silence: heard.at.elapsed() }
    }
}
