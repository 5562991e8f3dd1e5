//! Where the pages of a batch begin, in eight bytes each.

use std::ops::Range;

use crate::page::view::gallop;
use crate::prefix::{common, prefix};

/// The first keys of the pages of a batch, as far as it takes to tell most of them apart: what all of them begin
/// with, once, and for each the eight bytes that come next.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Fences {
    common: Vec<u8>,
    /// The bytes behind `common` as a number that sorts as they do, filled up with zeros.
    prefixes: Vec<u64>,
}

/// Where a key is among the first keys of pages.
enum Place {
    Below,
    /// The key has what all of them begin with, and these bytes next.
    Within(u64),
    Above,
}

impl Fences {
    /// Fences of which the parts are known.
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

    /// Moves what is behind the first `length` bytes of the common ones to each of the others.
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

    /// The bytes that all first keys begin with.
    pub(crate) fn common(&self) -> &[u8] {
        &self.common
    }

    /// For each page the eight bytes behind the common ones.
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
    /// not tell, `is_below` is asked whether a page does.
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

    /// Which pages a key may be on that is on none before `from`, as far as fences tell: two pages at most, though
    /// there can be more if many keys begin alike.
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
    fn fences_are_what_the_keys_have_behind_what_they_share() {
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
    fn a_key_is_sought_as_in_the_list_of_all_first_keys() {
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
