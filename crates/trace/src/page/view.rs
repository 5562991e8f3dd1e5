//! Reading a page.

use std::ops::Range;

use bytes::Bytes;

use super::layout::Layout;
use crate::memory::{Block, MemoryBudget};
use crate::time::{MAXIMUM_LANES, PageTime};

/// A sorted run of updates: the bytes of a page, and its header decoded beside them.
///
/// Keys, values and updates are numbered from zero through the whole page. Methods panic on a number that the page
/// does not have.
#[derive(Clone, Debug)]
pub struct Page {
    /// Shared by clones.
    bytes: Bytes,
    layout: Layout,
    /// How many updates have negative weights.
    retractions: u32,
    /// Whether the bytes belong to a file.
    is_mapped: bool,
}

impl Page {
    /// A page of bytes just written to this layout.
    pub(crate) fn built(mut bytes: Block, layout: Layout, retractions: u32) -> Page {
        debug_assert_eq!(Layout::read(&bytes), Ok(layout));
        bytes.count_beside(size_of::<Page>());
        Page { bytes: Bytes::from_owner(bytes), layout, retractions, is_mapped: false }
    }

    /// A page of a file, of this layout.
    pub(crate) fn mapped(bytes: Bytes, layout: Layout) -> Page {
        let mut page = Page { bytes, layout, retractions: 0, is_mapped: true };
        if layout.weights != 0 {
            let weights = (0..page.updates()).map(|update| page.weight(update));
            page.retractions = weights.map(|weight| u32::from(weight < 0)).sum();
        }
        page
    }

    /// The same page, on the heap; counted by `budget` if it was not there before.
    pub(crate) fn on_heap(&self, budget: &MemoryBudget) -> Page {
        if self.is_mapped {
            Page::built(Block::copied(self.bytes(), budget), self.layout, self.retractions)
        } else {
            self.clone()
        }
    }

    /// The bytes of the page; nothing outside of them is needed to read it.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The header, decoded.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The number of keys.
    #[inline]
    pub fn keys(&self) -> usize {
        self.layout.keys as usize
    }

    /// The number of values, over all keys.
    #[inline]
    pub fn values(&self) -> usize {
        self.layout.values as usize
    }

    /// The number of updates, over all values.
    #[inline]
    pub fn updates(&self) -> usize {
        self.layout.updates as usize
    }

    /// The bytes of a key.
    #[inline]
    pub fn key(&self, key: usize) -> &[u8] {
        let Layout { key_stride, key_offsets, keys_at, .. } = self.layout;
        &self.bytes[self.string(key, key_stride, key_offsets, keys_at)]
    }

    /// The values of a key.
    #[inline]
    pub fn values_of(&self, key: usize) -> Range<usize> {
        self.run(self.layout.value_starts, key)
    }

    /// The bytes of a value.
    #[inline]
    pub fn value(&self, value: usize) -> &[u8] {
        let Layout { value_stride, value_offsets, values_at, .. } = self.layout;
        &self.bytes[self.string(value, value_stride, value_offsets, values_at)]
    }

    /// The updates of a value.
    #[inline]
    pub fn updates_of(&self, value: usize) -> Range<usize> {
        self.run(self.layout.update_starts, value)
    }

    /// The time of an update.
    #[inline]
    pub fn time<T: PageTime>(&self, update: usize) -> T {
        debug_assert_eq!(self.layout.lanes as usize, T::LANES);
        let indexes = self.layout.time_indexes as usize;
        let index = if indexes == 0 {
            0
        } else if self.layout.times <= 256 {
            usize::from(self.bytes[indexes + update])
        } else {
            usize::from(u16::from_le_bytes(self.chunk(indexes + 2 * update)))
        };
        let start = self.layout.times_at as usize + index * T::LANES * 8;
        let mut lanes = [0; MAXIMUM_LANES];
        for (number, lane) in lanes[..T::LANES].iter_mut().enumerate() {
            *lane = u64::from_le_bytes(self.chunk(start + 8 * number));
        }
        T::load(&lanes[..T::LANES])
    }

    /// The weight of an update.
    #[inline]
    pub fn weight(&self, update: usize) -> i64 {
        match self.layout.weights {
            0 => 1,
            weights => i64::from_le_bytes(self.chunk(weights as usize + 8 * update)),
        }
    }

    /// The number of updates with negative weights.
    pub(crate) fn retractions(&self) -> usize {
        self.retractions as usize
    }

    /// Whether all updates have one time and different rows, so that a merge would change nothing within the page.
    pub(crate) fn is_settled(&self) -> bool {
        self.layout.times == 1 && self.layout.update_starts == 0
    }

    /// The first of the keys `from..` that is not below `target`, or the number of keys.
    #[inline]
    pub fn seek_key(&self, from: usize, target: &[u8]) -> usize {
        gallop(from..self.keys(), |key| self.key(key) < target)
    }

    /// The first of these values, all of one key, that is not below `target`, or the end of the range.
    #[inline]
    pub fn seek_value(&self, range: Range<usize>, target: &[u8]) -> usize {
        gallop(range, |value| self.value(value) < target)
    }

    #[inline]
    fn string(&self, index: usize, stride: u32, offsets: u32, at: u32) -> Range<usize> {
        let at = at as usize;
        if offsets == 0 {
            let stride = stride as usize;
            let start = at + index * stride;
            start..start + stride
        } else {
            let (start, end) = self.pair(offsets, index);
            at + start..at + end
        }
    }

    #[inline]
    fn run(&self, starts: u32, index: usize) -> Range<usize> {
        if starts == 0 {
            index..index + 1
        } else {
            let (start, end) = self.pair(starts, index);
            start..end
        }
    }

    /// Two neighbours of a column of `u32`.
    #[inline]
    fn pair(&self, column: u32, index: usize) -> (usize, usize) {
        let pair = u64::from_le_bytes(self.chunk(column as usize + 4 * index));
        ((pair as u32) as usize, (pair >> 32) as usize)
    }

    #[inline]
    fn chunk<const N: usize>(&self, at: usize) -> [u8; N] {
        *self.bytes[at..].first_chunk::<N>().expect("the columns of a page end within it")
    }
}

/// The first index of the range for which `below` no longer holds, found in time logarithmic in its distance.
#[inline]
pub(crate) fn gallop(range: Range<usize>, below: impl Fn(usize) -> bool) -> usize {
    let Range { mut start, end } = range;
    if start >= end || !below(start) {
        return start;
    }
    // From here on `below(start)` holds.
    let mut step = 1;
    while start + step < end && below(start + step) {
        start += step;
        step *= 2;
    }
    while step > 0 {
        if start + step < end && below(start + step) {
            start += step;
        }
        step /= 2;
    }
    start + 1
}
