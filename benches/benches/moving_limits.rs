//! The cost of a commit of one row while a view compares a million rows with a value that each commit moves.
//!
//! One worker. A commit is measured until the view has it; every hundredth view is compared with its query.

use std::time::{Duration, Instant};

use alluvium::Engine;
use alluvium::arrow::array::AsArray;
use alluvium::arrow::datatypes::Int64Type;

const ROWS: u64 = 1_000_000;
const GROUPS: u64 = 100;
const COMMITS: u64 = 1_000;

/// The views, by the value that moves.
const VIEWS: [(&str, &str); 5] = [
    ("the average of all rows", "SELECT id FROM t WHERE v > (SELECT AVG(v) FROM t)"),
    (
        "two ends around the average",
        "SELECT id FROM t WHERE v BETWEEN (SELECT AVG(v) - 1 FROM t) AND (SELECT AVG(v) + 1 FROM t)",
    ),
    (
        "the average of each group",
        "SELECT id FROM t WHERE v > (SELECT AVG(v) FROM t AS u WHERE u.g = t.g)",
    ),
    ("a table of two limits", "SELECT t.id, l.name FROM t, l WHERE t.v > l.x"),
    (
        "a table of limits by group",
        "SELECT t.id FROM t JOIN by_group AS l ON t.g = l.g AND t.v < l.x",
    ),
];

fn engine(view: &str, rows: u64) -> Engine {
    let engine = Engine::builder().open_in_memory().expect("an engine opens");
    let groups = GROUPS.min(rows);
    let script = format!(
        "CREATE TABLE t (id BIGINT PRIMARY KEY, g BIGINT, v BIGINT);
         CREATE TABLE l (name VARCHAR PRIMARY KEY, x BIGINT);
         CREATE TABLE by_group (g BIGINT PRIMARY KEY, x BIGINT);
         INSERT INTO t SELECT i, i % {groups}, i * 7919 % 1000003 FROM generate_series(1, {rows}) AS s (i);
         INSERT INTO l VALUES ('some', 900000), ('few', 990000);
         INSERT INTO by_group SELECT g, 10000 FROM generate_series(0, {groups} - 1) AS s (g);
         CREATE MATERIALIZED VIEW w AS {view};"
    );
    engine.execute(&script).expect("the statements are right");
    engine
}

/// The change of a commit: one row of the table, or the limits.
fn change(number: u64, rows: u64, view: &str) -> String {
    let id = 1 + number * 104_729 % rows;
    let value = number * 611_953 % 1_000_003;
    let step = number % 7;
    match view {
        view if view.contains(" l ") && number.is_multiple_of(2) => match view.contains("by_group")
        {
            true => {
                format!("UPDATE by_group SET x = {} WHERE g = {}", 10_000 + step, number % GROUPS)
            }
            false => format!("UPDATE l SET x = {} WHERE name = 'few'", 990_000 + step),
        },
        _ => format!("UPDATE t SET v = {value} WHERE id = {id}"),
    }
}

fn count(engine: &Engine, query: &str) -> i64 {
    let answer = engine.query(query).expect("the query is right");
    let counts = answer.iter().flat_map(|rows| rows.column(0).as_primitive::<Int64Type>().values());
    counts.sum()
}

/// How long each commit took.
fn run(view: &str, rows: u64, commits: u64) -> Vec<Duration> {
    let engine = engine(view, rows);
    let mut times = Vec::new();
    for number in 0..commits {
        let change = change(number, rows, view);
        let begun = Instant::now();
        engine.execute(&change).expect("the statement is right");
        engine.wait(engine.progress().committed).expect("epochs complete");
        times.push(begun.elapsed());
        if number % 100 == 0 {
            let all = format!("SELECT COUNT(*) FROM ({view}) AS v");
            assert_eq!(count(&engine, "SELECT COUNT(*) FROM w"), count(&engine, &all), "{view}");
        }
    }
    times.sort_unstable();
    times
}

fn main() {
    // `cargo test` runs it to see that it starts.
    let is_measured = std::env::args().any(|argument| argument == "--bench");
    let (rows, commits) = if is_measured { (ROWS, COMMITS) } else { (1_000, 3) };
    for (what, view) in VIEWS {
        let times = run(view, rows, commits);
        let at = |part: f64| times[((times.len() - 1) as f64 * part) as usize].as_secs_f64() * 1e3;
        println!("{what}: median {:.3} ms, 99 of 100 within {:.3} ms", at(0.5), at(0.99));
    }
}
