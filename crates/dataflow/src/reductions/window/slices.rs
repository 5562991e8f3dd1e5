//! Slices of partitions, which are evaluated together.

use std::ops::Range;

use alluvium_trace::Epoch;
use alluvium_trace::memory::StateContext;

use super::versions::Copies;
use crate::fault::{self, Fault};
use crate::rows::codec::Encoded;

/// Some rows of partitions, of which some are emitted and the others are what their frames reach.
pub(super) struct Slices {
    /// The rows of all slices, one after the other.
    pub(super) entries: Encoded,
    pub(super) copies: Vec<Copies>,
    slices: Vec<Slice>,
    /// The carried state before the [`next`](Slice::next) row of the slices that were evaluated last, before and after their
    /// changes.
    pub(super) known: [Option<Carry>; 2],
}

/// The state of all rows before some row of a partition; there are some.
#[derive(Clone, Debug)]
pub(super) struct Carry {
    /// The values that results carry.
    pub(super) values: Vec<u8>,
    /// The order of the last of these rows, if a function needs it.
    pub(super) order: Vec<u8>,
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
    /// The carried state of these before and after the changes, if functions are running and there are some.
    pub(super) known: [Option<Carry>; 2],
    /// The row before which [`Slices::known`] is to be found. Only the last slice has one.
    pub(super) next: Option<usize>,
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
        Self {
            entries: Encoded::counted(context),
            copies: Vec::new(),
            slices: Vec::new(),
            known: [None, None],
        }
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

    /// The last slice.
    pub(super) fn last(&self) -> Option<&Slice> {
        self.slices.last()
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
    /// The place of the first copy of a row of a span, or after it, of the first row that has copies.
    pub(super) fn place(&self, span: &Span, row: usize) -> usize {
        let rows = &self.rows[span.all.clone()];
        span.all.start + rows.partition_point(|&other| (other as usize) < row)
    }

    /// The number of emitted places.
    pub(super) fn emitted(&self) -> usize {
        self.spans.iter().map(|span| span.emitted.len()).sum()
    }
}
