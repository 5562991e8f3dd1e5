//! Keys that are taken: rows replace others, or that is an error, as the statement or the table says.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::sync::Arc;
use std::thread;

use alluvium::arrow::array::{ArrayRef, Int64Array, RecordBatch};
use alluvium::{Conflict, Engine, Error, Session, Transaction};

use crate::support::{engine_with, query};

const TABLE: &str = "CREATE TABLE t (a BIGINT, b TEXT, v BIGINT, PRIMARY KEY (a, b));
    INSERT INTO t VALUES (1, 'x', 10), (2, 'y', 20);";

/// The message of a statement that names a key as taken, and changes nothing.
fn refused(engine: &Engine, session: &mut Session, sql: &str, key: &str) {
    let before = query(engine, "SELECT * FROM t");
    let error = session.execute(sql).unwrap_err().to_string();
    assert!(
        error.contains(&format!("(a, b) = ({key})")) && error.contains("\"t\""),
        "{sql}: {error}"
    );
    if !session.in_transaction() {
        assert_eq!(query(engine, "SELECT * FROM t"), before, "{sql}");
    }
}

#[test]
fn statements_onto_a_taken_key_fail_and_change_nothing() {
    for workers in 1..=2 {
        let engine = engine_with(workers, TABLE);
        let mut session = engine.session();
        for (sql, key) in [
            ("INSERT INTO t VALUES (3, 'z', 0), (1, 'x', 0)", "1, x"),
            ("INSERT INTO t VALUES (3, 'z', 0), (3, 'z', 1)", "3, z"),
            ("INSERT INTO t SELECT a, b, 0 FROM t WHERE a = 2", "2, y"),
            ("INSERT INTO t SELECT 7, 'q', v FROM t", "7, q"),
            ("UPDATE t SET a = 1, b = 'x' WHERE a = 2", "1, x"),
            ("UPDATE t SET a = 5, b = 'q'", "5, q"),
            (
                "INSERT INTO t VALUES (1, 'x', 3) ON CONFLICT (a, b) DO UPDATE SET a = 2, b = 'y'",
                "2, y",
            ),
        ] {
            refused(&engine, &mut session, sql, key);
        }
        session
            .execute("UPDATE t SET a = 3 - a, b = CASE WHEN a = 1 THEN 'y' ELSE 'x' END")
            .unwrap();
        assert_eq!(query(&engine, "SELECT * FROM t"), ["1 x 20", "2 y 10"]);
        session.execute("UPDATE t SET v = v + 1; UPDATE t SET a = a + 1 WHERE a = 2").unwrap();
        session.execute("INSERT INTO t VALUES (2, 'y', 0)").unwrap();
        assert_eq!(query(&engine, "SELECT * FROM t"), ["1 x 21", "2 y 0", "3 y 11"]);
    }
}

#[test]
fn keys_of_a_transaction_are_taken_and_free_as_it_has_written_them() {
    let engine = engine_with(2, TABLE);
    let mut session = engine.session();
    session.execute("BEGIN; INSERT INTO t VALUES (3, 'z', 0)").unwrap();
    refused(&engine, &mut session, "INSERT INTO t VALUES (3, 'z', 1)", "3, z");
    session.execute("DELETE FROM t WHERE a = 3; INSERT INTO t VALUES (3, 'z', 2)").unwrap();
    session.execute("DELETE FROM t WHERE a = 1; INSERT INTO t VALUES (1, 'x', 11)").unwrap();
    refused(&engine, &mut session, "INSERT INTO t VALUES (1, 'x', 1)", "1, x");
    session.execute("COMMIT").unwrap();
    assert_eq!(query(&engine, "SELECT * FROM t"), ["1 x 11", "2 y 20", "3 z 2"]);
}

#[test]
fn rows_are_replaced_where_that_is_said() {
    let engine = engine_with(2, TABLE);
    engine
        .execute("INSERT OR REPLACE INTO t VALUES (1, 'x', 11), (3, 'z', 30), (3, 'z', 31)")
        .unwrap();
    assert_eq!(query(&engine, "SELECT * FROM t"), ["1 x 11", "2 y 20", "3 z 31"]);
    let replacing = "CREATE TABLE r (a BIGINT PRIMARY KEY, v BIGINT) WITH ('on_conflict' = 'replace');
        INSERT INTO r VALUES (1, 1), (1, 2); INSERT INTO r VALUES (1, 3); UPDATE r SET a = 1; INSERT INTO r SELECT 1, 4";
    engine.execute(replacing).unwrap();
    assert_eq!(query(&engine, "SELECT * FROM r"), ["1 4"]);
    for (sql, text) in [
        (
            "CREATE TABLE w (a INT PRIMARY KEY) WITH ('on_conflict' = 'ignore')",
            "'error' or 'replace'",
        ),
        ("CREATE TABLE w (a INT) WITH ('on_conflict' = 'replace')", "PRIMARY KEY"),
        ("CREATE TABLE w (a INT); INSERT OR REPLACE INTO w VALUES (1)", "PRIMARY KEY"),
        ("INSERT OR REPLACE INTO t VALUES (1, 'x', 1) ON CONFLICT DO NOTHING", "OR REPLACE"),
    ] {
        let error = engine.execute(sql).unwrap_err().to_string();
        assert!(error.contains(text), "{sql}: {error}");
    }
}

/// More rows than are told apart in memory, in order and not, onto a table with rows and an empty one, within a small budget.
#[test]
fn keys_of_very_many_rows_are_checked() {
    let engine = Engine::builder().workers(2).memory(8 << 20).open_in_memory().unwrap();
    engine.execute(TABLE).unwrap();
    let mut session = engine.session();
    let insert = "INSERT INTO t SELECT n * 7919 % 30000, 'k', n FROM range(0, 30000) AS r (n)";
    session.execute(insert).unwrap();
    assert_eq!(query(&engine, "SELECT COUNT(*) FROM t"), ["30002"]);
    let twice = |session: &mut Session, sql: &str| {
        let error = session.execute(sql).unwrap_err().to_string();
        assert!(error.contains("is in \"t\" already"), "{error}");
        assert_eq!(query(&engine, "SELECT COUNT(*) FROM t"), ["30002"]);
    };
    twice(&mut session, insert);
    twice(&mut session, "INSERT INTO t SELECT 29999 + n, 'k', 0 FROM range(0, 20000) AS r (n)");
    twice(
        &mut session,
        "INSERT INTO t SELECT 40000 + n % 19999, 'k', 0 FROM range(0, 20000) AS r (n)",
    );
    session.execute("UPDATE t SET a = a + 1 WHERE b = 'k'").unwrap();
    twice(&mut session, "UPDATE t SET a = a / 2 * 2 WHERE b = 'k'");
    session
        .execute(
            "INSERT INTO t SELECT 40000 + n * 7919 % 20000, 'k', 0 FROM range(0, 20000) AS r (n)",
        )
        .unwrap();
    assert_eq!(query(&engine, "SELECT COUNT(*) FROM t"), ["50002"]);
}

#[test]
fn of_those_who_insert_one_key_one_does() {
    for workers in 1..=2 {
        let engine = engine_with(workers, TABLE);
        for round in 10..20 {
            let inserted: usize = thread::scope(|scope| {
                let insert = |number: i64| {
                    let engine = &engine;
                    scope.spawn(move || {
                        let done = engine
                            .execute(&format!("INSERT INTO t VALUES ({round}, 'x', {number})"));
                        if let Err(error) = &done {
                            assert!(error.to_string().contains("is in \"t\" already"), "{error}");
                        }
                        usize::from(done.is_ok())
                    })
                };
                let threads: Vec<_> = (0..8).map(insert).collect();
                threads.into_iter().map(|thread| thread.join().unwrap()).sum()
            });
            assert_eq!(inserted, 1);
        }
    }
}

/// Rows of a table with a key and another column.
fn pairs(rows: impl Iterator<Item = (i64, i64)> + Clone) -> RecordBatch {
    let column = |values: Vec<i64>| -> ArrayRef { Arc::new(Int64Array::from(values)) };
    let keys = column(rows.clone().map(|row| row.0).collect());
    let values = column(rows.map(|row| row.1).collect());
    RecordBatch::try_from_iter([("k", keys), ("v", values)]).unwrap()
}

fn one(k: i64, v: i64) -> RecordBatch {
    pairs(std::iter::once((k, v)))
}

/// Fails to commit because a key is taken.
fn refuses_to_commit(transaction: Transaction, key: i64) {
    let error = transaction.commit().unwrap_err();
    let message = error.to_string();
    assert_eq!(error.sqlstate().to_string(), "23505", "{message}");
    assert!(message.contains(&format!("(k) = ({key})")), "{message}");
}

const PAIRS: &str = "CREATE TABLE p (k BIGINT PRIMARY KEY, v BIGINT);
    CREATE TABLE r (k BIGINT PRIMARY KEY, v BIGINT) WITH ('on_conflict' = 'replace');
    INSERT INTO p VALUES (1, 1); INSERT INTO r VALUES (1, 1)";

#[test]
fn what_a_program_inserts_is_checked_when_it_commits() {
    for workers in 1..=2 {
        let engine = engine_with(workers, PAIRS);
        let all = |table: &str| query(&engine, &format!("SELECT * FROM {table}"));
        let begin = || engine.begin().unwrap();

        let mut transaction = begin();
        transaction.insert("p", one(2, 2)).unwrap();
        transaction.insert_columns("p", &["v", "k"], one(9, 1)).unwrap();
        refuses_to_commit(transaction, 1);
        let mut transaction = begin();
        transaction.insert("p", one(2, 2)).unwrap();
        transaction.insert("p", one(2, 3)).unwrap();
        refuses_to_commit(transaction, 2);
        let mut transaction = begin();
        transaction.upsert("p", one(2, 2)).unwrap();
        transaction.insert("p", one(2, 3)).unwrap();
        refuses_to_commit(transaction, 2);
        assert_eq!(all("p"), ["1 1"]);

        // The calls are checked in their order.
        let mut transaction = begin();
        transaction.delete("p", one(1, 0)).unwrap();
        transaction.insert("p", one(1, 11)).unwrap();
        transaction.insert("p", one(2, 2)).unwrap();
        transaction.upsert("p", one(2, 22)).unwrap();
        transaction.insert("p", one(3, 3)).unwrap();
        transaction.delete("p", one(3, 0)).unwrap();
        transaction.upsert_columns("p", &["k"], one(4, 0).project(&[0]).unwrap()).unwrap();
        transaction.commit().unwrap();
        assert_eq!(all("p"), ["1 11", "2 22", "4 NULL"]);

        let mut transaction = begin();
        transaction.insert("r", one(1, 2)).unwrap();
        transaction.insert("r", one(1, 3)).unwrap();
        transaction.commit().unwrap();
        assert_eq!(all("r"), ["1 3"]);
    }
}

/// A program that does not know whether a commit was successful repeats it: its rows are there then, which are its own.
#[test]
fn a_transaction_that_is_repeated_by_its_key_finds_no_key_taken() {
    let engine = engine_with(1, PAIRS);
    let commit = || {
        let mut transaction = engine.begin().unwrap();
        transaction.insert("p", one(7, 7)).unwrap();
        transaction.set_key("once");
        transaction.commit().unwrap()
    };
    assert_eq!(commit(), commit());
    assert_eq!(query(&engine, "SELECT * FROM p"), ["1 1", "7 7"]);
}

#[test]
fn many_rows_of_a_program_are_checked_as_few_are() {
    let engine = Engine::builder().workers(2).memory(8 << 20).open_in_memory().unwrap();
    engine.execute(PAIRS).unwrap();
    let insert = |rows: Vec<RecordBatch>| {
        let mut transaction = engine.begin().unwrap();
        rows.into_iter().for_each(|rows| transaction.insert("p", rows).unwrap());
        transaction
    };
    let ascending = |from: i64| pairs((from..from + 15_000).map(|k| (k, k)));
    let mixed = |from: i64| pairs((0..15_000).map(move |k| (from + k * 7919 % 15_000, k)));
    refuses_to_commit(insert(vec![ascending(1)]), 1);
    refuses_to_commit(insert(vec![mixed(1)]), 1);
    insert(vec![ascending(2), ascending(20_002)]).commit().unwrap();
    insert(vec![mixed(40_000), mixed(60_000)]).commit().unwrap();
    refuses_to_commit(insert(vec![ascending(80_000), one(80_000, 0)]), 80_000);
    refuses_to_commit(insert(vec![mixed(80_000), one(93_000, 0)]), 93_000);
    let mut transaction = insert(vec![mixed(80_000)]);
    transaction.delete("p", ascending(80_000)).unwrap();
    transaction.insert("p", ascending(80_000)).unwrap();
    transaction.insert("p", one(79_999, 0)).unwrap();
    transaction.commit().unwrap();
    assert_eq!(query(&engine, "SELECT COUNT(*) FROM p"), ["75002"]);
}

/// A key is inserted by one of those who insert it at the same time, and the others are told that it is taken, or that they have run
/// into each other.
#[test]
fn of_programs_that_insert_one_key_one_does() {
    let engine = engine_with(2, PAIRS);
    for round in 10..40 {
        let inserted: usize = thread::scope(|scope| {
            let insert = |number: i64| {
                let engine = &engine;
                scope.spawn(move || {
                    let mut transaction = engine.begin().unwrap();
                    transaction.insert("p", one(round, number)).unwrap();
                    match transaction.commit() {
                        Ok(_) => 1,
                        Err(Error::Conflict { kind: Conflict::Serialization, .. }) => 0,
                        Err(error) => {
                            assert_eq!(error.sqlstate().to_string(), "23505", "{error}");
                            0
                        }
                    }
                })
            };
            let threads: Vec<_> = (0..8).map(insert).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        assert_eq!(inserted, 1);
        assert_eq!(query(&engine, &format!("SELECT COUNT(*) FROM p WHERE k = {round}")), ["1"]);
    }
}
