//! Reading the records of a server's journal: those that are there, or also those that come.

use std::fmt::{self, Debug, Formatter};
use std::ops::Range;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use alluvium_storage::error::Failure;
use alluvium_storage::journal::SentRecords;
use alluvium_storage::{Arriving, Position, Result};
use bytes::Bytes;
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep};

use super::Background;
use super::follow::Listened;
use super::link::{Place, Trouble, next, unexpected};
use crate::messages::{From, Header, Pieces};

/// How many groups are fetched ahead.
const AHEAD: usize = 4;

/// How long after a lost connection the next one is tried.
const PAUSE: Duration = Duration::from_millis(100);

type Fetched = std::io::Result<(Header, Bytes)>;

/// The records from one on up to another, as they come.
pub(super) struct RemoteReplay {
    place: Arc<Place>,
    groups: Receiver<Fetched>,
    /// A permit for each group that may be fetched.
    credit: Arc<Semaphore>,
    /// Those that have come.
    records: SentRecords,
    left: Range<u64>,
    /// What fetches runs as long as this is there.
    _runtime: Arc<Background>,
}

impl RemoteReplay {
    /// Begins to fetch records.
    pub(super) fn begin(
        place: Arc<Place>,
        identity: String,
        records: Range<u64>,
        runtime: Arc<Background>,
    ) -> RemoteReplay {
        RemoteReplay::fetching(place, identity, records, None, runtime)
    }

    /// Begins to fetch records from one on, also those that come later.
    pub(super) fn follow(
        place: Arc<Place>,
        identity: String,
        first: u64,
        listened: Arc<Listened>,
        runtime: Arc<Background>,
    ) -> RemoteReplay {
        RemoteReplay::fetching(place, identity, first..u64::MAX, Some(listened), runtime)
    }

    fn fetching(
        place: Arc<Place>,
        identity: String,
        records: Range<u64>,
        listened: Option<Arc<Listened>>,
        runtime: Arc<Background>,
    ) -> RemoteReplay {
        let (to, groups) = channel();
        let credit = Arc::new(Semaphore::new(AHEAD));
        let fetch = Fetch {
            place: place.clone(),
            identity,
            left: records.clone(),
            listened,
            to,
            credit: credit.clone(),
        };
        if !records.is_empty() {
            runtime.spawn(fetch.run());
        }
        let none = SentRecords::new(Bytes::new(), records.start, 0);
        RemoteReplay { place, groups, credit, records: none, left: records, _runtime: runtime }
    }

    /// The next record, if it comes within this time; without one it waits as long as it takes.
    fn read(&mut self, patience: Option<Duration>) -> std::io::Result<Option<Bytes>> {
        let damaged = |what| std::io::Error::new(std::io::ErrorKind::InvalidData, what);
        let ended = || std::io::Error::other("the thread that reads records has ended");
        loop {
            if let Some(record) = self.records.next() {
                return record.map(Some).map_err(damaged);
            }
            let (header, bytes) = match patience {
                None => self.groups.recv().map_err(|_| ended())??,
                Some(patience) => match self.groups.recv_timeout(patience) {
                    Ok(fetched) => fetched?,
                    Err(RecvTimeoutError::Timeout) => return Ok(None),
                    Err(RecvTimeoutError::Disconnected) => return Err(ended()),
                },
            };
            if header.first != self.left.start {
                return Err(damaged("a group of records does not follow on the one before it"));
            }
            self.records = SentRecords::new(bytes, header.first, header.salt);
            self.credit.add_permits(1);
        }
    }

    fn next_within(&mut self, patience: Option<Duration>) -> Result<Option<(Position, Bytes)>> {
        if self.left.is_empty() {
            return Ok(None);
        }
        let position = Position(self.left.start);
        match self.read(patience) {
            Ok(None) => Ok(None),
            Ok(Some(record)) => {
                self.left.start += 1;
                Ok(Some((position, record)))
            }
            Err(cause) => {
                self.left.start = self.left.end;
                let place = format!("record {position} of {}", self.place.address);
                Err(Failure::new("replay", place, cause).error())
            }
        }
    }
}

impl Iterator for RemoteReplay {
    type Item = Result<(Position, Bytes)>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_within(None).transpose()
    }
}

impl Arriving for RemoteReplay {
    fn next(&mut self, patience: Duration) -> Result<Option<(Position, Bytes)>> {
        self.next_within(Some(patience))
    }
}

impl Debug for RemoteReplay {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let place = self.place.address.to_string();
        f.debug_struct("RemoteReplay").field("place", &place).field("left", &self.left).finish()
    }
}

/// The task that fetches.
struct Fetch {
    place: Arc<Place>,
    identity: String,
    left: Range<u64>,
    /// Who hears the news, if those that come are fetched too.
    listened: Option<Arc<Listened>>,
    to: Sender<Fetched>,
    credit: Arc<Semaphore>,
}

impl Fetch {
    async fn run(mut self) {
        let mut lost_at = None;
        loop {
            let before = self.left.start;
            let what = match self.fetch().await {
                Ok(()) => return,
                Err(Trouble::Final(cause)) => {
                    // Who reads may have gone.
                    let _ = self.to.send(Err(cause));
                    return;
                }
                Err(Trouble::Lost(what)) => what,
            };
            if self.left.start > before {
                lost_at = None;
            }
            let since = *lost_at.get_or_insert_with(Instant::now);
            // Who follows waits for as long as it takes.
            if self.listened.is_none() && since.elapsed() >= self.place.patience {
                let what = format!("the server cannot be reached: {what}");
                let _ = self.to.send(Err(std::io::Error::new(std::io::ErrorKind::TimedOut, what)));
                return;
            }
            if self.credit.is_closed() {
                return;
            }
            sleep(PAUSE.min(self.place.patience)).await;
        }
    }

    /// Fetches what is left, over one connection.
    async fn fetch(&mut self) -> std::result::Result<(), Trouble> {
        let (name, identity) = (self.place.address.name.clone(), self.identity.clone());
        let Range { start: first, end } = self.left;
        let from = From { name, identity, first, end };
        let mut stream = match self.listened {
            None => self.place.replay(from).await?,
            Some(_) => self.place.follow(from).await?,
        };
        let mut pieces = Pieces::default();
        while !self.left.is_empty() {
            // Who reads gives it back, or has gone.
            let credit = self.credit.clone().acquire_owned().await;
            let Ok(permit) = credit else { return Ok(()) };
            let (header, bytes) = loop {
                let Some(records) = next(&mut stream).await? else {
                    if self.listened.is_some() {
                        return Err(Trouble::Lost("the server has ended the call".to_owned()));
                    }
                    let what = format!("no record {}, which it had", self.left.start);
                    return Err(unexpected(&what));
                };
                let news = records.news.zip(self.listened.as_ref());
                if let Some((news, listened)) = news {
                    listened.hear(news);
                    if records.piece.is_none() {
                        continue;
                    }
                }
                let piece = records.piece.ok_or_else(|| unexpected("no records"))?;
                if let Some(whole) = pieces.add(piece).map_err(unexpected)? {
                    break whole;
                }
            };
            permit.forget();
            self.left.start = header.first + header.count;
            if self.to.send(Ok((header, bytes))).is_err() {
                return Ok(());
            }
        }
        Ok(())
    }
}

impl Drop for RemoteReplay {
    fn drop(&mut self) {
        self.credit.close();
    }
}
