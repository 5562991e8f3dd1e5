//! Which left rows are reached by the changes of both sides, and their matches.
//!
//! The rows of a key are swept in their order. Between two right rows, left rows match the same right row: they are a
//! *stretch*. Over an interval its match is constant, or it turns at some times. A stretch with a constant match is left at
//! the changed left rows in it; of one whose match turns all left rows are read. The sweep opens a stretch at the next change
//! of either side, finds the match in front of it with a seek back to a right row that does not change, and proceeds from
//! stretch to stretch until the match is constant again.

use super::matches::Matches;
use crate::fault::{self, Fault};
use crate::joins::row_pairs::RowPairs;
use crate::reductions::ranked::entry::split;
use crate::reductions::reduce::{History, PairLogic, Rows};
use crate::rows::weight::add;

/// The order of rows: their first bytes are their time.
#[derive(Clone, Copy, Debug)]
pub(super) struct TimeOrder {
    /// The bytes of a time.
    pub(super) width: usize,
    /// Whether a left row matches right rows of its own time.
    pub(super) or_equal: bool,
}

impl TimeOrder {
    fn time<'a>(&self, row: &'a [u8]) -> &'a [u8] {
        &row[..self.width]
    }

    /// The first bytes that left rows have after this right row or, if that counts, at its time.
    fn first_behind(&self, right: &[u8], into: &mut Vec<u8>) {
        self.bytes(right, !self.or_equal, into);
    }

    /// The first bytes that right rows have that this left row does not match.
    fn first_unmatched(&self, left: &[u8], into: &mut Vec<u8>) {
        self.bytes(left, self.or_equal, into);
    }

    /// The first bytes of rows after all of this one's time.
    fn next(&self, row: &[u8], into: &mut Vec<u8>) {
        self.bytes(row, true, into);
    }

    /// The time of a row, or the bytes after it.
    fn bytes(&self, row: &[u8], behind: bool, into: &mut Vec<u8>) {
        into.clear();
        into.extend_from_slice(self.time(row));
        if behind {
            // The first byte is 0 or 1, so this ends.
            for byte in into.iter_mut().rev() {
                *byte = byte.wrapping_add(1);
                if *byte != 0 {
                    break;
                }
            }
        }
    }
}

/// Keeps the matches of a key up to date.
pub(super) struct Sweep {
    order: TimeOrder,
    /// Whether there is a stretch, some of whose left rows may be done.
    is_open: bool,
    /// Where the left rows of the stretch begin.
    start: Vec<u8>,
    /// Where they end, if there is a right row after them.
    end: Option<Vec<u8>>,
    /// Their match.
    matches: Matches,
    history: History,
    bound: Vec<u8>,
}

impl Sweep {
    pub(super) fn new(order: TimeOrder) -> Self {
        Self {
            order,
            is_open: false,
            start: Vec::new(),
            end: None,
            matches: Matches::default(),
            history: History::default(),
            bound: Vec::new(),
        }
    }

    /// Opens the stretch of the next change; returns whether there is one.
    fn open(&mut self, key: &[u8], left: &mut Rows, right: &mut Rows) -> bool {
        let (order, start) = (self.order, &mut self.start);
        let of_right = right.changed_row(key);
        if let Some(change) = of_right {
            order.first_behind(change, start);
        }
        let (bound, is_right) = match (left.changed_row(key), of_right) {
            (None, None) => return false,
            (Some(row), Some(_)) if row < &start[..] => (row, false),
            (_, Some(change)) => (change, true),
            (Some(row), None) => (row, false),
        };
        match is_right {
            true => order.bytes(bound, false, &mut self.bound),
            false => {
                order.first_unmatched(bound, &mut self.bound);
                order.bytes(bound, false, start);
            }
        }
        self.matches.clear();
        right.seek_steady_below(key, &self.bound, &mut self.history);
        self.pass(key, right);
        match is_right {
            true => self.pass_time(key, right),
            false => self.end_at_next(key, right),
        }
        self.is_open = true;
        true
    }

    /// Passes the right rows below the bound.
    fn pass(&mut self, key: &[u8], right: &mut Rows) {
        let (matches, width) = (&mut self.matches, self.order.width);
        right.each_history_below(key, Some(&self.bound), &mut self.history, |row, history| {
            matches.pass(row, history, width);
            true
        });
    }

    /// Passes the right rows of the next time. The stretch is the one after them.
    fn pass_time(&mut self, key: &[u8], right: &mut Rows) {
        let Some(row) = right.next_row(key, &mut self.history) else {
            right.pass_changes(key, None);
            self.end = None;
            return;
        };
        self.order.first_behind(row, &mut self.start);
        self.order.next(row, &mut self.bound);
        self.pass(key, right);
        right.pass_changes(key, Some(&self.bound));
        self.end_at_next(key, right);
    }

    /// Ends the stretch at the next right row.
    fn end_at_next(&mut self, key: &[u8], right: &mut Rows) {
        match right.next_row(key, &mut self.history) {
            Some(row) => self.order.first_behind(row, self.end.get_or_insert_default()),
            None => self.end = None,
        }
    }

    /// Moves to the next stretch, if its match or that of this one changes.
    fn go_on(&mut self, key: &[u8], right: &mut Rows) {
        self.is_open = false;
        if self.end.is_none() {
            return;
        }
        let is_changed = !self.matches.is_constant()
            || match right.next_row(key, &mut self.history) {
                Some(row) => {
                    self.order.next(row, &mut self.bound);
                    right.changed_row(key).is_some_and(|change| change < &self.bound[..])
                }
                None => false,
            };
        if is_changed {
            self.pass_time(key, right);
            self.is_open = true;
        }
    }

    /// Emits the changes of the stretch's left rows, as far as there is room; returns whether it is done with them.
    fn emit(&mut self, key: &[u8], left: &mut Rows, output: &mut RowPairs) -> bool {
        let (matches, end) = (&self.matches, self.end.as_deref());
        let found = matches.before().map(value);
        if matches.is_constant() || fault::armed(Fault::KeepMatch) {
            if !output.wants(found) {
                left.pass_changes(key, end);
                return true;
            }
            return left.each_change_below(key, end, |row, time, weight| {
                output.push(key, value(row), found, (time, weight));
                !output.is_full()
            });
        }
        left.seek_row(key, &self.start);
        let is_done = left.each_history_below(key, end, &mut self.history, |row, history| {
            replay(key, row, history, matches, output);
            !output.is_full()
        });
        if is_done {
            left.pass_changes(key, end);
        }
        is_done
    }
}

impl PairLogic for Sweep {
    type Output = RowPairs;

    fn reduce(
        &mut self,
        key: &[u8],
        left: &mut Rows,
        right: &mut Rows,
        output: &mut RowPairs,
    ) -> bool {
        while self.is_open || self.open(key, left, right) {
            if !self.emit(key, left, output) {
                return false;
            }
            self.go_on(key, right);
        }
        true
    }
}

/// Emits the changes of a left row whose weight and whose match may both change.
fn replay(key: &[u8], row: &[u8], history: &History, matches: &Matches, output: &mut RowPairs) {
    let row = value(row);
    let (mut weight, mut found) = (history.before, matches.before().map(value));
    for (time, by, turn) in history.with_turns(matches.turns()) {
        let (was, was_found) = (weight, found);
        weight = add(weight, by);
        let Some(next) = turn else {
            output.push(key, row, found, (time, add(weight, -was)));
            continue;
        };
        found = next.map(value);
        output.push(key, row, was_found, (time, -was));
        output.push(key, row, found, (time, weight));
    }
}

/// The value of a row, which is an entry.
fn value(row: &[u8]) -> &[u8] {
    split(row, 0).1
}
