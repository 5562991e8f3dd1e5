//! Transactions as clients of Postgres run them: savepoints, transactions that an error aborts, and codes of errors.

use alluvium::{Engine, Error, Outcome, Session, SqlState};

use crate::support::{engine_with, lines};

mod cursors;
mod definitions;
mod prepared;
mod recorded;
mod savepoints;
mod several;

const TABLES: &str = "
    CREATE TABLE part (id BIGINT PRIMARY KEY, name VARCHAR NOT NULL);
    CREATE TABLE sale (part BIGINT, day VARCHAR);";

/// A session whose transactions errors abort, and one whose they do not.
fn sessions() -> (Engine, Session, Session) {
    let engine = engine_with(2, TABLES);
    let (mut strict, lenient) = (engine.session(), engine.session());
    strict.set_aborts_on_error(true);
    (engine, strict, lenient)
}

/// Runs statements that are right.
fn run(session: &mut Session, sql: &str) -> Vec<Outcome> {
    session.execute(sql).unwrap_or_else(|error| panic!("{sql}: {error}"))
}

/// The answer to the last of some statements as sorted lines.
fn rows(session: &mut Session, sql: &str) -> Vec<String> {
    match run(session, sql).pop() {
        Some(Outcome::Rows(rows)) => lines(&rows.into_batches().expect("rows")),
        other => panic!("rows are expected, not {other:?}"),
    }
}

/// The error of statements of which one is wrong, with its code.
fn error(session: &mut Session, sql: &str) -> (SqlState, String) {
    match session.execute(sql) {
        Ok(outcomes) => panic!("{sql}: {outcomes:?}"),
        Err(error) => (error.sqlstate(), error.to_string()),
    }
}

#[track_caller]
fn fails(session: &mut Session, sql: &str, sqlstate: SqlState) {
    let (found, message) = error(session, sql);
    assert_eq!(found, sqlstate, "{sql}: {message}");
}

#[test]
fn a_failed_statement_aborts_the_transaction_of_a_session_that_says_so() {
    let (_engine, mut strict, mut lenient) = sessions();
    run(&mut strict, "BEGIN; INSERT INTO part VALUES (1, 'bolt')");
    fails(&mut strict, "INSERT INTO part VALUES (2, NULL)", SqlState::NOT_NULL);
    assert!(strict.is_aborted() && strict.in_transaction());
    for sql in [
        "SELECT 1",
        "INSERT INTO part VALUES (2, 'nut')",
        "SAVEPOINT a",
        "RELEASE a",
        "BEGIN",
        "SHOW search_path",
        "SET search_path = a",
        "CREATE TABLE other (a INT)",
    ] {
        fails(&mut strict, sql, SqlState::ABORTED);
        assert!(strict.prepare(sql).is_err_and(|error| error.sqlstate() == SqlState::ABORTED));
    }
    // It does not hold up others.
    run(&mut lenient, "INSERT INTO part VALUES (3, 'cog')");
    assert!(matches!(run(&mut strict, "COMMIT")[..], [Outcome::RolledBack]));
    assert!(!strict.is_aborted() && !strict.in_transaction());
    assert_eq!(rows(&mut strict, "SELECT * FROM part"), ["3 cog"]);
}

#[test]
fn an_aborted_transaction_is_rolled_back_by_rollback_and_its_settings_return() {
    let (_engine, mut strict, _) = sessions();
    run(&mut strict, "BEGIN; SET application_name = 'lost'; INSERT INTO part VALUES (1, 'bolt')");
    fails(&mut strict, "SELEC 1", SqlState::SYNTAX);
    assert!(strict.is_aborted(), "a text that cannot be parsed aborts it");
    assert!(matches!(run(&mut strict, "ROLLBACK")[..], [Outcome::Done]));
    assert_eq!(strict.setting("application_name").unwrap(), "");
    assert!(rows(&mut strict, "SELECT * FROM part").is_empty());
    fails(&mut strict, "ROLLBACK", SqlState::NO_TRANSACTION);
    fails(&mut strict, "SELECT * FROM absent", SqlState::NO_RELATION);
    assert!(!strict.in_transaction(), "a statement of its own aborts nothing");
    run(&mut strict, "INSERT INTO part VALUES (1, 'bolt')");
}

#[test]
fn what_is_prepared_described_or_kept_aborts_as_well() {
    let (_engine, mut strict, _) = sessions();
    let insert = strict.prepare("INSERT INTO part VALUES ($1, $2)").unwrap();
    let rollback = strict.prepare("ROLLBACK").unwrap();
    let row = |id: i64, name: &str| [id.into(), name.into()];
    strict.execute_prepared(&insert, &row(1, "bolt")).unwrap();
    run(&mut strict, "SELECT name FROM part WHERE id = 1; BEGIN");
    let wrong = strict.execute_prepared(&insert, &[1_i64.into()]).unwrap_err();
    assert!(strict.is_aborted(), "{wrong}");
    let refused = strict.execute_prepared(&insert, &row(2, "nut")).unwrap_err();
    assert_eq!(refused.sqlstate(), SqlState::ABORTED);
    // Also where a plan is kept of the text.
    fails(&mut strict, "SELECT name FROM part WHERE id = 1", SqlState::ABORTED);
    strict.execute_prepared(&rollback, &[]).unwrap();
    for wrong in ["SELECT * FROM absent", "SELECT", "SELECT 1; SELECT 2"] {
        run(&mut strict, "BEGIN");
        strict.describe(wrong).unwrap_err();
        assert!(strict.is_aborted(), "{wrong}");
        strict.describe("ROLLBACK").unwrap();
        run(&mut strict, "ROLLBACK; BEGIN");
        strict.execute_with(wrong, &[]).unwrap_err();
        assert!(strict.is_aborted(), "{wrong}");
        run(&mut strict, "ROLLBACK");
    }
}

#[test]
fn rows_that_fail_when_they_are_pulled_abort_their_own_transaction_only() {
    let (_engine, mut strict, _) = sessions();
    run(&mut strict, "INSERT INTO sale SELECT x, 'day' FROM range(100000) AS r(x)");
    let sql = "SELECT 1 / (part - 90000) FROM sale";
    let pulled = |session: &mut Session| match session.execute_with(sql, &[]) {
        Ok(Outcome::Rows(rows)) => rows,
        other => panic!("{other:?}"),
    };
    run(&mut strict, "BEGIN");
    let (mut first, later) = (pulled(&mut strict), pulled(&mut strict));
    assert!(!strict.is_aborted());
    let error = first.find_map(Result::err).expect("a division by zero");
    assert_eq!(error.sqlstate(), SqlState::DIVISION_BY_ZERO, "{error}");
    assert!(strict.is_aborted());
    fails(&mut strict, "SELECT 1", SqlState::ABORTED);
    run(&mut strict, "ROLLBACK; BEGIN");
    later.into_batches().unwrap_err();
    assert!(!strict.is_aborted(), "the rows were of another transaction");
    run(&mut strict, "COMMIT");
}

#[test]
fn transactions_follow_each_other_with_and_chain() {
    let (_engine, mut strict, mut lenient) = sessions();
    for session in [&mut strict, &mut lenient] {
        run(session, "BEGIN ISOLATION LEVEL REPEATABLE READ, READ WRITE NOT DEFERRABLE");
        run(session, "INSERT INTO sale VALUES (1, 'a'); COMMIT AND CHAIN");
        assert!(session.in_transaction());
        assert_eq!(rows(session, "SHOW transaction_isolation"), ["repeatable read"]);
        run(session, "INSERT INTO sale VALUES (2, 'b'); ROLLBACK AND CHAIN");
        assert_eq!(rows(session, "SHOW transaction_isolation"), ["repeatable read"]);
        run(session, "SET TRANSACTION READ ONLY; END WORK AND CHAIN");
        fails(session, "INSERT INTO sale VALUES (3, 'c')", SqlState::READ_ONLY);
        run(session, "ABORT; INSERT INTO sale VALUES (4, 'd')");
        assert_eq!(rows(session, "SHOW transaction_isolation"), ["serializable"]);
    }
    run(&mut strict, "BEGIN");
    strict.execute("nonsense").unwrap_err();
    assert!(matches!(run(&mut strict, "COMMIT AND CHAIN")[..], [Outcome::RolledBack]));
    assert!(strict.in_transaction() && !strict.is_aborted());
    run(&mut strict, "ROLLBACK");
    assert_eq!(rows(&mut strict, "SELECT * FROM sale"), ["1 a", "1 a", "4 d", "4 d"]);
}

#[test]
fn errors_have_the_codes_of_postgres() {
    let (_engine, _, mut session) = sessions();
    run(&mut session, "INSERT INTO part VALUES (1, 'bolt'); CREATE VIEW v AS SELECT * FROM part");
    let keyed = "CREATE TABLE keyed (id INT PRIMARY KEY) WITH ('on_conflict' = 'error'); INSERT INTO keyed VALUES (1)";
    run(&mut session, keyed);
    let mut others = Vec::new();
    for (sql, sqlstate) in [
        ("SELEC 1", "42601"),
        ("SELECT 1 +", "42601"),
        ("SELECT 'a", "42601"),
        ("SELECT (1", "42601"),
        ("SELECT * FROM absent", "42P01"),
        ("INSERT INTO absent VALUES (1)", "42P01"),
        ("DROP TABLE absent", "42P01"),
        ("ALTER TABLE absent RENAME TO other", "42P01"),
        ("SELECT absent FROM part", "42703"),
        ("UPDATE part SET absent = 1", "42703"),
        ("INSERT INTO part (absent) VALUES (1)", "42703"),
        ("SELECT id FROM part a, part b", "42702"),
        ("SELECT absent(1)", "42883"),
        ("INSERT INTO keyed VALUES (1)", "23505"),
        ("INSERT INTO part VALUES (2, NULL)", "23502"),
        ("UPDATE part SET name = NULL", "23502"),
        ("SELECT 1 / (id - 1) FROM part", "22012"),
        ("SELECT 1 / 0", "22012"),
        ("SELECT id + 9223372036854775807 FROM part", "22003"),
        ("SELECT CAST(id * 1000 AS TINYINT) FROM part", "22003"),
        ("SELECT CAST(name AS INT) FROM part", "22P02"),
        ("SELECT CAST('x' AS DATE)", "22P02"),
        ("INSERT INTO part VALUES ('x', 'y')", "22P02"),
        ("CREATE TABLE part (a INT)", "42P07"),
        ("CREATE VIEW part AS SELECT 1 AS x", "42P07"),
        ("CREATE SCHEMA public", "42P06"),
        ("CREATE TABLE t (a INT, a INT)", "42701"),
        ("ALTER TABLE part ADD name VARCHAR", "42701"),
        ("CREATE TABLE absent.t (a INT)", "3F000"),
        ("INSERT INTO v VALUES (1, 'x')", "42809"),
        ("SET absent = 1", "42704"),
        ("SET statement_timeout = 'x'", "22023"),
        ("MERGE INTO part USING part ON true WHEN MATCHED THEN DELETE", "0A000"),
        ("COMMIT", "25P01"),
        ("BEGIN; BEGIN", "25001"),
        ("ROLLBACK; BEGIN READ ONLY; DELETE FROM part", "25006"),
        (
            "ROLLBACK; SET statement_timeout = 1; SELECT count(*) FROM range(100000000) a(x), range(1000) b(y)",
            "57014",
        ),
    ] {
        let (found, message) = error(&mut session, sql);
        if found.as_str() != sqlstate {
            others.push(format!("{sql}: {message} ({found}, not {sqlstate})"));
        }
    }
    assert!(others.is_empty(), "{others:#?}");
    let interrupted = Error::Interrupted.sqlstate();
    assert_eq!((interrupted, interrupted.to_string().as_str()), (SqlState::CANCELED, "57014"));
}

#[test]
fn what_a_transaction_reads_is_said_before_its_first_query() {
    let (_engine, _, mut session) = sessions();
    run(&mut session, "BEGIN; SET TRANSACTION ISOLATION LEVEL READ COMMITTED; SELECT * FROM part");
    fails(
        &mut session,
        "SET TRANSACTION ISOLATION LEVEL SERIALIZABLE",
        SqlState::ACTIVE_TRANSACTION,
    );
    run(&mut session, "SET TRANSACTION ISOLATION LEVEL READ COMMITTED; SET TRANSACTION READ ONLY");
    fails(&mut session, "SET TRANSACTION READ WRITE", SqlState::ACTIVE_TRANSACTION);
    run(&mut session, "ROLLBACK; BEGIN; INSERT INTO sale VALUES (1, 'monday')");
    fails(
        &mut session,
        "SET transaction_isolation = 'repeatable read'",
        SqlState::ACTIVE_TRANSACTION,
    );
    run(&mut session, "COMMIT");
}
