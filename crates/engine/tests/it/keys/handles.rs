//! Statements that are prepared once and run many times.

use std::thread;

use alluvium::{Engine, Outcome, Prepared, Session, Value};

use super::answers::{Random, TABLES};
use crate::support::{engine_with, lines};

const TABLE: &str = "
    CREATE TABLE t (id INTEGER PRIMARY KEY, name VARCHAR, v BIGINT);
    CREATE TABLE pairs (v BIGINT, a BIGINT, b VARCHAR, PRIMARY KEY (a, b));
    CREATE MATERIALIZED VIEW sums AS SELECT SUM(v) AS total, name FROM t GROUP BY name;
    INSERT INTO t VALUES (1, 'a', 10), (2, 'b', 20), (3, NULL, 30);
    INSERT INTO pairs VALUES (1, 1, 'x'), (2, 1, 'y')";

fn prepare(session: &mut Session, sql: &str) -> Prepared {
    session.prepare(sql).unwrap_or_else(|error| panic!("{sql}: {error}"))
}

fn shown(outcome: alluvium::Result<Outcome>) -> String {
    match outcome {
        Ok(Outcome::Rows(rows)) => {
            let schema = rows.schema().clone();
            let batches = match rows.into_batches() {
                Ok(batches) => batches,
                Err(error) => return format!("{:?}: {error}", error.position()),
            };
            let columns =
                schema.fields().iter().map(|of| format!("{}:{} ", of.name(), of.data_type()));
            for batch in &batches {
                assert_eq!(batch.schema(), schema);
            }
            format!("{}{:?}", columns.collect::<String>(), lines(&batches))
        }
        Ok(Outcome::Changed { rows, .. }) => format!("{rows} rows"),
        Ok(other) => format!("{other:?}"),
        Err(error) => format!("{:?}: {error}", error.position()),
    }
}

fn run(session: &mut Session, prepared: &Prepared, values: &[Value]) -> String {
    shown(session.execute_prepared(prepared, values))
}

fn number(number: i64) -> Value {
    number.into()
}

#[test]
fn a_prepared_statement_does_each_time_what_its_text_does() {
    let engine = engine_with(2, TABLE);
    let mut session = engine.session();
    let texts = [
        ("SELECT * FROM t WHERE id = $1", 1),
        ("SELECT v, name AS called FROM t WHERE $1 = id", 1),
        ("SELECT v + 1 AS more FROM t WHERE id = $1", 1),
        ("SELECT name FROM t WHERE id = $1 AND v > $2", 2),
        ("SELECT v, v AS again FROM t WHERE id = $1", 1),
        ("SELECT b FROM pairs WHERE a = $1", 1),
        ("SELECT b, v FROM pairs WHERE b = 'x' AND a = $1", 1),
        ("SELECT total FROM sums WHERE name = 'a'", 0),
        ("SELECT count(*) AS n FROM t WHERE id < $1", 1),
        ("SELECT $1 AS given", 1),
        ("SHOW TABLES", 0),
    ];
    for (sql, count) in texts {
        let prepared = prepare(&mut session, sql);
        assert_eq!(prepared.text(), sql);
        let columns = prepared.description().columns.clone().expect("it returns rows");
        for value in [number(1), number(2), number(9), Value::NULL, number(1 << 40)] {
            let values = vec![value; count];
            for _ in 0..3 {
                let expected = shown(engine.session().execute_with(sql, &values));
                assert_eq!(run(&mut session, &prepared, &values), expected, "{sql}: {values:?}");
            }
            if let Ok(Outcome::Rows(rows)) = session.execute_prepared(&prepared, &values)
                && sql != "SELECT $1 AS given"
            {
                assert_eq!(rows.schema().fields().len(), columns.fields().len());
                for (field, described) in rows.schema().fields().iter().zip(columns.fields()) {
                    assert_eq!(
                        (field.name(), field.data_type()),
                        (described.name(), described.data_type()),
                        "{sql}"
                    );
                }
            }
        }
    }
}

#[test]
fn a_read_by_key_sees_what_was_committed_before_it_and_what_its_transaction_wrote() {
    let engine = engine_with(2, TABLE);
    let (mut session, mut other) = (engine.session(), engine.session());
    let read = prepare(&mut session, "SELECT v FROM t WHERE id = $1");
    let update = prepare(&mut session, "UPDATE t SET v = $2 WHERE id = $1");
    let insert = prepare(&mut session, "INSERT INTO t VALUES ($1, 'new', $2)");
    for round in 0..200 {
        assert_eq!(run(&mut session, &update, &[number(1), number(round)]), "1 rows");
        let seen = format!("v:Int64 [\"{round}\"]");
        assert_eq!(run(&mut other, &read, &[number(1)]), seen);
        assert_eq!(run(&mut session, &insert, &[number(100 + round), number(-round)]), "1 rows");
        assert_eq!(
            run(&mut session, &read, &[number(100 + round)]),
            format!("v:Int64 [\"{}\"]", -round)
        );
    }
    session.execute("BEGIN").expect("a transaction");
    assert_eq!(run(&mut session, &update, &[number(2), number(77)]), "1 rows");
    assert_eq!(run(&mut session, &read, &[number(2)]), "v:Int64 [\"77\"]");
    assert_eq!(run(&mut other, &read, &[number(2)]), "v:Int64 [\"20\"]");
    session.execute("ROLLBACK").expect("a transaction");
    assert_eq!(run(&mut session, &read, &[number(2)]), "v:Int64 [\"20\"]");
    session.set_reads_stale(true);
    assert_eq!(run(&mut session, &read, &[number(2)]), "v:Int64 [\"20\"]");
}

#[test]
fn definitions_make_a_prepared_statement_plan_again_or_fail() {
    let engine = engine_with(2, TABLE);
    let mut session = engine.session();
    let read = prepare(&mut session, "SELECT v FROM t WHERE id = $1");
    let all = prepare(&mut session, "SELECT * FROM t WHERE id = $1");
    let insert = prepare(&mut session, "INSERT INTO t (id, v) VALUES ($1, 5)");
    let columns = "id:Int32 name:Utf8 v:Int64";
    let changed = "Some((1, 1)): cached plan must not change result type: since the statement was prepared its columns have changed, prepare it again";
    for _ in 0..2 {
        assert_eq!(run(&mut session, &read, &[number(1)]), "v:Int64 [\"10\"]");
        assert_eq!(run(&mut session, &all, &[number(1)]), format!("{columns} [\"1 a 10\"]"));
    }
    // An unrelated definition only costs another plan.
    engine.execute("CREATE TABLE beside (a INT)").expect("a table");
    assert_eq!(run(&mut session, &all, &[number(1)]), format!("{columns} [\"1 a 10\"]"));
    engine
        .execute("DROP MATERIALIZED VIEW sums; ALTER TABLE t ADD COLUMN w INT DEFAULT 3")
        .expect("a column");
    assert_eq!(run(&mut session, &read, &[number(1)]), "v:Int64 [\"10\"]");
    assert_eq!(run(&mut session, &all, &[number(1)]), changed);
    assert_eq!(run(&mut session, &all, &[number(1)]), changed);
    let again = prepare(&mut session, all.text());
    assert_eq!(
        run(&mut session, &again, &[number(1)]),
        format!("{columns} w:Int32 [\"1 a 10 3\"]")
    );
    assert_eq!(run(&mut session, &insert, &[number(8)]), "1 rows");
    engine.execute("DROP TABLE t CASCADE").expect("nothing else uses it");
    let gone = run(&mut session, &read, &[number(1)]);
    assert!(gone.contains("no table or view \"t\""), "{gone}");
    engine
        .execute(
            "CREATE TABLE t (v BIGINT, id VARCHAR PRIMARY KEY);
             INSERT INTO t VALUES (4, '1')",
        )
        .expect("another table");
    // It has the same columns as before.
    assert_eq!(run(&mut session, &read, &["1".into()]), "v:Int64 [\"4\"]");
    assert_eq!(run(&mut session, &insert, &["2".into()]), "1 rows");
    assert_eq!(run(&mut session, &read, &["2".into()]), "v:Int64 [\"5\"]");
}

#[test]
fn values_are_counted_and_fit() {
    let engine = engine_with(1, TABLE);
    let mut session = engine.session();
    let read = prepare(&mut session, "SELECT v FROM t WHERE id = $1");
    assert_eq!(
        run(&mut session, &read, &[]),
        "Some((1, 1)): the statement has 1 parameters, and 0 values were given"
    );
    for _ in 0..2 {
        let wrong = run(&mut session, &read, &["one".into()]);
        assert!(wrong.contains("does not fit type INTEGER"), "{wrong}");
        assert_eq!(run(&mut session, &read, &["1".into()]), "v:Int64 [\"10\"]");
    }
}

#[test]
fn errors_are_where_they_are_in_the_text() {
    let engine = engine_with(1, TABLE);
    let mut session = engine.session();
    engine.execute("INSERT INTO t VALUES (4, 'x', 9223372036854775807)").expect("a row");
    let sql = "SELECT\n  v + $1 AS more FROM t WHERE id = 4";
    let prepared = prepare(&mut session, sql);
    for _ in 0..3 {
        let expected = shown(session.execute_with(sql, &[number(1)]));
        assert!(expected.contains("overflow"), "{expected}");
        assert_eq!(run(&mut session, &prepared, &[number(1)]), expected);
    }
    let wrong = session.prepare("SELECT\n  nope FROM t").expect_err("there is no such column");
    assert_eq!(wrong.position(), Some((2, 3)));
}

#[test]
fn many_threads_run_one_prepared_statement_while_rows_and_tables_change() {
    let engine = engine_with(2, TABLE);
    let read = prepare(&mut engine.session(), "SELECT id, v FROM t WHERE id = $1");
    let update = prepare(&mut engine.session(), "UPDATE t SET v = v + 1 WHERE id = $1");
    thread::scope(|scope| {
        for id in 1..=3 {
            let (engine, read, update) = (&engine, &read, &update);
            scope.spawn(move || {
                let mut session = engine.session();
                for round in 1..=50 {
                    assert_eq!(run(&mut session, update, &[number(id)]), "1 rows");
                    let seen = format!("id:Int32 v:Int64 [\"{id} {}\"]", 10 * id + round);
                    assert_eq!(run(&mut session, read, &[number(id)]), seen);
                }
            });
        }
        scope.spawn(|| {
            for _ in 0..20 {
                engine
                    .execute("CREATE TABLE beside (a INT); DROP TABLE beside")
                    .expect("it is right");
            }
        });
    });
}

#[test]
fn reads_of_all_keys_find_what_scans_find() {
    for seed in 0..3 {
        let engine = Engine::builder().workers(2).open_in_memory().expect("an engine starts");
        engine.execute(TABLES).expect("the statements are right");
        let mut session = engine.session();
        let keyed = prepare(&mut session, "SELECT v, n FROM keyed WHERE n = $1 AND t = $2");
        let copied = prepare(&mut session, "SELECT v, n FROM copied WHERE n = $1 AND t = $2");
        let group = prepare(&mut session, "SELECT v FROM groups WHERE n = $1 AND t = $2");
        let copied_group =
            prepare(&mut session, "SELECT v FROM copied_groups WHERE n = $1 AND t = $2");
        let mut random = Random(seed);
        for round in 0..300 {
            let n = number(random.below(6) as i64);
            let t: Value = random.one_of(&["", "a", "ab", "z"]).into();
            let key = [n, t];
            if random.below(3) == 0 {
                let mut row = key.to_vec();
                row.push(number(round));
                for table in ["keyed", "copied"] {
                    let delete = format!("DELETE FROM {table} WHERE n = $1 AND t = $2");
                    session.execute_with(&delete, &key).expect("a change");
                    let insert = format!("INSERT INTO {table} VALUES ($1, $2, $3)");
                    session.execute_with(&insert, &row).expect("a change");
                }
            }
            let context = format!("seed {seed}, round {round}: {key:?}");
            let found = run(&mut session, &keyed, &key);
            assert_eq!(found, run(&mut session, &copied, &key), "{context}");
            let found = run(&mut session, &group, &key);
            assert_eq!(found, run(&mut session, &copied_group, &key), "{context}");
        }
    }
}
