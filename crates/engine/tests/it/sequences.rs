//! Sequences, and columns that have one of their own.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::collections::BTreeSet;
use std::sync::Arc;
use std::thread;

use alluvium::unstable::BuilderParts;
use alluvium::{Engine, Session};
use alluvium_storage::{Journal, MemoryJournal};
use arrow::array::{ArrayRef, RecordBatch, StringArray};

use crate::support::{batch_lines, engine, query};

/// The rows of the last statement as text, or the code and the text of its error.
fn run(session: &mut Session, sql: &str) -> String {
    let ran = session.execute(sql).and_then(|mut outcomes| match outcomes.pop() {
        Some(alluvium::Outcome::Rows(rows)) => {
            let rows = rows.into_batches()?;
            Ok(rows.iter().flat_map(batch_lines).collect::<Vec<_>>().join(", "))
        }
        _ => Ok("done".to_owned()),
    });
    ran.unwrap_or_else(|error| format!("{}: {error}", error.sqlstate()))
}

fn all(session: &mut Session, statements: &[(&str, &str)]) {
    for (sql, expected) in statements {
        let found = run(session, sql);
        match expected.len() == 5 && found.starts_with(&format!("{expected}: ")) {
            true => {}
            false => assert_eq!(found, *expected, "{sql}"),
        }
    }
}

#[test]
fn values_follow_each_other_and_a_session_knows_those_it_has_taken() {
    let engine = engine(2);
    let mut session = engine.session();
    all(
        &mut session,
        &[
            ("CREATE SEQUENCE s", "done"),
            ("CREATE SEQUENCE s", "42P07"),
            ("CREATE SEQUENCE IF NOT EXISTS s", "done"),
            ("CREATE TABLE s (n INT)", "42P07"),
            ("SELECT currval('s')", "55000"),
            ("SELECT lastval()", "55000"),
            ("SELECT nextval('s')", "1"),
            ("SELECT nextval('public.S') AS a", "2"),
            ("SELECT currval('s'), lastval()", "2 2"),
            ("SELECT nextval('s') FROM (SELECT UNNEST([1, 2, 3]))", "3, 4, 5"),
            ("SELECT setval('s', 10)", "10"),
            ("SELECT nextval('s')", "11"),
            ("SELECT setval('s', 20, false)", "20"),
            ("SELECT currval('s')", "11"),
            ("SELECT nextval('s')", "20"),
            ("SELECT setval('s', 0)", "22003"),
            ("SELECT nextval('nothing')", "42P01"),
            ("SELECT nextval(NULL)", "NULL"),
            ("ALTER SEQUENCE s RESTART", "done"),
            ("SELECT nextval('s')", "1"),
            ("ALTER SEQUENCE s RESTART WITH 7", "done"),
            ("SELECT nextval('s')", "7"),
            // Taken values are gone, also if their transaction is.
            ("BEGIN; SELECT nextval('s'); ROLLBACK", "done"),
            ("SELECT nextval('s')", "9"),
            ("BEGIN READ ONLY; SELECT nextval('s')", "25006"),
            ("ROLLBACK", "done"),
            ("CREATE MATERIALIZED VIEW v AS SELECT nextval('s') AS n", "42000"),
            ("DISCARD ALL", "done"),
            ("SELECT lastval()", "55000"),
            ("DROP SEQUENCE s", "done"),
            ("SELECT nextval('s')", "42P01"),
            ("DROP SEQUENCE s", "42P01"),
            ("DROP SEQUENCE IF EXISTS s", "done"),
            ("CREATE SEQUENCE s", "done"),
            ("SELECT nextval('s')", "1"),
        ],
    );
    let mut other = engine.session();
    all(&mut other, &[("SELECT nextval('s')", "2"), ("SELECT currval('s')", "2")]);
    all(&mut session, &[("SELECT currval('s')", "1")]);
}

#[test]
fn sequences_end_turn_around_and_go_to_the_ends_of_their_types() {
    let engine = engine(1);
    let mut session = engine.session();
    let (least, greatest) = (i64::MIN, i64::MAX);
    all(
        &mut session,
        &[
            ("CREATE SEQUENCE up AS SMALLINT START 32766 INCREMENT 1", "done"),
            ("SELECT nextval('up') FROM (SELECT UNNEST([1, 2, 3]))", "2200H"),
            ("SELECT nextval('up') FROM (SELECT UNNEST([1, 2]))", "32766, 32767"),
            ("SELECT nextval('up')", "2200H"),
            ("CREATE SEQUENCE around MAXVALUE 3 CYCLE", "done"),
            ("SELECT nextval('around') FROM (SELECT UNNEST(range(0, 7)))", "1, 2, 3, 1, 2, 3, 1"),
            ("CREATE SEQUENCE down INCREMENT -1 MINVALUE -2 CYCLE", "done"),
            ("SELECT nextval('down') FROM (SELECT UNNEST(range(0, 4)))", "-1, -2, -1, -2"),
            (&format!("CREATE SEQUENCE all_of_it MINVALUE {least} INCREMENT {greatest}"), "done"),
            (
                "SELECT nextval('all_of_it') FROM (SELECT UNNEST(range(0, 3)))",
                "-9223372036854775808, -1, 9223372036854775806",
            ),
            ("SELECT nextval('all_of_it')", "2200H"),
        ],
    );
}

#[test]
fn columns_generate_their_values_whoever_inserts() {
    let engine = engine(2);
    let mut session = engine.session();
    all(
        &mut session,
        &[
            ("CREATE TABLE t (id SERIAL PRIMARY KEY, name TEXT)", "done"),
            ("INSERT INTO t (name) VALUES ('a'), ('b') RETURNING id", "1, 2"),
            ("INSERT INTO t VALUES (DEFAULT, 'c'), (10, 'd') RETURNING id", "3, 10"),
            ("INSERT INTO t (name) SELECT name || '!' FROM t WHERE id < 3 RETURNING id", "4, 5"),
            ("SELECT lastval(), currval('t_id_seq')", "5 5"),
            ("INSERT INTO t (name) VALUES ('x') ON CONFLICT (id) DO NOTHING RETURNING id", "6"),
            ("INSERT INTO t (id, name) VALUES (NULL, 'x')", "23502"),
            (
                "CREATE TABLE always (id BIGINT GENERATED ALWAYS AS IDENTITY (START 5 INCREMENT 5), n INT)",
                "done",
            ),
            ("INSERT INTO always (n) VALUES (1), (2) RETURNING id", "5, 10"),
            ("INSERT INTO always VALUES (7, 3)", "428C9"),
            ("INSERT INTO always SELECT 7, 3", "428C9"),
            ("UPDATE always SET id = 7", "428C9"),
            ("UPDATE always SET id = DEFAULT WHERE n = 1", "done"),
            ("SELECT id FROM always ORDER BY id", "10, 15"),
            ("CREATE TABLE both (a INT DEFAULT 1 GENERATED BY DEFAULT AS IDENTITY)", "42000"),
            ("DROP SEQUENCE t_id_seq", "2BP01"),
            ("CREATE TABLE t_id_seq (n INT)", "42P07"),
            ("CREATE SEQUENCE s", "done"),
            ("CREATE TABLE u (k BIGINT DEFAULT nextval('s') * 10, v INT)", "done"),
            ("CREATE TABLE missing (k BIGINT DEFAULT nextval('not_there'))", "42P01"),
            ("INSERT INTO u (v) VALUES (1), (2) RETURNING k", "10, 20"),
            ("ALTER TABLE t ADD COLUMN k BIGINT DEFAULT nextval('s')", "0A000"),
            ("ALTER TABLE t ADD COLUMN k SERIAL", "0A000"),
            ("DROP SEQUENCE s", "2BP01"),
            ("DROP TABLE u; DROP SEQUENCE s", "done"),
            (
                "SELECT column_default FROM information_schema.columns WHERE column_name = 'id' AND table_name = 'always'",
                "nextval('always_id_seq')",
            ),
            // They go by the names of their tables and columns.
            ("ALTER TABLE t RENAME TO r; ALTER TABLE r RENAME COLUMN id TO nr", "done"),
            ("INSERT INTO r (name) VALUES ('e') RETURNING nr", "7"),
            ("SELECT nextval('t_id_seq')", "42P01"),
            ("SELECT nextval('r_nr_seq')", "8"),
            ("CREATE SEQUENCE taken_nr_seq; ALTER TABLE r RENAME TO taken", "42P07"),
            ("DROP TABLE r; CREATE TABLE r (nr SERIAL, name TEXT)", "done"),
            ("INSERT INTO r (name) VALUES ('f') RETURNING nr", "1"),
        ],
    );
    let names: ArrayRef = Arc::new(StringArray::from(vec!["g", "h"]));
    let rows = RecordBatch::try_from_iter([("name", names)]).unwrap();
    let mut transaction = engine.begin().unwrap();
    transaction.insert_columns("r", &["name"], rows).unwrap();
    transaction.commit().unwrap();
    assert_eq!(query(&engine, "SELECT nr FROM r WHERE name >= 'g' ORDER BY nr"), ["2", "3"]);
}

#[test]
fn no_two_threads_get_the_same_value() {
    let engine = engine(2);
    engine.execute("CREATE SEQUENCE s; CREATE TABLE t (id BIGSERIAL PRIMARY KEY, n INT)").unwrap();
    let threads = (0..8).map(|number| {
        let engine = engine.clone();
        thread::spawn(move || {
            let mut session = engine.session();
            let taken = (0..40).map(|_| {
                let inserted = format!("INSERT INTO t (n) VALUES ({number})");
                assert_eq!(run(&mut session, &inserted), "done");
                run(&mut session, "SELECT nextval('s')")
            });
            taken.collect::<Vec<_>>()
        })
    });
    let threads: Vec<_> = threads.collect();
    let taken: Vec<String> =
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect();
    assert_eq!(taken.len(), taken.iter().collect::<BTreeSet<_>>().len());
    assert_eq!(query(&engine, "SELECT count(*), max(id) FROM t"), ["320 320"]);
}

fn open(journal: &Arc<MemoryJournal>) -> Engine {
    Engine::builder().workers(2).journal(journal.clone()).open().unwrap()
}

#[test]
fn an_engine_goes_on_where_it_was_and_one_that_crashes_repeats_no_value() {
    let journal = Arc::new(MemoryJournal::default());
    let engine = open(&journal);
    let mut session = engine.session();
    all(
        &mut session,
        &[
            ("CREATE SEQUENCE s; CREATE TABLE t (id SERIAL, n INT)", "done"),
            (
                "SELECT nextval('s') FROM (SELECT UNNEST(range(0, 40)))",
                &(1..=40).map(|n| n.to_string()).collect::<Vec<_>>().join(", "),
            ),
            ("INSERT INTO t (n) VALUES (1), (2); ALTER TABLE t RENAME TO r", "done"),
        ],
    );
    // As after a crash: what the journal has by now.
    let crashed = Arc::new(MemoryJournal::default());
    for record in journal.replay(journal.range().start).unwrap() {
        let (_, bytes) = record.unwrap();
        let position = crashed.append(&bytes).unwrap();
        crashed.sync(position).unwrap();
    }
    drop((session, engine));
    let engine = open(&journal);
    let mut session = engine.session();
    all(
        &mut session,
        &[("SELECT nextval('s')", "41"), ("INSERT INTO r (n) VALUES (3) RETURNING id", "3")],
    );
    let engine = open(&crashed);
    let mut session = engine.session();
    let value: i64 = run(&mut session, "SELECT nextval('s')").parse().unwrap();
    assert!((41..=80).contains(&value), "{value}");
    let value: i64 =
        run(&mut session, "INSERT INTO r (n) VALUES (3) RETURNING id").parse().unwrap();
    assert!((3..=40).contains(&value), "{value}");
}

#[test]
fn checkpoints_have_the_values() {
    let directory = tempfile::tempdir().unwrap();
    let state = format!("file:{}", directory.path().display());
    let open = || Engine::builder().workers(1).state(state.clone()).open().unwrap();
    let engine = open();
    let mut session = engine.session();
    all(
        &mut session,
        &[
            ("CREATE SEQUENCE s START 100; CREATE TABLE t (id SERIAL, n INT)", "done"),
            ("INSERT INTO t (n) VALUES (1); SELECT setval('s', 500)", "500"),
            ("CHECKPOINT", "done"),
            ("SELECT nextval('s')", "501"),
            ("CREATE SEQUENCE gone; DROP SEQUENCE gone", "done"),
        ],
    );
    drop((session, engine));
    for round in 0..2 {
        let engine = open();
        let mut session = engine.session();
        let expected = [format!("{}", 502 + round), format!("{}", 2 + round)];
        all(
            &mut session,
            &[
                ("SELECT nextval('s')", &expected[0]),
                ("INSERT INTO t (n) VALUES (1) RETURNING id", &expected[1]),
                ("SELECT nextval('gone')", "42P01"),
                ("CHECKPOINT", "done"),
            ],
        );
    }
}

#[test]
fn names_follow_the_search_path() {
    let engine = engine(1);
    let mut session = engine.session();
    all(
        &mut session,
        &[
            ("CREATE SCHEMA a; CREATE SEQUENCE a.s START 5; CREATE SEQUENCE s", "done"),
            ("SELECT nextval('a.s')", "5"),
            ("SET search_path = a, public", "done"),
            ("SELECT nextval('s')", "6"),
            ("CREATE TABLE t (id SERIAL, n INT); INSERT INTO t (n) VALUES (1) RETURNING id", "1"),
            ("SELECT currval('a.t_id_seq')", "1"),
            ("ALTER SEQUENCE s RESTART; SELECT nextval('s')", "5"),
            ("DROP SEQUENCE s; SELECT nextval('s')", "1"),
            ("CREATE SEQUENCE \"S.x\"; SELECT nextval('\"S.x\"')", "1"),
        ],
    );
}

#[test]
fn tables_that_generate_keys_are_created_within_transactions() {
    let journal = Arc::new(MemoryJournal::default());
    let engine = open(&journal);
    let mut session = engine.session();
    all(
        &mut session,
        &[
            ("BEGIN; CREATE TABLE t (id SERIAL PRIMARY KEY, n INT)", "done"),
            ("INSERT INTO t (n) VALUES (10), (20) RETURNING id", "1, 2"),
            ("SELECT currval('t_id_seq')", "2"),
            ("COMMIT", "done"),
            ("INSERT INTO t (n) VALUES (30) RETURNING id", "3"),
            ("BEGIN; ALTER TABLE t RENAME TO r", "25001"),
            ("ROLLBACK; ALTER TABLE t RENAME TO r", "done"),
            ("INSERT INTO r (n) VALUES (40) RETURNING id", "4"),
            ("INSERT INTO r (n) VALUES (50) RETURNING id", "5"),
            (
                "BEGIN; CREATE TABLE gone (id SERIAL, n INT); INSERT INTO gone (n) VALUES (1); ROLLBACK",
                "done",
            ),
            (
                "CREATE TABLE gone (id SERIAL, n INT); INSERT INTO gone (n) VALUES (1) RETURNING id",
                "1",
            ),
            ("BEGIN; DROP TABLE r; CREATE TABLE r (id SERIAL, n INT)", "done"),
            // The name is that of the sequence of the table that is dropped, until the transaction commits.
            ("INSERT INTO r (n) VALUES (1) RETURNING id", "6"),
            ("COMMIT", "done"),
            ("INSERT INTO r (n) VALUES (2) RETURNING id", "7"),
        ],
    );
    drop((session, engine));
    let engine = open(&journal);
    let mut session = engine.session();
    all(
        &mut session,
        &[
            ("SELECT id, n FROM r ORDER BY id", "6 1, 7 2"),
            ("INSERT INTO r (n) VALUES (3) RETURNING id", "8"),
            ("INSERT INTO gone (n) VALUES (2) RETURNING id", "2"),
        ],
    );
}
