//! LATENESS and WATERMARK FOR of columns.

use alluvium_sql::statement::{Lateness, StatementKind, TableDefinition};

use crate::fixture::{shown, statement};

fn table(text: &str) -> Result<TableDefinition, String> {
    match statement(text).map_err(|error| shown(&error))?.kind {
        StatementKind::CreateTable(table) => Ok(table),
        other => panic!("a table, and not {other:?}"),
    }
}

/// The latenesses of a table with these columns.
fn lateness(columns: &str) -> Vec<(usize, i64)> {
    let table = table(&format!("CREATE TABLE t ({columns})")).unwrap();
    table.lateness.iter().map(|Lateness { column, by }| (*column, *by)).collect()
}

const SECOND: i64 = 1_000_000;
const DAY: i64 = 86_400 * SECOND;

#[test]
fn lateness_is_in_the_units_of_its_column() {
    for (columns, expected) in [
        ("ts TIMESTAMP LATENESS INTERVAL '1' HOUR", vec![(0, 3600 * SECOND)]),
        ("ts TIMESTAMP LATENESS INTERVAL 1 HOURS", vec![(0, 3600 * SECOND)]),
        ("ts TIMESTAMP NOT NULL lateness interval '90 seconds'", vec![(0, 90 * SECOND)]),
        ("ts TIMESTAMP LATENESS INTERVAL '1' DAY NOT NULL DEFAULT NOW()", vec![(0, DAY)]),
        ("ts TIMESTAMP LATENESS INTERVAL '1 day 2 hours'", vec![(0, DAY + 7200 * SECOND)]),
        ("ts TIMESTAMP LATENESS INTERVAL '0' SECOND", vec![(0, 0)]),
        ("ts TIMESTAMP WITH TIME ZONE LATENESS INTERVAL '5' MINUTE", vec![(0, 300 * SECOND)]),
        // Rows later than this are late, and no others.
        ("ts TIMESTAMP(3) LATENESS INTERVAL '1500 microseconds'", vec![(0, 2)]),
        ("d DATE LATENESS INTERVAL '7' DAYS", vec![(0, 7)]),
        ("d DATE LATENESS INTERVAL '48' HOURS", vec![(0, 2)]),
        ("a INT, n BIGINT LATENESS 10 PRIMARY KEY", vec![(1, 10)]),
        ("n BIGINT LATENESS 9223372036854775807", vec![(0, i64::MAX)]),
        ("n INTEGER LATENESS 0, m SMALLINT LATENESS 1", vec![(0, 0), (1, 1)]),
        ("ts TIMESTAMP, WATERMARK FOR ts AS ts - INTERVAL '5' SECOND", vec![(0, 5 * SECOND)]),
        ("WATERMARK FOR \"Ts\" AS \"Ts\", a INT, \"Ts\" TIMESTAMP", vec![(1, 0)]),
        (
            "n BIGINT, watermark for N as n - 3, d DATE LATENESS INTERVAL 1 DAY",
            vec![(0, 3), (1, 1)],
        ),
        // As names they are nothing special.
        ("lateness BIGINT, watermark BIGINT, for_ts STRUCT<lateness INT>", vec![]),
        ("a BIGINT FOREIGN KEY REFERENCES lateness(a) LATENESS 1", vec![(0, 1)]),
    ] {
        assert_eq!(lateness(columns), expected, "{columns}");
    }
}

#[test]
fn a_watermark_is_no_column() {
    let table = table("CREATE TABLE t (a INT, WATERMARK FOR a AS a - 1, b INT)").unwrap();
    let names: Vec<&str> =
        table.schema.fields().iter().map(|field| field.name().as_str()).collect();
    assert_eq!(names, ["a", "b"]);
    assert_eq!(table.defaults.len(), 2);
}

#[test]
fn what_a_lateness_cannot_be_is_refused_where_it_stands() {
    for (columns, expected) in [
        (
            "ts TIMESTAMP LATENESS INTERVAL '1' MONTH",
            "1:48: the LATENESS of \"ts\" cannot have months or years, which differ in length: write it in days",
        ),
        (
            "ts TIMESTAMP, WATERMARK FOR ts AS ts - INTERVAL '1' YEAR",
            "1:65: the WATERMARK of \"ts\" cannot have months or years, which differ in length: write it in days",
        ),
        (
            "ts TIMESTAMP LATENESS INTERVAL '-1' HOUR",
            "1:48: the LATENESS of \"ts\" cannot be negative",
        ),
        ("n BIGINT LATENESS -1", "1:36: the LATENESS of \"n\" cannot be negative"),
        (
            "n BIGINT LATENESS INTERVAL '1' HOUR",
            "1:44: the LATENESS of \"n\", which is BIGINT, is a whole number, such as 100",
        ),
        (
            "n BIGINT LATENESS 1.5",
            "1:35: the LATENESS of \"n\", which is BIGINT, is a whole number, such as 100",
        ),
        (
            "n BIGINT LATENESS 9223372036854775808",
            "1:35: the LATENESS of \"n\", which is BIGINT, is a whole number, such as 100",
        ),
        (
            "ts TIMESTAMP LATENESS 10",
            "1:39: the LATENESS of \"ts\", which is TIMESTAMP, is one interval, such as INTERVAL '1' HOUR",
        ),
        (
            "ts TIMESTAMP LATENESS INTERVAL '1' HOUR * 2",
            "1:48: the LATENESS of \"ts\", which is TIMESTAMP, is one interval, such as INTERVAL '1' HOUR",
        ),
        (
            "d DATE LATENESS INTERVAL '1' HOUR",
            "1:42: the LATENESS of \"d\", which is DATE, is one interval of whole days, such as INTERVAL '1' DAY",
        ),
        (
            "v VARCHAR LATENESS 1",
            "1:27: LATENESS is for columns of type TIMESTAMP, DATE, BIGINT, INTEGER or SMALLINT; \"v\" is VARCHAR",
        ),
        (
            "v DOUBLE, WATERMARK FOR v AS v - 1",
            "1:27: WATERMARK is for columns of type TIMESTAMP, DATE, BIGINT, INTEGER or SMALLINT; \"v\" is DOUBLE",
        ),
        ("n INT, WATERMARK FOR nn AS nn", "1:38: no column \"nn\"; did you mean \"n\"?"),
        (
            "n INT, m INT, WATERMARK FOR n AS m - 1",
            "1:50: write WATERMARK FOR n AS n - INTERVAL '1' HOUR, with the time that rows may come late by",
        ),
        (
            "n INT LATENESS 1, WATERMARK FOR n AS n",
            "1:35: column \"n\" has a LATENESS or WATERMARK already",
        ),
        ("n INT LATENESS 1 LATENESS 2", "1:34: column \"n\" has a LATENESS or WATERMARK already"),
        (
            "n INT, WATERMARK FOR n AS n NOT NULL",
            "1:24: nothing can follow a WATERMARK: write ',' or ')' behind it",
        ),
        ("n INT OPTIONS (LATENESS = 1)", "1:17: OPTIONS is not supported yet"),
    ] {
        let text = format!("CREATE TABLE t ({columns})");
        assert_eq!(table(&text).map(|table| table.lateness), Err(expected.to_owned()), "{text}");
    }
    for (text, expected) in [
        (
            "LATENESS ts INTERVAL '1' HOUR",
            "1:10: LATENESS names a view and a column: write LATENESS view.column INTERVAL '1' HOUR; that of a table's column stands in CREATE TABLE",
        ),
        ("LATENESS v.ts", "1:14: expected an expression, found the end of the statement"),
        ("LATENESS v.ts 1 2", "1:17: expected the end of the statement, found 2"),
        (
            "CREATE TABLE t (a INT) WITH ('idle_after' = '1 minute')",
            "1:45: 'idle_after' is for a table with a column that has LATENESS: without it there is no waterline that could hold others back",
        ),
        (
            "CREATE TABLE t (a INT LATENESS 1) WITH ('idle_after' = '1 month')",
            "1:56: 'idle_after' is an interval as '1 minute', not '1 month'",
        ),
        (
            "CREATE TABLE t (a INT LATENESS 1) WITH ('idle_after' = 'soon')",
            "1:56: 'idle_after' is an interval as '1 minute', not 'soon'",
        ),
        (
            "CREATE TABLE t (a INT LATENESS 1) WITH ('idle_after' = '0 seconds')",
            "1:56: 'idle_after' is an interval as '1 minute', not '0 seconds'",
        ),
        (
            "CREATE TABLE t (a INT LATENESS 1) WITH ('late_rows' = 'true')",
            "1:55: option 'late_rows' must be 'errors' or 'count', not 'true'",
        ),
        (
            "CREATE TABLE t (a INT) WITH ('late_rows' = 'errors')",
            "1:44: 'late_rows' is for a table with a column that has LATENESS: without it no row comes too late",
        ),
    ] {
        assert_eq!(
            statement(text).map(|_| ()).map_err(|error| shown(&error)),
            Err(expected.to_owned())
        );
    }
}

#[test]
fn a_table_is_idle_after_a_time() {
    for (option, expected) in [
        ("", None),
        (" WITH ('idle_after' = '1 minute')", Some(60_000_000)),
        (" WITH ('Idle_After' = '1 day 2 hours 0.5 seconds')", Some(93_600_500_000)),
    ] {
        let table = table(&format!("CREATE TABLE t (a INT LATENESS 1){option}")).unwrap();
        assert_eq!(table.idle_after(), expected, "{option}");
    }
}

#[test]
fn late_rows_are_counted_or_shown() {
    for (options, shows) in [
        ("", false),
        (" WITH ('late_rows' = 'count')", false),
        (" WITH ('Late_Rows' = 'ERRORS', 'materialized' = 'true')", true),
    ] {
        let table = table(&format!("CREATE TABLE t (a INT LATENESS 1){options}")).unwrap();
        assert_eq!(table.shows_late_rows(), shows, "{options}");
    }
}

#[test]
fn a_statement_says_how_late_changes_of_a_view_may_come() {
    for (text, view) in [
        ("LATENESS v.ts INTERVAL '1' HOUR", "v"),
        ("lateness V.ts INTERVAL 1 HOUR", "v"),
        ("LATENESS \"V w\".\"ts\" 10", "V w"),
    ] {
        let StatementKind::Lateness(said) = statement(text).unwrap().kind else { panic!("{text}") };
        assert_eq!((said.view.as_str(), said.text.as_str()), (view, text));
        assert_eq!((said.position.line, said.position.column), (1, 10));
    }
}
