//! Tables and views that come and go.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use alluvium::arrow::array::{ArrayRef, Int64Array, RecordBatch};
use alluvium::{Engine, RelationKind};

use crate::support::{alone, engine_with, query, settled};

fn refused(engine: &Engine, sql: &str) -> String {
    engine.execute(sql).expect_err("it is refused").to_string()
}

#[test]
fn a_name_is_given_once() {
    let engine = engine_with(1, "CREATE TABLE t (a BIGINT); CREATE VIEW v AS SELECT a FROM t");
    assert_eq!(refused(&engine, "CREATE TABLE t (b BIGINT)"), "there is already a table \"t\"");
    assert_eq!(refused(&engine, "CREATE TABLE v (b BIGINT)"), "there is already a view \"v\"");
    assert_eq!(
        refused(&engine, "CREATE VIEW t AS SELECT 1 AS x"),
        "there is already a table \"t\""
    );
}

#[test]
fn what_others_use_is_not_dropped() {
    let engine = engine_with(
        2,
        "CREATE TABLE t (a BIGINT);
         CREATE LOCAL VIEW l AS SELECT a FROM t;
         CREATE VIEW v AS SELECT a FROM l;
         CREATE MATERIALIZED VIEW m AS SELECT a + 1 AS b FROM v",
    );
    assert!(refused(&engine, "DROP TABLE t").starts_with("\"t\" is used by \"l\""));
    assert!(refused(&engine, "DROP VIEW l").starts_with("\"l\" is used by"));
    assert!(refused(&engine, "DROP VIEW v").starts_with("\"v\" is used by \"m\""));
    assert_eq!(refused(&engine, "DROP VIEW t"), "\"t\" is a table, not a view");
    assert_eq!(refused(&engine, "DROP TABLE x"), "there is no table or view \"x\"");
    engine
        .execute("DROP VIEW m; DROP VIEW v; DROP VIEW l; DROP TABLE t")
        .expect("nothing uses what is dropped");
    assert!(engine.relations().expect("they can be listed").is_empty());
    engine
        .execute("CREATE TABLE t (b VARCHAR); INSERT INTO t VALUES ('new')")
        .expect("the name is free again");
    assert_eq!(settled(&engine, "SELECT * FROM t"), ["new"]);
}

#[test]
fn relations_are_listed_by_name() {
    let engine = engine_with(
        1,
        "CREATE TABLE t (a BIGINT, b BIGINT PRIMARY KEY);
         CREATE LOCAL VIEW l AS SELECT a FROM t;
         CREATE MATERIALIZED VIEW m AS SELECT a FROM l;
         CREATE VIEW v AS SELECT a FROM l",
    );
    let relations = engine.relations().expect("they can be listed");
    let listed: Vec<_> =
        relations.iter().map(|relation| (relation.name.as_str(), relation.kind)).collect();
    assert_eq!(
        listed,
        [
            ("l", RelationKind::LocalView),
            ("m", RelationKind::MaterializedView),
            ("t", RelationKind::Table),
            ("v", RelationKind::View)
        ]
    );
    assert_eq!(relations[2].primary_key, [1]);
}

#[test]
fn a_view_starts_from_what_its_tables_hold() {
    for workers in 1..=3 {
        let engine = engine_with(
            workers,
            "CREATE TABLE t (k BIGINT, v BIGINT);
             INSERT INTO t VALUES (1, 1), (1, 2), (2, 3);
             DELETE FROM t WHERE v = 2;
             CREATE MATERIALIZED VIEW s AS SELECT k, SUM(v) AS v FROM t GROUP BY k;
             CREATE MATERIALIZED VIEW big AS SELECT k FROM s WHERE v > 2",
        );
        assert_eq!(query(&engine, "SELECT * FROM s"), ["1 1", "2 3"]);
        assert_eq!(query(&engine, "SELECT * FROM big"), ["2"]);
        engine.execute("INSERT INTO t VALUES (1, 9), (2, -1)").expect("it inserts");
        assert_eq!(settled(&engine, "SELECT * FROM s"), ["1 10", "2 2"]);
        assert_eq!(query(&engine, "SELECT * FROM big"), ["1"]);
    }
}

#[test]
fn errors_of_views_can_be_read_and_go_away_with_their_cause() {
    for workers in 1..=3 {
        let engine = engine_with(
            workers,
            "CREATE TABLE t (id BIGINT PRIMARY KEY, d BIGINT);
             CREATE MATERIALIZED VIEW q AS SELECT id, 100 / d AS q FROM t;
             CREATE VIEW p AS SELECT id, id + 9223372036854775807 AS q FROM t WHERE id > 1;
             INSERT INTO t VALUES (1, 0), (2, 5)",
        );
        assert_eq!(settled(&engine, "SELECT * FROM q"), ["2 20"]);
        assert_eq!(query(&engine, "SELECT view FROM alluvium.errors"), ["p", "q"]);
        let message =
            query(&engine, "SELECT message FROM alluvium.errors WHERE view = 'q'").concat();
        assert!(message.to_lowercase().contains("divi"), "{message}");
        engine
            .execute("UPDATE t SET d = 4 WHERE id = 1; DELETE FROM t WHERE id = 2")
            .expect("the table changes");
        assert_eq!(settled(&engine, "SELECT * FROM q"), ["1 25"]);
        assert!(query(&engine, "SELECT * FROM alluvium.errors").is_empty());
    }
}

/// Epochs in the order of their bytes are not in the order of time.
#[test]
fn of_equal_errors_the_latest_goes_first_at_any_epoch() {
    let engine = engine_with(
        1,
        "CREATE TABLE t (a BIGINT); CREATE MATERIALIZED VIEW v AS SELECT 1 / a AS b FROM t",
    );
    for number in 1..=260 {
        let row = if number == 255 || number == 256 { 0 } else { number };
        engine.execute(&format!("INSERT INTO t VALUES ({row})")).expect("it inserts");
        // Each in an interval of its own.
        settled(&engine, "SELECT 1");
    }
    let epochs = || query(&engine, "SELECT epoch FROM alluvium.errors");
    assert_eq!(epochs(), ["255", "256"]);
    // One of the two copies.
    let zero: ArrayRef = Arc::new(Int64Array::from(vec![0]));
    let mut transaction = engine.begin().expect("nobody else writes");
    let zero = RecordBatch::try_from_iter([("a", zero)]).expect("one column");
    transaction.delete("t", zero).expect("it is there");
    transaction.commit().expect("it commits");
    settled(&engine, "SELECT 1");
    assert_eq!(epochs(), ["255"]);
}

/// The number of this process's threads, and its resident memory in bytes.
#[cfg(target_os = "linux")]
fn footprint() -> Option<(u64, u64)> {
    let status = procfs::process::Process::myself().ok()?.status().ok()?;
    Some((status.threads, status.vmrss? * 1024))
}

#[cfg(not(target_os = "linux"))]
fn footprint() -> Option<(u64, u64)> {
    None
}

/// Creates and drops a view over and over while rows come in, and checks what it says each time.
fn churn(engine: &Engine, times: usize) {
    for _ in 0..times {
        engine
            .execute("CREATE MATERIALIZED VIEW m AS SELECT k, COUNT(*) AS n, SUM(v) AS s FROM t GROUP BY k")
            .expect("the view is built");
        let totals = query(engine, "SELECT SUM(n) - SUM(s) FROM m");
        assert_eq!(totals, ["0"], "every row has the value one");
        engine.execute("DROP VIEW m").expect("nothing uses it");
    }
}

#[test]
fn views_come_and_go_a_thousand_times_while_data_flows() {
    if !alone("definitions::views_come_and_go_a_thousand_times_while_data_flows") {
        return;
    }
    let engine = engine_with(
        2,
        "CREATE TABLE t (id BIGINT PRIMARY KEY, k BIGINT, v BIGINT); INSERT INTO t VALUES (0, 0, 1)",
    );
    let stop = Arc::new(AtomicBool::new(false));
    let writer = std::thread::spawn({
        let (engine, stop) = (engine.clone(), stop.clone());
        move || {
            // The table stays as large as it is: keys come again.
            for id in (0..200).cycle() {
                if stop.load(Ordering::Relaxed) {
                    break;
                }
                let row = format!("INSERT OR REPLACE INTO t VALUES ({id}, {}, 1)", id % 7);
                engine.execute(&row).expect("it inserts");
            }
        }
    });
    churn(&engine, 200);
    let before = footprint();
    churn(&engine, 1000);
    let after = footprint();
    stop.store(true, Ordering::Relaxed);
    writer.join().expect("the writer does not fail");
    assert_eq!(settled(&engine, "SELECT COUNT(*) - SUM(v) FROM t"), ["0"]);
    if let (Some((threads, bytes)), Some((threads_after, bytes_after))) = (before, after) {
        assert_eq!(threads, threads_after);
        let grown = bytes_after.saturating_sub(bytes);
        assert!(grown < 8 << 20, "memory has grown by {grown} bytes from {bytes}");
    }
}

/// The processor time of this process, in ticks: usually hundredths of a second.
#[cfg(target_os = "linux")]
fn processor_time() -> Option<u64> {
    let stat = procfs::process::Process::myself().ok()?.stat().ok()?;
    Some(stat.utime + stat.stime)
}

#[cfg(not(target_os = "linux"))]
fn processor_time() -> Option<u64> {
    None
}

#[test]
fn an_idle_engine_sleeps() {
    if !alone("definitions::an_idle_engine_sleeps") {
        return;
    }
    let engine = engine_with(
        3,
        "CREATE TABLE t (k BIGINT, v BIGINT);
         CREATE MATERIALIZED VIEW m AS SELECT k, SUM(v) AS v FROM t GROUP BY k;
         INSERT INTO t VALUES (1, 1), (2, 2)",
    );
    let _changes = engine.subscribe("m").expect("the view exists");
    assert_eq!(settled(&engine, "SELECT * FROM m"), ["1 1", "2 2"]);
    let before = processor_time();
    std::thread::sleep(std::time::Duration::from_secs(2));
    if let (Some(before), Some(after)) = (before, processor_time()) {
        assert!(
            after - before < 10,
            "{} hundredths of a second were used in two seconds",
            after - before
        );
    }
}
