//! The cost of a change under an ASOF join: epochs of one row into keys of 100 and of 100,000 rows on both sides.
//!
//! The aim: an epoch into a large key takes about as long as one into a small key.

use std::sync::Arc;
use std::time::Instant;

use alluvium::Engine;
use alluvium::arrow::array::{ArrayRef, Int64Array, RecordBatch};

/// The rows of each table before epochs are measured, under keys of one size.
const ROWS: i64 = 200_000;
const SMALL: i64 = 100;
const LARGE: i64 = 100_000;
const EPOCHS: usize = 300;

/// The rows of one transaction.
const TOGETHER: i64 = 40_000;

fn engine() -> Engine {
    let engine = Engine::builder().open_in_memory().expect("an engine opens");
    engine
        .execute(
            "CREATE TABLE a (k BIGINT, at BIGINT, n BIGINT);
             CREATE TABLE b (k BIGINT, at BIGINT, n BIGINT);
             CREATE MATERIALIZED VIEW v AS
             SELECT a.k, a.at, a.n, b.n AS other FROM a ASOF JOIN b MATCH_CONDITION (a.at >= b.at) ON a.k = b.k;",
        )
        .expect("the statements are right");
    engine
}

fn insert(engine: &Engine, table: &str, rows: impl Iterator<Item = (i64, i64, i64)>) {
    let rows: Vec<_> = rows.collect();
    let column = |pick: fn(&(i64, i64, i64)) -> i64| {
        Arc::new(rows.iter().map(pick).collect::<Int64Array>()) as ArrayRef
    };
    let columns =
        [("k", column(|row| row.0)), ("at", column(|row| row.1)), ("n", column(|row| row.2))];
    let rows = RecordBatch::try_from_iter(columns).expect("columns of one length");
    let mut transaction = engine.begin().expect("a transaction begins");
    transaction.insert(table, rows).expect("the rows fit");
    let epoch = transaction.commit().expect("a transaction commits");
    engine.wait(epoch).expect("epochs complete");
}

/// The median microseconds of an epoch of one row into `table`, under keys that have `size` rows on both sides.
fn epoch(table: &str, size: i64, place: impl Fn(i64) -> i64) -> f64 {
    let engine = engine();
    let keys = ROWS / size;
    for start in (0..ROWS).step_by(TOGETHER as usize) {
        for (table, behind) in [("a", 2), ("b", 0)] {
            let rows = start..start + TOGETHER;
            insert(
                &engine,
                table,
                rows.map(|row| (row % keys, 4 * (row / keys) + behind, row % 97)),
            );
        }
    }
    let mut took: Vec<f64> = (0..EPOCHS as i64)
        .map(|epoch| {
            let begun = Instant::now();
            insert(&engine, table, std::iter::once((epoch % keys, place(epoch), epoch % 97)));
            begun.elapsed().as_secs_f64() * 1e6
        })
        .collect();
    took.sort_unstable_by(f64::total_cmp);
    took[EPOCHS / 2]
}

fn main() {
    println!("| side | place | rows of the key | µs per epoch | ratio |");
    println!("|---|---|---|---|---|");
    for (side, table) in [("left", "a"), ("right", "b")] {
        let end = |size: i64| move |epoch: i64| 4 * size + epoch;
        let within = |size: i64| move |epoch: i64| (2 * size + epoch * 7) % (4 * size);
        for (place, [small, large]) in [
            ("at the end", [SMALL, LARGE].map(|size| epoch(table, size, end(size)))),
            ("within", [SMALL, LARGE].map(|size| epoch(table, size, within(size)))),
        ] {
            println!("| {side} | {place} | {SMALL} | {small:.0} | |");
            println!("| {side} | {place} | {LARGE} | {large:.0} | {:.1} |", large / small);
        }
    }
}
