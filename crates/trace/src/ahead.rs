//! The keys that come next, where it is known which will be sought.

use crate::cursors::Cursors;
use crate::time::PageTime;

/// Keys in ascending order, to be looked at some at a time and some ahead of those that are sought.
///
/// How many depends on what they find: few if what is sought is in memory anyway, and after that none for a while,
/// so that it costs next to nothing there.
pub(crate) struct Ahead<T> {
    keys: Cursors<T>,
    /// The keys in hand, one behind the other, and where each ends.
    bytes: Vec<u8>,
    ends: Vec<usize>,
    /// Once a key behind this one is sought, which is in the middle of those in hand, the next are due.
    middle: Vec<u8>,
    is_due: bool,
    /// How many keys are taken in hand next.
    count: usize,
    /// How many seeks are let pass before that, and how many were the last time.
    pause: usize,
    last_pause: usize,
}

/// The fewest keys that are taken in hand, and the most: enough to keep a disk busy.
const FEWEST: usize = 16;
const MOST: usize = 256;

/// The most seeks that are let pass.
const LONGEST_PAUSE: usize = 4096;

impl<T: PageTime> Ahead<T> {
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

    /// Whether it is time to look at more keys, when `key` is sought.
    #[inline]
    pub(crate) fn is_due(&mut self, key: &[u8]) -> bool {
        if self.pause > 0 {
            self.pause -= 1;
            return false;
        }
        self.is_due || self.middle.as_slice() < key
    }

    /// Takes the next keys in hand, none of which is below `from`; there may be none.
    pub(crate) fn go_on(&mut self, from: &[u8]) {
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

    /// The keys in hand.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let mut start = 0;
        self.ends.iter().map(move |&end| &self.bytes[std::mem::replace(&mut start, end)..end])
    }

    /// Takes note whether something had to be fetched for the keys in hand.
    pub(crate) fn learn(&mut self, was_fetched: bool) {
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
