//! Checks that bytes can be read as the page that their header describes.

use super::layout::{HEADER, Layout, PageLimits};
use crate::time::MAXIMUM_LANES;

impl Layout {
    /// Checks that every column lies within these bytes and that every offset points into its column, so that readers
    /// stay within the page; or returns what is wrong. The order of rows is not checked: the checksum vouches for it.
    pub fn check(&self, bytes: &[u8]) -> Result<(), &'static str> {
        let Layout { keys, values, updates, times, .. } = *self;
        if self.length as usize != bytes.len() {
            return Err("the page is not as long as it says");
        }
        let counts = [1, keys, values, updates, PageLimits::MAXIMUM_UPDATES as u32];
        let lanes = 1..=MAXIMUM_LANES as u32;
        if !lanes.contains(&self.lanes) || !counts.is_sorted() || !(1..=updates).contains(&times) {
            return Err("the counts of the page contradict each other");
        }
        let column = |at: u32, count: u32, width: u32| {
            let (start, length) = (at as usize, count as usize * width as usize);
            let column = bytes.get(start..).and_then(|rest| rest.get(..length));
            column.filter(|_| start >= HEADER).ok_or("a column is not within the page")
        };
        let strings = |offsets: u32, stride: u32, at: u32, count: u32| match offsets {
            0 => column(at, count, stride).map(drop),
            offsets => {
                let ends = numbers(column(offsets, count + 1, 4)?);
                column(at, last(ends), 1)?;
                check(first(ends) == 0 && ends.is_sorted_by_key(number), "strings overlap")
            }
        };
        let starts = |at: u32, above: u32, below: u32| match at {
            0 => check(above == below, "a column is missing"),
            at => {
                let starts = numbers(column(at, above + 1, 4)?);
                let ascend = starts.is_sorted_by(|a, b| number(a) < number(b));
                check(first(starts) == 0 && last(starts) == below && ascend, "runs overlap")
            }
        };
        strings(self.key_offsets, self.key_stride, self.keys_at, keys)?;
        strings(self.value_offsets, self.value_stride, self.values_at, values)?;
        starts(self.value_starts, keys, values)?;
        starts(self.update_starts, values, updates)?;
        column(self.times_at, times, 8 * self.lanes)?;
        if self.weights != 0 {
            column(self.weights, updates, 8)?;
        }
        let known = match self.time_indexes {
            0 => times == 1,
            at if times <= 256 => {
                column(at, updates, 1)?.iter().all(|&index| u32::from(index) < times)
            }
            at => {
                let indexes = column(at, updates, 2)?.as_chunks().0;
                indexes.iter().all(|&index| u32::from(u16::from_le_bytes(index)) < times)
            }
        };
        check(known, "a time is missing")
    }
}

fn check(holds: bool, reason: &'static str) -> Result<(), &'static str> {
    if holds { Ok(()) } else { Err(reason) }
}

fn numbers(column: &[u8]) -> &[[u8; 4]] {
    column.as_chunks().0
}

fn number(bytes: &[u8; 4]) -> u32 {
    u32::from_le_bytes(*bytes)
}

fn first(numbers: &[[u8; 4]]) -> u32 {
    numbers.first().map_or(0, number)
}

fn last(numbers: &[[u8; 4]]) -> u32 {
    numbers.last().map_or(0, number)
}
