//! Deep and long statements: they are planned, or refused with a position.

use alluvium_sql::statement::{StatementKind, parse};

use crate::fixture::{Definitions, shown, statement};

const TABLE: &str = "CREATE TABLE t (a INT, b TEXT, c BOOLEAN);";

/// The error of a statement.
fn refusal(text: &str) -> String {
    match statement(text) {
        Err(error) => shown(&error),
        Ok(statement) => panic!("it is not refused: {}", &statement.text[..100]),
    }
}

#[test]
fn nested_casts_are_refused_at_once() {
    // For each CAST the parser tried two readings, of all that is inside.
    let nested = |depth: usize, inner: &str| {
        format!("SELECT {}{inner}{} FROM t", "CAST(".repeat(depth), " AS INT)".repeat(depth))
    };
    assert!(statement(&nested(40, "a")).is_ok());
    let deep =
        "expressions are nested too deeply: brackets, functions and subqueries nest some 50 levels";
    assert_eq!(refusal(&nested(10_000, "a")), format!("1:248: {deep}"));
    assert_eq!(refusal(&nested(45, "a b c")), "1:235: expected AS, found b");
    for function in
        ["TRIM(", "CEIL(", "EXTRACT(YEAR FROM ", "CASE WHEN ", "ARRAY[", "POSITION(1 IN "]
    {
        let text = format!("SELECT {}a b c FROM t", function.repeat(40));
        assert!(statement(&text).is_err(), "{function}");
    }
}

#[test]
fn operators_that_nest_are_refused_where_they_do() {
    for prefix in ["NOT ", "- ", "(", "ABS(", "[", "ROW(", "CASE WHEN ", "(SELECT ", "INTERVAL "] {
        let text = format!("SELECT 1,\n{}1", prefix.repeat(10_000));
        let error = statement(&text).expect_err(prefix);
        assert_eq!(error.position.expect(prefix).line, 2, "{prefix}");
    }
}

#[test]
fn chains_of_thousands_of_conditions_are_planned() {
    let mut definitions = Definitions::flights();
    definitions.define(TABLE);
    for (operator, condition) in [("OR", "a = {}"), ("AND", "a <> {}"), ("OR", "(a < {} AND c)")] {
        let terms: Vec<String> =
            (0..2_000).map(|number| condition.replace("{}", &number.to_string())).collect();
        let query = format!("SELECT a FROM t WHERE {}", terms.join(&format!(" {operator} ")));
        definitions.view(&query).unwrap();
    }
}

#[test]
fn chains_that_cannot_be_balanced_have_a_limit() {
    for operator in ["[1]", " + 1", " || b", "::TEXT", " LIKE 'x'", " IS NULL", " = c"] {
        let text = format!("SELECT 1,\na{} FROM t", operator.repeat(20_000));
        let error = statement(&text).expect_err(operator);
        assert!(error.message.contains("more than 1000"), "{operator}: {error}");
        assert!(error.position.is_some(), "{operator}");
    }
    let unions = vec!["SELECT a FROM t"; 3_000];
    assert!(refusal(&unions.join(" EXCEPT ")).contains("more than 1000"));
    assert!(statement(&unions.join(" UNION ")).is_ok());
}

#[test]
fn a_long_union_keeps_what_each_union_means() {
    let mut definitions = Definitions::flights();
    definitions.define(TABLE);
    let parts = |first: &str, second: &str| {
        let part = |union: &str, number: usize| format!(" {union} SELECT a + {number} FROM t");
        let first: String = (1..71).map(|number| part(first, number)).collect();
        let second: String = (1..71).map(|number| part(second, number)).collect();
        definitions.explain(&format!("SELECT a FROM t{first}{second}"))
    };
    let distinct = |plan: &str| plan.lines().filter(|line| line.contains("distinct")).count();
    let plan = parts("UNION ALL", "UNION");
    assert!(plan.starts_with("distinct"), "{plan}");
    assert_eq!(distinct(&plan), 1, "{plan}");
    let plan = parts("UNION", "UNION ALL");
    assert!(plan.starts_with("union"), "{plan}");
    assert_eq!(distinct(&plan), 1, "{plan}");
    assert_eq!(plan.lines().filter(|line| line.contains("scan t")).count(), 141, "{plan}");
    assert_eq!(distinct(&parts("UNION ALL", "UNION ALL")), 0);
}

#[test]
fn types_have_a_limited_depth() {
    let deep = "this type nests more than 64 levels deep";
    for (open, close) in
        [("", "[]"), ("ARRAY<", ">"), ("STRUCT<a ", ">"), ("ROW(a ", ")"), ("MAP<INT, ", ">")]
    {
        let nested = |depth| format!("{}INT{}", open.repeat(depth), close.repeat(depth));
        assert!(statement(&format!("CREATE TABLE u (a {})", nested(20))).is_ok(), "{open}");
        let text = format!("CREATE TABLE u (a {})", nested(5_000));
        let error = refusal(&text);
        assert!(error.contains(deep) || error.contains("too deeply"), "{open}: {error}");
    }
    assert_eq!(
        refusal(&format!("SELECT CAST(a AS INT{})", "[]".repeat(5_000))),
        format!("1:13: {deep}")
    );
}

#[test]
fn grouping_sets_are_counted_before_they_are_built() {
    let columns =
        |count: usize| (0..count).map(|number| format!("c{number}")).collect::<Vec<_>>().join(", ");
    for groups in [
        format!("CUBE ({})", columns(13)),
        format!("CUBE ({})", columns(64)),
        format!("CUBE ({}), ROLLUP ({})", columns(10), columns(4)),
    ] {
        let text = format!("SELECT\n count(*) FROM t GROUP BY {groups}");
        assert_eq!(refusal(&text), "1:1: GROUP BY has more than 4096 grouping sets", "{groups}");
    }
    assert!(statement(&format!("SELECT 1 FROM t GROUP BY CUBE ({})", columns(12))).is_ok());
}

#[test]
fn views_that_read_each_other_twice_are_refused_before_they_are_expanded() {
    let mut definitions = Definitions::flights();
    definitions.define(TABLE);
    definitions.define("CREATE VIEW v0 AS SELECT a FROM t;");
    for number in 1..11 {
        let below = format!("v{}", number - 1);
        definitions.define(&format!(
            "CREATE VIEW v{number} AS SELECT a FROM {below} UNION ALL SELECT a FROM {below};"
        ));
    }
    let mut query = "SELECT a FROM v10".to_owned();
    query.push_str(&" UNION ALL SELECT a FROM v10".repeat(3));
    let error = definitions.view(&query).unwrap_err();
    assert!(error.message.starts_with("the plan has more than 10000 operations"), "{error}");
    let text: String = (1..50)
        .map(|number| format!(", c{number} AS (SELECT x.a FROM c{0} x, c{0} y)", number - 1))
        .collect();
    let error = definitions.view(&format!("WITH c0 AS (SELECT a FROM t){text} SELECT * FROM c49"));
    let error = error.unwrap_err();
    assert!(error.message.contains("reads others more than 1000 times"), "{error}");
}

#[test]
fn wide_definitions_are_refused_at_once() {
    let names =
        |count: usize| (0..count).map(|number| format!("c{number} INT")).collect::<Vec<_>>();
    assert!(statement(&format!("CREATE TABLE u ({})", names(4_096).join(", "))).is_ok());
    let error = refusal(&format!("CREATE TABLE u ({})", names(10_000).join(", ")));
    assert_eq!(error, "1:14: a table has at most 4096 columns, and not 10000");
    let error = refusal(&format!("SELECT 1 FROM t{}", " CROSS JOIN t".repeat(300)));
    assert_eq!(error, "1:1: a SELECT reads more than 100 relations");
    let error = refusal(&format!("CREATE TABLE u (a INT DEFAULT 1{})", " + 1".repeat(500)));
    assert_eq!(error, "1:17: a DEFAULT nests at most 100 levels deep");
}

#[test]
fn long_texts_are_read_in_one_pass() {
    let literal = "x".repeat(8_000_000);
    let text = format!("SELECT '{literal}';{}", ";".repeat(400_000));
    let statements: Vec<_> = parse(&text).collect::<Result<_, _>>().unwrap();
    assert!(matches!(statements[0].kind, StatementKind::Query(_)));
    assert_eq!(statements.len(), 1);
}
