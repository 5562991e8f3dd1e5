//! Encoded rows, one after the other.

use std::ops::Range;

/// Encoded rows in one reusable allocation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Encoded {
    pub(super) bytes: Vec<u8>,
    /// Where each row ends in `bytes`; it starts where the one before it ends.
    pub(super) ends: Vec<usize>,
}

impl Encoded {
    /// No rows yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// The number of rows.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Forgets the rows and keeps the allocation.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
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

    /// All rows' bytes, one after the other.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The bytes allocated, used or not.
    pub fn capacity(&self) -> usize {
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
}
