//! Every aggregate in four places: in a query, in a view whose rows come and go, over frames that move (in a query and in
//! a view), and over the rows of each frame as a group. All of them agree, over numbers at the edges of their types.

use std::fmt::Write;

use alluvium::Engine;

use crate::support::{engine_with, query, settled};

/// Calls of an aggregate over the columns of the table; with `{}` where the order of rows matters in groups, which frames
/// have anyway. `None` for those that are no aggregates of rows.
fn calls(function: &str) -> Option<Vec<&'static str>> {
    Some(match function {
        "sum" => vec!["sum(x)", "sum(r)", "sum(n)", "sum(d)", "sum(DISTINCT x)"],
        "avg" => vec!["avg(x)", "avg(r)", "avg(n)", "avg(d)", "avg(DISTINCT x)", "avg(DISTINCT n)"],
        "min" => vec!["min(x)", "min(r)", "min(n)", "min(d)", "min(s)", "min(b)", "min([x])"],
        "max" => vec!["max(x)", "max(r)", "max(n)", "max(d)", "max(s)", "max(b)", "max([x])"],
        "count" => vec!["count(*)", "count(x)", "count(DISTINCT x)", "count(DISTINCT d)"],
        "var" => vec!["var(x)", "var(n)", "var(d)", "var(k)"],
        "var_pop" => vec!["var_pop(x)", "var_pop(k)"],
        "stddev" => vec!["stddev(x)", "stddev(d)", "stddev(k)"],
        "stddev_pop" => vec!["stddev_pop(x)", "stddev_pop(k)"],
        "covar_samp" => vec!["covar_samp(x, k)", "covar_samp(k, n)"],
        "covar_pop" => vec!["covar_pop(x, k)", "covar_pop(k, d)"],
        "corr" => vec!["corr(x, k)", "corr(k, id)"],
        "regr_slope" => vec!["regr_slope(x, k)", "regr_slope(k, id)"],
        "regr_intercept" => vec!["regr_intercept(k, id)"],
        "regr_count" => vec!["regr_count(x, k)"],
        "regr_r2" => vec!["regr_r2(x, k)", "regr_r2(k, id)"],
        "regr_avgx" => vec!["regr_avgx(k, x)", "regr_avgx(k, id)"],
        "regr_avgy" => vec!["regr_avgy(x, k)", "regr_avgy(k, id)"],
        "regr_sxx" => vec!["regr_sxx(k, x)", "regr_sxx(k, id)"],
        "regr_syy" => vec!["regr_syy(x, k)", "regr_syy(k, id)"],
        "regr_sxy" => vec!["regr_sxy(x, k)", "regr_sxy(k, id)"],
        "median" => vec!["median(x)", "median(d)"],
        "approx_median" => vec!["approx_median(k)"],
        "approx_distinct" => vec!["approx_distinct(x)", "approx_distinct(d)", "approx_distinct(s)"],
        "approx_percentile_cont" => vec!["approx_percentile_cont(k, 0.5)"],
        "approx_percentile_cont_with_weight" => {
            vec!["approx_percentile_cont_with_weight(k, 1, 0.5)"]
        }
        "percentile_cont" => vec!["percentile_cont(x, 0.25)"],
        "percentile_disc" => vec!["percentile_disc(x, 0.25)", "percentile_disc(d, 0.75)"],
        "mode" => vec!["mode(x)", "mode(d)"],
        "histogram" => vec!["histogram(n)"],
        "product" => vec!["product(k)"],
        "entropy" => vec!["entropy(x)", "entropy(s)"],
        "skewness" => vec!["skewness(k)"],
        "kurtosis" => vec!["kurtosis(k)"],
        "kurtosis_pop" => vec!["kurtosis_pop(k)"],
        "sem" => vec!["sem(k)"],
        "mad" => vec!["mad(k)"],
        "array_agg" => vec!["array_agg(x{})", "array_agg(d{})"],
        "string_agg" => vec!["string_agg(s, ','{})"],
        "any_value" => vec!["any_value(g)"],
        "first_value" => vec!["first_value(x{})"],
        "last_value" => vec!["last_value(x{})"],
        "nth_value" => vec!["nth_value(x, 2{})"],
        "arg_max" => vec!["arg_max(s, x)"],
        "arg_min" => vec!["arg_min(s, x)"],
        "bit_and" => vec!["bit_and(n)"],
        "bit_or" => vec!["bit_or(n)"],
        "bit_xor" => vec!["bit_xor(n)"],
        "bool_and" => vec!["bool_and(b)"],
        "bool_or" => vec!["bool_or(b)"],
        // Of grouping sets.
        "grouping" => return None,
        other => panic!("{other} has no call here: write one"),
    })
}

/// Functions whose last digits depend on the order in which rows come.
fn is_rounded(call: &str) -> bool {
    const ROUNDED: [&str; 12] = [
        "var",
        "stddev",
        "covar",
        "corr",
        "regr",
        "skewness",
        "kurtosis",
        "sem",
        "mad",
        "product",
        "approx_median",
        "approx_percentile",
    ];
    ROUNDED.iter().any(|function| call.starts_with(function))
}

const TABLE: &str = "CREATE TABLE t
    (g INT, id INT, k DOUBLE, x DOUBLE, r REAL, n BIGINT, d DECIMAL(30, 2), b BOOLEAN, s TEXT)";

/// The rows of three groups: glitches between small numbers, numbers that are not finite, zeros and NULL.
const ROWS: &str = "INSERT INTO t VALUES
    (1, 1, 3, 1e17, 1e30, 9223372036854775807, 9999999999999999999999999999.99, true, 'a'),
    (1, 2, 3.5, 1, 1, -1, 0.01, false, 'b'),
    (1, 3, 1e9, -1e17, -1e30, -9223372036854775808, -9999999999999999999999999999.99, NULL, 'c'),
    (1, 4, 3, 0.1, 0.1, 9007199254740993, 0.02, true, 'd'),
    (1, 5, 3, 0.2, 0.2, 7, NULL, true, NULL),
    (1, 6, 3, 0.3, 0.25, 8, -0.02, false, 'f'),
    (1, 7, 3, 0.1, 0.1, NULL, 0.03, true, 'g'),
    (2, 1, 1, 'NaN', 'NaN', 1, 1, true, 'a'),
    (2, 2, 1.5, 1, 1, 2, 1.5, NULL, 'a'),
    (2, 3, 1.25, 'infinity', 'infinity', 3, 2.5, false, 'c'),
    (2, 4, 1, 1.5, 1.5, 3, 2.5, true, 'd'),
    (2, 5, 1, '-infinity', '-infinity', 3, 2.5, true, 'e'),
    (2, 6, 2, 'infinity', 'infinity', 4, -2.5, false, 'f'),
    (2, 7, 4, 2, 2, 5, 7, true, 'g'),
    (2, 8, 8, 2, 2, 6, 8, true, 'h'),
    (2, 9, 8, 4, 4, 6, 8, true, 'i'),
    (3, 1, 0.5, 0.0, 0.0, 0, 0, false, 'a'),
    (3, 2, 0.25, -0.0, -0.0, 0, 0, false, ''),
    (3, 3, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
    (3, 4, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
    (3, 5, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
    (3, 6, -0.5, -0.0, -0.0, -1, -1, true, 'z')";

/// Rows that come and go again.
const GLITCH: &str = "INSERT INTO t VALUES
    (1, 8, 1e300, 1e300, 1e38, 5, 9999999999999999999999999999.99, false, 'x'),
    (2, 0, -1e17, 'NaN', 'NaN', 5, 5, false, 'x'),
    (3, 7, 'infinity', '-infinity', 'infinity', 5, 5, false, 'x')";

/// Frames, and the rows that are in that of row `at_id`.
const FRAMES: [(&str, &str); 3] = [
    ("2 PRECEDING AND CURRENT ROW", "id BETWEEN at_id - 2 AND at_id"),
    ("1 PRECEDING AND 1 FOLLOWING", "id BETWEEN at_id - 1 AND at_id + 1"),
    ("3 FOLLOWING AND 5 FOLLOWING", "id BETWEEN at_id + 3 AND at_id + 5"),
];

/// Whether two lines of keys and one result agree.
fn agree(one: &str, other: &str, rounded: bool) -> bool {
    if one == other || !rounded {
        return one == other;
    }
    let split = |line: &str| {
        let (keys, result) = line.rsplit_once(' ')?;
        Some((keys.to_owned(), result.parse::<f64>().ok()?))
    };
    match (split(one), split(other)) {
        (Some((keys, one)), Some((others, other))) => {
            let scale = one.abs().max(other.abs());
            keys == others && ((one - other).abs() <= 1e-9 * scale || scale < 1e-9)
        }
        _ => false,
    }
}

fn assert_agree(expected: &[String], found: &[String], place: &str, call: &str) {
    let agrees = expected.len() == found.len()
        && expected.iter().zip(found).all(|(one, other)| agree(one, other, is_rounded(call)));
    assert!(agrees, "{call} {place}:\n{found:#?}\nis, in groups of a query:\n{expected:#?}");
}

/// The calls with an order for those that depend on one, or without.
fn with_order(calls: &[&str], order: &str) -> Vec<String> {
    calls.iter().map(|call| call.replace("{}", order)).collect()
}

fn columns(calls: &[String], over: &str) -> String {
    calls.iter().enumerate().fold(String::new(), |mut columns, (number, call)| {
        write!(columns, ", {call}{over} AS c{number}").expect("text takes more text");
        columns
    })
}

fn retracted(engine: &Engine) {
    engine.execute(ROWS).expect("the rows are right");
    engine.execute(GLITCH).expect("the rows are right");
    engine
        .execute("DELETE FROM t WHERE s = 'x'; UPDATE t SET k = k * 2; UPDATE t SET k = k / 2")
        .expect("the rows are there");
}

#[test]
fn every_aggregate_has_one_answer_in_queries_views_frames_and_groups() {
    let calls: Vec<&str> = alluvium_sql::functions::aggregate_names()
        .into_iter()
        .filter_map(calls)
        .flatten()
        .collect();
    let (grouped, framed) = (with_order(&calls, " ORDER BY id"), with_order(&calls, ""));
    let engine = engine_with(2, TABLE);
    let mut views = format!(
        "CREATE MATERIALIZED VIEW kept AS SELECT g{} FROM t GROUP BY g;",
        columns(&grouped, "")
    );
    for (number, (frame, _)) in FRAMES.iter().enumerate() {
        let over = format!(" OVER (PARTITION BY g ORDER BY id ROWS BETWEEN {frame})");
        write!(
            views,
            "CREATE MATERIALIZED VIEW framed{number} AS SELECT g, id{} FROM t;",
            columns(&framed, &over)
        )
        .expect("text takes more text");
    }
    engine.execute(&views).expect("every aggregate can be kept");
    retracted(&engine);
    assert_eq!(settled(&engine, "SELECT COUNT(*) FROM alluvium.errors"), ["0"]);
    for (number, call) in calls.iter().enumerate() {
        let group = query(&engine, &format!("SELECT g, {} FROM t GROUP BY g", grouped[number]));
        let view = query(&engine, &format!("SELECT g, c{number} FROM kept"));
        assert_agree(&group, &view, "in a view", call);
        for (view, (frame, rows)) in FRAMES.iter().enumerate() {
            let expected = query(
                &engine,
                &format!(
                    "SELECT at_g, at_id, {} FROM (SELECT g AS at_g, id AS at_id FROM t), t
                     WHERE g = at_g AND {rows} GROUP BY at_g, at_id",
                    grouped[number]
                ),
            );
            let over = format!("OVER (PARTITION BY g ORDER BY id ROWS BETWEEN {frame})");
            let in_query = query(
                &engine,
                &format!(
                    "SELECT g, id, {} {over} FROM t QUALIFY COUNT(*) {over} > 0",
                    framed[number]
                ),
            );
            assert_agree(&expected, &in_query, &format!("over {frame} in a query"), call);
            let all = query(&engine, &format!("SELECT g, id, {} {over} FROM t", framed[number]));
            let kept = query(&engine, &format!("SELECT g, id, c{number} FROM framed{view}"));
            assert_agree(&all, &kept, &format!("over {frame} in a view"), call);
        }
    }
}
