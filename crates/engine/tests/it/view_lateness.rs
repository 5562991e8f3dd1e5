//! LATENESS of columns of views.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::collections::BTreeMap;
use std::path::Path;

use alluvium::{Engine, Outcome};

use crate::support::{engine, engine_with, query, settled};

const BY: i64 = 20;

const TABLES: &str = "
    CREATE TABLE a (k BIGINT, n BIGINT);
    CREATE TABLE b (k BIGINT, x BIGINT);";

/// Queries whose first column is the time. Of a group, a row replaces another with another time.
const QUERIES: [(&str, &str); 4] = [
    ("map", "SELECT n + 1 AS n, k FROM a"),
    ("maxima", "SELECT MAX(n) AS n, k FROM a GROUP BY k"),
    ("joined", "SELECT a.n + b.x AS n, a.k FROM a JOIN b ON a.k = b.k"),
    ("counts", "SELECT n, COUNT(*) AS k FROM a WHERE k > 1 GROUP BY n"),
];

/// For each query: a materialized view and a plain one, and what reads them.
fn views() -> String {
    let views = QUERIES.map(|(name, query)| {
        format!(
            "CREATE MATERIALIZED VIEW {name} AS {query};
             LATENESS {name}.n {BY};
             LATENESS plain_{name}.n {BY};
             CREATE VIEW plain_{name} AS {query};
             CREATE MATERIALIZED VIEW of_plain_{name} AS SELECT n, k FROM plain_{name};
             CREATE MATERIALIZED VIEW counted_{name} AS SELECT n, COUNT(*) AS c FROM {name} GROUP BY n;
             CREATE MATERIALIZED VIEW other_{name} AS
                SELECT o.n, COUNT(p.k) AS c FROM {name} AS o LEFT JOIN plain_{name} AS p ON o.n = p.n GROUP BY o.n;
             CREATE MATERIALIZED VIEW final_{name} WITH ('emit_final' = 'n') AS
                SELECT n, COUNT(*) AS c FROM {name} GROUP BY n;
             CREATE MATERIALIZED VIEW final_plain_{name} WITH ('emit_final' = 'n') AS
                SELECT n, COUNT(*) AS c FROM plain_{name} GROUP BY n;"
        )
    });
    views.concat()
}

/// The rule, naively: what a view holds, given what its query does after each epoch.
#[derive(Default)]
struct Oracle {
    before: BTreeMap<String, i64>,
    held: BTreeMap<String, i64>,
    waterline: Option<i64>,
    late: u64,
}

/// The time in a row.
fn time(row: &str) -> Option<i64> {
    row.split(' ').next().unwrap().parse().ok()
}

impl Oracle {
    fn step(&mut self, now: Vec<String>) {
        let mut sums = BTreeMap::new();
        now.into_iter().for_each(|row| *sums.entry(row).or_default() += 1);
        let mut changes = sums.clone();
        for (row, count) in std::mem::replace(&mut self.before, sums) {
            *changes.entry(row).or_default() -= count;
        }
        let waterline = self.waterline;
        for (row, weight) in changes.into_iter().filter(|(_, weight)| *weight != 0_i64) {
            let time = time(&row);
            if time.zip(waterline).is_some_and(|(time, waterline)| time < waterline) {
                self.late += weight.unsigned_abs();
            } else {
                *self.held.entry(row).or_default() += weight;
            }
            if weight > 0 {
                self.waterline = self.waterline.max(time.map(|time| time - BY));
            }
        }
        assert!(self.held.values().all(|count| *count >= 0));
    }

    fn rows(&self) -> Vec<String> {
        let rows = self.held.iter();
        rows.flat_map(|(row, count)| std::iter::repeat_n(row.clone(), *count as usize)).collect()
    }

    /// The times with their counts, of those that pass.
    fn counts(&self, passes: impl Fn(Option<i64>) -> bool) -> Vec<String> {
        let mut counts: BTreeMap<Option<i64>, i64> = BTreeMap::new();
        for (row, count) in &self.held {
            *counts.entry(time(row)).or_default() += count;
        }
        let counts = counts.into_iter().filter(|(time, count)| *count > 0 && passes(*time));
        let mut counts: Vec<String> = counts
            .map(|(time, count)| match time {
                Some(time) => format!("{time} {count}"),
                None => format!("NULL {count}"),
            })
            .collect();
        counts.sort();
        counts
    }
}

struct Judge {
    oracles: Vec<Oracle>,
    random: u64,
    round: u64,
}

impl Judge {
    fn new(seed: u64) -> Self {
        let oracles = QUERIES.map(|_| Oracle::default()).into();
        Self { oracles, random: seed, round: 0 }
    }

    fn below(&mut self, below: u64) -> u64 {
        self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.random >> 33) % below
    }

    /// The next transaction.
    fn next(&mut self) -> String {
        self.round += 1;
        let mut sql = "BEGIN;".to_owned();
        for _ in 0..1 + self.below(3) {
            let (k, n) = (self.below(5), 5 * self.round + self.below(40));
            let n = if self.below(12) == 0 { "NULL".to_owned() } else { n.to_string() };
            sql += &match self.below(6) {
                0 => format!("DELETE FROM a WHERE k = {k} AND n % 3 = {};", n.len() % 3),
                1 => format!("INSERT INTO b VALUES ({k}, {});", self.below(30)),
                2 => format!("DELETE FROM b WHERE k = {k};"),
                3 => format!("UPDATE a SET n = n + {} WHERE k = {k};", self.below(30)),
                _ => format!("INSERT INTO a VALUES ({k}, {n}), ({}, {n});", (k + 1) % 5),
            };
        }
        sql + "COMMIT"
    }

    /// An epoch has come: each view is compared with what it should be.
    fn check(&mut self, engine: &Engine, when: &str) {
        engine.wait(engine.progress().committed).unwrap();
        for ((_, sql), oracle) in QUERIES.iter().zip(&mut self.oracles) {
            oracle.step(query(engine, sql));
        }
        self.compare(engine, when);
    }

    fn compare(&self, engine: &Engine, when: &str) {
        for ((name, _), oracle) in QUERIES.iter().zip(&self.oracles) {
            let rows = |view: &str| query(engine, &format!("SELECT * FROM {view}"));
            assert_eq!(rows(name), oracle.rows(), "{name}, {when}");
            assert_eq!(rows(&format!("of_plain_{name}")), oracle.rows(), "plain {name}, {when}");
            let counted = oracle.counts(|_| true);
            assert_eq!(rows(&format!("counted_{name}")), counted, "counted {name}, {when}");
            let waterline = oracle.waterline;
            let is_final = |time: Option<i64>| {
                time.zip(waterline).is_some_and(|(time, waterline)| time < waterline)
            };
            let finals = oracle.counts(is_final);
            assert_eq!(rows(&format!("final_{name}")), finals, "final {name}, {when}");
            assert_eq!(rows(&format!("final_plain_{name}")), finals, "final plain {name}, {when}");
            let shown = query(
                engine,
                &format!(
                    "SELECT late_rows, COALESCE(waterline, '') FROM alluvium.tables
                     WHERE name = '{name}' OR name = 'plain_{name}'"
                ),
            );
            let expected = match waterline {
                Some(waterline) => format!("{} n >= {waterline}", oracle.late),
                None => format!("{} ", oracle.late),
            };
            assert_eq!(shown, [expected.clone(), expected], "{name}, {when}");
            // Each row of a time has those of its time as partners.
            let squares = oracle.counts(|time| time.is_some());
            let squares = squares.iter().map(|line| {
                let (time, count) = line.split_once(' ').unwrap();
                let count: i64 = count.parse().unwrap();
                format!("{time} {}", count * count)
            });
            let mut squares: Vec<String> = squares.collect();
            squares.extend(oracle.counts(|time| time.is_none()).iter().map(|_| "NULL 0".into()));
            squares.sort();
            let mut found = rows(&format!("other_{name}"));
            found.sort();
            assert_eq!(found, squares, "pairs of {name}, {when}");
        }
    }
}

#[test]
fn exactly_what_comes_too_late_is_dropped_on_any_number_of_workers() {
    for (workers, memory) in [(1, None), (2, Some(1 << 20)), (3, None)] {
        let engine = Engine::builder().workers(workers).memory(memory).open().unwrap();
        engine.execute(TABLES).unwrap();
        engine.execute(&views()).unwrap();
        let mut judge = Judge::new(11 + workers as u64);
        for round in 0..25 {
            engine.execute(&judge.next()).unwrap();
            judge.check(&engine, &format!("{workers} workers, round {round}"));
        }
        assert!(judge.oracles.iter().all(|oracle| oracle.late > 3), "little came late");
    }
}

#[test]
fn a_view_that_is_filled_from_tables_sees_their_rows_at_once() {
    for workers in [1, 3] {
        let engine = engine_with(workers, TABLES);
        let mut judge = Judge::new(5);
        for _ in 0..20 {
            engine.execute(&judge.next()).unwrap();
        }
        engine.execute(&views()).unwrap();
        judge.check(&engine, "at first");
        assert!(judge.oracles.iter().all(|oracle| oracle.late == 0));
        for round in 0..10 {
            engine.execute(&judge.next()).unwrap();
            judge.check(&engine, &format!("{workers} workers, round {round}"));
        }
    }
}

fn open(directory: &Path, workers: usize) -> Engine {
    let state = format!("file:{}", directory.display());
    Engine::builder().workers(workers).state(state).open().unwrap()
}

/// By the journal, by checkpoints, and with another number of workers.
#[test]
fn waterlines_and_counts_of_views_outlive_the_engine() {
    const ROUNDS: usize = 6;
    for (checkpoints, workers) in
        [(vec![], [2, 2]), (vec![1, 3], [1, 1]), ((0..ROUNDS).collect(), [3, 2])]
    {
        let directory = tempfile::tempdir().unwrap();
        let engine = open(directory.path(), workers[0]);
        engine.execute(TABLES).unwrap();
        engine.execute(&views()).unwrap();
        drop(engine);
        let mut judge = Judge::new(77);
        for round in 0..ROUNDS {
            let engine = open(directory.path(), workers[round % 2]);
            let when = format!("checkpoints {checkpoints:?}, round {round}");
            engine.wait(engine.progress().committed).unwrap();
            judge.compare(&engine, &when);
            for _ in 0..3 {
                engine.execute(&judge.next()).unwrap();
                judge.check(&engine, &when);
            }
            if checkpoints.contains(&round) {
                engine.checkpoint().unwrap();
            }
        }
        assert!(judge.oracles.iter().all(|oracle| oracle.late > 0), "nothing came late");
    }
}

#[test]
fn lateness_that_waits_for_its_view_outlives_the_engine() {
    for checkpoint in [false, true] {
        let directory = tempfile::tempdir().unwrap();
        let run = |sql: &str| {
            let engine = open(directory.path(), 2);
            engine.execute(sql).unwrap();
            // A view that the journal creates is filled beside everything else. Who subscribes to it waits.
            drop(engine.subscribe("v"));
            let shown = settled(&engine, "SELECT name, late_rows, waterline FROM alluvium.tables");
            if checkpoint {
                engine.checkpoint().unwrap();
            }
            shown
        };
        run("CREATE TABLE t (n BIGINT, m BIGINT) WITH ('materialized' = 'false');
             LATENESS v.n 1; LATENESS v.m 2");
        run("CREATE VIEW v AS SELECT n, m FROM t");
        assert_eq!(run("INSERT INTO t VALUES (5, 50)"), ["t 0 NULL", "v 0 n >= 4 AND m >= 48"]);
        assert_eq!(
            run("INSERT INTO t VALUES (3, 50), (4, 47), (9, NULL)"),
            ["t 0 NULL", "v 2 n >= 8 AND m >= 48"]
        );
        // It goes with the view.
        run("DROP VIEW v; CREATE TABLE u (n BIGINT); CREATE VIEW v AS SELECT n FROM u");
        assert_eq!(run("INSERT INTO u VALUES (1)"), ["t 0 NULL", "u 0 NULL"]);
        assert_eq!(run("LATENESS v.n 3"), ["t 0 NULL", "u 0 NULL", "v 0 n >= -2"]);
        assert_eq!(run("INSERT INTO u VALUES (-3)"), ["t 0 NULL", "u 0 NULL", "v 1 n >= -2"]);
        assert_eq!(run("SELECT 1"), ["t 0 NULL", "u 0 NULL", "v 1 n >= -2"]);
    }
}

fn failure(engine: &Engine, sql: &str) -> String {
    engine.execute(sql).unwrap_err().to_string()
}

#[test]
fn lateness_is_said_of_views_that_nobody_reads() {
    let engine = engine_with(
        2,
        "CREATE TABLE t (n BIGINT, s TEXT);
         CREATE VIEW v AS SELECT n, s FROM t;
         CREATE VIEW w AS SELECT n FROM v;
         CREATE MATERIALIZED VIEW m AS SELECT n FROM t",
    );
    let refused = |sql: &str, expected: &str| {
        let message = failure(&engine, sql);
        assert!(message.contains(expected), "{sql}: {message}");
    };
    refused("LATENESS v.n 5", "\"v\" is read already, by \"w\": write LATENESS before its readers");
    let subscription = engine.subscribe("m").unwrap();
    refused("LATENESS m.n 5", "\"m\" is read already, by a subscription");
    drop(subscription);
    refused("LATENESS t.n 5", "\"t\" is a table: LATENESS of its columns stands in CREATE TABLE");
    refused("LATENESS w.x 5", "no column \"x\"");
    refused("LATENESS w.n INTERVAL '1' HOUR", "is a whole number, such as 100");
    refused("LATENESS w.n -5", "cannot be negative");
    refused("LATENESS w 5", "write LATENESS view.column");
    refused("LATENESS w.n", "expected");
    refused("BEGIN; LATENESS w.n 5", "LATENESS inside a transaction is not supported");
    engine.execute("DROP VIEW w; LATENESS v.n 5").unwrap();
    refused("LATENESS v.n 6", "declared twice");
    refused("LATENESS v.s 6", "is for columns of type TIMESTAMP");
    refused("SELECT * FROM v", "it can be queried if it keeps the others");
    // A view that cannot be made with its lateness is not made.
    engine.execute("LATENESS x.s 6").unwrap();
    refused("CREATE VIEW x AS SELECT s FROM t", "is for columns of type TIMESTAMP");
    engine.execute("CREATE VIEW y AS SELECT n FROM t; CREATE VIEW z AS SELECT n FROM v").unwrap();
    // It is given again with the view.
    engine.execute("CREATE OR REPLACE VIEW y AS SELECT n FROM t").unwrap();
    engine
        .execute("LATENESS y.n 1; CREATE OR REPLACE VIEW y AS SELECT n FROM t; LATENESS y.n 2")
        .unwrap();
    engine.execute("INSERT INTO t VALUES (10, 'a')").unwrap();
    assert_eq!(
        settled(&engine, "SELECT name, waterline FROM alluvium.tables"),
        ["t NULL", "v n >= 5", "y n >= 8"]
    );
}

#[test]
fn state_is_pruned_by_the_waterline_of_the_view() {
    let engine = engine(2);
    engine
        .execute(
            "CREATE TABLE raw (at TEXT, v BIGINT) WITH ('materialized' = 'false');
             CREATE VIEW events AS SELECT CAST(at AS TIMESTAMP) AS ts, v FROM raw;
             LATENESS events.ts INTERVAL '1' HOUR;
             CREATE MATERIALIZED VIEW hours AS
                SELECT DATE_TRUNC('hour', ts) AS h, COUNT(*) AS c FROM events GROUP BY 1;
             CREATE MATERIALIZED VIEW kept AS SELECT ts, v FROM events;
             LATENESS kept.ts INTERVAL '2' HOURS;
             CREATE VIEW days AS SELECT CAST(ts AS DATE) AS d, COUNT(*) AS c FROM kept GROUP BY 1;
             CREATE MATERIALIZED VIEW tall AS SELECT h, c FROM hours;
             CREATE VIEW by_hour AS SELECT h, SUM(c) AS c FROM tall GROUP BY h;
             INSERT INTO raw VALUES ('2024-01-01 05:30:00', 1), ('2024-01-03 07:10:00', 2)",
        )
        .unwrap();
    engine.wait(engine.progress().committed).unwrap();
    let explained =
        |view: &str| match engine.execute(&format!("EXPLAIN STATE {view}")).unwrap().pop() {
            Some(Outcome::Text(text)) => text,
            other => panic!("it is a text, not {other:?}"),
        };
    for (view, expected) in [
        (
            "hours",
            "pruned: date_trunc('hour', ts) >= 2024-01-03T06:00:00, from the waterline of events.ts",
        ),
        ("days", "pruned: CAST(ts AS Date32) >= 2024-01-03, from the waterline of kept.ts"),
        ("by_hour", "pruned: h >= 2024-01-03T06:00:00, from the waterline of events.ts"),
        ("events", "never pruned: there is one row for each column with LATENESS"),
    ] {
        let text = explained(view);
        assert!(text.contains(expected), "{view}: {text}");
    }
}

#[test]
fn waterlines_of_views_are_those_of_the_last_committed_epoch() {
    for workers in 1..=2 {
        let engine = engine_with(workers, "CREATE TABLE t (n BIGINT)");
        // An epoch takes it much longer than it takes to commit one.
        engine
            .execute(
                "LATENESS pairs.n 5;
                 CREATE MATERIALIZED VIEW pairs AS
                    SELECT MAX(a.n + b.n) AS n, COUNT(*) AS c FROM t a, t b WHERE a.n + b.n > 10",
            )
            .unwrap();
        for last in [200, 400, 600] {
            let first = last - 200;
            engine
                .execute(&format!("INSERT INTO t SELECT UNNEST(range({first}, {last}))"))
                .unwrap();
            let waterline = "SELECT waterline FROM alluvium.tables WHERE name = 'pairs'";
            assert_eq!(query(&engine, waterline), [format!("n >= {}", 2 * (last - 1) - 5)]);
        }
    }
}
