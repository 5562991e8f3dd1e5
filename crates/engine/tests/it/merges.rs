//! Merges in the background of a whole engine: an idle one settles, failures reach the program, a closed one ends.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use alluvium::unstable::BuilderParts;
use alluvium::{Builder, Engine, Result};
use alluvium_storage::{Failing, Haphazard, MemoryStorage};
use alluvium_trace::{Pace, Schedule};

use crate::memory::PROGRAM;
use crate::support::{PATIENCE, alone, lines, query, without_hanging};

/// Merges that are small are not done at once.
fn schedule(pace: Pace) -> Schedule {
    Schedule { pace, smallest_job: 0, ..Schedule::default() }
}

/// An engine that merges in one of several ways.
fn builder(merges: usize) -> Builder {
    let builder = Engine::builder().workers(2);
    match merges {
        0 => builder.schedule(schedule(Pace::InSlices)),
        1 => builder.schedule(schedule(Pace::AtOnce)).merge_threads(1),
        2 => builder.schedule(schedule(Pace::AtOnce)).merge_threads(3),
        _ => builder.schedule(schedule(Pace::AtOnce)).compaction(Haphazard::new(merges as u64)),
    }
}

/// Fills tables and views, with updates and deletions.
fn fill(engine: &Engine, orders: u64) -> Result<()> {
    engine.execute(PROGRAM)?;
    let customers: Vec<String> = (0..40).map(|id| format!("({id}, 'customer {id}')")).collect();
    engine.execute(&format!("INSERT INTO customers VALUES {}", customers.join(", ")))?;
    for round in 0..20 {
        let orders: Vec<String> = (round * orders..(round + 2) * orders)
            .map(|id| format!("({id}, {}, {}, 'the note of order {id}')", id * 7 % 30, id % 13))
            .collect();
        engine.execute(&format!("INSERT OR REPLACE INTO orders VALUES {}", orders.join(", ")))?;
        engine.execute(&format!("DELETE FROM orders WHERE id % 11 = {round}"))?;
    }
    engine.wait(engine.progress().committed)
}

/// The rows of the views.
fn shown(engine: &Engine) -> Vec<String> {
    let views = ["totals", "latest", "missing"];
    views.iter().flat_map(|view| query(engine, &format!("SELECT * FROM {view}"))).collect()
}

/// How often each thread of this process with such a name has given the processor up.
fn switches(prefix: &str) -> Vec<(String, String)> {
    let tasks = fs::read_dir("/proc/self/task").unwrap();
    let mut found = Vec::new();
    for task in tasks {
        let folder = task.unwrap().path();
        // A thread may end meanwhile.
        let Ok(name) = fs::read_to_string(folder.join("comm")) else { continue };
        let Ok(status) = fs::read_to_string(folder.join("status")) else { continue };
        if name.starts_with(prefix) {
            let switches = status.lines().filter(|line| line.starts_with("voluntary_ctxt"));
            found.push((folder.display().to_string(), switches.collect()));
        }
    }
    found.sort();
    found
}

/// Jobs, and the bytes that are left to merge, of all spines.
fn owed(engine: &Engine) -> Vec<String> {
    query(engine, "SELECT SUM(running_merges), SUM(debt_bytes) FROM alluvium.arrangements")
}

#[test]
fn an_idle_engine_settles() {
    // Threads are told apart by their names.
    if !alone("merges::an_idle_engine_settles") {
        return;
    }
    for merges in [0, 1, 3] {
        for memory in [None, Some(300_000)] {
            let engine = builder(merges).memory(memory).open_in_memory().unwrap();
            fill(&engine, 150).unwrap();
            let before = engine.state().memory_bytes;
            let start = Instant::now();
            while owed(&engine) != ["0 0"] {
                assert!(start.elapsed() < PATIENCE, "{:?}", owed(&engine));
                thread::sleep(Duration::from_millis(5));
            }
            // Snapshots from before are replaced soon after, and workers sleep for good.
            loop {
                let before = switches("alluvium-");
                assert!(before.len() >= 2, "{before:?}");
                thread::sleep(Duration::from_millis(300));
                if switches("alluvium-") == before {
                    break;
                }
                assert!(start.elapsed() < PATIENCE, "workers wake up again and again: {before:?}");
            }
            assert_eq!(owed(&engine), ["0 0"]);
            // Merged batches are gone: all files belong to a spine.
            let held = query(
                &engine,
                "SELECT SUM(disk_bytes), MAX(write_amplification) > 1 FROM alluvium.arrangements",
            );
            let state = engine.state();
            assert_eq!(held, [format!("{} true", state.disk_bytes)], "with {memory:?}");
            // Rows were looked up and deleted.
            let why = "SELECT SUM(seeks) > 0, SUM(merges_for_churn) > 0,
                              SUM(merges) >= SUM(merges_for_churn) + SUM(merges_for_reads)
                       FROM alluvium.arrangements";
            assert_eq!(query(&engine, why), ["true true true"]);
            assert!(state.memory_bytes <= before, "{} after {before}", state.memory_bytes);
        }
    }
}

#[test]
fn answers_do_not_depend_on_who_merges() {
    let mut expected = None;
    for merges in 0..6 {
        for memory in [None, Some(20_000), Some(1 << 20)] {
            let engine = builder(merges).memory(memory).open_in_memory().unwrap();
            fill(&engine, 60).unwrap();
            let shown = shown(&engine);
            assert!(shown.len() > 30);
            assert_eq!(
                *expected.get_or_insert_with(|| shown.clone()),
                shown,
                "{merges}, {memory:?}"
            );
        }
    }
}

#[test]
fn a_merge_that_fails_in_the_background_is_an_error_that_names_the_file() {
    let run = |first: Option<u64>| {
        let storage = Failing::new(MemoryStorage::new());
        if let Some(first) = first {
            storage.fail_from(first);
        }
        let calls = storage.clone();
        let filled = without_hanging(move || {
            // Enough memory for merges not to be completed at once.
            let builder = builder(1).memory(400_000).storage(storage);
            let engine = builder.open_in_memory().unwrap();
            fill(&engine, 200).map(|()| shown(&engine))
        });
        (filled, calls.calls())
    };
    let (expected, calls) = run(None);
    let expected = expected.unwrap();
    assert!(calls > 100, "{calls}");
    let mut failures = 0;
    for part in 1..20 {
        match run(Some(1 + part * calls / 20)).0 {
            Ok(shown) => assert_eq!(shown, expected),
            Err(error) => {
                let error = error.to_string();
                assert!(error.contains("fails on command"), "{error}");
                failures += 1;
            }
        }
    }
    assert!(failures > 5, "{failures}");
}

#[test]
fn an_engine_whose_merges_wait_for_room_can_be_dropped() {
    for merges in [1, 2, 5] {
        let storage = Failing::new(MemoryStorage::new());
        let used = {
            let storage = Failing::new(MemoryStorage::new());
            let builder = builder(merges).memory(400_000).storage(storage.clone());
            fill(&builder.open_in_memory().unwrap(), 200).unwrap();
            storage.used()
        };
        storage.limit(used / 2);
        without_hanging(move || {
            let engine = builder(merges).memory(400_000).storage(storage).open_in_memory().unwrap();
            let (interrupt, to_fill) = (engine.interrupt(), engine.clone());
            let watched = interrupt.clone();
            let filling = thread::spawn(move || watched.watch(|| fill(&to_fill, 200)));
            while engine.waits_for_room().is_none() {
                assert!(!filling.is_finished(), "the disk was not full");
                thread::sleep(Duration::from_millis(1));
            }
            interrupt.request();
            drop(engine);
            assert!(filling.join().unwrap().is_err());
        });
    }
}

#[test]
fn views_are_dropped_in_the_middle_of_their_merges() {
    let engine = builder(7).memory(1 << 20).open_in_memory().unwrap();
    engine.execute("CREATE TABLE t (k BIGINT PRIMARY KEY, v BIGINT)").unwrap();
    for round in 0..30 {
        let rows: Vec<String> =
            (0..2000).map(|row| format!("({}, {round})", row * 31 % 5000)).collect();
        engine.execute(&format!("INSERT OR REPLACE INTO t VALUES {}", rows.join(", "))).unwrap();
        engine
            .execute(&format!(
                "CREATE MATERIALIZED VIEW v{round} AS SELECT v, k FROM t WHERE k % 3 <> {round} % 3"
            ))
            .unwrap();
        if round >= 2 {
            engine.execute(&format!("DROP VIEW v{}", round - 2)).unwrap();
        }
    }
    let kept = engine.query("SELECT COUNT(*) FROM v29 UNION ALL SELECT COUNT(*) FROM t").unwrap();
    let expected = engine
        .query("SELECT COUNT(*) FILTER (WHERE k % 3 <> 2) FROM t UNION ALL SELECT COUNT(*) FROM t");
    assert_eq!(lines(&kept), lines(&expected.unwrap()));
}
