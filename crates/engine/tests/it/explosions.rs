//! Rows that become far larger than they are, and groups that are too large to be computed together.

use alluvium::Engine;

use crate::support::{lines, query, settled};

const MIB: usize = 1 << 20;

fn engine(memory: usize, sql: &str) -> Engine {
    let engine =
        Engine::builder().workers(2).memory(memory).open_in_memory().expect("an engine starts");
    engine.execute(sql).expect("the statements are right");
    engine
}

/// Expressions that make more than 64 MiB of a row with a 1 000 000 000 in `n`.
const EXPLOSIONS: [&str; 9] = [
    "repeat('ab', n)",
    "lpad('x', n)",
    "rpad('x', n, 'yz')",
    "range(0, n)",
    "generate_series(0, n, 3)",
    "array_repeat('x', n)",
    "array_resize([1], n, 1)",
    "replace(repeat('a', n / 1000), 'a', repeat('b', 1000))",
    "concat(repeat('a', n / 20), repeat('b', n / 40))",
];

#[test]
fn a_value_of_gigabytes_is_an_error_row() {
    let engine = engine(32 * MIB, "CREATE TABLE t (id INT, n BIGINT)");
    for (number, expression) in EXPLOSIONS.iter().enumerate() {
        let length = match expression.contains("range")
            || expression.contains("array")
            || expression.contains("series")
        {
            true => format!("cardinality({expression})"),
            false => format!("length({expression})"),
        };
        engine
            .execute(&format!(
                "CREATE MATERIALIZED VIEW v{number} AS SELECT id, {length} AS n FROM t"
            ))
            .unwrap();
    }
    engine
        .execute("INSERT INTO t VALUES (1, 1000000000), (2, 2000), (3, 1000000000), (4, NULL)")
        .unwrap();
    for (number, expression) in EXPLOSIONS.iter().enumerate() {
        let rows = query(&engine, &format!("SELECT id FROM v{number}"));
        assert_eq!(rows, ["2", "4"], "{expression}");
        let errors = format!("SELECT message FROM alluvium.errors WHERE view = 'v{number}'");
        let errors = query(&engine, &errors);
        assert_eq!(errors.len(), 2, "{expression}");
        assert!(errors[0].ends_with("has at most 67108864 (64 MiB)"), "{}", errors[0]);
        let error = engine.query(&format!("SELECT {expression} FROM t WHERE id = 1")).unwrap_err();
        assert_eq!(error.to_string(), errors[0], "{expression}");
        let good = engine.query(&format!("SELECT {expression} FROM t WHERE id IN (2, 4)")).unwrap();
        assert_eq!(lines(&good).len(), 2, "{expression}");
    }
    let constant = engine.query("SELECT lpad('x', 2000000000)").unwrap_err().to_string();
    assert!(constant.starts_with("the result of lpad would have 2000000000 bytes"), "{constant}");
    engine.execute("DELETE FROM t WHERE n = 1000000000").unwrap();
    assert!(query(&engine, "SELECT * FROM alluvium.errors").is_empty());
}

#[test]
fn rows_that_become_large_together_are_computed_few_at_a_time() {
    const MEMORY: usize = 16 * MIB;
    let engine = engine(
        MEMORY,
        "CREATE TABLE t (id BIGINT);
         CREATE MATERIALIZED VIEW v AS
             SELECT id % 7 AS k, COUNT(*) AS n, SUM(length(x)) AS bytes
             FROM (SELECT id, repeat('x', 100000 + id) AS x FROM t) GROUP BY id % 7;
         CREATE MATERIALIZED VIEW u AS
             SELECT e % 3 AS k, COUNT(*) AS n, MIN(text) AS text
             FROM (SELECT UNNEST(range(0, id * 5)) AS e, repeat('y', 1000) AS text FROM t) GROUP BY e % 3;
         INSERT INTO t SELECT UNNEST(range(0, 400))",
    );
    assert_eq!(settled(&engine, "SELECT SUM(n), SUM(bytes) FROM v"), ["400 40079800"]);
    assert_eq!(settled(&engine, "SELECT SUM(n), MIN(length(text)) FROM u"), ["399000 1000"]);
    let state = engine.state();
    assert!(state.memory_peak_bytes as usize <= 2 * MEMORY, "{state:?}");
}

/// Views that recompute groups, and an aggregate of the answer's rows.
const GROUPS: [(&str, &str); 2] = [
    ("SELECT k, STRING_AGG(text, ',' ORDER BY id) AS x FROM t GROUP BY k", "length(x)"),
    (
        "SELECT k, text, SUM(length(text)) OVER (
             PARTITION BY k ORDER BY id ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING
         ) AS x FROM t",
        "x",
    ),
];

#[test]
fn a_group_beyond_the_budget_is_an_error_until_it_is_smaller() {
    for (view, value) in GROUPS {
        // A group has an eighth of the budget and 4 MiB.
        let engine = engine(
            8 * MIB,
            &format!(
                "CREATE TABLE t (k INT, id INT PRIMARY KEY, text VARCHAR); CREATE MATERIALIZED VIEW v AS {view}"
            ),
        );
        let insert = |k: i32, from: i32, to: i32| {
            let ids = format!("SELECT UNNEST(range({from}, {to})) AS id");
            let rows = format!("SELECT {k}, CAST(id AS INT), repeat('x', 1000) FROM ({ids})");
            engine.execute(&format!("INSERT INTO t {rows}")).unwrap();
        };
        let answer =
            || settled(&engine, &format!("SELECT k, MAX({value}) FROM v GROUP BY k ORDER BY k"));
        insert(1, 0, 10);
        insert(2, 1_000, 4_000);
        let small = answer();
        assert_eq!(small.len(), 2, "{view}");
        insert(2, 10_000, 13_000);
        insert(1, 10, 11);
        let large = answer();
        assert!(large.len() == 1 && large[0] > small[0], "{view}: {large:?}");
        let errors = query(&engine, "SELECT \"row\", message FROM alluvium.errors");
        assert_eq!(
            errors,
            [
                "k=2 the rows of the group are more than 5 MiB, too many to recompute together; a larger memory budget allows more"
            ]
        );
        insert(2, 20_000, 21_000);
        assert_eq!(query(&engine, "SELECT * FROM alluvium.errors").len(), 1);
        engine.execute("DELETE FROM t WHERE id >= 10").unwrap();
        insert(2, 1_000, 4_000);
        assert_eq!(answer(), small, "{view}");
        assert!(query(&engine, "SELECT * FROM alluvium.errors").is_empty());
        let state = engine.state();
        assert!(state.memory_peak_bytes as usize <= (8 + 64) * MIB, "{view}: {state:?}");
    }
}

#[test]
fn changes_that_a_subscriber_does_not_take_wait_in_files() {
    const MEMORY: usize = 8 * MIB;
    let engine = engine(MEMORY, "CREATE TABLE t (id BIGINT, text VARCHAR)");
    let mut subscription = engine.subscribe("t").unwrap();
    for id in 0..200 {
        engine.execute(&format!("INSERT INTO t SELECT {id}, repeat('x', 300000)")).unwrap();
    }
    settled(&engine, "SELECT COUNT(*) FROM t");
    let state = engine.state();
    assert!(state.memory_peak_bytes as usize <= 3 * MEMORY, "{state:?}");
    assert_eq!(subscription.next().unwrap().unwrap().rows.num_rows(), 0);
    for id in 0..200 {
        let change = subscription.try_next().unwrap().unwrap();
        assert_eq!((change.rows.num_rows(), change.weights[0]), (1, 1));
        assert!(lines(&[change.rows])[0].starts_with(&format!("{id} xxx")));
    }
    assert!(subscription.try_next().unwrap().is_none());
}

#[test]
fn a_long_literal_or_row_beside_many_rows_is_read_in_small_batches() {
    let engine = engine(
        64 * MIB,
        "CREATE TABLE t (id BIGINT);
         CREATE TABLE long (text VARCHAR);
         INSERT INTO t SELECT * FROM range(0, 2500);
         INSERT INTO long SELECT repeat('x', 1000000)",
    );
    // Both have more bytes in all than a column of a batch can have.
    let literal = "x".repeat(1_000_000);
    let count = "SELECT SUM(OCTET_LENGTH(text)) FROM";
    for source in [
        format!("(SELECT id, '{literal}' AS text FROM t)"),
        "(SELECT id, text FROM t CROSS JOIN long)".to_owned(),
    ] {
        assert_eq!(query(&engine, &format!("{count} {source}")), ["2500000000"]);
    }
}

#[test]
fn a_query_that_holds_too_much_is_an_error() {
    let engine = engine(
        8 * MIB,
        "CREATE TABLE t (id BIGINT);
         INSERT INTO t SELECT * FROM range(0, 2500)",
    );
    let literal = "x".repeat(100_000);
    let over = |frame: &str| {
        let rows = format!("SELECT id, '{literal}' || id AS text FROM t");
        format!(
            "SELECT SUM(OCTET_LENGTH(text) + s) FROM (SELECT text, SUM(id) OVER ({frame}) AS s FROM ({rows}))"
        )
    };
    for query in [
        format!("SELECT id, '{literal}' AS text FROM t"),
        format!("SELECT id, '{literal}' || id AS text FROM t ORDER BY text LIMIT 2000"),
        format!("SELECT STRING_AGG('{literal}' || id, '') FROM t GROUP BY id"),
        // One reads all rows before it passes any on, the other 2,000.
        over(""),
        over("ROWS BETWEEN CURRENT ROW AND 2000 FOLLOWING"),
    ] {
        let error = engine.query(&query).unwrap_err().to_string();
        assert!(error.starts_with("the query takes more memory than queries may"), "{error}");
    }
    // Data that is not held may be any amount.
    let sum =
        format!("SELECT SUM(OCTET_LENGTH(text)) FROM (SELECT '{literal}' || id AS text FROM t)");
    assert_eq!(query(&engine, &sum), ["250008890"]);
    let same = "SELECT COUNT(*) FROM t a JOIN t b USING (id)";
    assert_eq!(query(&engine, same), ["2500"]);
}

#[test]
fn a_pattern_that_is_computed_is_no_longer_than_one_that_is_written() {
    let engine = engine(8 * MIB, "CREATE TABLE t (id INT PRIMARY KEY, s VARCHAR, n BIGINT)");
    let matches = [
        "s LIKE repeat('%a', n)",
        "s NOT ILIKE repeat('_a', n)",
        "s SIMILAR TO repeat('a?', n)",
        "s ~ repeat('a*', n)",
        "regexp_like(s, repeat('a+', n))",
        "regexp_extract(s, repeat('.?', n)) = s",
        "cardinality(string_split_regex(s, repeat('ab', n))) = 1",
    ];
    for (number, matched) in matches.iter().enumerate() {
        let view =
            format!("CREATE MATERIALIZED VIEW v{number} AS SELECT id, {matched} AS m FROM t");
        engine.execute(&view).unwrap();
    }
    engine
        .execute("INSERT INTO t VALUES (1, 'a', 5000), (2, 'a', 5001), (3, 'a', 30000000), (4, 'a', NULL)")
        .unwrap();
    let too_long = "a pattern has at most 10000 characters";
    for (number, matched) in matches.iter().enumerate() {
        assert_eq!(query(&engine, &format!("SELECT id FROM v{number}")), ["1", "4"], "{matched}");
        let errors = format!("SELECT message FROM alluvium.errors WHERE view = 'v{number}'");
        assert_eq!(query(&engine, &errors), [too_long; 2], "{matched}");
        let error = engine.query(&format!("SELECT {matched} FROM t WHERE id = 3")).unwrap_err();
        assert_eq!(error.to_string(), too_long, "{matched}");
        let good = engine.query(&format!("SELECT {matched} FROM t WHERE id IN (1, 4)")).unwrap();
        assert_eq!(lines(&good).len(), 2, "{matched}");
    }
    let written = format!("SELECT string_split_regex('a', '{}')", "a".repeat(10_001));
    assert_eq!(engine.query(&written).unwrap_err().to_string(), too_long);
}

#[test]
fn the_rows_of_a_join_of_small_tables_come_in_few_batches() {
    let engine = engine(8 * MIB, "CREATE TABLE t (a INT); INSERT INTO t VALUES (1), (2), (3)");
    let nested = |levels| {
        let (before, after) =
            ("SELECT * FROM t, LATERAL (".repeat(levels), ") AS r".repeat(levels));
        engine.query(&format!("{before}SELECT a FROM t{after}")).unwrap()
    };
    // As many as the rows of a table, if they were not put together: 6,561.
    let batches = nested(8);
    assert_eq!(batches.iter().map(|rows| rows.num_rows()).sum::<usize>(), 19_683);
    assert!(batches.len() < 100, "{}", batches.len());
    assert_eq!(lines(&nested(1)).len(), 9);
}
