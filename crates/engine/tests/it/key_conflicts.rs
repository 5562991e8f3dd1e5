//! Keys that are taken: rows replace others, or that is an error, as the statement or the table says.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::thread;

use alluvium::{Engine, Session};

use crate::support::{engine_with, query};

const TABLE: &str = "CREATE TABLE t (a BIGINT, b TEXT, v BIGINT, PRIMARY KEY (a, b)) WITH ('on_conflict' = 'error');
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
