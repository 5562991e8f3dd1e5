//! A slice in the making.

use super::gather::Partition;
use super::slices::{Carry, Slice};
use super::versions::Copies;
use crate::rows::codec::Encoded;

/// A slice in the making, and where it stands.
pub(super) struct Run {
    /// Rows from here on are emitted.
    pub(super) emit_from: Vec<u8>,
    /// The first row of the slice.
    pub(super) first: usize,
    /// How many rows of the partition are before it.
    pub(super) before: Copies,
    /// The carried state of these.
    pub(super) known: [Option<Carry>; 2],
    /// How many are before the row that comes next, or before the end of the emitted rows.
    pub(super) passed: Copies,
    /// The first row that is emitted.
    pub(super) emitted: Option<usize>,
    /// The last changed row.
    pub(super) change: Option<usize>,
    /// Rows after these do not see the last change. None unless they are known.
    pub(super) unseen: Option<Encoded>,
    /// How many rows are after the last change.
    pub(super) since: u64,
    /// Set while only rows after the emitted ones are read.
    pub(super) tail: Option<Tail>,
    /// The slice is cut when it has so many rows, or all slices have so many bytes.
    pub(super) limit: usize,
    pub(super) full: usize,
    /// The last row that was looked at.
    pub(super) last: Option<usize>,
    /// The last row of earlier slices that was emitted.
    pub(super) reached: Option<Vec<u8>>,
}

/// The rows after those that are emitted.
pub(super) struct Tail {
    /// Where these end.
    pub(super) end: usize,
    /// How many rows were read.
    pub(super) rows: u64,
    /// Rows after these are not in the ranges of emitted ones.
    pub(super) unseen: Encoded,
    /// Whether emitting continues in the next slice.
    pub(super) is_cut: bool,
}

impl Run {
    /// Whether emitting continues in another slice.
    pub(super) fn is_cut(&self) -> bool {
        self.tail.as_ref().is_some_and(|tail| tail.is_cut)
    }

    /// Where the emitted rows end, of a slice whose last row is before `rows`.
    pub(super) fn end(&self, rows: usize) -> usize {
        self.tail.as_ref().map_or(rows, |tail| tail.end)
    }

    pub(super) fn pass(&mut self, copies: Copies) {
        self.passed.old += copies.old;
        self.passed.new += copies.new;
    }

    /// The slice, with the rows before `rows`, of which those before `end` are emitted.
    /// The carried state before row `next` is asked for.
    pub(super) fn slice(
        &mut self,
        partition: &Partition<'_>,
        end: usize,
        rows: usize,
        next: Option<usize>,
    ) -> Slice {
        Slice {
            key: partition.number,
            time: partition.time,
            rows: self.first..rows,
            emitted: self.emitted.unwrap_or(end).min(end)..end,
            before: self.before,
            known: std::mem::take(&mut self.known),
            next,
        }
    }
}
