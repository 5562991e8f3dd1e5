//! A panic inside a dataflow is an error on every handle.

use std::sync::mpsc;
use std::time::Duration;

use alluvium_dataflow::fault::{self, Fault};

use crate::{Engine, Error, Result};

fn assert_poisoned<R>(result: Result<R>) {
    match result.map(drop) {
        Err(Error::Poisoned { message }) => {
            assert!(message.contains("a fault was injected"), "{message}")
        }
        other => panic!("the engine should be poisoned, but: {other:?}"),
    }
}

/// Makes every worker panic by `arm`, with waiters on everything that waits.
fn panic_with(workers: usize, arm: fn()) {
    let engine = Engine::builder().workers(workers).open_in_memory().expect("an engine starts");
    engine
        .execute(
            "CREATE TABLE t (id BIGINT PRIMARY KEY, v BIGINT);
             CREATE MATERIALIZED VIEW m AS SELECT v % 7 AS k, SUM(v) AS total FROM t GROUP BY v % 7",
        )
        .expect("the statements are right");
    let (failed, failures) = mpsc::channel();
    let mut subscription = engine.subscribe("m").expect("the view exists");
    subscription.next().expect("a snapshot").expect("the engine is well");
    let (waiting, waited) = (engine.clone(), failed.clone());
    std::thread::spawn(move || waited.send(waiting.wait(u64::MAX)));
    std::thread::spawn(move || {
        failed.send(subscription.next().expect("an error is an item").map(drop))
    });
    engine.instance.definitions.run_on_workers(arm);
    let rows: Vec<String> = (0..100).map(|row| format!("({row}, {row})")).collect();
    // The commit may still succeed: it does not wait for the dataflows.
    let _ = engine.execute(&format!("INSERT INTO t VALUES {}", rows.join(", ")));
    for _ in 0..2 {
        assert_poisoned(
            failures.recv_timeout(Duration::from_secs(120)).expect("nobody waits for ever"),
        );
    }
    assert_poisoned(engine.query("SELECT * FROM m"));
    assert_poisoned(engine.begin());
    assert_poisoned(engine.subscribe("m"));
    assert_poisoned(engine.execute("DROP VIEW m"));
}

#[test]
fn a_panic_in_a_map_poisons_the_engine() {
    (1..=3).for_each(|workers| panic_with(workers, || fault::arm(Some(Fault::PanicInMap))));
}

#[test]
fn a_panic_in_a_tactic_poisons_the_engine() {
    (1..=3).for_each(|workers| panic_with(workers, || fault::arm(Some(Fault::PanicInTactic))));
}

#[test]
fn a_panic_where_changes_leave_poisons_the_engine() {
    (1..=3).for_each(|workers| panic_with(workers, || fault::arm(Some(Fault::PanicInSink))));
}
