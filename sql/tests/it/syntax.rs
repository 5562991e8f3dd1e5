//! Clauses that parse and that nothing reads are refused, in every statement that may hold them.

use crate::fixture::{Definitions, shown, statement};
use alluvium_sql::statement::StatementKind;

/// The error of a statement.
fn refused(text: &str) -> String {
    statement(text).map_or_else(|error| shown(&error), |_| "accepted".to_string())
}

/// Checks the errors of statements.
fn all_are_refused(statements: &[(&str, &str)]) {
    let wrong: Vec<String> = statements
        .iter()
        .map(|(text, expected)| (text, refused(text), expected))
        .filter(|(_, error, expected)| *error != format!("{expected} is not supported yet"))
        .map(|(text, error, expected)| format!("{text}\n  {error}\n  {expected}\n"))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.concat());
}

const QUERIES: &[(&str, &str)] = &[
    ("SELECT a FROM t GROUP BY a WITH ROLLUP", "WITH ROLLUP (write GROUP BY ROLLUP (…))"),
    ("SELECT a FROM t GROUP BY a WITH CUBE", "WITH CUBE (write GROUP BY CUBE (…))"),
    ("SELECT a FROM t GROUP BY a WITH TOTALS", "WITH TOTALS"),
    ("SELECT a FROM t TABLESAMPLE BERNOULLI (10)", "TABLESAMPLE"),
    ("SELECT a FROM t WITH (NOLOCK)", "a hint, WITH (…), on a table"),
    (
        "SELECT DISTINCT a FROM t ORDER BY a FETCH FIRST 2 ROWS WITH TIES",
        "FETCH … WITH TIES beside DISTINCT (put the query into FROM)",
    ),
    (
        "SELECT a FROM t QUALIFY RANK() OVER (ORDER BY a) > 1 ORDER BY a FETCH FIRST 2 ROWS WITH TIES",
        "FETCH … WITH TIES beside QUALIFY (put the query into FROM)",
    ),
    (
        "SELECT * REPLACE (-a AS a) FROM t ORDER BY a FETCH FIRST 2 ROWS WITH TIES",
        "FETCH … WITH TIES beside * REPLACE (put the query into FROM)",
    ),
    (
        "SELECT UNNEST([a]) AS b FROM t ORDER BY a FETCH FIRST 2 ROWS WITH TIES",
        "FETCH … WITH TIES beside UNNEST among the selected columns (put the query into FROM)",
    ),
    (
        "SELECT a FROM t UNION SELECT a FROM u ORDER BY a FETCH FIRST 2 ROWS WITH TIES",
        "FETCH … WITH TIES of anything but a SELECT (put the query into FROM)",
    ),
    (
        "SELECT a FROM t ORDER BY a OFFSET 1 FETCH FIRST 2 ROWS WITH TIES",
        "OFFSET beside FETCH … WITH TIES",
    ),
    (
        "SELECT a FROM t ORDER BY a FETCH FIRST NULL ROWS WITH TIES",
        "FETCH … WITH TIES of anything but a whole number of rows",
    ),
    (
        "SELECT * FROM t ORDER BY 1 FETCH FIRST 2 ROWS WITH TIES",
        "a number of a column behind * beside FETCH … WITH TIES",
    ),
    (
        "SELECT RANK() OVER (ORDER BY a) AS r FROM t ORDER BY r FETCH FIRST 2 ROWS WITH TIES",
        "FETCH … WITH TIES by a window function (put the query into FROM)",
    ),
    ("SELECT a FROM t LIMIT 1 FETCH FIRST 2 ROWS WITH TIES", "FETCH beside LIMIT"),
    ("SELECT a FROM t ORDER BY a FETCH FIRST 2 PERCENT ROWS WITH TIES", "FETCH … PERCENT"),
    ("SELECT a FROM t FETCH FIRST 2 PERCENT ROWS ONLY", "FETCH … PERCENT"),
    ("SELECT a FROM t LIMIT 1 FETCH FIRST 2 ROWS ONLY", "FETCH beside LIMIT"),
    ("SELECT a INTO u FROM t", "SELECT … INTO"),
    ("SELECT a FROM t, u GLOBAL JOIN w ON true", "GLOBAL JOIN"),
    ("SELECT a FROM t SORT BY a", "SORT BY"),
    ("SELECT a FROM t CLUSTER BY a", "CLUSTER BY"),
    ("SELECT a FROM t DISTRIBUTE BY a", "DISTRIBUTE BY"),
    ("SELECT TOP 3 a FROM t", "TOP (write LIMIT)"),
    ("SELECT a FROM t EXCEPT BY NAME SELECT a FROM u", "EXCEPT BY NAME"),
    ("SELECT count(* EXCLUDE a) FROM t", "a choice of columns behind *, in a call"),
    ("SELECT a FROM t AS x (b INT)", "a type among the names of columns"),
    ("SELECT lower(DISTINCT a) FROM t", "DISTINCT in a call of lower()"),
    ("SELECT abs(a) FILTER (WHERE a > 1) FROM t", "FILTER in a call of abs()"),
    ("SELECT abs(a) OVER () FROM t", "OVER in a call of abs()"),
    ("SELECT abs(a ORDER BY a) FROM t", "ORDER BY in a call of abs()"),
    ("SELECT abs(a) IGNORE NULLS FROM t", "IGNORE NULLS or RESPECT NULLS in a call of abs()"),
    (
        "SELECT rank() IGNORE NULLS OVER (ORDER BY a) FROM t",
        "IGNORE NULLS or RESPECT NULLS in a call of rank()",
    ),
    (
        "SELECT row_number() FILTER (WHERE a > 1) OVER (ORDER BY a) FROM t",
        "FILTER in a call of row_number()",
    ),
    ("SELECT quantile(0.5)(a) FROM t", "a second list of arguments of quantile"),
    (
        "SELECT ARRAY(SELECT a FROM t ORDER BY b) FROM t",
        "ARRAY(SELECT …) in another order than its own",
    ),
    (
        "SELECT sum(a) OVER (w ORDER BY a) FROM t WINDOW w AS (PARTITION BY a)",
        "a window that is based on another one",
    ),
    (
        "SELECT a FROM t PIVOT (sum(a) FOR b IN (1, 2) DEFAULT ON NULL (0))",
        "DEFAULT ON NULL (write coalesce)",
    ),
    ("SELECT a FROM t CROSS APPLY u", "APPLY"),
    ("SELECT CAST(a AS DATE FORMAT 'YYYY') FROM t", "CAST … FORMAT"),
    ("SELECT CAST(a AS FLOAT(53)) FROM t", "FLOAT(53) (write REAL or DOUBLE)"),
    ("SELECT CAST(a AS INT(3)) FROM t", "the width of a number in INT(3)"),
    (
        "SELECT a COLLATE \"de_DE\" FROM t",
        "COLLATE \"de_DE\" (text is ordered by its bytes, as by COLLATE \"C\")",
    ),
    ("SELECT (a).* RENAME (b AS c) FROM t", "EXCLUDE, REPLACE or RENAME of fields"),
    (
        "SELECT count(*) FROM t GROUP BY tumble(ts, INTERVAL '1' DAY), hop(ts, INTERVAL '1' DAY, INTERVAL '2' DAY)",
        "GROUP BY several windows of time",
    ),
    ("SELECT FLOOR(a TO DAY) FROM t", "CEIL or FLOOR … TO (see date_trunc)"),
    ("SELECT INTERVAL '1-2' YEAR TO MONTH", "INTERVAL … TO"),
    ("SELECT (SELECT a FROM t FOR UPDATE)", "FOR UPDATE or FOR SHARE"),
    ("WITH c AS (SELECT a FROM t TABLESAMPLE (1)) SELECT a FROM c", "TABLESAMPLE"),
];

#[test]
fn no_clause_of_a_query_is_ignored() {
    let mut wrong = Vec::new();
    for (query, name) in QUERIES {
        for text in [
            (*query).to_string(),
            format!("EXPLAIN {query}"),
            format!("CREATE VIEW v AS {query}"),
            format!("CREATE MATERIALIZED VIEW v AS {query}"),
            format!("INSERT INTO t {query}"),
            format!("COPY ({query}) TO 'x.csv'"),
        ] {
            let error = refused(&text);
            let is_named = error.ends_with(&format!("{name} is not supported yet"));
            if !is_named || !error.starts_with("1:") {
                wrong.push(format!("{text}\n  {error}\n  {name}\n"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.concat());
    assert_eq!(
        refused("SELECT a\nFROM t,\n  u TABLESAMPLE (10)"),
        "3:3: TABLESAMPLE is not supported yet"
    );
}

#[test]
fn no_clause_of_a_change_is_ignored() {
    all_are_refused(&[
        ("INSERT INTO t PARTITION (a = 1) SELECT 1", "1:13: INSERT … PARTITION"),
        ("INSERT OVERWRITE t SELECT 1", "1:18: INSERT … OVERWRITE"),
        ("INSERT INTO t VALUES (1) RETURNING * RENAME (a AS b)", "1:36: * RENAME"),
        ("UPDATE t SET a = 1 FROM u TABLESAMPLE (1)", "1:25: TABLESAMPLE"),
        ("UPDATE t SET a = 1 FROM u CROSS APPLY w", "1:39: APPLY"),
        (
            "UPDATE t SET a = 1 WHERE a IN (SELECT a FROM u FOR UPDATE)",
            "1:32: FOR UPDATE or FOR SHARE",
        ),
        ("UPDATE t SET a = lower(DISTINCT a)", "1:18: DISTINCT in a call of lower()"),
        ("DELETE FROM t WHERE abs(a) OVER () = 1", "1:21: OVER in a call of abs()"),
        ("DELETE FROM t LIMIT 1", "1:13: DELETE … LIMIT"),
        ("DELETE FROM t RETURNING lower(DISTINCT a)", "1:25: DISTINCT in a call of lower()"),
    ]);
}

#[test]
fn no_clause_of_a_definition_is_ignored() {
    all_are_refused(&[
        ("CREATE TABLE t (a INT) ON COMMIT DROP", "1:14: ON COMMIT"),
        (
            "CREATE TABLE t (a INT) AS SELECT 1",
            "1:14: CREATE TABLE … AS with columns (name them in the SELECT)",
        ),
        (
            "CREATE TABLE t WITH ('append_only' = 'true') AS SELECT 1",
            "1:14: CREATE TABLE … AS with options",
        ),
        (
            "CREATE OR REPLACE TABLE t AS SELECT 1",
            "1:25: CREATE OR REPLACE TABLE … AS (DROP the table first)",
        ),
        ("CREATE TABLE t (a INT) STORED AS PARQUET", "1:14: STORED AS"),
        ("CREATE TABLE t (a FLOAT(53))", "1:17: FLOAT(53) (write REAL or DOUBLE)"),
        ("CREATE TABLE t (a INT[], b STRUCT<x INT(3)>)", "1:26: the width of a number in INT(3)"),
        ("CREATE TABLE t (a INT, PRIMARY KEY (a DESC))", "1:37: ASC or DESC in a PRIMARY KEY"),
        (
            "CREATE TABLE t (a INT REFERENCES u (a) ON DELETE CASCADE)",
            "1:17: ON DELETE of a foreign key",
        ),
        ("CREATE TABLE t (a INT PRIMARY KEY DEFERRABLE)", "1:17: DEFERRABLE of a PRIMARY KEY"),
        ("CREATE TABLE t (a INT DEFAULT abs(1) OVER ())", "1:31: OVER in a call of abs()"),
        ("CREATE VIEW v AS SELECT 1 WITH NO SCHEMA BINDING", "1:13: WITH NO SCHEMA BINDING"),
    ]);
}

/// DataFusion looks for named windows among the selected columns only, and takes `sum(a) OVER w` for `sum(a)` elsewhere.
#[test]
fn a_named_window_is_found_wherever_it_is_used() {
    let definitions = Definitions::flights();
    for (named, spelled) in [
        (
            "SELECT a FROM numbers WINDOW w AS (PARTITION BY b) QUALIFY sum(a) OVER w > 3",
            "SELECT a FROM numbers QUALIFY sum(a) OVER (PARTITION BY b) > 3",
        ),
        (
            "SELECT a FROM numbers WINDOW W AS (PARTITION BY b) ORDER BY sum(a) OVER w",
            "SELECT a FROM numbers ORDER BY sum(a) OVER (PARTITION BY b)",
        ),
    ] {
        let plan = |text: &str| {
            let StatementKind::Query(query) = statement(text).unwrap().kind else { panic!() };
            definitions.planner.query(&query, &definitions).unwrap().to_string()
        };
        assert_eq!(plan(named), plan(spelled));
    }
    assert_eq!(
        refused(
            "SELECT a FROM t WHERE EXISTS (SELECT 1 FROM u ORDER BY sum(a) OVER w) WINDOW w AS ()"
        ),
        "1:68: no window \"w\" in this SELECT"
    );
}

/// The columns of a view of this query, with their types.
fn columns(definitions: &Definitions, query: &str) -> String {
    let schema = definitions.view(query).unwrap_or_else(|error| panic!("{query}: {error}")).schema;
    let columns = schema.fields().iter();
    columns
        .map(|field| format!("{} {}", field.name(), field.data_type()))
        .collect::<Vec<_>>()
        .join(", ")
}

#[test]
fn numbers_have_the_types_of_postgres_and_duckdb() {
    let definitions = Definitions::flights();
    for (expression, expected) in [
        ("1.15", "Decimal128(3, 2)"),
        ("1e3", "Float64"),
        ("-1.5e-3", "Float64"),
        ("0.1234567890123456789012345678901234567891", "Float64"),
        ("a * 0.5", "Decimal128(12, 1)"),
        ("d * 0.5", "Decimal128(12, 3)"),
        ("e * 0.5", "Float64"),
        ("COALESCE(e, 0.5)", "Float64"),
        ("CASE WHEN a > 1 THEN 1e0 ELSE d END", "Float64"),
        ("COALESCE(a, 0.5)", "Decimal128(11, 1)"),
        ("a / 2", "Int64"),
        ("d / 4", "Decimal128(24, 16)"),
        ("a ^ 2", "Float64"),
        ("SQRT(2.25)", "Float64"),
        ("CAST(d AS INT)", "Int32"),
    ] {
        let planned = columns(&definitions, &format!("SELECT {expression} AS x FROM numbers"));
        assert_eq!(planned, format!("x {expected}"), "{expression}");
    }
    let union = "SELECT e AS x FROM numbers UNION ALL SELECT d FROM numbers EXCEPT SELECT 0.5";
    assert_eq!(columns(&definitions, union), "x Float64");
}

#[test]
fn merged_columns_come_first() {
    let mut definitions = Definitions::flights();
    definitions.define(
        "CREATE TABLE z (k INT, x INT); CREATE TABLE b (y INT, k INT); CREATE TABLE c (k BIGINT, w INT)",
    );
    for (query, expected) in [
        ("SELECT * FROM z JOIN b USING (k)", "k Int32, x Int32, y Int32"),
        ("SELECT * FROM b LEFT JOIN z USING (k)", "k Int32, y Int32, x Int32"),
        ("SELECT * FROM z NATURAL JOIN b NATURAL JOIN c", "k Int32, x Int32, y Int32, w Int32"),
        (
            "SELECT * FROM b FULL JOIN z USING (k) FULL JOIN c USING (k)",
            "k Int64, y Int32, x Int32, w Int32",
        ),
        (
            "SELECT k, z.k AS zk, c.k AS ck FROM z JOIN b USING (k) RIGHT JOIN c USING (k)",
            "k Int64, zk Int32, ck Int64",
        ),
        (
            "SELECT u.* FROM (z JOIN b USING (k)) AS u JOIN c ON u.k = c.k",
            "k Int32, x Int32, y Int32",
        ),
        (
            "SELECT z.* FROM z JOIN b USING (k) JOIN c USING (k) WHERE k > 1 ORDER BY k",
            "k Int32, x Int32",
        ),
        (
            "SELECT k, count(*) AS n FROM z JOIN b USING (k) JOIN c USING (k) GROUP BY k",
            "k Int32, n Int64",
        ),
    ] {
        assert_eq!(columns(&definitions, query), expected, "{query}");
    }
    for query in [
        "SELECT k FROM z JOIN b USING (k), c",
        "SELECT x FROM c, z JOIN b USING (k) WHERE k > 1",
        "SELECT x FROM z JOIN b USING (k) JOIN c ON z.k = c.k WHERE k > 1",
        "SELECT x FROM z JOIN b USING (k) JOIN c ON z.k = c.k JOIN (SELECT w, 1 AS v FROM c) AS d USING (w) ORDER BY k",
        "SELECT x FROM z JOIN b USING (k), (SELECT 1 AS k) AS d WHERE k > 1",
    ] {
        let error = definitions.view(query).unwrap_err();
        assert!(shown(&error).contains("column \"k\" is ambiguous"), "{query}: {error}");
    }
    let other = "SELECT x FROM z JOIN b USING (k), (SELECT 1 AS v, c.w FROM c) AS d WHERE k > v";
    assert_eq!(columns(&definitions, other), "x Int32");
}
