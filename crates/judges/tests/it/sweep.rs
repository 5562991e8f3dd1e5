//! Functions and operators over the edges of all types, compared with recorded answers of DuckDB and Postgres.
//!
//! `sweep --rows 2 --record crates/judges/src/sweep/answers.txt` asks these for the answers.

use std::fmt::Write as _;

use alluvium_judges::sweep::Sweep;

const ANSWERS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/sweep/answers.txt");

/// What is wrong still: functions with the types of their arguments.
const OPEN: &[&str] = &[
    // A quotient of BIGINT UNSIGNED and a signed integer is a DECIMAL.
    "/(tinyint, ubigint)",
    "/(smallint, ubigint)",
    "/(integer, ubigint)",
    "/(bigint, ubigint)",
    "/(ubigint, tinyint)",
    "/(ubigint, smallint)",
    "/(ubigint, integer)",
    "/(ubigint, bigint)",
    "//(tinyint, ubigint)",
    "//(smallint, ubigint)",
    "//(integer, ubigint)",
    "//(bigint, ubigint)",
    "//(ubigint, tinyint)",
    "//(ubigint, smallint)",
    "//(ubigint, integer)",
    "//(ubigint, bigint)",
    // Numbers beyond the days and microseconds of times.
    "CAST date(integer)",
    "TRY_CAST date(integer)",
    "CAST time(bigint)",
    "TRY_CAST timestamp(bigint)",
    "CAST date(bigint)",
    "TRY_CAST date(bigint)",
    "CAST timestamp(bigint)",
    "CAST timestamptz(bigint)",
    // The other zero, of a column.
    "trunc(real)",
    "trunc(double)",
    "IN(real, real, real)",
    // A DECIMAL(38, n) at its end.
    "round(wide, digits)",
];

#[test]
fn functions_and_operators_answer_as_duckdb_or_as_the_reference_says() {
    let answers = std::fs::read_to_string(ANSWERS).unwrap();
    let report = Sweep::new(2, "").unwrap().replay(&answers).unwrap();
    let mut wrong = String::new();
    for (function, what) in
        report.wrong().iter().filter(|(function, _)| !OPEN.contains(&function.as_str()))
    {
        writeln!(wrong, "{function}\n  {what}").unwrap();
    }
    assert!(wrong.is_empty(), "{wrong}");
    assert!(report.totals().agree > 4_000, "{report}");
}
