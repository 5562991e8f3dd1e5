//! Rows with or without a match: the part that semi, anti, mark and outer joins share.

use alluvium_trace::Epoch;
use alluvium_trace::memory::StateContext;

use crate::fault::{self, Fault};
use crate::movement::delta::DeltaStream;
use crate::reductions::reduce::{History, OutputRows, PairLogic, Rows, Shape, cogroup};
use crate::rows::weight::add;
use crate::state::arrangement::Kept;

/// Which rows of the other side match a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Match {
    /// Any row under the same key.
    SameKey,
    /// The same row under the same key: both sides have the same layout.
    SameRow,
}

/// Which rows are returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// Those with a match.
    Matched,
    /// Those without a match.
    Unmatched,
    /// All, each with whether it has a match.
    Marked,
}

/// The rows of `rows` that are wanted, by whether they have a match in `matches`.
///
/// The number of matches does not matter. A row keeps its weight.
pub(crate) fn semijoin<'scope>(
    rows: Kept<'scope>,
    matches: Kept<'scope>,
    by: Match,
    wanted: Wanted,
    shape: Shape,
    context: &StateContext,
) -> DeltaStream<'scope, Epoch> {
    let output = OutputRows::new(rows.layout.clone(), shape, context);
    let logic = Semijoin {
        by,
        wanted,
        matched: Matched::default(),
        is_followed: false,
        row: Vec::new(),
        history: History::default(),
    };
    cogroup(rows, matches, "Semijoin", context, logic, output)
}

struct Semijoin {
    by: Match,
    wanted: Wanted,
    matched: Matched,
    /// Whether `matched` is about the current key, some of whose rows are done.
    is_followed: bool,
    row: Vec<u8>,
    history: History,
}

/// Whether there is a match, over an interval.
#[derive(Default)]
struct Matched {
    matches: History,
    /// Whether there was a match before.
    before: bool,
    /// The times at which that changes, and the new state.
    turns: Vec<(Epoch, bool)>,
}

impl Matched {
    fn is(matches: i64) -> bool {
        if fault::armed(Fault::MissLastPartner) { matches > 1 } else { matches > 0 }
    }

    fn always(&mut self, matched: bool) {
        self.before = matched;
        self.turns.clear();
    }

    /// Finds the turns in the history of matches.
    fn follow(&mut self) {
        self.matches.settle();
        self.always(Self::is(self.matches.before));
        let (mut count, mut matched) = (self.matches.before, self.before);
        for &(time, weight) in &self.matches.changes {
            count = add(count, weight);
            if Self::is(count) != matched {
                matched = !matched;
                self.turns.push((time, matched));
            }
        }
    }
}

impl PairLogic for Semijoin {
    type Output = OutputRows;

    fn reduce(
        &mut self,
        key: &[u8],
        rows: &mut Rows,
        matches: &mut Rows,
        output: &mut OutputRows,
    ) -> bool {
        match self.by {
            Match::SameKey => self.by_key(key, rows, matches, output),
            Match::SameRow => self.by_row(key, rows, matches, output),
        }
    }
}

impl Semijoin {
    fn by_key(
        &mut self,
        key: &[u8],
        rows: &mut Rows,
        matches: &mut Rows,
        output: &mut OutputRows,
    ) -> bool {
        if !self.is_followed {
            // The history of matches is read only if something changes.
            if !rows.has_changes(key) && !matches.has_changes(key) {
                return true;
            }
            self.matched.matches.clear();
            if matches.is_steady(key, &mut self.matched.matches) {
                self.matched.always(true);
            } else {
                self.matched.follow();
            }
        }
        let (wanted, matched) = (self.wanted, &self.matched);
        let is_done = if !matched.turns.is_empty() {
            rows.each_history(key, &mut self.history, |row, history| {
                replay(wanted, matched, key, row, history, output);
                !output.is_full()
            })
        } else if wants(wanted, matched.before) {
            rows.each_change(key, |row, time, weight| {
                output.push(key, row, matched.before, time, weight);
                !output.is_full()
            })
        } else {
            true
        };
        self.is_followed = !is_done;
        is_done
    }

    fn by_row(
        &mut self,
        key: &[u8],
        rows: &mut Rows,
        matches: &mut Rows,
        output: &mut OutputRows,
    ) -> bool {
        let wanted = self.wanted;
        while !output.is_full() {
            let next = match (rows.fresh_row(key), matches.fresh_row(key)) {
                (Some(row), Some(other)) => row.min(other),
                (Some(row), None) | (None, Some(row)) => row,
                (None, None) => return true,
            };
            self.row.clear();
            self.row.extend_from_slice(next);
            let row = &self.row;
            self.history.clear();
            rows.take_row(key, row, &mut self.history);
            let own = self.history.changes.len();
            matches.take_row(key, row, &mut self.history);
            if self.history.changes.is_empty() {
                continue;
            }
            self.matched.matches.clear();
            matches.history_of(key, row, &mut self.matched.matches);
            self.matched.follow();
            let matched = &self.matched;
            if matched.turns.is_empty() {
                if wants(wanted, matched.before) {
                    for &(time, weight) in &self.history.changes[..own] {
                        output.push(key, row, matched.before, time, weight);
                    }
                }
                continue;
            }
            self.history.clear();
            rows.history_of(key, row, &mut self.history);
            self.history.settle();
            replay(wanted, matched, key, row, &self.history, output);
        }
        false
    }
}

fn wants(wanted: Wanted, matched: bool) -> bool {
    match wanted {
        Wanted::Matched => matched,
        Wanted::Unmatched => !matched,
        Wanted::Marked => true,
    }
}

/// Emits the changes of a row whose weight and whose match may both change.
fn replay(
    wanted: Wanted,
    matched: &Matched,
    key: &[u8],
    row: &[u8],
    history: &History,
    output: &mut OutputRows,
) {
    let (mut weight, mut mark) = (history.before, matched.before);
    for (time, by, turn) in history.with_turns(matched.turns.iter().copied()) {
        let (was, was_marked) = (weight, mark);
        weight = add(weight, by);
        mark = turn.unwrap_or(mark);
        if mark == was_marked {
            if wants(wanted, mark) {
                output.push(key, row, mark, time, add(weight, -was));
            }
            continue;
        }
        if wants(wanted, was_marked) {
            output.push(key, row, was_marked, time, -was);
        }
        if wants(wanted, mark) {
            output.push(key, row, mark, time, weight);
        }
    }
}
