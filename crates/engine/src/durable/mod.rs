//! The durable part of the engine: a journal of definitions and epochs, and checkpoints.
//!
//! An engine with a state directory appends a [`Record`] to its [`Journal`] for every definition that succeeds and for
//! every epoch, in the order of the [sequencer](crate::sequencer). An epoch is complete, and so visible to queries and
//! subscribers, once it is computed on every worker *and* its record is durable.
//!
//! A [`Checkpoint`](checkpoint::Checkpoint) has all definitions and names all batches of all dataflows at the end of an
//! epoch. It saves the engine itself as [facts](crate::sequencer::Persisted), also those that are [kept](persisted) with connectors.
//! It is taken from time to time ([`schedule`]) by the [`checkpointer`], and shortens the journal.
//!
//! When the engine starts it reads the last checkpoint ([`restore`]): it executes the definitions again, and their
//! dataflows start with the batches they had. Then it replays what the journal has of later ([`resume`]): it executes
//! definitions and commits epochs again, under the same numbers and at the same times.
//!
//! [`Durability`](flusher::Durability) says whether commits wait for the disk.
//!
//! - [`record`]: the contents of the journal, with [`portion`]s of inputs and [`refused`] rows; [`functions`]: those that views need of
//!   the program, for which the journal is searched [`ahead`] of its replay; [`versions`]: how earlier versions have written it;
//! - [`directory`]: the state directory, and who may use it; [`damage`]: the messages if it is damaged, and
//!   [`known_end`]: how far its journal is known to go, and
//!   [`elsewhere`]: a journal that is not in it;
//! - [`followed`]: a journal that another engine writes to, and [`standby`]: the engine that replays it as it comes, some of its
//!   [`past`] once more.

mod ahead;
mod archive;
pub(crate) mod checkpoint;
pub(crate) mod checkpointer;
pub(crate) mod damage;
pub(crate) mod directory;
pub(crate) mod elsewhere;
pub(crate) mod flusher;
pub(crate) mod followed;
mod functions;
pub(crate) mod known_end;
mod past;
pub(crate) mod persisted;
pub(crate) mod portion;
pub(crate) mod record;
pub(crate) mod refused;
pub(crate) mod restore;
pub(crate) mod resume;
pub(crate) mod schedule;
pub(crate) mod standby;
mod versions;

use std::fmt::Display;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::Thread;

use alluvium_storage::{Journal, Position};
use alluvium_trace::Epoch;

use crate::error::{Error, Result};
use crate::poison::Poison;
use crate::worker::Progress;
use flusher::Durability;
use followed::Following;
use record::Record;

/// The journal of an engine that has one.
pub(crate) struct Durable {
    journal: OnceLock<Arc<dyn Journal>>,
    /// The journal of another engine, if this one is or was a standby.
    followed: OnceLock<Following>,
    /// Whether there is a journal, also one that is still being replayed.
    is_expected: AtomicBool,
    /// Whether commits are complete before they are on the disk.
    is_late: AtomicBool,
    /// How many bytes were recorded since the last checkpoint.
    recorded: AtomicU64,
    /// Who takes checkpoints, and of how many bytes.
    checkpoints: OnceLock<(u64, Thread)>,
    progress: Arc<Progress>,
    poison: Arc<Poison>,
}

impl Durable {
    /// Without a journal.
    pub(crate) fn new(progress: Arc<Progress>, poison: Arc<Poison>) -> Self {
        let (journal, followed, is_expected) = Default::default();
        let (is_late, recorded, checkpoints) = Default::default();
        Self { journal, followed, is_expected, is_late, recorded, checkpoints, progress, poison }
    }

    /// What is recorded is that of another engine, until a journal is attached.
    pub(crate) fn follow(&self, following: Following) {
        // It follows one, before the engine has any user.
        let _ = self.followed.set(following);
    }

    /// The journal of another engine, as long as it is followed.
    pub(crate) fn following(&self) -> Option<&Following> {
        self.followed.get().filter(|_| !self.is_attached())
    }

    /// Nothing needs to be kept any more for what was followed.
    pub(crate) fn leave_followed(&self) -> alluvium_storage::Result<()> {
        self.followed.get().map_or(Ok(()), |following| following.journal().leave())
    }

    /// Whether what is recorded is that of another engine.
    pub(crate) fn is_following(&self) -> bool {
        self.following().is_some()
    }

    /// There will be a journal.
    pub(crate) fn expect(&self) {
        self.is_expected.store(true, Ordering::Relaxed);
    }

    /// Whether there is a journal, or will be when it is replayed.
    pub(crate) fn is_expected(&self) -> bool {
        self.is_expected.load(Ordering::Relaxed)
    }

    /// Whether records are being replayed.
    pub(crate) fn is_replaying(&self) -> bool {
        self.is_expected() && !self.is_attached()
    }

    /// From now on everything is recorded in this journal, which has all epochs up to `last` already.
    pub(crate) fn attach(&self, journal: Arc<dyn Journal>, last: Epoch, durability: Durability) {
        match durability {
            Durability::Always => self.progress.require_durable(last),
            Durability::Interval(_) | Durability::Never => {
                self.is_late.store(true, Ordering::Relaxed);
            }
        }
        let poison = self.poison.clone();
        journal.on_failure(Box::new(move |error| poison.spread(unwritable(&error))));
        // It is attached once, before the engine has any user or while it refuses all that would be recorded.
        let _ = self.journal.set(journal);
    }

    /// Whether there is a journal that records.
    pub(crate) fn is_attached(&self) -> bool {
        self.journal.get().is_some()
    }

    /// Queues a record, if there is a journal. The caller holds the lock that orders records.
    pub(crate) fn append(&self, record: &Record) -> Result<Option<Position>> {
        let Some(journal) = self.journal.get() else { return Ok(None) };
        let bytes = record.encode()?;
        let appended = journal.append(&bytes);
        self.count(bytes.len() as u64);
        appended.map(Some).map_err(|error| self.fail(&error))
    }

    /// The position of the next record.
    pub(crate) fn end(&self) -> Position {
        match (self.journal.get(), self.followed.get()) {
            (Some(journal), _) => journal.range().end,
            (None, Some(following)) => following.end(),
            (None, None) => Position(0),
        }
    }

    /// The first record that may be needed of transactions whose epochs have not come, of those that are followed.
    pub(crate) fn first_open(&self) -> Option<Position> {
        self.following().and_then(Following::first_open)
    }

    /// How many bytes were recorded since the last checkpoint.
    pub(crate) fn recorded(&self) -> u64 {
        self.recorded.load(Ordering::Relaxed)
    }

    /// Wakes this thread from now on when the first byte is recorded after a checkpoint, and when so many are. Nothing is recorded meanwhile.
    pub(crate) fn wake_at(&self, bytes: u64, thread: Thread) {
        let (_, thread) = self.checkpoints.get_or_init(|| (bytes, thread));
        // Earlier records count too.
        thread.unpark();
    }

    /// Counts the work to replay after a restart, whether or not it is recorded itself.
    pub(crate) fn count(&self, bytes: u64) {
        let before = self.recorded.fetch_add(bytes, Ordering::Relaxed);
        if let Some((enough, thread)) = self.checkpoints.get()
            && (before == 0 || (before < *enough && before + bytes >= *enough))
        {
            thread.unpark();
        }
    }

    /// A checkpoint has what was recorded up to now.
    pub(crate) fn forget_recorded(&self) {
        self.recorded.store(0, Ordering::Relaxed);
    }

    /// Lets go of the records before this one.
    pub(crate) fn release(&self, before: Position) -> alluvium_storage::Result<()> {
        if let Some(following) = self.following() {
            // If the journal cannot be reached it keeps more than it has to, until the next checkpoint.
            let _ = following.journal().release(before);
        }
        self.journal.get().map_or(Ok(()), |journal| journal.release(before))
    }

    /// Waits until a record is durable, and with it all before it; none without a journal.
    pub(crate) fn sync(&self, record: Option<Position>) -> Result<()> {
        match (self.journal.get(), record) {
            (Some(journal), Some(record)) => {
                journal.sync(record).map_err(|error| self.fail(&error))
            }
            _ => Ok(()),
        }
    }

    /// Waits until a record is where those of epochs have to be: durable or, if these need not be, with the operating system.
    pub(crate) fn settle(&self, record: Option<Position>) -> Result<()> {
        match self.is_late.load(Ordering::Relaxed) {
            true => self.write(record),
            false => self.sync(record),
        }
    }

    /// Waits until the operating system has a record, and with it all before it; none without a journal.
    fn write(&self, record: Option<Position>) -> Result<()> {
        match (self.journal.get(), record) {
            (Some(journal), Some(record)) => {
                journal.write(record).map_err(|error| self.fail(&error))
            }
            _ => Ok(()),
        }
    }

    /// Waits until the record of an epoch is durable, which then may become complete. If epochs need not be
    /// durable, waits until the operating system has it.
    pub(crate) fn sync_epoch(&self, epoch: Epoch, record: Option<Position>) -> Result<()> {
        if self.is_late.load(Ordering::Relaxed) {
            return self.write(record);
        }
        self.sync(record)?;
        if record.is_some() {
            self.progress.set_durable(epoch);
        }
        Ok(())
    }

    /// Waits until everything that was recorded is durable.
    pub(crate) fn sync_all(&self) -> Result<()> {
        let Some(journal) = self.journal.get() else { return Ok(()) };
        let Range { start, end } = journal.range();
        match start < end {
            true => self.sync(Some(Position(end.0 - 1))),
            false => Ok(()),
        }
    }

    /// It is unknown which of the last records are on the disk: the engine stops.
    fn fail(&self, error: &dyn Display) -> Error {
        let message = unwritable(error);
        self.poison.spread(message.clone());
        self.poison.check().err().unwrap_or(Error::Poisoned { message })
    }
}

fn unwritable(error: &dyn Display) -> String {
    format!(
        "the journal cannot be written: {error}; transactions that were committed are safe, of those in progress each \
         is either whole or gone"
    )
}
