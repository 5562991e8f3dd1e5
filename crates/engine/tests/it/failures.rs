//! Storage that fails, or is full, below a whole engine.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::thread;
use std::time::Duration;

use alluvium::unstable::BuilderParts;
use alluvium::{Engine, Result};
use alluvium_storage::{Failing, MemoryStorage};

use crate::memory::PROGRAM;
use crate::support::{lines, without_hanging};

/// Little enough for every part of the program to write files.
const MEMORY: usize = 20_000;

/// About how many of the calls of a run are made to fail, each in a run of its own.
const RUNS: u64 = 60;

/// An engine with so little memory, over this storage.
fn engine(storage: &Failing<MemoryStorage>) -> Engine {
    let builder = Engine::builder().workers(2).memory(MEMORY).storage(storage.clone());
    builder.open_in_memory().unwrap()
}

/// Fills tables and views, changes rows, and makes one more view of what is there; what is then in the views.
fn fill(engine: &Engine) -> Result<Vec<String>> {
    engine.execute(PROGRAM)?;
    let customers: Vec<String> = (0..40).map(|id| format!("({id}, 'customer {id}')")).collect();
    engine.execute(&format!("INSERT INTO customers VALUES {}", customers.join(", ")))?;
    for round in 0..3 {
        let orders: Vec<String> = (round * 200..round * 200 + 300)
            .map(|id| format!("({id}, {}, {}, 'the note of order {id}')", id * 7 % 30, id % 13))
            .collect();
        engine.execute(&format!("INSERT OR REPLACE INTO orders VALUES {}", orders.join(", ")))?;
        engine.execute(&format!("DELETE FROM orders WHERE id % 11 = {round}"))?;
    }
    engine.execute("INSERT INTO orders SELECT id + 10000, customer, amount, note FROM orders")?;
    engine.execute(
        "CREATE MATERIALIZED VIEW notes AS SELECT note, id FROM orders WHERE amount > 3",
    )?;
    engine.wait(engine.progress().committed)?;
    let mut shown = Vec::new();
    for view in ["totals", "latest", "missing", "notes"] {
        shown.extend(lines(&engine.query(&format!("SELECT * FROM {view}"))?));
    }
    Ok(shown)
}

#[test]
fn a_call_that_fails_is_an_error_that_names_the_file_or_does_not_matter() {
    let storage = Failing::new(MemoryStorage::new());
    let expected = fill(&engine(&storage)).unwrap();
    assert!(expected.len() > 800, "{}", expected.len());
    let calls = storage.calls();
    assert!(calls > RUNS, "{calls}");
    let mut told = 0;
    for run in 0..RUNS {
        let storage = Failing::new(MemoryStorage::new());
        storage.fail_from(1 + run * calls / RUNS);
        let filled = without_hanging(move || {
            let engine = engine(&storage);
            let filled = fill(&engine);
            // A client that asks again gets an answer, or an error, too.
            let _ = engine.query("SELECT COUNT(*) FROM totals");
            filled
        });
        match filled {
            Ok(shown) => assert_eq!(shown, expected, "run {run}"),
            Err(error) => {
                let error = error.to_string();
                let names = error.contains("failing:") && error.contains("fails on command");
                assert!(names, "run {run}: {error}");
                told += 1;
            }
        }
    }
    assert!(told > RUNS / 2, "{told} of {RUNS} runs failed");
}

/// Changes of an earlier statement were lost with rows that failed to be moved to a file, and COMMIT left them out.
#[test]
fn a_statement_that_cannot_be_staged_takes_nothing_else_of_its_transaction_away() {
    let storage = Failing::new(MemoryStorage::new());
    let builder = Engine::builder().workers(2).memory(1_000_000).storage(storage.clone());
    let engine = builder.open_in_memory().unwrap();
    engine.execute("CREATE TABLE t (id BIGINT PRIMARY KEY, note VARCHAR)").unwrap();
    engine.execute("INSERT INTO t VALUES (0, 'there from the beginning')").unwrap();
    let mut session = engine.session();
    session.execute("BEGIN; INSERT INTO t SELECT 1, repeat('x', 40000)").unwrap();
    storage.fail_from(storage.calls() + 1);
    for statement in
        ["INSERT INTO t SELECT 2, repeat('x', 40000)", "UPDATE t SET note = repeat('y', 90000)"]
    {
        let error = session.execute(statement).unwrap_err().to_string();
        assert!(error.contains("rows of a transaction cannot be written"), "{error}");
    }
    storage.fail_from(u64::MAX);
    session.execute("INSERT INTO t VALUES (3, 'more'); COMMIT").unwrap();
    let shown = engine.query("SELECT id, LENGTH(note) FROM t").unwrap();
    assert_eq!(lines(&shown), ["0 24", "1 40000", "3 4"]);
}

#[test]
fn on_a_full_disk_all_waits_and_goes_on_when_there_is_room() {
    let whole = Failing::new(MemoryStorage::new());
    let expected = fill(&engine(&whole)).unwrap();
    for part in 0..4 {
        let storage = Failing::new(MemoryStorage::new());
        storage.limit(whole.used() * part / 4);
        let room = storage.clone();
        let shown = without_hanging(move || {
            let engine = engine(&storage);
            thread::scope(|scope| {
                let filling = scope.spawn(|| fill(&engine));
                let reason = loop {
                    if let Some(reason) = engine.waits_for_room() {
                        break reason;
                    }
                    assert!(!filling.is_finished(), "the disk was not full");
                    thread::sleep(Duration::from_millis(1));
                };
                assert!(reason.contains("failing:"), "{reason}");
                room.free();
                filling.join().unwrap()
            })
        });
        assert_eq!(shown.unwrap(), expected, "with room for {part} quarters");
    }
}
