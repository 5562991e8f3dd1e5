//! The part of a growing number that the last minute has added.

use std::time::{Duration, Instant};

/// How many moments of the past are kept.
const MOMENTS: usize = 7;

/// The time between them. All but the last of them make a minute.
const BETWEEN: Duration = Duration::from_secs(10);

/// A number at some moments of the last minutes, the oldest first.
#[derive(Clone, Debug)]
pub struct Recent<T> {
    moments: [Option<(Instant, T)>; MOMENTS],
}

impl<T> Default for Recent<T> {
    fn default() -> Self {
        Self { moments: [const { None }; MOMENTS] }
    }
}

impl<T: Copy + Default> Recent<T> {
    /// Adds the present moment if the last one is long ago.
    pub fn note(&mut self, now: Instant, number: T) {
        let last = self.moments[MOMENTS - 1];
        if last.is_none_or(|(at, _)| now.saturating_duration_since(at) >= BETWEEN) {
            self.moments.rotate_left(1);
            self.moments[MOMENTS - 1] = Some((now, number));
        }
    }

    /// The number as it was 60 to 70 seconds ago, if it has been noted since; its default if all of it is younger.
    pub fn before(&self, now: Instant) -> T {
        let is_old = |at: Instant| now.saturating_duration_since(at) >= BETWEEN * 6;
        let old = self.moments.iter().flatten().rfind(|(at, _)| is_old(*at));
        old.map(|(_, number)| *number).unwrap_or_default()
    }
}
