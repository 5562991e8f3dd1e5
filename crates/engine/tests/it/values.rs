//! INSERT … VALUES of many rows.

use crate::support::{engine_with, query};

/// The types of a table's columns, with literals of which each is inserted in a row of its own, and all in one statement.
const COLUMNS: [(&str, &[&str]); 13] = [
    ("BIGINT", &["1", "-2", "NULL", "9223372036854775807"]),
    ("SMALLINT", &["1.5", "2.5", "-0.5", "3", "NULL"]),
    ("DOUBLE", &["0.1", "0.30000000000000004", "2", "1e300", "9007199254740993", "NULL"]),
    ("DOUBLE", &["1.7976931348623157e308", "-0.0", "4.35", "123456789012345678.9"]),
    ("REAL", &["0.1", "16777217", "2.00000006", "NULL"]),
    ("DECIMAL(20, 2)", &["123456789012345678.91", "1", "0.005", "-0.005", "NULL"]),
    ("DECIMAL(10, 2)", &["'1.234'", "' 5e1 '", "NULL"]),
    ("TEXT", &["'a'", "''", "NULL", "'é'"]),
    ("TEXT", &["1.50", "1.5", "2", "NULL"]),
    ("TIMESTAMP", &["'2024-01-01 10:00'", "'2024-01-01T10:00:01.5'", "'2024-01-01'", "NULL"]),
    ("TIMESTAMP", &["TIMESTAMP '1500-01-01 10:00'", "TIMESTAMP '2500-12-31 23:59:59.999999'"]),
    ("DATE", &["'2024-02-29'", "DATE '0001-01-01'", "NULL"]),
    ("BOOLEAN", &["true", "false", "NULL"]),
];

#[test]
fn a_row_among_many_has_the_values_that_it_has_alone() {
    for (data_type, literals) in COLUMNS {
        let engine = engine_with(
            1,
            &format!("CREATE TABLE alone (v {data_type}); CREATE TABLE together (v {data_type})"),
        );
        let copies = 100usize.div_ceil(literals.len());
        let all: Vec<String> = literals.iter().map(|literal| format!("({literal})")).collect();
        for row in &all {
            for _ in 0..copies {
                engine.execute(&format!("INSERT INTO alone VALUES {row}")).unwrap();
            }
        }
        let all = vec![all.join(", "); copies].join(", ");
        engine.execute(&format!("INSERT INTO together VALUES {all}")).unwrap();
        let rows = |table: &str| query(&engine, &format!("SELECT v FROM {table}"));
        assert_eq!(rows("together"), rows("alone"), "{data_type}: {literals:?}");
    }
}

#[test]
fn many_rows_can_be_queried_and_be_a_view() {
    // A number meets one with a point, as among few rows.
    let rows: Vec<String> = (0..100)
        .map(|n| format!("({n}, 'x{n}', {n}.5, CAST(NULL AS DATE)), ({n}, NULL, 1e3, NULL)"))
        .collect();
    let rows = format!("VALUES {}", rows.join(", "));
    let engine = engine_with(2, &format!("CREATE MATERIALIZED VIEW v AS {rows}"));
    let from = |source: &str| {
        query(
            &engine,
            &format!(
                "SELECT SUM(column1), MAX(column2), COUNT(column2), SUM(column3), COUNT(column4)
                 FROM {source}"
            ),
        )
    };
    assert_eq!(from(&format!("({rows})")), ["9900 x99 100 105000.0 0"]);
    assert_eq!(from("v"), from(&format!("({rows})")));
}

#[test]
fn one_row_that_cannot_be_converted_refuses_the_statement() {
    let engine = engine_with(1, "CREATE TABLE t (a SMALLINT NOT NULL, b DATE)");
    for (wrong, expected) in [
        ("(70000, NULL)", "70000"),
        ("('x', NULL)", "x"),
        ("(1, '2024-02-30')", "2024-02-30"),
        ("(NULL, NULL)", "NULL"),
    ] {
        let rows = "(1, '2024-02-28'), ".repeat(100);
        let rows = if wrong.starts_with("('") { rows.replace("(1", "('1'") } else { rows };
        let error = engine.execute(&format!("INSERT INTO t VALUES {rows}{wrong}")).unwrap_err();
        assert!(error.to_string().contains(expected), "{wrong}: {error}");
        assert_eq!(query(&engine, "SELECT COUNT(*) FROM t"), ["0"]);
    }
}
