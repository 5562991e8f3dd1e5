//! Recursive views.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::path::Path;
use std::thread;

use alluvium::unstable::BuilderParts;
use alluvium::{Engine, Error};
use alluvium_trace::Schedule;

use crate::filling::LONG;
use crate::support::{engine_with, query};

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

#[test]
fn copies_that_double_with_each_round_are_an_error_and_no_overflow() {
    for workers in [1, 2] {
        let engine = engine_with(
            workers,
            "CREATE TABLE edge (a INT, b INT);
             CREATE MATERIALIZED VIEW r WITH ('recursion_limit' = '200') AS
                WITH RECURSIVE r(p) AS (SELECT 1 UNION ALL SELECT b FROM r JOIN edge ON a = p) SELECT p FROM r;
             CREATE MATERIALIZED VIEW counted AS SELECT p, COUNT(*) AS n FROM r GROUP BY p;
             INSERT INTO edge VALUES (1, 1), (1, 1), (1, 2);",
        );
        let errors = query(&engine, "SELECT DISTINCT \"row\", message FROM alluvium.errors");
        assert!(
            errors.iter().any(|error| error.contains("p=1 the recursion makes more than")),
            "{errors:?}"
        );
        engine.execute("DELETE FROM edge WHERE b = 1").unwrap();
        assert_eq!(query(&engine, "SELECT * FROM counted"), ["1 1", "2 1"]);
        assert_eq!(query(&engine, "SELECT * FROM alluvium.errors").len(), 0);
    }
}

#[test]
fn a_road_more_or_less_changes_what_it_leads_to() {
    let engine = engine_with(
        1,
        "CREATE TABLE edge (a INT, b INT);
         CREATE MATERIALIZED VIEW r AS
            WITH RECURSIVE r(p) AS (SELECT 0 UNION SELECT b FROM r JOIN edge ON a = p) SELECT p FROM r;
         INSERT INTO edge SELECT n % 100, n + 1 FROM UNNEST(range(0, 20000)) AS t(n);",
    );
    let updates = |sql: &str| {
        let mut changes = engine.subscribe("r").unwrap();
        assert!(changes.next().unwrap().unwrap().rows.num_rows() > 10_000);
        engine.execute(sql).unwrap();
        changes.next().unwrap().unwrap().rows.num_rows()
    };
    assert_eq!(updates("INSERT INTO edge VALUES (20000, 50000)"), 1);
    assert_eq!(updates("DELETE FROM edge WHERE b = 50000"), 1);
}

/// While a view is filled, other threads sort batches, and the times of a recursion advance around the rows that they sort.
#[test]
fn a_recursion_is_right_while_another_view_is_filled() {
    for workers in 1..=3 {
        // The least batch is sorted by another thread.
        let schedule = Schedule { smallest_job: 0, ..Schedule::default() };
        let engine =
            Engine::builder().workers(workers).schedule(schedule).open_in_memory().unwrap();
        engine.execute(SHORTEST).unwrap();
        engine
            .execute(
                "CREATE TABLE t (n BIGINT PRIMARY KEY); INSERT INTO t SELECT UNNEST(range(0, 1000));
                 CREATE TABLE more (a INT, b INT);
                 CREATE MATERIALIZED VIEW reached AS
                    WITH RECURSIVE r(p) AS (SELECT 0 UNION SELECT b FROM r JOIN more ON a = p) SELECT p FROM r;",
            )
            .unwrap();
        let (interrupt, creator) = (engine.interrupt(), engine.clone());
        let watched = interrupt.clone();
        let created = thread::spawn(move || watched.watch(|| creator.execute(LONG)));
        while !engine.relations().unwrap().iter().any(|of| of.name == "long") {
            thread::yield_now();
        }
        for n in 0..150 {
            engine
                .execute(&format!("INSERT INTO more VALUES ({n}, {n} + 1), ({n}, {n} + 2)"))
                .unwrap();
            engine.execute(&format!("DELETE FROM more WHERE a = {n} / 2 AND b = a + 1")).unwrap();
        }
        engine.execute("DELETE FROM edge WHERE a = 2").unwrap();
        assert_eq!(query(&engine, "SELECT COUNT(*) FROM reached"), ["114"], "{workers}");
        let ways = query(&engine, "SELECT * FROM shortest");
        assert_eq!(ways, ["1 0", "2 3", "3 30", "4 31"], "{workers}");
        interrupt.request();
        assert_eq!(created.join().unwrap().err(), Some(Error::Interrupted));
    }
}

#[test]
fn rows_of_a_megabyte_recur() {
    let engine = Engine::builder().workers(2).memory(16 << 20).open_in_memory().unwrap();
    engine
        .execute(
            "CREATE TABLE edge (a TEXT, b TEXT);
             CREATE MATERIALIZED VIEW r AS
                WITH RECURSIVE r(p) AS (SELECT 'x' UNION SELECT b FROM r JOIN edge ON a = p) SELECT p FROM r;
             INSERT INTO edge VALUES ('x', repeat('y', 1000000)), (repeat('y', 1000000), repeat('z', 1000000)),
                (repeat('z', 1000000), 'x');",
        )
        .unwrap();
    assert_eq!(query(&engine, "SELECT LENGTH(p) FROM r"), ["1", "1000000", "1000000"]);
    engine.execute("DELETE FROM edge WHERE a = 'x'").unwrap();
    assert_eq!(query(&engine, "SELECT p FROM r"), ["x"]);
}

const EVEN: &str = "
    CREATE TABLE edge (a INT, b INT);
    DECLARE RECURSIVE VIEW even (place INT);
    DECLARE RECURSIVE VIEW odd (place INT);
    CREATE LOCAL VIEW step AS SELECT b AS place FROM even JOIN edge ON a = even.place;
    CREATE MATERIALIZED VIEW even AS SELECT 1 AS place UNION SELECT b FROM odd JOIN edge ON a = odd.place;
    INSERT INTO edge VALUES (1, 2), (2, 3), (3, 4);
";

#[test]
fn a_view_that_waits_for_others_still_waits_when_an_engine_is_opened_again() {
    for (is_saved, workers) in [(false, 1), (true, 2), (true, 3)] {
        let directory = tempfile::tempdir().unwrap();
        let save = |engine: &Engine| {
            if is_saved {
                engine.checkpoint().unwrap();
            }
        };
        let engine = open(directory.path(), 2);
        engine.execute(EVEN).unwrap();
        save(&engine);
        drop(engine);
        let engine = open(directory.path(), workers);
        let error = engine.query("SELECT * FROM even").unwrap_err().to_string();
        assert!(error.contains("is not created yet"), "{error}");
        engine.execute("CREATE MATERIALIZED VIEW odd AS SELECT place FROM step").unwrap();
        engine.execute("CREATE MATERIALIZED VIEW later AS SELECT COUNT(*) AS c FROM step").unwrap();
        assert_eq!(query(&engine, "SELECT * FROM even"), ["1", "3"]);
        save(&engine);
        engine.execute("INSERT INTO edge VALUES (4, 5)").unwrap();
        drop(engine);
        let engine = open(directory.path(), workers);
        assert_eq!(query(&engine, "SELECT * FROM even"), ["1", "3", "5"]);
        assert_eq!(query(&engine, "SELECT * FROM odd"), ["2", "4"]);
        engine.execute("DELETE FROM edge WHERE a = 3").unwrap();
        assert_eq!(query(&engine, "SELECT * FROM odd"), ["2"]);
        assert_eq!(query(&engine, "SELECT * FROM later"), ["1"]);
        engine.execute("DROP VIEW step CASCADE").unwrap();
        drop(engine);
        let engine = open(directory.path(), workers);
        let error = engine.query("SELECT * FROM odd").unwrap_err().to_string();
        assert!(error.contains("no table or view \"odd\""), "{error}");
        engine.execute(EVEN.split_once(';').unwrap().1).unwrap();
    }
}

#[test]
fn groups_of_a_recursion_may_be_large_and_have_large_values() {
    for workers in [1, 2] {
        let engine = engine_with(
            workers,
            "CREATE TABLE edge (a INT, b INT, name TEXT);
             DECLARE RECURSIVE VIEW named (place INT, name TEXT);
             CREATE MATERIALIZED VIEW named AS
                SELECT place, MIN(name) AS name
                FROM (SELECT 0 AS place, 'z' AS name
                      UNION ALL
                      SELECT b, edge.name FROM named JOIN edge ON a = named.place) AS names GROUP BY place;
             CREATE MATERIALIZED VIEW lengths AS SELECT place, LENGTH(name) AS l FROM named;
             INSERT INTO edge SELECT CAST(n AS INT), CAST(n + 1 AS INT), REPEAT('y', 1000000) FROM range(0, 4) AS r(n);
             INSERT INTO edge SELECT 4, 5, 'x' || CAST(n AS TEXT) FROM range(0, 20000) AS r(n);",
        );
        let expected = ["0 1", "1 1000000", "2 1000000", "3 1000000", "4 1000000", "5 2"];
        assert_eq!(query(&engine, "SELECT * FROM lengths"), expected);
        engine.execute("DELETE FROM edge WHERE name < 'x2' AND a = 4").unwrap();
        assert_eq!(query(&engine, "SELECT name FROM named WHERE place = 5"), ["x2"]);
        engine.execute("DELETE FROM edge WHERE a = 1").unwrap();
        assert_eq!(query(&engine, "SELECT * FROM lengths"), ["0 1", "1 1000000"]);
    }
}
