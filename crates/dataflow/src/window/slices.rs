//! Slices of partitions, which are evaluated together.

use std::ops::Range;

use alluvium_trace::Epoch;
use alluvium_trace::memory::StateContext;

use super::versions::Copies;
use crate::codec::Encoded;
use crate::fault::{self, Fault};

/// Some rows of partitions, of which some are emitted and the others are what their frames reach.
pub(super) struct Slices {
    /// The rows of all slices, one after the other.
    pub(super) entries: Encoded,
    pub(super) copies: Vec<Copies>,
    slices: Vec<Slice>,
}

/// Rows of a partition that follow each other, before and after the changes of one time.
#[derive(Clone, Debug)]
pub(super) struct Slice {
    /// The number of the partition among the changed ones.
    pub(super) key: usize,
    pub(super) time: Epoch,
    pub(super) rows: Range<usize>,
    /// The rows that are emitted.
    pub(super) emitted: Range<usize>,
    /// How many rows of the partition are before the slice.
    pub(super) before: Copies,
}

/// The rows of slices at one time: each copy of a row has a place.
pub(super) struct Version {
    /// The row of each place.
    pub(super) rows: Vec<u32>,
    pub(super) spans: Vec<Span>,
}

/// The places of one slice.
pub(super) struct Span {
    pub(super) all: Range<usize>,
    pub(super) emitted: Range<usize>,
    /// How many rows of the partition are before the first.
    pub(super) before: i64,
}

impl Slices {
    pub(super) fn new(context: &StateContext) -> Self {
        Self { entries: Encoded::counted(context), copies: Vec::new(), slices: Vec::new() }
    }

    /// The number of rows, with those of the slice that is being made.
    pub(super) fn rows(&self) -> usize {
        self.copies.len()
    }

    /// The slices, in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Slice> {
        self.slices.iter()
    }

    /// Whether there are no slices.
    pub(super) fn is_empty(&self) -> bool {
        self.slices.is_empty()
    }

    /// Adds a row to the slice that [`end`](Self::end) ends.
    pub(super) fn push(&mut self, entry: &[u8], copies: Copies) {
        self.entries.push(entry);
        self.copies.push(copies);
    }

    /// Ends a slice.
    pub(super) fn end(&mut self, slice: Slice) {
        debug_assert_eq!(slice.rows.end, self.rows());
        self.slices.push(slice);
    }

    pub(super) fn clear(&mut self) {
        self.entries.clear();
        self.copies.clear();
        self.slices.clear();
    }

    /// The rows before the changes, or after them.
    pub(super) fn version(&self, of: impl Fn(Copies) -> i64) -> Version {
        let mut rows = Vec::with_capacity(self.rows());
        let mut spans = Vec::with_capacity(self.slices.len());
        for slice in &self.slices {
            let start = rows.len();
            let mut emitted = start..start;
            for row in slice.rows.clone() {
                if row == slice.emitted.start {
                    emitted.start = rows.len();
                }
                let copies = match fault::armed(Fault::IgnoreCopies) {
                    true => of(self.copies[row]).min(1),
                    false => of(self.copies[row]),
                };
                let copies = usize::try_from(copies).expect("a row of a slice is there");
                rows.extend(std::iter::repeat_n(row as u32, copies));
                if row + 1 == slice.emitted.end {
                    emitted.end = rows.len();
                }
            }
            if slice.emitted.is_empty() {
                emitted = start..start;
            }
            let all = start..rows.len();
            spans.push(Span { all, emitted, before: of(slice.before) });
        }
        Version { rows, spans }
    }
}

impl Version {
    /// The number of emitted places.
    pub(super) fn emitted(&self) -> usize {
        self.spans.iter().map(|span| span.emitted.len()).sum()
    }
}
