//! Which steps of a worker are measured.
//!
//! To measure all that operators do would cost a few hundredths of what an epoch of one row takes. So one of [`ONE_OF`] small epochs
//! is measured, at random, and counts for all of them. Large epochs, and views that are filled, are measured always: there it costs nothing
//! that can be told.

use std::sync::Arc;
use std::time::{Duration, Instant};

use alluvium_trace::Epoch;
use alluvium_trace::metrics::{Activity, Metrics, OperatorLabel, activity};

/// How many small epochs there are for one that is measured.
const ONE_OF: u64 = 16;

/// How many changes make an epoch large.
const LARGE: usize = 256;

/// How often the past is noted, at least.
const NOTED: Duration = Duration::from_secs(5);

/// Measures some steps of a worker.
pub(super) struct Sampling {
    metrics: Arc<Metrics>,
    /// The work of the worker itself, outside of all operators.
    own: Arc<Activity>,
    /// For how many steps one counts that is measured now; 0 if none is.
    weight: u64,
    /// The epoch up to which all is measured.
    upto: Epoch,
    noted: Instant,
}

impl Sampling {
    pub(super) fn new(metrics: &Arc<Metrics>) -> Self {
        let label =
            OperatorLabel { name: "progress of dataflows".to_owned(), ..Default::default() };
        let own = metrics.open_operator(label);
        let noted = Instant::now();
        Self { metrics: metrics.clone(), own, weight: 0, upto: 0, noted }
    }

    /// An epoch of so many changes begins, after the ones up to `complete`.
    pub(super) fn begin_epoch(
        &mut self,
        epoch: Epoch,
        changes: usize,
        complete: Epoch,
        now: Instant,
    ) {
        if changes >= LARGE {
            self.upto = epoch;
        }
        // All workers measure the same epochs. This multiplication is that of Fibonacci hashing.
        let random = epoch.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        self.set(match random.is_multiple_of(ONE_OF) {
            _ if complete < self.upto => 1,
            true => ONE_OF,
            false => 0,
        });
        if now.saturating_duration_since(self.noted) >= NOTED {
            self.noted = now;
            self.metrics.note_operators();
        }
    }

    /// Measures everything until the next epoch.
    pub(super) fn measure_all(&mut self) {
        self.set(1);
    }

    fn set(&mut self, weight: u64) {
        self.weight = weight;
        activity::measure(weight);
    }

    /// A turn of the worker begins; `None` if it is not measured.
    pub(super) fn begin_turn(&self) -> Option<Instant> {
        if self.weight == 0 {
            return None;
        }
        activity::take_measured();
        Some(Instant::now())
    }

    /// A turn has ended, in which the worker had something to do or not.
    pub(super) fn end_turn(&self, begun: Option<Instant>, has_worked: bool) {
        let Some(begun) = begun else { return };
        let (all, operators) = (begun.elapsed(), activity::take_measured());
        if has_worked || operators > Duration::ZERO {
            self.own.spend(all.saturating_sub(operators), self.weight);
        }
    }
}
