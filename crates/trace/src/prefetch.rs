//! Prefetch hints: the keys that will be sought, in order.

use crate::cursors::Cursors;
use crate::time::PageTime;

/// Keys that will be sought, in ascending order, of which it takes a *group* at a time, ahead of the seeks.
///
/// The size of the groups adapts. It doubles while pages have to be fetched. When a group finds all of its pages in
/// memory, the next is small and comes only after a pause, so that hints cost next to nothing there.
pub(crate) struct PrefetchHint<T> {
    keys: Cursors<T>,
    /// The keys of the group, one after the other, and where each ends.
    bytes: Vec<u8>,
    ends: Vec<usize>,
    /// The key in the middle of the group. The next group is due once a key after it is sought.
    middle: Vec<u8>,
    is_due: bool,
    /// How many keys the next group has.
    count: usize,
    /// How many seeks pass before the next group is due, and how many the last pause had.
    pause: usize,
    last_pause: usize,
}

/// The fewest and the most keys of a group; the most are enough to keep a disk busy.
const FEWEST: usize = 16;
const MOST: usize = 256;

/// The most seeks of a pause.
const LONGEST_PAUSE: usize = 4096;

impl<T: PageTime> PrefetchHint<T> {
    pub(crate) fn new(keys: Cursors<T>) -> Self {
        Self {
            keys,
            bytes: Vec::new(),
            ends: Vec::new(),
            middle: Vec::new(),
            is_due: true,
            count: FEWEST,
            pause: 0,
            last_pause: 0,
        }
    }

    /// Whether the next group is due, when `key` is sought.
    #[inline]
    pub(crate) fn is_due(&mut self, key: &[u8]) -> bool {
        if self.pause > 0 {
            self.pause -= 1;
            return false;
        }
        self.is_due || self.middle.as_slice() < key
    }

    /// Takes the next group of keys, none of them below `from`. It may be empty.
    pub(crate) fn next_group(&mut self, from: &[u8]) {
        self.bytes.clear();
        self.ends.clear();
        self.middle.clear();
        self.keys.seek_key(from);
        while self.ends.len() < self.count
            && let Some(key) = self.keys.key()
        {
            if self.ends.len() == self.count / 2 {
                self.middle.extend_from_slice(key);
            }
            self.bytes.extend_from_slice(key);
            self.ends.push(self.bytes.len());
            self.keys.step_key();
        }
        self.is_due = false;
        if self.keys.key().is_none() {
            self.pause = usize::MAX;
        }
    }

    /// The keys of the group.
    pub(crate) fn group(&self) -> impl Iterator<Item = &[u8]> {
        let mut start = 0;
        self.ends.iter().map(move |&end| &self.bytes[std::mem::replace(&mut start, end)..end])
    }

    /// Adapts to whether pages had to be fetched for the group.
    pub(crate) fn adapt(&mut self, was_fetched: bool) {
        if was_fetched {
            self.count = MOST.min(2 * self.count);
            self.last_pause = 0;
        } else {
            self.count = FEWEST;
            self.last_pause = LONGEST_PAUSE.min(2 * self.last_pause + FEWEST);
            self.pause = self.pause.max(self.last_pause);
        }
    }
}
