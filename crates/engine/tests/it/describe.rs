//! Statements that are described before they run.

use alluvium::arrow::datatypes::{DataType, Field, SchemaRef, TimeUnit};
use alluvium::{Description, Engine, Outcome, Session, Value};

use crate::support::engine_with;

const TABLES: &str = "
    CREATE TABLE part (id INT PRIMARY KEY, name TEXT NOT NULL, day DATE, price DECIMAL(10, 2));
    CREATE TABLE stay (id BIGINT, low TIMESTAMP, high TIMESTAMP);
    CREATE MATERIALIZED VIEW cheap AS SELECT id, name FROM part WHERE price < 5;
    CREATE VIEW plain AS SELECT id + 1 AS next, price * 2 AS double FROM part";

fn engine() -> Engine {
    engine_with(2, TABLES)
}

fn describe(session: &mut Session, sql: &str) -> Description {
    session.describe(sql).unwrap_or_else(|error| panic!("{sql}: {error}"))
}

/// The types of parameters as text.
fn parameters(session: &mut Session, sql: &str) -> String {
    let types = describe(session, sql).parameters;
    let types =
        types.iter().map(|known| known.as_ref().map_or("?".to_owned(), DataType::to_string));
    types.collect::<Vec<_>>().join(" ")
}

/// Columns as text: names, types, and what may be NULL.
fn text(columns: Option<&SchemaRef>) -> String {
    let Some(columns) = columns else { return "none".to_owned() };
    let column = |field: &Field| {
        let null = if field.is_nullable() { "?" } else { "" };
        format!("{} {}{null}", field.name(), field.data_type())
    };
    columns.fields().iter().map(|field| column(field)).collect::<Vec<_>>().join(", ")
}

fn columns(session: &mut Session, sql: &str) -> String {
    text(describe(session, sql).columns.as_ref())
}

#[test]
fn parameters_have_the_types_of_their_places() {
    let engine = engine();
    let mut session = engine.session();
    let decimal = "Decimal128(10, 2)";
    let moment = DataType::Timestamp(TimeUnit::Microsecond, None).to_string();
    for (sql, expected) in [
        ("SELECT name FROM part WHERE id = $1", "Int32"),
        ("SELECT name FROM part WHERE $2 < day AND $1 LIKE name AND name LIKE $3", "? Date32 Utf8"),
        (
            "SELECT name FROM part WHERE id IN ($1, $2) OR price BETWEEN $3 AND 7",
            &format!("Int32 Int32 {decimal}"),
        ),
        ("SELECT id FROM stay WHERE $1 BETWEEN low AND high", &moment),
        ("SELECT id + $1 FROM stay", "Int64"),
        ("SELECT name FROM part WHERE id IN (SELECT id FROM stay WHERE low < $1)", &moment),
        ("SELECT name FROM part ORDER BY id LIMIT $1 OFFSET $2", "Int64 Int64"),
        ("SELECT CAST($1 AS DATE) AS day, $2 AS any", "Date32 ?"),
        ("SELECT $1 AS any FROM part WHERE id = $1", "Int32"),
        ("INSERT INTO part VALUES ($1, $2, $3, $4)", &format!("Int32 Utf8 Date32 {decimal}")),
        (
            "INSERT INTO part (price, id, name) VALUES ($2, $1, 'x'), (1, $3 + 1, $4)",
            &format!("Int32 {decimal} Int64 Utf8"),
        ),
        ("INSERT INTO part (id, name) SELECT $1, $2", "Int32 Utf8"),
        ("INSERT INTO part (id, name) SELECT id, $1 FROM stay", "Utf8"),
        (
            "INSERT INTO part (id, name) VALUES ($1, $2) ON CONFLICT (id) DO UPDATE SET price = $3 WHERE part.day < $4",
            &format!("Int32 Utf8 {decimal} Date32"),
        ),
        ("UPDATE part SET price = $1, name = $3 WHERE id = $2", &format!("{decimal} Int32 Utf8")),
        (
            "UPDATE part SET name = 'x' WHERE day > $1 RETURNING price + $2",
            &format!("Date32 {decimal}"),
        ),
        ("DELETE FROM part WHERE id < $1", "Int32"),
        ("EXPLAIN SELECT name FROM part WHERE id = $1", "Int32"),
        ("CREATE TABLE copied AS SELECT name FROM part WHERE id = $1", "Int32"),
        ("SELECT name FROM part", ""),
        ("COMMIT", ""),
    ] {
        assert_eq!(parameters(&mut session, sql), expected, "{sql}");
    }
}

#[test]
fn columns_have_names_and_types_and_may_be_null_or_not() {
    let engine = engine();
    let mut session = engine.session();
    for (sql, expected) in [
        ("SELECT * FROM cheap", "id Int32, name Utf8"),
        (
            "SELECT name, name, price FROM part WHERE id = $1",
            "name Utf8, name Utf8, price Decimal128(10, 2)?",
        ),
        ("SELECT id + $1 AS sum, $2 AS any FROM stay", "sum Int64?, any Utf8?"),
        ("INSERT INTO part VALUES ($1, $2, $3, $4)", "none"),
        (
            "INSERT INTO part VALUES ($1, $2, $3, $4) RETURNING id, name AS called",
            "id Int32, called Utf8",
        ),
        (
            "UPDATE part SET name = 'x' RETURNING *",
            "id Int32, name Utf8, day Date32?, price Decimal128(10, 2)?",
        ),
        ("DELETE FROM part WHERE id = $1 RETURNING day", "day Date32?"),
        ("DELETE FROM part", "none"),
        ("SUBSCRIBE cheap", "id Int32, name Utf8"),
        ("SHOW TABLES", "name Utf8?"),
        ("SHOW SOURCES", "name Utf8?, type Utf8?, path Utf8?, state Utf8?"),
        ("SHOW SINKS", "name Utf8?, relation Utf8?, type Utf8?, path Utf8?, state Utf8?"),
        (
            "DESCRIBE part",
            "column_name Utf8?, column_type Utf8?, null Utf8?, key Utf8?, default Utf8?, extra Utf8?",
        ),
        ("EXPLAIN SELECT 1", "QUERY PLAN Utf8"),
        ("EXPLAIN VIEW cheap", "QUERY PLAN Utf8"),
        ("EXPLAIN STATE cheap", "QUERY PLAN Utf8"),
        ("CREATE TABLE u (a INT)", "none"),
        ("CREATE TABLE copied AS SELECT name FROM part", "none"),
        ("DROP TABLE part CASCADE", "none"),
        ("BEGIN", "none"),
    ] {
        assert_eq!(columns(&mut session, sql), expected, "{sql}");
    }
    // Nothing of it has been done.
    assert_eq!(columns(&mut session, "SELECT id FROM part"), "id Int32");
    assert!(session.describe("SELECT * FROM u").is_err());
}

#[test]
fn a_query_has_the_columns_that_were_described() {
    let engine = engine();
    let mut session = engine.session();
    for (sql, values) in [
        ("SELECT * FROM plain", vec![]),
        ("VALUES (1, 'a')", vec![]),
        (
            "SELECT next + $1 AS n, double FROM plain WHERE next > $2",
            vec![1_i64.into(), 2_i64.into()],
        ),
        (
            "SELECT count(*) AS n, sum(price) AS s, max(day) AS d FROM part WHERE id > $1",
            vec![1_i64.into()],
        ),
        ("SELECT p.name, s.low FROM part AS p LEFT JOIN stay AS s ON p.id = s.id", vec![]),
        ("SELECT CASE WHEN id > 1 THEN 1.5 ELSE price END AS c FROM part", vec![]),
        ("SELECT id, CAST($1 AS DOUBLE) AS d FROM part UNION ALL SELECT 1, 2.5", vec![2.5.into()]),
        (
            "WITH w AS (SELECT day FROM part) SELECT DISTINCT day FROM w ORDER BY day LIMIT $1",
            vec![3_i64.into()],
        ),
        ("SELECT * FROM alluvium.tables", vec![]),
        ("SELECT * FROM alluvium.relations", vec![]),
        (
            "SELECT table_name FROM information_schema.tables WHERE table_name = $1",
            vec!["part".into()],
        ),
        ("SELECT NOW() AS t, id FROM generate_series(1, 3) AS s (id)", vec![]),
        ("DELETE FROM part WHERE id = $1 RETURNING name, price * 2 AS p", vec![7_i64.into()]),
    ] {
        let described = describe(&mut session, sql);
        assert_eq!(described.parameters.len(), values.len(), "{sql}");
        match session.execute_with(sql, &values) {
            Ok(Outcome::Rows(rows)) => {
                let (mut described, mut ran) =
                    (text(described.columns.as_ref()), text(Some(rows.schema())));
                // A parameter may be NULL.
                if !values.is_empty() {
                    (described, ran) = (described.replace('?', ""), ran.replace('?', ""));
                }
                assert_eq!(described, ran, "{sql}");
            }
            other => panic!("{sql}: {other:?}"),
        }
    }
}

#[test]
fn what_is_wrong_with_a_statement_is_told_where_it_is() {
    let engine = engine();
    let mut session = engine.session();
    // As when it runs.
    for sql in [
        "SELECT name FROM nowhere",
        "SELECT id,\n  nome FROM part",
        "SELECT name + DATE '2024-01-01'\nFROM part WHERE id = 3",
        "UPDATE part SET nome = 'x'",
        "INSERT INTO part (id) VALUES (1, 2)",
        "SUBSCRIBE nowhere",
        "SELEC 1",
        "DESCRIBE nowhere",
    ] {
        let described = session.describe(sql).expect_err(sql);
        let ran = session.execute(sql).expect_err(sql);
        assert_eq!(described, ran, "{sql}");
        assert!(described.position().is_some(), "{sql}: {described}");
    }
    let mut error = |sql| {
        let error = session.describe(sql).expect_err("it is refused");
        (error.position(), error.to_string())
    };
    let (position, message) = error("SELECT name\nFROM part WHERE id = $2");
    assert_eq!((position, &*message), (Some((1, 1)), "parameter $1 does not occur"));
    let (position, message) = error("SELECT name\nFROM part WHERE id = $id");
    assert_eq!(position, Some((2, 22)));
    assert_eq!(message, "parameters are written $1, $2, …, not $id");
    assert_eq!(error("SELECT 1; SELECT 2").1, "one statement is expected here");
    let (position, _) = error("SELECT name FROM part\nWHERE CAST($1 AS DATE) + day > 3");
    assert_eq!(position.map(|(line, _)| line), Some(2));
}

#[test]
fn describing_starts_and_changes_nothing() {
    let engine = engine();
    let mut session = engine.session();
    let before = engine.progress().committed;
    for sql in ["DELETE FROM part", "INSERT INTO part (id, name) VALUES (1, 'x')", "BEGIN"] {
        describe(&mut session, sql);
    }
    assert_eq!(engine.progress().committed, before);
    assert!(!session.in_transaction());
    let nothing: [Value; 0] = [];
    assert!(engine.query_with("SELECT * FROM part", &nothing).expect("a query").is_empty());
}
