//! A round: threads do something over and over, for a while.

use std::error::Error;
use std::sync::Barrier;
use std::time::{Duration, Instant};

use crate::Result;

/// The result of a round.
#[derive(Default)]
pub struct Round {
    /// How long each time took, in nanoseconds.
    pub latencies: Vec<u32>,
    /// How many times a second.
    pub rate: f64,
    /// The processor time of the process meanwhile, on all cores.
    pub processor: Duration,
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
    let before = processor_time()?;
    let round = std::thread::scope(|scope| {
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
        Ok::<_, Box<dyn Error + Send + Sync>>(round)
    })?;
    Ok(Round { processor: processor_time()?.saturating_sub(before), ..round })
}

/// The processor time of the process, in steps of ten milliseconds.
fn processor_time() -> Result<Duration> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    // After the name, which may contain anything: the 12th and 13th field are ticks of user and system time.
    let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields);
    let ticks = fields.split_whitespace().skip(11).take(2).map(str::parse::<u64>);
    Ok(Duration::from_millis(10 * ticks.sum::<std::result::Result<u64, _>>()?))
}
