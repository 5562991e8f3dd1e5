//! The rows of a key at a time: its history with changes applied.

use std::cmp::Ordering;
use std::ops::{ControlFlow, Range};

use alluvium_trace::{Cursors, Epoch};

use crate::reduce::Changes;
use crate::weight::{add, weight_of};

/// The changes of one key up to a time, to be applied to its history.
#[derive(Debug, Default)]
pub(crate) struct Overlay {
    /// By value: a row that has the value, and the sum of the weights.
    changes: Vec<(usize, i64)>,
}

/// The most changes that are inserted one by one: moving the changes behind each costs no more than sorting all.
const FEW: usize = 4;

impl Overlay {
    /// Forgets the changes.
    pub(crate) fn clear(&mut self) {
        self.changes.clear();
    }

    /// Adds the changes of a time slice.
    pub(crate) fn apply(&mut self, changes: &Changes, slice: Range<usize>) {
        if slice.len() > FEW {
            // Two runs in order, which a stable sort merges.
            self.changes.extend(slice.map(|row| (row, changes.change(row).weight)));
            self.changes.sort_by(|one, other| changes.value(one.0).cmp(changes.value(other.0)));
            self.changes.dedup_by(|next, first| {
                let is_same = changes.value(next.0) == changes.value(first.0);
                if is_same {
                    first.1 = add(first.1, next.1);
                }
                is_same
            });
            return;
        }
        for row in slice {
            let weight = changes.change(row).weight;
            let place = self
                .changes
                .binary_search_by(|&(other, _)| changes.value(other).cmp(changes.value(row)));
            match place {
                Ok(place) => self.changes[place].1 = add(self.changes[place].1, weight),
                Err(place) => self.changes.insert(place, (row, weight)),
            }
        }
    }

    /// Calls `visit` with each value of the key from `from` on that has a positive weight, in order, and its weight, until
    /// `visit` breaks.
    pub(crate) fn visit(
        &self,
        changes: &Changes,
        mut history: Option<&mut Cursors<Epoch>>,
        from: &[u8],
        mut visit: impl FnMut(&[u8], i64) -> ControlFlow<()>,
    ) {
        if let Some(history) = &mut history {
            history.rewind_vals();
            if !from.is_empty() {
                history.seek_val(from);
            }
        }
        let mut next = match from.is_empty() {
            true => 0,
            false => self.changes.partition_point(|&(row, _)| changes.value(row) < from),
        };
        loop {
            let kept = history.as_ref().and_then(|history| history.val());
            let changed = self.changes.get(next).map(|&(row, weight)| (changes.value(row), weight));
            let order = match (kept, changed) {
                (None, None) => return,
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (Some(kept), Some((changed, _))) => kept.cmp(changed),
            };
            let mut weight = 0;
            if order.is_le() {
                weight = history.as_ref().map_or(0, |history| weight_of(history));
            }
            if order.is_ge() {
                weight = add(weight, changed.map_or(0, |(_, weight)| weight));
            }
            if weight > 0 {
                let value = if order.is_le() { kept } else { changed.map(|(value, _)| value) };
                if visit(value.expect("one of the two was compared"), weight).is_break() {
                    return;
                }
            }
            if order.is_le()
                && let Some(history) = &mut history
            {
                history.step_val();
            }
            if order.is_ge() {
                next += 1;
            }
        }
    }

    /// Calls `visit` with each value of the key below `below` that has a positive weight, the last one first, and its weight,
    /// until `visit` breaks.
    pub(crate) fn visit_back(
        &self,
        changes: &Changes,
        mut history: Option<&mut Cursors<Epoch>>,
        below: &[u8],
        mut visit: impl FnMut(&[u8], i64) -> ControlFlow<()>,
    ) {
        let mut at = Vec::new();
        let mut has_kept = history.as_mut().is_some_and(|history| history.seek_val_before(below));
        let mut next = self.changes.partition_point(|&(row, _)| changes.value(row) < below);
        loop {
            let kept = history.as_deref().filter(|_| has_kept).and_then(Cursors::val);
            let changed = next.checked_sub(1).map(|last| self.changes[last]);
            let changed = changed.map(|(row, weight)| (changes.value(row), weight));
            let order = match (kept, changed) {
                (None, None) => return,
                (Some(_), None) => Ordering::Greater,
                (None, Some(_)) => Ordering::Less,
                (Some(kept), Some((changed, _))) => kept.cmp(changed),
            };
            let mut weight = 0;
            if order.is_ge() {
                weight = history.as_deref().map_or(0, weight_of);
            }
            if order.is_le() {
                weight = add(weight, changed.map_or(0, |(_, weight)| weight));
            }
            if weight > 0 {
                let value = if order.is_ge() { kept } else { changed.map(|(value, _)| value) };
                if visit(value.expect("one of the two was compared"), weight).is_break() {
                    return;
                }
            }
            if order.is_ge()
                && let Some(history) = &mut history
            {
                at.clear();
                at.extend_from_slice(history.val().unwrap_or_default());
                has_kept = history.seek_val_before(&at);
            }
            next -= usize::from(order.is_le());
        }
    }
}
