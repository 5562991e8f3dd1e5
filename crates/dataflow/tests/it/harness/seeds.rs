//! Tests made of a check per seed.

use alluvium_dataflow::fault::Fault;

/// Runs `check` for the seeds below `runs`, or below the environment variable `ALLUVIUM_RUNS`; panics with the first
/// difference.
pub fn every_seed(runs: u64, check: impl Fn(u64, Option<Fault>) -> Result<(), String>) {
    let runs = std::env::var("ALLUVIUM_RUNS").map_or(runs, |runs| runs.parse().unwrap());
    for seed in 0..runs {
        if let Err(difference) = check(seed, None) {
            panic!("{difference}");
        }
    }
}

/// Asserts that each fault, when armed, makes `check` fail for at least one of the seeds below `runs`.
pub fn assert_caught(
    runs: u64,
    faults: &[Fault],
    check: impl Fn(u64, Option<Fault>) -> Result<(), String>,
) {
    for &fault in faults {
        let caught = (0..runs).any(|seed| check(seed, Some(fault)).is_err());
        assert!(caught, "{fault:?} goes unnoticed");
    }
}
