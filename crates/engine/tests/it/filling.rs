//! Views that are filled beside everything else: no client waits for the view of another.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use alluvium::{Engine, Error, Outcome, Result};

use crate::support::{engine_with, query, without_hanging};

/// A view that takes minutes to fill.
pub(crate) const LONG: &str = "CREATE MATERIALIZED VIEW long AS
    SELECT COUNT(*) AS c FROM t a, t b, t c WHERE a.n + b.n + c.n = 7";

/// A view that takes a while.
const SOME: &str = "CREATE MATERIALIZED VIEW some AS
    SELECT a.n % 10 AS k, COUNT(*) AS c FROM t a, t b WHERE a.n + b.n < 900 GROUP BY a.n % 10";

fn engine(workers: usize) -> Engine {
    engine_with(
        workers,
        "CREATE TABLE t (n BIGINT); CREATE TABLE other (n BIGINT PRIMARY KEY);
         CREATE MATERIALIZED VIEW sums AS SELECT n % 3 AS k, SUM(n) AS s FROM other GROUP BY n % 3;
         INSERT INTO t SELECT UNNEST(range(0, 1000))",
    )
}

/// Runs `sql` on a thread of its own, and returns once it waits.
fn begin(engine: &Engine, sql: &'static str) -> thread::JoinHandle<Result<Vec<Outcome>>> {
    let (engine, name) = (engine.clone(), sql.split(' ').nth(3).expect("a name"));
    let creator = engine.clone();
    let handle = thread::spawn(move || creator.execute(sql));
    while !engine.relations().expect("the engine is well").iter().any(|of| of.name == name) {
        thread::yield_now();
    }
    handle
}

#[test]
fn nobody_waits_for_a_view_that_is_filled() {
    for workers in 1..=2 {
        let engine = engine(workers);
        let interrupt = engine.interrupt();
        let watched = interrupt.clone();
        let creator = engine.clone();
        let created = thread::spawn(move || watched.watch(|| creator.execute(LONG)));
        while !engine.relations().unwrap().iter().any(|of| of.name == "long") {
            thread::yield_now();
        }
        let others = engine.clone();
        without_hanging(move || {
            // More epochs than may be in flight.
            for n in 0..200 {
                others.execute(&format!("INSERT INTO other VALUES ({n})")).unwrap();
            }
            assert_eq!(query(&others, "SELECT SUM(s) FROM sums"), ["19900"]);
            others
                .execute("CREATE MATERIALIZED VIEW beside AS SELECT MAX(n) AS m FROM other")
                .unwrap();
            assert_eq!(query(&others, "SELECT m FROM beside"), ["199"]);
            let mut changes = others.subscribe("beside").unwrap();
            assert_eq!(changes.next().unwrap().unwrap().rows.num_rows(), 1);
            others.execute("INSERT INTO other VALUES (1000)").unwrap();
            assert_eq!(changes.next().unwrap().unwrap().rows.num_rows(), 2);
            drop(changes);
            others.execute("CREATE INDEX i ON other (n); DROP INDEX i; DROP VIEW beside").unwrap();
            let view = others.view("other").unwrap();
            assert_eq!(view.get(&[7_i64.into()]).unwrap().num_rows(), 1);
            // All epochs are complete, though one view has not seen them.
            others.wait(others.progress().committed).unwrap();
        });
        interrupt.request();
        assert_eq!(created.join().unwrap().err(), Some(Error::Interrupted));
        let names: Vec<String> =
            engine.relations().unwrap().into_iter().map(|of| of.name).collect();
        assert_eq!(names, ["other", "sums", "t"]);
    }
}

#[test]
fn who_reads_a_view_that_is_filled_waits_and_sees_all() {
    for workers in 1..=3 {
        let engine = engine(workers);
        let created = begin(&engine, SOME);
        let readers = [
            "SELECT SUM(c) FROM some",
            "CREATE MATERIALIZED VIEW above AS SELECT SUM(c) AS c FROM some",
        ]
        .map(|sql| {
            let engine = engine.clone();
            thread::spawn(move || engine.execute(sql))
        });
        for n in 0..100 {
            engine
                .execute(&format!(
                    "INSERT INTO t VALUES ({}); DELETE FROM t WHERE n = {n}",
                    2000 + n
                ))
                .unwrap();
        }
        created.join().unwrap().unwrap();
        for reader in readers {
            reader.join().unwrap().unwrap();
        }
        let expected = query(&engine, "SELECT SUM(1) FROM t a, t b WHERE a.n + b.n < 900");
        assert_eq!(query(&engine, "SELECT SUM(c) FROM some"), expected);
        assert_eq!(query(&engine, "SELECT c FROM above"), expected);
    }
}

#[test]
fn a_read_waits_for_what_it_reads_and_for_no_other_view() {
    for workers in 1..=2 {
        let engine = engine(workers);
        // An epoch of 200 rows takes it many times as long as the table.
        engine
            .execute(
                "CREATE MATERIALIZED VIEW heavy AS SELECT COUNT(*) AS c FROM t a, t b WHERE a.n + b.n = 7;
                 CREATE MATERIALIZED VIEW light AS SELECT MAX(n) AS m FROM t",
            )
            .unwrap();
        let mut early = 0;
        for round in 5..9 {
            let (first, last) = (round * 200, round * 200 + 200);
            engine
                .execute(&format!("INSERT INTO t SELECT UNNEST(range({first}, {last}))"))
                .unwrap();
            let committed = engine.progress().committed;
            assert_eq!(query(&engine, "SELECT COUNT(*) FROM t"), [last.to_string()]);
            assert_eq!(query(&engine, "SELECT m FROM light"), [(last - 1).to_string()]);
            early += usize::from(engine.progress().complete < committed);
            // All relations of one answer are of one epoch.
            let both = query(&engine, "SELECT (SELECT COUNT(*) FROM t), (SELECT c FROM heavy)");
            assert_eq!(both, [format!("{last} 8")]);
            assert!(engine.progress().complete >= committed);
        }
        assert!(early > 0, "reads waited for the heavy view");
    }
}

/// The rows of a table enter the view in portions, and epochs that do not change the table come in between.
#[test]
fn a_view_over_a_large_table_is_filled_while_others_commit() {
    for workers in 1..=2 {
        let engine = engine(workers);
        engine
            .execute(
                "CREATE TABLE large (n BIGINT, text VARCHAR);
                 INSERT INTO large SELECT n, repeat('x', 200) FROM range(0, 100000) AS r (n)",
            )
            .unwrap();
        let is_over = Arc::new(AtomicBool::new(false));
        let (watched, others) = (is_over.clone(), engine.clone());
        let committing = thread::spawn(move || {
            let mut n = 0;
            while !watched.load(Ordering::Relaxed) {
                others.execute(&format!("INSERT INTO other VALUES ({n})")).unwrap();
                n += 1;
            }
        });
        for _ in 0..3 {
            engine
                .execute(
                    "CREATE MATERIALIZED VIEW copy AS
                        SELECT n, COUNT(*) AS c, MAX(text) AS text FROM large GROUP BY n",
                )
                .unwrap();
            let found =
                query(&engine, "SELECT COUNT(*), SUM(n), SUM(c), SUM(LENGTH(text)) FROM copy");
            assert_eq!(found, ["100000 4999950000 100000 20000000"]);
            engine.execute("DROP VIEW copy").unwrap();
        }
        is_over.store(true, Ordering::Relaxed);
        committing.join().unwrap();
    }
}

#[test]
fn a_view_that_is_filled_can_be_dropped() {
    let engine = engine(2);
    let created = begin(&engine, LONG);
    let others = engine.clone();
    without_hanging(move || others.execute("DROP VIEW long").unwrap());
    let error = without_hanging(move || created.join().unwrap()).expect_err("it is gone");
    assert!(error.to_string().contains("dropped while it was filled"), "{error}");
    engine.execute("CREATE MATERIALIZED VIEW long AS SELECT MAX(n) AS m FROM t").unwrap();
    assert_eq!(query(&engine, "SELECT m FROM long"), ["999"]);
}

#[test]
fn create_need_not_wait() {
    let engine = engine(2);
    let sql = LONG.replace(" AS\n", " WITH ('wait' = 'false') AS\n");
    let others = engine.clone();
    without_hanging(move || others.execute(&sql).unwrap());
    let mut session = engine.session();
    session.execute("SET statement_timeout = '100ms'").unwrap();
    assert_eq!(session.execute("SELECT * FROM long").err(), Some(Error::TimedOut));
    assert_eq!(session.execute("SUBSCRIBE long").err(), Some(Error::TimedOut));
    engine.execute("DROP VIEW long").unwrap();
    let error = engine.execute("CREATE VIEW v WITH ('wait' = 'no') AS SELECT 1 AS a").unwrap_err();
    assert!(error.to_string().contains("'true' or 'false'"), "{error}");
}

#[test]
fn the_old_view_answers_until_the_new_one_is_full() {
    let engine = engine(2);
    engine.execute("CREATE MATERIALIZED VIEW long AS SELECT MAX(n) AS c FROM t").unwrap();
    let interrupt = engine.interrupt();
    let (watched, creator) = (interrupt.clone(), engine.clone());
    let replaced = LONG.replace("CREATE", "CREATE OR REPLACE");
    let replacing = thread::spawn(move || watched.watch(|| creator.execute(&replaced)));
    thread::sleep(Duration::from_millis(100));
    engine.execute("INSERT INTO t VALUES (5000)").unwrap();
    assert_eq!(query(&engine, "SELECT c FROM long"), ["5000"]);
    interrupt.request();
    assert_eq!(replacing.join().unwrap().err(), Some(Error::Interrupted));
    engine.execute("INSERT INTO t VALUES (6000)").unwrap();
    assert_eq!(query(&engine, "SELECT c FROM long"), ["6000"]);
    engine
        .execute("CREATE OR REPLACE MATERIALIZED VIEW long AS SELECT MIN(n) AS c FROM t")
        .unwrap();
    assert_eq!(query(&engine, "SELECT c FROM long"), ["0"]);
    // Relations that it reads may be dropped meanwhile.
    let (wait, waits) = mpsc::channel();
    let creator = engine.clone();
    let replaced = LONG.replace("CREATE", "CREATE OR REPLACE").replace("t c", "other c");
    let replacing = thread::spawn(move || {
        wait.send(()).unwrap();
        creator.execute(&replaced)
    });
    waits.recv().unwrap();
    thread::sleep(Duration::from_millis(100));
    engine.execute("DROP VIEW long").unwrap();
    drop(engine);
    drop(replacing);
}

#[test]
fn a_view_that_is_replaced_is_there_at_every_moment() {
    let engine = engine(2);
    engine.execute("CREATE MATERIALIZED VIEW v AS SELECT COUNT(*) AS c FROM t").unwrap();
    let (stop, stops) = mpsc::channel::<()>();
    let reader = engine.clone();
    let reading = thread::spawn(move || {
        let mut reads = 0;
        while stops.try_recv() == Err(mpsc::TryRecvError::Empty) {
            match reader.query("SELECT c FROM v") {
                Ok(rows) => assert_eq!(rows.iter().map(|rows| rows.num_rows()).sum::<usize>(), 1),
                // The query was planned with the old view, and would have read it when that was gone.
                Err(error) => assert!(error.to_string().contains("meanwhile"), "{error}"),
            }
            reads += 1;
        }
        reads
    });
    for n in 0..20 {
        let sql =
            format!("CREATE OR REPLACE MATERIALIZED VIEW v AS SELECT COUNT(*) + {n} AS c FROM t");
        engine.execute(&sql).unwrap();
        assert_eq!(query(&engine, "SELECT c FROM v"), [(1000 + n).to_string()]);
    }
    stop.send(()).unwrap();
    assert!(reading.join().unwrap() > 0);
}

#[test]
fn a_crash_leaves_a_view_to_be_filled_again() {
    let directory = tempfile::tempdir().unwrap();
    let state = format!("file:{}", directory.path().display());
    let open = move || {
        let state = state.clone();
        Engine::builder().workers(2).state(state).open().unwrap()
    };
    let engine = open.clone()();
    engine
        .execute("CREATE TABLE t (n BIGINT); INSERT INTO t SELECT UNNEST(range(0, 1000))")
        .unwrap();
    engine.execute(&LONG.replace(" AS\n", " WITH ('wait' = 'false') AS\n")).unwrap();
    engine.execute(&SOME.replace(" AS\n", " WITH ('wait' = 'false') AS\n")).unwrap();
    // A checkpoint does not wait for it.
    let others = engine.clone();
    without_hanging(move || others.checkpoint().unwrap());
    engine.execute("INSERT INTO t VALUES (1)").unwrap();
    drop(engine);
    let engine = without_hanging(open);
    let expected = query(&engine, "SELECT SUM(1) FROM t a, t b WHERE a.n + b.n < 900");
    assert_eq!(query(&engine, "SELECT SUM(c) FROM some"), expected);
    let names: Vec<String> = engine.relations().unwrap().into_iter().map(|of| of.name).collect();
    assert_eq!(names, ["long", "some", "t"]);
    engine.execute("DROP VIEW long").unwrap();
}
