//! EXPLAIN ANALYZE finds the operator that takes the time, and says what would help.

use alluvium::{Engine, Outcome};

/// An engine with a table `t` of so many rows, and a view over it.
fn engine(workers: usize, view: &str, rows: u64, key: impl Fn(u64) -> u64) -> Engine {
    let engine = Engine::builder().workers(workers).open_in_memory().expect("an engine starts");
    let view = format!("CREATE MATERIALIZED VIEW slow AS {view}");
    engine.execute("CREATE TABLE t (k BIGINT PRIMARY KEY, v BIGINT)").expect("it is right");
    engine.execute("CREATE TABLE u (v BIGINT, w BIGINT); INSERT INTO u SELECT s.v, 0 FROM generate_series(0, 99) AS s(v)").expect("it is right");
    engine.execute(&view).expect("it is right");
    for begin in (0..rows).step_by(1000) {
        let values: Vec<String> =
            (begin..begin + 1000).map(|k| format!("({k}, {})", key(k))).collect();
        engine
            .execute(&format!("INSERT INTO t VALUES {}", values.join(", ")))
            .expect("it is right");
    }
    engine.wait(engine.progress().committed).expect("it is right");
    engine
}

fn analyzed(engine: &Engine, sql: &str) -> String {
    match engine.execute(sql).expect("it is right").remove(0) {
        Outcome::Text(text) => text,
        other => panic!("{other:?}"),
    }
}

/// The line of the operator that takes the most time, without its figures, and what is said of it.
fn worst(engine: &Engine) -> (String, String) {
    let text = analyzed(engine, "EXPLAIN ANALYZE slow");
    let line = text.lines().find(|line| line.ends_with("<- 1")).unwrap_or_else(|| panic!("{text}"));
    let name =
        line.trim().split(" (0.").next().and_then(|it| it.split(" [").next()).expect("it is right");
    let said = text.lines().skip_while(|line| !line.starts_with("1. ")).skip(1);
    let said: Vec<&str> = said.take_while(|line| line.starts_with("   ")).map(str::trim).collect();
    (name.to_owned(), said.join("\n"))
}

#[test]
fn a_join_without_an_equality_is_named() {
    let sql = "SELECT COUNT(*) AS n FROM t, u WHERE (t.v + u.v) % 7 = u.w";
    let (operator, said) = worst(&engine(1, sql, 2000, |k| k % 100));
    assert_eq!(operator, "cross join");
    assert!(said.contains("it has no equality, so each change meets all rows"), "{said}");
}

#[test]
fn a_window_that_is_evaluated_again_is_named() {
    let sql = "SELECT k, NTILE(4) OVER (PARTITION BY v ORDER BY k) AS quarter FROM t";
    let (operator, said) = worst(&engine(1, sql, 20_000, |_| 1));
    assert!(
        operator.starts_with("window ntile(4) in order of k by v (re-evaluated)"),
        "{operator}"
    );
    assert!(said.contains("each change evaluates all rows of its partition again"), "{said}");
}

#[test]
fn state_that_is_never_pruned_is_named() {
    let sql = "SELECT v, MAX(k) AS k FROM t GROUP BY v";
    let engine = engine(1, sql, 20_000, |k| k / 2);
    let text = analyzed(&engine, "EXPLAIN ANALYZE VIEW slow");
    assert!(text.starts_with("\"slow\" took "), "{text}");
    let said = text.split(". aggregate max(k) by v: ").nth(1).unwrap_or_else(|| panic!("{text}"));
    let said = said.lines().nth(1).unwrap().trim();
    assert!(said.starts_with("it keeps 20000 rows, "), "{said}");
    assert!(said.contains("the key has no time, so a later row can change any group"), "{said}");
    assert!(
        text.contains("scan t (v, k) [unique: (k)] (0.") && text.contains("20000 rows out"),
        "{text}"
    );
}

#[test]
fn a_view_is_watched_for_a_time() {
    let engine = engine(2, "SELECT v, SUM(k) AS k FROM t GROUP BY v", 1000, |k| k);
    let text = analyzed(&engine, "EXPLAIN ANALYZE slow FOR INTERVAL '20' MILLISECOND");
    assert!(text.starts_with("\"slow\" took 0.000 s in 0.020 s on 2 workers\n"), "{text}");
    assert!(!text.contains("<- 1"), "{text}");
    engine.execute("CREATE VIEW plain AS SELECT k FROM t").unwrap();
    for (sql, expected) in [
        ("EXPLAIN ANALYZE plain", "\"plain\" is not a materialized view"),
        ("EXPLAIN ANALYZE t", "\"t\" is a table, not a view"),
        ("EXPLAIN ANALYZE slow FOR 10", "such as INTERVAL '10' SECOND"),
        ("EXPLAIN ANALYZE slow FOR INTERVAL '-1' SECOND", "such as INTERVAL '10' SECOND"),
        ("EXPLAIN ANALYZE", "takes a query, or the name of a materialized view"),
        ("EXPLAIN ANALYZE INSERT INTO u VALUES (1, 1)", "it would change rows"),
    ] {
        let error = engine.execute(sql).expect_err(sql).to_string();
        assert!(error.contains(expected), "{sql}: {error}");
    }
    let mut session = engine.session();
    session.execute("SET statement_timeout = 50").unwrap();
    let error = session.execute("EXPLAIN ANALYZE slow FOR INTERVAL '1' HOUR").expect_err("it ends");
    assert_eq!(error.sqlstate().as_str(), "57014");
}
