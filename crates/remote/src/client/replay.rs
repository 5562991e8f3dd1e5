//! Reading the records of a server's journal.

use std::ops::Range;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use alluvium_storage::error::Failure;
use alluvium_storage::journal::SentRecords;
use alluvium_storage::{Position, Result};
use bytes::Bytes;
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep};

use super::Background;
use super::link::{Place, Trouble, next, unexpected};
use crate::messages::{From, Header, Pieces};

/// How many groups are fetched ahead.
const AHEAD: usize = 4;

/// How long after a lost connection the next one is tried.
const PAUSE: std::time::Duration = std::time::Duration::from_millis(100);

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
        let (to, groups) = channel();
        let credit = Arc::new(Semaphore::new(AHEAD));
        let fetch = Fetch {
            place: place.clone(),
            identity,
            left: records.clone(),
            to,
            credit: credit.clone(),
        };
        if !records.is_empty() {
            runtime.spawn(fetch.run());
        }
        let none = SentRecords::new(Bytes::new(), records.start, 0);
        RemoteReplay { place, groups, credit, records: none, left: records, _runtime: runtime }
    }

    fn read(&mut self) -> std::io::Result<Bytes> {
        let damaged = |what| std::io::Error::new(std::io::ErrorKind::InvalidData, what);
        loop {
            if let Some(record) = self.records.next() {
                return record.map_err(damaged);
            }
            let ended = |_| std::io::Error::other("the thread that reads records has ended");
            let (header, bytes) = self.groups.recv().map_err(ended)??;
            if header.first != self.left.start {
                return Err(damaged("a group of records does not follow on the one before it"));
            }
            self.records = SentRecords::new(bytes, header.first, header.salt);
            self.credit.add_permits(1);
        }
    }
}

impl Iterator for RemoteReplay {
    type Item = Result<(Position, Bytes)>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.left.is_empty() {
            return None;
        }
        let position = Position(self.left.start);
        let read = self.read();
        self.left.start = if read.is_ok() { self.left.start + 1 } else { self.left.end };
        Some(match read {
            Ok(record) => Ok((position, record)),
            Err(cause) => {
                let place = format!("record {position} of {}", self.place.address);
                Err(Failure::new("replay", place, cause).error())
            }
        })
    }
}

/// The task that fetches.
struct Fetch {
    place: Arc<Place>,
    identity: String,
    left: Range<u64>,
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
            if since.elapsed() >= self.place.patience {
                let what = format!("the server cannot be reached: {what}");
                let _ = self.to.send(Err(std::io::Error::new(std::io::ErrorKind::TimedOut, what)));
                return;
            }
            sleep(PAUSE.min(self.place.patience)).await;
        }
    }

    /// Fetches what is left, over one connection.
    async fn fetch(&mut self) -> std::result::Result<(), Trouble> {
        let (name, identity) = (self.place.address.name.clone(), self.identity.clone());
        let Range { start: first, end } = self.left;
        let mut stream = self.place.replay(From { name, identity, first, end }).await?;
        let mut pieces = Pieces::default();
        while !self.left.is_empty() {
            // Who reads gives it back, or has gone.
            let credit = self.credit.clone().acquire_owned().await;
            let Ok(permit) = credit else { return Ok(()) };
            let (header, bytes) = loop {
                let Some(records) = next(&mut stream).await? else {
                    let what = format!("no record {}, which it had", self.left.start);
                    return Err(unexpected(&what));
                };
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
