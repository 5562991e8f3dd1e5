//! The rows of an input over an interval.

use alluvium_trace::{Cursors, Epoch};

use super::interval::Interval;
use crate::fault::{self, Fault};
use crate::rows::weight::{self, add};

/// The weight of something before an interval, and its changes in it.
#[derive(Default)]
pub(crate) struct History {
    /// The weight before.
    pub(crate) before: i64,
    /// The changes; ascending by time and one for each time once [`History::settle`] was called.
    pub(crate) changes: Vec<(Epoch, i64)>,
    /// How many changes are added up as they are read: of a million rows there are few times.
    full: usize,
}

#[cfg(test)]
thread_local! {
    /// How many rows were read whose history was asked for.
    pub(crate) static READ: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// The fewest changes that are added up as they are read.
const MANY: usize = 4096;

impl History {
    pub(crate) fn clear(&mut self) {
        self.before = 0;
        self.changes.clear();
        self.full = 0;
    }

    /// Adds the updates of the current value of `cursors`; returns whether one is in the interval.
    fn read(&mut self, cursors: &Cursors<Epoch>, interval: Interval) -> bool {
        if self.changes.len() >= self.full.max(MANY) {
            self.settle();
            self.full = 2 * self.changes.len();
        }
        let known = self.changes.len();
        #[cfg(test)]
        READ.with(|read| read.set(read.get() + 1));
        cursors.updates(|time, weight| {
            if time < interval.lower {
                self.before = add(self.before, weight);
            } else if !interval.is_before(time) {
                self.changes.push((time, weight));
            }
        });
        self.changes.len() > known
    }

    /// The times of the changes, which are settled, and of the `turns` of something else, which ascend as well: by how much the
    /// weight changes, and what the other turns into, if it does.
    pub(crate) fn with_turns<T>(
        &self,
        turns: impl IntoIterator<Item = (Epoch, T)>,
    ) -> impl Iterator<Item = (Epoch, i64, Option<T>)> {
        let mut changes = self.changes.iter().peekable();
        let mut turns = turns.into_iter().peekable();
        std::iter::from_fn(move || {
            let time = match (changes.peek(), turns.peek()) {
                (Some(change), Some(turn)) => change.0.min(turn.0),
                (Some(change), None) => change.0,
                (None, Some(turn)) => turn.0,
                (None, None) => return None,
            };
            let by = changes.next_if(|change| change.0 == time).map_or(0, |change| change.1);
            let turn = turns.next_if(|turn| turn.0 == time);
            Some((time, by, turn.map(|turn| turn.1)))
        })
    }

    /// Whether there is anything before or in the interval.
    fn is_there(&self) -> bool {
        self.before != 0 || !self.changes.is_empty()
    }

    /// Sorts the changes by time and adds up those of equal times.
    pub(crate) fn settle(&mut self) {
        weight::consolidate(&mut self.changes);
    }
}

/// The rows of one input, before and in an interval.
pub(crate) struct Rows {
    /// The batches with changes that are not processed.
    fresh: Cursors<Epoch>,
    /// All batches. Keys must be requested in ascending order.
    all: Cursors<Epoch>,
    interval: Interval,
}

impl Rows {
    pub(super) fn new(fresh: Cursors<Epoch>, all: Cursors<Epoch>, interval: Interval) -> Self {
        Self { fresh, all, interval }
    }

    /// The next key with fresh updates.
    pub(super) fn fresh_key(&self) -> Option<&[u8]> {
        self.fresh.key()
    }

    /// Moves the fresh updates past `key`.
    pub(super) fn leave(&mut self, key: &[u8]) {
        if self.fresh.key() == Some(key) {
            self.fresh.step_key();
        }
    }

    /// Whether a row under `key` changes.
    pub(crate) fn has_changes(&mut self, key: &[u8]) -> bool {
        let has = !self.each_change(key, |_, _, _| false);
        self.rewind(key);
        has
    }

    /// Moves back to the first row under `key` with fresh updates.
    pub(crate) fn rewind(&mut self, key: &[u8]) {
        if self.fresh.key() == Some(key) {
            self.fresh.rewind_vals();
        }
    }

    /// Calls `visit` with each change of a row under `key`, its time, and its weight, from the current row on, until it
    /// returns that there is no room for another row. Returns whether there always was.
    pub(crate) fn each_change(
        &mut self,
        key: &[u8],
        visit: impl FnMut(&[u8], Epoch, i64) -> bool,
    ) -> bool {
        self.each_change_below(key, None, visit)
    }

    /// As [`each_change`](Self::each_change), of rows below `end`.
    pub(crate) fn each_change_below(
        &mut self,
        key: &[u8],
        end: Option<&[u8]>,
        mut visit: impl FnMut(&[u8], Epoch, i64) -> bool,
    ) -> bool {
        if self.fresh.key() != Some(key) {
            return true;
        }
        let interval = self.interval;
        let mut has_room = true;
        while has_room
            && let Some(value) = self.fresh.val()
            && is_below(value, end)
        {
            self.fresh.updates(|time, weight| {
                if interval.contains(time) {
                    has_room = visit(value, time, weight);
                }
            });
            self.fresh.step_val();
        }
        has_room
    }

    /// The next row under `key` with fresh updates.
    pub(crate) fn fresh_row(&self, key: &[u8]) -> Option<&[u8]> {
        if self.fresh.key() == Some(key) { self.fresh.val() } else { None }
    }

    /// The next row under `key` that changes in the interval.
    pub(crate) fn changed_row(&mut self, key: &[u8]) -> Option<&[u8]> {
        if self.fresh.key() != Some(key) {
            return None;
        }
        let interval = self.interval;
        while self.fresh.val().is_some() {
            let mut changes = false;
            self.fresh.updates(|time, _| changes |= interval.contains(time));
            if changes {
                break;
            }
            self.fresh.step_val();
        }
        self.fresh.val()
    }

    /// Moves past the fresh rows under `key` that are below `end`.
    pub(crate) fn pass_changes(&mut self, key: &[u8], end: Option<&[u8]>) {
        if self.fresh.key() != Some(key) {
            return;
        }
        match end {
            Some(end) => self.fresh.seek_val(end),
            None => {
                while self.fresh.val().is_some() {
                    self.fresh.step_val();
                }
            }
        }
    }

    /// Adds the changes of `row` to `history` and moves past it, if it is the next row under `key` with fresh updates.
    pub(crate) fn take_row(&mut self, key: &[u8], row: &[u8], history: &mut History) {
        if self.fresh_row(key) == Some(row) {
            history.read(&self.fresh, self.interval);
            history.before = 0;
            self.fresh.step_val();
        }
    }

    /// Adds the whole history of one row under `key`. Rows under a key must be requested in ascending order.
    pub(crate) fn history_of(&mut self, key: &[u8], row: &[u8], history: &mut History) {
        if self.find(key) {
            self.all.seek_val(row);
            if self.all.val() == Some(row) {
                history.read(&self.all, self.interval);
            }
        }
    }

    /// Whether a row under `key` is present at all times of the interval and does not change. If not, adds the histories of
    /// the rows that do change to `history`: no other row is present at any time of the interval.
    pub(crate) fn is_steady(&mut self, key: &[u8], history: &mut History) -> bool {
        if !self.find(key) {
            return false;
        }
        while self.all.val().is_some() {
            let before = history.before;
            let changes = history.read(&self.all, self.interval);
            if !changes && history.before > before {
                return true;
            }
            self.all.step_val();
        }
        false
    }

    /// Calls `visit` with each row under `key` and its history, from the current row on, until it returns that there is no
    /// room for another row. Returns whether there always was.
    pub(crate) fn each_history(
        &mut self,
        key: &[u8],
        history: &mut History,
        visit: impl FnMut(&[u8], &mut History) -> bool,
    ) -> bool {
        self.each_history_below(key, None, history, visit)
    }

    /// As [`each_history`](Self::each_history), of rows below `end`.
    pub(crate) fn each_history_below(
        &mut self,
        key: &[u8],
        end: Option<&[u8]>,
        history: &mut History,
        mut visit: impl FnMut(&[u8], &mut History) -> bool,
    ) -> bool {
        if !self.find(key) {
            return true;
        }
        let mut has_room = true;
        while has_room
            && let Some(value) = self.all.val()
            && is_below(value, end)
        {
            history.clear();
            history.read(&self.all, self.interval);
            if history.is_there() {
                history.settle();
                has_room = visit(value, history);
            }
            self.all.step_val();
        }
        has_room
    }

    /// Moves back to the first row under `key`.
    pub(crate) fn rewind_rows(&mut self, key: &[u8]) {
        if self.find(key) {
            self.all.rewind_vals();
        }
    }

    /// Moves past the current row under `key`.
    pub(crate) fn step_row(&mut self, key: &[u8]) {
        if self.find(key) {
            self.all.step_val();
        }
    }

    /// Moves forward to the first row under `key` that is not below `row`.
    pub(crate) fn seek_row(&mut self, key: &[u8], row: &[u8]) {
        if self.find(key) {
            self.all.seek_val(row);
        }
    }

    /// Moves, forward or back, to a row under `key` below `end` that is present at all times of the interval and does not
    /// change, of which there is the last one; or, if there is none, to the first row.
    pub(crate) fn seek_steady_below(&mut self, key: &[u8], end: &[u8], history: &mut History) {
        if !self.find(key) {
            return;
        }
        let mut at = end.to_vec();
        while self.all.seek_val_before(&at) {
            history.clear();
            let changes = history.read(&self.all, self.interval);
            if !changes && history.before > 0 {
                return;
            }
            at.clear();
            at.extend_from_slice(self.all.val().unwrap_or_default());
        }
    }

    /// Moves to the next row under `key` that is there before the interval or changes in it, if the current one is not, and
    /// returns it.
    pub(crate) fn next_row(&mut self, key: &[u8], history: &mut History) -> Option<&[u8]> {
        if !self.find(key) {
            return None;
        }
        while self.all.val().is_some() {
            history.clear();
            history.read(&self.all, self.interval);
            if history.is_there() {
                break;
            }
            self.all.step_val();
        }
        self.all.val()
    }

    /// Moves to `key` in all batches; returns whether they have it.
    fn find(&mut self, key: &[u8]) -> bool {
        if fault::armed(Fault::ForgetHistory) {
            return false;
        }
        self.all.seek_key(key);
        self.all.key() == Some(key)
    }
}

/// Whether a row is below `end`, if there is an end.
fn is_below(row: &[u8], end: Option<&[u8]>) -> bool {
    end.is_none_or(|end| row < end)
}
