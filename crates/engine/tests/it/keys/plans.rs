//! Seeks and orders in EXPLAIN.

use alluvium::{Engine, Outcome};

use crate::support::{engine_with, query};

const PROGRAM: &str = "
    CREATE TABLE t (id INTEGER PRIMARY KEY, name VARCHAR, v BIGINT);
    CREATE TABLE pairs (a BIGINT, b VARCHAR, v BIGINT, PRIMARY KEY (a, b));
    CREATE TABLE heap (id INTEGER, v BIGINT);
    CREATE MATERIALIZED VIEW sums AS SELECT SUM(v) AS total, name FROM t GROUP BY name;
    CREATE MATERIALIZED VIEW doubled AS SELECT v * 2 AS v2, id FROM t WHERE v > 1;
    INSERT INTO t VALUES (1, 'a', 10), (2, 'b', 20), (3, 'a', 30), (4, NULL, 40);
    INSERT INTO pairs VALUES (1, 'x', 1), (1, 'y', 2), (2, 'x', 3), (3, 'z', 4);
    INSERT INTO heap VALUES (1, 1)";

fn plan(engine: &Engine, sql: &str) -> String {
    match engine.session().execute(&format!("EXPLAIN {sql}")).map(|mut all| all.remove(0)) {
        Ok(Outcome::Text(plan)) => plan,
        other => panic!("{sql}: {other:?}"),
    }
}

#[test]
fn conditions_on_the_first_columns_of_a_key_seek() {
    let engine = engine_with(2, PROGRAM);
    for (sql, seek) in [
        ("SELECT * FROM t WHERE id = 1", "seek=[id], ranges=1"),
        ("SELECT v FROM t WHERE 1 = id AND v > 3", "seek=[id], ranges=1"),
        ("SELECT v FROM t WHERE v > 3 AND id IN (1, 5, 7)", "seek=[id], ranges=3"),
        ("SELECT v FROM t WHERE id IN (1, 3, 5, 7, 9, 11)", "seek=[id], ranges=6"),
        ("SELECT v FROM t WHERE id = 1 OR id = 3 OR 5 = id", "seek=[id], ranges=3"),
        ("SELECT v FROM t WHERE id BETWEEN 1 AND 2", "seek=[id], ranges=1"),
        ("SELECT v FROM t WHERE id > 1", "seek=[id], ranges=1"),
        ("SELECT v FROM t WHERE id = CAST(1 AS BIGINT)", "seek=[id], ranges=1"),
        ("SELECT v FROM pairs WHERE b = 'x' AND a = 1", "seek=[a, b], ranges=1"),
        ("SELECT v FROM pairs WHERE a IN (1, 3) AND b IN ('x', 'z')", "seek=[a, b], ranges=4"),
        ("SELECT v FROM pairs WHERE a = 1 AND b > 'x'", "seek=[a, b], ranges=1"),
        ("SELECT v FROM pairs WHERE a = 1", "seek=[a], ranges=1"),
        ("SELECT v FROM pairs WHERE a > 1 AND b = 'x'", "seek=[a], ranges=1"),
        ("SELECT total FROM sums WHERE name = 'a'", "seek=[name], ranges=1"),
        ("SELECT total FROM sums WHERE name IS NULL", "seek=[name], ranges=1"),
        ("SELECT v2 FROM doubled WHERE id = 2", "seek=[id], ranges=1"),
        ("SELECT * FROM (SELECT id AS k, v FROM t) WHERE k = 2", "seek=[id], ranges=1"),
    ] {
        let plan = plan(&engine, sql);
        assert!(plan.contains(seek), "{sql}:\n{plan}");
    }
}

#[test]
fn other_conditions_scan() {
    let engine = engine_with(2, PROGRAM);
    for sql in [
        "SELECT * FROM t",
        "SELECT * FROM t WHERE v = 1",
        "SELECT * FROM t WHERE id + 1 = 2",
        "SELECT * FROM t WHERE id <> 1",
        "SELECT * FROM t WHERE id = 1 OR v = 1",
        "SELECT * FROM t WHERE id = v",
        "SELECT * FROM pairs WHERE b = 'x'",
        "SELECT * FROM heap WHERE id = 1",
        "SELECT * FROM sums WHERE total = 1",
    ] {
        let plan = plan(&engine, sql);
        assert!(!plan.contains("seek"), "{sql}:\n{plan}");
    }
}

#[test]
fn an_order_by_the_key_needs_no_sort_and_a_limit_ends_the_scan() {
    let engine = engine_with(2, PROGRAM);
    for sql in [
        "SELECT * FROM t ORDER BY id LIMIT 2",
        "SELECT v, id FROM t ORDER BY id",
        "SELECT v FROM t WHERE v > 10 ORDER BY id LIMIT 2",
        "SELECT * FROM pairs ORDER BY a, b LIMIT 2",
        "SELECT * FROM pairs WHERE a = 1 ORDER BY b LIMIT 2",
        "SELECT * FROM pairs WHERE a > 1 ORDER BY a LIMIT 2",
        "SELECT * FROM sums ORDER BY name NULLS FIRST LIMIT 1",
        "SELECT * FROM sums ORDER BY name LIMIT 1",
    ] {
        let plan = plan(&engine, sql);
        assert!(plan.contains("by key") && !plan.contains("Sort"), "{sql}:\n{plan}");
    }
    for sql in [
        "SELECT * FROM t ORDER BY id DESC LIMIT 2",
        "SELECT * FROM t ORDER BY v LIMIT 2",
        "SELECT * FROM pairs ORDER BY b LIMIT 2",
        "SELECT * FROM heap ORDER BY id LIMIT 1",
    ] {
        let plan = plan(&engine, sql);
        assert!(plan.contains("Sort") && !plan.contains("by key"), "{sql}:\n{plan}");
    }
    assert_eq!(query(&engine, "SELECT id FROM t ORDER BY id LIMIT 2 OFFSET 1"), ["2", "3"]);
    assert_eq!(query(&engine, "SELECT name FROM sums ORDER BY name NULLS FIRST LIMIT 1"), ["NULL"]);
}

#[test]
fn a_transaction_that_has_written_seeks_too() {
    let engine = engine_with(2, PROGRAM);
    let mut session = engine.session();
    session
        .execute("BEGIN; UPDATE t SET v = v + 1 WHERE id = 2; INSERT INTO t VALUES (9, 'n', 90)")
        .expect("both write");
    let Outcome::Text(plan) =
        session.execute("EXPLAIN SELECT v FROM t WHERE id = 2").expect("a plan").remove(0)
    else {
        panic!("EXPLAIN is a text");
    };
    assert!(plan.contains("seek=[id], ranges=1"), "{plan}");
    for (id, expected) in [(1, "10"), (2, "21"), (9, "90")] {
        let sql = format!("SELECT v FROM t WHERE id = {id}");
        let Outcome::Rows(rows) = session.execute(&sql).expect("rows").remove(0) else {
            panic!("a query has rows");
        };
        let batches = rows.into_batches().expect("rows");
        assert_eq!(crate::support::lines(&batches), [expected], "{sql}");
    }
}
