//! Filling pages.

use super::layout::{HEADER, Layout, PageLimits};
use super::strings::{Memory, Strings, index};
use super::view::Page;
use crate::memory::{Block, MemoryBudget};
use crate::time::{MAXIMUM_LANES, PageTime};
use crate::weight;

/// Fills pages with sorted updates, one after the other.
///
/// Updates come in order of key, value and time. Neighbours that are equal in all three are added up, and an
/// update that comes to zero is left out; the last update can still change until the next one comes.
///
/// Values are most of the bytes of wide rows. They are written in place: the memory they are collected in becomes the
/// page. The other columns are appended when the page is closed, from memory that the builder reuses.
pub struct PageBuilder<T> {
    limits: PageLimits,
    /// The limits of the open page.
    open_limits: PageLimits,
    keys: Strings<Vec<u8>>,
    values: Strings<Block>,
    /// For each key, the number of values before it.
    value_starts: Vec<u32>,
    /// For each value, the number of updates before it.
    update_starts: Vec<u32>,
    times: Vec<T>,
    weights: Vec<i64>,
    /// Of all updates but the last, which can still change: whether they have one time and weights of +1, and how many
    /// weights are negative.
    one_time: bool,
    unit_weights: bool,
    retractions: u32,
    distinct: Vec<T>,
}

/// How much of an update equals its predecessor.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Shared {
    Nothing,
    Key,
    Value,
    Time,
}

impl<T: PageTime> PageBuilder<T> {
    /// A builder with an empty page. `budget` counts the pages.
    pub fn new(limits: PageLimits, budget: &MemoryBudget) -> Self {
        assert!(
            (1..=MAXIMUM_LANES).contains(&T::LANES),
            "a time has between one and {MAXIMUM_LANES} lanes"
        );
        let updates = limits.updates.clamp(1, PageLimits::MAXIMUM_UPDATES);
        let limits = PageLimits { updates, ..limits };
        PageBuilder {
            limits,
            open_limits: limits,
            keys: Strings::new(Vec::new(), 0),
            values: Strings::new(Block::new(budget), HEADER),
            value_starts: Vec::new(),
            update_starts: Vec::new(),
            times: Vec::new(),
            weights: Vec::new(),
            one_time: true,
            unit_weights: true,
            retractions: 0,
            distinct: Vec::new(),
        }
    }

    /// Adds an update, and returns the page before it if that page was full.
    ///
    /// # Panics
    ///
    /// If the sum of the weights of one row at one time leaves the range of an `i64`, or if a row is too long
    /// for the offsets of a page, which have 32 bits.
    pub fn push(&mut self, key: &[u8], value: &[u8], time: &T, weight: i64) -> Option<Page> {
        if weight == 0 {
            return None;
        }
        let mut shared = self.shared(key, value, time);
        if shared == Shared::Time {
            let last = self.weights.last_mut().expect("a shared time is a last one");
            *last = weight::add(*last, weight);
            return None;
        }
        shared = shared.min(self.settle());
        let mut full = None;
        if !self.times.is_empty() && !self.fits(key, value, shared) {
            full = self.close();
            shared = Shared::Nothing;
        }
        if self.times.is_empty() {
            // For the whole page.
            self.values.bytes.reserve(self.limits.bytes.max(HEADER + value.len() + key.len() + 64));
            self.values.bytes.truncate(0);
            self.values.bytes.grow(HEADER);
        }
        if shared == Shared::Nothing {
            self.value_starts.push(index(self.values.len()));
            self.keys.push(key);
        }
        if shared <= Shared::Key {
            self.update_starts.push(index(self.times.len()));
            self.values.push(value);
        }
        self.times.push(*time);
        self.weights.push(weight);
        full
    }

    /// Whether the open page has updates, but is less than a quarter full.
    pub(crate) fn is_small(&self) -> bool {
        let bytes = self.keys.size() + self.values.size();
        !self.times.is_empty()
            && bytes < self.limits.bytes / 4
            && self.times.len() < self.limits.updates / 4
    }

    /// Prepares for all rows of `page`. If they do not fit on the open page, both it and the next would better be half
    /// full than one full and the other small: this limits the open page to half.
    pub(crate) fn make_room_for(&mut self, page: &Page) {
        let PageLimits { bytes, updates } = self.limits;
        let held = self.keys.size() + self.values.size();
        if held + page.bytes().len() > bytes || self.times.len() + page.updates() > updates {
            self.open_limits = PageLimits { bytes: bytes / 2, updates: updates.div_ceil(2) };
        }
    }

    /// Completes the page and starts an empty one; `None` if it has no updates.
    pub fn finish(&mut self) -> Option<Page> {
        self.settle();
        self.close()
    }

    /// How much of this update equals the last one on the page.
    fn shared(&self, key: &[u8], value: &[u8], time: &T) -> Shared {
        let Some(last) = self.times.last() else {
            return Shared::Nothing;
        };
        debug_assert!(
            (self.keys.last(), self.values.last(), last) <= (key, value, time),
            "updates come sorted by key, value and time"
        );
        if self.keys.last() != key {
            Shared::Nothing
        } else if self.values.last() != value {
            Shared::Key
        } else if last != time {
            Shared::Value
        } else {
            Shared::Time
        }
    }

    /// Makes the last update final. If its weight is zero it is removed, with its value and key if it was their only
    /// one. Returns how much of the last update is still there.
    fn settle(&mut self) -> Shared {
        let Some(&weight) = self.weights.last() else {
            return Shared::Nothing;
        };
        if weight != 0 {
            self.unit_weights &= weight == 1;
            self.retractions += u32::from(weight < 0);
            self.one_time &= self.times.last() == self.times.first();
            return Shared::Time;
        }
        self.weights.pop();
        self.times.pop();
        if self.update_starts.last() != Some(&index(self.times.len())) {
            return Shared::Value;
        }
        self.update_starts.pop();
        self.values.pop();
        if self.value_starts.last() != Some(&index(self.values.len())) {
            return Shared::Key;
        }
        self.value_starts.pop();
        self.keys.pop();
        Shared::Nothing
    }

    /// Whether one more update fits on the page.
    fn fits(&self, key: &[u8], value: &[u8], shared: Shared) -> bool {
        if self.times.len() >= self.open_limits.updates {
            return false;
        }
        let mut size = HEADER + self.keys.size() + self.values.size();
        if self.keys.len() < self.values.len() {
            size += 4 * self.keys.len();
        }
        if self.values.len() < self.times.len() {
            size += 4 * self.values.len();
        }
        if !self.unit_weights {
            size += 8 * self.times.len();
        }
        if !self.one_time {
            // A value has distinct times: those it has beyond its first are at least as many on the page.
            let more = self.times.len() - self.values.len();
            size += 2 * self.times.len() + 8 * T::LANES * more;
        }
        if shared == Shared::Nothing {
            size += key.len() + 8;
        }
        if shared <= Shared::Key {
            size += value.len() + 8;
        }
        size <= self.open_limits.bytes
    }

    /// Writes the page out, its last update being final, and starts an empty one.
    fn close(&mut self) -> Option<Page> {
        if self.times.is_empty() {
            return None;
        }
        self.distinct.clear();
        self.distinct.extend_from_slice(&self.times);
        self.distinct.dedup();
        if self.distinct.len() > 1 {
            self.distinct.sort_unstable();
            self.distinct.dedup();
        }
        let layout = self.layout();
        self.write(&layout);
        let bytes = self.values.bytes.take();
        if self.values.bytes.capacity() > 2 * self.limits.bytes {
            self.values.bytes = Block::new(bytes.budget());
        }
        self.keys.clear();
        self.values.clear();
        self.value_starts.clear();
        self.update_starts.clear();
        self.times.clear();
        self.weights.clear();
        self.one_time = true;
        self.unit_weights = true;
        self.open_limits = self.limits;
        let retractions = std::mem::take(&mut self.retractions);
        Some(Page::built(bytes, layout, retractions))
    }

    /// Places the columns that the page needs.
    fn layout(&self) -> Layout {
        let (keys, values, updates) = (self.keys.len(), self.values.len(), self.times.len());
        let times = self.distinct.len();
        let mut end = HEADER;
        let mut place = |size: usize| {
            let start = end;
            end += size;
            index(start)
        };
        let mut layout = Layout {
            lanes: index(T::LANES),
            keys: index(keys),
            values: index(values),
            updates: index(updates),
            times: index(times),
            key_stride: self.keys.stride(),
            value_stride: self.values.stride(),
            ..Layout::default()
        };
        layout.values_at = place(self.values.size_of_bytes().next_multiple_of(8));
        // Wide columns first: so each is aligned to its own width without padding.
        layout.times_at = place(8 * T::LANES * times);
        if !self.unit_weights {
            layout.weights = place(8 * updates);
        }
        if keys < values {
            layout.value_starts = place(4 * (keys + 1));
        }
        if values < updates {
            layout.update_starts = place(4 * (values + 1));
        }
        if !self.keys.uniform {
            layout.key_offsets = place(4 * (keys + 1));
        }
        if !self.values.uniform {
            layout.value_offsets = place(4 * (values + 1));
        }
        if times > 256 {
            layout.time_indexes = place(2 * updates);
        } else if times > 1 {
            layout.time_indexes = place(updates);
        }
        layout.keys_at = place(self.keys.size_of_bytes());
        layout.length = index(end.next_multiple_of(8));
        layout
    }

    /// Writes the header before the values and the other columns after them, in the order of their places.
    fn write(&mut self, layout: &Layout) {
        let bytes = &mut self.values.bytes;
        bytes.reserve(layout.length as usize);
        bytes[..HEADER].copy_from_slice(&layout.header());
        fill_up(bytes, bytes.len().next_multiple_of(8));
        let mut lanes = [0; MAXIMUM_LANES];
        for time in &self.distinct {
            time.store(&mut lanes[..T::LANES]);
            write_numbers(bytes, &lanes[..T::LANES], u64::to_le_bytes);
        }
        if layout.weights != 0 {
            write_numbers(bytes, &self.weights, i64::to_le_bytes);
        }
        if layout.value_starts != 0 {
            write_numbers(bytes, &self.value_starts, u32::to_le_bytes);
            write_numbers(bytes, &[layout.values], u32::to_le_bytes);
        }
        if layout.update_starts != 0 {
            write_numbers(bytes, &self.update_starts, u32::to_le_bytes);
            write_numbers(bytes, &[layout.updates], u32::to_le_bytes);
        }
        if layout.key_offsets != 0 {
            write_numbers(bytes, &[0], u32::to_le_bytes);
            write_numbers(bytes, &self.keys.ends, u32::to_le_bytes);
        }
        if layout.value_offsets != 0 {
            write_numbers(bytes, &[0], u32::to_le_bytes);
            write_numbers(bytes, &self.values.ends, u32::to_le_bytes);
        }
        if layout.time_indexes != 0 {
            let distinct = &self.distinct;
            let place = |time: T| {
                distinct
                    .binary_search(&time)
                    .expect("all times of the page are among its distinct times")
            };
            if layout.times > 256 {
                write_numbers(bytes, &self.times, |time| (place(time) as u16).to_le_bytes());
            } else {
                write_numbers(bytes, &self.times, |time| [place(time) as u8]);
            }
        }
        bytes.push(&self.keys.bytes);
        fill_up(bytes, layout.length as usize);
    }
}

/// Appends these numbers, as bytes.
fn write_numbers<N: Copy, const WIDTH: usize>(
    bytes: &mut Block,
    numbers: &[N],
    written: impl Fn(N) -> [u8; WIDTH],
) {
    let room = bytes.grow(WIDTH * numbers.len());
    for (place, number) in room.as_chunks_mut::<WIDTH>().0.iter_mut().zip(numbers) {
        *place = written(*number);
    }
}

/// Appends zeros up to this length.
fn fill_up(bytes: &mut Block, length: usize) {
    bytes.grow(length - bytes.len()).fill(0);
}
