//! Messages that users read when a statement is refused: `error_texts.txt` has statements, each with a caret below the place of its
//! error and the whole text. Of a query they are the same if it is a view's, or a line says `in a view`, or `in a query`.

use std::fmt::Write;

use alluvium::{Engine, Error};

const TEXTS: &str = include_str!("error_texts.txt");

const TABLES: &str = "
    CREATE TABLE t (a INT, b BIGINT, s TEXT, d DATE, ts TIMESTAMP, x DOUBLE, bo BOOLEAN, l INT[],
                    st STRUCT<f INT, g TEXT>, m MAP<TEXT, INT>);
    CREATE TABLE k (id INT PRIMARY KEY, v TEXT);
    CREATE VIEW pv AS SELECT a, s FROM t;
    CREATE FUNCTION twice(x INT) RETURNS INT AS x + x; CREATE MACRO shout(x) AS upper(x) || '!'";

/// A caret below the place of an error in the last line of a text, after its first `before` characters, and what it says.
fn marked(error: Option<&Error>, before: usize, kind: &str) -> String {
    let Some(error) = error else { return String::new() };
    let (line, column) = error.position().expect("an error of a statement has a position");
    assert_eq!(line, 1, "{error}");
    let column = usize::try_from(column).expect("a column").checked_sub(before + 1);
    let column = column.unwrap_or_else(|| panic!("an error in front of the query: {error}"));
    format!("{}^ {kind}{error}\n", " ".repeat(column))
}

#[test]
fn every_refusal_says_what_is_wrong_and_where() {
    let engine = Engine::builder().workers(1).open_in_memory().expect("an engine starts");
    engine.execute(TABLES).expect("the statements are right");
    let (mut found, mut count) = (String::new(), 0);
    for line in TEXTS.lines().filter(|line| !line.trim_start().starts_with('^')) {
        let _ = writeln!(found, "{line}");
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        count += 1;
        let error = engine.session().execute(line).err();
        let is_query = ["SELECT", "WITH", "VALUES"].iter().any(|word| line.starts_with(word));
        if !is_query {
            found += &marked(error.as_ref(), 0, "");
            continue;
        }
        let view = "CREATE MATERIALIZED VIEW made AS ";
        let of_view = engine.session().execute(&format!("{view}{line}")).err();
        if of_view.is_none() {
            engine.execute("DROP VIEW made").expect("the view is there");
        }
        let plain = marked(error.as_ref(), 0, "");
        match marked(of_view.as_ref(), view.len(), "") == plain {
            true => found += &plain,
            false => {
                found += &marked(error.as_ref(), 0, "in a query: ");
                found += &marked(of_view.as_ref(), view.len(), "in a view: ");
            }
        }
    }
    assert!(count > 100, "{count}");
    let pairs = found.lines().zip(TEXTS.lines());
    let differ = pairs.filter(|(found, expected)| found != expected).take(20);
    let differ: Vec<String> =
        differ.map(|(found, expected)| format!("- {expected}\n+ {found}")).collect();
    assert!(differ.is_empty(), "{}", differ.join("\n"));
    assert_eq!(found, TEXTS);
}
