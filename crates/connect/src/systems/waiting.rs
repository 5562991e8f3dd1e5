//! Waiting for a system that does not answer for now.

#![cfg_attr(
    not(all(feature = "kafka", feature = "postgres")),
    allow(dead_code, reason = "not every system gives up")
)]

use std::thread;
use std::time::{Duration, Instant};

use alluvium::{Error, Live, Result};

/// How long to wait before looking whether something is still needed.
pub const PATIENCE: Duration = Duration::from_millis(100);

/// How long a system is waited for that what was read before is to be read from again.
pub const MOST: Duration = Duration::from_secs(60);

/// How long to wait before a system is asked again: at first, and at most.
const BACKOFF: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(5));

/// Asks a system again and again, each time after a longer pause.
#[derive(Debug)]
pub struct Backoff {
    next: Duration,
    begun: Instant,
}

impl Default for Backoff {
    fn default() -> Self {
        Self { next: BACKOFF.0, begun: Instant::now() }
    }
}

impl Backoff {
    /// Whether it has been so long that whatever is not live is not waited for any longer.
    pub fn is_over(&self, live: Option<&Live>) -> bool {
        live.is_none() && self.begun.elapsed() > MOST
    }

    /// Waits until the system may be asked again.
    ///
    /// # Errors
    /// If nobody needs it any more.
    pub fn wait(&mut self, live: Option<&Live>) -> Result<()> {
        pause(self.next, live)?;
        self.next = BACKOFF.1.min(self.next * 2);
        Ok(())
    }
}

/// Fails if nobody needs rows any more.
pub fn check_live(live: Option<&Live>) -> Result<()> {
    match live.is_some_and(Live::is_over) {
        true => Err(Error::source("nobody needs its rows any more")),
        false => Ok(()),
    }
}

/// Waits so long, unless nobody needs it any more.
pub fn pause(duration: Duration, live: Option<&Live>) -> Result<()> {
    let end = Instant::now() + duration;
    loop {
        check_live(live)?;
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(());
        }
        thread::sleep(left.min(PATIENCE));
    }
}
