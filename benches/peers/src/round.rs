//! A round: threads do something over and over, for a while.

use std::sync::Barrier;
use std::time::{Duration, Instant};

use crate::Result;

/// What came of a round.
#[derive(Default)]
pub struct Round {
    /// How long each time took, in nanoseconds.
    pub latencies: Vec<u32>,
    /// How many times a second.
    pub rate: f64,
}

/// Has so many threads take steps for so long, each those that `steps` makes for it.
pub fn run<S: FnMut() -> Result<()>>(
    threads: usize,
    time: Duration,
    steps: impl Fn(usize) -> S + Sync,
) -> Result<Round> {
    let barrier = Barrier::new(threads);
    let one = |thread| -> Result<(Vec<u32>, f64)> {
        let mut latencies = Vec::new();
        let mut step = steps(thread);
        barrier.wait();
        let start = Instant::now();
        let mut last = start;
        while last - start < time {
            step()?;
            let now = Instant::now();
            latencies.push((now - last).as_nanos().try_into().unwrap_or(u32::MAX));
            last = now;
        }
        let rate = latencies.len() as f64 / (last - start).as_secs_f64();
        Ok((latencies, rate))
    };
    std::thread::scope(|scope| {
        let started: Vec<_> = (0..threads)
            .map(|thread| {
                scope.spawn({
                    let one = &one;
                    move || one(thread)
                })
            })
            .collect();
        let mut round = Round::default();
        for thread in started {
            let (latencies, rate) = thread.join().map_err(|_| "a thread panicked")??;
            round.latencies.extend(latencies);
            round.rate += rate;
        }
        Ok(round)
    })
}
