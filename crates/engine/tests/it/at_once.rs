//! Statements that a server runs on a connection's task.

use alluvium::unstable::SessionParts;
use alluvium::{Outcome, Prepared, Session, SqlState};

use crate::support::{engine_with, lines, settled};

#[test]
fn a_statement_by_key_in_a_transaction_runs_at_once_unless_it_has_to_wait() {
    let engine = engine_with(
        2,
        "CREATE TABLE t (id INT PRIMARY KEY, n INT NOT NULL);
         INSERT INTO t VALUES (1, 10), (2, 20)",
    );
    let mut session = engine.session();
    session.set_aborts_on_error(true);
    let texts = [
        "BEGIN",
        "UPDATE t SET n = n + 1 WHERE id = $1",
        "DELETE FROM t WHERE id = $1",
        "INSERT INTO t VALUES ($1, 5)",
        "SELECT n * 2 FROM t WHERE id = $1",
        "UPDATE t SET n = 0 WHERE id >= $1",
        "UPDATE t SET n = NULL WHERE id = $1",
    ];
    let [begin, update, delete, insert, select, all, refused] =
        texts.map(|text| session.prepare(text).unwrap());
    let at_once = |session: &mut Session, prepared: &Prepared, id: i32| {
        let values = [id.into()];
        let takes = prepared.description().parameters.len();
        let outcome = session.execute_at_once(prepared, &values[..takes])?;
        Some(outcome.map(|outcome| match outcome {
            Outcome::Rows(rows) => lines(&rows.into_batches().unwrap()).join(" "),
            Outcome::Changed { rows, .. } => rows.to_string(),
            _ => String::new(),
        }))
    };
    let told = |text: &str| Some(Ok(text.to_owned()));
    // Plans are kept from the first run on.
    for prepared in [&update, &delete, &insert, &select, &all] {
        assert_eq!(at_once(&mut session, prepared, 7), None, "{}", prepared.text());
        session.execute_prepared(prepared, &[7_i32.into()]).unwrap();
        assert_eq!(at_once(&mut session, prepared, 7), None, "it commits: {}", prepared.text());
    }
    session.execute_prepared(&refused, &[99_i32.into()]).unwrap();
    assert_eq!(at_once(&mut session, &begin, 0), told(""));
    assert!(session.in_transaction());
    // The version that it reads is there once it has read something.
    session.execute("SELECT n FROM t").unwrap();
    assert_eq!(at_once(&mut session, &update, 1), told("1"));
    assert_eq!(at_once(&mut session, &select, 1), told("22"));
    assert_eq!(at_once(&mut session, &all, 1), None, "it may be of many rows");
    let mut other = engine.session();
    other.set_aborts_on_error(true);
    other.execute("BEGIN; SELECT n FROM t").unwrap();
    assert_eq!(at_once(&mut other, &update, 2), told("1"));
    assert_eq!(at_once(&mut session, &delete, 2), None, "another transaction has the row");
    assert!(!session.is_aborted());
    session.execute("SET lock_timeout = '1h'").unwrap();
    assert_eq!(at_once(&mut session, &delete, 2), None, "whatever the timeout is");
    assert!(!session.is_aborted());
    other.execute("ROLLBACK").unwrap();
    assert_eq!(at_once(&mut session, &delete, 2), told("1"));
    assert_eq!(at_once(&mut session, &insert, 2), told("1"));
    session.execute("SAVEPOINT s").unwrap();
    let text = "UPDATE t SET n = n + 100 WHERE id = 2";
    for _ in 0..2 {
        session.execute(text).unwrap();
    }
    let (command, outcome) = session.execute_text_at_once(text).unwrap().unwrap();
    assert!(matches!((command, outcome), ("UPDATE", Outcome::Changed { rows: 1, .. })));
    let failed = at_once(&mut session, &refused, 1).expect("it need not wait");
    assert_eq!(failed.unwrap_err().sqlstate(), SqlState::NOT_NULL);
    assert!(session.is_aborted());
    assert_eq!(at_once(&mut session, &select, 1), None, "it is aborted");
    session.execute("ROLLBACK TO s; COMMIT").unwrap();
    assert_eq!(settled(&engine, "SELECT * FROM t ORDER BY id"), ["1 11", "2 5", "7 0"]);
}

#[test]
fn what_a_statement_read_before_it_had_to_wait_is_no_conflict() {
    let engine =
        engine_with(2, "CREATE TABLE t (id INT PRIMARY KEY, n INT); INSERT INTO t VALUES (1, 10)");
    let (mut first, mut second) = (engine.session(), engine.session());
    let text = "UPDATE t SET n = n + 1 WHERE id = 1";
    let update = second.prepare(text).unwrap();
    for _ in 0..2 {
        second.execute_prepared(&update, &[]).unwrap();
        second.execute(text).unwrap();
    }
    for by_text in [false, true] {
        first.execute("BEGIN; UPDATE t SET n = n + 1 WHERE id = 1").unwrap();
        second.execute("BEGIN").unwrap();
        let waits = match by_text {
            true => second.execute_text_at_once(text).is_none(),
            false => second.execute_at_once(&update, &[]).is_none(),
        };
        assert!(waits, "the first has the row");
        first.execute("COMMIT").unwrap();
        second.execute_prepared(&update, &[]).unwrap();
        second.execute("COMMIT").unwrap();
    }
    assert_eq!(settled(&engine, "SELECT n FROM t"), ["18"]);
}
