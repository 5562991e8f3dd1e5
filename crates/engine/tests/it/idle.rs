//! Tables without new rows do not hold back others.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use alluvium::Engine;
use alluvium::arrow::array::{ArrayRef, Int64Array, RecordBatch};

use crate::support::{engine_with, query};

/// So many seconds after the start of 2024.
fn second(second: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(1_704_067_200 + second)
}

/// Inserts numbers into a table in an epoch of this second, and waits until it is complete.
fn insert(engine: &Engine, at: u64, table: &str, numbers: &[i64]) {
    let column: ArrayRef = Arc::new(Int64Array::from(numbers.to_vec()));
    let rows = RecordBatch::try_from_iter([("n", column)]).unwrap();
    let mut transaction = engine.begin_at(second(at)).unwrap();
    transaction.insert(table, rows).unwrap();
    let epoch = transaction.commit().unwrap();
    engine.wait(epoch).unwrap();
}

fn tables(engine: &Engine) -> Vec<String> {
    query(engine, "SELECT name, late_rows, waterline FROM alluvium.tables")
}

const DEFINITIONS: &str = "
    CREATE TABLE a (n BIGINT LATENESS 10) WITH ('idle_after' = '1 minute');
    CREATE TABLE b (n BIGINT LATENESS 10);
    CREATE TABLE c (n BIGINT LATENESS 10);
    CREATE MATERIALIZED VIEW f WITH ('emit_final' = 'n') AS
        SELECT n FROM a UNION ALL SELECT n + 100 AS n FROM b;";

#[test]
fn an_idle_table_holds_back_no_others_until_it_has_rows_again() {
    for workers in 1..=3 {
        let engine = engine_with(workers, DEFINITIONS);
        insert(&engine, 0, "a", &[50]);
        insert(&engine, 10, "b", &[1, 200]);
        insert(&engine, 59, "b", &[300]);
        // The waterline of `a` holds it back.
        assert!(query(&engine, "SELECT * FROM f").is_empty());
        assert_eq!(tables(&engine), ["a 0 n >= 40", "b 0 n >= 290", "c 0 NULL"]);
        // An epoch of any table tells that it is idle: it follows `b`, whose bound is 100 higher than its waterline.
        insert(&engine, 60, "c", &[7]);
        assert_eq!(query(&engine, "SELECT * FROM f"), ["101", "300", "50"], "{workers}");
        assert_eq!(tables(&engine), ["a 0 n >= 390", "b 0 n >= 290", "c 0 n >= -3"]);
        insert(&engine, 61, "b", &[320]);
        assert_eq!(query(&engine, "SELECT * FROM f"), ["101", "300", "400", "50"]);
        // Rows below what was forgotten are late, and the others are not. Then it holds back others again.
        insert(&engine, 62, "a", &[409, 410, 415]);
        insert(&engine, 63, "b", &[1_000]);
        assert_eq!(tables(&engine), ["a 1 n >= 410", "b 0 n >= 990", "c 0 n >= -3"]);
        assert_eq!(query(&engine, "SELECT * FROM f"), ["101", "300", "400", "50"]);
        insert(&engine, 122, "b", &[1_001]);
        assert_eq!(query(&engine, "SELECT COUNT(*), MAX(n) FROM f"), ["7 420"]);
        assert_eq!(tables(&engine), ["a 1 n >= 1091", "b 0 n >= 991", "c 0 n >= -3"]);
    }
}

#[test]
fn a_table_that_never_had_rows_is_idle_as_well() {
    let engine = engine_with(2, DEFINITIONS);
    insert(&engine, 5, "b", &[1, 200]);
    insert(&engine, 64, "b", &[201]);
    assert!(query(&engine, "SELECT * FROM f").is_empty());
    insert(&engine, 65, "b", &[201]);
    assert_eq!(query(&engine, "SELECT * FROM f"), ["101"]);
    assert_eq!(tables(&engine), ["a 0 n >= 291", "b 0 n >= 191", "c 0 NULL"]);
}

#[test]
fn idle_tables_follow_only_tables_that_views_combine_them_with() {
    let engine = engine_with(
        2,
        "CREATE TABLE a (n BIGINT LATENESS 10) WITH ('idle_after' = '1 minute');
         CREATE TABLE b (n BIGINT LATENESS 10) WITH ('idle_after' = '1 minute');
         CREATE MATERIALIZED VIEW alone WITH ('emit_final' = 'n') AS SELECT n FROM a",
    );
    insert(&engine, 0, "a", &[50]);
    insert(&engine, 100, "b", &[500]);
    assert_eq!(tables(&engine), ["a 0 n >= 40", "b 0 n >= 490"]);
    engine
        .execute("CREATE MATERIALIZED VIEW j AS SELECT a.n, COUNT(*) AS c FROM a JOIN b ON a.n = b.n GROUP BY a.n")
        .unwrap();
    insert(&engine, 101, "b", &[501]);
    assert_eq!(tables(&engine), ["a 0 n >= 491", "b 0 n >= 491"]);
    assert_eq!(query(&engine, "SELECT * FROM alone"), ["50"]);
    // If all are idle, nothing says how far the waterlines should rise.
    engine.execute("CREATE TABLE c (n BIGINT)").unwrap();
    insert(&engine, 102, "b", &[600]);
    insert(&engine, 300, "c", &[1]);
    assert_eq!(tables(&engine), ["a 0 n >= 590", "b 0 n >= 590", "c 0 NULL"]);
}

#[test]
fn times_that_are_cut_are_followed_as_far_as_needed() {
    let engine = engine_with(
        1,
        "CREATE TABLE a (ts TIMESTAMP LATENESS INTERVAL '1' MINUTE) WITH ('idle_after' = '1 second');
         CREATE TABLE b (ts TIMESTAMP LATENESS INTERVAL '1' MINUTE);
         CREATE MATERIALIZED VIEW f WITH ('emit_final' = 'h') AS
             SELECT DATE_TRUNC('hour', ts) AS h, COUNT(*) AS c
             FROM (SELECT ts FROM a UNION ALL SELECT ts FROM b) AS u GROUP BY 1",
    );
    let insert = |at: u64, table: &str, ts: &str| {
        let mut transaction = engine.begin_at(second(at)).unwrap();
        for rows in engine.query(&format!("SELECT TIMESTAMP '{ts}' AS ts")).unwrap() {
            transaction.insert(table, rows).unwrap();
        }
        let epoch = transaction.commit().unwrap();
        engine.wait(epoch).unwrap();
    };
    insert(0, "a", "2024-01-01 01:10:00");
    insert(0, "b", "2024-01-01 01:20:00");
    insert(10, "b", "2024-01-01 03:30:00");
    assert_eq!(query(&engine, "SELECT * FROM f"), ["2024-01-01T01:00:00 2"]);
    let expected = ["a ts >= 2024-01-01T03:00:00", "b ts >= 2024-01-01T03:29:00"];
    assert_eq!(query(&engine, "SELECT name, waterline FROM alluvium.tables"), expected);
}

fn open(directory: &Path, workers: usize) -> Engine {
    let state = format!("file:{}", directory.display());
    Engine::builder().workers(workers).state(state).open().unwrap()
}

#[test]
fn a_restart_decides_the_same() {
    const ROUNDS: [(u64, &str, &[i64]); 8] = [
        (0, "a", &[50]),
        (10, "b", &[1, 200]),
        (59, "b", &[300]),
        (60, "c", &[7]),
        (61, "b", &[320]),
        (70, "a", &[409, 410, 415]),
        (129, "b", &[1_000]),
        (130, "b", &[1_001]),
    ];
    let shown = |engine: &Engine| {
        let mut shown = tables(engine);
        shown.extend(query(engine, "SELECT * FROM f"));
        shown
    };
    let judge = engine_with(1, DEFINITIONS);
    let expected = ROUNDS.map(|(at, table, numbers)| {
        insert(&judge, at, table, numbers);
        shown(&judge)
    });
    assert_ne!(expected[6], expected[7], "it is idle a minute after its last rows");
    for (checkpoints, workers) in [
        (vec![], [2, 2]),
        ((0..8).collect(), [2, 2]),
        (vec![1, 5], [1, 1]),
        (vec![1, 2, 4], [1, 3]),
    ] {
        let directory = tempfile::tempdir().unwrap();
        open(directory.path(), workers[0]).execute(DEFINITIONS).unwrap();
        for (round, (at, table, numbers)) in ROUNDS.into_iter().enumerate() {
            let engine = open(directory.path(), workers[round % 2]);
            insert(&engine, at, table, numbers);
            assert_eq!(shown(&engine), expected[round], "{checkpoints:?} {round}");
            if checkpoints.contains(&round) {
                engine.checkpoint().unwrap();
            }
        }
    }
}
