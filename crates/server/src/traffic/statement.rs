//! A statement that runs, and how long statements take.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant};

use alluvium::SqlState;

use super::{Traffic, add, read};

/// How a statement has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Its answer is whole.
    Done,
    /// It had an error, the client's or another's.
    Failed,
    /// Somebody has ended it, its time was over, or its client was gone.
    Canceled,
    /// The server had a fault.
    Fault,
}

pub(super) const OUTCOMES: [(Outcome, &str); 4] = [
    (Outcome::Done, "done"),
    (Outcome::Failed, "failed"),
    (Outcome::Canceled, "canceled"),
    (Outcome::Fault, "fault"),
];

impl Outcome {
    /// That of a statement with an error of this SQLSTATE.
    pub(crate) fn of_error(state: &str) -> Self {
        match state {
            state if state == SqlState::CANCELED.as_str() => Self::Canceled,
            state if state == SqlState::INTERNAL.as_str() => Self::Fault,
            _ => Self::Failed,
        }
    }
}

impl Traffic {
    /// A statement has ended, after so long.
    pub(crate) fn ran(&self, outcome: Outcome, time: Duration) {
        add(&self.statements[outcome as usize], 1);
        self.durations.add(time);
    }

    /// A statement begins; it ends when what is returned is dropped.
    pub(crate) fn run(self: &Arc<Self>) -> Running {
        Running { traffic: self.clone(), begun: Instant::now(), outcome: Outcome::Canceled }
    }
}

/// A statement that runs. One that is dropped before its outcome is known was canceled.
pub(crate) struct Running {
    traffic: Arc<Traffic>,
    begun: Instant,
    outcome: Outcome,
}

impl Running {
    /// The statement ends with this outcome, or with another that is known later.
    pub(crate) fn set(&mut self, outcome: Outcome) {
        self.outcome = outcome;
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.traffic.ran(self.outcome, self.begun.elapsed());
    }
}

/// Where the classes of times end, in microseconds; the last has no end.
const ENDS: [u64; 9] =
    [100, 1_000, 5_000, 25_000, 100_000, 500_000, 2_500_000, 10_000_000, 60_000_000];

/// How many statements took how long.
#[derive(Debug, Default)]
pub(super) struct Durations {
    counts: [AtomicU64; ENDS.len() + 1],
    nanoseconds: AtomicU64,
}

impl Durations {
    fn add(&self, time: Duration) {
        let class = ENDS.partition_point(|end| u128::from(*end) * 1_000 < time.as_nanos());
        add(&self.counts[class], 1);
        add(&self.nanoseconds, u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
    }

    /// The ends of the classes in seconds, with how many statements each has.
    pub(super) fn classes(&self) -> Vec<(f64, u64)> {
        let ends = ENDS.iter().map(|end| Duration::from_micros(*end).as_secs_f64());
        ends.chain([f64::INFINITY]).zip(self.counts.iter().map(read)).collect()
    }

    /// The seconds of all.
    pub(super) fn sum(&self) -> f64 {
        Duration::from_nanos(read(&self.nanoseconds)).as_secs_f64()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_in_the_class_that_ends_after_it() {
        let durations = Durations::default();
        for micros in [0, 100, 101, 1_000_000, 60_000_000, 60_000_001] {
            durations.add(Duration::from_micros(micros));
        }
        let counts: Vec<u64> = durations.classes().iter().map(|(_, count)| *count).collect();
        assert_eq!(counts, [2, 1, 0, 0, 0, 0, 1, 0, 1, 1]);
        assert!((durations.sum() - 121.000202).abs() < 1e-6);
    }

    #[test]
    fn a_statement_that_nobody_waits_for_was_canceled() {
        let traffic = Arc::<Traffic>::default();
        let mut first = traffic.run();
        drop(traffic.run());
        first.set(Outcome::of_error("42601"));
        drop(first);
        assert_eq!(traffic.statements.each_ref().map(read), [0, 1, 1, 0]);
    }
}
