//! The state that the engine reports.

use alluvium::{Engine, Outcome, State};

use crate::support::query;

#[test]
fn state_is_what_tables_and_views_keep() {
    for workers in 1..=3 {
        let engine = Engine::builder().workers(workers).open_in_memory().unwrap();
        assert_eq!(engine.state(), State::default());
        engine.execute("CREATE TABLE t (a BIGINT, b BIGINT)").unwrap();
        let rows: Vec<String> = (0..1000).map(|row| format!("({row}, {})", row % 10)).collect();
        engine.execute(&format!("INSERT INTO t VALUES {}", rows.join(", "))).unwrap();
        engine.wait(engine.progress().committed).unwrap();
        let table = engine.state();
        assert_eq!(table.rows, 1000);
        assert!(table.bytes >= 1000, "{table:?}");

        engine
            .execute("CREATE MATERIALIZED VIEW v AS SELECT b, SUM(a) AS a FROM t GROUP BY b")
            .unwrap();
        let rows = engine.query("SELECT * FROM v").unwrap();
        assert_eq!(rows.iter().map(|rows| rows.num_rows()).sum::<usize>(), 10);
        let with_view = engine.state();
        // The accumulators of ten groups, and the rows of the view.
        assert_eq!(with_view.rows, 1020, "with {workers} workers");
        assert!(with_view.bytes > table.bytes);

        engine.execute("DROP VIEW v").unwrap();
        engine.execute("DROP TABLE t").unwrap();
        // Workers take down what was dropped before they make what comes after it.
        engine.execute("CREATE TABLE other (a BIGINT); INSERT INTO other VALUES (1)").unwrap();
        engine.wait(engine.progress().committed).unwrap();
        assert_eq!(engine.state().rows, 1, "with {workers} workers");
    }
}

#[test]
fn arrangements_tell_what_is_kept_for_what() {
    for workers in 1..=2 {
        let engine = Engine::builder().workers(workers).open_in_memory().unwrap();
        engine
            .execute(
                "CREATE TABLE t (a BIGINT PRIMARY KEY, b BIGINT);
                 CREATE TABLE u (b BIGINT, c VARCHAR);
                 INSERT INTO t VALUES (1, 10), (2, 10), (3, 20);
                 INSERT INTO u VALUES (10, 'ten');
                 CREATE MATERIALIZED VIEW v AS
                     SELECT c, COUNT(*) AS n FROM t JOIN u ON t.b = u.b GROUP BY c;",
            )
            .unwrap();
        engine.wait(engine.progress().committed).unwrap();
        let rows = engine
            .query(
                "SELECT view, operator, key, SUM(rows) AS rows, MAX(batches) AS batches,
                     SUM(memory_bytes) > 0 AND SUM(disk_bytes) = 0 AS in_memory,
                     COUNT(DISTINCT worker) AS workers
                 FROM alluvium.arrangements WHERE view IN ('t', 'u', 'v')
                 GROUP BY view, operator, key ORDER BY view, operator, key",
            )
            .unwrap();
        let table = alluvium::arrow::util::pretty::pretty_format_batches(&rows).unwrap();
        let expected = format!(
            "\
+------+-----------+--------------------------+------+---------+-----------+---------+
| view | operator  | key                      | rows | batches | in_memory | workers |
+------+-----------+--------------------------+------+---------+-----------+---------+
| t    | LastWrite | a                        | 3    | 1       | true      | {workers}       |
| u    | Multiset  | b, c                     | 1    | 1       | true      | {workers}       |
| v    | Aggregate | c                        | 1    | 1       | true      | {workers}       |
| v    | Contents  | c                        | 1    | 1       | true      | {workers}       |
| v    | FirstSeen | expression, row, message | 0    | 0       | false     | {workers}       |
+------+-----------+--------------------------+------+---------+-----------+---------+"
        );
        assert_eq!(table.to_string(), expected);
    }
}

#[test]
fn state_has_one_id_and_fingerprint_on_all_workers_and_in_all_engines() {
    let state_of = |workers: usize, before: &str| {
        let engine = Engine::builder().workers(workers).open_in_memory().unwrap();
        engine.execute(before).unwrap();
        engine
            .execute(
                "CREATE TABLE t (a BIGINT PRIMARY KEY, b BIGINT);
                 CREATE TABLE u (b BIGINT, c VARCHAR);
                 CREATE MATERIALIZED VIEW v AS
                     SELECT c, COUNT(*) AS n FROM t JOIN u ON t.b = u.b GROUP BY c;",
            )
            .unwrap();
        let rows = query(
            &engine,
            "SELECT DISTINCT CASE WHEN view LIKE 'index%' THEN 'index' ELSE view END AS view, id, fingerprint
             FROM alluvium.arrangements WHERE view IN ('t', 'u', 'v') OR view LIKE 'index%'
             ORDER BY view, id, fingerprint",
        );
        match engine.session().execute("EXPLAIN VIEW v").unwrap().pop() {
            Some(Outcome::Text(plan)) => (rows, plan),
            other => panic!("text is expected, not {other:?}"),
        }
    };
    let (rows, plan) = state_of(1, "");
    assert_eq!(rows.len(), 7, "{rows:?}");
    let expected = [
        "index rows ",
        "index rows ",
        "t rows ",
        "u rows ",
        "v aggregate.1 ",
        "v errors ",
        "v rows ",
    ];
    for (row, expected) in rows.iter().zip(expected) {
        assert!(row.starts_with(expected) && row.len() == expected.len() + 32, "{row}");
    }
    for (row, shown) in
        [(&rows[0], "in index "), (&rows[1], "in index "), (&rows[4], "as aggregate.1 ")]
    {
        let start = &row[row.len() - 32..row.len() - 24];
        assert!(plan.contains(&format!("{shown}{start}")), "{row} in\n{plan}");
    }
    assert_eq!(state_of(2, "CREATE TABLE other (x BIGINT)"), (rows, plan));
}
