//! Bounds: which rows are no longer needed.
//!
//! A trace whose readers need no rows with small values in some column is [pruned](Pruning): merges drop these rows. A
//! reader must not depend on whether a row below the bound is still there.

use std::fmt::Debug;

use crate::page::Page;
use crate::time::Epoch;

/// Says below which bound a trace is pruned.
pub trait Pruning: Debug + Send + Sync {
    /// The column of all of its bounds.
    fn column(&self) -> BoundColumn;

    /// The bound of the rows that no reader of changes at `epoch` or later needs; `None` if all may be
    /// needed. It never falls from one epoch to the next.
    fn bound(&self, epoch: Epoch) -> Option<Bound>;

    /// The least value of a bound, for people.
    fn describe(&self, least: i64) -> String;
}

/// Rows that are not needed: those in which a column is not NULL and has less than a value, but for the last ones of each key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bound {
    /// The column.
    pub column: BoundColumn,
    /// The least value that is needed.
    pub least: i64,
    /// How many of the rows with smaller values are needed of each key: those with the greatest. More than none only if the
    /// column is the [order](BoundColumn::Order) of the rows, and none of these is ever deleted.
    pub last: usize,
}

/// Where the bytes of an integer are in a row, and how they are encoded. It has two, four or eight bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BoundColumn {
    /// In the key at `at`: one byte, 1 or for NULL 0, and the number, big-endian with its sign bit flipped.
    Key {
        /// Where the first byte is.
        at: usize,
        /// The bytes of the number.
        width: usize,
    },
    /// In the value at `at`, little-endian.
    Value {
        /// Where the number is.
        at: usize,
        /// The bytes of the number.
        width: usize,
        /// The number of the bit of the value that is set for NULL.
        null: usize,
    },
    /// At the beginning of the value, as in a key. The bits of the number are flipped if rows are in descending order, and the
    /// first byte may be any but 1 for NULL.
    Order {
        /// The bytes of the number.
        width: usize,
        /// Whether rows are in descending order.
        descending: bool,
    },
}

impl BoundColumn {
    /// The number of a row; `None` if it is NULL.
    #[inline]
    pub fn number(self, key: &[u8], value: &[u8]) -> Option<i64> {
        match self {
            BoundColumn::Key { at, width } => {
                (key[at] == 1).then(|| sorted(&key[at + 1..at + 1 + width]))
            }
            BoundColumn::Value { at, width, null } => {
                (value[null / 8] >> (null % 8) & 1 == 0).then(|| plain(&value[at..at + width]))
            }
            BoundColumn::Order { width, descending } => (value[0] == 1).then(|| {
                let number = sorted(&value[1..=width]);
                // Flipped bits are those of a number from the other end.
                if descending { !number } else { number }
            }),
        }
    }
}

/// A key with which nothing that sorts below it, and is not NULL, is needed.
pub struct FirstKey {
    bytes: [u8; 9],
    length: usize,
}

impl FirstKey {
    /// Its bytes, or those that it begins with.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }

    /// Whether a key is below it and not NULL.
    pub(crate) fn is_above(&self, key: &[u8]) -> bool {
        key.first() == Some(&1) && key < self.bytes()
    }
}

impl Bound {
    /// Without the rows in which a column has less than a value.
    pub fn new(column: BoundColumn, least: i64) -> Self {
        Self { column, least, last: 0 }
    }

    /// Whether a row is not needed, unless it is one of the last of its key.
    #[inline]
    pub fn forgets(&self, key: &[u8], value: &[u8]) -> bool {
        self.column.number(key, value).is_some_and(|number| number < self.least)
    }

    /// The first key that is needed, if rows are sorted by the column.
    pub fn first_key(&self) -> Option<FirstKey> {
        let BoundColumn::Key { at: 0, width } = self.column else { return None };
        let mut bytes = [0; 9];
        bytes[0] = 1;
        let spare = 8 * (8 - width as u32);
        // Above the range of the column nothing is needed, and below it everything.
        let (most, least) = (i64::MAX >> spare, i64::MIN >> spare);
        if self.least > most {
            return Some(FirstKey { bytes: [2, 0, 0, 0, 0, 0, 0, 0, 0], length: 1 });
        }
        let number = (self.least.max(least) << spare).to_be_bytes();
        bytes[1..].copy_from_slice(&number);
        bytes[1] ^= 0x80;
        Some(FirstKey { bytes, length: 1 + width })
    }

    /// Whether some row of a page is not needed, unless it is one of the last of its key.
    pub(crate) fn forgets_some(&self, page: &Page) -> bool {
        match self.column {
            BoundColumn::Key { .. } => (0..page.keys()).any(|key| self.forgets(page.key(key), &[])),
            BoundColumn::Value { .. } | BoundColumn::Order { .. } => {
                (0..page.values()).any(|value| self.forgets(&[], page.value(value)))
            }
        }
    }
}

/// A big-endian number whose sign bit is flipped.
#[inline]
fn sorted(bytes: &[u8]) -> i64 {
    match *bytes {
        [a, b] => i64::from(i16::from_be_bytes([a ^ 0x80, b])),
        [a, b, c, d] => i64::from(i32::from_be_bytes([a ^ 0x80, b, c, d])),
        [a, b, c, d, e, f, g, h] => i64::from_be_bytes([a ^ 0x80, b, c, d, e, f, g, h]),
        _ => unreachable!("the column of a bound has two, four or eight bytes"),
    }
}

/// A little-endian number.
#[inline]
fn plain(bytes: &[u8]) -> i64 {
    match *bytes {
        [a, b] => i64::from(i16::from_le_bytes([a, b])),
        [a, b, c, d] => i64::from(i32::from_le_bytes([a, b, c, d])),
        [a, b, c, d, e, f, g, h] => i64::from_le_bytes([a, b, c, d, e, f, g, h]),
        _ => unreachable!("the column of a bound has two, four or eight bytes"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(value: Option<i64>, width: usize) -> Vec<u8> {
        let mut key = vec![u8::from(value.is_some())];
        key.extend_from_slice(&value.unwrap_or_default().to_be_bytes()[8 - width..]);
        if value.is_some() {
            key[1] ^= 0x80;
        }
        key
    }

    #[test]
    fn rows_below_a_bound_are_forgotten_wherever_their_column_is() {
        let numbers = [-32768, -300, -1, 0, 1, 255, 256, 32767];
        for width in [2, 4, 8] {
            for least in [i64::MIN, -300, 0, 7, 256, i64::MAX] {
                for number in numbers {
                    let sorted = key(Some(number), width);
                    let bound = Bound::new(BoundColumn::Key { at: 0, width }, least);
                    assert_eq!(bound.forgets(&sorted, &[]), number < least, "{number} {least}");
                    let first = bound.first_key().expect("it is sorted by the column");
                    assert_eq!(first.is_above(&sorted), number < least, "{number} {least} {width}");
                    let behind = [&[9, 9][..], &sorted].concat();
                    let bound = Bound::new(BoundColumn::Key { at: 2, width }, least);
                    assert_eq!(bound.forgets(&behind, &[]), number < least);
                    assert!(bound.first_key().is_none());
                    let value = [&[0b10][..], &number.to_le_bytes()[..width]].concat();
                    let column = BoundColumn::Value { at: 1, width, null: 0 };
                    assert_eq!(Bound::new(column, least).forgets(&[], &value), number < least);
                    let column = BoundColumn::Value { at: 1, width, null: 1 };
                    assert!(!Bound::new(column, least).forgets(&[], &value), "it is NULL");
                    for descending in [false, true] {
                        let column = BoundColumn::Order { width, descending };
                        let mut value = [&sorted[..], &[7, 7]].concat();
                        if descending {
                            value[1..=width].iter_mut().for_each(|byte| *byte ^= 0xff);
                        }
                        assert_eq!(Bound::new(column, least).forgets(&[], &value), number < least);
                        value[0] = 0xff;
                        assert!(!Bound::new(column, least).forgets(&[], &value), "it is NULL");
                    }
                }
            }
            let bound = Bound::new(BoundColumn::Key { at: 0, width }, i64::MAX);
            assert!(!bound.forgets(&key(None, width), &[]));
            assert!(!bound.first_key().is_some_and(|first| first.is_above(&key(None, width))));
        }
    }
}
