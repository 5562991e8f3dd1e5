//! The cost of a change under window functions.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::time::{Duration, Instant};

use alluvium::Engine;

use crate::support::query;

/// The shortest time of an epoch with a row at the end of a partition of so many rows.
fn appending(function: &str, rows: i64) -> Duration {
    let engine = Engine::builder().open_in_memory().unwrap();
    engine
        .execute(&format!(
            "CREATE TABLE t (at BIGINT, n BIGINT);
             CREATE MATERIALIZED VIEW v AS SELECT at, {function} OVER (ORDER BY at) AS result FROM t;
             INSERT INTO t SELECT generate_series, generate_series % 97 FROM generate_series(1, {rows})"
        ))
        .unwrap();
    engine.wait(engine.progress().committed).unwrap();
    let epochs = (1..=40).map(|epoch| {
        let begun = Instant::now();
        engine.execute(&format!("INSERT INTO t VALUES ({}, 1)", rows + epoch)).unwrap();
        engine.wait(engine.progress().committed).unwrap();
        begun.elapsed()
    });
    let shortest = epochs.min().unwrap();
    assert_eq!(query(&engine, "SELECT COUNT(result) FROM v"), [(rows + 40).to_string()]);
    shortest
}

/// A row at the end of a partition is evaluated by what is known of the rows before it, however many there are.
#[test]
fn a_row_at_the_end_of_a_long_partition_costs_what_it_does_in_a_short_one() {
    let functions =
        ["SUM(n)", "AVG(n)", "MAX(n)", "FIRST_VALUE(n)", "LAST_VALUE(n)", "DENSE_RANK()"];
    for function in functions {
        let [short, long] = [100, 20_000].map(|rows| appending(function, rows));
        println!("{function}: {short:?} with 100 rows, {long:?} with 20,000");
        // Evaluating the whole partition takes two hundred times as long.
        assert!(long < 10 * short, "{function}: {short:?} with 100 rows, {long:?} with 20,000");
    }
}
