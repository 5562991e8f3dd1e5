//! Topics of a real broker, which `.ci/servers/kafka` runs.

#[cfg(feature = "avro")]
mod avro;
mod broker;
mod letters;
mod reading;
mod tables;
mod views;
mod writing;

use std::thread::sleep;
use std::time::{Duration, Instant};

/// Waits until something is so, and fails if it takes too long.
fn wait_until(is_so: impl Fn() -> bool) {
    const LONG: Duration = Duration::from_secs(60);
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < LONG, "it takes too long");
        sleep(Duration::from_millis(5));
    }
}
