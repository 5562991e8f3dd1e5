//! How many rows and bytes have passed through a source or a sink, and how many of them in the last minute.

use std::ops::{AddAssign, Sub};
use std::time::{Duration, Instant, SystemTime};

use alluvium_trace::metrics::Recent;
use parking_lot::Mutex;

const MINUTE: Duration = Duration::from_secs(60);

/// So many rows, and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Amount {
    pub(crate) rows: u64,
    pub(crate) bytes: u64,
}

/// The rows and bytes that have passed.
#[derive(Debug, Default)]
pub(crate) struct Pace(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    all: Amount,
    recent: Recent<Amount>,
    last: Option<(Instant, SystemTime)>,
}

impl Pace {
    /// More have passed.
    pub(crate) fn add(&self, amount: Amount) {
        self.add_at(amount, Instant::now());
    }

    fn add_at(&self, amount: Amount, now: Instant) {
        let state = &mut *self.0.lock();
        state.recent.note(now, state.all);
        state.all += amount;
        state.last = Some((now, SystemTime::now()));
    }

    /// All that have passed.
    pub(crate) fn all(&self) -> Amount {
        self.0.lock().all
    }

    /// Those of the last 60 to 70 seconds.
    pub(crate) fn minute(&self) -> Amount {
        self.minute_at(Instant::now())
    }

    fn minute_at(&self, now: Instant) -> Amount {
        let state = self.0.lock();
        match state.last {
            Some((last, _)) if now.saturating_duration_since(last) < MINUTE => {
                state.all - state.recent.before(now)
            }
            _ => Amount::default(),
        }
    }

    /// When the last ones have passed.
    pub(crate) fn last(&self) -> Option<SystemTime> {
        self.0.lock().last.map(|(_, at)| at)
    }
}

impl AddAssign for Amount {
    fn add_assign(&mut self, other: Self) {
        self.rows += other.rows;
        self.bytes += other.bytes;
    }
}

impl Sub for Amount {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self { rows: self.rows - other.rows, bytes: self.bytes - other.bytes }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_minute_is_told_apart_from_all() {
        let pace = Pace::default();
        let start = Instant::now();
        let after = |seconds| start + Duration::from_secs(seconds);
        for second in 0..100 {
            pace.add_at(Amount { rows: 1, bytes: 8 }, after(second));
        }
        assert_eq!(pace.all(), Amount { rows: 100, bytes: 800 });
        let minute = pace.minute_at(after(100));
        assert!((59..=70).contains(&minute.rows) && minute.bytes == 8 * minute.rows, "{minute:?}");
        assert_eq!(pace.minute_at(after(160)), Amount::default());
    }
}
