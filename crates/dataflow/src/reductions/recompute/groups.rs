//! The rows of groups, and their results.

use std::cmp::Ordering;
use std::ops::Range;

use alluvium_trace::memory::StateContext;

use crate::rows::codec::Encoded;
use crate::rows::weight::add;

/// The rows of several groups, one group after the other. A group may occur several times, as of several times.
pub(crate) struct Groups {
    keys: Encoded,
    values: Encoded,
    weights: Vec<i64>,
    /// Where the rows of each group end.
    ends: Vec<usize>,
    /// The bytes of all rows, with their copies.
    bytes: usize,
}

impl Groups {
    pub(super) fn new(context: &StateContext) -> Self {
        let (keys, values) = (Encoded::counted(context), Encoded::counted(context));
        Self { keys, values, weights: Vec::new(), ends: Vec::new(), bytes: 0 }
    }

    /// The number of groups.
    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    /// The bytes of all rows, with their copies.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// The number of rows of all groups.
    pub(crate) fn rows(&self) -> usize {
        self.weights.len()
    }

    /// The rows of a group; at least one.
    pub(crate) fn rows_of(&self, group: usize) -> Range<usize> {
        let start = if group == 0 { 0 } else { self.ends[group - 1] };
        start..self.ends[group]
    }

    /// How often a row is there; at least once.
    pub(crate) fn weight(&self, row: usize) -> i64 {
        self.weights[row]
    }

    /// The keys of all rows.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &[u8]> + Clone {
        let groups = (0..self.len()).map(|group| (self.keys.get(group), self.rows_of(group)));
        groups.flat_map(|(key, rows)| rows.map(move |_| key))
    }

    /// The values of all rows; those of a group are in order.
    pub(crate) fn values(&self) -> impl Iterator<Item = &[u8]> + Clone {
        self.values.iter()
    }

    /// Adds a row to the group that [`end`](Self::end) ends.
    pub(super) fn push(&mut self, value: &[u8], weight: i64) {
        self.values.push(value);
        self.weights.push(weight);
        let copies = usize::try_from(weight).unwrap_or(usize::MAX);
        self.bytes = self.bytes.saturating_add(copies.saturating_mul(value.len() + ROW_BYTES));
    }

    /// Removes the rows of the group that has not ended; there were `bytes` before.
    pub(super) fn abandon(&mut self, bytes: usize) {
        let rows = self.ends.last().copied().unwrap_or(0);
        self.values.truncate(rows);
        self.weights.truncate(rows);
        self.bytes = bytes;
    }

    /// Ends a group, unless no rows were pushed; its number.
    pub(super) fn end(&mut self, key: &[u8]) -> Option<usize> {
        if self.ends.last().copied().unwrap_or(0) == self.rows() {
            return None;
        }
        self.keys.push(key);
        self.ends.push(self.rows());
        Some(self.len() - 1)
    }

    pub(super) fn clear(&mut self) {
        self.keys.clear();
        self.values.clear();
        self.weights.clear();
        self.ends.clear();
        self.bytes = 0;
    }
}

/// The bytes that a row takes beside its value: its end, its weight, and a place in an order.
const ROW_BYTES: usize = 24;

/// The results of groups: rows, or one error.
pub(crate) struct Results {
    values: Encoded,
    /// The index of a value, and its copies; in order within a group.
    items: Vec<(usize, i64)>,
    /// Where the items of each group end.
    ends: Vec<usize>,
    bytes: Vec<u8>,
}

/// The first byte of a result.
const ROW: u8 = 0;
const ERROR: u8 = 1;

/// A decoded result.
pub(super) enum Decoded<'a> {
    /// The value of a row.
    Row(&'a [u8]),
    /// The number of the function that failed, and the message.
    Error(usize, &'a str),
}

impl Results {
    pub(super) fn new(context: &StateContext) -> Self {
        let values = Encoded::counted(context);
        Self { values, items: Vec::new(), ends: Vec::new(), bytes: Vec::new() }
    }

    /// The one result of every group that is too large to be evaluated: an error.
    pub(super) fn of_too_large_groups(context: &StateContext) -> Self {
        let mut results = Self::new(context);
        let most = context.budget().policy().group >> 20;
        results.error(
            0,
            &format!(
                "the rows of the group are more than {most} MiB, too many to recompute together; \
                 a larger memory budget allows more"
            ),
        );
        results.end();
        results
    }

    /// The number of results of all groups.
    pub(super) fn rows(&self) -> usize {
        self.items.len()
    }

    /// Adds a row to the current group.
    pub(crate) fn row(&mut self, value: &[u8]) {
        self.bytes.clear();
        self.bytes.push(ROW);
        self.bytes.extend_from_slice(value);
        self.items.push((self.values.len(), 1));
        self.values.push(&self.bytes);
    }

    /// Makes a failure of function `number` the result of the current group.
    pub(crate) fn error(&mut self, number: usize, message: &str) {
        self.bytes.clear();
        self.bytes.push(ERROR);
        self.bytes.extend_from_slice(&(number as u16).to_le_bytes());
        self.bytes.extend_from_slice(message.as_bytes());
        self.items.push((self.values.len(), 1));
        self.values.push(&self.bytes);
    }

    /// Adds an encoded result, as the output's trace keeps it.
    pub(super) fn kept(&mut self, result: &[u8], weight: i64) {
        self.items.push((self.values.len(), weight));
        self.values.push(result);
    }

    /// Ends the current group.
    pub(crate) fn end(&mut self) {
        let start = self.ends.last().copied().unwrap_or(0);
        let values = &self.values;
        let items = &mut self.items[start..];
        if items.len() > 1 {
            items.sort_unstable_by(|one, other| values.get(one.0).cmp(values.get(other.0)));
            let mut last = start;
            for next in start + 1..self.items.len() {
                let (value, weight) = self.items[next];
                if self.values.get(self.items[last].0) == self.values.get(value) {
                    self.items[last].1 = add(self.items[last].1, weight);
                } else {
                    last += 1;
                    self.items[last] = (value, weight);
                }
            }
            self.items.truncate(last + 1);
        }
        self.ends.push(self.items.len());
    }

    /// The results of a group, in order, each once.
    pub(super) fn of(&self, group: usize) -> impl Iterator<Item = (&[u8], i64)> {
        let start = if group == 0 { 0 } else { self.ends[group - 1] };
        self.items[start..self.ends[group]]
            .iter()
            .map(|&(value, weight)| (self.values.get(value), weight))
    }

    /// The number of groups.
    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    /// The bytes of all results.
    pub(super) fn bytes(&self) -> usize {
        self.values.bytes().len() + self.items.len() * ROW_BYTES
    }

    pub(super) fn clear(&mut self) {
        self.values.clear();
        self.items.clear();
        self.ends.clear();
    }
}

/// Decodes a result.
pub(super) fn decoded(result: &[u8]) -> Decoded<'_> {
    match result.split_first() {
        Some((&ERROR, error)) => {
            let (number, message) = error.split_at(size_of::<u16>());
            let number = u16::from_le_bytes(number.try_into().expect("a number has two bytes"));
            let message = std::str::from_utf8(message).expect("a message is text");
            Decoded::Error(number.into(), message)
        }
        Some((_, row)) => Decoded::Row(row),
        None => unreachable!("a result starts with its kind"),
    }
}

/// Calls `emit` with the changes from the results `old` to `new`; both in order.
pub(super) fn difference<'a>(
    old: impl Iterator<Item = (&'a [u8], i64)>,
    new: impl Iterator<Item = (&'a [u8], i64)>,
    mut emit: impl FnMut(&[u8], i64),
) {
    let (mut old, mut new) = (old.peekable(), new.peekable());
    loop {
        let order = match (old.peek(), new.peek()) {
            (None, None) => return,
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some(before), Some(after)) => before.0.cmp(after.0),
        };
        let before = if order.is_le() { old.next() } else { None };
        let after = if order.is_ge() { new.next() } else { None };
        let change = after.map_or(0, |(_, weight)| weight) - before.map_or(0, |(_, weight)| weight);
        if let Some((value, _)) = before.or(after)
            && change != 0
        {
            emit(value, change);
        }
    }
}
