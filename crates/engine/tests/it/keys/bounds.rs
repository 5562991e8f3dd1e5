//! Bounds of a statement hold as well when its plan is kept, as a text and prepared.

use std::sync::Arc;

use alluvium::{Access, Action, Authorizer, Error, Outcome, Prepared, Session};

use crate::support::{engine_with, lines};

const TABLES: &str = "
    CREATE TABLE t (id INTEGER PRIMARY KEY, v BIGINT); INSERT INTO t VALUES (1, 10), (2, 20);
    CREATE SCHEMA s;
    CREATE TABLE s.t (id INTEGER PRIMARY KEY, v BIGINT); INSERT INTO s.t VALUES (1, 11)";
const READ: &str = "SELECT v FROM t WHERE id = 1";
const RANGE: &str = "SELECT v FROM t WHERE id <= 1";
const UPDATE: &str = "UPDATE t SET v = 10 WHERE id = 1";

/// Makes the plans kept, and returns the statements prepared.
fn keep(session: &mut Session) -> Vec<(&'static str, Prepared)> {
    let statements = [READ, RANGE, UPDATE].map(|sql| {
        let prepared = session.prepare(sql).expect(sql);
        for _ in 0..3 {
            session.execute(sql).expect(sql);
            session.execute_prepared(&prepared, &[]).expect(sql);
        }
        (sql, prepared)
    });
    statements.into()
}

/// The answers of a statement as a text, with values, and prepared.
fn each(
    session: &mut Session,
    (sql, prepared): &(&'static str, Prepared),
) -> [alluvium::Result<Outcome>; 3] {
    [
        session.execute(sql).map(|mut outcomes| outcomes.remove(0)),
        session.execute_with(sql, &[]),
        session.execute_prepared(prepared, &[]),
    ]
}

fn rows(outcome: alluvium::Result<Outcome>) -> Vec<String> {
    match outcome {
        Ok(Outcome::Rows(rows)) => lines(&rows.into_batches().expect("rows")),
        other => panic!("rows are expected, not {other:?}"),
    }
}

#[test]
fn transactions_that_only_read_refuse_kept_writes() {
    let engine = engine_with(1, TABLES);
    let mut session = engine.session();
    let statements = keep(&mut session);
    for (begin, end) in
        [("BEGIN READ ONLY", "ROLLBACK"), ("SET default_transaction_read_only = on", "RESET ALL")]
    {
        session.execute(begin).expect(begin);
        for outcome in each(&mut session, &statements[2]) {
            let error = outcome.expect_err("it writes").to_string();
            assert!(error.contains("UPDATE in a transaction that is READ ONLY"), "{error}");
        }
        for statement in &statements[..2] {
            for outcome in each(&mut session, statement) {
                assert_eq!(rows(outcome), ["10"]);
            }
        }
        session.execute(end).expect(end);
    }
    for outcome in each(&mut session, &statements[2]) {
        outcome.expect("it may write again");
    }
}

#[test]
fn names_of_kept_texts_are_looked_for_in_the_search_path() {
    let engine = engine_with(1, TABLES);
    let mut session = engine.session();
    let statements = keep(&mut session);
    session.execute("SET search_path = s").expect("it can be set");
    let in_schema = session.prepare(READ).expect("it is right");
    for (sql, prepared) in &statements[..2] {
        for _ in 0..3 {
            assert_eq!(rows(session.execute_with(sql, &[])), ["11"], "{sql}");
            // It was prepared with another path.
            assert_eq!(rows(session.execute_prepared(prepared, &[])), ["10"], "{sql}");
            assert_eq!(rows(session.execute_prepared(&in_schema, &[])), ["11"], "{sql}");
        }
    }
    session.execute("RESET search_path").expect("it can be reset");
    assert_eq!(rows(session.execute_with(READ, &[])), ["10"]);
    assert_eq!(rows(session.execute_prepared(&in_schema, &[])), ["11"]);
}

/// Allows nothing but to read one relation.
struct Reads(&'static str);

impl Authorizer for Reads {
    fn allows(&self, access: &Access<'_>) -> bool {
        access.action == Action::Select
            && matches!(access.object, alluvium::Object::Relation(name) if name == self.0)
    }
}

#[test]
fn rights_are_those_of_the_session_that_runs_a_kept_plan() {
    let engine = engine_with(1, TABLES);
    let statements = keep(&mut engine.session());
    let mut session = engine.session();
    for (allowed, reads) in [("another", false), ("t", true), ("another", false)] {
        session.set_authorizer("ada", Arc::new(Reads(allowed)));
        for (number, statement) in statements.iter().enumerate() {
            for outcome in each(&mut session, statement) {
                match outcome {
                    Ok(outcome) => {
                        assert!(reads && number < 2, "{}", statement.0);
                        assert_eq!(rows(Ok(outcome)), ["10"]);
                    }
                    Err(Error::Denied { position: Some(_), .. }) => {
                        assert!(!reads || number == 2, "{}", statement.0);
                    }
                    Err(other) => panic!("{}: {other}", statement.0),
                }
            }
        }
        assert_eq!(session.prepare(READ).is_ok(), reads);
        assert_eq!(session.describe(READ).is_ok(), reads);
    }
}

#[test]
fn kept_writes_wait_no_longer_than_timeouts_allow() {
    let engine = engine_with(1, TABLES);
    let mut session = engine.session();
    let statements = keep(&mut session);
    let mut other = engine.session();
    other.execute("BEGIN; UPDATE t SET v = 7 WHERE id = 1").expect("nobody else writes");
    session.execute("SET statement_timeout = '50ms'").expect("it can be set");
    for outcome in each(&mut session, &statements[2]) {
        assert!(matches!(outcome, Err(Error::TimedOut)), "{outcome:?}");
    }
    session.execute("RESET ALL; SET lock_timeout = '50ms'").expect("it can be set");
    for outcome in each(&mut session, &statements[2]) {
        let error = outcome.expect_err("another one writes").to_string();
        assert!(error.contains("lock_timeout"), "{error}");
    }
    other.execute("COMMIT").expect("it holds the lock");
    for outcome in each(&mut session, &statements[2]) {
        outcome.expect("nobody else writes");
    }
}

#[test]
fn kept_plans_end_when_they_are_interrupted() {
    let engine = engine_with(1, TABLES);
    let mut session = engine.session();
    let statements = keep(&mut session);
    let interrupt = engine.interrupt();
    interrupt.request();
    interrupt.watch(|| {
        for statement in &statements[..2] {
            for outcome in each(&mut session, statement) {
                assert!(matches!(outcome, Err(Error::Interrupted)), "{outcome:?}");
            }
        }
    });
    interrupt.clear();
    assert_eq!(rows(session.execute_with(READ, &[])), ["10"]);
}
