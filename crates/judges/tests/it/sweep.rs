//! Functions and operators over the edges of all types, compared with recorded answers of DuckDB and Postgres.
//!
//! `sweep --rows 2 --record crates/judges/src/sweep/answers.txt` asks these for the answers.

use std::fmt::Write as _;

use alluvium_judges::sweep::Sweep;

const ANSWERS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/sweep/answers.txt");

#[test]
fn functions_and_operators_answer_as_duckdb_or_as_the_reference_says() {
    let answers = std::fs::read_to_string(ANSWERS).unwrap();
    let report = Sweep::new(2, "").unwrap().replay(&answers).unwrap();
    let mut wrong = String::new();
    for (function, what) in report.wrong() {
        writeln!(wrong, "{function}\n  {what}").unwrap();
    }
    assert!(wrong.is_empty(), "{wrong}");
    assert!(report.totals().agree > 4_000, "{report}");
}
