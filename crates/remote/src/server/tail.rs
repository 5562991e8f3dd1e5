//! The last records of a journal, for those who follow it.
//!
//! A follower that keeps up takes records from memory. One that is farther behind reads the files.

use std::collections::VecDeque;
use std::sync::Arc;

use alluvium_storage::journal::Group;
use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::watch;

use crate::messages::{News, PIECE};

/// The most bytes of records that are kept in memory.
const MOST_BYTES: usize = 4 << 20;

/// What the writers of a journal tell those who follow it.
#[derive(Debug)]
pub(super) struct Tail {
    news: watch::Sender<Told>,
    records: Mutex<Records>,
}

/// News, and whether there will be more.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Told {
    pub(super) news: News,
    pub(super) is_last: bool,
}

#[derive(Debug, Default)]
struct Records {
    /// How many follow. Without any nothing is kept.
    followers: usize,
    /// The position of the first that is kept.
    first: u64,
    kept: VecDeque<Bytes>,
    bytes: usize,
}

/// Somebody who follows, until this is dropped.
pub(super) struct Watching {
    tail: Arc<Tail>,
    pub(super) told: watch::Receiver<Told>,
}

impl Tail {
    pub(super) fn new() -> Arc<Tail> {
        Arc::new(Tail { news: watch::Sender::new(Told::default()), records: Mutex::default() })
    }

    /// Begins to follow.
    pub(super) fn watch(self: &Arc<Tail>) -> Watching {
        self.records.lock().followers += 1;
        Watching { tail: self.clone(), told: self.told() }
    }

    /// Hears the news.
    pub(super) fn told(&self) -> watch::Receiver<Told> {
        self.news.subscribe()
    }

    /// The last news.
    pub(super) fn news(&self) -> News {
        self.news.borrow().news
    }

    /// Changes the news, and tells those who follow.
    pub(super) fn tell(&self, change: impl FnOnce(&mut News)) {
        self.news.send_modify(|told| change(&mut told.news));
    }

    /// There are no more news: the server ends.
    pub(super) fn end(&self) {
        self.news.send_modify(|told| told.is_last = true);
    }

    /// Records were appended, of which the first has this position. They may not be durable.
    pub(super) fn append(&self, first: u64, appended: &[Bytes]) {
        let mut records = self.records.lock();
        if records.followers == 0 {
            return;
        }
        if records.first + records.kept.len() as u64 != first {
            records.clear(first);
        }
        for record in appended {
            records.bytes += record.len();
            records.kept.push_back(record.clone());
        }
        while records.bytes > MOST_BYTES {
            let Some(record) = records.kept.pop_front() else { return };
            records.bytes -= record.len();
            records.first += 1;
        }
    }
}

impl Records {
    fn clear(&mut self, first: u64) {
        *self = Records { followers: self.followers, first, ..Records::default() };
    }
}

impl Watching {
    /// The records from `first` on, as many as a message has and none from `end` on, if they are in memory.
    pub(super) fn group(&self, first: u64, end: u64) -> Option<Group> {
        let records = self.tail.records.lock();
        let at = usize::try_from(first.checked_sub(records.first)?).ok()?;
        let most = usize::try_from(end - first).unwrap_or(usize::MAX);
        let mut group = Group::new(first);
        for record in records.kept.iter().skip(at).take(most) {
            group.add(record, 0);
            if group.records().len() >= PIECE / 2 {
                break;
            }
        }
        (!group.is_empty()).then_some(group)
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        let mut records = self.tail.records.lock();
        records.followers -= 1;
        if records.followers == 0 {
            records.clear(0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_kept_while_somebody_follows_and_only_the_last_ones() {
        let tail = Tail::new();
        let record = |bytes: usize| Bytes::from(vec![7; bytes]);
        tail.append(0, &[record(10)]);
        let watching = tail.watch();
        assert!(watching.group(0, 1).is_none());
        tail.append(1, &[record(10), record(20), record(30)]);
        let ends = |first, end| watching.group(first, end).map(|group| group.end());
        assert_eq!(
            [ends(0, 4), ends(1, 4), ends(2, 3), ends(4, 5)],
            [None, Some(4), Some(3), None]
        );
        tail.append(4, &[record(MOST_BYTES - 40)]);
        assert_eq!([ends(2, 5), ends(3, 5)], [None, Some(5)]);
        // Another writer has begun where this one was not durable.
        tail.append(3, &[record(1)]);
        assert_eq!([ends(3, 9), ends(4, 9)], [Some(4), None]);
        drop(watching);
        assert!(tail.watch().group(3, 4).is_none());
    }
}
