//! A column of byte strings that is being filled.

use std::ops::Deref;

use crate::memory::Block;

/// A column of byte strings.
pub(super) struct Strings<B> {
    /// The strings, after `base` bytes of something else.
    pub(super) bytes: B,
    base: usize,
    /// Where each string ends, counted from the first.
    pub(super) ends: Vec<u32>,
    /// Whether all strings are as long as the first.
    pub(super) uniform: bool,
}

/// Where the bytes of a column are collected.
pub(super) trait Memory: Deref<Target = [u8]> {
    /// Adds bytes at the end.
    fn push(&mut self, bytes: &[u8]);
    /// Shortens the memory to `length` bytes.
    fn truncate(&mut self, length: usize);
}

impl Memory for Vec<u8> {
    #[inline]
    fn push(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }

    fn truncate(&mut self, length: usize) {
        self.truncate(length);
    }
}

impl Memory for Block {
    #[inline]
    fn push(&mut self, bytes: &[u8]) {
        self.grow(bytes.len()).copy_from_slice(bytes);
    }

    fn truncate(&mut self, length: usize) {
        self.truncate(length);
    }
}

impl<B: Memory> Strings<B> {
    /// An empty column in `bytes`, of which the first `base` are something else.
    pub(super) fn new(bytes: B, base: usize) -> Self {
        Strings { bytes, base, ends: Vec::new(), uniform: true }
    }

    /// The number of strings.
    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    /// Where the string at `index` starts in `bytes`.
    fn start(&self, index: usize) -> usize {
        match index {
            0 => self.base,
            index => self.base + self.ends[index - 1] as usize,
        }
    }

    /// The bytes of all strings.
    pub(super) fn size_of_bytes(&self) -> usize {
        self.ends.last().map_or(0, |&end| end as usize)
    }

    /// The last string; empty if there is none.
    pub(super) fn last(&self) -> &[u8] {
        match self.len() {
            0 => &[],
            length => &self.bytes[self.start(length - 1)..],
        }
    }

    /// Adds a string.
    pub(super) fn push(&mut self, string: &[u8]) {
        if let Some(&first) = self.ends.first() {
            self.uniform &= string.len() == first as usize;
        }
        self.ends.push(index(self.size_of_bytes() + string.len()));
        self.bytes.push(string);
    }

    /// Removes the last string.
    pub(super) fn pop(&mut self) {
        if self.ends.pop().is_some() {
            self.bytes.truncate(self.start(self.ends.len()));
        }
        // Strings that differ in length may be alike again without the last: then the page has offsets it
        // could do without, but not when there is at most one.
        self.uniform |= self.len() <= 1;
    }

    /// Removes all strings.
    pub(super) fn clear(&mut self) {
        self.bytes.truncate(self.base);
        self.ends.clear();
        self.uniform = true;
    }

    /// The length of all strings, or zero if they differ.
    pub(super) fn stride(&self) -> u32 {
        match self.ends.first() {
            Some(&first) if self.uniform => first,
            _ => 0,
        }
    }

    /// The bytes this column takes on a page.
    pub(super) fn size(&self) -> usize {
        self.size_of_bytes() + if self.uniform { 0 } else { 4 * self.len() }
    }
}

/// A count or an offset as it is stored.
#[inline]
pub(super) fn index(number: usize) -> u32 {
    u32::try_from(number).expect("a row does not fit the four gigabytes that a page can address")
}
