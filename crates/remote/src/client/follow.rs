//! A journal of a server, in a process that follows its writer.

use std::fmt::{self, Debug, Formatter};
use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use alluvium_storage::error::Failure;
use alluvium_storage::{
    Arriving, Error, Expected, Followed, Heard, Journal, Position, Replay, Result,
};
use parking_lot::Mutex;

use super::Background;
use super::link::{Place, Trouble};
use super::replay::RemoteReplay;
use crate::messages::{self, Attend, Attending, News};

/// The last news of a journal, of all calls.
#[derive(Debug)]
pub(super) struct Listened {
    heard: Mutex<Heard>,
}

impl Listened {
    fn new(news: News) -> Arc<Listened> {
        Arc::new(Listened { heard: Mutex::new(of(news)) })
    }

    /// News have come, perhaps later than newer ones of another call.
    pub(super) fn hear(&self, news: News) {
        let mut heard = self.heard.lock();
        let Heard { term, end, released, at } = of(news);
        *heard = Heard {
            term: heard.term.max(term),
            end: heard.end.max(end),
            released: heard.released.max(released),
            at,
        };
    }

    fn heard(&self) -> Heard {
        *self.heard.lock()
    }
}

fn of(News { term, end, released }: News) -> Heard {
    Heard { term, end: Position(end), released: Position(released), at: Instant::now() }
}

/// A journal of a server, which another process writes to.
pub(super) struct RemoteFollowed {
    place: Arc<Place>,
    identity: String,
    follower: String,
    /// The position of the first record that the server has.
    start: AtomicU64,
    listened: Arc<Listened>,
    runtime: Arc<Background>,
}

impl RemoteFollowed {
    /// Follows a journal from the first record that is expected.
    pub(super) fn begin(
        place: &Arc<Place>,
        expected: &Expected,
        follower: &str,
    ) -> Result<(String, RemoteFollowed)> {
        let failed = |cause| Failure::new("follow", place.address.to_string(), cause).error();
        let runtime = Arc::new(Background::start().map_err(failed)?);
        let records = expected.records.as_ref();
        let attend = Attend {
            name: place.address.name.clone(),
            identity: expected.identity.clone(),
            records: records
                .map(|Range { start, end }| messages::Range { start: start.0, end: end.0 }),
            follower: follower.to_owned(),
            needed: Some(records.map_or(0, |records| records.start.0)),
        };
        let Attending { identity, start, news } = ask(place, &runtime, attend).map_err(failed)?;
        let followed = RemoteFollowed {
            place: place.clone(),
            identity: identity.clone(),
            follower: follower.to_owned(),
            start: AtomicU64::new(start),
            listened: Listened::new(news.unwrap_or_default()),
            runtime,
        };
        Ok((identity, followed))
    }

    /// Says from where on records are needed; without a position that none are.
    fn attend(&self, needed: Option<u64>) -> Result<()> {
        let attend = Attend {
            name: self.place.address.name.clone(),
            identity: Some(self.identity.clone()),
            records: None,
            follower: self.follower.clone(),
            needed,
        };
        let attended = ask(&self.place, &self.runtime, attend);
        let Attending { start, news, .. } = attended.map_err(|cause| {
            Failure::new("follow", self.place.address.to_string(), cause).error()
        })?;
        self.start.fetch_max(start, Ordering::Relaxed);
        news.into_iter().for_each(|news| self.listened.hear(news));
        Ok(())
    }

    fn missing(&self, operation: &'static str, position: Position) -> Error {
        let Range { start, end } = self.range();
        let place = self.place.address.to_string();
        Error::NoRecord { place, operation, position: position.0, range: start.0..end.0 }
    }
}

/// Says what a follower needs, once.
fn ask(place: &Arc<Place>, runtime: &Background, attend: Attend) -> io::Result<Attending> {
    let place = place.clone();
    runtime.wait(async move {
        place.attend(attend).await.map_err(|trouble| match trouble {
            Trouble::Lost(what) => {
                io::Error::other(format!("the server cannot be reached: {what}"))
            }
            Trouble::Final(cause) => cause,
        })
    })
}

impl Debug for RemoteFollowed {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let (place, range) = (self.place.address.to_string(), self.range());
        let mut shown = f.debug_struct("RemoteFollowed");
        shown
            .field("place", &place)
            .field("follower", &self.follower)
            .field("range", &range)
            .finish()
    }
}

impl Journal for RemoteFollowed {
    fn append(&self, _: &[u8]) -> Result<Position> {
        let cause = io::Error::new(
            io::ErrorKind::PermissionDenied,
            "it is followed, and another process writes to it",
        );
        Err(Failure::new("append to", self.place.address.to_string(), cause).error())
    }

    fn write(&self, upto: Position) -> Result<()> {
        self.sync(upto)
    }

    fn sync(&self, upto: Position) -> Result<()> {
        match upto < self.range().end {
            true => Ok(()),
            false => Err(self.missing("sync", upto)),
        }
    }

    fn replay(&self, from: Position) -> Result<Replay> {
        let range = self.range();
        if !(range.start..=range.end).contains(&from) {
            return Err(self.missing("replay", from));
        }
        let (place, identity) = (self.place.clone(), self.identity.clone());
        let records = from.0..range.end.0;
        Ok(Box::new(RemoteReplay::begin(place, identity, records, self.runtime.clone())))
    }

    fn release(&self, before: Position) -> Result<()> {
        self.attend(Some(before.0))
    }

    fn range(&self) -> Range<Position> {
        let end = self.listened.heard().end;
        Position(self.start.load(Ordering::Relaxed)).min(end)..end
    }

    fn place(&self, record: Position) -> String {
        format!("record {record} of {}", self.place.address)
    }
}

impl Followed for RemoteFollowed {
    fn follow(&self, from: Position) -> Box<dyn Arriving> {
        let (place, identity) = (self.place.clone(), self.identity.clone());
        let (listened, runtime) = (self.listened.clone(), self.runtime.clone());
        Box::new(RemoteReplay::follow(place, identity, from.0, listened, runtime))
    }

    fn heard(&self) -> Heard {
        self.listened.heard()
    }

    fn leave(&self) -> Result<()> {
        self.attend(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn news_that_come_late_take_nothing_back() {
        let listened = Listened::new(News { term: 2, end: 40, released: 10 });
        let heard = |news| {
            listened.hear(news);
            let Heard { term, end, released, .. } = listened.heard();
            (term, end.0, released.0)
        };
        assert_eq!(heard(News { term: 1, end: 30, released: 20 }), (2, 40, 20));
        assert_eq!(heard(News { term: 3, end: 50, released: 0 }), (3, 50, 20));
    }
}
