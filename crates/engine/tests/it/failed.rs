//! A view that fails stops itself and what reads it, and nothing else.

use std::ops::Bound;
use std::sync::mpsc;
use std::thread;

use alluvium::{Engine, Error, RelationInfo};

use crate::support::{PATIENCE, engine_with, lines, query, without_hanging};

/// Views of `t`; `bad` and what reads it fail once a key has more than 6,208 rows, whose fifth power does not fit.
const PROGRAM: &str = "
    CREATE TABLE t (k BIGINT NOT NULL, g BIGINT);
    CREATE TABLE u (k BIGINT PRIMARY KEY, name VARCHAR);
    CREATE MATERIALIZED VIEW good AS SELECT g, COUNT(*) AS n, SUM(k) AS total FROM t GROUP BY g;
    CREATE MATERIALIZED VIEW bad AS SELECT a.k FROM t a JOIN t b ON a.k = b.k JOIN t c ON b.k = c.k
        JOIN t d ON c.k = d.k JOIN t e ON d.k = e.k;
    CREATE MATERIALIZED VIEW reader AS SELECT k, COUNT(*) AS n FROM bad GROUP BY k;
    CREATE VIEW plain AS SELECT k FROM reader WHERE n > 0;
    CREATE MATERIALIZED VIEW named AS SELECT t.k, name, COUNT(*) AS n FROM t JOIN u ON t.k = u.k GROUP BY t.k, name;
    INSERT INTO t VALUES (1, 1), (1, 2), (2, 1);
    INSERT INTO u VALUES (1, 'one'), (7, 'seven')";

/// Fails `bad` and what reads it.
const OVERFLOW: &str = "INSERT INTO t SELECT 7, 3 FROM generate_series(1, 8192)";

fn engine(workers: usize) -> Engine {
    engine_with(workers, PROGRAM)
}

fn relation(engine: &Engine, name: &str) -> RelationInfo {
    let relations = engine.relations().expect("the engine is well");
    relations.into_iter().find(|relation| relation.name == name).expect("the relation is there")
}

/// Expects that the views which have not failed are what queries of the tables say.
fn assert_others_are_right(engine: &Engine) {
    for (view, select) in [
        ("good", "SELECT g, COUNT(*) AS n, SUM(k) AS total FROM t GROUP BY g"),
        ("named", "SELECT t.k, name, COUNT(*) AS n FROM t JOIN u ON t.k = u.k GROUP BY t.k, name"),
    ] {
        let mut expected = query(engine, select);
        expected.sort();
        let mut shown = query(engine, &format!("SELECT * FROM {view}"));
        shown.sort();
        assert_eq!(shown, expected, "{view}");
    }
}

fn assert_failed<R: std::fmt::Debug>(result: Result<R, Error>, of: &str, text: &str) {
    match result {
        Err(Error::Failed { view, reason }) => {
            assert_eq!(view, of);
            assert!(reason.contains(text), "{reason}");
        }
        other => panic!("\"{of}\" should have failed, but: {other:?}"),
    }
}

#[test]
fn others_go_on_while_a_view_and_what_reads_it_fail() {
    for workers in 1..=3 {
        without_hanging(move || {
            let engine = engine(workers);
            let reader = engine.view("reader").expect("it is there");
            engine.execute(OVERFLOW).expect("the commit does not wait for views");
            for round in 0..30 {
                let sql = format!(
                    "INSERT INTO t VALUES ({round}, {}); DELETE FROM t WHERE k = {}",
                    round % 5,
                    round - 3
                );
                engine.execute(&sql).expect("commits go on");
                assert_others_are_right(&engine);
            }
            assert_failed(engine.query("SELECT * FROM bad"), "bad", "2^63");
            let rows = reader.range(Bound::Unbounded, Bound::Unbounded).map(drop);
            assert_failed(rows, "reader", "it reads \"bad\"");
            assert_failed(engine.query("SELECT n FROM reader"), "reader", "it reads \"bad\"");
            assert_failed(engine.subscribe("reader").map(drop), "reader", "it reads \"bad\"");
            assert_failed(engine.query("SELECT * FROM plain"), "reader", "it reads \"bad\"");
            let error = engine.query("SELECT * FROM bad").expect_err("it has failed").to_string();
            assert!(
                error.ends_with("DROP it, or fill it again with ALTER VIEW bad RESUME"),
                "{error}"
            );
            for (name, has_failed) in
                [("t", false), ("good", false), ("bad", true), ("reader", true), ("plain", true)]
            {
                assert_eq!(relation(&engine, name).failed.is_some(), has_failed, "{name}");
            }
            assert_eq!(query(&engine, "SELECT COUNT(*) FROM alluvium.errors"), ["0"]);
            drop(engine);
        });
    }
}

#[test]
fn subscriptions_to_what_fails_end_with_an_error_and_others_go_on() {
    for workers in 1..=3 {
        let engine = engine(workers);
        let mut subscriptions = ["bad", "reader", "plain", "good"].map(|view| {
            let mut subscription = engine.subscribe(view).expect("the view exists");
            subscription.next().expect("a snapshot").expect("the engine is well");
            subscription
        });
        let (send, ended) = mpsc::channel();
        let [bad, reader, plain, good] = &mut subscriptions;
        thread::scope(|scope| {
            for (name, subscription) in [("bad", bad), ("reader", reader), ("plain", plain)] {
                let send = send.clone();
                scope.spawn(move || {
                    send.send((name, subscription.next().map(|next| next.map(drop))))
                });
            }
            engine.execute(OVERFLOW).expect("the commit does not wait for views");
            for _ in 0..3 {
                let (name, next) = ended.recv_timeout(PATIENCE).expect("all of them end");
                let error = next.expect("an error is an item").expect_err(name).to_string();
                assert!(error.contains("has failed"), "{error}");
            }
        });
        let change = good.next().expect("it goes on").expect("it has not failed");
        assert_eq!(change.rows.num_rows(), 1);
        assert!(subscriptions[0].next().is_none(), "an error is the last item");
        // Nobody waits for what has failed.
        engine.wait(engine.progress().committed).expect("the engine is well");
    }
}

#[test]
fn a_failed_view_is_filled_again_or_dropped() {
    for workers in 1..=3 {
        without_hanging(move || {
            let engine = engine(workers);
            engine.execute("CREATE INDEX by_k ON bad (k)").expect("it keeps rows");
            engine.execute(OVERFLOW).expect("the commit does not wait for views");
            assert_failed(engine.query("SELECT * FROM bad WHERE k = 1"), "bad", "2^63");
            let error = engine.execute("ALTER VIEW reader RESUME").expect_err("bad has failed");
            assert!(error.to_string().contains("ALTER VIEW bad RESUME first"), "{error}");
            let error = engine.execute("ALTER VIEW bad RESUME").expect_err("it fails again");
            assert!(error.to_string().contains("\"bad\" cannot be filled"), "{error}");
            assert_failed(engine.query("SELECT * FROM bad"), "bad", "2^63");
            let error = engine.execute("CREATE MATERIALIZED VIEW more AS SELECT k FROM bad");
            assert!(error.expect_err("bad has failed").to_string().contains("has failed"));
            engine.execute("DELETE FROM t WHERE k = 7").expect("commits go on");
            engine
                .execute("ALTER MATERIALIZED VIEW bad RESUME; ALTER VIEW reader RESUME; ALTER VIEW plain RESUME")
                .expect("they can be filled");
            let error = engine.execute("ALTER VIEW bad RESUME").expect_err("it runs");
            assert!(error.to_string().contains("has not failed"), "{error}");
            engine.execute("INSERT INTO t VALUES (2, 9)").expect("commits go on");
            let mut rows = query(&engine, "SELECT * FROM reader");
            rows.sort();
            assert_eq!(rows, ["1 32", "2 32"]);
            assert_eq!(query(&engine, "SELECT COUNT(*) FROM bad WHERE k = 2"), ["32"]);
            assert_eq!(relation(&engine, "bad").failed, None);
            assert_others_are_right(&engine);
            engine.execute(OVERFLOW).expect("the commit does not wait for views");
            assert_failed(engine.query("SELECT * FROM reader"), "reader", "it reads \"bad\"");
            engine.execute("DROP VIEW bad CASCADE").expect("a failed view can be dropped");
            engine
                .execute("CREATE MATERIALIZED VIEW bad AS SELECT DISTINCT k FROM t")
                .expect("the name is free");
            assert_eq!(query(&engine, "SELECT COUNT(*) FROM bad"), ["3"]);
            assert_others_are_right(&engine);
            drop(engine);
        });
    }
}

#[test]
fn a_view_that_fails_while_it_is_filled_is_not_there() {
    for workers in 1..=3 {
        let engine = engine_with(workers, "CREATE TABLE t (k BIGINT NOT NULL, g BIGINT)");
        engine.execute(OVERFLOW).expect("there are no views");
        let view = "CREATE MATERIALIZED VIEW bad AS SELECT a.k FROM t a JOIN t b ON a.k = b.k
            JOIN t c ON b.k = c.k JOIN t d ON c.k = d.k JOIN t e ON d.k = e.k";
        for _ in 0..3 {
            let error = engine.execute(view).expect_err("it fails").to_string();
            assert!(error.contains("\"bad\" cannot be filled"), "{error}");
            assert!(
                !engine.relations().expect("the engine is well").iter().any(|it| it.name == "bad")
            );
        }
        engine.execute("DELETE FROM t").expect("commits go on");
        engine.execute(view).expect("it fits now");
        assert_eq!(lines(&engine.query("SELECT * FROM bad").expect("it is there")), [""; 0]);
    }
}

#[test]
fn a_view_whose_replacement_fails_stays() {
    for workers in 1..=3 {
        without_hanging(move || {
            let engine = engine_with(
                workers,
                "CREATE TABLE t (k BIGINT NOT NULL, g BIGINT);
                 CREATE MATERIALIZED VIEW v AS SELECT COUNT(*) AS n FROM t",
            );
            engine.execute(OVERFLOW).expect("the view counts rows");
            let replace = "CREATE OR REPLACE MATERIALIZED VIEW v AS SELECT COUNT(*) AS n FROM t a
                JOIN t b ON a.k = b.k JOIN t c ON b.k = c.k JOIN t d ON c.k = d.k JOIN t e ON d.k = e.k";
            for _ in 0..3 {
                let error = engine.execute(replace).expect_err("it fails").to_string();
                assert!(error.contains("\"v\" cannot be filled"), "{error}");
                assert_eq!(query(&engine, "SELECT n FROM v"), ["8192"]);
                assert_eq!(relation(&engine, "v").failed, None);
            }
            engine
                .execute("DELETE FROM t; INSERT INTO t VALUES (1, 1), (1, 2)")
                .expect("it goes on");
            assert_eq!(query(&engine, "SELECT n FROM v"), ["2"]);
            engine.execute(replace).expect("it fits now");
            assert_eq!(query(&engine, "SELECT n FROM v"), ["32"]);
            drop(engine);
        });
    }
}

/// Many views of the same tables fail and are resumed one after the other, while others read and commit.
#[test]
fn clients_are_not_disturbed_by_views_that_fail_again_and_again() {
    for workers in 1..=3 {
        without_hanging(move || {
            let engine = engine(workers);
            let (stop, stopped) = mpsc::channel::<()>();
            let client = engine.clone();
            let reads = thread::spawn(move || {
                let mut reads = 0;
                while stopped.try_recv().is_err() {
                    client.execute("INSERT INTO t VALUES (1000, 1000)").expect("commits go on");
                    let shown = query(&client, "SELECT n FROM good WHERE g = 1000");
                    reads += 1;
                    assert_eq!(shown, [reads.to_string()]);
                }
                reads
            });
            for _ in 0..5 {
                engine.execute(OVERFLOW).expect("the commit does not wait for views");
                assert_failed(engine.query("SELECT * FROM bad"), "bad", "2^63");
                engine.execute("DELETE FROM t WHERE k = 7").expect("commits go on");
                engine
                    .execute(
                        "ALTER VIEW bad RESUME; ALTER VIEW reader RESUME; ALTER VIEW plain RESUME",
                    )
                    .expect("they can be filled");
                assert_eq!(query(&engine, "SELECT n FROM reader WHERE k = 1"), ["32"]);
            }
            stop.send(()).expect("the client runs");
            assert!(reads.join().expect("no panic") > 0);
            assert_others_are_right(&engine);
            drop(engine);
        });
    }
}

/// Whether the journal or a checkpoint says so: what has failed is no obstacle to the next start, nor is its index.
#[test]
fn a_failed_view_does_not_stop_the_next_start() {
    for (before, after) in [(1, 1), (2, 3)] {
        for checkpoint in [false, true] {
            without_hanging(move || {
                let directory = tempfile::tempdir().expect("there is room");
                let state = format!("file:{}", directory.path().display());
                let open = |workers: usize| {
                    Engine::builder()
                        .workers(workers)
                        .state(state.clone())
                        .open()
                        .expect("it starts")
                };
                let engine = open(before);
                engine.execute(PROGRAM).expect("the statements are right");
                engine.execute("CREATE INDEX by_k ON bad (k)").expect("it keeps rows");
                engine.execute(OVERFLOW).expect("the commit does not wait for views");
                assert_failed(engine.query("SELECT * FROM bad"), "bad", "2^63");
                if checkpoint {
                    engine.checkpoint().expect("what has failed is not part of it");
                }
                engine.execute("INSERT INTO t VALUES (1, 5)").expect("commits go on");
                drop(engine);
                let engine = open(after);
                assert_failed(engine.query("SELECT * FROM bad"), "bad", "2^63");
                assert_failed(engine.query("SELECT * FROM reader"), "reader", "it reads \"bad\"");
                assert_others_are_right(&engine);
                engine
                    .execute("DROP INDEX by_k; DROP VIEW bad CASCADE")
                    .expect("they can be dropped");
                drop(engine);
                let engine = open(before);
                assert_eq!(engine.relations().expect("the engine is well").len(), 4);
                assert_others_are_right(&engine);
                drop(engine);
            });
        }
    }
}
