//! The times that a reduction processes together.

use alluvium_trace::Epoch;
use timely::progress::Antichain;

/// The epochs from `lower` up to `upper`; without an upper bound, all that can still come.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Interval {
    /// The first epoch.
    pub(crate) lower: Epoch,
    /// The first epoch after the interval.
    pub(crate) upper: Option<Epoch>,
}

impl Interval {
    /// Whether `time` is after the interval.
    #[inline]
    pub(crate) fn is_before(&self, time: Epoch) -> bool {
        self.upper.is_some_and(|upper| upper <= time)
    }

    /// Whether `time` is in the interval.
    #[inline]
    pub(crate) fn contains(&self, time: Epoch) -> bool {
        self.lower <= time && !self.is_before(time)
    }
}

/// The frontier at `epoch`; without one, the empty frontier.
pub(super) fn frontier(epoch: Option<Epoch>) -> Antichain<Epoch> {
    epoch.into_iter().collect()
}

/// The later of two frontiers.
pub(super) fn later(one: Option<Epoch>, other: Option<Epoch>) -> Option<Epoch> {
    one.zip(other).map(|(one, other)| one.max(other))
}

/// The earlier of two frontiers.
pub(super) fn earlier(one: Option<Epoch>, other: Option<Epoch>) -> Option<Epoch> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}
