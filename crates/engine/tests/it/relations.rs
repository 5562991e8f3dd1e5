//! `alluvium.relations`: what is there, and how it is, without waiting for any of it.

use alluvium::Engine;

use crate::support::{engine_with, query, without_hanging};

const RELATIONS: &str = "SELECT name, kind, state, rows FROM alluvium.relations";

/// Fails once a key of `t` has more than 6,208 rows, whose fifth power does not fit.
const BAD: &str = "CREATE MATERIALIZED VIEW bad AS SELECT a.k FROM t a JOIN t b ON a.k = b.k
    JOIN t c ON b.k = c.k JOIN t d ON c.k = d.k JOIN t e ON d.k = e.k";

fn engine(workers: usize) -> Engine {
    engine_with(
        workers,
        "CREATE TABLE t (k BIGINT NOT NULL); CREATE TABLE passing (k BIGINT) WITH ('materialized' = 'false');
         CREATE INDEX by_k ON t (k); CREATE VIEW plain AS SELECT k + 1 AS k FROM t;
         CREATE LOCAL VIEW part AS SELECT k FROM t WHERE k > 0;
         CREATE MATERIALIZED VIEW sums AS SELECT k % 2 AS g, SUM(k) AS s FROM part GROUP BY k % 2;
         INSERT INTO t SELECT UNNEST(range(0, 1000))",
    )
}

#[test]
fn all_relations_and_indexes_are_listed_with_their_rows() {
    for workers in 1..=3 {
        let engine = engine(workers);
        engine.execute("DECLARE RECURSIVE VIEW later (k BIGINT)").expect("it is right");
        engine.wait(engine.progress().committed).expect("the engine is well");
        assert_eq!(
            query(&engine, RELATIONS),
            [
                "by_k index running 1000",
                "later declared view declared NULL",
                "part local view running NULL",
                "passing table running NULL",
                "plain view running NULL",
                "sums materialized view running 2",
                "t table running 1000",
            ]
        );
        let told = "SELECT COUNT(*) FROM alluvium.relations WHERE reason IS NOT NULL OR filled IS NOT NULL";
        assert_eq!(query(&engine, told), ["0"]);
    }
}

#[test]
fn a_relation_that_is_filled_says_how_far_it_is_and_nobody_waits_for_it() {
    for workers in 1..=2 {
        without_hanging(move || {
            let engine = engine(workers);
            // It would take minutes.
            engine
                .execute(
                    "CREATE MATERIALIZED VIEW long WITH ('wait' = 'false') AS
                     SELECT COUNT(*) AS c FROM t a, t b, t c WHERE a.k + b.k + c.k = 7",
                )
                .expect("it does not wait");
            let long = "SELECT state, rows, filled BETWEEN 0 AND 1, reason FROM alluvium.relations WHERE name = 'long'";
            // Before a worker has begun nothing is known.
            let mut shown = query(&engine, long);
            while shown != ["filling NULL true NULL"] {
                assert_eq!(shown, ["filling NULL NULL NULL"]);
                shown = query(&engine, long);
            }
            // Its rows are read long before it is done.
            let is_read = "SELECT filled = 1 FROM alluvium.relations WHERE name = 'long'";
            while query(&engine, is_read) != ["true"] {
                engine.execute("INSERT INTO passing VALUES (1)").expect("commits go on");
            }
            engine.execute("DROP VIEW long").expect("it can be dropped");
            let left = "SELECT COUNT(*) FROM alluvium.relations WHERE name = 'long'";
            assert_eq!(query(&engine, left), ["0"]);
            drop(engine);
        });
    }
}

#[test]
fn what_has_failed_says_why() {
    for workers in 1..=2 {
        without_hanging(move || {
            let engine = engine(workers);
            engine.execute(BAD).expect("there are few rows");
            engine
                .execute(
                    "CREATE INDEX of_bad ON bad (k);
                     CREATE MATERIALIZED VIEW reader AS SELECT COUNT(*) AS n FROM bad;
                     INSERT INTO t SELECT 7 FROM generate_series(1, 8192)",
                )
                .expect("the commit does not wait for views");
            engine.query("SELECT * FROM bad").expect_err("it fails");
            let failed = "SELECT name, kind, rows, reason LIKE '%2^63%' FROM alluvium.relations WHERE state = 'failed'";
            let expected = [
                "bad materialized view NULL true",
                "of_bad index NULL true",
                "reader materialized view NULL true",
            ];
            assert_eq!(query(&engine, failed), expected);
            engine.execute("DELETE FROM t WHERE k = 7").expect("commits go on");
            assert_eq!(query(&engine, failed), expected);
            engine.execute("ALTER VIEW bad RESUME").expect("it can be filled");
            // An index of it may still read the rows it has been filled with.
            let left = "SELECT name FROM alluvium.relations WHERE state = 'failed'";
            assert_eq!(query(&engine, left), ["reader"]);
            drop(engine);
        });
    }
}
