//! Deep and long statements: they are planned, or refused with a position.

use alluvium_sql::planner::defaults;
use alluvium_sql::stack::with_room;
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
    for operator in [" + 1", " || b", "::TEXT", " LIKE 'x'", " IS NULL", " = c"] {
        let text = format!("SELECT 1,\na{} FROM t", operator.repeat(20_000));
        let error = statement(&text).expect_err(operator);
        assert!(error.message.contains("more than 1000"), "{operator}: {error}");
        assert!(error.position.is_some(), "{operator}");
    }
    let subscripts = |count| format!("SELECT l{} FROM t", "[1:2]".repeat(count));
    assert!(statement(&subscripts(64)).is_ok());
    assert_eq!(refusal(&subscripts(65)), "1:8: an expression has at most 64 subscripts");
    let unions = vec!["SELECT a FROM t"; 1_000];
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
        assert_eq!(refusal(&text), "1:1: GROUP BY has at most 4096 grouping sets", "{groups}");
    }
    assert!(statement(&format!("SELECT 1 FROM t GROUP BY CUBE ({})", columns(12))).is_ok());
    let error = refusal(&format!("SELECT 1 FROM t GROUP BY ROLLUP ({})", columns(316)));
    assert!(error.ends_with("at most 100000 keys in all grouping sets together"), "{error}");
    assert!(statement(&format!("SELECT 1 FROM t GROUP BY ROLLUP ({})", columns(315))).is_ok());
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
fn subqueries_that_are_read_three_times_are_counted_while_they_are_rewritten() {
    let mut definitions = Definitions::flights();
    definitions.define(TABLE);
    let nested = |depth: usize| {
        format!(
            "{}SELECT a FROM t{}",
            "SELECT a FROM t WHERE a NOT IN (".repeat(depth),
            ")".repeat(depth)
        )
    };
    definitions.view(&nested(3)).unwrap();
    let error = definitions.view(&nested(12)).unwrap_err();
    assert!(error.message.starts_with("the plan has more than 10000 operations"), "{error}");
}

#[test]
fn wide_definitions_are_refused_at_once() {
    let names =
        |count: usize| (0..count).map(|number| format!("c{number} INT")).collect::<Vec<_>>();
    assert!(statement(&format!("CREATE TABLE u ({})", names(4_096).join(", "))).is_ok());
    let error = refusal(&format!("CREATE TABLE u ({})", names(10_000).join(", ")));
    assert_eq!(error, "1:14: a table has at most 4096 columns, and not 10000");
    let error = refusal(&format!("SELECT 1 FROM t{}", " CROSS JOIN t".repeat(300)));
    assert_eq!(error, "1:1: a SELECT reads at most 100 relations");
    let deep = format!("CREATE TABLE u (a INT DEFAULT 1{})", " + 1".repeat(500));
    let statement = statement(&deep).unwrap();
    let StatementKind::CreateTable(table) = &statement.kind else { panic!("it is a table") };
    let error = with_room(statement.depth, || defaults(table)).unwrap_err();
    let error = shown(&error);
    assert_eq!(error, "1:31: a DEFAULT nests at most 100 levels deep");
}

#[test]
fn long_texts_are_read_in_one_pass() {
    let literal = "x".repeat(8_000_000);
    let text = format!("SELECT '{literal}';{}", ";".repeat(400_000));
    let statements: Vec<_> = parse(&text).collect::<Result<_, _>>().unwrap();
    assert!(matches!(statements[0].kind, StatementKind::Query(_)));
    assert_eq!(statements.len(), 1);
}

#[test]
fn readings_that_fail_are_not_tried_for_ever() {
    // Each OVERLAY that is not one may be a function, with all that is inside.
    for text in ["OVERLAY(".repeat(30), "OVERLAY(".repeat(3_000)] {
        let start = std::time::Instant::now();
        assert!(statement(&format!("SELECT {text}s")).is_err());
        assert!(start.elapsed().as_secs() < 5, "{:?}", start.elapsed());
    }
}

#[test]
fn powers_have_a_limit() {
    // Each copied all that is before it.
    let powers = |count| format!("SELECT a{} FROM t", " ^ 1".repeat(count));
    assert!(statement(&powers(50)).is_ok());
    assert!(refusal(&powers(20_000)).contains("too deeply"));
}

#[test]
fn parts_that_are_compared_to_each_other_have_a_limit() {
    let list = |count: usize, part: &str| {
        let parts: Vec<String> =
            (0..count).map(|number| part.replace('#', &number.to_string())).collect();
        parts.join(if part.starts_with("WHEN") { " " } else { ", " })
    };
    for (before, part, after, message) in [
        ("GREATEST(", "a + #", ")", "a call has at most 1000 arguments"),
        ("MAP {", "'#': #", "}", "a map has at most 1000 entries"),
        ("{", "'f#': #", "}", "a struct has at most 1000 fields"),
        ("CASE a ", "WHEN # THEN #", " END", "a CASE has at most 1000 branches"),
        ("", "a + #", "", "a SELECT computes at most 1000 columns"),
        ("DISTINCT ON (", "a + #", ") a", "DISTINCT ON has at most 1000 keys"),
        ("SUM(a) OVER (ORDER BY ", "a + #", ")", "a window has at most 1000 keys"),
        ("1 FROM t GROUP BY ", "a + #", "--", "GROUP BY has at most 1000 keys"),
        ("1 FROM t ORDER BY ", "a + #", "--", "ORDER BY has at most 1000 keys"),
        (
            "[",
            "SUM(a + #)",
            "]",
            "a statement has at most 1000 calls of aggregate and window functions",
        ),
    ] {
        let text = |count| format!("SELECT {before}{}{after} FROM t", list(count, part));
        assert!(statement(&text(1_000)).is_ok(), "{message}");
        let error = refusal(&text(1_001));
        assert!(error.ends_with(message), "{error}");
    }
}

#[test]
fn lists_of_literals_may_be_longer() {
    let list = |count: usize, part: &str| vec![part; count].join(", ");
    for (before, part, after, most, message) in [
        ("SELECT ", "a", " FROM t", 4_096, "1:1: a SELECT has at most 4096 columns"),
        ("VALUES (", "1", ")", 4_096, "VALUES has at most 4096 columns"),
        ("SELECT [", "1", "] FROM t", 32_768, "an array has at most 32768 elements"),
        ("CREATE TABLE u (s STRUCT<", "a INT", ">)", 4_095, "a type has at most 4096 fields"),
    ] {
        let text = |count| format!("{before}{}{after}", list(count, part));
        assert!(statement(&text(most)).is_ok(), "{message}");
        let error = refusal(&text(most + 1));
        assert!(error.ends_with(message), "{error}");
    }
    assert!(statement(&format!("SELECT 1 FROM t WHERE a IN ({})", list(100_000, "1"))).is_ok());
    let rows = format!("INSERT INTO t VALUES {}", list(50_000, "(1, 'x', -1, TRUE, NULL)"));
    assert!(statement(&rows).is_ok());
}

#[test]
fn types_that_are_not_closed_are_refused() {
    // Commas between angle brackets looked like those of a flat list.
    for open in ["MAP<INT, ARRAY<", "STRUCT<a INT, b ", "MAP<INT, "] {
        for text in ["SELECT CAST(NULL AS #", "CREATE TABLE u (a #", "SELECT NULL::#"] {
            assert!(statement(&text.replace('#', &open.repeat(2_000))).is_err(), "{open}");
        }
    }
}

#[test]
fn patterns_have_a_limited_length() {
    let most = "a pattern has at most 10000 characters";
    for text in ["a LIKE '#'", "a ILIKE '#'", "a SIMILAR TO '#'", "a ~ '#'", "regexp_like(a, '#')"]
    {
        let select = |length| format!("SELECT {} FROM t", text.replace('#', &"a".repeat(length)));
        assert!(statement(&select(10_000)).is_ok(), "{text}");
        let error = refusal(&select(10_001));
        assert!(error.ends_with(most), "{error}");
    }
    let nested =
        |depth| format!("SELECT {}a{} FROM t", "1 = ANY([".repeat(depth), "])".repeat(depth));
    statement(&nested(5)).unwrap();
    assert!(refusal(&nested(6)).ends_with("a list is computed with at most 4 nested ANY"));
}

#[test]
fn window_functions_are_not_nested() {
    let nested = |depth: usize| {
        format!("{}a{}", "COUNT(*) OVER (ORDER BY ".repeat(depth), ")".repeat(depth))
    };
    assert!(statement(&format!("SELECT {} FROM t", nested(1))).is_ok());
    let inner = format!("SELECT SUM((SELECT {} FROM t)) OVER () FROM t", nested(1));
    assert!(statement(&inner).is_ok());
    for text in ["SELECT # FROM t", "DELETE FROM t WHERE # = 1", "UPDATE t SET a = #"] {
        let error = refusal(&text.replace('#', &nested(30)));
        assert!(error.contains("window functions cannot be nested"), "{error}");
    }
}

#[test]
fn a_statement_has_a_limited_number_of_parts() {
    let conditions = |count| format!("SELECT 1 FROM t WHERE {}", vec!["a = 1"; count].join(" OR "));
    assert!(statement(&conditions(10_000)).is_ok());
    let error = refusal(&conditions(20_000));
    assert!(error.ends_with("at most 40000 columns, operators and calls"), "{error}");
    let error = refusal(&format!("SELECT {}", vec!["a"; 200_000].join(", ")));
    assert!(error.starts_with("1:1: a statement has at most 200000 names"), "{error}");
    let selects = |count| vec!["SELECT a FROM t"; count].join(" UNION ");
    assert_eq!(refusal(&selects(1_001)), "1:22001: a statement has at most 1000 SELECTs");
    let key = format!("CREATE TABLE t (a INT, PRIMARY KEY ({}a))", "a, ".repeat(4_096));
    assert_eq!(refusal(&key), "1:32: a key has at most 4096 columns");
    let key = format!("CREATE TABLE t (a INT, PRIMARY KEY ({}a))", "a, ".repeat(4_095));
    assert_eq!(refusal(&key), "1:40: column \"a\" is in the PRIMARY KEY twice");
    let error = refusal("CREATE TABLE u (a INT, b INT, PRIMARY KEY (a, b, a))");
    assert_eq!(error, "1:50: column \"a\" is in the PRIMARY KEY twice");
}

#[test]
fn a_message_does_not_repeat_a_long_name() {
    let mut definitions = Definitions::flights();
    definitions.define(TABLE);
    let error = definitions.view(&format!("SELECT {} FROM t", "x".repeat(1 << 20))).unwrap_err();
    assert!(error.message.len() < 2_000 && error.message.starts_with("no column \"xxx"), "{error}");
}

#[test]
fn windows_are_counted_if_they_differ() {
    let text = |count: usize, window: &str| {
        let parts: Vec<String> = (0..count)
            .map(|number| {
                format!("SUM(a) OVER (ORDER BY {})", window.replace('#', &number.to_string()))
            })
            .collect();
        format!("SELECT {} FROM t", parts.join(", "))
    };
    assert!(statement(&text(200, "a + #")).is_ok());
    let error = refusal(&text(201, "a + #"));
    assert!(error.ends_with("a statement has at most 200 different windows"), "{error}");
    assert!(statement(&text(1_000, "a")).is_ok());
}
