//! Deep, wide and long statements, in one process and on threads with the usual stack: none aborts it.

use alluvium::Engine;

use crate::support::{engine_with, query};

const TABLE: &str =
    "CREATE TABLE t (a INT, b TEXT, c BOOLEAN); INSERT INTO t VALUES (1, 'x', true);";

/// Executes `sql` as a query and as a view over `t`; whether it is refused, it is refused in both.
fn both(engine: &Engine, select: &str) -> Result<Vec<String>, String> {
    let view = engine.execute(&format!("CREATE MATERIALIZED VIEW v AS {select}"));
    let query = engine.query(select).map(|rows| crate::support::lines(&rows));
    match (view, query) {
        (Ok(_), Ok(rows)) => {
            assert_eq!(crate::support::query(engine, "SELECT * FROM v"), rows, "{}", start(select));
            engine.execute("DROP VIEW v").expect("it is dropped");
            Ok(rows)
        }
        (Err(view), Err(_)) => Err(view.to_string()),
        (view, query) => panic!("{}: {view:?}, {query:?}", start(select)),
    }
}

fn start(text: &str) -> String {
    text.chars().take(100).collect()
}

fn chain(operator: &str, length: usize, term: impl Fn(usize) -> String) -> String {
    (0..length).map(term).collect::<Vec<_>>().join(operator)
}

#[test]
fn a_condition_of_thousands_of_terms_has_its_answer() {
    let engine = engine_with(1, TABLE);
    for condition in [
        chain(" OR ", 3_000, |number| format!("a = {}", 3_000 - number)),
        chain(" AND ", 3_000, |number| format!("a <> {}", number + 2)),
        chain(" OR ", 500, |number| format!("(a = {number} AND b = 'x')")),
    ] {
        let rows = both(&engine, &format!("SELECT a FROM t WHERE {condition}"));
        assert_eq!(rows.expect("it is planned"), ["1"]);
    }
}

#[test]
fn chains_as_long_as_the_limit_work_and_longer_ones_are_refused() {
    let engine = engine_with(1, TABLE);
    let sum = |terms: usize| format!("SELECT {} AS x FROM t", vec!["a"; terms].join(" + "));
    assert_eq!(both(&engine, &sum(400)).expect("it is planned"), ["400"]);
    assert!(both(&engine, &sum(20_000)).expect_err("it is refused").contains("more than 1000"));
    let text = |terms: usize| format!("SELECT {} AS x FROM t", vec!["b"; terms].join(" || "));
    assert_eq!(both(&engine, &text(400)).expect("it is planned"), ["x".repeat(400)]);
    assert!(both(&engine, &text(20_000)).is_err());
    engine.execute(&format!("UPDATE t SET a = {}", vec!["a"; 400].join(" + "))).expect("it works");
    assert_eq!(query(&engine, "SELECT a FROM t"), ["400"]);
}

#[test]
fn set_operations_of_hundreds_of_terms_work() {
    let engine = engine_with(1, TABLE);
    let select = |number: usize| format!("SELECT a + {number} AS x FROM t");
    for operator in [" UNION ", " UNION ALL "] {
        let rows = both(&engine, &chain(operator, 150, select)).expect("it is planned");
        assert_eq!(rows.len(), 150);
    }
    for operator in [" EXCEPT ", " INTERSECT "] {
        both(&engine, &chain(operator, 20, select)).expect("it is planned");
        // Deeper than tokio's budget for one task, on which operators of DataFusion wait for each other.
        both(&engine, &chain(operator, 200, |_| "SELECT a FROM t".to_owned()))
            .expect("it is planned");
        both(&engine, &chain(operator, 20_000, select)).expect_err("it is refused");
    }
}

/// The optimizer compared each part of an expression to what a condition makes constant, and took minutes.
#[test]
fn a_long_chain_beside_a_condition_is_planned_at_once() {
    let engine = engine_with(1, TABLE);
    let sum = |terms| vec!["a"; terms].join(" + ");
    let (long, short) = (sum(900), sum(400));
    for (select, value) in [
        (format!("SELECT {long} AS x FROM t WHERE a = 1"), "900"),
        (format!("SELECT {short} AS x FROM t WHERE {short} = 400 AND b = 'x'"), "400"),
        (format!("SELECT MAX({short}) AS x FROM t GROUP BY {short}"), "400"),
        (
            format!(
                "SELECT o.a AS x FROM t o LEFT JOIN t p ON {} = 400",
                short.replace('a', "p.a")
            ),
            "1",
        ),
    ] {
        assert_eq!(both(&engine, &select).expect("it is planned"), [value], "{}", start(&select));
    }
    let casts = "::TEXT::INT".repeat(200);
    engine.execute(&format!("UPDATE t SET a = a{casts} + 1 WHERE a = 1")).expect("it works");
    assert_eq!(query(&engine, "SELECT a FROM t"), ["2"]);
    engine
        .execute("CREATE TABLE d (n DECIMAL(12, 2)); INSERT INTO d VALUES (1)")
        .expect("it works");
    let difference = vec!["n"; 302].join(" - ");
    let rows = both(&engine, &format!("SELECT {difference} AS x FROM d"));
    assert_eq!(rows.expect("it is planned"), ["-300.00"]);
}

/// Each level copies what is inside of it, at least twice.
#[test]
fn what_copies_its_operands_nests_within_limits() {
    let engine = engine_with(1, TABLE);
    for (open, inner, close, few) in [
        ("COALESCE(", "a", ", 1)", "1"),
        ("NVL(", "a", ", 1)", "1"),
        ("(", "a", " BETWEEN 0 AND 1)::INT", "1"),
        ("(", "a", " IN (0, 1))::INT", "1"),
        ("CASE WHEN ", "c", " THEN TRUE ELSE c END", "true"),
    ] {
        let select = |depth| {
            format!("SELECT {}{inner}{} AS x FROM t", open.repeat(depth), close.repeat(depth))
        };
        assert_eq!(both(&engine, &select(6)).expect("it is planned"), [few], "{open}");
        // Views have other rules: what one refuses the other may plan.
        for select in [select(40), format!("CREATE MATERIALIZED VIEW w AS {}", select(40))] {
            if let Err(error) = engine.execute(&select) {
                assert!(error.to_string().contains("nest"), "{open}: {error}");
            }
        }
        engine.execute("DROP VIEW IF EXISTS w").expect("it is gone");
    }
    let any = format!(
        "SELECT {}a{} AS x FROM t",
        "(".repeat(40),
        " = ANY([0, 1, NULL]))::INT".repeat(40)
    );
    assert_eq!(query(&engine, &any), ["1"]);
}

/// Arrow's parser recursed once for every 38 digits.
#[test]
fn digits_by_the_million_do_not_abort_the_process() {
    let engine = engine_with(1, TABLE);
    let digits = "9".repeat(4 << 20);
    for number in
        [format!("CAST('{digits}' AS DECIMAL)"), "REPEAT('9', 4000000)::DECIMAL".to_owned()]
    {
        let error = engine.query(&format!("SELECT {number}")).expect_err("it is refused");
        assert!(error.to_string().contains("is not a DECIMAL(38, 10)"), "{error}");
    }
    let tried = "SELECT TRY_CAST(REPEAT('9', 4000000) AS DECIMAL(10, 2)) AS x FROM t";
    assert_eq!(both(&engine, tried).expect("it is planned"), ["NULL"]);
}

/// Each is planned and rendered with all below it: consecutive maps are one operator.
#[test]
fn errors_of_a_view_below_are_its_own() {
    let engine = engine_with(2, TABLE);
    engine
        .execute(
            "CREATE VIEW p AS SELECT a, 6 / (a - 2) AS x FROM t;
             CREATE VIEW q AS SELECT a, 12 / (x - 6) AS y FROM p;
             CREATE MATERIALIZED VIEW v AS SELECT a, y FROM q WHERE y / (a - 4) > -100;
             INSERT INTO t VALUES (2, 'x', true), (3, 'x', true), (4, 'x', true), (5, 'x', true)",
        )
        .expect("it works");
    assert_eq!(query(&engine, "SELECT * FROM v"), ["1 -1", "5 -3"]);
    let errors = "SELECT view, COUNT(*) FROM alluvium.errors GROUP BY view ORDER BY view";
    assert_eq!(query(&engine, errors), ["p 1", "q 1", "v 1"]);
    engine.execute("DELETE FROM t WHERE a IN (2, 3, 4)").expect("it works");
    assert!(query(&engine, errors).is_empty());
}

#[test]
fn nothing_that_nests_aborts_the_process() {
    let engine = engine_with(2, TABLE);
    let nested = |open: &str, inner: &str, close: &str, depth: usize| {
        format!("SELECT {}{inner}{} AS x FROM t", open.repeat(depth), close.repeat(depth))
    };
    for (open, inner, close) in [
        ("NOT ", "c", ""),
        ("- ", "a", ""),
        ("INTERVAL ", "'1' DAY", ""),
        ("CASE WHEN c THEN 1 ELSE ", "0", " END"),
        ("CAST(", "a", " AS INT)"),
        ("ABS(", "a", ")"),
        ("ROW(", "a", ")"),
        ("POW(", "a", ", 1)"),
        ("[", "a", "]"),
        ("{'a': ", "a", "}"),
        ("(SELECT ", "1", ")"),
        ("a IN (SELECT a FROM t WHERE ", "c", ")"),
        ("EXISTS (", "SELECT 1", ")"),
    ] {
        for depth in [2, 10, 45, 100, 10_000] {
            let select = nested(open, inner, close, depth);
            let view = engine.execute(&format!("CREATE OR REPLACE VIEW v AS {select}"));
            let refused = (view.is_err(), engine.query(&select).is_err());
            assert!(depth < 50 || refused == (true, true), "{open} {depth}: {refused:?}");
        }
    }
    engine.execute("DROP VIEW IF EXISTS v").expect("it is dropped");
    for (open, close) in [("(SELECT * FROM ", ")"), ("(", ")")] {
        for depth in [10, 10_000] {
            let from = format!("{}t{}", open.repeat(depth), close.repeat(depth));
            let _ = both(&engine, &format!("SELECT a FROM {from}"));
        }
    }
    assert_eq!(query(&engine, "SELECT a FROM t"), ["1"]);
}

#[test]
fn plain_views_on_each_other_work_up_to_a_limit() {
    let engine = engine_with(1, TABLE);
    engine.execute("CREATE VIEW v0 AS SELECT a FROM t").expect("it is created");
    let ones = " + 1".repeat(40);
    let refused = (1..700).find_map(|number| {
        let below = number - 1;
        let view = format!("CREATE VIEW v{number} AS SELECT a{ones} AS a FROM v{below}");
        engine.execute(&view).err().map(|error| (number, error.to_string()))
    });
    let (number, message) = refused.expect("it ends before 700");
    assert!(message.contains("levels deep") && message.contains("materialize"), "{message}");
    assert!(number > 10, "{number}");
    let last = format!("SELECT a FROM v{}", number - 1);
    assert_eq!(query(&engine, &last), [format!("{}", 1 + 40 * (number - 1))]);
    engine.execute("DROP TABLE t CASCADE").expect("all are dropped");
}

/// Some were read again for each of their tokens.
#[test]
fn the_time_to_read_a_statement_grows_with_its_length() {
    let engine = engine_with(1, TABLE);
    let begun = std::time::Instant::now();
    let texts = [
        format!("SELECT {}1{}", "(".repeat(300_000), ")".repeat(300_000)),
        format!("SELECT {}", "IDENTITY (".repeat(100_000)),
        format!("CREATE TABLE u (a INT, {}{}", "PRIMARY KEY ".repeat(60_000), "1 ".repeat(300_000)),
        format!("SELECT * FROM t {}", "ASOF JOIN (".repeat(50_000)),
        format!("SELECT {}1", " ".repeat(6_000_000)),
    ];
    for text in texts {
        let error = engine.query(&text).expect_err("it is refused").to_string();
        assert!(error.len() < 300, "{error}");
    }
    let numbers = (0..16_000).map(|number| number.to_string()).collect::<Vec<_>>().join(",");
    let rows = query(&engine, &format!("SELECT 1 AS x WHERE 7 IN ({numbers})"));
    assert_eq!(rows, ["1"]);
    assert!(begun.elapsed() < std::time::Duration::from_secs(120), "{:?}", begun.elapsed());
}
