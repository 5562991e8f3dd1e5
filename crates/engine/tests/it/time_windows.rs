//! Windows of time over rows that come and go, against windows as they are defined.

use alluvium::arrow::datatypes::Fields;
use alluvium::{Engine, Outcome, Value};

use crate::support::{engine_with, query, settled};

const SLIDE: i64 = 3;
const SIZE: i64 = 10;

/// A key, a time in seconds, and the bounds of a window.
type Windowed = (i64, i64, i64, i64);

struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

/// Changes a table at random, several times in a transaction, and looks at the view `w` after each.
fn compare(view: &str, expected: impl Fn(&[(i64, i64)]) -> Vec<Windowed>) {
    for workers in 1..=3 {
        for seed in 0..3 {
            let engine = engine_with(workers, "CREATE TABLE event (k BIGINT, ts TIMESTAMP)");
            engine.execute(&format!("CREATE MATERIALIZED VIEW w AS {view}")).expect("a view");
            let mut random = Random(seed * 3 + workers as u64);
            let mut rows: Vec<(i64, i64)> = Vec::new();
            for step in 0..25 {
                change(&engine, &mut random, &mut rows);
                let read = "SELECT k, CAST(ts AS BIGINT) / 1000000, \
                            CAST(window_start AS BIGINT) / 1000000, \
                            CAST(window_end AS BIGINT) / 1000000 FROM w";
                let found = settled(&engine, read);
                let windowed = expected(&rows).into_iter();
                let mut lines: Vec<String> =
                    windowed.map(|(k, ts, start, end)| format!("{k} {ts} {start} {end}")).collect();
                lines.sort();
                assert_eq!(found, lines, "{workers} workers, seed {seed}, step {step}: {rows:?}");
            }
        }
    }
}

fn change(engine: &Engine, random: &mut Random, rows: &mut Vec<(i64, i64)>) {
    let mut statements = String::from("BEGIN;");
    for _ in 0..random.below(3) + 1 {
        if random.below(3) > 0 || rows.is_empty() {
            let new = (random.below(3) as i64, random.below(60) as i64 - 20);
            let copies = random.below(2) + 1;
            for _ in 0..copies {
                rows.push(new);
                let (k, ts) = new;
                statements += &format!(
                    "INSERT INTO event VALUES ({k}, TIMESTAMP '1970-01-01' + INTERVAL '{ts} seconds');"
                );
            }
        } else {
            let (k, ts) = rows[random.below(rows.len() as u64) as usize];
            rows.retain(|row| *row != (k, ts));
            statements += &format!(
                "DELETE FROM event WHERE k = {k} AND ts = TIMESTAMP '1970-01-01' + INTERVAL '{ts} seconds';"
            );
        }
    }
    engine.execute(&(statements + "COMMIT")).expect("the statements are right");
}

#[test]
fn a_row_is_in_every_window_that_contains_its_time() {
    let view = "SELECT * FROM HOP(event, ts, INTERVAL 3 SECONDS, INTERVAL 10 SECONDS)";
    compare(view, |rows| {
        let windows = rows.iter().flat_map(|&(k, ts)| {
            (-50..50)
                .map(move |number| (k, ts, number * SLIDE, number * SLIDE + SIZE))
                .filter(|&(_, ts, start, end)| start <= ts && ts < end)
        });
        windows.collect()
    });
}

/// A result's schema is that of its batches, with and without rows: `SELECT … LIMIT 0` tells the columns of a query.
#[test]
fn a_query_has_the_same_columns_with_and_without_rows() {
    let engine = engine_with(
        1,
        "CREATE TABLE t (k INT, ts TIMESTAMP);
         CREATE VIEW tumbling AS SELECT window_start, window_end
           FROM TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL 10 SECOND, INTERVAL 3 SECOND));
         CREATE VIEW hopping AS SELECT window_start, window_end
           FROM TABLE(HOP(TABLE t, DESCRIPTOR(ts), INTERVAL 5 SECOND, INTERVAL 10 SECOND));
         CREATE VIEW sessions AS SELECT window_start, window_end
           FROM TABLE(SESSION(TABLE t, DESCRIPTOR(ts), DESCRIPTOR(k), INTERVAL 10 SECOND));
         CREATE VIEW other AS SELECT NOW() AS now, ts - INTERVAL '1 second' AS before,
             date_trunc('hour', ts) AS hour, TIMESTAMP '2024-01-01' AS then,
             LEAST(ts, TIMESTAMP '2024-01-01') AS least
           FROM t;
         INSERT INTO t VALUES (1, '2024-01-01 00:00:35')",
    );
    let answer = |query: String| {
        let outcome = engine.session().execute(&query).expect("a query").pop();
        let Some(Outcome::Rows(rows)) = outcome else { panic!("{query}") };
        (rows.schema().fields().clone(), rows.into_batches().expect("its rows"))
    };
    for relation in ["t", "tumbling", "hopping", "sessions", "other"] {
        let (fields, batches) = answer(format!("SELECT * FROM {relation}"));
        let (without_rows, _) = answer(format!("SELECT * FROM {relation} LIMIT 0"));
        assert_eq!(types(&fields), types(&without_rows), "{relation}");
        assert_eq!(types(&fields), types(batches[0].schema().fields()), "{relation}");
    }
}

fn types(fields: &Fields) -> Vec<String> {
    fields.iter().map(|field| field.data_type().to_string()).collect()
}

#[test]
fn the_first_day_of_timestamp_has_no_start() {
    let engine = engine_with(
        1,
        "CREATE TABLE t (id INT, ts TIMESTAMP);
         CREATE MATERIALIZED VIEW days AS SELECT id, DATE_TRUNC('day', ts) AS day FROM t;
         CREATE MATERIALIZED VIEW same AS SELECT id, DATE_TRUNC('microsecond', ts) = ts AS same FROM t",
    );
    let day = 86_400_000_000;
    for (id, time) in [i64::MIN, i64::MIN + day, i64::MAX].into_iter().enumerate() {
        let time = Value::timestamp(time);
        let values = [Value::from(id as i64), time];
        engine.execute_with("INSERT INTO t VALUES ($1, $2)", &values).unwrap();
    }
    assert_eq!(query(&engine, "SELECT id FROM days"), ["1", "2"]);
    assert_eq!(query(&engine, "SELECT id, same FROM same"), ["0 true", "1 true", "2 true"]);
    let errors = "SELECT view, message FROM alluvium.errors";
    assert_eq!(query(&engine, errors), ["days the start of a time lies outside of TIMESTAMP"]);
}
