//! Which left rows are reached by the changes of both sides of a key.
//!
//! Changed steps reach all left rows from their place on. They are swept in their order, payload by payload, with the sum of
//! their changes at each time. Left rows are read only where it is not zero.
//!
//! Changed left rows then meet the steps as they were before the interval: their changes with those of the steps are made
//! already. For each payload, steps are added up from the first one to the last place before a changed left row.

use alluvium_trace::Epoch;

use super::steps;
use crate::fault::{self, Fault};
use crate::joins::row_pairs::RowPairs;
use crate::reductions::ranked::entry;
use crate::reductions::reduce::{History, PairLogic, Rows};
use crate::rows::weight::{add, consolidate, multiply};

/// Keeps the pairs of a key up to date.
#[derive(Default)]
pub(super) struct Sweep {
    phase: Phase,
    /// The group of the steps that are being swept.
    group: Vec<u8>,
    /// Where the stretch of left rows begins that the last step reaches and the next one does not yet.
    start: Vec<u8>,
    /// Where it ends, if there is a next step of the group.
    end: Option<Vec<u8>>,
    /// By how much pairs of the stretch change, at each time.
    changes: Vec<(Epoch, i64)>,
    /// How often a row of the stretch is paired, before the interval.
    count: i64,
    /// Of the left row that is read.
    history: History,
    /// Of the step that is read.
    of_step: History,
    scratch: Vec<(Epoch, i64)>,
}

/// Which changes are being made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Phase {
    /// None yet.
    #[default]
    Start,
    /// Those of steps with all left rows.
    Steps,
    /// Those of left rows with all steps.
    Rows,
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
        if self.phase == Phase::Start {
            self.enter(Phase::Steps);
        }
        if self.phase == Phase::Steps {
            if !self.sweep_steps(key, left, right, output) {
                return false;
            }
            self.enter(Phase::Rows);
        }
        if !self.sweep_rows(key, left, right, output) {
            return false;
        }
        self.enter(Phase::Start);
        true
    }
}

impl Sweep {
    fn enter(&mut self, phase: Phase) {
        self.phase = phase;
        self.group.clear();
        self.changes.clear();
        self.count = 0;
    }

    /// Ends the stretch at the place of a step, if that is of the same group. Returns whether it is.
    fn end_at(&mut self, next: Option<&[u8]>) -> bool {
        let place = next.map(steps::split).filter(|(group, _)| *group == self.group);
        match place {
            Some((_, place)) => {
                let end = self.end.get_or_insert_default();
                end.clear();
                end.extend_from_slice(place);
            }
            None => self.end = None,
        }
        place.is_some()
    }

    /// Begins a stretch at the place of a step.
    fn start_at(&mut self, step: &[u8]) {
        let (group, place) = steps::split(step);
        self.group.clear();
        self.group.extend_from_slice(group);
        self.start.clear();
        self.start.extend_from_slice(place);
    }

    /// Emits the changes that changed steps make; returns whether it is done with them.
    fn sweep_steps(
        &mut self,
        key: &[u8],
        left: &mut Rows,
        right: &mut Rows,
        output: &mut RowPairs,
    ) -> bool {
        loop {
            let is_same = self.end_at(right.changed_row(key));
            if !self.changes.is_empty() && !self.emit_changed(key, left, output) {
                return false;
            }
            let Some(step) = right.changed_row(key) else { return true };
            if !is_same {
                self.changes.clear();
                left.rewind_rows(key);
            }
            self.start_at(step);
            let changes = &mut self.changes;
            // One row.
            right.each_change(key, |_, time, weight| {
                changes.push((time, weight));
                false
            });
            consolidate(&mut self.changes);
        }
    }

    /// Emits the changes of the pairs of a stretch, as far as there is room; returns whether these were all.
    fn emit_changed(&mut self, key: &[u8], left: &mut Rows, output: &mut RowPairs) -> bool {
        if fault::armed(Fault::EndStays) {
            return true;
        }
        let (changes, scratch) = (&self.changes, &mut self.scratch);
        let payload = steps::payload(&self.group);
        left.seek_row(key, &self.start);
        left.each_history_below(key, self.end.as_deref(), &mut self.history, |row, history| {
            let value = entry::split(row, 0).1;
            scratch.clear();
            for &(time, change) in changes {
                scratch.push((time, multiply(change, history.before)));
                let both = history.changes.iter();
                scratch.extend(both.map(|&(own, by)| (time.max(own), multiply(change, by))));
            }
            consolidate(scratch);
            for &(time, weight) in scratch.iter() {
                output.push(key, value, Some(payload), (time, weight));
            }
            !output.is_full()
        })
    }

    /// Emits the changes that changed left rows make with the steps from before; returns whether it is done with them.
    fn sweep_rows(
        &mut self,
        key: &[u8],
        left: &mut Rows,
        right: &mut Rows,
        output: &mut RowPairs,
    ) -> bool {
        loop {
            let next = right.next_row(key, &mut self.of_step);
            let is_same = self.end_at(next);
            if self.count != 0 && !self.emit_rows(key, left, output) {
                return false;
            }
            let Some(step) = right.next_row(key, &mut self.of_step) else { return true };
            if !is_same {
                self.count = 0;
                left.rewind(key);
            }
            if left.changed_row(key).is_none() {
                if !is_same {
                    // No left row changes at all.
                    return true;
                }
                steps::behind_group(&self.group, &mut self.start);
                self.count = 0;
                right.seek_row(key, &self.start);
                continue;
            }
            self.start_at(step);
            self.count = add(self.count, self.of_step.before);
            right.step_row(key);
        }
    }

    /// Emits the changes of the left rows of a stretch, as far as there is room; returns whether these were all.
    fn emit_rows(&mut self, key: &[u8], left: &mut Rows, output: &mut RowPairs) -> bool {
        let (count, payload) = (self.count, steps::payload(&self.group));
        left.pass_changes(key, Some(&self.start));
        left.each_change_below(key, self.end.as_deref(), |row, time, weight| {
            let value = entry::split(row, 0).1;
            output.push(key, value, Some(payload), (time, multiply(count, weight)));
            !output.is_full()
        })
    }
}
