//! Many clients at once, whose answers are judged by replaying what they committed.
//!
//! A [`client`] is a thread that works at random: it commits, reads in several ways, [follows](follower) changes, makes and drops
//! views and indexes, gives calls up. It logs what it committed and saw. After the run the [`history`] of all clients is
//! replayed in order of epochs through a naive [`model`]: an answer is right if it is the model's [answer](query) as of *one*
//! epoch between the last that any client knew to be committed when it was asked for and the last that was when it was there. A [`watch`] ends
//! what hangs.

mod client;
mod faults;
mod follower;
mod history;
mod model;
mod query;
pub mod watch;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use alluvium::unstable::BuilderParts;
use alluvium::{Builder, Durability, Engine};
use alluvium_storage::Haphazard;
use alluvium_trace::{Pace, Schedule};

use self::client::Client;
use self::history::{Commit, History, Step};
use self::model::{GROUPS, KEYS, PROGRAM, Write};
use self::watch::{NOTHING_MORE, Watch};
use crate::keys::Random;

/// How many clients there are.
const CLIENTS: usize = 64;

/// How long a client may take for one call, on a machine that is busy with other tests.
pub const PATIENCE: Duration = Duration::from_secs(300);

/// A number that the environment gives.
pub fn given(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().and_then(|value| value.parse().ok())
}

/// An engine of some kind.
pub fn builder(random: &mut Random, state: Option<&Path>) -> Builder {
    let mut builder = Engine::builder().workers(1 + random.below(3) as usize);
    let schedule = |pace| Schedule { pace, smallest_job: 0, ..Schedule::default() };
    builder = match random.below(4) {
        0 => builder.schedule(schedule(Pace::InSlices)),
        1 => builder.schedule(schedule(Pace::AtOnce)).merge_threads(2),
        2 => builder.schedule(schedule(Pace::AtOnce)).compaction(Haphazard::new(random.below(99))),
        _ => builder,
    };
    builder = match random.below(3) {
        0 => builder.memory(1 << 20),
        1 => builder.memory(16 << 20),
        _ => builder,
    };
    builder = builder.history([0, 20, 1_000][random.below(3) as usize]);
    if let Some(state) = state {
        let durability = match random.below(3) {
            0 => Durability::Always,
            1 => Durability::Interval(Duration::from_millis(20)),
            _ => Durability::Never,
        };
        builder = builder.durability(durability).state(format!("file:{}", state.display()));
    }
    builder
}

/// Makes the tables and views, with some rows.
fn begin(engine: &Engine, random: &mut Random) -> History {
    let mut history = History::default();
    engine.execute(PROGRAM).expect("the statements are right");
    let mut below = |end| random.below(end) as i64;
    let accounts = (0..KEYS).map(|k| (k, below(GROUPS as u64), below(1_000))).collect();
    let items = (0..KEYS).map(|k| (k, below(1_000))).collect();
    let (accounts, items) = (Write::Put(accounts), Write::Add(items));
    for (epoch, write) in (1..).zip([accounts, items]) {
        engine.execute(&write.sql()).expect("the statements are right");
        let steps = vec![Step::Write(write, None)];
        history.commits.push(Commit { after: epoch - 1, epoch, steps });
    }
    history
}

/// Clients that work for a while. The seed decides on everything but the order of threads.
struct Run<'a> {
    seed: u64,
    clients: usize,
    time: Duration,
    /// How long a client may take for one call.
    patience: Duration,
    state: Option<&'a Path>,
}

impl Run<'_> {
    /// Lets them work, and judges what they did. Returns what cannot be; clients that hang are left alone.
    fn problems(&self) -> Vec<String> {
        let mut random = Random(self.seed);
        let engine = builder(&mut random, self.state).open().expect("an engine starts");
        let mut history = begin(&engine, &mut random);
        let watch = Arc::new(Watch::new(self.clients));
        let start = |number| start(engine.clone(), number, random.below(u64::MAX), &watch);
        let threads: Vec<_> = (0..self.clients).map(start).collect();
        let end = Instant::now() + self.time;
        while threads.iter().any(|thread| !thread.is_finished()) {
            if Instant::now() >= end {
                watch.end();
            }
            let stuck = watch.stuck(self.patience);
            if !stuck.is_empty() {
                watch.end();
                return [watch.problems(), stuck].concat();
            }
            // Ends calls of one client or another.
            watch.interrupt(random.below(self.clients as u64) as usize).request();
            thread::sleep(Duration::from_micros(random.below(5_000)));
        }
        for thread in threads {
            history.add(thread.join().expect("panics are caught"));
        }
        let problems = watch.problems();
        if !problems.is_empty() {
            return problems;
        }
        let last = engine.progress().committed;
        let mut reader = Client::new(engine, 0, Random(self.seed), watch.clone());
        reader.read_all();
        history.add(reader.end());
        if self.state.is_some() {
            // With any number of workers.
            let engine = builder(&mut random, self.state).open().expect("an engine starts");
            if engine.progress().committed != last {
                watch.fail(format!("epoch {last} is {} now", engine.progress().committed));
            }
            let mut reader = Client::new(engine, 0, Random(self.seed), watch.clone());
            reader.read_all();
            history.add(reader.end());
        }
        println!("seed {}: {:?}", self.seed, history.counts);
        [watch.problems(), history.judge()].concat()
    }
}

/// Starts a client.
fn start(engine: Engine, number: usize, seed: u64, watch: &Arc<Watch>) -> JoinHandle<History> {
    let watch = watch.clone();
    thread::spawn(move || {
        let mut client = Client::new(engine, number, Random(seed), watch.clone());
        if catch_unwind(AssertUnwindSafe(|| client.work())).is_err() {
            watch.fail(format!("client {number} panicked"));
            watch.does(number, NOTHING_MORE);
        }
        client.end()
    })
}

/// Lets many clients work for as long as the environment says, and expects that there is nothing wrong.
fn judge(seed: u64, state: Option<&Path>) {
    let time = Duration::from_secs(given("ALLUVIUM_SECONDS").unwrap_or(3));
    let problems = Run { seed, clients: CLIENTS, time, patience: PATIENCE, state }.problems();
    assert!(problems.is_empty(), "seed {seed}: {problems:#?}");
}

/// The seed that the environment gives.
pub fn seed() -> u64 {
    given("ALLUVIUM_SEED").unwrap_or(1)
}

#[test]
fn answers_are_those_of_the_epochs_of_a_replay() {
    judge(seed(), None);
}

#[test]
fn answers_are_those_of_the_epochs_of_a_replay_with_a_state_directory() {
    let directory = tempfile::tempdir().expect("there is room");
    judge(seed() + 1_000, Some(directory.path()));
}
