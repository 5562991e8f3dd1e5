//! Where the pages of a batch begin: a search index of eight bytes per page.

use std::ops::Range;

use crate::page::view::gallop;
use crate::prefix::{common, prefix};

/// The first keys of the pages of a batch, shortened: their common prefix, and the next eight bytes of each.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Fences {
    common: Vec<u8>,
    /// The bytes after `common`, padded with zeros, as a number that sorts as they do.
    prefixes: Vec<u64>,
}

/// Where a key is among the first keys of pages.
enum Place {
    Below,
    /// The key has the common prefix, and these bytes next.
    Within(u64),
    Above,
}

impl Fences {
    /// Fences with this common prefix and these next bytes of each page.
    pub(crate) fn new(common: Vec<u8>, prefixes: Vec<u64>) -> Self {
        Self { common, prefixes }
    }

    /// Adds the first key of the next page.
    pub(crate) fn push(&mut self, key: &[u8]) {
        if self.prefixes.is_empty() {
            self.common.extend_from_slice(key);
        }
        let shared = common(&self.common, key);
        if shared < self.common.len() {
            self.shorten(shared);
        }
        self.prefixes.push(prefix(&key[shared..]));
    }

    /// Shortens the common prefix to `length` bytes, and moves the rest of it to each page's.
    fn shorten(&mut self, length: usize) {
        let moved = &self.common[length..];
        let head = prefix(moved);
        for prefix in &mut self.prefixes {
            *prefix = match moved.len() {
                bytes @ 0..8 => head | *prefix >> (8 * bytes),
                _ => head,
            };
        }
        self.common.truncate(length);
    }

    /// The common prefix of all first keys.
    pub(crate) fn common(&self) -> &[u8] {
        &self.common
    }

    /// For each page the eight bytes after the common prefix.
    pub(crate) fn prefixes(&self) -> &[u64] {
        &self.prefixes
    }

    /// The bytes that the fences take.
    pub(crate) fn bytes(&self) -> usize {
        self.common.len() + size_of_val(self.prefixes.as_slice())
    }

    #[inline]
    fn place(&self, key: &[u8]) -> Place {
        match key.strip_prefix(self.common.as_slice()) {
            Some(rest) => Place::Within(prefix(rest)),
            None if key < self.common.as_slice() => Place::Below,
            None => Place::Above,
        }
    }

    /// The first of the pages `from..` that does not begin below `key`, or the number of pages. Where eight bytes do
    /// not decide, `is_below` does.
    #[inline]
    pub(crate) fn seek(&self, from: usize, key: &[u8], is_below: impl Fn(usize) -> bool) -> usize {
        let end = self.prefixes.len();
        match self.place(key) {
            Place::Below => from.min(end),
            Place::Above => end,
            Place::Within(target) => gallop(from..end, |page| match self.prefixes[page] {
                prefix if prefix == target => is_below(page),
                prefix => prefix < target,
            }),
        }
    }

    /// Which pages a key that is on none before `from` is most likely on, as far as fences tell: at most two.
    pub(crate) fn likely_pages(&self, from: usize, key: &[u8]) -> Range<usize> {
        let start = self.seek(from, key, |_| false);
        let may_begin = match self.place(key) {
            Place::Within(target) => self.prefixes.get(start) == Some(&target),
            _ => false,
        };
        start.saturating_sub(1).max(from)..start + usize::from(may_begin)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fences_hold_the_bytes_behind_the_common_prefix() {
        let keys: [&[u8]; 5] =
            [b"shared beginning", b"shared by", b"shared by all of them", b"sharp", b"sharper"];
        for count in 1..=keys.len() {
            let mut fences = Fences::default();
            keys[..count].iter().for_each(|key| fences.push(key));
            let shared = common(keys[0], keys[count - 1]);
            assert_eq!(fences.common(), &keys[0][..shared]);
            let expected: Vec<_> = keys[..count].iter().map(|key| prefix(&key[shared..])).collect();
            assert_eq!(fences.prefixes(), expected);
        }
    }

    #[test]
    fn a_seek_agrees_with_a_search_among_all_first_keys() {
        let keys: [&[u8]; 6] =
            [b"ab", b"ab\0", b"ab\0\0\0\0\0\0\0\0\0", b"abc", b"abcdefghijk", b"abd"];
        let mut fences = Fences::default();
        keys.iter().for_each(|key| fences.push(key));
        let others: [&[u8]; 6] = [b"", b"a", b"aa", b"abcdefghij", b"ac", b"b"];
        for key in keys.into_iter().chain(others) {
            for from in 0..=keys.len() {
                let expected = from.max(keys.partition_point(|first| first < &key));
                assert_eq!(fences.seek(from, key, |page| keys[page] < key), expected);
            }
        }
    }
}
