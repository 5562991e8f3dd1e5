//! An interrupt ends calls before they are done, and leaves no effects.

use std::fmt::Debug;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use alluvium::{Conflict, Engine, Error, Interrupt, Result};

use crate::support::{engine_with, query, settled, without_hanging};

/// A query that takes minutes.
const LONG: &str = "SELECT SUM(c.id) FROM t AS a, t AS b, t AS c";

/// Pairs of which none matches.
const LOOPS: &str = "SELECT COUNT(*) FROM range(1000000) AS a (x), range(1000000) AS b (x)
     WHERE a.x * 1000000 + b.x < 0";
const ONE_KEY: &str = "SELECT COUNT(*) FROM range(1000000) AS a (x), range(1000000) AS b (x)
     WHERE a.x - a.x = b.x - b.x AND a.x * 1000000 + b.x < 0";

/// An engine with a table of 5,000 rows.
fn engine() -> Engine {
    engine_with(2, "CREATE TABLE t (id BIGINT); INSERT INTO t SELECT UNNEST(range(0, 5000))")
}

fn assert_interrupted<R: Debug>(result: Result<R>) {
    assert!(matches!(result, Err(Error::Interrupted)), "{result:?}");
}

/// Runs `call` and interrupts it after a while, when it waits or works.
fn interrupt<R: Debug + Send + 'static>(
    engine: &Engine,
    call: impl FnOnce(&Engine) -> Result<R> + Send + 'static,
) {
    let (engine, interrupt) = (engine.clone(), engine.interrupt());
    let watched = interrupt.clone();
    let (started, starts) = mpsc::channel();
    let caller = thread::spawn(move || {
        started.send(()).expect("the test waits");
        watched.watch(|| call(&engine))
    });
    starts.recv().expect("the thread starts");
    thread::sleep(Duration::from_millis(200));
    interrupt.request();
    assert_interrupted(without_hanging(move || caller.join().expect("the call returns")));
}

#[test]
fn calls_that_wait_are_interrupted() {
    let engine = engine();
    interrupt(&engine, |engine| engine.wait(1_000_000));
    let mut session = engine.session();
    session.execute("BEGIN; DELETE FROM t WHERE id = 7").expect("nobody else writes");
    interrupt(&engine, |engine| engine.execute("DELETE FROM t WHERE id = 7"));
    session.execute("COMMIT").expect("it holds the lock");
    assert_eq!(query(&engine, "SELECT COUNT(*) FROM t"), ["4999"]);
}

#[test]
fn queries_are_interrupted_and_what_they_would_have_written_is_not_there() {
    let engine = engine();
    interrupt(&engine, |engine| engine.query(LONG));
    // Joins that find nothing.
    interrupt(&engine, |engine| engine.query(LOOPS));
    interrupt(&engine, |engine| engine.query(ONE_KEY));
    interrupt(&engine, |engine| engine.execute(&format!("INSERT INTO t {LONG}")));
    interrupt(&engine, |engine| {
        engine.execute(&format!("BEGIN; DELETE FROM t WHERE id < 10; INSERT INTO t {LONG}; COMMIT"))
    });
    assert_eq!(query(&engine, "SELECT COUNT(*) FROM t"), ["5000"]);
}

/// Its dataflow is removed while it is filled.
#[test]
fn a_view_whose_creation_is_interrupted_does_not_exist() {
    let engine = engine();
    for kind in ["VIEW", "MATERIALIZED VIEW"] {
        let sql = format!(
            "CREATE {kind} v AS SELECT a.id + b.id AS s, COUNT(*) AS n FROM t AS a, t AS b GROUP BY 1"
        );
        interrupt(&engine, move |engine| engine.execute(&sql));
        assert!(engine.query("SELECT * FROM v").is_err());
    }
    let create = "CREATE MATERIALIZED VIEW v AS SELECT COUNT(*) AS n FROM t";
    without_hanging(move || {
        engine.execute(create).expect("the name is free");
        engine.execute("INSERT INTO t VALUES (1)").expect("the table is there");
        assert_eq!(settled(&engine, "SELECT * FROM v"), ["5001"]);
    });
}

/// The view that it replaces could not come back: its readers would find neither.
#[test]
fn a_view_is_replaced_though_that_is_interrupted() {
    let engine = engine();
    engine.execute("CREATE MATERIALIZED VIEW v AS SELECT id FROM t").expect("a view");
    let (replacing, request) = (engine.clone(), engine.interrupt());
    let watched = request.clone();
    let caller = thread::spawn(move || {
        watched.watch(|| {
            replacing.execute(
                "CREATE OR REPLACE MATERIALIZED VIEW v AS
                 SELECT MAX(a.id + b.id) AS s FROM t AS a, t AS b WHERE a.id < 1500 AND b.id < 1500",
            )
        })
    });
    thread::sleep(Duration::from_millis(100));
    request.request();
    let replaced = without_hanging(move || caller.join().expect("the call returns"));
    // It may also not have begun.
    let (view, rows) = match replaced {
        Ok(_) => ("SELECT s FROM v", "2998"),
        Err(_) => ("SELECT MAX(id) FROM v", "4999"),
    };
    without_hanging(move || {
        assert_eq!(settled(&engine, view), [rows]);
        engine
            .execute("CREATE MATERIALIZED VIEW w AS SELECT COUNT(*) AS n FROM v")
            .expect("v is there");
        engine.subscribe("v").expect("v is there");
    });
}

#[test]
fn a_request_lasts_until_it_is_cleared_and_only_for_those_who_watch_it() {
    let engine = engine();
    let interrupt = engine.interrupt();
    interrupt.request();
    assert_eq!(query(&engine, "SELECT COUNT(*) FROM t"), ["5000"]);
    interrupt.watch(|| {
        assert_interrupted(engine.query("SELECT COUNT(*) FROM t"));
        assert_interrupted(engine.execute("INSERT INTO t VALUES (1)"));
        interrupt.clear();
        assert_eq!(query(&engine, "SELECT COUNT(*) FROM t"), ["5000"]);
    });
}

#[test]
fn recursions_that_do_not_end_are_interrupted() {
    let engine = engine();
    interrupt(&engine, |engine| {
        engine.query(
            "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT 1 FROM r) SELECT COUNT(*) FROM r",
        )
    });
    interrupt(&engine, |engine| {
        engine.query(
            "WITH RECURSIVE r(n) AS (SELECT 1 UNION SELECT n + 1 FROM r) SELECT COUNT(*) FROM r",
        )
    });
}

#[test]
fn statements_end_at_their_timeouts_wherever_they_wait_or_work() {
    let engine = engine();
    let mut session = engine.session();
    session.execute("SET statement_timeout = '200ms'").expect("it can be set");
    let mut timed_out = |sql: &str| match session.execute(sql).map(drop) {
        Err(Error::TimedOut) => {}
        other => panic!("{sql}: {other:?}"),
    };
    timed_out(LONG);
    timed_out(LOOPS);
    timed_out(
        "CREATE MATERIALIZED VIEW v AS SELECT COUNT(*) AS c FROM t a, t b, t c WHERE a.id + b.id + c.id = 7",
    );
    let mut other = engine.session();
    other.execute("BEGIN; DELETE FROM t WHERE id = 7").expect("nobody else writes");
    timed_out("DELETE FROM t WHERE id = 7");
    other.execute("ROLLBACK").expect("it is open");
    assert_eq!(engine.relations().expect("the engine is well").len(), 1, "the view left nothing");
    session.execute("RESET ALL; INSERT INTO t VALUES (1)").expect("there is time");
    assert_eq!(query(&engine, "SELECT COUNT(*) FROM t"), ["5001"]);
}

#[test]
fn a_statement_waits_for_other_writers_no_longer_than_lock_timeout() {
    let engine = engine();
    let mut session = engine.session();
    session.execute("SET lock_timeout = '100ms'").expect("it can be set");
    let mut other = engine.session();
    other.execute("BEGIN; DELETE FROM t WHERE id = 7").expect("nobody else writes");
    let error = session.execute("DELETE FROM t WHERE id = 7").expect_err("somebody else does");
    assert!(matches!(error, Error::Conflict { kind: Conflict::Locked, .. }), "{error:?}");
    assert!(error.to_string().contains("lock_timeout"), "{error}");
    other.execute("COMMIT").expect("it holds the lock");
    session.execute("DELETE FROM t WHERE id = 7").expect("nobody else writes");
}

#[test]
fn a_condition_is_looked_at_while_calls_wait_and_work() {
    let engine = engine();
    let calls: [fn(&Engine) -> Result<()>; 2] =
        [|engine| engine.wait(1_000), |engine| engine.query(LOOPS).map(drop)];
    for call in calls {
        let begun = Instant::now();
        let is_over = move || begun.elapsed() > Duration::from_millis(100);
        let interrupt = Interrupt::polling(Duration::from_millis(10), is_over);
        let (engine, watched) = (engine.clone(), interrupt.clone());
        assert_interrupted(without_hanging(move || watched.watch(|| call(&engine))));
        assert!(interrupt.is_requested());
        interrupt.clear();
    }
    // One that never comes true ends nothing.
    let never = Interrupt::polling(Duration::from_millis(1), || false);
    assert_eq!(never.watch(|| query(&engine, "SELECT COUNT(*) FROM t")), ["5000"]);
    assert!(!never.is_requested());
}
