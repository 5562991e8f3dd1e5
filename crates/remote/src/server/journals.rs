//! The journals of a server, and who writes to each.
//!
//! # Design
//!
//! A journal is locked by who opens it, appends to it or syncs it. An opening without a term takes the next one, and one with a term is of a
//! writer whose connection was lost. Each begins a *session*: what comes from another one afterwards, such as records that were on their way
//! when the connection was lost, is refused. So the position at which a journal is opened is where it ends until its writer appends.
//!
//! A journal that has failed is closed, and recovers from what is on its disk when it is opened next.
//!
//! What its [followers](super::followers) need is kept when a writer releases it, up to a number of bytes; then nothing more is kept for the
//! follower that is farthest behind, and for the next one if that is not enough.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use alluvium_storage::journal::SentRecords;
use alluvium_storage::{
    Disk, Error, FileJournal, FileJournalOptions, Journal, Position, Replay,
    Result as StorageResult,
};
use bytes::Bytes;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::watch;
use tonic::{Code, Status};
use tracing::warn;

use super::Disks;
use super::followers::Followers;
use super::tail::{Tail, Told, Watching};
use super::term::Term;
use crate::connection::address::check_name;
use crate::messages::{self, Attend, Attending, Header, Open, Opened};
use crate::refusal::{failed, refused};

/// All journals of a server.
#[derive(Debug)]
pub(super) struct Journals {
    disks: Arc<dyn Disks>,
    options: FileJournalOptions,
    /// Which records stay that writers release.
    keeps: Keeps,
    known: Mutex<HashMap<String, Arc<Mutex<Kept>>>>,
}

/// Which records stay that writers release.
#[derive(Clone, Copy, Debug)]
pub(super) enum Keeps {
    All,
    /// Those that followers need, as long as a journal has at most so many bytes.
    Followed(u64),
}

/// A journal that was opened.
#[derive(Debug)]
struct Kept {
    name: String,
    disk: Arc<dyn Disk>,
    options: FileJournalOptions,
    term: Term,
    /// `None` if it has failed.
    journal: Option<Arc<FileJournal>>,
    /// The number of the last session.
    session: u64,
    followers: Followers,
    tail: Arc<Tail>,
}

/// A writer of a journal, until another one comes.
#[derive(Debug)]
pub(super) struct Writer {
    kept: Arc<Mutex<Kept>>,
    session: u64,
    term: u64,
    keeps: Keeps,
    told: watch::Receiver<Told>,
}

impl Journals {
    pub(super) fn new(
        disks: Arc<dyn Disks>,
        options: FileJournalOptions,
        keeps: Keeps,
    ) -> Journals {
        Journals { disks, options, keeps, known: Mutex::default() }
    }

    /// Opens a journal for a writer. All before it are refused from then on.
    pub(super) fn open(&self, open: &Open) -> Result<(Writer, Opened), Status> {
        let kept = self.find(&open.name, open.identity.is_none())?;
        let mut locked = kept.lock();
        let expected = open.identity.as_deref();
        locked.check_identity(expected)?;
        if let Some(term) = open.term {
            locked.check_term(term)?;
        }
        let journal = locked.journal().map_err(|error| failed(&error))?.clone();
        let range = journal.range();
        if open.term.is_none() {
            locked.check_records(range.start.0..range.end.0, open.records.as_ref())?;
            // A writer that is gone may have left records that are only written.
            locked.check(sync(&journal))?;
            let number = locked.term.number + 1;
            let term = Term { number, end: range.end.0, ..locked.term.clone() };
            term.write(&*locked.disk).map_err(|error| failed(&error))?;
            locked.tail.tell(|news| (news.term, news.end) = (number, range.end.0));
            locked.term = term;
        }
        locked.session += 1;
        let (session, Term { identity, number: term, .. }) = (locked.session, locked.term.clone());
        let told = locked.tail.told();
        drop(locked);
        let opened = Opened { identity, term, start: range.start.0, end: range.end.0 };
        Ok((Writer { kept, session, term, keeps: self.keeps, told }, opened))
    }

    /// The records of a journal from one on, as far as they are durable.
    pub(super) fn replay(&self, name: &str, identity: &str, from: u64) -> Result<Replay, Status> {
        let kept = self.find(name, false)?;
        let mut locked = kept.lock();
        locked.check_identity(Some(identity))?;
        let journal = locked.journal().map_err(|error| failed(&error))?.clone();
        drop(locked);
        journal.replay(Position(from)).map_err(|error| failed(&error))
    }

    /// Keeps for a follower what it needs, or nothing any more.
    pub(super) fn attend(&self, attend: &Attend) -> Result<Attending, Status> {
        let Attend { name, identity, records, follower, needed } = attend;
        check_name(follower).map_err(|wrong| refused(Code::InvalidArgument, wrong.to_string()))?;
        let kept = self.find(name, false)?;
        let mut locked = kept.lock();
        locked.check_identity(identity.as_deref())?;
        let range = locked.journal().map_err(|error| failed(&error))?.range();
        let Kept { followers, disk, .. } = &mut *locked;
        match needed {
            Some(needed) if *needed < range.start.0 => {
                let start = range.start;
                let why = match followers.is_dropped(follower) {
                    true => ", as the journal had more bytes than it keeps for followers",
                    false => "",
                };
                let what = format!(
                    "the server's journal \"{name}\" begins with record {start}, and \"{follower}\" needs record {needed}: that is not kept any \
                     more{why}; begin again with a copy of the state directory of the writer, taken while that does not run"
                );
                return Err(refused(Code::FailedPrecondition, what));
            }
            Some(needed) => {
                locked.check_records(range.start.0..range.end.0, records.as_ref())?;
                let Kept { followers, disk, .. } = &mut *locked;
                followers.keep(follower, *needed, &**disk)
            }
            None => followers.forget(follower, &**disk),
        }
        .map_err(|error| failed(&error))?;
        let (identity, news) = (locked.term.identity.clone(), Some(locked.tail.news()));
        Ok(Attending { identity, start: range.start.0, news })
    }

    /// Begins to follow a journal.
    pub(super) fn watch(&self, name: &str, identity: &str) -> Result<Watching, Status> {
        let kept = self.find(name, false)?;
        let mut locked = kept.lock();
        locked.check_identity(Some(identity))?;
        locked.journal().map_err(|error| failed(&error))?;
        Ok(locked.tail.watch())
    }

    /// Lets go of those who follow.
    pub(super) fn end_following(&self) {
        self.known.lock().values().for_each(|kept| kept.lock().tail.end());
    }

    /// Leaves word of how far the journals go. No session is left.
    pub(super) fn end(&self) {
        for kept in self.known.lock().values() {
            // What is not noted is found when the journal is opened.
            let _ = kept.lock().note_end();
        }
    }

    fn find(&self, name: &str, make: bool) -> Result<Arc<Mutex<Kept>>, Status> {
        check_name(name).map_err(|wrong| refused(Code::InvalidArgument, wrong.to_string()))?;
        let mut known = self.known.lock();
        if let Some(kept) = known.get(name) {
            return Ok(kept.clone());
        }
        let disk = self.disks.disk(name, make).map_err(|error| failed(&error))?;
        let disk = disk.ok_or_else(|| {
            refused(Code::NotFound, format!("the server has no journal \"{name}\""))
        })?;
        let term = Term::read(&*disk).map_err(|error| failed(&error))?;
        let term = term.unwrap_or_else(Term::first);
        let followers = Followers::read(&*disk).map_err(|error| failed(&error))?;
        let (options, tail) = (self.options, Tail::new());
        let (name, journal, session) = (name.to_owned(), None, 0);
        let kept =
            Kept { name: name.clone(), disk, options, term, journal, session, followers, tail };
        let kept = Arc::new(Mutex::new(kept));
        known.insert(name, kept.clone());
        Ok(kept)
    }
}

impl Kept {
    /// The journal, which is opened if it is not.
    fn journal(&mut self) -> StorageResult<&Arc<FileJournal>> {
        match &mut self.journal {
            Some(journal) => Ok(journal),
            closed => {
                let known = self.term.known_end(&*self.disk);
                let journal =
                    FileJournal::open_known_with(self.disk.clone(), self.options, &known)?;
                // All that was recovered is durable.
                let (term, Range { start, end }) = (self.term.number, journal.range());
                self.tail.tell(|news| {
                    (news.term, news.end) = (term, end.0);
                    news.released = news.released.max(start.0);
                });
                Ok(closed.insert(Arc::new(journal)))
            }
        }
    }

    /// The journal, unless it has failed since it was opened.
    fn opened(&self) -> Result<Arc<FileJournal>, Status> {
        self.journal.clone().ok_or_else(|| {
            let what = format!("the journal \"{}\" has failed, and is not open", self.name);
            refused(Code::Internal, what)
        })
    }

    fn check_identity(&self, expected: Option<&str>) -> Result<(), Status> {
        let Kept { name, term: Term { identity, .. }, .. } = self;
        match expected {
            Some(expected) if expected != identity => Err(refused(
                Code::FailedPrecondition,
                format!(
                    "the server's journal \"{name}\" is another one: its identity is {identity}, and {expected} was expected"
                ),
            )),
            _ => Ok(()),
        }
    }

    fn check_records(
        &self,
        has: Range<u64>,
        expected: Option<&messages::Range>,
    ) -> Result<(), Status> {
        let Some(expected) = expected else { return Ok(()) };
        if has.start <= expected.start && expected.end <= has.end {
            return Ok(());
        }
        let Kept { name, .. } = self;
        let (start, end) = (has.start, has.end);
        let what = match has.start <= expected.start {
            true => format!("it ends before record {end}, and had records up to {}", expected.end),
            false => {
                format!("it begins with record {start}, and record {} is needed", expected.start)
            }
        };
        let what = format!(
            "the server's journal \"{name}\" does not fit: {what}; restore what is older from a backup"
        );
        Err(refused(Code::FailedPrecondition, what))
    }

    fn check_term(&self, term: u64) -> Result<(), Status> {
        match self.term.number {
            last if last == term => Ok(()),
            last => Err(refused(
                Code::FailedPrecondition,
                format!(
                    "another process has opened the journal \"{}\" to write to it, with the term {last}, and this one had the term {term}",
                    self.name
                ),
            )),
        }
    }

    /// Closes the journal if it has failed.
    fn check<T>(&mut self, result: StorageResult<T>) -> Result<T, Status> {
        result.map_err(|error| {
            if !matches!(error, Error::NoRecord { .. }) {
                self.journal = None;
            }
            failed(&error)
        })
    }

    /// Deletes records before `before` that no follower needs. While the journal has more than `most` bytes and followers keep some of them, the
    /// follower that is farthest behind is dropped.
    fn release(
        &mut self,
        journal: &FileJournal,
        before: Position,
        most: u64,
    ) -> Result<(), Status> {
        loop {
            let needed = self.followers.first().map_or(before, |first| before.min(Position(first)));
            let released = journal.release(needed);
            self.check(released)?;
            if !journal.can_release(before) || self.bytes().map_err(|error| failed(&error))? <= most
            {
                return Ok(());
            }
            let dropped = self.followers.drop_slowest(&*self.disk);
            let Some(follower) = dropped.map_err(|error| failed(&error))? else { return Ok(()) };
            let journal = &self.name;
            warn!(
                journal,
                follower,
                "standby dropped, as the journal has more bytes than it keeps for standbys"
            );
        }
    }

    /// How many bytes its files have.
    fn bytes(&self) -> StorageResult<u64> {
        let failed = |cause| Error::Io { place: self.disk.place(""), operation: "list", cause };
        let sizes = self.disk.list().map_err(failed)?.into_iter();
        let sizes = sizes.map(|name| self.disk.open(&name)?.size());
        sizes.sum::<std::io::Result<u64>>().map_err(failed)
    }

    fn note_end(&mut self) -> StorageResult<()> {
        let Some(journal) = self.journal.take() else { return Ok(()) };
        sync(&journal)?;
        let range = journal.range();
        // Before the first writer there is nothing to say.
        if self.term.number == 0 || self.term.end == range.end.0 {
            return Ok(());
        }
        self.term.end = range.end.0;
        self.term.write(&*self.disk)
    }
}

impl Writer {
    /// Waits until another writer has come, and returns what this one is told then.
    pub(super) async fn replaced(&mut self) -> Status {
        let term = self.term;
        // The journal ends with its server, and then the call does.
        if self.told.wait_for(|told| told.news.term > term).await.is_err() {
            std::future::pending::<()>().await;
        }
        match self.kept.lock().check_term(term) {
            Err(refused) => refused,
            Ok(()) => Status::aborted("another writer comes"),
        }
    }

    /// Appends the records of a group, which begins where the journal ends.
    pub(super) fn append(&self, header: Header, bytes: Bytes) -> Result<(), Status> {
        let Header { first, count, salt, .. } = header;
        let records = SentRecords::new(bytes, first, salt).collect::<Result<Vec<_>, _>>();
        let records = records.map_err(|what| refused(Code::InvalidArgument, what))?;
        if records.len() as u64 != count {
            let what = format!("a group has {} records, and {count} were announced", records.len());
            return Err(refused(Code::InvalidArgument, what));
        }
        self.with(|journal, tail| {
            let end = journal.range().end.0;
            if end != first {
                let what = format!(
                    "a group of records begins with {first}, and the journal goes on with {end}"
                );
                return Ok(Err(refused(Code::FailedPrecondition, what)));
            }
            records.iter().try_for_each(|record| journal.append(record).map(drop))?;
            tail.append(first, &records);
            Ok(Ok(()))
        })?
    }

    /// Waits until all records are durable, or with the operating system, and returns where the journal ends.
    pub(super) fn settle(&self, durable: bool) -> Result<u64, Status> {
        self.with(|journal, tail| {
            match last(journal) {
                Some(last) if durable => journal.sync(last)?,
                Some(last) => journal.write(last)?,
                None => {}
            }
            let end = journal.range().end.0;
            if durable {
                tail.tell(|news| news.end = end);
            }
            Ok(end)
        })
    }

    /// Allows the journal to delete the records before this one, and returns the first that it has then.
    pub(super) fn release(&self, before: u64) -> Result<u64, Status> {
        let mut kept = self.current()?;
        kept.tail.tell(|news| news.released = news.released.max(before));
        let journal = kept.opened()?;
        if let Keeps::Followed(bytes) = self.keeps {
            kept.release(&journal, Position(before), bytes)?;
        }
        Ok(journal.range().start.0)
    }

    /// Does something with the journal, if no other session has begun.
    fn with<T>(
        &self,
        act: impl FnOnce(&FileJournal, &Tail) -> StorageResult<T>,
    ) -> Result<T, Status> {
        let mut kept = self.current()?;
        let journal = kept.opened()?;
        let done = act(&journal, &kept.tail);
        kept.check(done)
    }

    fn current(&self) -> Result<MutexGuard<'_, Kept>, Status> {
        let kept = self.kept.lock();
        kept.check_term(self.term)?;
        match kept.session == self.session {
            true => Ok(kept),
            // Its writer does not wait for an answer here any more.
            false => Err(Status::aborted("the writer has connected again")),
        }
    }
}

/// The last record of a journal, if it has one.
fn last(journal: &FileJournal) -> Option<Position> {
    let range = journal.range();
    (!range.is_empty()).then(|| Position(range.end.0 - 1))
}

/// Makes all records durable.
fn sync(journal: &FileJournal) -> StorageResult<()> {
    last(journal).map_or(Ok(()), |last| journal.sync(last))
}
