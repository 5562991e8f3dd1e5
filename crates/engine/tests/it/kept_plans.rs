//! Statements that run from kept plans do as those that are planned each time.

use std::time::{Duration, SystemTime};

use alluvium::{Engine, Outcome, Prepared, Result, Session, Value};
use fastrand::Rng;

use crate::support::{batch_lines, query};

/// Statements by key, and the kinds of their parameters.
const STATEMENTS: [(&str, &str); 19] = [
    ("SELECT * FROM t WHERE id = $1", "k"),
    ("SELECT v, id FROM t WHERE $1 = id", "k"),
    ("SELECT v + $2, $3, name || '!', v FROM t WHERE id = $1", "kvt"),
    ("SELECT v, CASE WHEN v > $2 THEN 100 / (v - $3) END FROM t WHERE id = $1", "kvv"),
    ("SELECT * FROM t WHERE id IN ($1, $2, $3) AND v >= $4", "kkkv"),
    ("SELECT id, abs(v) FROM t WHERE id BETWEEN $1 AND $2 AND name = $3", "kkt"),
    ("SELECT id FROM t AS other WHERE other.id >= $1", "k"),
    ("SELECT sum FROM (SELECT id, v + v AS sum FROM t) AS summed WHERE id = $1", "k"),
    ("SELECT doubled FROM w WHERE id = $1 AND doubled > $2", "kv"),
    ("UPDATE t SET v = v + $1 WHERE id = $2", "vk"),
    ("UPDATE t SET v = $1, name = NULL, price = price * 2 WHERE id = $2", "vk"),
    ("UPDATE t SET v = v - $1, price = $2 * price, id = id + 0 WHERE id = $3", "vkk"),
    ("UPDATE t SET name = $1, v = 100 / v WHERE id IN ($2, $3) AND v < 50", "tkk"),
    ("UPDATE t SET id = id + $1 WHERE id = $2", "kk"),
    ("UPDATE t SET at = NOW(), price = NULL WHERE id = $1", "k"),
    ("DELETE FROM t WHERE id = $1", "k"),
    ("DELETE FROM t WHERE id < $1 AND v = $2", "kv"),
    ("INSERT INTO t VALUES ($1, $2, $3, 1.5, NULL)", "kvt"),
    ("INSERT OR REPLACE INTO t (id, v, at) VALUES ($1, $2, NOW()), ($3, 7, CURRENT_DATE)", "kvk"),
];

/// An engine whose clock stands still.
fn engine(workers: usize) -> Engine {
    let day = SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000);
    let builder = Engine::builder().workers(workers).clock(move || day);
    let engine = builder.open_in_memory().expect("an engine starts");
    let definitions =
        "CREATE TABLE t (id INTEGER PRIMARY KEY, v BIGINT NOT NULL, name VARCHAR, price DECIMAL(5, 2), at TIMESTAMP);
         CREATE VIEW w AS SELECT id, v * 2 AS doubled FROM t WHERE name IS NOT NULL;
         CREATE MATERIALIZED VIEW total AS SELECT SUM(v) AS v, COUNT(*) AS n FROM t WHERE v BETWEEN -100 AND 100";
    engine.execute(definitions).expect("the statements are right");
    engine
}

/// A value, and it as a literal.
fn value(random: &mut Rng, kind: char) -> (Value, String) {
    if random.u8(..10) == 0 {
        return (Value::from(None::<i64>), "NULL".to_owned());
    }
    let number = [0, 1, 7, -3, 49, 50, i64::MAX, i64::MIN];
    match kind {
        'k' => {
            let key = random.i32(0..8);
            (Value::from(key), key.to_string())
        }
        'v' => {
            let number = number[random.usize(..number.len())];
            (Value::from(number), number.to_string())
        }
        _ => {
            let text = ["", "a", "zwölf", "🙂"][random.usize(..4)];
            (Value::from(text), format!("'{text}'"))
        }
    }
}

/// A statement with literals in the places of its parameters.
fn with_literals(sql: &str, literals: &[String]) -> String {
    let numbered = literals.iter().zip(1..);
    numbered
        .fold(sql.to_owned(), |sql, (literal, number)| sql.replace(&format!("${number}"), literal))
}

/// The rows of an answer or how many were changed, and the SQLSTATE of an error.
fn told(outcome: Result<Outcome>) -> String {
    let rows = match outcome {
        Ok(Outcome::Rows(rows)) => rows.collect::<Result<Vec<_>>>(),
        Ok(Outcome::Changed { rows, .. }) => return rows.to_string(),
        Ok(other) => return format!("{other:?}"),
        Err(error) => Err(error),
    };
    match rows {
        Ok(rows) => {
            let mut lines: Vec<String> = rows.iter().flat_map(batch_lines).collect();
            lines.sort();
            lines.join("\n")
        }
        Err(error) => format!("{:?}", error.sqlstate()),
    }
}

/// A client whose plans are kept, and one whose texts are new each time.
struct Pair {
    engines: [Engine; 2],
    sessions: [Session; 2],
    prepared: Vec<Prepared>,
}

impl Pair {
    fn new(workers: usize) -> Self {
        let engines = [engine(workers), engine(workers)];
        let mut sessions = engines.each_ref().map(Engine::session);
        let prepare = |(sql, _): &(&str, _)| sessions[0].prepare(sql).expect("it is right");
        let prepared = STATEMENTS.iter().map(prepare).collect();
        Self { engines, sessions, prepared }
    }

    /// Runs one of the statements on both sides, and compares.
    fn run(&mut self, random: &mut Rng, number: usize) {
        let which = random.usize(..STATEMENTS.len());
        let (sql, kinds) = STATEMENTS[which];
        let (mut values, literals): (Vec<Value>, Vec<String>) =
            kinds.chars().map(|kind| value(random, kind)).unzip();
        let [kept, planned] = &mut self.sessions;
        let mut text = sql.to_owned();
        let by_kept = match random.u8(..3) {
            0 => kept.execute_prepared(&self.prepared[which], &values),
            1 => kept.execute_with(sql, &values),
            _ => {
                text = with_literals(sql, &literals);
                values.clear();
                kept.execute(&text).map(|mut outcomes| outcomes.remove(0))
            }
        };
        let planned = planned.execute_with(&format!("{text} -- {number}"), &values);
        assert_eq!(told(by_kept), told(planned), "{number}: {text} with {values:?}");
    }

    fn both(&mut self, sql: &str) {
        for session in &mut self.sessions {
            session.execute(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
        }
    }

    fn compare(&self) {
        for sql in ["SELECT id, v, name, price, at IS NULL FROM t", "SELECT * FROM total"] {
            let [kept, planned] = self.engines.each_ref().map(|engine| query(engine, sql));
            assert_eq!(kept, planned, "{sql}");
        }
    }
}

fn histories(workers: usize, seed: u64) {
    let mut random = Rng::with_seed(seed);
    let mut pair = Pair::new(workers);
    let mut number = 0;
    for _ in 0..60 {
        let is_open = random.bool();
        if is_open {
            pair.both("BEGIN");
        }
        for _ in 0..random.usize(1..8) {
            number += 1;
            pair.run(&mut random, number);
            if is_open && random.u8(..5) == 0 {
                pair.both("SAVEPOINT s");
                pair.run(&mut random, number);
                pair.both("ROLLBACK TO s");
            }
        }
        if is_open {
            pair.both(if random.u8(..4) == 0 { "ROLLBACK" } else { "COMMIT" });
        }
        pair.compare();
    }
}

#[test]
fn statements_from_kept_plans_do_as_those_that_are_planned_each_time() {
    for (workers, seed) in [(1, 1), (2, 2), (3, 3), (2, 4)] {
        histories(workers, seed);
    }
}
