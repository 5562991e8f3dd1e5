//! EXPLAIN ANALYZE of views.

use alluvium::{Engine, Outcome, SubscribeOptions};

use crate::support::engine_with;

fn analyzed(engine: &Engine, sql: &str) -> String {
    match engine.execute(sql).expect("it is right").remove(0) {
        Outcome::Text(text) => text,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_view_is_watched_for_a_time() {
    let sql =
        "CREATE TABLE t (k BIGINT PRIMARY KEY, v BIGINT); INSERT INTO t VALUES (1, 2), (3, 4);
               CREATE MATERIALIZED VIEW slow AS SELECT v, SUM(k) AS k FROM t GROUP BY v";
    let engine = engine_with(2, sql);
    let text = analyzed(&engine, "EXPLAIN ANALYZE slow FOR INTERVAL '20' MILLISECOND");
    assert!(text.starts_with("\"slow\" took 0.000 s in 0.020 s on 2 workers\n"), "{text}");
    assert!(!text.contains("<- 1"), "{text}");
    engine.execute("CREATE VIEW plain AS SELECT k FROM t").unwrap();
    for (sql, expected) in [
        ("EXPLAIN ANALYZE plain", "\"plain\" is not a materialized view"),
        ("EXPLAIN ANALYZE t", "\"t\" is a table, not a view"),
        ("EXPLAIN ANALYZE slow FOR 10", "such as INTERVAL '10' SECOND"),
        ("EXPLAIN ANALYZE slow FOR INTERVAL '-1' SECOND", "such as INTERVAL '10' SECOND"),
        ("EXPLAIN ANALYZE", "takes a query, or the name of a materialized view"),
        ("EXPLAIN ANALYZE INSERT INTO t VALUES (1, 1)", "it would change rows"),
    ] {
        let error = engine.execute(sql).expect_err(sql).to_string();
        assert!(error.contains(expected), "{sql}: {error}");
    }
    let mut session = engine.session();
    session.execute("SET statement_timeout = 50").unwrap();
    let error = session.execute("EXPLAIN ANALYZE slow FOR INTERVAL '1' HOUR").expect_err("it ends");
    assert_eq!(error.sqlstate().as_str(), "57014");
}

#[test]
fn a_subscriber_that_commits_wait_for_is_told_of() {
    let sql = "CREATE TABLE t (k BIGINT); CREATE MATERIALIZED VIEW v AS SELECT k FROM t";
    let engine = engine_with(1, sql);
    let mut changes = engine.subscribe_with("t", SubscribeOptions::new().epochs(1)).unwrap();
    let told = || analyzed(&engine, "EXPLAIN ANALYZE v").contains("commits wait for a subscriber");
    assert!(!told());
    engine.execute("INSERT INTO t VALUES (1)").unwrap();
    engine.execute("INSERT INTO t VALUES (2)").unwrap();
    while !told() {
        std::thread::yield_now();
    }
    for _ in 0..3 {
        changes.next().unwrap().unwrap();
    }
    assert!(!told());
}
