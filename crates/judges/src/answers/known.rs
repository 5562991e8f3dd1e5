//! Cases in which DataFusion is known to be wrong or to have no answer, and which `query::text` therefore refuses.
//! Each is checked here, so that a fix in DataFusion is noticed.

use std::sync::Arc;

use alluvium::arrow::array::{ArrayRef, Int64Array, RecordBatch};

use super::batch::Batch;
use super::row::line;

/// DataFusion's answer over t (a, b) and u (a, b).
fn datafusion(query: &str) -> Result<Vec<String>, String> {
    let mut batch = Batch::new();
    let rows = |a: Vec<Option<i64>>, b: Vec<Option<i64>>| {
        let columns: [ArrayRef; 2] = [Arc::new(Int64Array::from(a)), Arc::new(Int64Array::from(b))];
        let [a, b] = columns;
        RecordBatch::try_from_iter_with_nullable([("a", a, true), ("b", b, true)])
            .expect("two columns are a batch")
    };
    let t = rows(vec![Some(1), Some(1), Some(2), None], vec![Some(1), Some(1), None, Some(4)]);
    let u = rows(vec![Some(1), None], vec![Some(1), Some(1)]);
    for (name, rows) in [("t", t), ("u", u)] {
        batch.create_table(name, rows.schema()).expect("the name is free");
        batch.fill(name, vec![rows]);
    }
    let mut rows: Vec<String> = batch.ask(query)?.iter().map(line).collect();
    rows.sort();
    Ok(rows)
}

fn expect(query: &str, wrong: &[&str]) {
    let wrong: Vec<String> = wrong.iter().map(|row| (*row).to_owned()).collect();
    assert_eq!(datafusion(query), Ok(wrong), "{query}");
}

fn refuses(query: &str, reason: &str) {
    let error = datafusion(query).expect_err(query);
    assert!(error.contains(reason), "{query}: {error}");
}

#[test]
fn datafusion_ignores_multiplicities_in_intersect_all_and_except_all() {
    // (1, 1) occurs once in both inputs.
    expect("SELECT a, b FROM t INTERSECT ALL SELECT a, b FROM u", &["1 1", "1 1"]);
    // One of two rows remains.
    expect("SELECT a, b FROM t EXCEPT ALL SELECT a, b FROM u", &["2 NULL", "NULL 4"]);
}

#[test]
fn datafusion_ignores_nulls_in_a_not_in_that_is_part_of_a_condition() {
    // With a NULL in u.a, NOT IN is never true.
    expect("SELECT a FROM t WHERE a NOT IN (SELECT a FROM u) OR b > 99", &["2", "NULL"]);
}

#[test]
fn datafusion_drops_a_condition_on_a_constant_beside_an_aggregate() {
    expect(
        "SELECT c FROM (SELECT 5 AS c FROM (SELECT MIN(a) FROM t) AS x) AS y WHERE c IN (1, 2)",
        &["5"],
    );
}

#[test]
fn datafusion_assumes_a_key_fixed_by_a_condition_is_constant_in_all_grouping_sets() {
    // DataFusion does not sort by a, because a is 2. In the row for the empty grouping set it is NULL.
    expect(
        "SELECT a, b FROM t WHERE a = 2 GROUP BY ROLLUP (a, b) ORDER BY COUNT(*), a, b NULLS FIRST LIMIT 1",
        &["NULL NULL"],
    );
}

#[test]
fn datafusion_assumes_a_constant_of_each_union_input_is_the_same_in_all_inputs() {
    // The second input has one more 2.
    expect(
        "SELECT 1 AS c, a FROM t UNION ALL SELECT 2, a FROM t
         ORDER BY c DESC, a DESC NULLS LAST LIMIT 2",
        &["1 2", "2 2"],
    );
    // One total is correct.
    expect(
        "SELECT c, b, COUNT(*) FROM (SELECT 5 AS c, b FROM u UNION ALL SELECT 5, b FROM u) AS x
         GROUP BY ROLLUP (c, b)",
        &["5 1 4", "5 NULL 4", "NULL NULL 2", "NULL NULL 2"],
    );
}

#[test]
fn datafusion_assumes_a_column_fixed_by_on_is_constant_in_rows_without_a_match() {
    // DataFusion does not sort by u.b, because u.b is 1. In rows without a match it is NULL.
    expect(
        "SELECT u.b, u.a FROM t LEFT JOIN u ON u.b = 1 AND t.a = u.a
         ORDER BY u.b NULLS LAST, u.a NULLS FIRST LIMIT 1",
        &["NULL NULL"],
    );
}

#[test]
fn datafusion_forgets_that_the_operand_of_two_in_lists_may_be_null() {
    expect("SELECT (a IN (1, 2) AND a IN (3)) IS NULL AS c FROM t WHERE a IS NULL", &["false"]);
}

#[test]
fn datafusion_assumes_that_a_constant_of_a_subquery_is_never_null() {
    refuses("SELECT a, (SELECT 0 FROM u WHERE u.a > 9) AS c FROM t", "non-nullable");
}

#[test]
fn datafusion_supports_only_scalar_subqueries_in_select() {
    refuses("SELECT EXISTS (SELECT 1 FROM u) AS e FROM t", "does not support logical expression");
    refuses("SELECT a IN (SELECT a FROM u) AS e FROM t", "does not support logical expression");
}

#[test]
fn datafusion_does_not_count_distinct_pairs() {
    refuses("SELECT COUNT(DISTINCT a, b) FROM t", "COUNT DISTINCT with multiple arguments");
}
