//! Queries that views do not support, and the error messages; the query starts on the second line.

use alluvium_sql::plan::PlannedView;
use alluvium_sql::statement::StatementKind;

use crate::fixture::{Definitions, explained, shown, statement, view};

fn refusal(definitions: &Definitions, query: &str) -> String {
    match definitions.view(query) {
        Ok(planned) => {
            panic!("{query} is planned:\n{}", explained(&planned.plan))
        }
        Err(error) => shown(&error),
    }
}

#[test]
fn constructs_are_refused_by_name_and_position() {
    let definitions = Definitions::flights();
    for (query, expected) in [
        (
            "SELECT id FROM flights f WHERE distance = (SELECT max(f.year) FROM planes p WHERE p.year < f.year)",
            "2:44: this scalar subquery, with what it refers to outside, in a view is not supported yet",
        ),
        (
            "SELECT id FROM flights f WHERE EXISTS
             (SELECT max(seats) FROM planes p WHERE p.tailnum = f.tailnum GROUP BY CUBE (p.year))",
            "3:15: this EXISTS, with what it refers to outside, in a view is not supported yet",
        ),
        (
            "SELECT f.id FROM flights f LEFT JOIN planes p
             ON p.year IN (SELECT q.year FROM planes q WHERE q.seats > f.distance)",
            "3:17: this IN (SELECT …), with what it refers to outside, in a view is not supported yet",
        ),
        (
            "WITH RECURSIVE r AS (SELECT 1 AS x UNION ALL SELECT MAX(x) + 1 FROM r) SELECT x FROM r",
            "2:16: GROUP BY, or an aggregate, in the recursive part of \"r\" in a view (it may have filters, expressions, inner joins, \
             UNION and UNNEST of its rows; DECLARE RECURSIVE VIEW also makes views with DISTINCT and GROUP BY) is not supported yet",
        ),
        ("VALUES (now())", "NOW() in VALUES in a view is not supported yet"),
        (
            "SELECT random() AS r FROM flights",
            "2:8: random() gives another value at each call and cannot be used in a view",
        ),
        (
            "SELECT id FROM flights WHERE id = $1",
            "2:35: a parameter in a view is not supported yet",
        ),
        (
            "SELECT NULL AS x FROM flights",
            "2:1: column \"x\" is always NULL and has no type: CAST it",
        ),
        (
            "SELECT [interval '1 day'] AS l FROM numbers",
            "2:18: column \"l\" of type INTERVAL[] in a view is not supported yet",
        ),
        (
            "SELECT * FROM alluvium.errors",
            "2:1: a view cannot read \"alluvium.errors\": query it instead",
        ),
    ] {
        let refused = refusal(&definitions, query);
        assert!(refused.ends_with(expected), "{query}:\n  {refused}\n  {expected}");
    }
}

#[test]
fn unknown_names_get_a_suggestion() {
    let definitions = Definitions::flights();
    for (query, expected) in [
        (
            "SELECT dep FROM flights",
            "2:8: no column \"dep\" in \"flights\"; did you mean \"dep_time\"?",
        ),
        (
            "SELECT f.carier FROM flights f",
            "2:8: no column \"carier\" in \"f\"; did you mean \"carrier\"?",
        ),
        (
            "SELECT id FROM flights WHERE Orgin = 'JFK'",
            "2:30: no column \"orgin\" in \"flights\"; did you mean \"origin\"?",
        ),
        ("SELECT xyzzy FROM flights", "2:8: no column \"xyzzy\" in \"flights\""),
        ("SELECT id FROM flight", "2:16: no table or view \"flight\"; did you mean \"flights\"?"),
        ("SELECT g.id FROM flights f", "2:8: no column \"id\" in \"g\""),
        (
            "SELECT uper(carrier) AS x FROM flights",
            "2:8: no function \"uper\"; did you mean \"upper\"?",
        ),
        (
            "SELECT year FROM flights f JOIN planes p ON f.tailnum = p.tailnum",
            "2:8: column \"year\" is ambiguous; qualify it with its table's name",
        ),
        (
            "SELECT origin, count(*) AS n FROM flights",
            "2:8: flights.origin must be in GROUP BY, or in an aggregate",
        ),
    ] {
        assert_eq!(refusal(&definitions, query), expected, "{query}");
    }
}

#[test]
fn type_mismatches_are_errors_at_their_expressions() {
    let definitions = Definitions::flights();
    let refused = refusal(&definitions, "SELECT a + time_hour AS x FROM numbers, flights");
    assert_eq!(
        refused,
        "2:8: INTEGER + TIMESTAMP cannot be computed: say of what unit the number is, as in \
         n * INTERVAL '1 day'; only DATE plus or minus an integer is in days"
    );
    let overflow = refusal(&definitions, "SELECT a FROM numbers WHERE b > 9223372036854775807 + 1");
    assert_eq!(overflow, "2:33: 9223372036854775807 + 1 overflows its type");
}

#[test]
fn a_call_that_fails_for_every_row_is_refused() {
    let definitions = Definitions::flights();
    for (query, call) in [
        ("SELECT date_trunc('century', time_hour) AS c FROM flights", "date_trunc"),
        ("SELECT to_char(time_hour, '%Q') AS c FROM flights", "to_char"),
        ("SELECT regexp_replace(carrier, '(', 'x') AS c FROM flights", "regexp_replace"),
        ("SELECT date_part('fortnight', time_hour) AS c FROM flights", "date_part"),
    ] {
        let refused = refusal(&definitions, query);
        assert!(refused.starts_with(&format!("2:8: {call}(")), "{refused}");
        assert!(refused.contains("fails for every row: "), "{refused}");
    }
    let constant = refusal(&definitions, "SELECT CAST('abc' AS INT) + a AS c FROM numbers");
    assert_eq!(constant, "2:13: 'abc' cannot be read as INTEGER");
    for query in [
        "SELECT date_trunc('month', time_hour) AS c, repeat(carrier, -1) AS r FROM flights",
        "SELECT to_timestamp(carrier, '%Y') AS c, substr(dest, 100) AS s, carrier::INT AS n FROM flights",
        "SELECT regexp_like(carrier, '^A') AS c, split_part(dest, '-', 3) AS s FROM flights",
        // Flags that a column has may be right, and a list in a column as long as another one.
        "SELECT regexp_like(carrier, '^A', dest) AS c, regexp_replace(carrier, 'A', dest, dest) AS r FROM flights",
        "SELECT map(['a', 'b'], [dest, carrier]) AS m FROM flights",
    ] {
        definitions.explain(query);
    }
}

#[test]
fn the_columns_of_a_view_need_distinct_names() {
    let definitions = Definitions::flights();
    let query =
        "SELECT f.carrier, a.carrier FROM flights f JOIN airlines a ON f.carrier = a.carrier";
    assert_eq!(
        refusal(&definitions, query),
        "2:1: column \"carrier\" appears twice in view \"v\"; rename one with AS"
    );
    let wide = view("CREATE VIEW v (a, b) AS SELECT 1").unwrap();
    let error = PlannedView::of(&wide, &definitions.planner, &definitions).unwrap_err();
    assert_eq!(shown(&error), "1:13: view \"v\" names 2 columns but selects 1");
}

#[test]
fn subqueries_nest_until_the_plan_is_too_large() {
    let definitions = Definitions::flights();
    // Each refers to the query around it, and the innermost to all of them.
    let nested = |levels: usize| {
        let alias = |level: usize| format!("p{level}");
        let innermost = (0..levels).map(|level| format!("{}.year", alias(level)));
        let innermost = innermost.collect::<Vec<_>>().join(" + ");
        let mut condition = format!("{innermost} > 0");
        for level in (1..levels).rev() {
            let (own, outer) = (alias(level), alias(level - 1));
            condition = format!(
                "EXISTS (SELECT 1 FROM planes {own} WHERE {own}.seats > {outer}.seats AND {condition})"
            );
        }
        format!("SELECT p0.tailnum FROM planes p0 WHERE {condition}")
    };
    definitions.explain(&nested(4));
    let refused = refusal(&definitions, &nested(16));
    assert!(refused.contains("the plan is more than 1000 levels deep"), "{refused}");
}

#[test]
fn queries_support_more_than_views() {
    let definitions = Definitions::flights();
    for query in [
        "SELECT id, row_number() OVER (PARTITION BY carrier ORDER BY id) AS n FROM flights ORDER BY id LIMIT 3",
        "SELECT now() AS t, random() AS r FROM flights",
        "SELECT f.id FROM flights f LEFT JOIN planes p ON f.tailnum = p.tailnum WHERE f.carrier IN (SELECT carrier FROM airlines)",
        "SELECT origin, median(distance) FILTER (WHERE month > 3) AS m FROM flights GROUP BY ROLLUP (origin)",
        "SELECT * FROM alluvium.errors",
    ] {
        let StatementKind::Query(query) = statement(query).unwrap().kind else { panic!("a query") };
        definitions.planner.query(&query, &definitions).unwrap();
    }
}
