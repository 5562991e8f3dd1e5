//! The rows of a key at a time: its history with changes applied.

use std::cmp::Ordering;
use std::ops::{ControlFlow, Range};

use alluvium_trace::{Cursors, Epoch};

use crate::reductions::reduce::Changes;
use crate::rows::weight::{add, weight_of};

/// The changes of one key up to a time, to be applied to its history.
#[derive(Debug, Default)]
pub(crate) struct Overlay {
    /// By value: a row that has the value, and the sum of the weights.
    changes: Vec<(usize, i64)>,
}

/// The most changes that are inserted one by one: moving the changes after each costs no more than sorting all.
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
        history: Option<&mut Cursors<Epoch>>,
        from: &[u8],
        mut visit: impl FnMut(&[u8], i64) -> ControlFlow<()>,
    ) {
        let value = |change: &(usize, i64)| changes.value(change.0);
        merge_from(history, &self.changes, value, from, |value, kept, change| {
            present(value, kept, change, &mut visit)
        });
    }

    /// Calls `visit` with each value of the key below `below` that has a positive weight, the last one first, and its weight,
    /// until `visit` breaks.
    pub(crate) fn visit_back(
        &self,
        changes: &Changes,
        history: Option<&mut Cursors<Epoch>>,
        below: &[u8],
        mut visit: impl FnMut(&[u8], i64) -> ControlFlow<()>,
    ) {
        let value = |change: &(usize, i64)| changes.value(change.0);
        merge_back(history, &self.changes, value, below, |value, kept, change| {
            present(value, kept, change, &mut visit)
        });
    }
}

/// Calls `visit` with a value and its weight, if that is positive with its change.
fn present(
    value: &[u8],
    kept: i64,
    change: Option<&(usize, i64)>,
    visit: &mut impl FnMut(&[u8], i64) -> ControlFlow<()>,
) -> ControlFlow<()> {
    let weight = add(kept, change.map_or(0, |(_, weight)| *weight));
    if weight > 0 { visit(value, weight) } else { ControlFlow::Continue(()) }
}

/// Calls `visit` with each value from `from` on that the history of a key or one of `changes` has, in order, until it breaks:
/// the value, its weight in the history, and its change. `value` is that of a change; changes are in the order of their values,
/// each of another one.
pub(crate) fn merge_from<'a, C>(
    mut history: Option<&mut Cursors<Epoch>>,
    changes: &[C],
    value: impl Fn(&C) -> &'a [u8],
    from: &[u8],
    mut visit: impl FnMut(&[u8], i64, Option<&C>) -> ControlFlow<()>,
) {
    if let Some(history) = &mut history {
        history.rewind_vals();
        if !from.is_empty() {
            history.seek_val(from);
        }
    }
    let mut next = match from.is_empty() {
        true => 0,
        false => changes.partition_point(|change| value(change) < from),
    };
    loop {
        let kept = history.as_deref().and_then(Cursors::val);
        let change = changes.get(next);
        let order = match (kept, change) {
            (None, None) => return,
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some(kept), Some(change)) => kept.cmp(value(change)),
        };
        let is_kept = order.is_le();
        if visit_merged(
            history.as_deref(),
            is_kept,
            change.filter(|_| order.is_ge()),
            &value,
            &mut visit,
        )
        .is_break()
        {
            return;
        }
        if is_kept && let Some(history) = &mut history {
            history.step_val();
        }
        next += usize::from(order.is_ge());
    }
}

/// As [`merge_from`], with each value below `below`, the last one first.
pub(crate) fn merge_back<'a, C>(
    mut history: Option<&mut Cursors<Epoch>>,
    changes: &[C],
    value: impl Fn(&C) -> &'a [u8],
    below: &[u8],
    mut visit: impl FnMut(&[u8], i64, Option<&C>) -> ControlFlow<()>,
) {
    let mut at = Vec::new();
    let mut has_kept = history.as_mut().is_some_and(|history| history.seek_val_before(below));
    let mut next = changes.partition_point(|change| value(change) < below);
    loop {
        let kept = history.as_deref().filter(|_| has_kept).and_then(Cursors::val);
        let change = next.checked_sub(1).map(|last| &changes[last]);
        let order = match (kept, change) {
            (None, None) => return,
            (Some(_), None) => Ordering::Greater,
            (None, Some(_)) => Ordering::Less,
            (Some(kept), Some(change)) => kept.cmp(value(change)),
        };
        let is_kept = order.is_ge();
        if visit_merged(
            history.as_deref(),
            is_kept,
            change.filter(|_| order.is_le()),
            &value,
            &mut visit,
        )
        .is_break()
        {
            return;
        }
        if is_kept && let Some(history) = &mut history {
            at.clear();
            at.extend_from_slice(history.val().unwrap_or_default());
            has_kept = history.seek_val_before(&at);
        }
        next -= usize::from(order.is_le());
    }
}

/// Calls `visit` with the present value of the history if it `is_kept`, or that of the change; one of them is there.
fn visit_merged<'a, C>(
    history: Option<&Cursors<Epoch>>,
    is_kept: bool,
    change: Option<&C>,
    value: impl Fn(&C) -> &'a [u8],
    mut visit: impl FnMut(&[u8], i64, Option<&C>) -> ControlFlow<()>,
) -> ControlFlow<()> {
    let kept = history.filter(|_| is_kept);
    let merged = change.map(value).or_else(|| kept.and_then(Cursors::val));
    visit(merged.unwrap_or_default(), kept.map_or(0, weight_of), change)
}
