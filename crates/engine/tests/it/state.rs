//! What the engine says it holds.

use alluvium::{Engine, State};

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
