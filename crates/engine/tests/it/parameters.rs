//! Values for `$1`, `$2`, … in statements.

use alluvium::{Engine, Outcome, Value};

use crate::support::{engine_with, lines, settled};

fn engine() -> Engine {
    engine_with(
        2,
        "CREATE TABLE part (id INT PRIMARY KEY, name TEXT, day DATE, price DECIMAL(10, 2));
         CREATE MATERIALIZED VIEW cheap AS SELECT name FROM part WHERE price < 5",
    )
}

fn number(number: i64) -> Value {
    Value::from(number)
}

fn text(text: &str) -> Value {
    Value::from(text)
}

fn change(engine: &Engine, sql: &str, parameters: &[Value]) -> u64 {
    match engine.execute_with(sql, parameters).expect("the statement is right") {
        Outcome::Changed { rows, .. } => rows,
        other => panic!("rows are changed, not {other:?}"),
    }
}

fn rows(engine: &Engine, sql: &str, parameters: &[Value]) -> Vec<String> {
    settled(engine, "SELECT 1");
    lines(&engine.query_with(sql, parameters).expect("the query is right"))
}

fn error(engine: &Engine, sql: &str, parameters: &[Value]) -> String {
    let error = engine.execute_with(sql, parameters).expect_err("it is refused");
    match error.position() {
        Some((line, column)) => format!("{line}:{column}: {error}"),
        None => error.to_string(),
    }
}

#[test]
fn statements_that_change_rows_take_values_of_the_types_of_columns() {
    let engine = engine();
    let insert = "INSERT INTO part VALUES ($1, $2, $3, $4), ($1 + 1, upper($2), $3, NULL)";
    let values = [number(1), text("bolt"), text("2024-02-29"), text("4.50")];
    assert_eq!(change(&engine, insert, &values), 2);
    assert_eq!(
        settled(&engine, "SELECT * FROM part"),
        ["1 bolt 2024-02-29 4.50", "2 BOLT 2024-02-29 NULL"]
    );
    let update = "UPDATE part SET price = $1, name = $3 WHERE id = $2";
    assert_eq!(change(&engine, update, &[number(3), number(2), text("nut")]), 1);
    assert_eq!(settled(&engine, "SELECT * FROM cheap"), ["bolt", "nut"]);
    let nothing = Value::NULL;
    assert_eq!(change(&engine, "UPDATE part SET name = $1", &[nothing]), 2);
    assert_eq!(change(&engine, "DELETE FROM part WHERE id < $1", &[number(2)]), 1);
    assert_eq!(settled(&engine, "SELECT id, name FROM part"), ["2 NULL"]);
}

#[test]
fn queries_take_values_wherever_an_expression_stands() {
    let engine = engine();
    let insert =
        "INSERT INTO part (id, name) SELECT value, $2 FROM generate_series(1, $1) AS s (value)";
    // DataFusion has no table function for this: the rows are inserted one by one.
    assert!(engine.execute_with(insert, &[number(9), text("x")]).is_err());
    for id in 1..=9 {
        change(&engine, "INSERT INTO part (id, name) VALUES ($1, $2)", &[number(id), text("x")]);
    }
    let select = "SELECT id + $1 AS n FROM part WHERE id BETWEEN $2 AND $3 ORDER BY id LIMIT $4";
    let values = [number(10), number(3), number(8), number(2)];
    assert_eq!(rows(&engine, select, &values), ["13", "14"]);
    let nested = "SELECT COUNT(*) FROM part WHERE id IN (SELECT id FROM part WHERE id > $1)";
    assert_eq!(rows(&engine, nested, &[number(5)]), ["4"]);
    // Where nothing tells which type is wanted, a CAST does.
    let concatenated = "SELECT CAST($1 AS TEXT) || CAST($2 AS TEXT) || CAST($1 AS TEXT) AS t";
    assert_eq!(rows(&engine, concatenated, &[text("a"), text("b")]), ["aba"]);
}

#[test]
fn values_and_parameters_must_agree() {
    let engine = engine();
    assert_eq!(
        error(&engine, "SELECT name\nFROM part WHERE id = $2", &[number(1)]),
        "2:22: there is no value for parameter $2"
    );
    assert_eq!(
        error(&engine, "DELETE FROM part WHERE id = $1", &[]),
        "1:29: there is no value for parameter $1"
    );
    assert_eq!(
        error(&engine, "SELECT $1 AS a", &[number(1), number(2)]),
        "1:1: there is a value for $2, which does not occur"
    );
    assert_eq!(
        error(&engine, "SELECT * FROM part WHERE id = $id", &[number(1)]),
        "1:31: parameters are written $1, $2, …, not $id"
    );
    let message = error(&engine, "INSERT INTO part (id) VALUES ($1)", &[text("one")]);
    assert!(message.contains("'one'") || message.contains("one"), "{message}");
    assert_eq!(error(&engine, "SELECT 1; SELECT 2", &[]), "one statement is expected here");
}

#[test]
fn definitions_have_no_parameters() {
    let engine = engine();
    let view = "CREATE VIEW v AS SELECT name FROM part WHERE id = $1";
    assert_eq!(error(&engine, view, &[]), "1:51: a parameter in a view is not supported yet");
    assert_eq!(
        error(&engine, "CREATE TABLE t (a INT DEFAULT $1)", &[]),
        "1:31: a parameter in DEFAULT is not supported yet"
    );
}

#[test]
fn a_number_with_a_fraction_is_no_value_for_an_integer() {
    let engine = engine();
    change(&engine, "INSERT INTO part (id, name) VALUES ($1, $2)", &[number(1), text("bolt")]);
    let (half, whole) = (Value::from(1.5), Value::from(2.0));
    for sql in ["INSERT INTO part (id) VALUES ($1)", "DELETE FROM part WHERE id = $1"] {
        let message = error(&engine, sql, std::slice::from_ref(&half));
        assert!(
            message.contains(
                "the value 1.5 of type DOUBLE for parameter $1 does not fit type INTEGER"
            ),
            "{message}"
        );
    }
    let decimal = Value::decimal(15, 2, 1).unwrap();
    let message = error(&engine, "UPDATE part SET id = $1", &[decimal]);
    assert!(message.contains("does not fit type INTEGER"), "{message}");
    change(&engine, "INSERT INTO part (id, price) VALUES ($1, $2)", &[whole, half]);
    assert_eq!(rows(&engine, "SELECT id, price FROM part ORDER BY id", &[]).len(), 2);
}

#[test]
fn parameters_may_have_the_types_of_their_values() {
    let engine = engine();
    let mut session = engine.session();
    session.set_typed_parameters(true);
    session
        .execute("INSERT INTO part VALUES (1, 'bolt', DATE '2024-02-29', 4.50), (2, 'nut', DATE '2024-03-01', 5)")
        .expect("rows are inserted");
    let mut answer = |sql: &str, values: &[Value]| match session.execute_with(sql, values) {
        Ok(Outcome::Rows(rows)) => lines(&rows.into_batches().expect("rows")).join("|"),
        Ok(Outcome::Changed { rows, .. }) => format!("{rows} rows"),
        other => panic!("{sql}: {other:?}"),
    };
    let (half, date) = (Value::from(1.5), Value::date(19_782));
    let decimal = Value::decimal(1_555, 4, 3).unwrap();
    for _ in 0..3 {
        assert_eq!(answer("SELECT $1 + 1 AS a", std::slice::from_ref(&half)), "2.5");
        assert_eq!(answer("SELECT $1 + $2 AS a", &[half.clone(), number(1)]), "2.5");
        assert_eq!(answer("SELECT SUM($1) AS a", std::slice::from_ref(&half)), "1.5");
        assert_eq!(
            answer("SELECT day - $1 AS a FROM part WHERE id = 1", std::slice::from_ref(&date)),
            "0"
        );
        assert_eq!(
            answer("SELECT day - $1 AS a FROM part WHERE id = 1", &[number(28)]),
            "2024-02-01"
        );
        let price = "SELECT price * $1 AS a FROM part WHERE id = $2";
        assert_eq!(answer(price, &[decimal.clone(), number(2)]), "7.77500");
        assert_eq!(
            answer("SELECT name FROM part WHERE id > $1", std::slice::from_ref(&half)),
            "nut"
        );
        assert_eq!(answer("SELECT name FROM part WHERE id = $1", &[number(2)]), "nut");
        assert_eq!(answer("SELECT name FROM part WHERE day = $1", &[text("2024-03-01")]), "nut");
        assert_eq!(answer("SELECT $1 || $2 AS a", &[text("a"), text("b")]), "ab");
    }
    assert_eq!(
        answer("UPDATE part SET price = price * $1 WHERE id < $2", &[number(2), half.clone()]),
        "1 rows"
    );
    assert_eq!(answer("DELETE FROM part WHERE id + $1 > 3", std::slice::from_ref(&half)), "1 rows");
    assert_eq!(answer("SELECT id, price FROM part", &[]), "1 9.00");
    // What is written to a column has to fit it.
    for sql in ["INSERT INTO part (id) VALUES ($1)", "UPDATE part SET id = $1"] {
        let error = session.execute_with(sql, std::slice::from_ref(&half)).expect_err("a fraction");
        assert!(error.to_string().contains("does not fit type INTEGER"), "{error}");
    }
}
