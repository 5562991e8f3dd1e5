//! `COMMENT ON`.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::sync::Arc;

use alluvium::unstable::BuilderParts;
use alluvium::{Engine, Session, SqlState};
use alluvium_storage::{Journal, MemoryJournal};

use crate::support::{engine, engine_with, query};

const RELATIONS: &str = "CREATE TABLE t (a BIGINT PRIMARY KEY, b TEXT);
    CREATE VIEW v AS SELECT a FROM t;
    CREATE MATERIALIZED VIEW m AS SELECT a, b FROM t WHERE a > 0;
    CREATE TABLE i (n INT); CREATE INDEX by_n ON i (n)";

/// All that is said, a line each.
const SAID: &str = "SELECT name || ': ' || comment FROM alluvium.relations WHERE comment IS NOT NULL
    UNION ALL SELECT table_name || '.' || column_name || ': ' || column_comment FROM information_schema.columns
    WHERE column_comment IS NOT NULL";

fn said(engine: &Engine) -> Vec<String> {
    query(engine, SAID)
}

/// An error with its place.
fn placed(error: &alluvium::Error) -> String {
    let (line, column) = error.position().unwrap();
    format!("{line}:{column}: {error}")
}

fn run(session: &mut Session, sql: &str) {
    session.execute(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
}

#[test]
fn comments_are_said_of_relations_columns_and_indexes() {
    let engine = engine_with(2, RELATIONS);
    let nothing = "SELECT count(*), count(comment) FROM alluvium.relations";
    assert_eq!(query(&engine, nothing), ["5 0"]);
    engine
        .execute(
            "COMMENT ON TABLE t IS 'parts; it''s all'; COMMENT ON COLUMN t.b IS $$the \\ 'name'$$;
             COMMENT ON COLUMN public.v.a IS 'of a view'; COMMENT ON VIEW v IS E'two\\nlines';
             COMMENT ON MATERIALIZED VIEW m IS 'kept'; COMMENT ON INDEX by_n IS 'found fast';
             COMMENT ON TABLE i IS 'first'; COMMENT ON TABLE i IS 'second'",
        )
        .unwrap();
    let expected = [
        "by_n: found fast",
        "i: second",
        "m: kept",
        "t.b: the \\ 'name'",
        "t: parts; it's all",
        "v.a: of a view",
        "v: two\nlines",
    ];
    assert_eq!(said(&engine), expected);
    let tables = "SELECT table_name || table_comment FROM information_schema.tables WHERE table_comment IS NOT NULL";
    assert_eq!(query(&engine, tables).len(), 4);
    let all = engine.relations().unwrap();
    let table = all.iter().find(|relation| relation.name == "t").unwrap();
    let statements =
        ["COMMENT ON TABLE t IS 'parts; it''s all'", "COMMENT ON COLUMN t.b IS 'the \\ ''name'''"];
    assert_eq!(table.comments, statements);
    engine
        .execute(
            "COMMENT ON TABLE t IS NULL; COMMENT ON COLUMN t.b IS ''; COMMENT ON VIEW m IS NULL;
             COMMENT ON INDEX by_n IS NULL; COMMENT ON TABLE i IS NULL; COMMENT ON COLUMN i.n IS NULL",
        )
        .unwrap();
    assert_eq!(said(&engine), ["v.a: of a view", "v: two\nlines"]);
}

#[test]
fn names_follow_the_search_path_and_may_be_anything() {
    let engine = engine(1);
    let mut session = engine.session();
    run(
        &mut session,
        "CREATE SCHEMA s; CREATE TABLE s.t (t INT, \"a.b\" INT); CREATE INDEX by_t ON s.t (t); SET search_path = s, public;
         COMMENT ON COLUMN t.t IS 'c'; COMMENT ON TABLE t IS 't'; COMMENT ON COLUMN s.t.\"a.b\" IS 'd'; COMMENT ON INDEX by_t IS 'i'",
    );
    assert_eq!(said(&engine), ["s.by_t: i", "s.t: t", "t.a.b: d", "t.t: c"]);
    let error = session.execute("\n COMMENT ON COLUMN t.x IS ''").unwrap_err();
    assert!(placed(&error).starts_with("2:22: no column \"x\" in \"s.t\""), "{error}");
}

#[test]
fn what_is_not_there_or_of_another_kind_is_refused_at_its_place() {
    let engine = engine_with(1, RELATIONS);
    engine.execute("CREATE TABLE j (n INT UNIQUE)").unwrap();
    for (sql, sqlstate, message) in [
        (
            "COMMENT ON INDEX j_n_key IS 'y'",
            SqlState::NOT_SUPPORTED,
            "1:18: \"j_n_key\" is a UNIQUE constraint of \"j\"",
        ),
        (
            "COMMENT ON TABLE x IS 'y'",
            SqlState::NO_RELATION,
            "1:18: there is no table or view \"x\"",
        ),
        (
            "COMMENT ON COLUMN x.a IS 'y'",
            SqlState::NO_RELATION,
            "1:19: there is no table or view \"x\"",
        ),
        ("COMMENT ON COLUMN t.c IS NULL", SqlState::NO_COLUMN, "1:21: no column \"c\" in \"t\""),
        (
            "COMMENT ON COLUMN a IS 'y'",
            SqlState::SYNTAX,
            "1:19: a column is named with its relation",
        ),
        ("COMMENT ON INDEX x IS 'y'", SqlState::NO_OBJECT, "1:18: there is no index \"x\""),
        (
            "COMMENT ON INDEX t IS 'y'",
            SqlState::WRONG_KIND,
            "1:18: \"t\" is a table: write COMMENT ON TABLE",
        ),
        (
            "COMMENT ON TABLE v IS 'y'",
            SqlState::WRONG_KIND,
            "1:18: \"v\" is a view: write COMMENT ON VIEW",
        ),
        (
            "COMMENT ON TABLE m IS 'y'",
            SqlState::WRONG_KIND,
            "1:18: \"m\" is a materialized view: write COMMENT ON MATERIALIZED VIEW",
        ),
        ("COMMENT ON MATERIALIZED VIEW v IS 'y'", SqlState::WRONG_KIND, "1:30: \"v\" is a view"),
        ("COMMENT ON VIEW t IS 'y'", SqlState::WRONG_KIND, "1:17: \"t\" is a table"),
        ("COMMENT ON COLUMN by_n.n IS 'y'", SqlState::WRONG, "1:19: \"by_n\" is an index of \"i\""),
        (
            "COMMENT ON SEQUENCE s IS 'y'",
            SqlState::NOT_SUPPORTED,
            "1:1: COMMENT ON SEQUENCE (tables, views",
        ),
        (
            "COMMENT ON TABLE t IS 5",
            SqlState::SYNTAX,
            "1:23: expected a text in quotes, or NULL, found 5",
        ),
    ] {
        for begin in [false, true] {
            let mut session = engine.session();
            if begin {
                run(&mut session, "BEGIN");
            }
            let error = session.execute(sql).unwrap_err();
            assert!(placed(&error).starts_with(message), "{sql}: {error}");
            assert_eq!(error.sqlstate(), sqlstate, "{sql}");
        }
    }
    let mut session = engine.session();
    let error = session.execute("BEGIN READ ONLY; COMMENT ON TABLE t IS 'x'").unwrap_err();
    assert_eq!(error.sqlstate(), SqlState::READ_ONLY);
    assert_eq!(said(&engine), [""; 0]);
}

#[test]
fn comments_follow_what_is_altered_and_go_with_what_is_dropped() {
    let engine = engine_with(
        2,
        "CREATE TABLE t (a INT, b INT, c INT); CREATE VIEW v AS SELECT n, n + 1 AS m FROM (SELECT 1 AS n) AS o;
         COMMENT ON TABLE t IS 'table'; COMMENT ON COLUMN t.a IS 'a'; COMMENT ON COLUMN t.b IS 'b';
         COMMENT ON COLUMN t.c IS 'c'; COMMENT ON VIEW v IS 'view'; COMMENT ON COLUMN v.m IS 'm'",
    );
    for (sql, expected) in [
        ("ALTER TABLE t RENAME TO u", "u.a: a|u.b: b|u.c: c|u: table|v.m: m|v: view"),
        ("ALTER TABLE u RENAME COLUMN a TO x", "u.b: b|u.c: c|u.x: a|u: table|v.m: m|v: view"),
        ("ALTER TABLE u ADD COLUMN a INT", "u.b: b|u.c: c|u.x: a|u: table|v.m: m|v: view"),
        ("ALTER TABLE u DROP COLUMN b", "u.c: c|u.x: a|u: table|v.m: m|v: view"),
        ("ALTER TABLE u ADD COLUMN b INT", "u.c: c|u.x: a|u: table|v.m: m|v: view"),
        ("ALTER VIEW v RENAME TO w", "u.c: c|u.x: a|u: table|w.m: m|w: view"),
        // As in Postgres the view is the same.
        (
            "CREATE OR REPLACE VIEW w AS SELECT 2 AS m, 3 AS k",
            "u.c: c|u.x: a|u: table|w.m: m|w: view",
        ),
        ("CREATE OR REPLACE VIEW w AS SELECT 3 AS k", "u.c: c|u.x: a|u: table|w: view"),
        ("CREATE OR REPLACE TABLE u (x INT)", "w: view"),
        ("COMMENT ON TABLE u IS 'again'; DROP VIEW w; CREATE VIEW w AS SELECT 1 AS m", "u: again"),
        ("CREATE VIEW o AS SELECT x FROM u; COMMENT ON VIEW o IS 'o'", "o: o|u: again"),
        ("DROP TABLE u CASCADE; CREATE TABLE u (x INT); CREATE VIEW o AS SELECT x FROM u", ""),
        ("CREATE INDEX n ON u (x); COMMENT ON INDEX n IS 'n'", "n: n"),
        ("DROP INDEX n; CREATE INDEX n ON u (x)", ""),
        ("CREATE SCHEMA s; CREATE TABLE s.t (a INT); COMMENT ON TABLE s.t IS 's'", "s.t: s"),
        ("DROP SCHEMA s CASCADE; CREATE SCHEMA s; CREATE TABLE s.t (a INT)", ""),
    ] {
        engine.execute(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
        assert_eq!(said(&engine).join("|"), expected, "{sql}");
    }
}

/// The journal by now, as after a crash.
fn crashed(journal: &MemoryJournal) -> Arc<MemoryJournal> {
    let crashed = Arc::new(MemoryJournal::default());
    for record in journal.replay(journal.range().start).unwrap() {
        let (_, bytes) = record.unwrap();
        let position = crashed.append(&bytes).unwrap();
        crashed.sync(position).unwrap();
    }
    crashed
}

#[test]
fn comments_are_there_again_after_a_crash_and_behind_a_checkpoint() {
    let (journal, long) = (Arc::new(MemoryJournal::default()), "it's long; ".repeat(100_000));
    let open = |journal| Engine::builder().workers(2).journal(journal).open().unwrap();
    let steps = [
        RELATIONS.to_owned(),
        format!("COMMENT ON COLUMN t.b IS '{}'", long.replace('\'', "''")),
        "COMMENT ON VIEW v IS 'view'; COMMENT ON INDEX by_n IS 'index'; COMMENT ON TABLE i IS 'gone'".to_owned(),
        "COMMENT ON TABLE i IS NULL; DROP VIEW v; ALTER TABLE i RENAME COLUMN n TO k".to_owned(),
        "DROP INDEX by_n; COMMENT ON COLUMN i.n IS 'number'; ALTER TABLE i RENAME COLUMN n TO k".to_owned(),
        "CREATE OR REPLACE VIEW m AS SELECT a FROM t; ALTER TABLE i RENAME TO j; CREATE VIEW v AS SELECT k FROM j".to_owned(),
    ];
    let directory = tempfile::tempdir().unwrap();
    let state = format!("file:{}", directory.path().display());
    let checkpointed = || Engine::builder().workers(1).state(state.clone()).open().unwrap();
    let engine = open(journal.clone());
    let mut with_checkpoints = checkpointed();
    for (number, step) in steps.iter().enumerate() {
        // Altering what has an index is refused.
        let ran = [engine.execute(step).is_ok(), with_checkpoints.execute(step).is_ok()];
        assert_eq!(ran, [number != 3; 2], "{step}");
        let expected = said(&engine);
        assert_eq!(said(&open(crashed(&journal))), expected, "{step}");
        if number % 2 == 1 {
            with_checkpoints.checkpoint().unwrap();
        }
        drop(with_checkpoints);
        with_checkpoints = checkpointed();
        assert_eq!(said(&with_checkpoints), expected, "{step}");
    }
    assert_eq!(said(&engine), ["j.k: number".to_owned(), format!("t.b: {long}")]);
}

#[test]
fn a_comment_that_is_there_is_not_recorded_again() {
    let journal = Arc::new(MemoryJournal::default());
    let engine = Engine::builder().workers(1).journal(journal.clone()).open().unwrap();
    engine
        .execute("CREATE TABLE t (a INT); COMMENT ON TABLE t IS 'x'; COMMENT ON COLUMN t.a IS NULL")
        .unwrap();
    let end = journal.range().end;
    engine.execute("COMMENT ON TABLE t IS 'x'").unwrap();
    assert_eq!(journal.range().end, end);
    engine.execute("COMMENT ON TABLE t IS 'y'").unwrap();
    assert!(journal.range().end > end);
}

#[test]
fn a_transaction_sees_what_it_says_and_others_do_once_it_commits() {
    let journal = Arc::new(MemoryJournal::default());
    let engine = Engine::builder().workers(2).journal(journal.clone()).open().unwrap();
    engine.execute(RELATIONS).unwrap();
    engine.execute("COMMENT ON TABLE t IS 'old'; COMMENT ON COLUMN t.a IS 'old a'").unwrap();
    let mut session = engine.session();
    let inside = |session: &mut Session| match session.execute(SAID).unwrap().pop() {
        Some(alluvium::Outcome::Rows(rows)) => crate::support::lines(&rows.into_batches().unwrap()),
        other => panic!("{other:?}"),
    };
    run(
        &mut session,
        "BEGIN; COMMENT ON TABLE t IS 'new'; COMMENT ON COLUMN t.a IS NULL; COMMENT ON INDEX by_n IS 'fast';
         CREATE TABLE made (x INT); COMMENT ON TABLE made IS 'made'; SAVEPOINT one;
         COMMENT ON COLUMN made.x IS 'x'; DROP INDEX by_n; COMMENT ON TABLE t IS 'newer'",
    );
    assert_eq!(inside(&mut session), ["made.x: x", "made: made", "t: newer"]);
    run(&mut session, "ROLLBACK TO one");
    assert_eq!(inside(&mut session), ["by_n: fast", "made: made", "t: new"]);
    assert_eq!(said(&engine), ["t.a: old a", "t: old"]);
    run(&mut session, "ROLLBACK");
    assert_eq!(said(&engine), ["t.a: old a", "t: old"]);
    run(&mut session, "BEGIN; COMMENT ON TABLE t IS 'new'; COMMENT ON COLUMN t.a IS NULL; COMMIT");
    assert_eq!(said(&engine), ["t: new"]);
    run(&mut session, "BEGIN; COMMENT ON COLUMN m.a IS 'x'; INSERT INTO t VALUES (1, 'a'); COMMIT");
    let expected = ["m.a: x", "t: new"];
    assert_eq!(said(&engine), expected);
    let again = Engine::builder().workers(1).journal(crashed(&journal)).open().unwrap();
    assert_eq!(said(&again), expected);
    assert_eq!(query(&again, "SELECT a FROM m"), ["1"]);
}

#[test]
fn comments_follow_what_a_transaction_swaps_as_dbt_does() {
    let journal = Arc::new(MemoryJournal::default());
    let engine = Engine::builder().workers(2).journal(journal.clone()).open().unwrap();
    let mut session = engine.session();
    for round in 0..3 {
        run(&mut session, "BEGIN; CREATE TABLE t__dbt_tmp AS SELECT 1 AS id, 'x' AS name; COMMIT");
        let swap = match round {
            0 => "BEGIN; ALTER TABLE t__dbt_tmp RENAME TO t;",
            _ => {
                "BEGIN; ALTER TABLE t RENAME TO t__dbt_backup; ALTER TABLE t__dbt_tmp RENAME TO t;"
            }
        };
        run(&mut session, swap);
        run(
            &mut session,
            &format!(
                "COMMENT ON TABLE t IS $dbt$round {round}$dbt$; COMMENT ON COLUMN t.id IS $dbt$id {round}$dbt$"
            ),
        );
        run(&mut session, "COMMIT");
        let new = [format!("t.id: id {round}"), format!("t: round {round}")];
        let mut expected = new.to_vec();
        if round > 0 {
            let before = round - 1;
            expected.push(format!("t__dbt_backup.id: id {before}"));
            expected.push(format!("t__dbt_backup: round {before}"));
        }
        assert_eq!(said(&engine), expected);
        let again = Engine::builder().workers(1).journal(crashed(&journal)).open().unwrap();
        assert_eq!(said(&again), expected);
        run(&mut session, "BEGIN; DROP TABLE IF EXISTS t__dbt_backup CASCADE; COMMIT");
        assert_eq!(said(&engine), new);
    }
    // All of it in one transaction, with relations that it makes.
    run(
        &mut session,
        "BEGIN; CREATE TABLE u AS SELECT 2 AS id; COMMENT ON COLUMN u.id IS 'u id'; ALTER TABLE t RENAME TO old;
         ALTER TABLE u RENAME TO t; ALTER TABLE old RENAME COLUMN id TO nr;
         COMMENT ON COLUMN old.name IS 'name';
         CREATE VIEW w AS SELECT 1 AS k; COMMENT ON VIEW w IS 'w'; COMMENT ON COLUMN w.k IS 'k'; COMMIT",
    );
    let expected =
        ["old.name: name", "old.nr: id 2", "old: round 2", "t.id: u id", "w.k: k", "w: w"];
    assert_eq!(said(&engine), expected);
    // A view that is replaced stays the same, one that is dropped does not.
    run(
        &mut session,
        "BEGIN; CREATE OR REPLACE VIEW w AS SELECT 2 AS k; ALTER VIEW w RENAME TO x; DROP TABLE t;
         CREATE TABLE t (nr INT); COMMIT",
    );
    let expected = ["old.name: name", "old.nr: id 2", "old: round 2", "x.k: k", "x: w"];
    assert_eq!(said(&engine), expected);
    let again = Engine::builder().workers(1).journal(crashed(&journal)).open().unwrap();
    assert_eq!(said(&again), expected);
}

#[test]
fn what_others_say_meanwhile_stays() {
    let engine = engine_with(1, RELATIONS);
    let (mut one, mut other) = (engine.session(), engine.session());
    run(&mut one, "BEGIN; COMMENT ON TABLE t IS 'one'; ALTER TABLE m RENAME TO n");
    run(
        &mut other,
        "COMMENT ON COLUMN t.a IS 'other'; COMMENT ON VIEW m IS 'm'; COMMENT ON VIEW v IS 'v'",
    );
    run(&mut one, "COMMIT");
    assert_eq!(said(&engine), ["n: m", "t.a: other", "t: one", "v: v"]);
    // A comment is of the relation that it was.
    run(&mut one, "BEGIN; COMMENT ON VIEW v IS 'lost'");
    run(&mut other, "DROP VIEW v; CREATE VIEW v AS SELECT a FROM t");
    assert_eq!(one.execute("COMMIT").unwrap_err().sqlstate(), SqlState::SERIALIZATION);
    assert_eq!(said(&engine), ["n: m", "t.a: other", "t: one"]);
}
