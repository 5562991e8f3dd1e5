//! Whether a row has a partner: what semi, anti, mark and outer joins have in common.

use alluvium_trace::Epoch;
use alluvium_trace::memory::context;

use crate::arrangement::Kept;
use crate::cogroup::{Answer, History, Logic, Rows, Shape, cogroup};
use crate::delta::DeltaStream;
use crate::fault::{self, Fault};
use crate::fold::add;

/// What makes a partner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Partner {
    /// Any row under the same key.
    SameKey,
    /// The same row under the same key: both sides are laid out alike.
    SameRow,
}

/// Which rows come out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// Those that have a partner.
    Matched,
    /// Those that have none.
    Unmatched,
    /// All, marked with whether they have one.
    Marked,
}

/// The rows of `rows` that are wanted, by whether they have a partner in `partners`.
///
/// How many partners a row has does not matter, and a row comes out as often as it is there.
pub(crate) fn existence<'scope>(
    rows: Kept<'scope, Epoch>,
    partners: Kept<'scope, Epoch>,
    partner: Partner,
    wanted: Wanted,
    shape: Shape,
) -> DeltaStream<'scope, Epoch> {
    let answer = Answer::new(rows.layout.clone(), shape, &context::current());
    let logic = Semijoin {
        partner,
        wanted,
        matched: Matched::default(),
        row: Vec::new(),
        history: History::default(),
    };
    cogroup(rows, partners, "Semijoin", logic, answer)
}

struct Semijoin {
    partner: Partner,
    wanted: Wanted,
    matched: Matched,
    row: Vec<u8>,
    history: History,
}

/// Whether there is a partner, over an interval.
#[derive(Default)]
struct Matched {
    partners: History,
    /// Whether there was one before.
    before: bool,
    /// When that turns, and into what.
    turns: Vec<(Epoch, bool)>,
}

impl Matched {
    fn is(partners: i64) -> bool {
        if fault::armed(Fault::MissLastPartner) { partners > 1 } else { partners > 0 }
    }

    fn always(&mut self, matched: bool) {
        self.before = matched;
        self.turns.clear();
    }

    /// Finds the turns in the history of partners.
    fn follow(&mut self) {
        self.partners.settle();
        self.always(Self::is(self.partners.before));
        let (mut count, mut matched) = (self.partners.before, self.before);
        for &(time, weight) in &self.partners.changes {
            count = add(count, weight);
            if Self::is(count) != matched {
                matched = !matched;
                self.turns.push((time, matched));
            }
        }
    }
}

impl Logic for Semijoin {
    fn group(&mut self, key: &[u8], rows: &mut Rows, partners: &mut Rows, answer: &mut Answer) {
        match self.partner {
            Partner::SameKey => self.by_key(key, rows, partners, answer),
            Partner::SameRow => self.by_row(key, rows, partners, answer),
        }
    }
}

impl Semijoin {
    fn by_key(&mut self, key: &[u8], rows: &mut Rows, partners: &mut Rows, answer: &mut Answer) {
        let wanted = self.wanted;
        // Looking for partners is worth it only if something changes.
        self.history.clear();
        rows.changes(key, &mut self.history);
        partners.changes(key, &mut self.history);
        if self.history.changes.is_empty() {
            return;
        }
        self.matched.partners.clear();
        if partners.steady(key, &mut self.matched.partners) {
            self.matched.always(true);
        } else {
            self.matched.follow();
        }
        let matched = &self.matched;
        if matched.turns.is_empty() {
            if wants(wanted, matched.before) {
                rows.each_change(key, |row, time, weight| {
                    answer.push(key, row, matched.before, time, weight);
                });
            }
            return;
        }
        rows.each_history(key, &mut self.history, |row, history| {
            replay(wanted, matched, key, row, history, answer);
        });
    }

    fn by_row(&mut self, key: &[u8], rows: &mut Rows, partners: &mut Rows, answer: &mut Answer) {
        let wanted = self.wanted;
        loop {
            let next = match (rows.fresh_row(key), partners.fresh_row(key)) {
                (Some(row), Some(partner)) => row.min(partner),
                (Some(row), None) | (None, Some(row)) => row,
                (None, None) => return,
            };
            self.row.clear();
            self.row.extend_from_slice(next);
            let row = &self.row;
            self.history.clear();
            rows.take_row(key, row, &mut self.history);
            let own = self.history.changes.len();
            partners.take_row(key, row, &mut self.history);
            if self.history.changes.is_empty() {
                continue;
            }
            self.matched.partners.clear();
            partners.history_of(key, row, &mut self.matched.partners);
            self.matched.follow();
            let matched = &self.matched;
            if matched.turns.is_empty() {
                if wants(wanted, matched.before) {
                    for &(time, weight) in &self.history.changes[..own] {
                        answer.push(key, row, matched.before, time, weight);
                    }
                }
                continue;
            }
            self.history.clear();
            rows.history_of(key, row, &mut self.history);
            self.history.settle();
            replay(wanted, matched, key, row, &self.history, answer);
        }
    }
}

fn wants(wanted: Wanted, matched: bool) -> bool {
    match wanted {
        Wanted::Matched => matched,
        Wanted::Unmatched => !matched,
        Wanted::Marked => true,
    }
}

/// Puts out how a row changes where both its weight and whether it has a partner do.
fn replay(
    wanted: Wanted,
    matched: &Matched,
    key: &[u8],
    row: &[u8],
    history: &History,
    answer: &mut Answer,
) {
    let (mut weight, mut mark) = (history.before, matched.before);
    let (mut changes, mut turns) = (history.changes.as_slice(), matched.turns.as_slice());
    loop {
        let time = match (changes.first(), turns.first()) {
            (Some(change), Some(turn)) => change.0.min(turn.0),
            (Some(change), None) => change.0,
            (None, Some(turn)) => turn.0,
            (None, None) => return,
        };
        let (was, was_marked) = (weight, mark);
        if let Some((&(at, by), later)) = changes.split_first()
            && at == time
        {
            weight = add(weight, by);
            changes = later;
        }
        if let Some((&(at, into), later)) = turns.split_first()
            && at == time
        {
            mark = into;
            turns = later;
        }
        if mark == was_marked {
            if wants(wanted, mark) {
                answer.push(key, row, mark, time, add(weight, -was));
            }
            continue;
        }
        if wants(wanted, was_marked) {
            answer.push(key, row, was_marked, time, -was);
        }
        if wants(wanted, mark) {
            answer.push(key, row, mark, time, weight);
        }
    }
}
