//! The changes of an interval under some keys.

use std::ops::Range;

use alluvium_trace::memory::{Charge, StateContext};
use alluvium_trace::{Cursors, Epoch};

use crate::fault::{self, Fault};
use crate::rows::codec::Encoded;

/// Changes under some keys: keys in byte order, under each its rows by time and then value.
pub(crate) struct Changes {
    keys: Encoded,
    /// Where the rows of each key end.
    ends: Vec<usize>,
    values: Encoded,
    rows: Vec<Change>,
    /// Keys are loaded until they and their values have this many bytes.
    full: usize,
    /// Accounts for `ends` and `rows`.
    charge: Charge,
}

/// The change of a row.
#[derive(Clone, Copy)]
pub(crate) struct Change {
    value: usize,
    /// The time of the change.
    pub(crate) time: Epoch,
    /// The change of the row's weight.
    pub(crate) weight: i64,
}

impl Changes {
    pub(super) fn new(context: &StateContext) -> Self {
        let budget = context.budget();
        Self {
            keys: Encoded::counted(context),
            ends: Vec::new(),
            values: Encoded::counted(context),
            rows: Vec::new(),
            full: budget.policy().output_batch,
            charge: budget.charge(0),
        }
    }

    /// Loads the next keys of `cursors`, as many as should be processed together; returns whether there are any.
    pub(super) fn load(&mut self, cursors: &mut Cursors<Epoch>) -> bool {
        self.clear();
        while self.bytes() < self.full
            && let Some(key) = cursors.key()
        {
            let start = self.rows.len();
            self.keys.push(key);
            while let Some(value) = cursors.val() {
                let index = self.values.len();
                self.values.push(value);
                cursors.updates(|time, weight| {
                    self.rows.push(Change { value: index, time, weight });
                });
                cursors.step_val();
            }
            let rows = &mut self.rows[start..];
            if !rows.is_sorted_by(|one, other| one.time <= other.time) {
                rows.sort_by_key(|row| row.time);
            }
            self.ends.push(self.rows.len());
            cursors.step_key();
        }
        self.count();
        self.len() > 0
    }

    pub(super) fn clear(&mut self) {
        self.keys.clear();
        self.ends.clear();
        self.values.clear();
        self.rows.clear();
        if self.rows.capacity() * size_of::<Change>() > 4 * self.full {
            self.rows = Vec::new();
        }
        self.count();
    }

    /// The bytes of keys and values.
    pub(super) fn bytes(&self) -> usize {
        self.keys.bytes().len() + self.values.bytes().len()
    }

    /// Accounts for numbers; keys and values account for themselves.
    fn count(&mut self) {
        let ends = self.ends.capacity() * size_of::<usize>();
        self.charge.set(ends + self.rows.capacity() * size_of::<Change>());
    }

    /// The number of keys.
    pub(crate) fn len(&self) -> usize {
        self.keys.len()
    }

    /// The bytes of a key.
    pub(crate) fn key(&self, key: usize) -> &[u8] {
        self.keys.get(key)
    }

    /// The rows under a key.
    pub(crate) fn rows_of(&self, key: usize) -> Range<usize> {
        let start = if key == 0 { 0 } else { self.ends[key - 1] };
        start..self.ends[key]
    }

    /// The change of a row.
    pub(crate) fn change(&self, row: usize) -> Change {
        self.rows[row]
    }

    /// The value of a row.
    pub(crate) fn value(&self, row: usize) -> &[u8] {
        self.values.get(self.rows[row].value)
    }

    /// The values of all rows, in order.
    pub(crate) fn all_values(&self) -> impl Iterator<Item = &[u8]> {
        self.rows.iter().map(|change| self.values.get(change.value))
    }

    /// The time slices of a key: its rows of one time each, times ascending.
    pub(crate) fn time_slices(&self, key: usize) -> impl Iterator<Item = Range<usize>> {
        let all = self.rows_of(key);
        let last_only = fault::armed(Fault::LastTimeOnly);
        let mut start = all.start;
        std::iter::from_fn(move || {
            let first = self.rows[start..all.end].first()?;
            let same = self.rows[start..all.end].iter().take_while(|row| row.time == first.time);
            let end = if last_only { all.end } else { start + same.count() };
            let slice = start..end;
            start = end;
            Some(slice)
        })
    }
}
