//! Encoded rows, one after the other.

use std::ops::Range;

use alluvium_trace::memory::{Charge, StateContext};

/// A cleared allocation is shrunk when it exceeds what it should retain by this factor.
const SLACK: usize = 4;

/// Encoded rows in one reusable allocation. One that is made by [`Encoded::counted`] counts its allocation, as of when it
/// was last cleared.
#[derive(Debug, Default)]
pub struct Encoded {
    pub(super) bytes: Vec<u8>,
    /// Where each row ends in `bytes`; it starts where the one before it ends.
    pub(super) ends: Vec<usize>,
    charge: Option<Charge>,
}

impl Encoded {
    /// No rows yet; for rows that are soon dropped, whose allocation is not counted.
    pub fn new() -> Self {
        Self::default()
    }

    /// No rows yet; for an allocation that is cleared and filled again and again.
    pub fn counted(context: &StateContext) -> Self {
        Self { charge: Some(context.budget().charge(0)), ..Self::default() }
    }

    /// The number of rows.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Removes the rows. The allocation stays, unless it is counted and far larger than what the budget lets one retain.
    pub fn clear(&mut self) {
        let used = self.bytes.len();
        self.bytes.clear();
        self.ends.clear();
        let Some(charge) = &self.charge else { return };
        let retained = charge.budget().retained(used);
        if self.capacity() > SLACK.saturating_mul(retained) {
            self.bytes.shrink_to(retained);
            self.ends.shrink_to(retained / size_of::<usize>());
        }
        let capacity = self.capacity();
        if let Some(charge) = &mut self.charge {
            charge.set(capacity);
        }
    }

    /// Removes the rows from `rows` on.
    pub fn truncate(&mut self, rows: usize) {
        let end = if rows == 0 { 0 } else { self.ends[rows - 1] };
        self.ends.truncate(rows);
        self.bytes.truncate(end);
    }

    /// Row `row`; panics unless it is below [`Encoded::len`].
    #[inline]
    pub fn get(&self, row: usize) -> &[u8] {
        &self.bytes[self.range(row)]
    }

    /// Appends a row that is encoded already.
    pub fn push(&mut self, row: &[u8]) {
        self.bytes.extend_from_slice(row);
        self.ends.push(self.bytes.len());
    }

    /// The rows in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[u8]> + DoubleEndedIterator + Clone {
        (0..self.len()).map(|row| self.get(row))
    }

    /// Overwrites the first bytes of row `row`.
    pub(crate) fn overwrite(&mut self, row: usize, start: &[u8]) {
        let range = self.range(row);
        self.bytes[range][..start.len()].copy_from_slice(start);
    }

    /// All rows' bytes, one after the other.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The bytes allocated, used or not.
    fn capacity(&self) -> usize {
        self.bytes.capacity() + self.ends.capacity() * size_of::<usize>()
    }

    /// Where row `row` lies in [`Encoded::bytes`].
    #[inline]
    pub(super) fn range(&self, row: usize) -> Range<usize> {
        let start = if row == 0 { 0 } else { self.ends[row - 1] };
        start..self.ends[row]
    }
}

#[cfg(test)]
mod tests {
    use alluvium_trace::memory::MemoryBudget;

    use super::*;

    #[test]
    fn rows_come_back_in_order_and_clear_forgets_them() {
        let mut rows = Encoded::new();
        for row in [&b"one"[..], b"", b"three"] {
            rows.push(row);
        }
        assert_eq!(rows.iter().collect::<Vec<_>>(), [&b"one"[..], b"", b"three"]);
        assert_eq!((rows.len(), rows.get(2)), (3, &b"three"[..]));
        rows.clear();
        assert!(rows.is_empty() && rows.bytes().is_empty());
    }

    #[test]
    fn what_is_kept_for_rows_to_come_is_counted_and_one_large_row_is_not_kept() {
        let budget = MemoryBudget::new(64 << 20);
        let mut rows = Encoded::counted(&StateContext::new(budget.clone(), None));
        (0..1000).for_each(|_| rows.push(&[7; 100]));
        rows.clear();
        let kept = budget.used();
        assert!(kept >= 108_000, "{kept}");
        rows.push(&vec![7; 50 << 20]);
        rows.clear();
        assert!(budget.used() <= SLACK * budget.retained(usize::MAX), "{}", budget.used());
        drop(rows);
        assert_eq!(budget.used(), 0);
    }
}
