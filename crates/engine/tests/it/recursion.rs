//! Recursive views.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::path::Path;

use alluvium::Engine;

use crate::support::query;

fn open(directory: &Path, workers: usize) -> Engine {
    let state = format!("file:{}", directory.display());
    Engine::builder().workers(workers).state(state).open().unwrap()
}

const SHORTEST: &str = "
    CREATE TABLE edge (a INT, b INT, cost INT);
    CREATE MATERIALIZED VIEW ways AS
        WITH RECURSIVE w(place, cost) AS (
            SELECT 1, 0
            UNION
            SELECT e.b, w.cost + e.cost FROM w JOIN edge AS e ON e.a = w.place WHERE w.cost + e.cost <= 40)
        SELECT place, cost FROM w;
    CREATE MATERIALIZED VIEW shortest AS SELECT place, MIN(cost) AS cost FROM ways GROUP BY place;
    INSERT INTO edge VALUES (1, 2, 3), (2, 3, 20), (3, 4, 1), (4, 3, 1), (7, 8, 2), (1, 3, 30), (8, 2, 50);
";

#[test]
fn a_recursion_goes_on_after_a_checkpoint() {
    for (before, after) in [(1, 1), (2, 2), (3, 2), (3, 5), (1, 3)] {
        let directory = tempfile::tempdir().unwrap();
        let engine = open(directory.path(), before);
        engine.execute(SHORTEST).unwrap();
        engine.checkpoint().unwrap();
        engine.execute("INSERT INTO edge VALUES (9, 9, 9)").unwrap();
        drop(engine);
        let engine = open(directory.path(), after);
        let ways = query(&engine, "SELECT * FROM shortest");
        assert_eq!(ways, ["1 0", "2 3", "3 23", "4 24"], "{before} {after}");
        engine.execute("DELETE FROM edge WHERE a = 2").unwrap();
        let ways = query(&engine, "SELECT * FROM shortest");
        assert_eq!(ways, ["1 0", "2 3", "3 30", "4 31"], "{before} {after}");
        engine.execute("DELETE FROM edge WHERE a = 1").unwrap();
        assert_eq!(query(&engine, "SELECT * FROM ways"), ["1 0"], "{before} {after}");
    }
}
