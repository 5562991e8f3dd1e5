//! Reading several batches as one.

use std::cmp::Ordering;

use crate::batch::Batch;
use crate::bound::Bound;
use crate::cursor::Cursor;
use crate::page::Page;
use crate::prefetch::PrefetchHint;
use crate::prefix::prefix;
use crate::time::PageTime;

/// A position in several batches: a key that one or more of them have, and a value.
///
/// It moves as a [`Cursor`] does. A run of keys that only one batch has costs little more than with a cursor of it.
pub struct Cursors<T> {
    cursors: Vec<Cursor<T>>,
    /// The cursors that have a key, by key, the smallest last.
    heads: Vec<Head>,
    /// How many of them, from the last, are at the current key.
    at_key: usize,
    /// Those of them that are at the current value, the smallest. If only one cursor has the key it is listed even past
    /// its last value.
    at_val: Vec<usize>,
    /// The cursors that are being moved from one place among the heads to another.
    moving: Vec<Head>,
    /// The keys that will be sought, if seeks may have to wait for a disk.
    hint: Option<Box<PrefetchHint<T>>>,
}

/// A cursor that has a key, and the prefix of the key, which decides most comparisons.
#[derive(Clone, Copy)]
struct Head {
    prefix: u64,
    cursor: usize,
}

impl<T: PageTime> Cursors<T> {
    /// A cursor at the first key of all these batches.
    pub fn new(batches: impl IntoIterator<Item = Batch<T>>) -> Self {
        Self::over(batches, |batch| batch.cursor())
    }

    /// As [`new`](Cursors::new), for a reader that goes through all batches once; see [`Batch::scan`].
    pub fn scan(batches: impl IntoIterator<Item = Batch<T>>) -> Self {
        Self::scan_above(batches, None)
    }

    /// As [`scan`](Cursors::scan), but without pages that are known to have only rows below `bound`: they are not read.
    pub(crate) fn scan_above(
        batches: impl IntoIterator<Item = Batch<T>>,
        bound: Option<Bound>,
    ) -> Self {
        let batches: Vec<_> = batches.into_iter().filter(|batch| !batch.is_empty()).collect();
        let count = batches.len();
        Self::over(batches, |batch| Cursor::scan_above(batch, count, bound.as_ref()))
    }

    /// Cursors at the first key that is not below `key`, for a reader that seeks. Unlike [`new`](Cursors::new) this reads no
    /// pages before that key.
    pub fn seeking(batches: impl IntoIterator<Item = Batch<T>>, key: &[u8]) -> Self {
        Self::over(batches, |batch| Cursor::seeking(batch, key))
    }

    /// As [`seeking`](Cursors::seeking), for a reader that continues as one that [scans](Cursors::scan).
    pub fn scan_from(batches: impl IntoIterator<Item = Batch<T>>, key: &[u8]) -> Self {
        let batches: Vec<_> = batches.into_iter().filter(|batch| !batch.is_empty()).collect();
        let count = batches.len();
        Self::over(batches, |batch| Cursor::scan_from(batch, count, key))
    }

    fn over(
        batches: impl IntoIterator<Item = Batch<T>>,
        cursor: impl Fn(Batch<T>) -> Cursor<T>,
    ) -> Self {
        let batches = batches.into_iter().filter(|batch| !batch.is_empty());
        let mut cursors = Cursors {
            cursors: batches.map(cursor).collect(),
            heads: Vec::new(),
            at_key: 0,
            at_val: Vec::new(),
            moving: Vec::new(),
            hint: None,
        };
        for cursor in 0..cursors.cursors.len() {
            cursors.arrive(cursor);
        }
        cursors.find_key();
        cursors
    }

    /// The current key; `None` past the last one.
    #[inline]
    pub fn key(&self) -> Option<&[u8]> {
        self.cursors[self.heads.last()?.cursor].key()
    }

    /// Moves to the next key.
    pub fn step_key(&mut self) {
        self.leave(self.at_key, Cursor::step_key);
        self.find_key();
    }

    /// Hints that these keys will be sought. That changes nothing but the time it takes: pages of files are requested
    /// some keys ahead, so that reads overlap.
    pub fn prefetch_hint(&mut self, keys: Cursors<T>) {
        let may_wait = self.cursors.iter().any(Cursor::may_wait);
        self.hint = may_wait.then(|| Box::new(PrefetchHint::new(keys)));
    }

    /// Moves forward to the first key that is not below `key`; stays when the current key is not.
    pub fn seek_key(&mut self, key: &[u8]) {
        if let Some(hint) = &mut self.hint
            && hint.is_due(key)
        {
            hint.next_group(key);
            let fetching = self.cursors.iter().filter(|cursor| cursor.prefetch(hint.group()));
            let was_fetched = fetching.count() > 0;
            hint.adapt(was_fetched);
        }
        let prefix = prefix(key);
        let heads = self.heads.iter().rev();
        let behind = heads.take_while(|head| self.compare(**head, prefix, key).is_lt());
        match behind.count() {
            0 => {}
            behind => {
                self.leave(behind, |cursor| cursor.seek_key(key));
                self.find_key();
            }
        }
    }

    /// Moves, forward or back, to the first key that is not below `key`. Not for cursors that scan.
    pub fn seek_anywhere(&mut self, key: &[u8]) {
        self.heads.clear();
        for cursor in 0..self.cursors.len() {
            self.cursors[cursor].seek_anywhere(key);
            self.arrive(cursor);
        }
        self.find_key();
    }

    /// The page of one batch that starts with the current update and ends before the next key of every other batch, if
    /// there is one.
    #[inline]
    pub(crate) fn whole_page(&self) -> Option<&Page> {
        if self.at_key != 1 {
            return None;
        }
        let (first, others) = self.heads.split_last()?;
        let page = self.cursors[first.cursor].whole_page()?;
        let last = page.key(page.keys() - 1);
        let is_before = |next: &Head| self.cursors[next.cursor].key().is_some_and(|key| last < key);
        others.last().is_none_or(is_before).then_some(page)
    }

    /// Moves past the [whole page](Cursors::whole_page).
    pub(crate) fn skip_page(&mut self) {
        self.leave(1, Cursor::skip_page);
        self.find_key();
    }

    /// The current value; `None` past the last one of the current key.
    #[inline]
    pub fn val(&self) -> Option<&[u8]> {
        self.cursors[*self.at_val.first()?].val()
    }

    /// Moves to the next value of the current key.
    #[inline]
    pub fn step_val(&mut self) {
        for &at in &self.at_val {
            self.cursors[at].step_val();
        }
        if self.at_key > 1 {
            self.find_val();
        }
    }

    /// Moves forward to the first value of the current key that is not below `val`; stays when the current
    /// value is not.
    pub fn seek_val(&mut self, val: &[u8]) {
        self.move_vals(|cursor| cursor.seek_val(val));
    }

    /// Moves, forward or back, to the last value of the current key that is below `val`. Without one it moves to the first
    /// value and returns false. Not for cursors that scan.
    pub fn seek_val_before(&mut self, val: &[u8]) -> bool {
        let mut last: Option<usize> = None;
        for head in self.heads.iter().rev().take(self.at_key) {
            let is_below = self.cursors[head.cursor].seek_val_before(val);
            let value = |cursor: usize| self.cursors[cursor].val();
            if is_below && last.is_none_or(|last| value(last) < value(head.cursor)) {
                last = Some(head.cursor);
            }
        }
        if let Some(last) = last {
            // The others have no value between that one and `val`.
            for at in self.heads.len() - self.at_key..self.heads.len() {
                let cursor = self.heads[at].cursor;
                if self.cursors[cursor].val() < self.cursors[last].val() {
                    self.cursors[cursor].step_val();
                }
            }
        }
        self.find_val();
        last.is_some()
    }

    /// Moves back to the first value of the current key.
    pub fn rewind_vals(&mut self) {
        self.move_vals(Cursor::rewind_vals);
    }

    /// Calls `visit` with all updates of the current key and value, of all batches, in any order. A time may occur more
    /// than once.
    #[inline]
    pub fn updates(&self, mut visit: impl FnMut(T, i64)) {
        for &at in &self.at_val {
            self.cursors[at].visit_updates(&mut visit);
        }
    }

    /// Moves all cursors at the current key among its values.
    fn move_vals(&mut self, go: impl Fn(&mut Cursor<T>)) {
        for head in self.heads.iter().rev().take(self.at_key) {
            go(&mut self.cursors[head.cursor]);
        }
        self.find_val();
    }

    /// Moves the cursors with the `count` smallest keys forward.
    #[inline]
    fn leave(&mut self, count: usize, go: impl Fn(&mut Cursor<T>)) {
        if count == 1
            && let Some(Head { cursor, .. }) = self.heads.pop()
        {
            go(&mut self.cursors[cursor]);
            return self.arrive(cursor);
        }
        self.moving.extend(self.heads.drain(self.heads.len() - count..));
        while let Some(Head { cursor, .. }) = self.moving.pop() {
            go(&mut self.cursors[cursor]);
            self.arrive(cursor);
        }
    }

    /// Puts a cursor in its place among the heads; leaves it out when it has no more keys.
    #[inline]
    fn arrive(&mut self, cursor: usize) {
        let Some(key) = self.cursors[cursor].key() else {
            return;
        };
        let prefix = prefix(key);
        let place = match self.heads.last() {
            Some(last) if self.compare(*last, prefix, key).is_lt() => {
                let above = |head: &Head| self.compare(*head, prefix, key).is_ge();
                self.heads.partition_point(above)
            }
            _ => self.heads.len(),
        };
        self.heads.insert(place, Head { prefix, cursor });
    }

    /// Compares the key of a head with another key and its prefix.
    #[inline]
    fn compare(&self, head: Head, prefix: u64, key: &[u8]) -> Ordering {
        let keys = || self.cursors[head.cursor].key().cmp(&Some(key));
        head.prefix.cmp(&prefix).then_with(keys)
    }

    /// Counts the cursors that have the smallest key, and finds the smallest value.
    #[inline]
    fn find_key(&mut self) {
        self.at_key = 0;
        self.at_val.clear();
        let Some((first, others)) = self.heads.split_last() else {
            return;
        };
        self.at_key = 1;
        if let Some(next) = others.last()
            && next.prefix == first.prefix
        {
            let key = self.cursors[first.cursor].key();
            let same = |head: &&Head| self.cursors[head.cursor].key() == key;
            self.at_key += others.iter().rev().take_while(same).count();
        }
        if self.at_key == 1 {
            self.at_val.push(first.cursor);
        } else {
            self.find_val();
        }
    }

    /// Finds the smallest value of the current key and the cursors that have it.
    fn find_val(&mut self) {
        self.at_val.clear();
        let mut least: Option<&[u8]> = None;
        for head in self.heads.iter().rev().take(self.at_key) {
            let val = self.cursors[head.cursor].val();
            if self.at_key > 1 && val.is_none() {
                continue;
            }
            match least.map_or(Ordering::Less, |least| val.cmp(&Some(least))) {
                Ordering::Less => {
                    least = val;
                    self.at_val.clear();
                    self.at_val.push(head.cursor);
                }
                Ordering::Equal => self.at_val.push(head.cursor),
                Ordering::Greater => {}
            }
        }
    }
}
