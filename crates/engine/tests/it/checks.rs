//! CHECK: conditions that the rows of a table have to meet.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::sync::Arc;

use alluvium::Engine;
use alluvium::arrow::array::{ArrayRef, Int64Array, RecordBatch};

use crate::support::{engine_with, query};

const TABLE: &str = "CREATE TABLE t (
        id BIGINT PRIMARY KEY, n BIGINT CHECK (n > 0), m BIGINT CONSTRAINT even CHECK (m % 2 = 0), text VARCHAR,
        CHECK (n < m OR text = 'any'), CONSTRAINT short CHECK (length(text) <= 5));
    INSERT INTO t VALUES (1, 1, 2, 'a'), (2, NULL, NULL, NULL)";

/// A statement that changes nothing, because of the condition of this name.
fn refused(engine: &Engine, sql: &str, name: &str) {
    let before = query(engine, "SELECT * FROM t");
    let error = engine.execute(sql).unwrap_err();
    let message = error.to_string();
    assert!(message.contains(&format!("its CHECK \"{name}\"")), "{sql}: {message}");
    assert_eq!(error.sqlstate().to_string(), "23514", "{message}");
    assert_eq!(query(engine, "SELECT * FROM t"), before, "{sql}");
}

#[test]
fn rows_of_statements_meet_the_conditions_of_their_table() {
    for workers in 1..=2 {
        let engine = engine_with(workers, TABLE);
        for (sql, name) in [
            ("INSERT INTO t VALUES (3, 1, 2, 'b'), (4, 0, 2, 'c')", "t_n_check"),
            ("INSERT INTO t VALUES (3, 1, 3, 'b')", "even"),
            ("INSERT INTO t VALUES (3, 2, 2, 'b')", "t_check"),
            ("INSERT INTO t SELECT id + 10, n, m, 'longer' FROM t", "short"),
            ("INSERT OR REPLACE INTO t VALUES (1, -1, 2, 'b')", "t_n_check"),
            ("UPDATE t SET n = n - 1", "t_n_check"),
            ("UPDATE t SET n = 7 WHERE id = 1", "t_check"),
            (
                "INSERT INTO t VALUES (1, 1, 2, 'b') ON CONFLICT (id) DO UPDATE SET m = t.m + 1",
                "even",
            ),
        ] {
            refused(&engine, sql, name);
        }
        engine
            .execute(
                "INSERT INTO t VALUES (3, 9, 2, 'any'), (4, NULL, 4, NULL);
                 UPDATE t SET n = n + 1 WHERE id = 3;
                 INSERT INTO t VALUES (1, 0, 0, 'b') ON CONFLICT DO NOTHING",
            )
            .unwrap();
        assert_eq!(
            query(&engine, "SELECT * FROM t"),
            ["1 1 2 a", "2 NULL NULL NULL", "3 10 2 any", "4 NULL 4 NULL"]
        );
    }
}

#[test]
fn the_message_names_the_row_the_condition_and_its_table() {
    let engine = engine_with(1, TABLE);
    let error = engine.execute("INSERT INTO t VALUES (8, 5, 4, 'x')").unwrap_err();
    assert_eq!(
        error.to_string(),
        "a row of \"t\" with n = 5, m = 4, text = x does not meet its CHECK \"t_check\": n < m OR text = 'any'"
    );
}

#[test]
fn many_rows_are_checked_batch_by_batch() {
    let engine = engine_with(2, "CREATE TABLE t (n BIGINT, CHECK (n <> 77777))");
    refused(&engine, "INSERT INTO t SELECT * FROM range(0, 100000)", "t_check");
    engine.execute("INSERT INTO t SELECT * FROM range(0, 70000)").unwrap();
    assert_eq!(query(&engine, "SELECT COUNT(*) FROM t"), ["70000"]);
}

#[test]
fn programs_are_told_at_the_call() {
    let engine = engine_with(1, "CREATE TABLE t (k BIGINT PRIMARY KEY CHECK (k > 0))");
    let rows = |k: i64| {
        let column: ArrayRef = Arc::new(Int64Array::from(vec![k]));
        RecordBatch::try_from_iter([("k", column)]).unwrap()
    };
    let mut transaction = engine.begin().unwrap();
    for error in [transaction.insert("t", rows(0)), transaction.upsert("t", rows(-1))] {
        assert_eq!(error.unwrap_err().sqlstate().to_string(), "23514");
    }
    transaction.insert("t", rows(1)).unwrap();
    transaction.commit().unwrap();
    assert_eq!(query(&engine, "SELECT * FROM t"), ["1"]);
}

#[test]
fn conditions_outlive_the_engine_and_follow_alter() {
    let directory = tempfile::tempdir().unwrap();
    let open = || {
        let state = format!("file:{}", directory.path().display());
        Engine::builder().workers(2).state(state).open().unwrap()
    };
    let engine = open();
    engine.execute(TABLE).unwrap();
    drop(engine);
    let engine = open();
    refused(&engine, "INSERT INTO t VALUES (3, 1, 3, 'b')", "even");
    engine
        .execute("ALTER TABLE t RENAME COLUMN n TO \"the N\"; ALTER TABLE t RENAME m TO o")
        .unwrap();
    for (sql, name) in [
        ("INSERT INTO t VALUES (3, 0, 2, 'b')", "t_the N_check"),
        ("INSERT INTO t VALUES (3, 2, 2, 'b')", "t_check"),
    ] {
        refused(&engine, sql, name);
    }
    let error = engine.execute("ALTER TABLE t ADD COLUMN p INT DEFAULT 0 CHECK (p > 0)");
    assert!(error.unwrap_err().to_string().contains("\"t_p_check\""));
    engine.execute("ALTER TABLE t ADD COLUMN p INT DEFAULT 1 CHECK (p > 0); CHECKPOINT").unwrap();
    let error = engine.execute("ALTER TABLE t DROP COLUMN o").unwrap_err().to_string();
    assert!(error.contains("part of a CHECK"), "{error}");
    drop(engine);
    let engine = open();
    refused(&engine, "UPDATE t SET p = 0", "t_p_check");
    refused(&engine, "UPDATE t SET \"the N\" = 5 WHERE id = 1", "t_check");
    assert_eq!(query(&engine, "SELECT * FROM t"), ["1 1 2 a 1", "2 NULL NULL NULL 1"]);
}

#[test]
fn a_table_that_a_transaction_creates_has_its_conditions() {
    let engine = engine_with(1, "CREATE TABLE other (n INT)");
    let mut session = engine.session();
    session.execute("BEGIN; CREATE TABLE t (k INT PRIMARY KEY, n INT CHECK (n > 0))").unwrap();
    session.execute("INSERT INTO t VALUES (1, 1)").unwrap();
    for (sql, state) in
        [("INSERT INTO t VALUES (2, 0)", "23514"), ("INSERT INTO t VALUES (1, 2)", "23505")]
    {
        assert_eq!(session.execute(sql).unwrap_err().sqlstate().to_string(), state, "{sql}");
    }
    assert!(session.execute("CREATE TABLE u (n INT CHECK (missing > 0))").is_err());
    session.execute("COMMIT").unwrap();
    refused(&engine, "INSERT INTO t VALUES (2, 0)", "t_n_check");
}

#[test]
fn conditions_are_refused_that_are_none() {
    let engine = engine_with(1, "CREATE TABLE other (n INT)");
    for (condition, text) in [
        ("n", "not of type INTEGER"),
        ("n > missing", "missing"),
        ("n > (SELECT MAX(n) FROM other)", "a query in CHECK"),
        ("SUM(n) > 0", "an aggregate"),
        ("n > random()", "random"),
        ("now() > '2020-01-01'", "now"),
        ("n > $1", "$1"),
    ] {
        let sql = format!("CREATE TABLE t (n INT, CHECK ({condition}))");
        let error = engine.execute(&sql).unwrap_err();
        let message = error.to_string();
        assert!(message.to_lowercase().contains(&text.to_lowercase()), "{sql}: {message}");
        assert!(error.position().is_some_and(|position| position.1 >= 24), "{sql}: {error:?}");
    }
    let twice = "CREATE TABLE t (n INT CONSTRAINT c CHECK (n > 0), CONSTRAINT c CHECK (n > 1))";
    assert!(engine.execute(twice).unwrap_err().to_string().contains("\"c\" already"));
}
