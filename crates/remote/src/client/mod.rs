//! A journal of a server, in the process that writes to it.
//!
//! # Design
//!
//! Group commit stays as it is: threads that commit share a group in the queue of the [`Committer`], and [`log`] sends it. One [`task`] speaks to
//! the server, on a runtime that the journal has for itself, so that those who commit stay synchronous. It has all records that are not
//! durable, and when its [`link`] is lost it makes another one, with the same term, and sends those that the server does not have: by their
//! positions each is written once. If that does not succeed for a while, the journal fails as one does whose disk fails. [`replay`] reads, over
//! a link of its own, and [`follow`] is the journal of who reads along with a writer.

mod follow;
mod link;
mod log;
mod replay;
mod task;

use std::fmt::{self, Debug, Formatter};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use alluvium_storage::error::Failure;
use alluvium_storage::journal::Committer;
use alluvium_storage::{Elsewhere, Error, Expected, Followed, Journal, Position, Replay, Result};
use tokio::runtime::Runtime;

use self::follow::RemoteFollowed;
use self::link::Place;
use self::log::{Commands, RemoteLog};
use self::replay::RemoteReplay;
use self::task::Writing;
use crate::connection::address::{Address, Misplaced};
use crate::connection::tls::Identity;
use crate::messages::Opened;

/// How long a lost connection may take to be made again.
const PATIENCE: Duration = Duration::from_secs(30);

/// The most bytes of records that are queued. Larger records are sent at once.
const QUEUE: usize = 4 << 20;

/// A journal of a server, before it is opened.
#[derive(Clone, Debug)]
pub struct JournalPlace {
    place: Arc<Place>,
}

impl JournalPlace {
    /// The journal of this URL: `https://HOST:PORT/NAME` with certificates, or without them `http://HOST:PORT/NAME` of a host that is this
    /// machine.
    ///
    /// # Errors
    ///
    /// If the URL is none of a journal, or needs certificates and there are none, or the other way round.
    pub fn new(url: &str, identity: Option<&Identity>) -> std::result::Result<Self, Misplaced> {
        let address = Address::parse(url)?;
        match (address.is_encrypted, identity) {
            (true, None) => return Err(Misplaced::NoCertificate(url.to_owned())),
            (false, Some(_)) => return Err(Misplaced::Certificate(url.to_owned())),
            _ => {}
        }
        let tls = identity.map(Identity::of_client);
        Ok(JournalPlace { place: Arc::new(Place { address, tls, patience: PATIENCE }) })
    }

    /// How long a lost connection may take to be made again, before the journal fails; by default 30 seconds.
    pub fn patience(self, patience: Duration) -> JournalPlace {
        let Place { address, tls, .. } = &*self.place;
        let (address, tls) = (address.clone(), tls.clone());
        JournalPlace { place: Arc::new(Place { address, tls, patience }) }
    }

    /// Opens the journal to write to it, with the next term.
    ///
    /// # Errors
    ///
    /// If the server cannot be reached or refuses, and as [`Elsewhere::open`].
    pub fn open(&self, expected: &Expected) -> Result<RemoteJournal> {
        RemoteJournal::open(&self.place, expected)
    }
}

impl Elsewhere for JournalPlace {
    fn url(&self) -> String {
        self.place.address.to_string()
    }

    fn open(&self, expected: &Expected) -> Result<(String, Arc<dyn Journal>)> {
        let journal = RemoteJournal::open(&self.place, expected)?;
        Ok((journal.identity.clone(), Arc::new(journal)))
    }

    fn follow(&self, expected: &Expected, follower: &str) -> Result<(String, Arc<dyn Followed>)> {
        let (identity, followed) = RemoteFollowed::begin(&self.place, expected, follower)?;
        Ok((identity, Arc::new(followed)))
    }
}

/// A journal of a server. There is one at a time that can write: when another is opened, calls of this one that write fail.
///
/// Its methods block, and may be called on any thread, also of an asynchronous runtime.
pub struct RemoteJournal {
    place: Arc<Place>,
    identity: String,
    term: u64,
    committer: Committer<RemoteLog>,
    commands: Commands,
    /// The position of the first record that the server has.
    start: AtomicU64,
    runtime: Arc<Background>,
}

impl RemoteJournal {
    fn open(place: &Arc<Place>, expected: &Expected) -> Result<RemoteJournal> {
        let failed = |cause| Failure::new("open", place.address.to_string(), cause).error();
        let runtime = Arc::new(Background::start().map_err(failed)?);
        let begun = Writing::begin(place.clone(), expected.clone());
        let (writing, opened) = runtime.wait(begun).map_err(failed)?;
        let Opened { identity, term, start, end } = opened;
        let commands = Commands::begin(place.clone(), &runtime, writing);
        // A random number: the standard library seeds its maps with one.
        let salt = RandomState::new().build_hasher().finish();
        let committer = Committer::new(RemoteLog::new(commands.clone(), salt), end, QUEUE, salt);
        let (place, start) = (place.clone(), AtomicU64::new(start));
        Ok(RemoteJournal { place, identity, term, committer, commands, start, runtime })
    }

    /// What tells the journal from all others, also of the same name.
    pub fn identity(&self) -> &str {
        &self.identity
    }

    /// The term of this writer.
    pub fn term(&self) -> u64 {
        self.term
    }

    fn missing(&self, operation: &'static str, position: Position) -> Error {
        let Range { start, end } = self.range();
        let place = self.place.address.to_string();
        Error::NoRecord { place, operation, position: position.0, range: start.0..end.0 }
    }
}

impl Debug for RemoteJournal {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let (place, range) = (self.place.address.to_string(), self.range());
        let mut shown = f.debug_struct("RemoteJournal");
        shown.field("place", &place).field("term", &self.term).field("range", &range).finish()
    }
}

impl Journal for RemoteJournal {
    fn append(&self, record: &[u8]) -> Result<Position> {
        self.committer.append(record).map(Position)
    }

    fn write(&self, upto: Position) -> Result<()> {
        match self.committer.write_queue(upto.0)? {
            true => Ok(()),
            false => Err(self.missing("write", upto)),
        }
    }

    fn sync(&self, upto: Position) -> Result<()> {
        match self.committer.sync(upto.0)? {
            true => Ok(()),
            false => Err(self.missing("sync", upto)),
        }
    }

    fn replay(&self, from: Position) -> Result<Replay> {
        let range = self.range();
        if !(range.start..=range.end).contains(&from) {
            return Err(self.missing("replay", from));
        }
        let (end, _) = self.committer.ends();
        let (place, identity) = (self.place.clone(), self.identity.clone());
        let replayed = from.0..end.max(from.0);
        Ok(Box::new(RemoteReplay::begin(place, identity, replayed, self.runtime.clone())))
    }

    fn release(&self, before: Position) -> Result<()> {
        self.committer.check()?;
        let start = self.commands.release(before.0).map_err(|failure| failure.error())?;
        self.start.fetch_max(start, Ordering::Relaxed);
        Ok(())
    }

    fn range(&self) -> Range<Position> {
        let (_, end) = self.committer.ends();
        Position(self.start.load(Ordering::Relaxed).min(end))..Position(end)
    }

    fn on_failure(&self, act: Box<dyn FnOnce(Error) + Send>) {
        self.commands.on_failure(Box::new(|failure| act(failure.error())));
    }

    fn place(&self, record: Position) -> String {
        format!("record {record} of {}", self.place.address)
    }
}

/// The runtime of a journal and its replays.
struct Background(Option<Runtime>);

impl Background {
    fn start() -> std::io::Result<Background> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("alluvium-remote")
            .enable_all()
            .build()?;
        Ok(Background(Some(runtime)))
    }

    /// Waits for a future, on any thread.
    fn wait<T: Send + 'static>(
        &self,
        future: impl Future<Output = std::io::Result<T>> + Send + 'static,
    ) -> std::io::Result<T> {
        let (answer, answered) = std::sync::mpsc::channel();
        self.spawn(async move {
            // Who waits is still there.
            let _ = answer.send(future.await);
        });
        answered.recv().unwrap_or_else(|_| Err(std::io::Error::other("its thread has ended")))
    }

    fn spawn(&self, future: impl Future<Output = ()> + Send + 'static) {
        if let Some(runtime) = &self.0 {
            runtime.spawn(future);
        }
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        // On a thread of another runtime this must not wait.
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}
