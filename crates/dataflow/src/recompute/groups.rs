//! The rows of groups, and their results.

use std::cmp::Ordering;
use std::ops::Range;

use alluvium_trace::memory::StateContext;

use crate::codec::Encoded;
use crate::weight::add;

/// The rows of several groups, one group after the other. A group may occur several times, as of several times.
pub(crate) struct Groups {
    keys: Encoded,
    values: Encoded,
    weights: Vec<i64>,
    /// Where the rows of each group end.
    ends: Vec<usize>,
}

impl Groups {
    pub(super) fn new(context: &StateContext) -> Self {
        let (keys, values) = (Encoded::counted(context), Encoded::counted(context));
        Self { keys, values, weights: Vec::new(), ends: Vec::new() }
    }

    /// The number of groups.
    pub(crate) fn len(&self) -> usize {
        self.ends.len()
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

    pub(super) fn push(&mut self, value: &[u8], weight: i64) {
        self.values.push(value);
        self.weights.push(weight);
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
    }
}

/// What comes of groups: rows, or an error in their stead.
pub(crate) struct Results {
    values: Encoded,
    /// Which value, and how often; within a group in order.
    items: Vec<(usize, i64)>,
    /// Where the items of each group end.
    ends: Vec<usize>,
    bytes: Vec<u8>,
}

/// What an answer starts with.
const ROW: u8 = 0;
const ERROR: u8 = 1;

/// An answer, taken apart.
pub(super) enum Answered<'a> {
    /// The value of a row.
    Row(&'a [u8]),
    /// Which function has no result, and why.
    Error(usize, &'a str),
}

impl Results {
    pub(super) fn new(context: &StateContext) -> Self {
        let values = Encoded::counted(context);
        Self { values, items: Vec::new(), ends: Vec::new(), bytes: Vec::new() }
    }

    /// Adds a row to the group in hand.
    pub(crate) fn row(&mut self, value: &[u8]) {
        self.bytes.clear();
        self.bytes.push(ROW);
        self.bytes.extend_from_slice(value);
        self.items.push((self.values.len(), 1));
        self.values.push(&self.bytes);
    }

    /// Makes it the answer of the group in hand that function `number` has no result.
    pub(crate) fn error(&mut self, number: usize, message: &str) {
        self.bytes.clear();
        self.bytes.push(ERROR);
        self.bytes.extend_from_slice(&(number as u16).to_le_bytes());
        self.bytes.extend_from_slice(message.as_bytes());
        self.items.push((self.values.len(), 1));
        self.values.push(&self.bytes);
    }

    /// Adds an answer as it was kept.
    pub(super) fn kept(&mut self, answer: &[u8], weight: i64) {
        self.items.push((self.values.len(), weight));
        self.values.push(answer);
    }

    /// Ends the group in hand.
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

    /// The answers of a group, in order, each once.
    pub(super) fn of(&self, group: Option<usize>) -> impl Iterator<Item = (&[u8], i64)> {
        let range = group.map_or(0..0, |group| {
            let start = if group == 0 { 0 } else { self.ends[group - 1] };
            start..self.ends[group]
        });
        self.items[range].iter().map(|&(value, weight)| (self.values.get(value), weight))
    }

    /// The number of groups.
    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(super) fn clear(&mut self) {
        self.values.clear();
        self.items.clear();
        self.ends.clear();
    }
}

/// Takes an answer apart.
pub(super) fn answered(answer: &[u8]) -> Answered<'_> {
    match answer.split_first() {
        Some((&ERROR, error)) => {
            let (number, message) = error.split_at(size_of::<u16>());
            let number = u16::from_le_bytes(number.try_into().expect("a number has two bytes"));
            let message = std::str::from_utf8(message).expect("a message is text");
            Answered::Error(number.into(), message)
        }
        Some((_, row)) => Answered::Row(row),
        None => unreachable!("an answer starts with what it is"),
    }
}

/// Calls `give` with what has to change for the answers `old` to become `new`; both in order.
pub(super) fn difference<'a>(
    old: impl Iterator<Item = (&'a [u8], i64)>,
    new: impl Iterator<Item = (&'a [u8], i64)>,
    mut give: impl FnMut(&[u8], i64),
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
            give(value, change);
        }
    }
}
