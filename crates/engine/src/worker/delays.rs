//! How long epochs take from their commit until they are durable and complete.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use alluvium_trace::Epoch;

/// The number of classes of times.
const CLASSES: usize = 32;

/// How many times there were, by powers of two of microseconds.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Histogram {
    /// Those of less than one microsecond, of one, of two to three, of four to seven and so on; the last class has all longer ones.
    counts: [u64; CLASSES],
    sum: Duration,
}

impl Histogram {
    fn add(&mut self, time: Duration) {
        let microseconds = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        let class = (u64::BITS - microseconds.leading_zeros()) as usize;
        self.counts[class.min(CLASSES - 1)] += 1;
        self.sum = self.sum.saturating_add(time);
    }

    /// The sum of all times.
    pub(crate) fn sum(&self) -> Duration {
        self.sum
    }

    /// For each class its end in seconds, and how many times it has.
    pub(crate) fn classes(&self) -> impl Iterator<Item = (f64, u64)> {
        let end = |class| match class < CLASSES - 1 {
            true => (1_u64 << class) as f64 / 1e6,
            false => f64::INFINITY,
        };
        self.counts.iter().enumerate().map(move |(class, count)| (end(class), *count))
    }

    /// How many times there are.
    pub(crate) fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// How many times there were of each class, up to the last that has any.
    pub(crate) fn counts(&self) -> &[u64] {
        let end = self.counts.iter().rposition(|count| *count > 0).map_or(0, |last| last + 1);
        &self.counts[..end]
    }

    /// The time in microseconds that this share of all are below, rounded up to the end of its class; `None` of no times.
    pub(crate) fn quantile(&self, share: f64) -> Option<u64> {
        let wanted = (self.count() as f64 * share).ceil() as u64;
        let mut below = 0;
        let class = self.counts.iter().position(|count| {
            below += count;
            below >= wanted.max(1)
        });
        class.map(|class| 1 << class)
    }
}

/// The delays of all epochs so far.
#[derive(Debug, Default)]
pub(super) struct Delays {
    /// When the epochs began that are not complete, in order.
    begun: VecDeque<(Epoch, Instant)>,
    /// The last epoch whose delay until it was durable is known.
    noted: Epoch,
    histograms: DelayHistograms,
}

/// How long epochs took from their commit.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct DelayHistograms {
    /// Until they were durable; nothing if they need not be.
    pub(crate) durable: Histogram,
    /// Until they were complete.
    pub(crate) complete: Histogram,
}

impl Delays {
    /// An epoch is committed; epochs come in order.
    pub(super) fn begin(&mut self, epoch: Epoch) {
        self.begun.push_back((epoch, Instant::now()));
    }

    /// All epochs up to these are durable, and complete. What is durable because it need not be is told as [`Epoch::MAX`].
    pub(super) fn advance(&mut self, durable: Epoch, complete: Epoch) {
        let is_complete = self.begun.front().is_some_and(|(epoch, _)| *epoch <= complete);
        let is_durable = durable != Epoch::MAX && durable > self.noted && !self.begun.is_empty();
        if !is_complete && !is_durable {
            return;
        }
        let now = Instant::now();
        if is_durable {
            let from = self.begun.partition_point(|(epoch, _)| *epoch <= self.noted);
            let upto = self.begun.partition_point(|(epoch, _)| *epoch <= durable);
            for (_, begun) in self.begun.range(from..upto.max(from)) {
                self.histograms.durable.add(now.saturating_duration_since(*begun));
            }
            self.noted = durable;
        }
        while let Some((_, begun)) = self.begun.pop_front_if(|(epoch, _)| *epoch <= complete) {
            self.histograms.complete.add(now.saturating_duration_since(begun));
        }
    }

    pub(super) fn histograms(&self) -> DelayHistograms {
        self.histograms
    }
}

#[cfg(test)]
mod tests {
    use std::thread::sleep;

    use super::*;

    #[test]
    fn times_are_counted_by_powers_of_two() {
        let mut histogram = Histogram::default();
        assert_eq!((histogram.counts(), histogram.quantile(0.5)), (&[][..], None));
        for microseconds in [0, 1, 2, 3, 4, 1000, u64::MAX] {
            histogram.add(Duration::from_micros(microseconds));
        }
        assert_eq!(histogram.counts()[..11], [1, 1, 2, 1, 0, 0, 0, 0, 0, 0, 1]);
        assert_eq!(histogram.counts().len(), CLASSES);
        assert_eq!((histogram.count(), histogram.classes().last()), (7, Some((f64::INFINITY, 1))));
        assert_eq!(histogram.classes().nth(2), Some((0.000004, 2)));
        assert_eq!(
            histogram.sum(),
            Duration::from_micros(u64::MAX).saturating_add(Duration::from_micros(1010))
        );
        assert_eq!(
            [0.0, 0.5, 0.6, 0.8].map(|share| histogram.quantile(share)),
            [1, 4, 8, 1024].map(Some)
        );
    }

    #[test]
    fn each_epoch_has_one_delay_of_each_kind() {
        let mut delays = Delays::default();
        (1..=3).for_each(|epoch| delays.begin(epoch));
        sleep(Duration::from_millis(3));
        delays.advance(2, 0);
        delays.advance(2, 1);
        delays.advance(3, 1);
        let counted = |delays: &Delays| {
            let DelayHistograms { durable, complete } = delays.histograms();
            (durable.counts().iter().sum::<u64>(), complete.counts().iter().sum::<u64>())
        };
        assert_eq!(counted(&delays), (3, 1));
        assert!(delays.histograms().durable.quantile(0.0).is_some_and(|least| least >= 2048));
        delays.advance(3, 3);
        delays.begin(4);
        delays.advance(Epoch::MAX, 4);
        assert_eq!(counted(&delays), (3, 4));
    }
}
