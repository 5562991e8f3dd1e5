//! The rows below a bound that are needed all the same: the last ones of each key.

use std::collections::VecDeque;

use crate::bound::{Bound, BoundColumn};
use crate::builder::BatchBuilder;
use crate::fault::{self, Fault};
use crate::time::PageTime;

/// Keeps the last rows below a bound, of each key, while a merge goes through the rows in their order.
pub(crate) struct LastRows<T> {
    /// How many rows of a key are needed.
    needed: usize,
    /// Whether the last rows come first.
    descending: bool,
    /// The key of the rows.
    key: Vec<u8>,
    /// How many rows of the key are kept, if the last ones come first.
    kept: usize,
    /// Otherwise the last rows so far, each with its updates.
    held: VecDeque<Row<T>>,
}

struct Row<T> {
    value: Vec<u8>,
    updates: Vec<(T, i64)>,
}

impl<T: PageTime> LastRows<T> {
    pub(crate) fn new(bound: Option<&Bound>) -> Self {
        let needed = bound.map_or(0, |bound| match fault::armed(Fault::KeepOneLess) {
            true => bound.last.saturating_sub(1),
            false => bound.last,
        });
        let order = bound.map(|bound| bound.column);
        let descending = matches!(order, Some(BoundColumn::Order { descending: true, .. }));
        Self { needed, descending, key: Vec::new(), kept: 0, held: VecDeque::new() }
    }

    /// A row of `key` follows that is below the bound. Returns whether it can be one of the last.
    pub(crate) fn admits(&mut self, key: &[u8], builder: &mut BatchBuilder<T>) -> bool {
        if self.needed == 0 {
            return false;
        }
        if key != self.key {
            self.release(builder);
            self.key.clear();
            self.key.extend_from_slice(key);
            self.kept = 0;
        }
        self.kept += 1;
        !self.descending || self.kept <= self.needed
    }

    /// Holds the row that was admitted back, in the place of the first one if there are enough. Returns whether it does: if the
    /// last rows come first, a row that is admitted is needed.
    pub(crate) fn hold(&mut self, value: &[u8], updates: &[(T, i64)]) -> bool {
        if self.descending {
            return false;
        }
        let first = (self.held.len() == self.needed).then(|| self.held.pop_front()).flatten();
        let mut row = first.unwrap_or_else(|| Row { value: Vec::new(), updates: Vec::new() });
        row.value.clear();
        row.value.extend_from_slice(value);
        row.updates.clear();
        row.updates.extend_from_slice(updates);
        self.held.push_back(row);
        true
    }

    /// Moves the rows that are held back to `builder`: none of these can follow that would come after them.
    #[inline]
    pub(crate) fn release(&mut self, builder: &mut BatchBuilder<T>) {
        if self.held.is_empty() {
            return;
        }
        for row in self.held.drain(..) {
            for (time, weight) in &row.updates {
                builder.push(&self.key, &row.value, time, *weight);
            }
        }
    }
}
