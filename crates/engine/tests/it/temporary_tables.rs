//! Temporary tables.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use alluvium::unstable::BuilderParts;
use alluvium::{Engine, Outcome, Session, SqlState};
use alluvium_storage::{Journal, MemoryJournal};

use crate::support::{PATIENCE, engine, engine_with, lines, query};

fn run(session: &mut Session, sql: &str) {
    session.execute(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
}

/// The answer to the last of some statements as sorted lines.
#[track_caller]
fn rows(session: &mut Session, sql: &str) -> Vec<String> {
    match session.execute(sql).unwrap_or_else(|error| panic!("{sql}: {error}")).pop() {
        Some(Outcome::Rows(rows)) => lines(&rows.into_batches().unwrap()),
        other => panic!("rows are expected, not {other:?}"),
    }
}

#[track_caller]
fn fails(session: &mut Session, sql: &str, sqlstate: SqlState) -> String {
    let error = session.execute(sql).map(|_| ()).expect_err(sql);
    assert_eq!(error.sqlstate(), sqlstate, "{sql}: {error}");
    error.to_string()
}

#[test]
fn a_temporary_table_is_read_and_written_as_others_are_by_its_session_alone() {
    let engine = engine_with(
        2,
        "CREATE TABLE part (id BIGINT PRIMARY KEY, name TEXT); INSERT INTO part VALUES (1, 'bolt'), (2, 'nut')",
    );
    let (mut session, mut other) = (engine.session(), engine.session());
    run(
        &mut session,
        "CREATE TEMPORARY TABLE wanted (id BIGINT PRIMARY KEY, n INT NOT NULL DEFAULT 1 CHECK (n > 0), at TIMESTAMP DEFAULT NOW());
         INSERT INTO wanted (id) VALUES (1), (3); INSERT INTO wanted (id, n) VALUES (2, 20)",
    );
    assert_eq!(rows(&mut session, "SELECT id, n FROM wanted"), ["1 1", "2 20", "3 1"]);
    let joined = "SELECT name, wanted.n FROM part JOIN wanted USING (id)";
    assert_eq!(rows(&mut session, joined), ["bolt 1", "nut 20"]);
    fails(&mut session, "INSERT INTO wanted (id) VALUES (1)", SqlState::UNIQUE);
    fails(&mut session, "INSERT INTO wanted (id, n) VALUES (7, NULL)", SqlState::NOT_NULL);
    fails(&mut session, "INSERT INTO wanted (id, n) VALUES (7, 0)", SqlState::CHECK);
    run(
        &mut session,
        "UPDATE wanted SET n = n + 1 WHERE id = 1; DELETE FROM wanted WHERE id = 3;
         INSERT INTO wanted (id, n) VALUES (2, 5) ON CONFLICT (id) DO UPDATE SET n = excluded.n;
         INSERT INTO wanted (id, n) SELECT id + 10, 7 FROM part; UPDATE part SET name = 'BOLT' FROM wanted WHERE wanted.id = part.id AND n = 2",
    );
    assert_eq!(rows(&mut session, "SELECT id, n FROM wanted"), ["1 2", "11 7", "12 7", "2 5"]);
    assert_eq!(query(&engine, "SELECT name FROM part"), ["BOLT", "nut"]);
    assert_eq!(rows(&mut session, "DELETE FROM wanted WHERE n = 7 RETURNING id"), ["11", "12"]);
    // Others have one of the same name, or none.
    for sql in [
        "SELECT * FROM wanted",
        "INSERT INTO wanted (id) VALUES (1)",
        "DROP TABLE wanted",
        "SELECT * FROM pg_temp.wanted",
    ] {
        fails(&mut other, sql, SqlState::NO_RELATION);
    }
    run(&mut other, "CREATE TEMP TABLE wanted (x TEXT); INSERT INTO wanted VALUES ('other')");
    assert_eq!(rows(&mut other, "SELECT * FROM wanted"), ["other"]);
    assert_eq!(rows(&mut session, "SELECT count(*) FROM pg_temp.wanted"), ["2"]);
    let listed = "SELECT table_schema, table_name, table_type FROM information_schema.tables WHERE table_name = 'wanted'";
    assert_eq!(rows(&mut session, listed), ["pg_temp wanted LOCAL TEMPORARY"]);
    assert_eq!(
        rows(&mut session, "SELECT name, kind FROM alluvium.relations"),
        ["part table", "pg_temp.wanted table"]
    );
    assert_eq!(query(&engine, "SELECT name FROM alluvium.relations"), ["part"]);
    assert_eq!(engine.relations().unwrap().len(), 1);
    run(&mut session, "TRUNCATE wanted; DROP TABLE wanted; CREATE TEMP TABLE wanted (a INT)");
    assert_eq!(rows(&mut session, "SELECT * FROM wanted"), [""; 0]);
    run(&mut session, "DISCARD ALL");
    fails(&mut session, "SELECT * FROM wanted", SqlState::NO_RELATION);
    assert_eq!(rows(&mut other, "SELECT * FROM wanted"), ["other"]);
}

#[test]
fn it_shadows_a_relation_of_its_name_for_its_session_and_not_for_views() {
    let engine = engine_with(
        2,
        "CREATE TABLE t (a INT); INSERT INTO t VALUES (1), (2); CREATE VIEW plain AS SELECT a FROM t;
         CREATE MATERIALIZED VIEW kept AS SELECT sum(a) AS s FROM t; CREATE SCHEMA s; CREATE TABLE s.u (n INT)",
    );
    let mut session = engine.session();
    // A plan that is kept of the same text reads the other one.
    for _ in 0..3 {
        assert_eq!(rows(&mut session, "SELECT a FROM t WHERE a = 1"), ["1"]);
    }
    run(
        &mut session,
        "CREATE TEMP TABLE t AS SELECT 10 AS a, 'x' AS b; SET search_path = s, public; CREATE TEMP TABLE u (n INT)",
    );
    assert_eq!(rows(&mut session, "SELECT * FROM t"), ["10 x"]);
    assert_eq!(rows(&mut session, "SELECT a FROM t WHERE a = 1"), [""; 0]);
    assert_eq!(rows(&mut session, "SELECT a FROM public.t"), ["1", "2"]);
    assert_eq!(rows(&mut session, "SELECT a FROM plain"), ["1", "2"]);
    assert_eq!(rows(&mut session, "WITH t AS (SELECT 5 AS a) SELECT a FROM t"), ["5"]);
    assert_eq!(
        rows(
            &mut session,
            "SELECT (SELECT count(*) FROM t), t.b FROM t WHERE t.a IN (SELECT a FROM t)"
        ),
        ["1 x"]
    );
    run(
        &mut session,
        "INSERT INTO t VALUES (20, 'y'); INSERT INTO u VALUES (1); INSERT INTO s.u VALUES (2)",
    );
    assert_eq!(rows(&mut session, "SELECT n FROM u"), ["1"]);
    assert_eq!(query(&engine, "SELECT * FROM t"), ["1", "2"]);
    assert_eq!(query(&engine, "SELECT n FROM s.u"), ["2"]);
    assert_eq!(query(&engine, "SELECT s FROM kept"), ["3"]);
    let error = session.execute("SELECT a,\n nope FROM t").unwrap_err();
    assert_eq!(error.position(), Some((2, 2)), "{error}");
    run(&mut session, "DROP TABLE t");
    assert_eq!(rows(&mut session, "SELECT * FROM t"), ["1", "2"]);
    assert_eq!(rows(&mut session, "SELECT a FROM t WHERE a = 1"), ["1"]);
}

#[test]
fn transactions_create_write_and_drop_temporary_tables() {
    let engine = engine_with(2, "CREATE TABLE t (a INT); CREATE TABLE seen (n BIGINT)");
    let mut session = engine.session();
    run(
        &mut session,
        "BEGIN; CREATE TEMP TABLE w (a INT PRIMARY KEY); INSERT INTO w VALUES (1); INSERT INTO t SELECT a FROM w; ROLLBACK",
    );
    fails(&mut session, "SELECT * FROM w", SqlState::NO_RELATION);
    assert_eq!(query(&engine, "SELECT * FROM t"), [""; 0]);
    run(
        &mut session,
        "BEGIN; SELECT * FROM t; CREATE TEMP TABLE w (a INT PRIMARY KEY); INSERT INTO w VALUES (1)",
    );
    // Writes of others meanwhile do not conflict.
    engine.execute("INSERT INTO t VALUES (100)").unwrap();
    assert_eq!(rows(&mut session, "SELECT * FROM w"), ["1"]);
    fails(&mut session, "INSERT INTO w VALUES (1)", SqlState::UNIQUE);
    run(
        &mut session,
        "SAVEPOINT one; CREATE TEMP TABLE x AS SELECT a + 1 AS a FROM w; INSERT INTO w SELECT a FROM x; DROP TABLE x",
    );
    assert_eq!(rows(&mut session, "SELECT * FROM w"), ["1", "2"]);
    fails(&mut session, "SELECT * FROM x", SqlState::NO_RELATION);
    run(&mut session, "ROLLBACK TO one; INSERT INTO w VALUES (3); ROLLBACK TO one; COMMIT");
    assert_eq!(rows(&mut session, "SELECT * FROM w"), ["1"]);
    // Dropped and rolled back it has its rows.
    run(
        &mut session,
        "BEGIN; DELETE FROM w; INSERT INTO w VALUES (7); DROP TABLE w; CREATE TEMP TABLE w (z TEXT); INSERT INTO w VALUES ('z')",
    );
    assert_eq!(rows(&mut session, "SELECT * FROM w"), ["z"]);
    run(&mut session, "ROLLBACK");
    assert_eq!(rows(&mut session, "SELECT * FROM w"), ["1"]);
    run(&mut session, "BEGIN; DROP TABLE w; COMMIT");
    fails(&mut session, "SELECT * FROM w", SqlState::NO_RELATION);
    // A transaction that an error aborts, and one whose commit fails.
    session.set_aborts_on_error(true);
    run(&mut session, "BEGIN; CREATE TEMP TABLE w (a INT)");
    fails(&mut session, "SELECT nope", SqlState::NO_COLUMN);
    assert!(matches!(session.execute("COMMIT").unwrap()[..], [Outcome::RolledBack]));
    fails(&mut session, "SELECT * FROM w", SqlState::NO_RELATION);
    session.set_aborts_on_error(false);
    run(
        &mut session,
        "BEGIN; SELECT sum(a) FROM t; CREATE TEMP TABLE w (a INT); INSERT INTO seen SELECT count(*) FROM t",
    );
    engine.execute("INSERT INTO t VALUES (1)").unwrap();
    fails(&mut session, "COMMIT", SqlState::SERIALIZATION);
    fails(&mut session, "SELECT * FROM w", SqlState::NO_RELATION);
    // With definitions of others.
    run(
        &mut session,
        "BEGIN; CREATE TABLE made (a INT); CREATE TEMP TABLE w AS SELECT 5 AS a; INSERT INTO made SELECT a FROM w; INSERT INTO w SELECT a FROM made; COMMIT",
    );
    assert_eq!(rows(&mut session, "SELECT * FROM w"), ["5", "5"]);
    assert_eq!(query(&engine, "SELECT * FROM made"), ["5"]);
}

#[test]
fn rows_or_the_table_go_with_the_commit_that_says_so() {
    let engine = engine(2);
    let mut session = engine.session();
    run(
        &mut session,
        "CREATE TEMP TABLE p (a INT) ON COMMIT PRESERVE ROWS; CREATE TEMP TABLE d (a INT PRIMARY KEY) ON COMMIT DELETE ROWS;
         CREATE TEMP TABLE g (a INT) ON COMMIT DROP; CREATE TEMP TABLE h ON COMMIT DROP AS SELECT 1 AS a",
    );
    fails(&mut session, "SELECT * FROM g", SqlState::NO_RELATION);
    fails(&mut session, "SELECT * FROM h", SqlState::NO_RELATION);
    run(&mut session, "INSERT INTO p VALUES (1); INSERT INTO d VALUES (1)");
    assert_eq!(rows(&mut session, "SELECT * FROM d"), [""; 0]);
    run(
        &mut session,
        "BEGIN; INSERT INTO p VALUES (2); INSERT INTO d VALUES (1), (2); CREATE TEMP TABLE g ON COMMIT DROP AS SELECT 9 AS a",
    );
    assert_eq!(rows(&mut session, "SELECT a FROM d UNION ALL SELECT a FROM g"), ["1", "2", "9"]);
    run(&mut session, "COMMIT");
    assert_eq!(rows(&mut session, "SELECT a FROM p UNION ALL SELECT -a FROM d"), ["1", "2"]);
    fails(&mut session, "SELECT * FROM g", SqlState::NO_RELATION);
    run(
        &mut session,
        "BEGIN; CREATE TEMP TABLE e ON COMMIT DELETE ROWS AS SELECT 1 AS a; COMMIT; INSERT INTO d VALUES (1)",
    );
    assert_eq!(rows(&mut session, "SELECT a FROM e UNION ALL SELECT a FROM d"), [""; 0]);
}

#[test]
fn nothing_that_outlives_the_session_is_about_one() {
    let engine = engine_with(1, "CREATE TABLE t (a INT)");
    let mut session = engine.session();
    run(&mut session, "CREATE TEMP TABLE w (a INT)");
    for begin in ["", "BEGIN"] {
        run(&mut session, begin);
        for sql in [
            "CREATE VIEW v AS SELECT * FROM w",
            "CREATE MATERIALIZED VIEW v AS SELECT t.a FROM t JOIN w ON t.a = w.a",
            "CREATE INDEX i ON w (a)",
            "ALTER TABLE w RENAME TO x",
            "ALTER TABLE w ADD COLUMN b INT",
            "COMMENT ON TABLE w IS 'x'",
            "COMMENT ON COLUMN w.a IS 'x'",
            "SUBSCRIBE w",
            "CREATE TEMP TABLE x (id SERIAL)",
            "CREATE TEMP TABLE x (a TIMESTAMP LATENESS INTERVAL '1' SECOND)",
        ] {
            let message = fails(&mut session, sql, SqlState::NOT_SUPPORTED);
            assert!(message.contains("temporary table"), "{message}");
        }
        fails(&mut session, "CREATE TEMP TABLE w (a INT)", SqlState::DUPLICATE_RELATION);
        fails(&mut session, "CREATE TEMP TABLE w AS SELECT 1 AS a", SqlState::DUPLICATE_RELATION);
        run(
            &mut session,
            "CREATE TEMP TABLE IF NOT EXISTS w (b TEXT); CREATE TEMP TABLE IF NOT EXISTS w AS SELECT 'x' AS b; DROP TABLE IF EXISTS x",
        );
        fails(
            &mut session,
            "CREATE TEMP TABLE broken AS SELECT 1 / (a - a) AS x FROM (SELECT 1 AS a) AS o",
            SqlState::DIVISION_BY_ZERO,
        );
        fails(&mut session, "SELECT * FROM broken", SqlState::NO_RELATION);
    }
    run(&mut session, "ROLLBACK; CREATE OR REPLACE TEMP TABLE w (b TEXT)");
    assert_eq!(rows(&mut session, "SELECT b FROM w"), [""; 0]);
    let refused = [
        "CREATE SCHEMA pg_temp",
        "CREATE VIEW pg_temp.v AS SELECT 1 AS a",
        "CREATE SEQUENCE pg_temp.s",
    ];
    for sql in refused {
        assert!(session.execute(sql).unwrap_err().to_string().contains("pg_temp"), "{sql}");
    }
    // The relation with its name is another one.
    run(&mut session, "CREATE TABLE w (c INT)");
    assert_eq!(query(&engine, "SELECT name FROM alluvium.relations"), ["t", "w"]);
    run(&mut session, "CREATE TABLE pg_temp.y (a INT); INSERT INTO y VALUES (1)");
    assert_eq!(query(&engine, "SELECT name FROM alluvium.relations"), ["t", "w"]);
}

#[test]
fn nothing_of_one_is_recorded_or_in_a_checkpoint() {
    let directory = tempfile::tempdir().unwrap();
    let state = format!("file:{}", directory.path().display());
    let open = || Engine::builder().workers(2).state(state.clone()).open().unwrap();
    let engine = open();
    let mut session = engine.session();
    run(
        &mut session,
        "CREATE TABLE t (a BIGINT); CREATE MATERIALIZED VIEW m AS SELECT sum(a) AS s FROM t;
         CREATE TEMP TABLE secret (a BIGINT, b TEXT); INSERT INTO secret VALUES (1, 'hidden-word');
         BEGIN; INSERT INTO t VALUES (1); INSERT INTO secret SELECT a, 'hidden-word' FROM t; COMMIT; INSERT INTO t VALUES (2)",
    );
    engine.checkpoint().unwrap();
    run(
        &mut session,
        "INSERT INTO secret SELECT generate_series, 'hidden-word' FROM generate_series(1, 100000)",
    );
    run(
        &mut session,
        "BEGIN; INSERT INTO t SELECT a FROM secret; UPDATE secret SET a = 0; CREATE TEMP TABLE u (a INT); COMMIT",
    );
    assert_eq!(rows(&mut session, "SELECT count(*) FROM secret"), ["100002"]);
    let expected = query(&engine, "SELECT s FROM m");
    let is_hidden = |directory: &std::path::Path| {
        let mut left = vec![directory.to_owned()];
        while let Some(next) = left.pop() {
            match std::fs::read_dir(&next) {
                Ok(inside) => left.extend(inside.map(|entry| entry.unwrap().path())),
                Err(_) => {
                    let bytes = std::fs::read(&next).unwrap_or_default();
                    assert!(!bytes.windows(11).any(|word| word == b"hidden-word"), "{next:?}");
                    assert!(!bytes.windows(6).any(|word| word == b"secret"), "{next:?}");
                }
            }
        }
    };
    is_hidden(directory.path());
    drop((session, engine));
    is_hidden(directory.path());
    for _ in 0..2 {
        let engine = open();
        assert_eq!(query(&engine, "SELECT s FROM m"), expected);
        assert_eq!(query(&engine, "SELECT name FROM alluvium.relations"), ["m", "t"]);
        fails(&mut engine.session(), "SELECT * FROM secret", SqlState::NO_RELATION);
        engine.checkpoint().unwrap();
    }
}

#[test]
fn after_a_crash_the_ordinary_table_is_right() {
    let journal = Arc::new(MemoryJournal::default());
    let engine = Engine::builder().workers(2).journal(journal.clone()).open().unwrap();
    let mut session = engine.session();
    run(&mut session, "CREATE TABLE t (a INT); CREATE TEMP TABLE w (a INT)");
    for number in 0..5 {
        run(
            &mut session,
            &format!(
                "BEGIN; INSERT INTO w VALUES ({number}); INSERT INTO t SELECT sum(a) FROM w; COMMIT; INSERT INTO w VALUES (10)"
            ),
        );
        let crashed = Arc::new(MemoryJournal::default());
        for record in journal.replay(journal.range().start).unwrap() {
            let (_, bytes) = record.unwrap();
            let position = crashed.append(&bytes).unwrap();
            crashed.sync(position).unwrap();
        }
        let again = Engine::builder().workers(1).journal(crashed).open().unwrap();
        assert_eq!(query(&again, "SELECT a FROM t"), query(&engine, "SELECT a FROM t"));
        again.execute("INSERT INTO t VALUES (1)").unwrap();
    }
    assert_eq!(query(&engine, "SELECT a FROM t"), ["0", "11", "23", "36", "50"]);
}

#[test]
fn prepared_statements_mean_the_tables_of_the_session_that_runs_them() {
    let engine = engine_with(
        2,
        "CREATE TABLE t (id BIGINT PRIMARY KEY, v BIGINT); INSERT INTO t VALUES (1, 100)",
    );
    let (mut one, mut two) = (engine.session(), engine.session());
    let of_all = one.prepare("SELECT v FROM t WHERE id = $1").unwrap();
    for (session, v) in [(&mut one, 1), (&mut two, 2)] {
        run(
            session,
            &format!(
                "CREATE TEMP TABLE t (id BIGINT PRIMARY KEY, v BIGINT); INSERT INTO t VALUES (1, {v})"
            ),
        );
    }
    let of_own = one.prepare("SELECT v FROM t WHERE id = $1").unwrap();
    let insert = one.prepare("INSERT INTO t VALUES ($1, $2)").unwrap();
    let answer = |session: &mut Session, prepared, id: i64| match session
        .execute_prepared(prepared, &[id.into()])
        .unwrap()
    {
        Outcome::Rows(rows) => lines(&rows.into_batches().unwrap()),
        other => panic!("{other:?}"),
    };
    for round in 0..3 {
        assert_eq!(answer(&mut one, &of_all, 1), ["100"]);
        assert_eq!(answer(&mut one, &of_own, 1), ["1"]);
        assert_eq!(answer(&mut two, &of_own, 1), ["2"]);
        assert_eq!(answer(&mut two, &of_all, 1), ["100"]);
        for text in ["SELECT v FROM t WHERE id = 1", "SELECT v FROM t WHERE id = 01"] {
            assert_eq!(rows(&mut one, text), ["1"]);
            assert_eq!(rows(&mut two, text), ["2"]);
            assert_eq!(query(&engine, text), ["100"]);
        }
        let id = 10 + round;
        one.execute_prepared(&insert, &[id.into(), (-id).into()]).unwrap();
        assert_eq!(answer(&mut one, &of_own, id), [(-id).to_string()]);
        assert_eq!(answer(&mut two, &of_own, id), [""; 0]);
    }
    run(&mut two, "DROP TABLE t");
    let error = two.execute_prepared(&of_own, &[1_i64.into()]).unwrap_err();
    assert_eq!(error.sqlstate(), SqlState::NO_RELATION);
    // One with other columns.
    run(&mut two, "CREATE TEMP TABLE t (id BIGINT, v TEXT)");
    assert!(
        two.execute_prepared(&of_own, &[1_i64.into()])
            .unwrap_err()
            .to_string()
            .contains("prepare it again")
    );
    let mut cursor = engine.session();
    run(
        &mut cursor,
        "CREATE TEMP TABLE c AS SELECT generate_series AS n FROM generate_series(1, 5); DECLARE k CURSOR WITH HOLD FOR SELECT n FROM c ORDER BY n; DROP TABLE c",
    );
    assert_eq!(rows(&mut cursor, "FETCH 2 FROM k"), ["1", "2"]);
}

#[test]
fn the_dataflow_goes_with_the_session() {
    let engine = engine(2);
    let states = |engine: &Engine| query(engine, "SELECT view FROM alluvium.arrangements").len();
    let before = states(&engine);
    let mut session = engine.session();
    run(
        &mut session,
        "CREATE TEMP TABLE w (a INT PRIMARY KEY); INSERT INTO w SELECT generate_series FROM generate_series(1, 1000)",
    );
    assert!(states(&engine) > before);
    run(&mut session, "BEGIN; CREATE TEMP TABLE x (a INT PRIMARY KEY); INSERT INTO x VALUES (1)");
    drop(session);
    // Workers remove it when they get to it.
    let begin = Instant::now();
    while states(&engine) > before {
        assert!(begin.elapsed() < PATIENCE, "it is still there");
        thread::sleep(Duration::from_millis(1));
    }
}
