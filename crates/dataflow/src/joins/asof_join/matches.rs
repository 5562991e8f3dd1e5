//! The right row that some left rows match, over an interval.

use alluvium_trace::Epoch;

use crate::fault::{self, Fault};
use crate::reductions::reduce::History;
use crate::rows::weight::add;

/// The last of the right rows that were passed, before an interval and at its times.
#[derive(Debug, Default)]
pub(super) struct Matches {
    /// Rows; of those that are not the last at any time some are not there any more.
    rows: Vec<Vec<u8>>,
    /// The last row before the interval.
    before: Option<usize>,
    /// The times at which it is another one, and that one.
    turns: Vec<Turn>,
    merged: Vec<Turn>,
    used: Vec<bool>,
}

/// A time, and the row from then on.
type Turn = (Epoch, Option<usize>);

impl Matches {
    /// Forgets all rows.
    pub(super) fn clear(&mut self) {
        self.before = None;
        self.turns.clear();
    }

    /// Whether it is one row, or none, at all times.
    pub(super) fn is_constant(&self) -> bool {
        self.turns.is_empty()
    }

    /// The row before the interval.
    pub(super) fn before(&self) -> Option<&[u8]> {
        self.get(self.before)
    }

    /// The times at which it becomes another row.
    pub(super) fn turns(&self) -> impl Iterator<Item = (Epoch, Option<&[u8]>)> {
        self.turns.iter().map(|&(time, row)| (time, self.get(row)))
    }

    fn get(&self, row: Option<usize>) -> Option<&[u8]> {
        row.map(|row| &self.rows[row][..])
    }

    /// Passes the next row, which is the last one while it is there. The first `width` bytes of a row are its time.
    pub(super) fn pass(&mut self, row: &[u8], history: &History, width: usize) {
        if history.changes.is_empty() {
            if history.before > 0 {
                self.clear();
                self.before = Some(self.keep(row));
            }
            return;
        }
        let kept = self.keep(row);
        let stays = fault::armed(Fault::TiesByArrival);
        // The last row at a time, given what it was without this one.
        let last = |rows: &[Vec<u8>], weight: i64, below: Option<usize>| match below {
            Some(other) if stays && rows[other][..width] == row[..width] => Some(other),
            _ if weight > 0 => Some(kept),
            _ => below,
        };
        let (mut weight, mut below) = (history.before, self.before);
        let mut present = last(&self.rows, weight, below);
        self.before = present;
        self.merged.clear();
        for (time, by, turn) in history.with_turns(self.turns.iter().copied()) {
            weight = add(weight, by);
            below = turn.unwrap_or(below);
            let next = last(&self.rows, weight, below);
            if next != present {
                self.merged.push((time, next));
                present = next;
            }
        }
        std::mem::swap(&mut self.turns, &mut self.merged);
    }

    /// Puts a row where there is none that is the last at some time.
    fn keep(&mut self, row: &[u8]) -> usize {
        self.used.clear();
        self.used.resize(self.rows.len(), false);
        let last = self.turns.iter().filter_map(|turn| turn.1);
        for at in last.chain(self.before) {
            self.used[at] = true;
        }
        let free = self.used.iter().position(|is_used| !is_used).unwrap_or_else(|| {
            self.rows.push(Vec::new());
            self.rows.len() - 1
        });
        self.rows[free].clear();
        self.rows[free].extend_from_slice(row);
        free
    }
}
