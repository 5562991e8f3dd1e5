//! Rows that come too late.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::path::Path;
use std::sync::Arc;

use alluvium::arrow::array::{ArrayRef, Int64Array, RecordBatch};
use alluvium::{Engine, Session};

use crate::support::{engine, engine_with, query, settled};

/// The late rows and the waterline of each table.
fn tables(engine: &Engine) -> Vec<String> {
    query(engine, "SELECT name, late_rows, waterline FROM alluvium.tables")
}

fn execute(engine: &Engine, sql: &str) {
    engine.execute(sql).unwrap();
}

/// The message of a statement that fails.
fn failure(session: &mut Session, sql: &str) -> String {
    session.execute(sql).unwrap_err().to_string()
}

#[test]
fn a_row_below_the_waterline_is_dropped_and_counted() {
    for workers in [1, 3] {
        let engine = engine_with(
            workers,
            "CREATE TABLE t (n BIGINT LATENESS 10, v VARCHAR);
             CREATE MATERIALIZED VIEW v AS SELECT COUNT(*) AS c, MIN(n) AS m FROM t",
        );
        assert_eq!(tables(&engine), ["t 0 NULL"]);
        execute(&engine, "INSERT INTO t VALUES (100, 'a')");
        assert_eq!(tables(&engine), ["t 0 n >= 90"]);
        execute(
            &engine,
            "INSERT INTO t VALUES (90, 'b'), (89, 'late'), (NULL, 'never'), (-5, 'late')",
        );
        assert_eq!(query(&engine, "SELECT * FROM t"), ["100 a", "90 b", "NULL never"]);
        assert_eq!(settled(&engine, "SELECT * FROM v"), ["3 90"]);
        assert_eq!(tables(&engine), ["t 2 n >= 90"]);
        // It never falls.
        execute(&engine, "INSERT INTO t VALUES (91, 'c')");
        assert_eq!(tables(&engine), ["t 2 n >= 90"]);
        assert_eq!(engine.relations().unwrap()[0].late, 2);
    }
}

#[test]
fn rows_of_one_epoch_do_not_make_each_other_late() {
    let engine = engine_with(2, "CREATE TABLE t (n BIGINT LATENESS 0)");
    execute(&engine, "BEGIN; INSERT INTO t VALUES (1000); INSERT INTO t VALUES (1), (2); COMMIT");
    assert_eq!(query(&engine, "SELECT * FROM t"), ["1", "1000", "2"]);
    execute(
        &engine,
        "BEGIN; INSERT INTO t VALUES (2000), (999); INSERT INTO t VALUES (1500); COMMIT",
    );
    assert_eq!(query(&engine, "SELECT * FROM t"), ["1", "1000", "1500", "2", "2000"]);
    assert_eq!(tables(&engine), ["t 1 n >= 2000"]);
}

#[test]
fn a_row_that_is_late_by_one_column_does_not_raise_the_other() {
    let engine = engine_with(1, "CREATE TABLE t (a BIGINT LATENESS 0, b BIGINT LATENESS 5)");
    execute(&engine, "INSERT INTO t VALUES (10, 10)");
    execute(&engine, "INSERT INTO t VALUES (9, 1000), (11, 5), (12, 4), (13, NULL)");
    assert_eq!(query(&engine, "SELECT * FROM t"), ["10 10", "11 5", "13 NULL"]);
    assert_eq!(tables(&engine), ["t 2 a >= 13 AND b >= 5"]);
}

#[test]
fn statements_do_not_change_rows_behind_the_waterline() {
    let engine = engine_with(
        2,
        "CREATE TABLE t (ts TIMESTAMP LATENESS INTERVAL '1' HOUR, v BIGINT);
         INSERT INTO t VALUES (TIMESTAMP '2024-01-01 00:00:00', 1), (TIMESTAMP '2024-01-01 02:00:00', 2), (NULL, 3)",
    );
    let mut session = engine.session();
    let expected = "rows of \"t\" behind the waterline can no longer change: \"ts\" is 2024-01-01T00:00:00, and the \
                    waterline is at 2024-01-01T01:00:00";
    for sql in ["DELETE FROM t WHERE v = 1", "DELETE FROM t", "UPDATE t SET v = 7", "TRUNCATE t"] {
        let message = failure(&mut session, sql);
        assert!(message.contains(expected), "{sql}: {message}");
    }
    let message =
        failure(&mut session, "UPDATE t SET ts = ts - INTERVAL '1 hour 1 second' WHERE v = 2");
    assert!(message.contains("\"ts\" is 2024-01-01T00:59:59"), "{message}");
    // A statement that fails leaves the transaction as it was.
    session.execute("BEGIN; UPDATE t SET v = 9 WHERE v = 2").unwrap();
    failure(&mut session, "UPDATE t SET v = 8");
    session.execute("DELETE FROM t WHERE ts IS NULL; COMMIT").unwrap();
    assert_eq!(
        query(&engine, "SELECT * FROM t"),
        ["2024-01-01T00:00:00 1", "2024-01-01T02:00:00 9"]
    );
    assert_eq!(tables(&engine), ["t 0 ts >= 2024-01-01T01:00:00"]);
}

fn numbers(columns: &[(&str, &[i64])]) -> RecordBatch {
    let columns = columns
        .iter()
        .map(|(name, values)| (*name, Arc::new(Int64Array::from(values.to_vec())) as ArrayRef));
    RecordBatch::try_from_iter(columns).unwrap()
}

#[test]
fn a_deletion_by_a_program_is_dropped_and_counted() {
    let engine = engine_with(2, "CREATE TABLE t (n BIGINT LATENESS 10)");
    execute(&engine, "INSERT INTO t VALUES (1), (100)");
    let mut transaction = engine.begin().unwrap();
    transaction.delete("t", numbers(&[("n", &[1, 100])])).unwrap();
    transaction.commit().unwrap();
    assert_eq!(query(&engine, "SELECT * FROM t"), ["1"]);
    assert_eq!(tables(&engine), ["t 1 n >= 90"]);
    let refused = query(&engine, "SELECT refused_deletions FROM alluvium.tables");
    assert_eq!(refused, ["0"]);
}

#[test]
fn weights_are_dropped_with_their_rows_and_deletions_raise_nothing() {
    let engine = engine_with(
        3,
        "CREATE TABLE t (k BIGINT, n BIGINT LATENESS 10) WITH ('materialized' = 'false');
         CREATE MATERIALIZED VIEW v AS SELECT k, n, COUNT(*) AS c FROM t GROUP BY k, n",
    );
    let change = |rows: &[(&str, &[i64])], weights: &[i64]| {
        let mut transaction = engine.begin().unwrap();
        transaction.change("t", numbers(rows), weights).unwrap();
        transaction.commit().unwrap();
    };
    change(&[("k", &[1, 2, 3]), ("n", &[50, 100, 100])], &[1, 2, 3]);
    assert_eq!(tables(&engine), ["t 0 n >= 90"]);
    change(&[("k", &[1, 2, 3]), ("n", &[50, 100, 100])], &[-1, -1, -3]);
    change(&[("k", &[4, 5]), ("n", &[99, 1_000])], &[1, -1]);
    assert_eq!(settled(&engine, "SELECT * FROM v WHERE k < 5"), ["1 50 1", "2 100 1", "4 99 1"]);
    assert_eq!(tables(&engine), ["t 1 n >= 90"], "a deletion of 1,000 raises nothing");
}

#[test]
fn a_row_behind_the_waterline_keeps_its_key() {
    for workers in [1, 3] {
        let engine = engine_with(
            workers,
            "CREATE TABLE t (k BIGINT PRIMARY KEY, n BIGINT LATENESS 10, v VARCHAR);
             CREATE MATERIALIZED VIEW v AS SELECT SUM(n) AS s FROM t;
             INSERT INTO t VALUES (1, 5, 'old'), (2, 100, 'new'), (3, NULL, 'none')",
        );
        // Of key 1 the old row is too late, of key 2 the new one.
        execute(
            &engine,
            "INSERT OR REPLACE INTO t VALUES (1, 200, 'x'), (2, 80, 'x'), (3, 150, 'y'), (4, 110, 'z')",
        );
        let rows = ["1 5 old", "2 100 new", "3 150 y", "4 110 z"];
        assert_eq!(query(&engine, "SELECT * FROM t"), rows);
        // A row that is dropped there has raised the waterline all the same.
        assert_eq!(settled(&engine, "SELECT * FROM v"), ["365"]);
        assert_eq!(tables(&engine), ["t 2 n >= 190"]);
        let mut transaction = engine.begin().unwrap();
        // The other columns of a deletion by key do not matter.
        let columns: [(&str, ArrayRef); 3] = [
            ("k", Arc::new(Int64Array::from(vec![1, 4]))),
            ("n", Arc::new(Int64Array::from(vec![None, Some(1)]))),
            (
                "v",
                alluvium::arrow::array::new_null_array(
                    &alluvium::arrow::datatypes::DataType::Utf8,
                    2,
                ),
            ),
        ];
        transaction
            .delete(
                "t",
                RecordBatch::try_from_iter_with_nullable(
                    columns.map(|(name, column)| (name, column, true)),
                )
                .unwrap(),
            )
            .unwrap();
        transaction.commit().unwrap();
        assert_eq!(query(&engine, "SELECT * FROM t"), rows);
        assert_eq!(tables(&engine), ["t 4 n >= 190"]);
        let mut session = engine.session();
        assert!(failure(&mut session, "DELETE FROM t WHERE k = 4").contains("\"n\" is 110"));
        assert!(failure(&mut session, "UPDATE t SET n = 300 WHERE k = 4").contains("\"n\" is 110"));
    }
}

#[test]
fn a_deletion_by_a_key_with_a_waterline_is_late_by_its_key() {
    let engine = engine_with(
        2,
        "CREATE TABLE t (k BIGINT, d DATE LATENESS INTERVAL '2' DAYS, PRIMARY KEY (d, k));
         INSERT INTO t VALUES (1, DATE '2024-01-01'), (2, DATE '2024-01-10')",
    );
    execute(&engine, "INSERT INTO t VALUES (3, DATE '2024-01-08'), (4, DATE '2024-01-07')");
    assert_eq!(query(&engine, "SELECT * FROM t"), ["1 2024-01-01", "2 2024-01-10", "3 2024-01-08"]);
    assert_eq!(tables(&engine), ["t 1 d >= 2024-01-08"]);
    let rows = engine.query("SELECT k, d FROM t WHERE k < 3").unwrap();
    let mut transaction = engine.begin().unwrap();
    for rows in rows {
        transaction.delete("t", rows).unwrap();
    }
    transaction.commit().unwrap();
    assert_eq!(query(&engine, "SELECT * FROM t"), ["1 2024-01-01", "3 2024-01-08"]);
    assert_eq!(tables(&engine), ["t 2 d >= 2024-01-08"]);
}

#[test]
fn values_at_the_ends_of_their_range_are_no_exception() {
    let engine = engine_with(1, "CREATE TABLE t (n BIGINT LATENESS 10)");
    let (least, most) = (i64::MIN, i64::MAX);
    execute(&engine, &format!("INSERT INTO t VALUES ({least})"));
    assert_eq!(tables(&engine), [format!("t 0 n >= {least}")]);
    execute(&engine, &format!("INSERT INTO t VALUES ({least}), ({most})"));
    execute(&engine, &format!("INSERT INTO t VALUES ({least}), ({}), ({})", most - 10, most - 11));
    assert_eq!(query(&engine, "SELECT COUNT(*) FROM t"), ["4"]);
    assert_eq!(tables(&engine), [format!("t 2 n >= {}", most - 10)]);
    let engine = engine_with(1, "CREATE TABLE t (n SMALLINT LATENESS 100, m INTEGER LATENESS 0)");
    execute(
        &engine,
        "INSERT INTO t VALUES (-32768, 2147483647); INSERT INTO t VALUES (-32768, 2147483646)",
    );
    assert_eq!(tables(&engine), ["t 1 n >= -32868 AND m >= 2147483647"]);
}

#[test]
fn late_rows_are_shown_if_the_table_says_so() {
    let engine = engine_with(
        2,
        "CREATE TABLE t (ts TIMESTAMP LATENESS INTERVAL '1' MINUTE, v VARCHAR) WITH ('late_rows' = 'errors');
         INSERT INTO t VALUES (TIMESTAMP '2024-01-01 01:00:00', 'a');
         INSERT INTO t VALUES (TIMESTAMP '2024-01-01 00:00:30', 'b'), (TIMESTAMP '2024-01-01 02:00:00', 'c')",
    );
    assert_eq!(
        query(&engine, "SELECT view, expression, \"row\", message, epoch FROM alluvium.errors"),
        [
            "t LATENESS ts=2024-01-01T00:00:30, v='b' the row comes too late: \"ts\" is 2024-01-01T00:00:30, and the \
          waterline is at 2024-01-01T00:59:00 2"
        ]
    );
    execute(&engine, "DROP TABLE t");
    assert!(query(&engine, "SELECT * FROM alluvium.errors").is_empty());
    assert!(tables(&engine).is_empty());
}

#[test]
fn a_table_of_the_same_name_begins_anew() {
    let engine = engine_with(2, "CREATE TABLE t (k INT PRIMARY KEY, n BIGINT LATENESS 0)");
    execute(&engine, "INSERT INTO t VALUES (1, 1000); DROP TABLE t");
    execute(
        &engine,
        "CREATE TABLE t (k INT PRIMARY KEY, n BIGINT LATENESS 0); INSERT INTO t VALUES (1, 1), (2, 9)",
    );
    execute(&engine, "INSERT OR REPLACE INTO t VALUES (1, 10)");
    assert_eq!(query(&engine, "SELECT * FROM t"), ["1 1", "2 9"]);
    execute(&engine, "CREATE OR REPLACE TABLE t (k INT PRIMARY KEY, n BIGINT LATENESS 5)");
    execute(&engine, "INSERT INTO t VALUES (1, 1); INSERT OR REPLACE INTO t VALUES (1, -4)");
    assert_eq!(query(&engine, "SELECT * FROM t"), ["1 -4"]);
    assert_eq!(tables(&engine), ["t 0 n >= -4"]);
}

#[test]
fn a_transaction_in_files_is_sifted_as_one_in_memory() {
    let budget = 8 << 20;
    let small = Engine::builder().workers(2).memory(budget).open_in_memory().unwrap();
    let large = engine(1);
    for engine in [&small, &large] {
        execute(
            engine,
            "CREATE TABLE t (k BIGINT, n BIGINT LATENESS 1000, v VARCHAR);
             CREATE MATERIALIZED VIEW v AS SELECT COUNT(*) AS c, SUM(k) AS s, MIN(n) AS m FROM t;
             INSERT INTO t VALUES (0, 100000, '')",
        );
        execute(
            engine,
            "INSERT INTO t SELECT v, v AS n, 'a text that makes this row longer ' || v FROM generate_series(90000, 250000) AS g(v)",
        );
    }
    assert_eq!(tables(&small), ["t 9000 n >= 249000"]);
    assert_eq!(tables(&small), tables(&large));
    assert_eq!(settled(&small, "SELECT * FROM v"), settled(&large, "SELECT * FROM v"));
}

#[test]
fn lateness_is_described() {
    let engine = engine(1);
    let sql = "CREATE TABLE t (a TIMESTAMP LATENESS INTERVAL '1500 milliseconds', b DATE, c BIGINT LATENESS 7, \
               WATERMARK FOR b AS b - INTERVAL '1' DAY)";
    execute(&engine, sql);
    let outcome = engine.execute("DESCRIBE t").unwrap().remove(0);
    let alluvium::Outcome::Rows(rows) = outcome else { panic!("rows") };
    let batches = rows.into_batches().unwrap();
    let lines = crate::support::batch_lines(&batches[0]);
    let extra: Vec<&str> =
        lines.iter().map(|line| line.split("NULL NULL ").nth(1).unwrap()).collect();
    let expected =
        ["LATENESS INTERVAL '1.500000 seconds'", "LATENESS INTERVAL '1 days'", "LATENESS 7"];
    assert_eq!(extra, expected);
    execute(&engine, "CREATE VIEW v AS SELECT c + 1 AS d FROM t; LATENESS v.d 3");
    let outcome = engine.execute("DESCRIBE v").unwrap().remove(0);
    let alluvium::Outcome::Rows(rows) = outcome else { panic!("rows") };
    let batches = rows.into_batches().unwrap();
    let line = crate::support::batch_lines(&batches[0]).remove(0);
    assert!(line.ends_with(" LATENESS 3"), "{line}");
}

const DURABLE: &str = "
    CREATE TABLE k (id BIGINT PRIMARY KEY, n BIGINT LATENESS 10);
    CREATE TABLE t (n BIGINT LATENESS 10) WITH ('late_rows' = 'errors');
    CREATE MATERIALIZED VIEW v AS SELECT COUNT(*) AS c, SUM(n) AS s FROM t;";

/// Epochs in which rows come late, of the table itself and by the row that is there.
const ROUNDS: [&str; 4] = [
    "BEGIN; INSERT INTO t VALUES (1), (100); INSERT INTO k VALUES (1, 1), (2, 100); COMMIT",
    "BEGIN; INSERT INTO t VALUES (2), (110); INSERT OR REPLACE INTO k VALUES (1, 200), (2, 5), (2, 120); COMMIT",
    "BEGIN; INSERT INTO t VALUES (3), (NULL); INSERT OR REPLACE INTO k VALUES (1, 300), (4, 290); COMMIT",
    "BEGIN; INSERT INTO t VALUES (4), (101), (99); INSERT OR REPLACE INTO k VALUES (4, 500), (2, 501); COMMIT",
];

fn shown(engine: &Engine) -> Vec<String> {
    let queries = [
        "SELECT name, late_rows, waterline FROM alluvium.tables",
        "SELECT * FROM t",
        "SELECT * FROM k",
        "SELECT * FROM v",
        "SELECT view, \"row\", message FROM alluvium.errors",
    ];
    queries.iter().flat_map(|sql| settled(engine, sql)).collect()
}

fn open(directory: &Path, workers: usize) -> Engine {
    let state = format!("file:{}", directory.display());
    Engine::builder().workers(workers).state(state).open().unwrap()
}

#[test]
fn waterlines_and_counts_outlive_the_engine() {
    let judge = engine_with(1, DURABLE);
    let expected = ROUNDS.map(|round| {
        execute(&judge, round);
        shown(&judge)
    });
    assert_eq!(
        query(&judge, "SELECT name, late_rows, waterline FROM alluvium.tables"),
        ["k 4 n >= 491", "t 4 n >= 100"]
    );
    // By the journal, by a checkpoint after each epoch, and by one before the last epochs.
    for (checkpoints, workers) in
        [(vec![], [2, 2]), (vec![0, 1, 2, 3], [2, 2]), (vec![1], [1, 1]), (vec![1, 2], [1, 3])]
    {
        let directory = tempfile::tempdir().unwrap();
        execute(&open(directory.path(), workers[0]), DURABLE);
        for (number, round) in ROUNDS.iter().enumerate() {
            let engine = open(directory.path(), workers[number % 2]);
            execute(&engine, round);
            assert_eq!(shown(&engine), expected[number], "{checkpoints:?} {number}");
            if checkpoints.contains(&number) {
                engine.checkpoint().unwrap();
            }
        }
        let engine = open(directory.path(), workers[0]);
        assert_eq!(shown(&engine), expected[3], "{checkpoints:?}");
    }
}
