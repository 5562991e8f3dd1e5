//! The rows of a partition before and after the changes of one time.

use std::ops::{ControlFlow, Range};

use alluvium_trace::{Cursors, Epoch};

use crate::reductions::reduce::Changes;
use crate::rows::weight::add;
use crate::state::overlay::{merge_back, merge_from};

/// The changes of a partition since the beginning of an interval, to be applied to its history.
#[derive(Debug, Default)]
pub(super) struct Versions {
    /// By value.
    items: Vec<Item>,
    /// For the items before each: the sums of `old` and `new`.
    sums: Vec<(i64, i64)>,
}

/// How the weight of a row has changed.
#[derive(Clone, Copy, Debug)]
struct Item {
    /// A changed row that has the value.
    row: usize,
    /// Up to the time before.
    old: i64,
    /// Up to this time.
    new: i64,
}

/// The copies of a row before and after a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Copies {
    pub(super) old: i64,
    pub(super) new: i64,
}

impl Copies {
    /// The copies that are there before and after.
    pub(super) fn common(self) -> u64 {
        self.old.min(self.new).unsigned_abs()
    }

    /// Whether their number changes.
    pub(super) fn change(self) -> bool {
        self.old != self.new
    }
}

/// A row that is there before or after a change.
pub(super) struct Visited<'a> {
    pub(super) entry: &'a [u8],
    pub(super) copies: Copies,
    /// Whether it was there when the interval began.
    pub(super) is_held: bool,
}

impl Versions {
    /// Forgets the changes.
    pub(super) fn clear(&mut self) {
        self.items.clear();
        self.sums.clear();
    }

    /// Moves on to the end of a time slice.
    pub(super) fn advance(&mut self, changes: &Changes, slice: Range<usize>) {
        for item in &mut self.items {
            item.old = item.new;
        }
        let item = |row| Item { row, old: 0, new: changes.change(row).weight };
        self.items.extend(slice.map(item));
        let value = |item: &Item| changes.value(item.row);
        if !self.items.is_sorted_by(|one, other| value(one) < value(other)) {
            // Two runs in order, which a stable sort merges.
            self.items.sort_by(|one, other| value(one).cmp(value(other)));
            self.items.dedup_by(|next, first| {
                let is_same = value(next) == value(first);
                if is_same {
                    first.old = add(first.old, next.old);
                    first.new = add(first.new, next.new);
                }
                is_same
            });
        }
        self.sums.clear();
    }

    /// The first row from `from` on whose weight changes.
    pub(super) fn next_change<'a>(&self, changes: &'a Changes, from: &[u8]) -> Option<&'a [u8]> {
        let first = self.items.partition_point(|item| changes.value(item.row) < from);
        let next = self.items[first..].iter().find(|item| item.old != item.new)?;
        Some(changes.value(next.row))
    }

    /// The first row that has changed since the beginning of the interval.
    pub(super) fn first<'a>(&self, changes: &'a Changes) -> Option<&'a [u8]> {
        self.items.first().map(|item| changes.value(item.row))
    }

    /// By how much the number of rows before `entry` has changed since the beginning of the interval.
    pub(super) fn rows_before(&mut self, changes: &Changes, entry: &[u8]) -> (i64, i64) {
        if self.sums.is_empty() {
            let mut sum = (0, 0);
            self.sums.push(sum);
            for item in &self.items {
                sum = (add(sum.0, item.old), add(sum.1, item.new));
                self.sums.push(sum);
            }
        }
        self.sums[self.items.partition_point(|item| changes.value(item.row) < entry)]
    }

    /// Calls `visit` with each row from `from` on, in order, until it breaks.
    pub(super) fn visit(
        &self,
        changes: &Changes,
        history: Option<&mut Cursors<Epoch>>,
        from: &[u8],
        mut visit: impl FnMut(Visited<'_>) -> ControlFlow<()>,
    ) {
        let value = |item: &Item| changes.value(item.row);
        merge_from(history, &self.items, value, from, |entry, weight, item| {
            visited(entry, weight, item).map_or(ControlFlow::Continue(()), &mut visit)
        });
    }

    /// Calls `visit` with each row below `below`, the last one first, until it breaks.
    pub(super) fn visit_back(
        &self,
        changes: &Changes,
        history: Option<&mut Cursors<Epoch>>,
        below: &[u8],
        mut visit: impl FnMut(Visited<'_>) -> ControlFlow<()>,
    ) {
        let value = |item: &Item| changes.value(item.row);
        merge_back(history, &self.items, value, below, |entry, weight, item| {
            visited(entry, weight, item).map_or(ControlFlow::Continue(()), &mut visit)
        });
    }
}

/// The row, if it is there before or after the change.
fn visited<'a>(entry: &'a [u8], weight: i64, item: Option<&Item>) -> Option<Visited<'a>> {
    let (old, new) = item.map_or((0, 0), |item| (item.old, item.new));
    let copies = Copies { old: add(weight, old).max(0), new: add(weight, new).max(0) };
    let is_there = copies.old > 0 || copies.new > 0;
    is_there.then_some(Visited { entry, copies, is_held: weight > 0 })
}
