//! Concurrent transactions, judged exactly: the committed ones are replayed in the order of their epochs, and everything that
//! any transaction read must be what the replay says.
//!
//! A [`plan`] is what a client does at once: a statement, several between BEGIN and COMMIT, a transaction of the library, or a
//! definition. Its number alone decides on it. A [`client`] carries plans out and notes [attempts](attempt): what each statement
//! said, the epoch of the commit, and the epochs between which all of it was. The [`judge`] replays the plans through a
//! [`model`], maps that know a few [queries](query) and [writes](write), and never asks the engine:
//!
//! - What a transaction that changed something said is what it says in the model right before its epoch: every SELECT, every
//!   count of rows, every RETURNING, every statement that must fail.
//! - What any other said, committed, rolled back or failed, is what it says as of *one* epoch between the last that anybody
//!   knew to be committed when it began, and the last that was when it ended.
//! - An epoch is after all that were known to be committed when its transaction began, and each epoch is somebody's: so who
//!   failed has left nothing.
//! - In the end tables and views are what the model says, also when the engine is opened again, and when its process was
//!   [killed](killed) in the middle.
//!
//! # Faults
//!
//! [`faults`] arms mistakes of the engine, which short runs must notice. To add one: a variant of `alluvium::unstable::fault::Fault`, and
//! of its list `TRANSACTIONS`; in the engine `if armed(Fault::…)` where it would make the mistake. No test changes.
//! If no plan would notice it, [`plan`] needs a statement that does: a variant of [`write::Write`] with its text and its effect.
//!
//! `model::TAKEN_KEYS_FAIL` says what inserting a taken key means.

mod attempt;
mod client;
mod faults;
mod judge;
mod killed;
mod model;
mod plan;
mod query;
mod write;

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::thread;
use std::time::Duration;

use alluvium::Engine;

use self::attempt::Attempt;
use self::client::{Client, Shared};
use self::judge::judge;
use self::model::{ALL_KEYED, Open, PROGRAM, Tables};
use self::plan::Planner;
use self::write::{Taken, Write};
use crate::keys::Random;
use crate::many::watch::{NOTHING_MORE, Watch};
use crate::many::{PATIENCE, builder, given, seed};

/// How many clients there are.
const CLIENTS: usize = 16;

/// How many histories there are in memory, and as many with a state directory, if the environment does not say it.
const HISTORIES: u64 = 3;

/// How many plans a history has, if the environment does not say it.
const PLANS: u64 = 500;

/// A history of clients that carry out plans.
struct Run<'a> {
    seed: u64,
    plans: u64,
    /// How long a client may take for one call.
    patience: Duration,
    state: Option<&'a Path>,
}

impl Run<'_> {
    /// Lets them work, and judges what they did. Returns what cannot be; clients that hang are left alone.
    fn problems(&self) -> Vec<String> {
        let mut random = Random(self.seed);
        let planner = Planner { seed: self.seed, has_keys: false };
        let engine = builder(&mut random, self.state).open().expect("an engine starts");
        let beginning = begin(&engine, &planner);
        let shared = share(&engine, planner, self.plans, Box::new(|_| {}));
        let worked = work(&engine, &shared, 0, &mut random, self.patience);
        let (mut attempts, counts) = match worked {
            Ok(worked) => worked,
            Err(problems) => return problems,
        };
        let mut read = |engine: Engine| {
            let mut reader = Client::new(engine, shared.clone(), 0);
            reader.read_all();
            attempts.append(&mut reader.attempts);
        };
        let last = engine.progress().committed;
        read(engine);
        if self.state.is_some() {
            // With any number of workers.
            let engine = builder(&mut random, self.state).open().expect("an engine starts");
            let now = engine.progress().committed;
            if now != last {
                return vec![format!("epoch {last} is {now} now")];
            }
            read(engine);
        }
        println!("seed {}: {} epochs, {counts:?}", self.seed, last);
        [shared.watch.problems(), judge(&shared.planner, beginning, &attempts)].concat()
    }
}

/// Makes tables and views, with some rows. Returns the tables, and the epoch as of which these are.
fn begin(engine: &Engine, planner: &Planner) -> (u64, Tables) {
    engine.execute(PROGRAM).expect("the statements are right");
    let mut open = Open::new(&Tables::default());
    let rows: Vec<_> = (0..planner.keys() as i64).map(|k| (k, k % 3, k * 70 % 900)).collect();
    for table in ALL_KEYED {
        let insert = Write::Insert { table, rows: rows.clone(), taken: Taken::Plain };
        engine.execute(&insert.sql(0)).expect("the statement is right");
        insert.apply(&mut open, 0).expect("no key is taken");
    }
    (engine.progress().committed, open.commit())
}

fn share(
    engine: &Engine,
    planner: Planner,
    plans: u64,
    log: Box<dyn Fn(&Attempt) + Send + Sync>,
) -> Arc<Shared> {
    let acknowledged = AtomicU64::new(engine.progress().committed);
    let (left, watch) = (AtomicU64::new(plans), Watch::new(CLIENTS));
    Arc::new(Shared { planner, left, acknowledged, watch, log })
}

/// The attempts of clients, and counts of events.
type Worked = (Vec<Attempt>, BTreeMap<String, u64>);

/// Lets clients carry out plans until none is left; the first one has this number. Fails with what cannot be.
fn work(
    engine: &Engine,
    shared: &Arc<Shared>,
    first: u64,
    random: &mut Random,
    patience: Duration,
) -> Result<Worked, Vec<String>> {
    let start = |number: usize| {
        let mut client = Client::new(engine.clone(), shared.clone(), number);
        let shared = shared.clone();
        thread::spawn(move || {
            if catch_unwind(AssertUnwindSafe(|| client.work(first + number as u64))).is_err() {
                shared.watch.fail(format!("client {number} panicked"));
                shared.watch.does(number, NOTHING_MORE);
            }
            (client.attempts, client.counts)
        })
    };
    let threads: Vec<_> = (0..CLIENTS).map(start).collect();
    while threads.iter().any(|thread| !thread.is_finished()) {
        let stuck = shared.watch.stuck(patience);
        if !stuck.is_empty() {
            shared.watch.end();
            return Err([shared.watch.problems(), stuck].concat());
        }
        // Ends calls of one client or another.
        shared.watch.interrupt(random.below(CLIENTS as u64) as usize).request();
        thread::sleep(Duration::from_micros(random.below(5_000)));
    }
    let mut worked = Worked::default();
    for thread in threads {
        let (attempts, counts) = thread.join().expect("panics are caught");
        worked.0.extend(attempts);
        counts.into_iter().for_each(|(what, count)| *worked.1.entry(what).or_default() += count);
    }
    match shared.watch.problems() {
        problems if problems.is_empty() => Ok(worked),
        problems => Err(problems),
    }
}

/// Judges as many histories as the environment says.
fn judge_histories(first: u64, has_state: bool) {
    let histories = given("ALLUVIUM_HISTORIES").unwrap_or(HISTORIES);
    let plans = given("ALLUVIUM_TRANSACTIONS").unwrap_or(PLANS);
    for seed in first..first + histories {
        let state = has_state.then(|| tempfile::tempdir().expect("there is room"));
        let state = state.as_ref().map(|state| state.path());
        let problems = Run { seed, plans, patience: PATIENCE, state }.problems();
        assert!(problems.is_empty(), "seed {seed}: {problems:#?}");
    }
}

#[test]
fn transactions_are_those_of_a_replay_in_the_order_of_their_epochs() {
    judge_histories(seed(), false);
}

#[test]
fn transactions_are_those_of_a_replay_with_a_state_directory() {
    judge_histories(seed(), true);
}
