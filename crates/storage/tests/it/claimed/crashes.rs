//! A state whose computer crashes at any call, is opened again, and continues. `ALLUVIUM_CRASHES` sets the number of crashes.

use alluvium_storage::{Error, SimulatedDisk};
use fastrand::Rng;

use super::state::{Expected, State, assert_only_manifests_are_left, new_computer};
use crate::journal::crashes;

/// How many crashes a computer has.
const ROUNDS: u64 = 25;

/// How a process ends.
#[derive(Clone, Copy)]
enum End {
    /// It drops everything.
    Returns,
    /// It is killed: the computer does nothing for it any more.
    Killed,
    /// The computer crashes.
    Crashes,
}

/// Uses a state, with calls that may fail.
fn work(mut state: State, steps: u64, random: &mut Rng, expected: &mut Expected) -> State {
    for _ in 0..steps {
        // Also after a failure it continues, if it can.
        if state.step(random, expected).is_err() && state.is_over() {
            break;
        }
    }
    state.assert_is_whole();
    state
}

/// A process: opens the state, uses it, and ends.
fn process(
    computer: &SimulatedDisk,
    random: &mut Rng,
    expected: &mut Expected,
    (steps, end): (u64, End),
    has_failed: impl Fn() -> bool,
) -> Result<(), Error> {
    let opened = State::open(computer, expected);
    let state = match opened {
        Ok(state) => work(state, steps, random, expected),
        Err(error) => {
            if !has_failed() {
                return Err(error);
            }
            assert!(matches!(error, Error::Io { .. }), "only by a failure: {error}");
            end_computer(computer, end);
            return Ok(());
        }
    };
    if !has_failed() {
        state.assert_nothing_else_is_left()?;
    }
    if !matches!(end, End::Returns) {
        computer.fail_from(computer.calls() + 1);
    }
    let had_failed = has_failed();
    drop(state);
    let is_clean = matches!(end, End::Returns) && !had_failed && !has_failed();
    end_computer(computer, end);
    match is_clean {
        true => assert_only_manifests_are_left(computer),
        false => Ok(()),
    }
}

fn end_computer(computer: &SimulatedDisk, end: End) {
    match end {
        End::Returns | End::Killed => computer.mend(),
        End::Crashes => computer.crash(),
    }
}

fn run(seed: u64) {
    println!("seed {seed}");
    let computer = new_computer(seed);
    let mut random = Rng::with_seed(seed);
    let mut expected = Expected::default();
    for _ in 0..ROUNDS {
        let call = computer.calls() + random.u64(1..200);
        match random.u8(..3) {
            0 => {}
            1 => computer.fail_at(call),
            _ => computer.fail_from(call),
        }
        let end = match random.u8(..8) {
            0 => End::Returns,
            1 => End::Killed,
            _ => End::Crashes,
        };
        let steps = random.u64(..60);
        let has_failed = || computer.calls() >= call;
        process(&computer, &mut random, &mut expected, (steps, end), has_failed).unwrap();
    }
    State::open(&computer, &mut expected).unwrap().assert_is_whole();
}

#[test]
fn after_every_crash_what_retained_manifests_name_is_there_and_nothing_else() {
    for seed in 0..crashes().div_ceil(ROUNDS) {
        run(seed);
    }
}

/// Fails each call of a run, alone or with all that follow, and lets the process end in every way.
#[test]
fn when_any_call_fails_what_retained_manifests_name_is_there_and_nothing_else() {
    const STEPS: u64 = 25;
    let set_to_fail = [SimulatedDisk::fail_at, SimulatedDisk::fail_from];
    let ends = [End::Returns, End::Killed, End::Crashes];
    for (fail, end) in set_to_fail.iter().flat_map(|fail| ends.map(|end| (fail, end))) {
        let mut failures = 0;
        for call in 1.. {
            let computer = new_computer(call);
            let (mut random, mut expected) = (Rng::with_seed(7), Expected::default());
            fail(&computer, call);
            let has_failed = || computer.calls() >= call;
            let run = (STEPS, end);
            process(&computer, &mut random, &mut expected, run, has_failed).unwrap();
            let is_through = computer.calls() < call;
            // It continues.
            process(&computer, &mut random, &mut expected, (STEPS, End::Returns), || false)
                .unwrap();
            if is_through {
                break;
            }
            failures += 1;
        }
        println!("{failures} calls have failed");
        assert!(failures > 100);
    }
}
