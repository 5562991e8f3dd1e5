//! UNIQUE: no two rows of a table have the same values in some columns.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::thread;

use alluvium::arrow::array::{ArrayRef, Int64Array, RecordBatch};
use alluvium::{Engine, Error};

use crate::keys::Random;
use crate::support::{engine, engine_with, query};

const TABLE: &str = "CREATE TABLE t (
        id BIGINT PRIMARY KEY, mail VARCHAR UNIQUE, a BIGINT, b DOUBLE, CONSTRAINT pair UNIQUE (b, a));
    INSERT INTO t VALUES (1, 'x', 1, 1.5), (2, 'y', 1, 0.0), (3, NULL, NULL, 0.0), (4, NULL, NULL, 0.0)";

/// A statement that changes nothing, because a constraint of this name is UNIQUE.
fn refused(engine: &Engine, sql: &str, name: &str, values: &str) {
    let before = query(engine, "SELECT * FROM t");
    let error = engine.execute(sql).unwrap_err();
    let message = error.to_string();
    assert!(message.contains(&format!("constraint \"{name}\" is UNIQUE")), "{sql}: {message}");
    assert!(message.contains(values), "{sql}: {message}");
    assert_eq!(error.sqlstate().to_string(), "23505", "{message}");
    assert_eq!(query(engine, "SELECT * FROM t"), before, "{sql}");
}

#[test]
fn statements_keep_values_unique() {
    for workers in 1..=2 {
        let engine = engine_with(workers, TABLE);
        for (sql, name, values) in [
            ("INSERT INTO t VALUES (5, 'x', 9, 9)", "t_mail_key", "(mail) = (x)"),
            ("INSERT INTO t VALUES (5, 'z', 9, 9), (6, 'z', 8, 8)", "t_mail_key", "(mail) = (z)"),
            // -0.0 and 0.0 are equal.
            ("INSERT INTO t VALUES (5, 'z', 1, -0.0)", "pair", "(b, a) = ("),
            (
                "INSERT INTO t SELECT id + 10, mail, 9 + id, b FROM t WHERE id = 2",
                "t_mail_key",
                "(y)",
            ),
            ("UPDATE t SET mail = 'x' WHERE id = 2", "t_mail_key", "(x)"),
            ("UPDATE t SET mail = 'same'", "t_mail_key", "(same)"),
            ("UPDATE t SET a = 1 WHERE id = 3", "pair", "0.0, 1)"),
            ("INSERT OR REPLACE INTO t VALUES (1, 'y', 1, 1)", "t_mail_key", "(y)"),
            (
                "INSERT INTO t VALUES (1, 'n', 1, 2) ON CONFLICT (id) DO UPDATE SET mail = 'y'",
                "t_mail_key",
                "(y)",
            ),
            (
                "INSERT INTO t VALUES (9, 'x', 1, 2) ON CONFLICT (mail) DO UPDATE SET b = 0",
                "pair",
                "0.0, 1)",
            ),
            (
                "INSERT INTO t VALUES (9, 'x', 1, 2) ON CONFLICT (id) DO NOTHING",
                "t_mail_key",
                "(x)",
            ),
        ] {
            refused(&engine, sql, name, values);
        }
        engine
            .execute(
                "INSERT INTO t VALUES (5, NULL, NULL, 0.0);
                 -- They change places, and one takes that of another.
                 UPDATE t SET mail = CASE mail WHEN 'x' THEN 'y' ELSE 'x' END WHERE mail IS NOT NULL;
                 INSERT OR REPLACE INTO t VALUES (1, 'y', 1, 1.5);
                 DELETE FROM t WHERE id = 2;
                 INSERT INTO t VALUES (6, 'x', 1, 0.0);
                 INSERT INTO t VALUES (9, 'x', 9, 9), (1, 'w', 9, 9), (9, 'w', 1, 1.5) ON CONFLICT DO NOTHING;
                 INSERT INTO t VALUES (9, 'w', 9, 9), (10, 'w', 10, 10) ON CONFLICT DO NOTHING;
                 INSERT INTO t VALUES (0, 'w', 0, 0) ON CONFLICT (mail) DO UPDATE SET a = t.a + 1;
                 INSERT INTO t VALUES (20, NULL, 1, 20), (21, NULL, 1, 21) ON CONFLICT (mail) DO UPDATE SET a = 0",
            )
            .unwrap();
        assert_eq!(
            query(&engine, "SELECT * FROM t WHERE mail IS NOT NULL OR id >= 20"),
            ["1 y 1 1.5", "20 NULL 1 20.0", "21 NULL 1 21.0", "6 x 1 0.0", "9 w 10 9.0"]
        );
        assert_eq!(query(&engine, "SELECT COUNT(*) FROM t"), ["8"]);
        let error =
            engine.execute("INSERT INTO t VALUES (9, 'w', 9, 9) ON CONFLICT (a) DO NOTHING");
        let message = error.unwrap_err().to_string();
        assert!(message.contains("has (id), (mail), (b, a)"), "{message}");
    }
}

#[test]
fn a_transaction_sees_the_values_that_it_has_written() {
    let engine = engine_with(2, TABLE);
    let mut session = engine.session();
    let mut run = |sql: &str| session.execute(sql).map(drop);
    let is_taken = |done: Result<(), Error>| done.unwrap_err().sqlstate().to_string() == "23505";
    run("BEGIN").unwrap();
    run("INSERT INTO t VALUES (10, 'new', 0, 10)").unwrap();
    assert!(is_taken(run("INSERT INTO t VALUES (11, 'new', 0, 11)")));
    run("DELETE FROM t WHERE mail = 'x'").unwrap();
    run("INSERT INTO t VALUES (11, 'x', 0, 11)").unwrap();
    run("UPDATE t SET mail = 'old' WHERE id = 10").unwrap();
    run("INSERT INTO t VALUES (12, 'new', 0, 12)").unwrap();
    run("SAVEPOINT s").unwrap();
    run("INSERT INTO t VALUES (13, 'later', 0, 13)").unwrap();
    run("ROLLBACK TO s").unwrap();
    run("INSERT INTO t VALUES (14, 'later', 0, 14)").unwrap();
    assert!(is_taken(run("INSERT OR REPLACE INTO t VALUES (12, 'later', 0, 0)")));
    run("INSERT OR REPLACE INTO t VALUES (14, 'last', 0, 0)").unwrap();
    run("INSERT INTO t VALUES (15, 'later', 0, 15)").unwrap();
    run("COMMIT").unwrap();
    assert_eq!(
        query(&engine, "SELECT id, mail FROM t WHERE mail IS NOT NULL"),
        ["10 old", "11 x", "12 new", "14 last", "15 later", "2 y"]
    );
    // One that is created is compared with what is written to it.
    run("BEGIN; CREATE TABLE u (n BIGINT UNIQUE); INSERT INTO u VALUES (1), (NULL), (NULL)")
        .unwrap();
    assert!(is_taken(run("INSERT INTO u VALUES (1)")));
    run("ALTER TABLE u RENAME TO w; COMMIT").unwrap();
    assert!(is_taken(run("INSERT INTO w VALUES (1)")));
    run("BEGIN; ALTER TABLE w RENAME TO u").unwrap();
    assert!(is_taken(run("INSERT INTO u VALUES (1)")));
    run("INSERT INTO u VALUES (2); COMMIT").unwrap();
    assert!(is_taken(run("INSERT INTO u VALUES (2)")));
    assert!(
        run("DROP INDEX u_n_key").unwrap_err().to_string().contains("UNIQUE constraint of \"u\"")
    );
}

#[test]
fn a_table_without_a_key_keeps_values_unique() {
    let engine = engine_with(
        2,
        "CREATE TABLE t (n BIGINT UNIQUE, m BIGINT); INSERT INTO t VALUES (1, 1), (2, 2)",
    );
    refused(&engine, "INSERT INTO t VALUES (1, 2)", "t_n_key", "(1)");
    refused(&engine, "INSERT INTO t VALUES (1, 1)", "t_n_key", "(1)");
    refused(&engine, "UPDATE t SET n = 5", "t_n_key", "(5)");
    engine
        .execute(
            "UPDATE t SET n = 3 - n; DELETE FROM t WHERE n = 1; INSERT INTO t VALUES (1, 7), (NULL, 1), (NULL, 1);
             INSERT INTO t VALUES (1, 8), (4, 4) ON CONFLICT (n) DO UPDATE SET m = excluded.m",
        )
        .unwrap();
    assert_eq!(query(&engine, "SELECT * FROM t"), ["1 8", "2 1", "4 4", "NULL 1", "NULL 1"]);
}

#[test]
fn what_programs_insert_is_compared_when_they_commit() {
    let engine = engine_with(
        2,
        "CREATE TABLE t (id BIGINT PRIMARY KEY, n BIGINT UNIQUE); INSERT INTO t VALUES (1, 1), (2, 2)",
    );
    let rows = |rows: &[(i64, i64)]| {
        let column = |values: Vec<i64>| Arc::new(Int64Array::from(values)) as ArrayRef;
        let ids = column(rows.iter().map(|(id, _)| *id).collect());
        let values = column(rows.iter().map(|(_, value)| *value).collect());
        RecordBatch::try_from_iter([("id", ids), ("n", values)]).unwrap()
    };
    let mut open = engine.begin().unwrap();
    open.insert("t", rows(&[(3, 1)])).unwrap();
    assert_eq!(open.commit().unwrap_err().sqlstate().to_string(), "23505");
    let mut open = engine.begin().unwrap();
    open.upsert("t", rows(&[(2, 1)])).unwrap();
    assert_eq!(open.commit().unwrap_err().sqlstate().to_string(), "23505");
    let mut open = engine.begin().unwrap();
    open.upsert("t", rows(&[(2, 1), (1, 2)])).unwrap();
    open.insert("t", rows(&[(3, 3)])).unwrap();
    open.commit().unwrap();
    assert_eq!(query(&engine, "SELECT * FROM t"), ["1 2", "2 1", "3 3"]);
}

#[test]
fn very_many_rows_have_values_that_differ() {
    let engine = engine_with(2, "CREATE TABLE t (id BIGINT PRIMARY KEY, n BIGINT UNIQUE)");
    engine.execute("INSERT INTO t SELECT x, 100000 - x FROM range(50000) AS r (x)").unwrap();
    let count = |sql| query(&engine, sql);
    for sql in [
        "INSERT INTO t SELECT x, x % 20000 FROM range(50000, 80000) AS r (x)",
        "INSERT INTO t SELECT x, x + 20000 FROM range(50000, 80000) AS r (x)",
        "UPDATE t SET n = id % 20000",
        "UPDATE t SET n = 77777 WHERE id IN (5, 6)",
    ] {
        let error = engine.execute(sql).unwrap_err();
        assert_eq!(error.sqlstate().to_string(), "23505", "{sql}: {error}");
    }
    engine
        .execute(
            "UPDATE t SET n = id; INSERT OR REPLACE INTO t SELECT x, 49999 - x FROM range(50000) AS r (x);
             INSERT INTO t SELECT x, x FROM range(50000, 80000) AS r (x)",
        )
        .unwrap();
    assert_eq!(count("SELECT COUNT(*), COUNT(DISTINCT n), MAX(n) FROM t"), ["80000 80000 79999"]);
}

#[test]
fn a_constraint_is_added_to_rows_that_meet_it_and_goes_with_its_table() {
    let directory = tempfile::tempdir().unwrap();
    let state = format!("file:{}", directory.path().display());
    let open = || Engine::builder().workers(2).state(state.clone()).open().unwrap();
    let engine = open();
    let fails = |engine: &Engine, sql: &str, text: &str| {
        let message = engine.execute(sql).unwrap_err().to_string();
        assert!(message.contains(text), "{sql}: {message}");
    };
    engine
        .execute("CREATE TABLE t (id BIGINT PRIMARY KEY, n BIGINT, m BIGINT); INSERT INTO t VALUES (1, 1, 1), (2, 1, 2), (3, NULL, 2)")
        .unwrap();
    fails(&engine, "ALTER TABLE t ADD UNIQUE (n)", "several rows of \"t\" have the key (n) = (1)");
    engine
        .execute("UPDATE t SET n = 2 WHERE id = 2; ALTER TABLE t ADD CONSTRAINT one UNIQUE (n)")
        .unwrap();
    fails(&engine, "INSERT INTO t VALUES (4, 2, 0)", "\"one\"");
    fails(&engine, "ALTER TABLE t ADD CONSTRAINT one UNIQUE (m)", "already");
    fails(&engine, "CREATE TABLE one (a INT)", "an index \"one\"");
    engine.execute("CREATE TABLE two (a INT)").unwrap();
    fails(&engine, "ALTER TABLE two ADD CONSTRAINT one UNIQUE (a)", "\"one\"");
    fails(&engine, "ALTER TABLE two ADD CONSTRAINT two UNIQUE (a)", "\"two\"");
    engine.execute("ALTER TABLE t RENAME COLUMN n TO k; ALTER TABLE t RENAME TO s; ALTER TABLE s ADD COLUMN z INT").unwrap();
    fails(&engine, "INSERT INTO s VALUES (4, 2, 0, 0)", "(k) = (2)");
    fails(&engine, "ALTER TABLE s DROP COLUMN k", "UNIQUE");
    engine.execute("ALTER TABLE s DROP COLUMN m; INSERT INTO s VALUES (4, 3, 0)").unwrap();
    drop(engine);
    let engine = open();
    fails(&engine, "INSERT INTO s VALUES (5, 3, 0)", "(k) = (3)");
    assert_eq!(query(&engine, "SELECT id FROM s WHERE k = 3"), ["4"]);
    engine.checkpoint().unwrap();
    drop(engine);
    let engine = open();
    fails(&engine, "INSERT INTO s VALUES (5, 3, 0)", "(k) = (3)");
    engine.execute("CREATE OR REPLACE TABLE s (id BIGINT, k BIGINT, CONSTRAINT one UNIQUE (k)); INSERT INTO s VALUES (1, 3)").unwrap();
    fails(&engine, "INSERT INTO s VALUES (5, 3)", "(k) = (3)");
    engine.execute("DROP TABLE s; CREATE TABLE one (a INT)").unwrap();
    drop(engine);
    assert_eq!(query(&open(), "SELECT COUNT(*) FROM one"), ["0"]);
}

/// Threads that insert the same values: each value is there once, whichever was first.
#[test]
fn of_those_who_insert_a_value_at_once_one_has_it() {
    const VALUES: i64 = 200;
    let engine = engine_with(2, "CREATE TABLE t (id BIGINT PRIMARY KEY, n BIGINT UNIQUE)");
    let inserted: usize = thread::scope(|scope| {
        let threads: Vec<_> = (0..8_i64)
            .map(|thread| {
                let engine = &engine;
                scope.spawn(move || {
                    let mut inserted = 0;
                    for value in 0..VALUES {
                        let id = thread * VALUES + value;
                        match engine.execute(&format!("INSERT INTO t VALUES ({id}, {value})")) {
                            Ok(_) => inserted += 1,
                            Err(error) => {
                                assert_eq!(error.sqlstate().to_string(), "23505", "{error}");
                            }
                        }
                    }
                    inserted
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert_eq!(inserted as i64, VALUES);
    assert_eq!(query(&engine, "SELECT COUNT(*), COUNT(DISTINCT n) FROM t"), ["200 200"]);
}

/// Rows by their ids: a value, or none, and a pair.
type Model = BTreeMap<i64, (Option<i64>, Option<i64>, i64)>;

/// Whether no two rows have the same value or pair.
fn is_unique(rows: &Model) -> bool {
    let mut values: Vec<_> = rows.values().filter_map(|row| row.0).collect();
    let mut pairs: Vec<_> = rows.values().filter_map(|row| Some((row.1?, row.2))).collect();
    let (count, pairs_count) = (values.len(), pairs.len());
    values.sort_unstable();
    values.dedup();
    pairs.sort_unstable();
    pairs.dedup();
    (values.len(), pairs.len()) == (count, pairs_count)
}

#[test]
fn random_statements_do_as_a_model_does() {
    for seed in 0..4 {
        let mut random = Random(seed);
        let engine = engine(1 + seed as usize % 2);
        engine
            .execute("CREATE TABLE t (id BIGINT PRIMARY KEY, v BIGINT UNIQUE, p BIGINT, q BIGINT, UNIQUE (p, q))")
            .unwrap();
        let mut session = engine.session();
        let (mut model, mut committed) = (Model::new(), Model::new());
        let mut is_open = false;
        for _ in 0..400 {
            let mut small = || random.below(6) as i64;
            let (kind, id, other) = (small(), small(), small());
            let mut maybe = || Some(small()).filter(|value| *value < 5);
            let (v, p) = (maybe(), maybe());
            let q = small() % 2;
            let text =
                |value: Option<i64>| value.map_or("NULL".to_owned(), |value| value.to_string());
            let row = format!("({id}, {}, {}, {q})", text(v), text(p));
            let before = model.clone();
            let (sql, is_there) = match kind {
                0 => {
                    let is_there = model.insert(id, (v, p, q)).is_some();
                    (format!("INSERT INTO t VALUES {row}"), is_there)
                }
                1 => {
                    model.insert(id, (v, p, q));
                    (format!("INSERT OR REPLACE INTO t VALUES {row}"), false)
                }
                2 => {
                    model
                        .iter_mut()
                        .filter(|(key, _)| **key >= id)
                        .for_each(|(_, row)| row.0 = row.0.map(|v| (v + other) % 6));
                    (format!("UPDATE t SET v = (v + {other}) % 6 WHERE id >= {id}"), false)
                }
                3 => {
                    model.retain(|key, row| *key != id && row.0 != Some(other));
                    (format!("DELETE FROM t WHERE id = {id} OR v = {other}"), false)
                }
                4 => {
                    model.entry(id).or_insert((v, p, q));
                    // A value of another row is an error, as it names the id alone.
                    (format!("INSERT INTO t VALUES {row} ON CONFLICT (id) DO NOTHING"), false)
                }
                _ if is_open => {
                    is_open = false;
                    match other % 2 {
                        0 => {
                            committed = model.clone();
                            ("COMMIT".to_owned(), false)
                        }
                        _ => {
                            model = committed.clone();
                            ("ROLLBACK".to_owned(), false)
                        }
                    }
                }
                _ => {
                    is_open = true;
                    ("BEGIN".to_owned(), false)
                }
            };
            let is_right = !is_there && is_unique(&model);
            match session.execute(&sql) {
                Ok(_) => assert!(is_right, "seed {seed}: {sql} on {before:?}"),
                Err(error) => {
                    assert!(!is_right, "seed {seed}: {sql} on {before:?}: {error}");
                    assert_eq!(error.sqlstate().to_string(), "23505", "{sql}: {error}");
                    model = before;
                }
            }
            if !is_open {
                committed.clone_from(&model);
            }
        }
        session.execute(if is_open { "COMMIT" } else { "SELECT 1" }).unwrap();
        let text = |value: Option<i64>| value.map_or("NULL".to_owned(), |value| value.to_string());
        let expected: Vec<String> = model
            .iter()
            .map(|(id, (v, p, q))| format!("{id} {} {} {q}", text(*v), text(*p)))
            .collect();
        assert_eq!(query(&engine, "SELECT * FROM t"), expected, "seed {seed}");
    }
}
