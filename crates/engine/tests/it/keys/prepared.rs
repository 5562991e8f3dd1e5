//! Statements by key that run again: their plans are kept, without visible effect.

use alluvium::{Engine, Outcome, Session, Value};

use super::answers::{Random, TABLES, condition};
use crate::support::{engine_with, lines};

/// The result of a statement: its rows, how many it changed, or its error with the position.
fn run(session: &mut Session, sql: &str, values: &[Value]) -> String {
    match session.execute_with(sql, values) {
        Ok(Outcome::Rows(rows)) => {
            let fields = rows.schema().fields().iter();
            let types: String = fields.map(|field| format!("{} ", field.data_type())).collect();
            match rows.into_batches() {
                Ok(batches) => format!("{types}{:?}", lines(&batches)),
                Err(error) => format!("{:?}: {error}", error.position()),
            }
        }
        Ok(Outcome::Changed { rows, .. }) => format!("{rows} rows"),
        Ok(other) => format!("{other:?}"),
        Err(error) => format!("{:?}: {error}", error.position()),
    }
}

/// The same, after it has run often enough for its plan to be kept.
fn run_again(session: &mut Session, sql: &str, values: &[Value]) -> String {
    let first = run(session, sql, values);
    assert_eq!(run(session, sql, values), first, "{sql}");
    assert_eq!(run(session, sql, values), first, "{sql}");
    first
}

fn number(number: i64) -> Value {
    number.into()
}

const TABLE: &str = "
    CREATE TABLE t (id BIGINT PRIMARY KEY, name VARCHAR, v BIGINT);
    INSERT INTO t VALUES (1, 'a', 10), (2, 'b', 20), (3, NULL, 30)";

#[test]
fn each_run_has_its_own_values_and_sees_what_was_written_before_it() {
    let engine = engine_with(2, TABLE);
    let mut session = engine.session();
    let select = "SELECT v, $2 AS given FROM t WHERE id = $1";
    for round in 0..4 {
        for id in 1..=3 {
            let update = "UPDATE t SET v = v + $1 WHERE id = $2";
            assert_eq!(run(&mut session, update, &[number(1), number(id)]), "1 rows");
            let expected = format!("Int64 Int64 [\"{} {round}\"]", 10 * id + round + 1);
            assert_eq!(run(&mut session, select, &[number(id), number(round)]), expected);
        }
        let nothing = [Value::NULL, number(round)];
        assert_eq!(run(&mut session, select, &nothing), "Int64 Int64 []");
    }
}

#[test]
fn values_may_change_their_types() {
    let engine = engine_with(1, TABLE);
    let mut session = engine.session();
    let sql = "SELECT $2 AS given FROM t WHERE id = $1";
    for _ in 0..2 {
        assert_eq!(run_again(&mut session, sql, &[number(1), number(7)]), "Int64 [\"7\"]");
        assert_eq!(run_again(&mut session, sql, &[number(1), "x".into()]), "Utf8 [\"x\"]");
        assert_eq!(run_again(&mut session, sql, &["2".into(), "x".into()]), "Utf8 [\"x\"]");
        let wrong = run_again(&mut session, sql, &["two".into(), "x".into()]);
        assert!(wrong.contains("does not fit type BIGINT"), "{wrong}");
    }
}

#[test]
fn definitions_end_plans() {
    let engine = engine_with(2, TABLE);
    let mut session = engine.session();
    let select = "SELECT * FROM t WHERE id = $1";
    let insert = "INSERT OR REPLACE INTO t (id, v) VALUES ($1, 5)";
    assert_eq!(run_again(&mut session, select, &[number(1)]), "Int64 Utf8 Int64 [\"1 a 10\"]");
    assert_eq!(run_again(&mut session, insert, &[number(4)]), "1 rows");
    engine.execute("DROP TABLE t").expect("nothing uses it");
    let gone = run_again(&mut session, select, &[number(1)]);
    assert!(gone.contains("no table or view \"t\""), "{gone}");
    let gone = run_again(&mut session, insert, &[number(1)]);
    assert!(gone.contains("no table or view \"t\""), "{gone}");
    engine
        .execute(
            "CREATE TABLE t (v INTEGER DEFAULT 3, w VARCHAR DEFAULT 'new', id VARCHAR PRIMARY KEY);
             INSERT INTO t (id) VALUES ('1')",
        )
        .expect("another table");
    assert_eq!(run_again(&mut session, select, &["1".into()]), "Int32 Utf8 Utf8 [\"3 new 1\"]");
    assert_eq!(run_again(&mut session, select, &[number(1)]), "Int32 Utf8 Utf8 [\"3 new 1\"]");
    assert_eq!(run_again(&mut session, insert, &[number(2)]), "1 rows");
    assert_eq!(run_again(&mut session, select, &[number(2)]), "Int32 Utf8 Utf8 [\"5 new 2\"]");
    engine.execute("DROP TABLE t; CREATE TABLE t (id BIGINT, v BIGINT)").expect("without a key");
    assert_eq!(run_again(&mut session, select, &[number(2)]), "Int64 Int64 []");
}

#[test]
fn a_view_that_is_replaced_has_its_new_rows() {
    let engine = engine_with(1, TABLE);
    let mut session = engine.session();
    let select = "SELECT x FROM plain WHERE id = $1";
    for factor in 2..5 {
        let sql = format!("CREATE VIEW plain AS SELECT id, v * {factor} AS x FROM t");
        engine.execute(&sql).expect("a view");
        let expected = format!("Int64 [\"{}\"]", 10 * factor);
        assert_eq!(run_again(&mut session, select, &[number(1)]), expected);
        engine.execute("DROP VIEW plain").expect("nothing uses it");
    }
}

#[test]
fn transactions_see_their_own_writes_and_roll_them_back() {
    let engine = engine_with(2, TABLE);
    let (mut session, mut other) = (engine.session(), engine.session());
    let select = "SELECT v FROM t WHERE id = $1";
    let update = "UPDATE t SET v = $1 WHERE id = $2";
    for round in 0..4 {
        run(&mut session, "BEGIN", &[]);
        assert_eq!(run(&mut session, update, &[number(100 + round), number(1)]), "1 rows");
        let own = format!("Int64 [\"{}\"]", 100 + round);
        assert_eq!(run(&mut session, select, &[number(1)]), own);
        assert_eq!(run(&mut other, select, &[number(1)]), "Int64 [\"10\"]");
        run(&mut session, "ROLLBACK", &[]);
        assert_eq!(run(&mut session, select, &[number(1)]), "Int64 [\"10\"]");
    }
}

#[test]
fn errors_stay_what_they_are() {
    let engine = engine_with(
        1,
        "CREATE TABLE t (id BIGINT PRIMARY KEY, v BIGINT NOT NULL);
         INSERT INTO t VALUES (1, 9223372036854775807)",
    );
    let mut session = engine.session();
    let select = "SELECT v + $1 FROM t WHERE id = 1";
    let overflow = run_again(&mut session, select, &[number(1)]);
    assert!(overflow.contains("overflow"), "{overflow}");
    let least = run_again(&mut session, select, &[number(-1)]);
    assert_eq!(least, "Int64 [\"9223372036854775806\"]");
    let update = "UPDATE t SET v = v + $1 WHERE id = 1";
    let overflow = run_again(&mut session, update, &[number(1)]);
    assert!(overflow.contains("overflow"), "{overflow}");
    let insert = "INSERT OR REPLACE INTO t VALUES (2, $1)";
    let null = run_again(&mut session, insert, &[Value::NULL]);
    assert!(null.contains("NULL"), "{null}");
    assert_eq!(run_again(&mut session, insert, &[number(1)]), "1 rows");
}

/// A filter with parameters in place of its literals, from `$first` on, and their values.
fn parametrized(filter: &str, first: usize) -> (String, Vec<Value>) {
    let (mut sql, mut values) = (String::new(), Vec::new());
    let mut rest = filter;
    while let Some(at) = rest.find(|c: char| c == '\'' || c == '-' || c.is_ascii_digit()) {
        sql.push_str(&rest[..at]);
        rest = &rest[at..];
        let end = match rest.strip_prefix('\'') {
            Some(text) => 2 + text.find('\'').expect("a text ends"),
            None => rest[1..].find(|c: char| !c.is_ascii_digit()).map_or(rest.len(), |end| 1 + end),
        };
        let literal = &rest[..end];
        values.push(match literal.strip_prefix('\'') {
            Some(_) => Value::from(&literal[1..end - 1]),
            None => number(literal.parse().expect("a number")),
        });
        sql.push_str(&format!("${}", first + values.len() - 1));
        rest = &rest[end..];
    }
    sql.push_str(rest);
    (sql, values)
}

fn compare(engine: &Engine, seed: u64) {
    let mut random = Random(seed);
    engine.execute(TABLES).expect("the statements are right");
    let mut session = engine.session();
    for round in 0..200 {
        let filter = condition(&mut random, 1);
        let (open, values) = parametrized(&filter, 1);
        let context = format!("seed {seed}, round {round}: {filter}");
        match random.below(4) {
            0 => {
                let (n, t) = (random.below(8) as i64, random.one_of(&["", "a", "ab", "z"]));
                let row = [number(n), t.into(), number(round)];
                run(&mut session, "DELETE FROM copied WHERE n = $1 AND t = $2", &row[..2]);
                for table in ["keyed", "copied"] {
                    run(&mut session, &format!("INSERT INTO {table} VALUES ($1, $2, $3)"), &row);
                }
            }
            1 if round % 5 == 0 => {
                let keyed = format!("DELETE FROM keyed WHERE {open}");
                let copied = format!("DELETE FROM copied WHERE {filter}");
                let changed = run(&mut session, &keyed, &values);
                assert_eq!(changed, run(&mut session, &copied, &[]), "{context}");
            }
            1 => {
                let keyed = format!("UPDATE keyed SET v = v + 1 WHERE {open}");
                let copied = format!("UPDATE copied SET v = v + 1 WHERE {filter}");
                let changed = run(&mut session, &keyed, &values);
                assert_eq!(changed, run(&mut session, &copied, &[]), "{context}");
            }
            _ => {}
        }
        let keyed = format!("SELECT v, n, t FROM keyed WHERE {open}");
        let copied = format!("SELECT v, n, t FROM copied WHERE {filter}");
        let found = run(&mut session, &keyed, &values);
        assert_eq!(found, run(&mut session, &copied, &[]), "{context}");
    }
}

#[test]
fn random_statements_with_parameters_do_what_those_with_literals_do_without_a_key() {
    for seed in 0..4 {
        compare(&Engine::builder().workers(2).open_in_memory().expect("an engine starts"), seed);
    }
}
