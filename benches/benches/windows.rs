//! The cost of a change under window functions: epochs of one row into partitions of 100 and of 100,000 rows, and loading a
//! million rows.
//!
//! The aim: an epoch into a large partition takes at most three times as long as one into a small partition, and loading takes
//! at most five seconds.

use std::sync::Arc;
use std::time::Instant;

use alluvium::Engine;
use alluvium::arrow::array::{ArrayRef, Int64Array, RecordBatch};

/// A name, and the expression over the window `w`.
const FUNCTIONS: [(&str, &str); 7] = [
    ("rolling SUM", "SUM(n) OVER (w ROWS BETWEEN 10 PRECEDING AND CURRENT ROW)"),
    ("SUM over a range", "SUM(n) OVER (w RANGE BETWEEN 10 PRECEDING AND CURRENT ROW)"),
    ("rolling MAX", "MAX(n) OVER (w ROWS BETWEEN 10 PRECEDING AND CURRENT ROW)"),
    ("LAG", "LAG(n) OVER w"),
    ("ROW_NUMBER", "ROW_NUMBER() OVER w"),
    ("running SUM", "SUM(n) OVER w"),
    ("DENSE_RANK", "DENSE_RANK() OVER w"),
];

/// The rows of the table before epochs are measured, in partitions of one size.
const ROWS: i64 = 200_000;
const SMALL: i64 = 100;
const LARGE: i64 = 100_000;
const EPOCHS: usize = 300;

/// The rows that are loaded, in partitions of 1,000 rows.
const LOADED: i64 = 1_000_000;
/// The rows of one transaction.
const TOGETHER: i64 = 40_000;

fn engine(function: &str) -> Engine {
    let engine = Engine::builder().open_in_memory().expect("an engine opens");
    let call = function.replace("(w ", "(PARTITION BY p ORDER BY at ");
    let call = call.replace("OVER w", "OVER (PARTITION BY p ORDER BY at)");
    engine
        .execute(&format!(
            "CREATE TABLE t (p BIGINT, at BIGINT, n BIGINT);
             CREATE MATERIALIZED VIEW v AS SELECT p, at, {call} AS result FROM t;"
        ))
        .expect("the statements are right");
    engine
}

fn insert(engine: &Engine, rows: impl Iterator<Item = (i64, i64, i64)>) {
    let rows: Vec<_> = rows.collect();
    let column = |pick: fn(&(i64, i64, i64)) -> i64| {
        Arc::new(rows.iter().map(pick).collect::<Int64Array>()) as ArrayRef
    };
    let columns =
        [("p", column(|row| row.0)), ("at", column(|row| row.1)), ("n", column(|row| row.2))];
    let rows = RecordBatch::try_from_iter(columns).expect("columns of one length");
    let mut transaction = engine.begin().expect("a transaction begins");
    transaction.insert("t", rows).expect("the rows fit");
    let epoch = transaction.commit().expect("a transaction commits");
    engine.wait(epoch).expect("epochs complete");
}

/// The median microseconds of an epoch of one row, which goes to the place `place` of a partition of `size` rows.
fn epoch(function: &str, size: i64, place: impl Fn(i64) -> i64) -> f64 {
    let engine = engine(function);
    let partitions = ROWS / size;
    for start in (0..ROWS).step_by(TOGETHER as usize) {
        insert(
            &engine,
            (start..start + TOGETHER).map(|row| {
                let at = row / partitions;
                (row % partitions, 2 * at, row % 97)
            }),
        );
    }
    let mut took: Vec<f64> = (0..EPOCHS as i64)
        .map(|epoch| {
            let begun = Instant::now();
            insert(&engine, std::iter::once((epoch % partitions, place(epoch), epoch % 97)));
            begun.elapsed().as_secs_f64() * 1e6
        })
        .collect();
    took.sort_unstable_by(f64::total_cmp);
    took[EPOCHS / 2]
}

/// The seconds of loading rows that are ordered by time.
fn load(function: &str) -> f64 {
    let engine = engine(function);
    let partitions = LOADED / 1_000;
    let begun = Instant::now();
    for start in (0..LOADED).step_by(TOGETHER as usize) {
        insert(&engine, (start..start + TOGETHER).map(|row| (row % partitions, row, row % 97)));
    }
    begun.elapsed().as_secs_f64()
}

fn main() {
    println!("| function | rows of the partition | place | µs per epoch | ratio |");
    println!("|---|---|---|---|---|");
    for (name, function) in FUNCTIONS {
        let middle = |size: i64| move |epoch: i64| (size + epoch * 7) % (2 * size) + 1;
        let end = |size: i64| move |epoch: i64| 2 * size + epoch;
        let mut places: Vec<(&str, [f64; 2])> =
            vec![("at its end", [SMALL, LARGE].map(|size| epoch(function, size, end(size))))];
        // Rows after a new one get another number or total.
        if !["ROW_NUMBER", "running SUM", "DENSE_RANK"].contains(&name) {
            places.push(("within", [SMALL, LARGE].map(|size| epoch(function, size, middle(size)))));
        }
        for (place, [small, large]) in places {
            println!("| {name} | {SMALL} | {place} | {small:.0} | |");
            println!("| {name} | {LARGE} | {place} | {large:.0} | {:.1} |", large / small);
        }
    }
    println!("\n| function | seconds for {LOADED} rows |\n|---|---|");
    for (name, function) in FUNCTIONS {
        println!("| {name} | {:.1} |", load(function));
    }
}
