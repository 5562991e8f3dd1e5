//! Settings of a session: SET, SHOW, RESET and what they do.

use std::fs;
use std::io::Write;
use std::path::Path;

use alluvium::{Outcome, Session};

use crate::support::{batch_lines, engine, engine_with};

/// The rows of the last of some statements, in order.
fn rows(session: &mut Session, sql: &str) -> Vec<String> {
    match session.execute(sql).unwrap_or_else(|error| panic!("{sql}: {error}")).pop() {
        Some(Outcome::Rows(rows)) => {
            rows.flat_map(|rows| batch_lines(&rows.expect("rows"))).collect()
        }
        other => panic!("rows are expected, not {other:?}"),
    }
}

fn shown(session: &mut Session, name: &str) -> String {
    rows(session, &format!("SHOW {name}")).concat()
}

fn error(session: &mut Session, sql: &str) -> String {
    let error = session.execute(sql).expect_err(sql);
    match error.position() {
        Some((line, column)) => format!("{line}:{column} {error}"),
        None => error.to_string(),
    }
}

fn session() -> Session {
    engine(1).session()
}

#[test]
fn a_setting_is_set_shown_and_reset_in_all_spellings() {
    let mut session = session();
    for (set, name, value) in [
        ("SET application_name = 'psql'", "application_name", "psql"),
        ("SET SESSION application_name TO dbt", "APPLICATION_NAME", "dbt"),
        ("SET TIME ZONE 'Etc/UTC'", "TIME ZONE", "UTC"),
        ("SET TimeZone TO 'utc'", "TimeZone", "UTC"),
        ("SET TIME ZONE 0", "timezone", "UTC"),
        ("SET TIME ZONE INTERVAL '+00:00' HOUR TO MINUTE", "timezone", "UTC"),
        ("SET TIME ZONE LOCAL", "timezone", "UTC"),
        ("SET NAMES 'utf8'", "client_encoding", "UTF8"),
        ("SET client_encoding = 'UTF8'", "client_encoding", "UTF8"),
        ("SET datestyle TO ISO, DMY", "DateStyle", "ISO, DMY"),
        ("SET extra_float_digits = 3", "extra_float_digits", "3"),
        ("SET standard_conforming_strings = on", "standard_conforming_strings", "on"),
        ("SET statement_timeout = 30000", "statement_timeout", "30s"),
        ("SET statement_timeout TO '2min'", "statement_timeout", "2min"),
        ("SET lock_timeout = 0", "lock_timeout", "0"),
        ("SET row_security = off", "row_security", "off"),
        ("SET check_function_bodies = false", "check_function_bodies", "off"),
        ("SET client_min_messages = WARNING", "client_min_messages", "warning"),
        ("SET search_path TO a, \"B c\", public", "search_path", "a, \"B c\", public"),
        ("SET SCHEMA 'a'", "search_path", "a"),
        ("SET search_path = ''", "search_path", "\"\""),
        ("SET search_path = DEFAULT", "search_path", "public"),
        (
            "SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL READ COMMITTED, READ WRITE",
            "default_transaction_isolation",
            "read committed",
        ),
        ("SET jit = 'off'", "transaction isolation level", "read committed"),
    ] {
        session.execute(set).unwrap_or_else(|error| panic!("{set}: {error}"));
        assert_eq!(shown(&mut session, name), value, "{set}");
    }
    session.execute("RESET client_min_messages").unwrap();
    assert_eq!(shown(&mut session, "client_min_messages"), "notice");
    session.execute("RESET ALL").unwrap();
    assert_eq!(shown(&mut session, "application_name"), "");
    assert_eq!(shown(&mut session, "transaction_isolation"), "serializable");
    session.execute("SET application_name = 'x'; DISCARD ALL").unwrap();
    assert_eq!(session.setting("Application_Name").unwrap(), "");
    let all = rows(&mut session, "SHOW ALL");
    assert!(all.iter().any(|row| row.starts_with("TimeZone UTC ")), "{all:?}");
}

#[test]
fn values_that_would_change_results_are_refused_where_they_stand() {
    let mut session = session();
    for (set, message) in [
        (
            "SET TIME ZONE 'Europe/Berlin'",
            "1:5 the setting \"TimeZone\" cannot be \"Europe/Berlin\": sessions are in UTC",
        ),
        (
            "SET client_encoding = latin1",
            "1:5 the setting \"client_encoding\" cannot be \"latin1\": text is Unicode",
        ),
        (
            "SET standard_conforming_strings = off",
            "1:5 the setting \"standard_conforming_strings\" cannot be \"off\": a backslash in '…' stands for itself",
        ),
        (
            "SET datestyle = German",
            "1:5 the setting \"DateStyle\" cannot be \"german\": dates have the form of ISO, with an order: ISO, MDY",
        ),
        (
            "SET extra_float_digits = 0",
            "1:5 the setting \"extra_float_digits\" takes 1, 2, 3, not \"0\"",
        ),
        (
            "SET statement_timeout = -1",
            "1:5 the setting \"statement_timeout\" takes a number of milliseconds, or one with ms, s, min, h or d, not \"-1\"",
        ),
        (
            "SET row_security = maybe",
            "1:5 the setting \"row_security\" takes on or off, not \"maybe\"",
        ),
        ("SET server_encoding = 'LATIN1'", "1:5 the setting \"server_encoding\" cannot be changed"),
        (
            "SELECT 1;\n SET LOCAL nothing = 1",
            "2:12 there is no setting \"nothing\"; SHOW ALL lists them",
        ),
        ("SHOW nothing", "1:6 there is no setting \"nothing\"; SHOW ALL lists them"),
        ("SET bytea_output", "1:17 expected TO, found the end of the statement"),
    ] {
        assert_eq!(error(&mut session, set), message, "{set}");
    }
    assert_eq!(session.set("timezone", "Asia/Tokyo").unwrap_err().position(), None);
}

#[test]
fn a_transaction_takes_back_what_was_set_in_it_as_postgres_does() {
    let mut session = session();
    session.execute("SET application_name = 'outer'").unwrap();
    session
        .execute("BEGIN; SET application_name = 'set'; SET LOCAL application_name = 'local'")
        .unwrap();
    assert_eq!(shown(&mut session, "application_name"), "local");
    session.execute("COMMIT").unwrap();
    assert_eq!(shown(&mut session, "application_name"), "set");
    session
        .execute("BEGIN; SET LOCAL application_name = 'local'; SET application_name = 'lost'")
        .unwrap();
    assert_eq!(shown(&mut session, "application_name"), "lost");
    session.execute("ROLLBACK").unwrap();
    assert_eq!(shown(&mut session, "application_name"), "set");
    session.execute("BEGIN; RESET ALL").unwrap();
    assert_eq!(shown(&mut session, "application_name"), "");
    session.execute("ROLLBACK; SET LOCAL application_name = 'nothing'").unwrap();
    assert_eq!(shown(&mut session, "application_name"), "set");
    session.set("application_name", "rust").unwrap();
    assert_eq!(session.setting("application_name").unwrap(), "rust");
}

#[test]
fn a_transaction_that_is_read_only_does_not_write() {
    let engine = engine_with(1, "CREATE TABLE t (a INT)");
    let mut session = engine.session();
    session.execute("BEGIN TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY").unwrap();
    assert_eq!(shown(&mut session, "transaction_read_only"), "on");
    assert_eq!(shown(&mut session, "transaction isolation level"), "repeatable read");
    assert_eq!(rows(&mut session, "SELECT count(*) FROM t"), ["0"]);
    let message = error(&mut session, "INSERT INTO t VALUES (1)");
    assert_eq!(message, "1:1 INSERT in a transaction that is READ ONLY");
    session.execute("COMMIT; INSERT INTO t VALUES (1)").unwrap();
    assert_eq!(shown(&mut session, "transaction isolation level"), "serializable");

    session.execute("SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY").unwrap();
    for sql in [
        "DELETE FROM t",
        "CREATE TABLE u (a INT)",
        "BEGIN; UPDATE t SET a = 2",
        "ROLLBACK; DROP TABLE t",
    ] {
        let message = error(&mut session, sql);
        assert!(message.ends_with("in a transaction that is READ ONLY"), "{sql}: {message}");
    }
    session.execute("BEGIN READ WRITE; UPDATE t SET a = 2; COMMIT").unwrap();
    session.execute("BEGIN; SET TRANSACTION READ WRITE; UPDATE t SET a = a + 1; COMMIT").unwrap();
    assert_eq!(rows(&mut session, "SELECT a FROM t"), ["3"]);
    session.execute("RESET default_transaction_read_only; DELETE FROM t").unwrap();
}

/// Two schemas with tables of one name, and one that only the first has.
const SCHEMAS: &str = "
    CREATE SCHEMA one; CREATE SCHEMA two;
    CREATE TABLE one.t (a INT PRIMARY KEY, b INT); INSERT INTO one.t VALUES (1, 10);
    CREATE TABLE two.t (a INT PRIMARY KEY, b INT); INSERT INTO two.t VALUES (2, 20);
    CREATE TABLE t (a INT PRIMARY KEY, b INT); INSERT INTO t VALUES (3, 30);
    CREATE TABLE one.only (a INT); INSERT INTO one.only VALUES (7);";

#[test]
fn names_are_looked_for_in_the_schemas_of_the_search_path_in_order() {
    let engine = engine_with(2, SCHEMAS);
    let mut session = engine.session();
    for (path, a) in [("one", "1"), ("two, one", "2"), ("nowhere, public, one", "3")] {
        session.set("search_path", path).unwrap();
        assert_eq!(rows(&mut session, "SELECT t.a FROM t"), [a], "{path}");
        assert_eq!(rows(&mut session, "SELECT t.* FROM t, public.t AS u")[0][..1], *a, "{path}");
        // By key, from the third time on with the plan that is kept.
        for _ in 0..4 {
            let sql = format!("SELECT b FROM t WHERE a = {a}");
            assert_eq!(rows(&mut session, &sql), [format!("{a}0")], "{path}");
        }
        assert_eq!(rows(&mut session, "SELECT b FROM t WHERE a = 4"), [""; 0]);
    }
    session.execute("SET search_path TO two, one").unwrap();
    assert_eq!(rows(&mut session, "SELECT a FROM only"), ["7"]);
    assert_eq!(
        rows(&mut session, "WITH only AS (SELECT a + 1 AS a FROM only) SELECT a FROM only"),
        ["8"]
    );
    assert_eq!(
        rows(
            &mut session,
            "WITH RECURSIVE t AS (SELECT 1 AS a UNION SELECT a + 1 FROM t WHERE a < 3) SELECT count(*) FROM t"
        ),
        ["3"]
    );
    assert_eq!(
        rows(
            &mut session,
            "SELECT (SELECT max(a) FROM only) + a FROM t WHERE EXISTS (SELECT 1 FROM only)"
        ),
        ["9"]
    );
    assert_eq!(rows(&mut session, "SELECT * FROM generate_series(1, 1)"), ["1"]);
    session.execute("UPDATE t SET b = t.b + 1 WHERE t.a = 2; DELETE FROM only; INSERT INTO only SELECT b FROM t").unwrap();
    assert_eq!(rows(&mut session, "SELECT a FROM one.only"), ["21"]);
    session.execute("SET search_path TO information_schema, two").unwrap();
    assert_eq!(rows(&mut session, "SELECT count(*) FROM tables WHERE table_name = 't'"), ["3"]);
    let empty = error(&mut session, "SET search_path = ''; SELECT * FROM t");
    assert!(empty.contains("no table or view"), "{empty}");
    assert_eq!(rows(&mut session, "SELECT a FROM public.t"), ["3"]);
    session.execute("RESET search_path").unwrap();
    assert_eq!(rows(&mut session, "SELECT a FROM t"), ["3"]);
}

#[test]
fn relations_are_created_in_the_first_schema_of_the_search_path_that_exists() {
    let engine = engine_with(2, SCHEMAS);
    let mut session = engine.session();
    session.execute("SET search_path TO nowhere, two, one").unwrap();
    session
        .execute(
            "CREATE TABLE made (a INT PRIMARY KEY); INSERT INTO made VALUES (1), (2);
             CREATE MATERIALIZED VIEW v AS WITH t AS (SELECT a FROM only) SELECT made.a FROM made, t;
             CREATE TABLE copied AS SELECT * FROM made;
             CREATE INDEX i ON t (b);
             ALTER TABLE copied RENAME TO renamed",
        )
        .unwrap();
    // The view means what it meant.
    session.execute("SET search_path TO one").unwrap();
    let names: Vec<String> = engine.relations().unwrap().into_iter().map(|it| it.name).collect();
    assert_eq!(names, ["one.only", "one.t", "t", "two.made", "two.renamed", "two.t", "two.v"]);
    assert_eq!(rows(&mut session, "SELECT a FROM two.v ORDER BY a"), ["1", "2"]);
    let error = error(&mut session, "DROP INDEX i");
    assert!(error.contains("one.i"), "{error}");
    session
        .execute(
            "SET search_path TO one, two; DROP INDEX i; DROP VIEW v; DESCRIBE made; SUBSCRIBE made",
        )
        .unwrap();
    session
        .execute(
            "ALTER TABLE two.renamed RENAME TO again; DROP TABLE again; DROP TABLE IF EXISTS again",
        )
        .unwrap();
    let error = session.execute("SET search_path TO nowhere; CREATE TABLE t (a INT)").unwrap_err();
    assert_eq!(error.position(), Some((1, 42)));
    assert!(error.to_string().contains("no schema of the search path exists"), "{error}");
}

#[test]
fn errors_are_at_their_places_in_the_text_before_names_were_completed() {
    let engine = engine_with(1, SCHEMAS);
    let mut session = engine.session();
    session.execute("SET search_path TO one").unwrap();
    for (sql, place) in [
        ("SELECT a, wrong FROM t", (1, 11)),
        ("SELECT a FROM t WHERE wrong = 1", (1, 23)),
        ("SELECT a FROM t, only AS o\nWHERE t.a = wrong", (2, 13)),
        ("SELECT 1;  SELECT a FROM t, only o WHERE wrong = 1", (1, 42)),
        ("SELECT * FROM missing", (1, 15)),
        ("INSERT INTO t (a, wrong) VALUES (1, 2)", (1, 19)),
        ("CREATE MATERIALIZED VIEW v AS SELECT a FROM t WHERE wrong = 1", (1, 53)),
    ] {
        let error = session.execute(sql).unwrap_err();
        assert_eq!(error.position(), Some(place), "{sql}: {error}");
    }
}

/// Statements that clients of Postgres sent when they were recorded, in a folder beside the checkout; none if it is not there.
fn recorded() -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/pg_clients");
    let files = fs::read_dir(folder).into_iter().flatten().flatten();
    let logs: Vec<String> = files.filter_map(|file| fs::read_to_string(file.path()).ok()).collect();
    let lines = logs.iter().flat_map(|log| log.lines()).filter(|line| line.starts_with("@@"));
    let statements = lines.filter_map(|line| line.split_once("LOG:  statement: "));
    statements.map(|(_, sql)| sql.trim().to_owned()).collect()
}

#[test]
fn what_clients_set_and_show_is_answered() {
    let recorded = recorded();
    if recorded.is_empty() {
        let _ = writeln!(std::io::stderr(), "skipped: no recorded statements beside the checkout");
        return;
    }
    let first = |sql: &str| sql.split_whitespace().next().map(str::to_ascii_uppercase);
    let is_setting = |sql: &&String| {
        matches!(
            first(sql).as_deref(),
            Some("SET" | "SHOW" | "RESET" | "DISCARD" | "BEGIN" | "START")
        )
    };
    let mut count = 0;
    let engine = engine(1);
    for sql in recorded.iter().filter(is_setting) {
        count += 1;
        engine.session().execute(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
    }
    assert!(count > 20, "{count}");
}
