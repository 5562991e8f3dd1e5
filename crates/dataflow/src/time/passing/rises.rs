//! The epochs in which a bound rises.

use alluvium_trace::{Bound, Epoch, Pruning};

use super::{InView, Rule};
use crate::fault::{self, Fault};

/// A bound over an interval of epochs.
pub(super) struct Rises {
    /// The bound before the interval; `None` if it was not known.
    before: Option<Bound>,
    /// The epochs after which it is higher than before them, and its value there.
    steps: Vec<(Epoch, Bound)>,
}

impl Rises {
    /// From `lower` on and before `upper`.
    pub(super) fn new(
        pruning: &dyn Pruning,
        rule: Rule,
        before: Option<Bound>,
        lower: Epoch,
        upper: Epoch,
    ) -> Self {
        let least = |bound: &Option<Bound>| bound.map(|bound| bound.least);
        let behind = |epoch: Epoch| behind(pruning, rule, epoch);
        let (mut steps, mut epoch, mut bound) = (Vec::new(), lower, before);
        let last = behind(upper - 1);
        while least(&bound) < least(&last) {
            // The first epoch after which it is higher: it never falls.
            let mut end = upper - 1;
            while epoch < end {
                let middle = epoch + (end - epoch) / 2;
                match least(&bound) < least(&behind(middle)) {
                    true => end = middle,
                    false => epoch = middle + 1,
                }
            }
            bound = behind(epoch);
            steps.extend(bound.map(|bound| (epoch, bound)));
            epoch += 1;
        }
        Self { before, steps }
    }

    /// Forgets all but the first step.
    pub(super) fn end_with_first(&mut self) {
        self.steps.truncate(1);
    }

    /// The steps.
    pub(super) fn steps(&self) -> &[(Epoch, Bound)] {
        &self.steps
    }

    /// The bound after the epochs before this one.
    #[inline]
    pub(super) fn before(&self, epoch: Epoch) -> Option<Bound> {
        self.after(self.steps.partition_point(|(step, _)| *step < epoch))
    }

    /// The bound after the epochs up to this one.
    #[inline]
    pub(super) fn behind(&self, epoch: Epoch) -> Option<Bound> {
        self.after(self.steps.partition_point(|(step, _)| *step <= epoch))
    }

    /// The bound after the interval.
    pub(super) fn last(&self) -> Option<Bound> {
        self.after(self.steps.len())
    }

    /// The bound after so many steps.
    fn after(&self, steps: usize) -> Option<Bound> {
        steps.checked_sub(1).map_or(self.before, |last| Some(self.steps[last].1))
    }
}

/// The bound after an epoch; `None` if it is not known.
pub(super) fn behind(pruning: &dyn Pruning, rule: Rule, epoch: Epoch) -> Option<Bound> {
    let late = rule.in_view == InView::From && fault::armed(Fault::LeaveViewLate);
    let early = rule.in_view == InView::Below && fault::armed(Fault::FinalEarly);
    let bound = pruning.bound(epoch + u64::from(!late))?;
    let more = i64::from(rule.with_equal) + i64::from(early);
    Some(Bound { least: bound.least.saturating_add(more), ..bound })
}
