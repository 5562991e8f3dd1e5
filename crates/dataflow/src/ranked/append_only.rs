//! The first rows of groups whose rows are never deleted.
//!
//! A row that is not selected never will be: the number of rows before it does not decrease. So only the output's trace is
//! kept, which has the selected entries with their numbers.

use std::cmp::Ordering;
use std::ops::Range;

use alluvium_trace::{Cursors, PageTime};

use super::selection::{Selecting, Selection, difference};
use super::top::{NUMBER, Numbering, Top};
use crate::fold::{Answer, Before, Changes, Logic};
use crate::weight::{add, weight_of};

/// Maintains the first rows of append-only groups.
pub(super) struct AppendOnly {
    which: Top,
    old: Selection,
    new: Selection,
    value: Vec<u8>,
}

impl AppendOnly {
    /// Selects `which` rows, of which none is skipped.
    pub(super) fn new(which: Top) -> Self {
        let (old, new) = (Selection::default(), Selection::default());
        Self { which, old, new, value: Vec::new() }
    }

    /// Loads the previous selection.
    fn load<T: PageTime>(&mut self, held: Option<&mut Cursors<T>>) {
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

    /// Whether all entries from this one on are behind the selection.
    fn is_behind(&self, entry: &[u8]) -> bool {
        let full = |&(_, rows): &(&[u8], u64)| rows >= self.which.last();
        self.which.numbering == Numbering::Row
            && self.old.last().filter(full).is_some_and(|(last, _)| entry > last)
    }
}

impl<T: PageTime> Logic<T> for AppendOnly {
    fn fold(
        &mut self,
        changes: &Changes<T>,
        key: usize,
        before: &mut Before<'_, T>,
        answer: &mut Answer<T>,
    ) {
        self.load(before.output(changes.key(key)));
        for moment in changes.moments(key) {
            let time = changes.change(moment.start).time;
            if self.is_behind(changes.value(moment.start)) {
                continue;
            }
            let mut selecting = self.new.select(self.which);
            merge(&self.old, changes, moment, &mut selecting);
            let numbered = self.which.numbered;
            let value = &mut self.value;
            difference(&self.old, &self.new, |entry, number, weight| {
                value.clear();
                value.extend_from_slice(entry);
                if numbered {
                    value.extend_from_slice(&number.to_be_bytes());
                }
                answer.push(value, time, weight);
            });
            std::mem::swap(&mut self.old, &mut self.new);
        }
    }
}

/// Selects from the previous selection and the inserted rows, both in order.
fn merge<T: PageTime>(
    old: &Selection,
    changes: &Changes<T>,
    moment: Range<usize>,
    selecting: &mut Selecting<'_>,
) {
    let mut kept = old.rows().peekable();
    let mut come = moment.peekable();
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
