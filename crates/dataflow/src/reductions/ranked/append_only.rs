//! The first rows of groups whose rows are never deleted.
//!
//! A row that was once not among the first k never will be, because the rows before it only increase. So only the output's trace is
//! kept, which has the selected entries with their numbers.

use std::cmp::Ordering;
use std::ops::Range;

use alluvium_trace::memory::StateContext;
use alluvium_trace::{Cursors, Epoch};

use super::selection::{Selecting, Selection, difference};
use super::top::{NUMBER, Numbering, Top};
use crate::reductions::reduce::{Changes, Logic, Output, Prior};
use crate::rows::weight::{add, weight_of};

/// Maintains the first rows of append-only groups.
pub(super) struct AppendOnly {
    which: Top,
    old: Selection,
    new: Selection,
    value: Vec<u8>,
}

impl AppendOnly {
    /// Selects `which` rows, of which none is skipped.
    pub(super) fn new(which: Top, context: &StateContext) -> Self {
        let (old, new) = (Selection::new(context), Selection::new(context));
        Self { which, old, new, value: Vec::new() }
    }

    /// Loads the previous selection.
    fn load(&mut self, held: Option<&mut Cursors<Epoch>>) {
        self.old.clear();
        let Some(held) = held else { return };
        while let Some(value) = held.val() {
            let copies = weight_of(held);
            if copies > 0 {
                let (entry, number) = match self.which.numbered {
                    true => value.split_at(value.len() - NUMBER),
                    false => (value, &[][..]),
                };
                let number = number.try_into().map_or(0, u64::from_be_bytes);
                self.old.push(entry, number, copies);
            }
            held.step_val();
        }
        self.old.sort();
    }

    /// Whether all entries from this one on are past the selection.
    fn is_behind(&self, entry: &[u8]) -> bool {
        let full = |&(_, rows): &(&[u8], u64)| rows >= self.which.last();
        self.which.numbering == Numbering::Row
            && self.old.last().filter(full).is_some_and(|(last, _)| entry > last)
    }
}

impl Logic for AppendOnly {
    fn reduce(
        &mut self,
        changes: &Changes,
        key: usize,
        prior: &mut Prior<'_>,
        output: &mut Output,
    ) {
        self.load(prior.output(changes.key(key)));
        for slice in changes.time_slices(key) {
            let time = changes.change(slice.start).time;
            if self.is_behind(changes.value(slice.start)) {
                continue;
            }
            let mut selecting = self.new.select(self.which);
            merge(&self.old, changes, slice, &mut selecting);
            let numbered = self.which.numbered;
            let value = &mut self.value;
            difference(&self.old, &self.new, |entry, number, weight| {
                value.clear();
                value.extend_from_slice(entry);
                if numbered {
                    value.extend_from_slice(&number.to_be_bytes());
                }
                output.push(value, time, weight);
            });
            std::mem::swap(&mut self.old, &mut self.new);
        }
    }
}

/// Selects from the previous selection and the inserted rows, both in order.
fn merge(old: &Selection, changes: &Changes, slice: Range<usize>, selecting: &mut Selecting<'_>) {
    let mut kept = old.rows().peekable();
    let mut come = slice.peekable();
    loop {
        let (entry, mut copies) = match (kept.peek(), come.peek()) {
            (None, None) => return,
            (Some(&(entry, copies)), None) => (entry, copies),
            (None, Some(&row)) => (changes.value(row), 0),
            (Some(&(entry, copies)), Some(&row)) => match entry.cmp(changes.value(row)) {
                Ordering::Greater => (changes.value(row), 0),
                Ordering::Less | Ordering::Equal => (entry, copies),
            },
        };
        if copies > 0 {
            kept.next();
        }
        while let Some(row) = come.next_if(|&row| changes.value(row) == entry) {
            let weight = changes.change(row).weight;
            debug_assert!(weight > 0, "rows of an append-only group are inserted");
            copies = add(copies, weight);
        }
        if selecting.take(entry, copies).is_break() {
            return;
        }
    }
}
