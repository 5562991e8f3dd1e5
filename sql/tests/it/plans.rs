//! The plans of views.
//!
//! The expected plans are in `snapshots/`. Run with `INSTA_UPDATE=always` to update them, and review the changes.

use std::fmt::Write;

use alluvium_sql::plan::{Node, PlannedView};
use arrow::datatypes::DataType;

use crate::fixture::{Definitions, view};

fn plans(definitions: &Definitions, queries: &[&str]) -> String {
    let mut text = String::new();
    for query in queries {
        writeln!(text, "-- {query}\n{}", definitions.explain(query)).unwrap();
    }
    text
}

#[test]
fn projections_and_filters_are_one_map() {
    let queries = [
        "SELECT id, dep_delay + 1 AS x FROM flights WHERE origin = 'JFK' AND dep_delay > 10",
        "SELECT upper(t) AS t, CAST(a AS VARCHAR) AS a, TRY_CAST(t AS INT) AS n FROM numbers",
        "SELECT CASE WHEN dep_delay > 0 THEN 'late' ELSE 'on time' END AS punctual FROM flights",
        "SELECT EXTRACT(HOUR FROM time_hour) AS h, substring(dest FROM 1 FOR 2) AS s FROM flights",
        "SELECT split_part(t, '-', 1) AS p, repeat(t, 2) AS r, coalesce(t, 'none') AS c FROM numbers",
        "SELECT time_hour + INTERVAL 1 HOURS AS t FROM flights WHERE time_hour > TIMESTAMP '2013-01-06' - INTERVAL '5' DAY",
        "SELECT x.y * x.y AS z FROM (SELECT a + 1 AS y FROM numbers) x",
        "SELECT id FROM flights ORDER BY dep_delay",
    ];
    insta::assert_snapshot!(plans(&Definitions::flights(), &queries));
}

#[test]
fn joins_keep_what_is_needed_and_no_null_keys() {
    let queries = [
        "SELECT a.name, f.id FROM flights f JOIN airlines a ON f.carrier = a.carrier",
        "SELECT a.name, p.model, f.id FROM flights f, airlines a, planes p
         WHERE f.carrier = a.carrier AND f.tailnum = p.tailnum AND p.seats > 100 AND f.distance > p.seats",
        "SELECT f1.id AS a, f2.id AS b FROM flights f1 JOIN flights f2 ON f1.tailnum = f2.tailnum AND f1.id < f2.id",
        "SELECT origin, temp, id FROM flights JOIN weather USING (origin, time_hour)",
        "SELECT n.a, m.a AS b FROM numbers n CROSS JOIN numbers m",
        "SELECT n.a, m.b FROM numbers n JOIN numbers m ON n.a = m.b",
        "SELECT n.a, m.b FROM numbers n JOIN numbers m ON n.a + 1 = m.a",
        "SELECT n.a, m.b FROM numbers n JOIN numbers m ON n.a IS NOT DISTINCT FROM m.a",
        "SELECT f.id FROM flights f LEFT JOIN planes p ON f.tailnum = p.tailnum WHERE p.seats > 100",
    ];
    insta::assert_snapshot!(plans(&Definitions::flights(), &queries));
}

#[test]
fn asof_joins_keep_both_sides_with_what_decides_between_right_rows() {
    let queries = [
        "SELECT f.id, w.temp FROM flights f ASOF JOIN weather w ON f.origin = w.origin AND f.time_hour >= w.time_hour",
        "SELECT n.a, m.b FROM numbers n LEFT ASOF JOIN numbers m MATCH_CONDITION (n.a < m.a) ON n.b = m.b",
        "SELECT n.a, m.b FROM numbers n ASOF JOIN numbers m ON n.a + 1 >= m.a",
        "SELECT n.a, n.t FROM numbers n LEFT ASOF JOIN numbers m ON n.b = m.b AND n.a > m.a",
        "SELECT * FROM (SELECT origin, time_hour FROM weather) a ASOF JOIN (SELECT origin, time_hour, temp FROM weather) b
         USING (origin, time_hour) WHERE temp > 10",
    ];
    insta::assert_snapshot!(plans(&Definitions::flights(), &queries));
}

#[test]
fn outer_joins_keep_both_sides_and_what_a_condition_leaves() {
    let queries = [
        "SELECT f.id, p.model FROM flights f LEFT JOIN planes p ON f.tailnum = p.tailnum",
        "SELECT f.id, p.model FROM flights f RIGHT JOIN planes p ON f.tailnum = p.tailnum AND f.distance > p.seats",
        "SELECT n.a, m.b FROM numbers n FULL JOIN numbers m ON n.a = m.c",
        "SELECT f.id, a.name FROM flights f FULL JOIN airlines a ON f.carrier = a.carrier",
        "SELECT f.id FROM flights f LEFT JOIN planes p ON f.tailnum = p.tailnum",
        "SELECT f.id FROM flights f LEFT JOIN planes p ON f.tailnum = p.tailnum WHERE p.tailnum IS NULL",
        "SELECT n.a, m.b FROM numbers n LEFT JOIN numbers m ON n.a < m.a",
    ];
    insta::assert_snapshot!(plans(&Definitions::flights(), &queries));
}

#[test]
fn subqueries_are_joins() {
    let queries = [
        "SELECT id FROM flights WHERE carrier IN (SELECT carrier FROM airlines)",
        "SELECT id FROM flights WHERE carrier NOT IN (SELECT carrier FROM airlines)",
        "SELECT id FROM flights WHERE tailnum NOT IN (SELECT model FROM planes)",
        "SELECT id FROM flights f WHERE EXISTS (SELECT 1 FROM planes p WHERE p.tailnum = f.tailnum AND p.seats > f.distance)",
        "SELECT id FROM flights f WHERE NOT EXISTS (SELECT 1 FROM planes WHERE seats > 300)",
        "SELECT id, carrier IN (SELECT carrier FROM airlines) AS known FROM flights",
        "SELECT id FROM flights WHERE distance > (SELECT avg(distance) FROM flights)",
        "SELECT id, (SELECT count(*) FROM planes p WHERE p.tailnum = f.tailnum) AS n FROM flights f",
        "SELECT id, (SELECT model FROM planes p WHERE p.tailnum = f.tailnum) AS model FROM flights f",
    ];
    insta::assert_snapshot!(plans(&Definitions::flights(), &queries));
}

#[test]
fn set_operations_compare_whole_rows() {
    let queries = [
        "SELECT origin FROM flights INTERSECT SELECT dest FROM flights",
        "SELECT origin, distance FROM flights EXCEPT ALL SELECT dest, id FROM flights",
        "SELECT origin FROM flights INTERSECT ALL SELECT dest FROM flights EXCEPT SELECT origin FROM weather",
    ];
    insta::assert_snapshot!(plans(&Definitions::flights(), &queries));
}

#[test]
fn aggregates_are_over_columns_of_a_map() {
    let queries = [
        "SELECT count(*) AS n FROM numbers",
        "SELECT carrier, count(*) AS n, avg(dep_delay) AS mean, min(dep_time) AS first FROM flights GROUP BY carrier",
        "SELECT sum(a) AS a, sum(c) AS c, sum(d) AS d, sum(e) AS e, sum(u) AS u, avg(a) AS m, avg(d) AS n FROM numbers",
        "SELECT sum(CAST(a AS DOUBLE)) AS a, avg(CAST(b AS DOUBLE)) AS b FROM numbers",
        "SELECT month % 3 AS quarter, sum(distance) / count(*) AS d FROM flights
         GROUP BY month % 3 HAVING count(*) > 10",
        "SELECT carrier, sum(distance * 2) AS a, sum(distance * 2) + 1 AS b FROM flights GROUP BY carrier",
        "SELECT a.name, count(*) AS n FROM flights f JOIN airlines a ON f.carrier = a.carrier GROUP BY a.name",
        "SELECT carrier, count(DISTINCT origin) AS n FROM flights GROUP BY carrier",
        "SELECT carrier, count(*) FILTER (WHERE month > 3) AS late, count(DISTINCT origin) FILTER (WHERE month > 3) AS n,
         sum(DISTINCT distance) AS d, median(distance) AS m, min(dep_time) AS first FROM flights GROUP BY carrier",
        "SELECT string_agg(dest, ',' ORDER BY id) AS dests FROM flights",
        "SELECT carrier, origin, count(*) AS n FROM flights GROUP BY ROLLUP (carrier, origin)",
        "SELECT id, rank() OVER (PARTITION BY carrier ORDER BY distance) AS r, sum(distance) OVER (PARTITION BY carrier) AS s
         FROM flights",
        "SELECT origin FROM flights GROUP BY origin",
        "SELECT n FROM (SELECT carrier, count(*) AS n, max(distance) AS far FROM flights GROUP BY carrier) x",
    ];
    insta::assert_snapshot!(plans(&Definitions::flights(), &queries));
}

#[test]
fn equal_nodes_that_keep_state_are_one_operator() {
    let query = "SELECT carrier FROM (SELECT carrier, count(*) AS n FROM flights GROUP BY carrier) x WHERE n > 9
         UNION ALL
         SELECT carrier FROM (SELECT carrier, count(*) AS n FROM flights GROUP BY carrier) y WHERE n < 2";
    let text = Definitions::flights().explain(query);
    assert_eq!(text.matches("as aggregate.1 ").count(), 2, "{text}");
    assert!(!text.contains("aggregate.2"), "{text}");
}

#[test]
fn recursions_keep_their_inputs_and_what_changes_in_each_round() {
    let queries = [
        "WITH RECURSIVE r AS (
            SELECT origin, dest FROM flights UNION SELECT r.origin, f.dest FROM r JOIN flights f ON f.origin = r.dest)
         SELECT dest FROM r WHERE origin = 'JFK'",
        "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 10) SELECT n FROM r",
        "WITH RECURSIVE r(t) AS (SELECT 'N1' UNION (SELECT p.model FROM r JOIN planes p ON p.tailnum = r.t UNION SELECT carrier FROM airlines))
         SELECT t FROM r",
    ];
    insta::assert_snapshot!(plans(&Definitions::flights(), &queries));
}

#[test]
fn a_series_keeps_nothing() {
    let queries = [
        "SELECT n FROM generate_series(10, 1, -3) AS s (n)",
        "SELECT DISTINCT n FROM range(9) AS s (n) WHERE n > 3",
        "SELECT count(*) AS n FROM range(9)",
    ];
    insta::assert_snapshot!(plans(&Definitions::flights(), &queries));
}

#[test]
fn distinct_is_dropped_where_rows_differ_anyway() {
    let queries = [
        "SELECT DISTINCT origin, dest FROM flights",
        "SELECT DISTINCT id, dest FROM flights",
        "SELECT DISTINCT carrier, n FROM (SELECT carrier, count(*) AS n FROM flights GROUP BY carrier) x",
        "SELECT origin AS x FROM flights UNION SELECT dest FROM flights",
        "SELECT origin AS x FROM flights UNION ALL SELECT dest FROM flights UNION ALL SELECT 'x'",
        "SELECT a AS x FROM numbers UNION ALL SELECT b FROM numbers",
    ];
    insta::assert_snapshot!(plans(&Definitions::flights(), &queries));
}

#[test]
fn first_rows_are_found_behind_limits_and_numbers() {
    let queries = [
        "SELECT id, dest FROM flights ORDER BY distance DESC, id LIMIT 3",
        "SELECT dest FROM flights ORDER BY distance + 1 LIMIT 2 OFFSET 4",
        "SELECT carrier, name FROM airlines ORDER BY name NULLS FIRST OFFSET 3",
        "SELECT id FROM flights LIMIT 0",
        "SELECT carrier, id FROM (SELECT carrier, id, row_number() OVER (PARTITION BY carrier ORDER BY distance DESC) AS n
         FROM flights) x WHERE n <= 2",
        "SELECT carrier, n, id FROM (SELECT *, rank() OVER (PARTITION BY carrier ORDER BY distance) AS n FROM flights) x
         WHERE n < 4 AND n >= 2 AND dest <> 'JFK' AND carrier <> 'XX'",
        "SELECT dest FROM flights QUALIFY dense_rank() OVER (ORDER BY dest) = 1",
        "SELECT DISTINCT ON (carrier) carrier, id + 1 AS next FROM flights ORDER BY carrier, distance",
        "SELECT carrier FROM (SELECT DISTINCT ON (carrier) carrier, dest FROM flights ORDER BY carrier, distance) x
         WHERE dest = 'JFK' AND carrier <> 'XX'",
        "SELECT a FROM (SELECT a, c, row_number() OVER (PARTITION BY a ORDER BY c) AS n FROM numbers) x WHERE n = 1",
        // All columns break ties, where something else than the order is read.
        "SELECT a, c FROM numbers QUALIFY row_number() OVER (PARTITION BY a ORDER BY c) <= 2",
        "SELECT a, c, t FROM numbers QUALIFY row_number() OVER (PARTITION BY a ORDER BY c) <= 2",
    ];
    insta::assert_snapshot!(plans(&Definitions::flights(), &queries));
}

#[test]
fn queries_in_queries_are_planned_in_place() {
    let queries = [
        "VALUES (1, 'a'), (2, NULL)",
        "SELECT 1 AS one, upper('x') AS x",
        "WITH late AS (SELECT * FROM flights WHERE dep_delay > 60)
         SELECT carrier, count(*) AS n FROM late GROUP BY carrier ORDER BY n DESC",
        "SELECT a.name, x.n FROM airlines a
         JOIN (SELECT carrier, count(*) AS n FROM flights GROUP BY carrier) x ON x.carrier = a.carrier",
        "SELECT v.x, f.id FROM flights f JOIN (VALUES ('JFK', 1), ('LGA', 2)) v (origin, x) ON f.origin = v.origin",
        "SELECT id FROM flights WHERE 1 = 2",
    ];
    insta::assert_snapshot!(plans(&Definitions::flights(), &queries));
}

#[test]
fn materialized_views_are_scanned_and_other_views_expanded() {
    let mut definitions = Definitions::flights();
    definitions.define(
        "CREATE MATERIALIZED VIEW per_carrier AS SELECT carrier, count(*) AS n FROM flights GROUP BY carrier;
         CREATE VIEW late AS SELECT id, carrier, dep_delay / distance AS ratio, dest FROM flights WHERE dep_delay > 60;
         CREATE LOCAL VIEW very_late AS SELECT id, carrier FROM late WHERE ratio > 1;",
    );
    let query = "SELECT v.id, p.n FROM very_late v JOIN per_carrier p ON v.carrier = p.carrier";
    insta::assert_snapshot!(plans(&definitions, &[query]));
    let planned = definitions.view(query).unwrap();
    assert_eq!(planned.reads, ["flights", "per_carrier"]);
    assert_eq!(planned.depends, ["per_carrier", "very_late"]);
}

#[test]
fn a_name_of_with_hides_a_table() {
    let planned = Definitions::flights()
        .view("WITH flights AS (SELECT carrier FROM airlines) SELECT * FROM flights")
        .unwrap();
    assert_eq!(planned.depends, ["airlines"]);
    assert_eq!(planned.reads, ["airlines"]);
}

#[test]
fn a_view_has_the_columns_it_names() {
    let definitions = Definitions::flights();
    let definition = view(
        "CREATE VIEW v (\"Name\", Total, more) AS SELECT carrier, sum(distance), count(*) FROM flights GROUP BY carrier",
    );
    let schema =
        PlannedView::of(&definition.unwrap(), &definitions.planner, &definitions).unwrap().schema;
    let columns: Vec<_> = schema
        .fields()
        .iter()
        .map(|field| (field.name().as_str(), field.data_type(), field.is_nullable()))
        .collect();
    assert_eq!(
        columns,
        [
            ("Name", &DataType::Utf8, false),
            ("total", &DataType::Int64, true),
            ("more", &DataType::Int64, false)
        ]
    );
}

/// As DuckDB names them.
#[test]
fn columns_of_unnest_have_names() {
    let definitions = Definitions::flights();
    for (query, columns) in [
        ("SELECT * FROM UNNEST([1, 2])", "unnest"),
        ("SELECT * FROM UNNEST([1, 2]) AS u", "u"),
        ("SELECT * FROM UNNEST([1, 2]) WITH ORDINALITY AS u", "u, ordinality"),
        ("SELECT * FROM UNNEST([1], [2])", "unnest, unnest_1"),
        ("SELECT u.unnest FROM UNNEST([1]) AS u", "unnest"),
        ("SELECT * FROM range(3) AS r", "r"),
        ("SELECT range FROM range(3) AS r", "range"),
        ("SELECT * FROM generate_series(1, 3)", "generate_series"),
        ("SELECT unnest([1, 2])", "unnest(list_value(1, 2))"),
        (
            "SELECT carrier, UNNEST([distance]) + 1 FROM flights",
            "carrier, (unnest(list_value(distance)) + 1)",
        ),
    ] {
        let planned = definitions.view(query).unwrap();
        let names: Vec<_> =
            planned.schema.fields().iter().map(|field| field.name().as_str()).collect();
        assert_eq!(names.join(", "), columns, "{query}");
    }
}

#[test]
fn columns_have_one_string_type_whatever_a_function_gives() {
    let definitions = Definitions::flights();
    let planned = definitions
        .view("SELECT split_part(t, '-', 1) AS a, repeat(t, 2) AS b, lpad(t, 9) AS c, concat(t, 'x') AS d FROM numbers")
        .unwrap();
    assert!(
        planned.schema.fields().iter().all(|field| *field.data_type() == DataType::Utf8),
        "{:?}",
        planned.schema
    );
}

/// The value of the first column of a view over constants, whose plan is a single map.
fn evaluate(query: &str) -> Result<String, String> {
    let planned = Definitions::flights().view(query).map_err(|error| error.message)?;
    let Node::Map(map) = &planned.plan.node else { panic!("a map:\n{query}") };
    let Node::Constant(constant) = &map.input.node else { panic!("constants:\n{query}") };
    let value = map.project[0].evaluate(&constant.rows).map_err(|error| error.strip_backtrace())?;
    let value = value.into_array(constant.rows.num_rows()).unwrap();
    Ok(arrow::util::display::array_value_to_string(&value, 0).unwrap())
}

#[test]
fn arithmetic_fails_instead_of_wrapping() {
    for expression in [
        "x + 1",
        "x * 2",
        "-y - 1 - x",
        "-m",
        "CASE WHEN x > 0 THEN x + 1 ELSE 0 END",
        "abs(x + 1)",
        "coalesce(NULL, x + 1)",
        "x + 1 IN (1, 2)",
        "CAST(x + 1 AS VARCHAR)",
        "x / (y - 1)",
    ] {
        let query = format!(
            "SELECT {expression} AS r FROM (VALUES (9223372036854775807, 1, -9223372036854775807 - 1)) v (x, y, m)"
        );
        let failed = evaluate(&query).expect_err(expression);
        assert!(
            failed.contains("verflow") || failed.contains("Divide by zero"),
            "{expression}: {failed}"
        );
    }
    let within = evaluate(
        "SELECT CASE WHEN x > 0 THEN x - 1 ELSE x + 1 END AS r FROM (VALUES (9223372036854775807)) v (x)",
    );
    assert_eq!(within.unwrap(), "9223372036854775806");
}

#[test]
fn casts_fail_and_try_casts_return_null() {
    let failed = evaluate("SELECT CAST(x AS INT) AS r FROM (VALUES ('12a')) v (x)").unwrap_err();
    assert!(failed.contains("Cannot cast string '12a'"), "{failed}");
    assert_eq!(evaluate("SELECT TRY_CAST(x AS INT) AS r FROM (VALUES ('12a')) v (x)").unwrap(), "");
    assert_eq!(evaluate("SELECT CAST(x AS INT) AS r FROM (VALUES ('12')) v (x)").unwrap(), "12");
}

#[test]
fn only_windows_that_see_whole_partitions_are_re_evaluated() {
    let slide = [
        "COUNT(*) OVER (ORDER BY a ROWS BETWEEN 3 PRECEDING AND 1 PRECEDING)",
        "SUM(b) OVER (PARTITION BY t ORDER BY a ROWS 3 PRECEDING)",
        "SUM(d) OVER (ORDER BY a DESC RANGE BETWEEN 3 PRECEDING AND 1 FOLLOWING)",
        "SUM(e) OVER (ORDER BY d NULLS FIRST RANGE BETWEEN 1.5 PRECEDING AND CURRENT ROW)",
        "AVG(b) OVER (ORDER BY u RANGE 2 PRECEDING)",
        "AVG(d) OVER (ORDER BY a, b RANGE BETWEEN CURRENT ROW AND CURRENT ROW)",
        "MIN(t) FILTER (WHERE b > 3) OVER (ORDER BY c RANGE 2 PRECEDING)",
        "MAX(e) OVER (ROWS BETWEEN CURRENT ROW AND 2 FOLLOWING)",
        "LAG(t) OVER (ORDER BY a)",
        "LEAD(d, 3, 0) OVER (PARTITION BY t ORDER BY a)",
        "ROW_NUMBER() OVER (PARTITION BY t ORDER BY a)",
        "RANK() OVER (PARTITION BY t ORDER BY a)",
        "SUM(b) OVER (ORDER BY a ROWS BETWEEN 3 FOLLOWING AND 1 FOLLOWING)",
        "SUM(b) OVER (PARTITION BY t ORDER BY a)",
        "MIN(e) OVER (ORDER BY a ROWS BETWEEN UNBOUNDED PRECEDING AND 2 FOLLOWING)",
        "COUNT(t) FILTER (WHERE b > 3) OVER (ORDER BY e)",
        "FIRST_VALUE(t) OVER (PARTITION BY t ORDER BY a)",
        "LAST_VALUE(t) OVER (ORDER BY a ROWS BETWEEN 3 PRECEDING AND 1 PRECEDING)",
        "NTH_VALUE(b, 3) OVER (ORDER BY a DESC RANGE BETWEEN 3 PRECEDING AND 1 FOLLOWING)",
        "DENSE_RANK() OVER (PARTITION BY t ORDER BY a)",
    ];
    let whole = [
        "NTH_VALUE(b, -1) OVER (ORDER BY a)",
        "FIRST_VALUE(b) IGNORE NULLS OVER (ORDER BY a)",
        "LAST_VALUE(b) OVER (ORDER BY a RANGE BETWEEN UNBOUNDED PRECEDING AND 2 PRECEDING)",
        "SUM(b) OVER (PARTITION BY t)",
        "SUM(b) OVER (ORDER BY a ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING)",
        "COUNT(DISTINCT b) OVER (ORDER BY a ROWS 3 PRECEDING)",
        "SUM(b) OVER (ORDER BY e RANGE 3 PRECEDING)",
        "SUM(b) OVER (ORDER BY a GROUPS 3 PRECEDING)",
        "MEDIAN(b) OVER (ORDER BY a ROWS 3 PRECEDING)",
        "LAG(t) IGNORE NULLS OVER (ORDER BY a)",
        "NTILE(3) OVER (ORDER BY a)",
    ];
    let definitions = Definitions::flights();
    let is_re_evaluated = |call: &&str| {
        definitions.explain(&format!("SELECT {call} AS x FROM numbers")).contains("re-evaluated")
    };
    let wrong: Vec<_> = slide.iter().filter(|call| is_re_evaluated(call)).collect();
    assert!(wrong.is_empty(), "{wrong:#?} are re-evaluated");
    let wrong: Vec<_> = whole.iter().filter(|call| !is_re_evaluated(call)).collect();
    assert!(wrong.is_empty(), "{wrong:#?} are not re-evaluated");
    let times = [
        "COUNT(*) OVER (ORDER BY time_hour RANGE INTERVAL '6' HOURS PRECEDING)",
        "COUNT(*) OVER (ORDER BY time_hour RANGE BETWEEN INTERVAL '1 month' PRECEDING AND INTERVAL '1 day' FOLLOWING)",
    ];
    for call in times {
        let text = definitions.explain(&format!("SELECT {call} AS x FROM flights"));
        assert!(!text.contains("re-evaluated"), "{text}");
    }
}

#[test]
fn comparisons_with_the_time_are_temporal_filters() {
    let queries = [
        "SELECT id FROM flights WHERE time_hour > NOW() - INTERVAL '1' HOUR",
        "SELECT id FROM flights WHERE time_hour BETWEEN NOW() - INTERVAL '1' HOUR AND NOW() AND origin = 'JFK'",
        "SELECT id FROM flights WHERE time_hour + INTERVAL '1' HOUR >= LOCALTIMESTAMP",
        "SELECT id FROM flights WHERE NOW() - time_hour < INTERVAL '1' HOUR",
        "SELECT id FROM flights WHERE time_hour + distance * INTERVAL '1' SECOND > date_trunc('hour', NOW())",
        "SELECT id FROM flights WHERE CAST(time_hour AS DATE) > CURRENT_DATE - 7",
        "SELECT id, NOW() AS at FROM flights WHERE time_hour < NOW()",
        "SELECT id FROM flights WHERE time_hour < NOW() AND EXTRACT(HOUR FROM NOW()) <> day",
        "SELECT id FROM flights WHERE time_hour > NOW() - INTERVAL '1' MONTH",
        "SELECT id FROM flights WHERE time_hour > NOW() OR id = 1",
        "SELECT origin, COUNT(*) FROM flights WHERE time_hour <= NOW() GROUP BY 1 HAVING MAX(time_hour) > NOW() - INTERVAL '1' DAY",
        "SELECT id FROM flights WHERE tailnum IN (SELECT tailnum FROM flights WHERE time_hour > NOW())",
    ];
    insta::assert_snapshot!(plans(&Definitions::flights(), &queries));
}
