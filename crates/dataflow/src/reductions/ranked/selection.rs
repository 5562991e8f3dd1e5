//! The selected rows of a group.

use std::cmp::Ordering;
use std::ops::ControlFlow;

use alluvium_trace::memory::StateContext;

use super::entry::split;
use super::top::{Numbering, Top};
use crate::fault::{self, Fault};
use crate::rows::codec::Encoded;

/// The selected entries of a group, in order.
pub(super) struct Selection {
    entries: Encoded,
    /// The index of an entry, its number (zero if rows are not numbered), and its copies.
    items: Vec<(usize, u64, i64)>,
    /// The first entry that is not selected because enough others are; empty if none was met.
    rejected: Vec<u8>,
    /// While selecting: the order key of the last entry.
    order: Vec<u8>,
}

/// A selection in progress.
pub(super) struct Selecting<'a> {
    which: Top,
    selection: &'a mut Selection,
    /// The number of rows so far, and of different order keys.
    rows: u64,
    peers: u64,
    /// The rank of the last entry.
    rank: u64,
}

impl Selection {
    pub(super) fn new(context: &StateContext) -> Self {
        let entries = Encoded::counted(context);
        Self { entries, items: Vec::new(), rejected: Vec::new(), order: Vec::new() }
    }

    /// Starts a selection.
    pub(super) fn select(&mut self, which: Top) -> Selecting<'_> {
        self.clear();
        Selecting { which, selection: self, rows: 0, peers: 0, rank: 0 }
    }

    /// Empties the selection.
    pub(super) fn clear(&mut self) {
        self.entries.clear();
        self.items.clear();
        self.rejected.clear();
    }

    /// Adds an entry that is known to be selected; call [`Selection::sort`] after the last one.
    pub(super) fn push(&mut self, entry: &[u8], number: u64, copies: i64) {
        let last = self.entries.len().checked_sub(1);
        let at = match last {
            Some(last) if self.entries.get(last) == entry => last,
            _ => {
                self.entries.push(entry);
                self.entries.len() - 1
            }
        };
        self.items.push((at, number, copies));
    }

    /// Sorts the pushed entries.
    pub(super) fn sort(&mut self) {
        let Self { entries, items, .. } = self;
        let key = |item: &(usize, u64, i64)| (entries.get(item.0), item.1);
        if !items.is_sorted_by(|one, other| key(one) <= key(other)) {
            items.sort_by(|one, other| key(one).cmp(&key(other)));
        }
    }

    /// The first entry that is not selected because enough others are, if it was met.
    pub(super) fn rejected(&self) -> Option<&[u8]> {
        // An entry ends with the length of its order, and so is never empty.
        Some(&self.rejected[..]).filter(|rejected| !rejected.is_empty())
    }

    /// The last selected entry, and the number of selected rows.
    pub(super) fn last(&self) -> Option<(&[u8], u64)> {
        let (entry, ..) = self.items.last()?;
        let rows = self.items.iter().map(|(_, _, copies)| copies.unsigned_abs()).sum();
        Some((self.entries.get(*entry), rows))
    }

    /// The selected entries, each once, and their copies.
    pub(super) fn rows(&self) -> impl Iterator<Item = (&[u8], i64)> {
        self.items.chunk_by(|one, other| one.0 == other.0).map(|items| {
            (self.entries.get(items[0].0), items.iter().map(|(_, _, copies)| copies).sum())
        })
    }

    fn item(&self, at: usize) -> Option<(&[u8], u64, i64)> {
        self.items.get(at).map(|&(entry, number, weight)| (self.entries.get(entry), number, weight))
    }
}

impl Selecting<'_> {
    /// Takes the next entry, which has `weight` copies; breaks if no later one can be selected.
    pub(super) fn take(&mut self, entry: &[u8], weight: i64) -> ControlFlow<()> {
        let Self { which, selection, .. } = self;
        let (which, last) = (*which, which.last());
        let copies = weight.unsigned_abs();
        if which.numbering != Numbering::Row {
            let this = split(entry, 0).0;
            if self.rows == 0 || selection.order != this {
                selection.order.clear();
                selection.order.extend_from_slice(this);
                self.peers += 1;
                self.rank = match which.numbering {
                    Numbering::Rank => self.rows + 1,
                    _ => self.peers,
                };
            }
        }
        let is_cut = which.numbering == Numbering::Row || fault::armed(Fault::CutTies);
        let first = if is_cut { self.rows + 1 } else { self.rank };
        if first > last {
            selection.rejected.extend_from_slice(entry);
            return ControlFlow::Break(());
        }
        let at = selection.entries.len();
        let items = selection.items.len();
        if which.numbering == Numbering::Row {
            let from = first.max(which.skip + 1);
            let to = last.min(self.rows.saturating_add(copies));
            if which.numbered {
                selection.items.extend((from..=to).map(|number| (at, number, 1)));
            } else if from <= to {
                selection.items.push((at, 0, (to - from) as i64 + 1));
            }
        } else if self.rank > which.skip {
            selection.items.push((at, if which.numbered { self.rank } else { 0 }, weight));
        }
        if selection.items.len() > items {
            selection.entries.push(entry);
        }
        self.rows = self.rows.saturating_add(copies);
        ControlFlow::Continue(())
    }
}

/// Calls `emit` with the changes from `old` to `new`.
pub(super) fn difference(old: &Selection, new: &Selection, mut emit: impl FnMut(&[u8], u64, i64)) {
    if fault::armed(Fault::KeepNumbers) && old.entries.len() == new.entries.len() {
        return;
    }
    let (mut left, mut right) = (0, 0);
    loop {
        let (before, after) = (old.item(left), new.item(right));
        let order = match (before, after) {
            (None, None) => return,
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some(before), Some(after)) => (before.0, before.1).cmp(&(after.0, after.1)),
        };
        match (before, after) {
            (Some(before), Some(after)) if order.is_eq() => {
                if before.2 != after.2 {
                    emit(before.0, before.1, after.2 - before.2);
                }
            }
            (Some(before), _) if order.is_lt() => emit(before.0, before.1, -before.2),
            (_, Some(after)) => emit(after.0, after.1, after.2),
            (_, None) => {}
        }
        left += usize::from(order.is_le());
        right += usize::from(order.is_ge());
    }
}
