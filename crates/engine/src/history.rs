//! How far back relations keep their changes.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use alluvium_trace::Epoch;
use parking_lot::Mutex;

/// Into how many parts a history is cut by each measure: it is kept to within one of them.
const PARTS: u32 = 256;

/// For how long relations keep their changes: for a number of epochs or for a time, whichever is longer, but not over more than a
/// number of bytes.
///
/// Workers compact up to [`first`](Self::first), and subscribers resume after it. It never falls, so what a subscriber finds in
/// a version of a relation has not been compacted further than it is told when it asks afterwards.
#[derive(Debug)]
pub(crate) struct History {
    epochs: u64,
    time: Duration,
    bytes: u64,
    passed: Mutex<Passed>,
}

/// The epochs that were committed, as far back as they are in the history.
#[derive(Debug)]
struct Passed {
    /// In order.
    parts: VecDeque<Part>,
    /// The changes of all epochs after this one are kept.
    first: Epoch,
    /// The bytes of all epochs.
    bytes: u64,
}

/// Epochs that were committed one after the other.
#[derive(Debug)]
struct Part {
    /// The first and the last one.
    epochs: (Epoch, Epoch),
    /// When these were committed.
    times: (Instant, Instant),
    /// The bytes of all epochs before these.
    before: u64,
}

impl History {
    /// The history of an engine that begins after the epoch `start`. Earlier epochs are kept as if they had just been committed.
    pub(crate) fn new(epochs: u64, time: Duration, bytes: u64, start: Epoch) -> Self {
        let now = Instant::now();
        let part = Part { epochs: (start, start), times: (now, now), before: 0 };
        let passed = Mutex::new(Passed { parts: VecDeque::from([part]), first: 0, bytes: 0 });
        Self { epochs, time, bytes, passed }
    }

    /// An epoch is committed, with so many bytes of rows.
    pub(crate) fn commit(&self, epoch: Epoch, bytes: impl FnOnce() -> u64) {
        if !self.is_of_epochs() {
            self.commit_at(Instant::now(), epoch, bytes());
        }
    }

    fn commit_at(&self, now: Instant, epoch: Epoch, bytes: u64) {
        let mut passed = self.passed.lock();
        let before = passed.bytes;
        passed.bytes = before.saturating_add(bytes);
        let upto = passed.bytes;
        // Only a measure that is in use cuts parts.
        let is_small = |part: &&mut Part| {
            let parts = u64::from(PARTS);
            let time = now.saturating_duration_since(part.times.0);
            (self.time.is_zero() || time < self.time / PARTS)
                && (self.epochs == 0 || epoch - part.epochs.0 < self.epochs.div_ceil(parts))
                && (self.bytes == u64::MAX || upto - part.before <= self.bytes / parts)
        };
        match passed.parts.back_mut().filter(is_small) {
            Some(part) => (part.epochs.1, part.times.1) = (epoch, now),
            None => {
                let part = Part { epochs: (epoch, epoch), times: (now, now), before };
                passed.parts.push_back(part);
            }
        }
    }

    /// The epoch after which the changes of all epochs are kept when `last` is the last one.
    pub(crate) fn first(&self, last: Epoch) -> Epoch {
        match self.is_of_epochs() {
            true => last.saturating_sub(self.epochs),
            false => self.first_at(Instant::now(), last),
        }
    }

    fn first_at(&self, now: Instant, last: Epoch) -> Epoch {
        let by_epochs = last.saturating_sub(self.epochs);
        let mut passed = self.passed.lock();
        let Passed { parts, first, bytes } = &mut *passed;
        while let Some(part) = parts.front() {
            let is_old = now.saturating_duration_since(part.times.1) >= self.time;
            let is_beyond = *bytes - part.before > self.bytes;
            if !(is_old && part.epochs.1 <= by_epochs || is_beyond) {
                break;
            }
            *first = part.epochs.1;
            parts.pop_front();
        }
        (*first).min(last)
    }

    /// Whether only the number of epochs matters.
    fn is_of_epochs(&self) -> bool {
        self.time.is_zero() && self.bytes == u64::MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn changes_are_kept_for_epochs_or_for_a_time_whichever_is_longer() {
        let (begin, history) = (Instant::now(), History::new(10, 60 * SECOND, u64::MAX, 0));
        for epoch in 1..=1000 {
            history.commit_at(begin + SECOND * epoch as u32, epoch, 1);
        }
        let first = |seconds: u32| history.first_at(begin + SECOND * seconds, 1000);
        assert_eq!([first(1000), first(1030), first(5000)], [940, 970, 990]);
        // It never falls, and is not past the epoch that is asked for.
        assert_eq!(first(1000), 990);
        assert_eq!(history.first_at(begin + SECOND * 5000, 500), 500);
        let of_epochs = History::new(10, Duration::ZERO, u64::MAX, 0);
        assert_eq!([of_epochs.first(1000), of_epochs.first(3)], [990, 0]);
    }

    #[test]
    fn changes_are_not_kept_over_more_than_their_bytes() {
        for (epochs, time) in [(100, Duration::ZERO), (0, 60 * SECOND), (100, 60 * SECOND)] {
            let (begin, history) = (Instant::now(), History::new(epochs, time, 25_600, 0));
            for epoch in 1..=1000 {
                history.commit_at(begin, epoch, 1000);
                let kept = epoch - history.first_at(begin, epoch);
                assert_eq!(kept, epoch.min(25), "after {epoch}");
            }
            // One that is larger than all of it.
            history.commit_at(begin, 1001, 100_000);
            assert_eq!(history.first_at(begin, 1001), 1001);
        }
    }

    #[test]
    fn what_was_there_before_is_kept_as_if_it_had_just_been_committed() {
        let history = History::new(0, 60 * SECOND, u64::MAX, 1000);
        let begin = Instant::now();
        history.commit_at(begin + 10 * SECOND, 1001, 1);
        let first = |seconds: u32| history.first_at(begin + SECOND * seconds, 1001);
        assert_eq!([first(59), first(61), first(71)], [0, 1000, 1001]);
    }

    #[test]
    fn many_epochs_are_remembered_as_few_parts() {
        let begin = Instant::now();
        for (epochs, time, bytes) in [
            (0, 256 * SECOND, u64::MAX),
            (100_000, Duration::ZERO, 1 << 40),
            (100_000, 256 * SECOND, 100_000),
        ] {
            let history = History::new(epochs, time, bytes, 0);
            for epoch in 1..=100_000 {
                history.commit_at(begin + Duration::from_millis(epoch), epoch, 1);
            }
            let parts = history.passed.lock().parts.len();
            assert!(parts <= 3 * PARTS as usize, "{parts}");
        }
    }
}
