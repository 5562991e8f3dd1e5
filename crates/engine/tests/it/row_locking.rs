//! SELECT … FOR UPDATE and FOR SHARE.

use std::thread;
use std::time::Duration;

use alluvium::{Engine, Outcome, Session, SqlState};

use crate::support::{batch_lines, engine_with, query, without_hanging};

const TABLES: &str = "
    CREATE TABLE job (id INT PRIMARY KEY, state TEXT, tries INT);
    INSERT INTO job VALUES (1, 'new', 0), (2, 'new', 0), (3, 'new', 0), (4, 'done', 1);
    CREATE TABLE log (line TEXT);
    INSERT INTO log VALUES ('a'), ('b');
    CREATE MATERIALIZED VIEW counts AS SELECT state, COUNT(*) AS jobs FROM job GROUP BY state;";

fn engine() -> Engine {
    engine_with(2, TABLES)
}

fn rows(session: &mut Session, sql: &str) -> Vec<String> {
    match session.execute(sql).unwrap_or_else(|error| panic!("{sql}: {error}")).pop() {
        Some(Outcome::Rows(rows)) => {
            rows.into_batches().expect("rows").iter().flat_map(batch_lines).collect()
        }
        other => panic!("{sql}: {other:?}"),
    }
}

fn run(session: &mut Session, sql: &str) {
    session.execute(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
}

#[track_caller]
fn fails(session: &mut Session, sql: &str, code: SqlState) -> String {
    match session.execute(sql) {
        Ok(outcomes) => panic!("{sql}: {outcomes:?}"),
        Err(error) => {
            assert_eq!(error.sqlstate(), code, "{sql}: {error}");
            error.to_string()
        }
    }
}

#[test]
fn rows_stay_as_they_were_found_until_the_transaction_ends() {
    let engine = engine();
    let (mut one, mut other) = (engine.session(), engine.session());
    run(&mut one, "BEGIN");
    let found =
        rows(&mut one, "SELECT state, tries + 1 AS t FROM job WHERE id < 3 ORDER BY id FOR UPDATE");
    assert_eq!(found, ["new 1", "new 1"]);
    run(&mut other, "SET lock_timeout = 20");
    for sql in [
        "UPDATE job SET tries = 9 WHERE id = 2",
        "DELETE FROM job WHERE id = 1",
        "SELECT * FROM job WHERE id = 1 FOR UPDATE",
        "SELECT * FROM job WHERE id = 1 FOR SHARE",
        "SELECT * FROM job FOR UPDATE NOWAIT",
    ] {
        let text = fails(&mut other, sql, SqlState::LOCKED);
        assert!(text.contains("\"job\""), "{text}");
    }
    // Other rows are free, and a reader never waits.
    run(&mut other, "UPDATE job SET tries = 7 WHERE id = 3");
    assert_eq!(rows(&mut other, "SELECT tries FROM job WHERE id = 1"), ["0"]);
    let waiting = thread::spawn(move || {
        run(&mut other, "SET lock_timeout = 0; UPDATE job SET tries = tries + 10 WHERE id = 2");
    });
    thread::sleep(Duration::from_millis(30));
    run(&mut one, "UPDATE job SET tries = tries + 1 WHERE id = 2; COMMIT");
    without_hanging(move || waiting.join().expect("it waits and then changes the row"));
    assert_eq!(query(&engine, "SELECT tries FROM job WHERE id = 2"), ["11"]);
}

#[test]
fn who_waits_for_a_row_finds_it_as_it_is_then() {
    let engine = engine();
    let (mut one, mut other) = (engine.session(), engine.session());
    run(&mut one, "BEGIN; UPDATE job SET state = 'done', tries = 5 WHERE id = 1");
    let waiting = thread::spawn(move || {
        run(&mut other, "BEGIN");
        let found = rows(
            &mut other,
            "SELECT id, tries FROM job WHERE state = 'new' ORDER BY id FOR UPDATE",
        );
        run(&mut other, "COMMIT");
        found
    });
    thread::sleep(Duration::from_millis(30));
    run(&mut one, "COMMIT");
    let found = without_hanging(move || waiting.join().expect("it waits for the row"));
    assert_eq!(found, ["2 0", "3 0"]);
}

#[test]
fn several_workers_take_jobs_that_no_other_one_has() {
    let engine = engine();
    let mut sessions: Vec<_> = (0..4).map(|_| engine.session()).collect();
    let next = "SELECT id FROM job WHERE state = 'new' ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED";
    let taken: Vec<_> = sessions
        .iter_mut()
        .map(|session| {
            run(session, "BEGIN");
            rows(session, next)
        })
        .collect();
    assert_eq!(taken, [vec!["1"], vec!["2"], vec!["3"], vec![]]);
    run(&mut sessions[1], "ROLLBACK");
    assert_eq!(rows(&mut sessions[3], next), ["2"]);
    // Only as many as are returned are locked.
    run(&mut sessions[0], "ROLLBACK; BEGIN");
    let two = "SELECT id FROM job ORDER BY id LIMIT 1 OFFSET 1 FOR UPDATE SKIP LOCKED";
    assert_eq!(rows(&mut sessions[0], two), ["4"]);
    let prepared = "PREPARE p AS SELECT id FROM job ORDER BY id LIMIT $1 FOR UPDATE SKIP LOCKED";
    run(&mut sessions[1], &format!("{prepared}; BEGIN"));
    assert_eq!(rows(&mut sessions[1], "EXECUTE p(1)"), [""; 0]);
    run(&mut sessions[0], "COMMIT");
    assert_eq!(rows(&mut sessions[1], "EXECUTE p(1)"), ["1"]);
}

#[test]
fn those_who_share_rows_keep_out_who_changes_them() {
    let engine = engine();
    let (mut one, mut two, mut writer) = (engine.session(), engine.session(), engine.session());
    run(&mut one, "BEGIN; SELECT * FROM job WHERE id = 1 FOR SHARE");
    run(&mut two, "BEGIN; SELECT * FROM job WHERE id = 1 FOR SHARE OF job NOWAIT");
    run(&mut writer, "SET lock_timeout = 20");
    fails(&mut writer, "UPDATE job SET tries = 1 WHERE id = 1", SqlState::LOCKED);
    run(&mut one, "COMMIT");
    fails(&mut writer, "UPDATE job SET tries = 1 WHERE id = 1", SqlState::LOCKED);
    run(&mut two, "ROLLBACK");
    run(&mut writer, "UPDATE job SET tries = 1 WHERE id = 1");
    // A table without a key is locked as a whole.
    run(&mut one, "BEGIN; SELECT * FROM log WHERE line = 'a' FOR UPDATE");
    fails(&mut writer, "DELETE FROM log WHERE line = 'b'", SqlState::LOCKED);
    fails(&mut writer, "SELECT * FROM log FOR SHARE NOWAIT", SqlState::LOCKED);
    assert_eq!(rows(&mut writer, "SELECT * FROM log FOR SHARE SKIP LOCKED"), [""; 0]);
    run(&mut writer, "INSERT INTO log VALUES ('c')");
    run(&mut one, "COMMIT");
    assert_eq!(rows(&mut writer, "SELECT line FROM log ORDER BY line FOR UPDATE"), ["a", "b", "c"]);
}

#[test]
fn what_are_no_rows_of_a_table_is_refused() {
    let engine = engine();
    let mut session = engine.session();
    for sql in [
        "SELECT DISTINCT state FROM job FOR UPDATE",
        "SELECT state, count(*) FROM job GROUP BY state FOR UPDATE",
        "SELECT count(*) FROM job FOR UPDATE",
        "SELECT id FROM job UNION (SELECT 1) FOR UPDATE",
    ] {
        let text = fails(&mut session, sql, SqlState::WRONG);
        assert!(text.contains("DISTINCT"), "{sql}: {text}");
    }
    for sql in [
        "SELECT * FROM job JOIN log ON true FOR UPDATE",
        "SELECT * FROM counts FOR UPDATE",
        "WITH j AS (SELECT * FROM job) SELECT * FROM j FOR UPDATE",
        "SELECT * FROM job FOR UPDATE FOR SHARE",
        "SELECT * FROM (SELECT * FROM job FOR UPDATE)",
    ] {
        fails(&mut session, sql, SqlState::NOT_SUPPORTED);
    }
    fails(&mut session, "SELECT * FROM nothing FOR UPDATE", SqlState::NO_RELATION);
    let text = fails(&mut session, "SELECT * FROM job j FOR UPDATE OF k", SqlState::WRONG);
    assert!(text.contains("\"j\""), "{text}");
    fails(&mut session, "SELECT nothing FROM job FOR UPDATE", SqlState::NO_COLUMN);
    fails(
        &mut session,
        "SELECT * FROM job LIMIT 1 + 1 FOR UPDATE SKIP LOCKED",
        SqlState::INVALID_VALUE,
    );
    run(&mut session, "BEGIN READ ONLY");
    fails(&mut session, "SELECT * FROM job FOR UPDATE", SqlState::READ_ONLY);
    run(&mut session, "ROLLBACK");
    assert_eq!(
        rows(&mut session, "SELECT id FROM job j WHERE id IN (SELECT 2) FOR UPDATE OF j"),
        ["2"]
    );
    let described = session
        .describe("SELECT id, state FROM job WHERE id = $1 FOR UPDATE")
        .expect("it is right");
    assert_eq!(described.columns.map(|columns| columns.fields().len()), Some(2));
    assert_eq!(described.parameters.len(), 1);
}
