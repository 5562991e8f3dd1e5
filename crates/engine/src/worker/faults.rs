//! A panic inside of a view is an error of that view; inside of a table it is one on every handle.

use std::sync::mpsc;
use std::time::Duration;

use alluvium_dataflow::fault::{self, Fault};

use super::failures::{Failed, Purpose};
use crate::{Engine, Error, Result};

const INJECTED: &str = "a fault was injected";
const PATIENCE: Duration = Duration::from_secs(120);

fn engine(workers: usize) -> Engine {
    let engine = Engine::builder().workers(workers).open_in_memory().expect("an engine starts");
    engine
        .execute(
            "CREATE TABLE t (id BIGINT NOT NULL, v BIGINT) WITH ('materialized' = 'false');
             CREATE TABLE u (id BIGINT PRIMARY KEY, v BIGINT);
             CREATE MATERIALIZED VIEW m AS SELECT v % 7 AS k, SUM(v) AS total FROM t GROUP BY v % 7;
             CREATE MATERIALIZED VIEW mm AS SELECT total FROM m WHERE k = 3;
             CREATE MATERIALIZED VIEW n AS SELECT v % 7 AS k, SUM(v) AS total FROM u GROUP BY v % 7",
        )
        .expect("the statements are right");
    engine
}

fn insert(engine: &Engine, table: &str) -> Result<()> {
    let rows: Vec<String> = (0..100).map(|row| format!("({row}, {row})")).collect();
    engine.execute(&format!("INSERT INTO {table} VALUES {}", rows.join(", "))).map(drop)
}

fn count(engine: &Engine, relation: &str) -> Result<usize> {
    let batches = engine.query(&format!("SELECT * FROM {relation}"))?;
    Ok(batches.iter().map(|batch| batch.num_rows()).sum())
}

/// The error of a subscription to `m` when every worker has a fault while rows enter `t`.
fn told_with(engine: &Engine, arm: fn()) -> Error {
    let (told, errors) = mpsc::channel();
    let mut subscription = engine.subscribe("m").expect("the view exists");
    subscription.next().expect("a snapshot").expect("the engine is well");
    std::thread::spawn(move || told.send(subscription.next().expect("an error is an item")));
    engine.instance.definitions.run_on_workers(arm);
    insert(engine, "t").expect("a commit does not wait for the views");
    let told = errors.recv_timeout(PATIENCE).expect("nobody waits for ever");
    engine.wait(engine.progress().committed).expect("nobody waits for what has failed");
    engine.instance.definitions.run_on_workers(|| fault::arm(None));
    told.expect_err("there is nothing more")
}

/// All but `m` and what reads it is as it should be.
fn assert_others_go_on(engine: &Engine) {
    insert(engine, "u").expect("the engine is well");
    assert_eq!(count(engine, "n").expect("it goes on"), 7);
    engine
        .execute(
            "CREATE MATERIALIZED VIEW o AS SELECT COUNT(*) AS n FROM u; DELETE FROM u WHERE id > 2",
        )
        .expect("the engine is well");
    assert_eq!(count(engine, "n").expect("it goes on"), 3);
    assert_eq!(count(engine, "o").expect("it goes on"), 1);
}

fn fails_with(workers: usize, arm: fn()) {
    let engine = engine(workers);
    let told = told_with(&engine, arm);
    assert!(told.to_string().contains(INJECTED), "{told}");
    for view in ["m", "mm"] {
        match count(&engine, view) {
            Err(Error::Failed { view: of, reason }) => {
                assert_eq!(of, view);
                assert!(reason.contains(INJECTED), "{reason}");
            }
            other => panic!("the view should have failed, but: {other:?}"),
        }
    }
    assert_others_go_on(&engine);
    engine.execute("DROP VIEW m CASCADE").expect("it can be dropped");
}

#[test]
fn a_panic_in_a_map_is_one_of_its_view() {
    (1..=3).for_each(|workers| fails_with(workers, || fault::arm(Some(Fault::PanicInMap))));
}

#[test]
fn a_panic_in_a_tactic_is_one_of_its_view() {
    (1..=3).for_each(|workers| fails_with(workers, || fault::arm(Some(Fault::PanicInTactic))));
}

#[test]
fn a_panic_where_changes_leave_is_one_of_the_subscription() {
    for workers in 1..=3 {
        let engine = engine(workers);
        let told = told_with(&engine, || fault::arm(Some(Fault::PanicInSink)));
        assert!(told.to_string().contains(INJECTED), "{told}");
        assert_eq!(count(&engine, "m").expect("the view goes on"), 7);
        assert_others_go_on(&engine);
    }
}

#[test]
fn a_panic_in_a_table_poisons_the_engine() {
    for workers in 1..=3 {
        let engine = engine(workers);
        let (told, errors) = mpsc::channel();
        let waiting = engine.clone();
        std::thread::spawn(move || told.send(waiting.wait(u64::MAX)));
        engine.instance.definitions.run_on_workers(|| fault::arm(Some(Fault::PanicInTactic)));
        // The commit may still succeed: it does not wait for the dataflows.
        let _ = insert(&engine, "u");
        let told = errors.recv_timeout(PATIENCE).expect("nobody waits for ever");
        for result in [told, engine.begin().map(drop), engine.subscribe("n").map(drop)] {
            match result {
                Err(Error::Poisoned { message }) => {
                    assert!(message.contains(INJECTED), "{message}")
                }
                other => panic!("the engine should be poisoned, but: {other:?}"),
            }
        }
    }
}

/// Its relation stays, and what reads that by another way.
#[test]
fn an_index_that_fails_alone_is_read_by_nobody_until_it_is_made_again() {
    let directory = tempfile::tempdir().expect("there is room");
    let open = |workers: usize| {
        let state = format!("file:{}", directory.path().display());
        Engine::builder().workers(workers).state(state).open().expect("it starts")
    };
    let shown = |engine: &Engine, sql: &str| {
        let batches = engine.query(sql).expect("the relation has not failed");
        batches.iter().map(|batch| batch.num_rows()).sum::<usize>()
    };
    let by_v = "SELECT id FROM u WHERE v = 3";
    let is_failed = "SELECT 1 FROM alluvium.relations WHERE name = 'by_v' AND state = 'failed'";
    let fail = |engine: &Engine| {
        let entry = engine.instance.definitions.catalog.get("u").expect("it is there");
        let id = entry.indexes.first().and_then(|index| index.id).expect("the index is there");
        let failed = Failed { purpose: Purpose::Index, reason: "a disk is broken".into() };
        engine.instance.reader.sequencer.failures().add([(id, failed)]);
        assert_eq!(shown(engine, is_failed), 1);
    };
    let mut engine = open(2);
    engine
        .execute("CREATE TABLE u (id BIGINT PRIMARY KEY, v BIGINT); CREATE INDEX by_v ON u (v)")
        .expect("the statements are right");
    for (round, checkpoint) in [(1, false), (2, true)] {
        fail(&engine);
        engine.execute(&format!("INSERT INTO u VALUES ({round}, 3)")).expect("commits go on");
        assert_eq!(shown(&engine, by_v), round);
        if checkpoint {
            engine.checkpoint().expect("what has failed is not part of it");
        }
        drop(engine);
        engine = open(3 - round);
        assert_eq!((shown(&engine, is_failed), shown(&engine, by_v)), (0, round));
    }
    fail(&engine);
    engine.execute("DROP INDEX by_v; CREATE INDEX by_v ON u (v)").expect("it is made again");
    assert_eq!((shown(&engine, is_failed), shown(&engine, by_v)), (0, 2));
}
