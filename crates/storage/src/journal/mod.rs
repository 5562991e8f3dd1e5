//! A durable, ordered log of records.
//!
//! A [`Journal`] takes records, which are any bytes, and gives each the next [`Position`]. [`append`](Journal::append)
//! only queues a record; [`write`](Journal::write) hands it to the operating system, and [`sync`](Journal::sync) waits until
//! it is durable. Many threads that wait share one write and
//! one sync of the file: the first to arrive does both for all records that were queued meanwhile, and the journal has no
//! thread of its own.
//!
//! ```text
//!            append                    sync                     release
//!  records ─────────▶ queue ─────────────────────▶ segment ──▶ … ──▶ deleted
//!                     (memory)   one write, fsync  (files, one written, the others complete)
//! ```
//!
//! Read the files in this order:
//!
//! - this one: what a journal is;
//! - [`committer`]: the queue, and which thread writes it;
//! - [`mod@format`]: the bytes of a segment;
//! - [`segments`]: the file that is written, and when the next is begun;
//! - [`reader`]: reading a segment;
//! - [`recovery`]: what was left by a crash, and [`known_end`]: what was not;
//! - [`mod@file`]: all of it together;
//! - [`survey`]: looking at all files without changing anything, [`copy`]: copying them while they are written, and [`rewrite`]: with other records;
//! - [`cut`]: taking the last records away;
//! - [`memory`]: a journal without a disk;
//! - [`sent`]: records on their way to a journal on another machine, and back.

mod committer;
mod copy;
mod cut;
mod file;
mod format;
mod known_end;
mod memory;
mod reader;
mod recovery;
mod rewrite;
mod segments;
mod sent;
mod survey;

use std::fmt::{self, Debug, Display, Formatter};
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;

use crate::error::{Error, Result};

pub use committer::{Committer, Log};
pub use copy::copy_journal;
pub use cut::cut_journal;
pub use file::{FileJournal, FileJournalOptions};
pub use format::Group;
pub use known_end::KnownEnd;
pub use memory::MemoryJournal;
pub use rewrite::rewrite_journal;
pub use sent::SentRecords;
pub use survey::{JournalDamage, JournalSurvey, SurveyedRecord, survey_journal};

/// The place of a record in a journal: how many records were appended before it since the journal was new.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position(pub u64);

impl Display for Position {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        Display::fmt(&self.0, f)
    }
}

/// The records of a journal, in order. Each is read when it is asked for. After an error there are no more.
pub type Replay = Box<dyn Iterator<Item = Result<(Position, Bytes)>> + Send>;

/// A durable, totally ordered log of records.
///
/// After a crash it has every record that was synced, and after those perhaps some that were not, in the order in which
/// they were appended and without a gap. The next record appended takes the position after them.
///
/// A failed write or sync is final, as it is unknown what of it is on the disk: from then on `append`, `sync` and
/// `release` fail with the same error. What was synced before is safe, and can be replayed when the journal is opened
/// again.
///
/// A journal that is dropped forgets records that were only queued.
///
/// All methods may be called from several threads at once.
pub trait Journal: Send + Sync + Debug {
    /// Queues a record and returns its position: one more than that of the record before it.
    ///
    /// It waits for the disk only if the queue is full, or the record does not fit into it.
    ///
    /// # Errors
    ///
    /// [`Error::Full`] if the disk is full, and other errors of the system. They are final.
    fn append(&self, record: &[u8]) -> Result<Position>;

    /// Returns once the operating system has this record and all before it: then they survive the end of the process, but not
    /// that of the machine.
    ///
    /// # Errors
    ///
    /// As [`sync`](Journal::sync).
    fn write(&self, upto: Position) -> Result<()>;

    /// Returns once this record and all before it are durable.
    ///
    /// # Errors
    ///
    /// [`Error::NoRecord`] if the record was never appended; [`Error::Full`]
    /// if the disk is full, and other errors of the system, which are final.
    fn sync(&self, upto: Position) -> Result<()>;

    /// The records from this position on, up to the last that is durable now. Where the journal ends, there are none.
    ///
    /// Records that are released while they are replayed may be missing: then the iterator ends with an error.
    ///
    /// # Errors
    ///
    /// [`Error::NoRecord`] if the position was released or is past the end. The iterator's own
    /// errors include [`Error::Corrupt`].
    fn replay(&self, from: Position) -> Result<Replay>;

    /// Allows the journal to delete all records before this position. It deletes whole segments, and may keep others.
    /// Positions continue, also when all records were released.
    ///
    /// Records must be durable before anything that lasts, such as a manifest, names a position after them. A crash would
    /// take them away, and others would be given their positions.
    fn release(&self, before: Position) -> Result<()>;

    /// The positions of the records it has: from the first that is not deleted to the one that the next record will take.
    fn range(&self) -> Range<Position>;

    /// Has this called once if the journal learns by itself, and not by a call, that it cannot be written to any more: another process writes to
    /// it.
    fn on_failure(&self, _act: Box<dyn FnOnce(Error) + Send>) {}

    /// Where a record is, for messages.
    fn place(&self, record: Position) -> String {
        format!("record {record} of the journal")
    }
}

/// A journal on another disk or another machine, before it is opened.
pub trait Elsewhere: Send + Sync + Debug {
    /// Where it is, as users write it.
    fn url(&self) -> String;

    /// Opens it to be written, and returns its identity, which no other journal has. All records that it has are durable then. Who
    /// has opened it before cannot write to it any more.
    ///
    /// # Errors
    ///
    /// If the journal at this place is not the one that is expected; nothing is changed then.
    fn open(&self, expected: &Expected) -> Result<(String, Arc<dyn Journal>)>;

    /// Follows its writer under a name of one's own, and returns its identity too. What the follower expects is kept for it from then on, also
    /// while it is away.
    ///
    /// # Errors
    ///
    /// If there is no such journal, or it is not the one that is expected.
    fn follow(&self, expected: &Expected, follower: &str) -> Result<(String, Arc<dyn Followed>)>;
}

/// What who opens a journal elsewhere knows of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Expected {
    /// Its identity. Without one it is made if it does not exist.
    pub identity: Option<String>,
    /// Records that it has: it may have earlier and later ones. Without them any will do.
    pub records: Option<Range<Position>>,
}

/// A journal as a follower of its writer has it: it reads records once they are durable, and cannot write.
///
/// [`append`](Journal::append) fails. [`range`](Journal::range) is of the durable records that the follower has heard of.
/// [`release`](Journal::release) says that the follower needs none before a position: until it does, the journal keeps them for it, as far as
/// it keeps records for followers at all.
pub trait Followed: Journal {
    /// The durable records from this position on: those that are there, and then those that come.
    fn follow(&self, from: Position) -> Box<dyn Arriving>;

    /// The last news of the journal.
    fn heard(&self) -> Heard;

    /// Follows it no more: the journal keeps nothing for this follower.
    fn leave(&self) -> Result<()>;
}

/// Durable records in their order, as they come.
pub trait Arriving: Send + Debug {
    /// The next record, if it comes within this time.
    ///
    /// While the journal cannot be reached nothing comes. After an error there are no more.
    ///
    /// # Errors
    ///
    /// [`Error::NoRecord`] and others of what keeps the journal, if the record is not there any more or is damaged.
    fn next(&mut self, patience: Duration) -> Result<Option<(Position, Bytes)>>;
}

/// What a follower knows of a journal.
#[derive(Clone, Copy, Debug)]
pub struct Heard {
    /// The term of the last writer.
    pub term: u64,
    /// All records before this position are durable.
    pub end: Position,
    /// The writer needs no record before this position.
    pub released: Position,
    /// When the follower has heard that.
    pub at: Instant,
}
