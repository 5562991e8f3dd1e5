//! After a panic anywhere, every handle gets an error, and no thread hangs.

use std::path::Path;
use std::sync::mpsc;
use std::time::Duration;

use alluvium::{Engine, Portion, Result, Source, SourceReader, SourceRequest};

use crate::support::{PATIENCE, assert_poisoned, without_hanging};

const TABLES: &str = "
    CREATE TABLE t (id BIGINT PRIMARY KEY, v BIGINT);
    CREATE MATERIALIZED VIEW m AS SELECT v, COUNT(*) AS n FROM t GROUP BY v";

/// A source that panics after its first portion.
struct Shaky;

struct ShakyReader(SourceRequest, bool);

impl Source for Shaky {
    fn name(&self) -> &str {
        "shaky"
    }

    fn handles(&self, _: &Path) -> bool {
        true
    }

    fn open(&self, request: &SourceRequest) -> Result<Box<dyn SourceReader>> {
        Ok(Box::new(ShakyReader(request.clone(), true)))
    }
}

impl SourceReader for ShakyReader {
    fn next(&mut self) -> Result<Option<Portion>> {
        assert!(std::mem::take(&mut self.1), "the source gives way");
        let rows = alluvium::arrow::array::RecordBatch::new_empty(self.0.schema.clone());
        Ok(Some(Portion::new(rows)))
    }
}

fn engine(workers: usize) -> Engine {
    let engine = Engine::builder()
        .workers(workers)
        .source(Shaky)
        .open_in_memory()
        .expect("an engine starts");
    engine.execute(TABLES).expect("the statements are right");
    engine
}

/// Puts a waiter into everything that waits, runs `panic`, and expects each of them, and every later call,
/// to fail with a message that contains `text`.
fn all_handles_fail(engine: Engine, text: &'static str, panic: impl FnOnce(&Engine)) {
    let (failed, failures) = mpsc::channel();
    let mut subscription = engine.subscribe("m").expect("the view exists");
    subscription.next().expect("a snapshot").expect("the engine is well");
    let spawn = |name: &'static str, act: Box<dyn FnOnce() -> Result<()> + Send>| {
        let failed = failed.clone();
        std::thread::spawn(move || failed.send((name, act())));
    };
    let waiting = engine.clone();
    spawn("wait", Box::new(move || waiting.wait(1_000_000)));
    spawn(
        "subscription",
        Box::new(move || subscription.next().expect("an error is an item").map(drop)),
    );
    // The others probably wait by now; they fail as well if not.
    std::thread::sleep(Duration::from_millis(50));
    panic(&engine);
    let mut names = Vec::new();
    for _ in 0..2 {
        let (name, result) = failures.recv_timeout(PATIENCE).expect("every waiter returns");
        assert_poisoned(result, text);
        names.push(name);
    }
    names.sort_unstable();
    assert_eq!(names, ["subscription", "wait"]);
    without_hanging(move || {
        assert_poisoned(engine.execute("INSERT INTO t VALUES (1, 1)"), text);
        assert_poisoned(engine.execute("CREATE TABLE u (a BIGINT)"), text);
        assert_poisoned(engine.query("SELECT * FROM m"), text);
        assert_poisoned(engine.begin().map(drop), text);
        assert_poisoned(engine.wait(0), text);
        assert_poisoned(engine.subscribe("m").map(drop), text);
        drop(engine);
    });
}

#[test]
fn a_panic_in_a_source_poisons_the_engine() {
    for workers in 1..=3 {
        all_handles_fail(engine(workers), "the source gives way", |engine| {
            assert_poisoned(engine.execute("COPY t FROM 'anything'"), "the source gives way");
        });
    }
}

#[test]
fn a_panic_in_a_subscriber_poisons_the_engine() {
    for workers in 1..=3 {
        all_handles_fail(engine(workers), "a subscriber panicked", |engine| {
            let mut subscription = engine.subscribe("t").expect("the table exists");
            let subscriber = std::thread::spawn(move || {
                let change = subscription.next();
                assert!(change.is_none(), "the subscriber expects no change");
            });
            assert!(subscriber.join().is_err());
        });
    }
}

#[test]
fn a_writer_that_waits_for_the_lock_fails_too() {
    let engine = engine(1);
    let tx = engine.begin().expect("the engine is well");
    let mut holder = engine.session();
    holder.execute("BEGIN; INSERT INTO t VALUES (7, 1)").expect("nobody else writes");
    let (failed, failure) = mpsc::channel();
    let waiting = engine.clone();
    std::thread::spawn(move || {
        failed.send(waiting.execute("INSERT INTO t VALUES (7, 2)").map(drop))
    });
    // The others probably wait by now; they fail as well if not.
    std::thread::sleep(Duration::from_millis(50));
    let mut subscription = engine.subscribe("t").expect("the table exists");
    let subscriber = std::thread::spawn(move || {
        subscription.next();
        panic!("the subscriber gives way");
    });
    assert!(subscriber.join().is_err());
    assert_poisoned(failure.recv_timeout(PATIENCE).expect("it returns"), "a subscriber panicked");
    assert_poisoned(tx.commit(), "a subscriber panicked");
}
