//! Histories whose process is killed in the middle: what was acknowledged is there, and all that is there is a prefix.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write, stdout};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use alluvium::{Durability, Engine};

use super::attempt::Attempt;
use super::client::Client;
use super::judge::judge;
use super::plan::{Form, Number, Planner};
use super::{CLIENTS, PLANS, begin, share, work};
use crate::keys::Random;
use crate::many::{PATIENCE, given, seed};

/// How often a process is killed, if the environment does not say it.
const KILLS: u64 = 3;

/// Where the process finds the state directory, the seed, and how often it was killed before.
const DIRECTORY: &str = "ALLUVIUM_KILLED_HISTORY";
const SEED: &str = "ALLUVIUM_KILLED_SEED";
const ROUND: &str = "ALLUVIUM_KILLED_ROUND";

fn open(directory: &Path, random: &mut Random) -> Engine {
    let builder = Engine::builder().workers(1 + random.below(3) as usize);
    let builder = builder.durability(Durability::Always);
    let builder = builder.checkpoints(Duration::from_millis(50), 1 << 16);
    builder.state(format!("file:{}", directory.display())).open().expect("an engine starts")
}

/// Runs in a process of its own, which the next test kills.
#[test]
#[ignore = "the clients, whom another test runs"]
fn the_clients() {
    let variable = |name: &str| std::env::var(name).expect("the other test sets it");
    let number = |name: &str| variable(name).parse().expect("a number");
    let (seed, round): (u64, u64) = (number(SEED), number(ROUND));
    let mut random = Random(seed ^ round);
    let engine = open(variable(DIRECTORY).as_ref(), &mut random);
    let log = |attempt: &Attempt| {
        let mut to = stdout().lock();
        let written = to.write_all(format!("{attempt}\n").as_bytes()).and_then(|()| to.flush());
        written.expect("somebody listens");
    };
    let planner = Planner { seed, has_keys: true };
    let shared = share(&engine, planner, u64::MAX, Box::new(log));
    let worked = work(&engine, &shared, round * CLIENTS as u64, &mut random, PATIENCE);
    println!("problem {:?}", worked.err());
}

/// Runs clients until the process is killed. Returns what they told of.
fn run(directory: &Path, seed: u64, round: u64, attempts: u64) -> Vec<Attempt> {
    let mut clients = Command::new(std::env::current_exe().expect("a test knows its program"))
        .args(["--exact", "histories::killed::the_clients", "--ignored", "--nocapture"])
        .env(DIRECTORY, directory)
        .env(SEED, seed.to_string())
        .env(ROUND, round.to_string())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let output = clients.stdout.take().expect("it is piped");
    // The last that is known of each.
    let mut told: BTreeMap<Number, Attempt> = BTreeMap::new();
    let mut is_killed = false;
    for line in BufReader::new(output).lines().map_while(Result::ok) {
        assert!(!line.starts_with("problem"), "seed {seed}: {line}");
        // Those of the test harness are none, nor is one that is cut off.
        if let Some(attempt) = Attempt::parse(&line) {
            told.insert(attempt.number, attempt);
        }
        if told.len() as u64 >= attempts && !is_killed {
            clients.kill().expect("it has not ended");
            is_killed = true;
        }
    }
    clients.wait().expect("it has ended");
    assert!(is_killed, "seed {seed}: the clients end by themselves");
    told.into_values().collect()
}

/// Completes what clients told of: whether what was open when they were killed is there. Returns what is lost.
fn resolve(engine: &Engine, planner: &Planner, attempts: &mut [Attempt]) -> Vec<String> {
    let last = engine.progress().committed;
    let mut problems = Vec::new();
    for attempt in attempts {
        let there = engine.committed(&attempt.number.key()).expect("the engine runs");
        let told = attempt.to_string();
        let waits = planner.plan(attempt.number).form != Form::Library { waits: false };
        match (attempt.before, attempt.epoch) {
            (0, _) => attempt.epoch = there,
            (_, epoch) if there == epoch => {}
            // The client did not wait for the disk.
            (_, Some(epoch)) if !waits && there.is_none() && epoch > last => attempt.epoch = None,
            _ => problems.push(format!("{told} is {there:?} now")),
        }
        // Epochs that no client waited for are others now.
        attempt.after = attempt.after.min(last);
        attempt.before = if attempt.before == 0 { last } else { attempt.before.min(last) };
    }
    problems
}

#[test]
fn a_killed_history_is_a_prefix_with_all_that_was_acknowledged() {
    let kills = given("ALLUVIUM_KILLS").unwrap_or(KILLS);
    let seed = seed();
    let directory = tempfile::tempdir().expect("there is room");
    let planner = Planner { seed, has_keys: true };
    let mut random = Random(seed);
    let mut engine = open(directory.path(), &mut random);
    let beginning = begin(&engine, &planner);
    let mut attempts = Vec::new();
    for round in 0..kills {
        drop(engine);
        let mut told = run(directory.path(), seed, round, random.below(PLANS) + 20);
        thread::sleep(Duration::from_millis(1));
        engine = open(directory.path(), &mut random);
        let mut problems = resolve(&engine, &planner, &mut told);
        attempts.append(&mut told);
        let shared = share(&engine, Planner { seed, has_keys: true }, 0, Box::new(|_| {}));
        let mut reader = Client::new(engine.clone(), shared.clone(), 0);
        reader.read_all();
        attempts.append(&mut reader.attempts);
        problems.extend(shared.watch.problems());
        problems.extend(judge(&planner, beginning.clone(), &attempts));
        assert!(problems.is_empty(), "seed {seed}, round {round}: {problems:#?}");
    }
}
