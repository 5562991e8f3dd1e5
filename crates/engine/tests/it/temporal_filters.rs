//! Conditions that compare rows with NOW(): each row comes into view once and leaves it once.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use alluvium::{Engine, Outcome};

use crate::support::{engine_with, query};

/// So many seconds after the start of 2024.
fn second(second: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(1_704_067_200 + second)
}

/// Conditions of every form.
const CONDITIONS: [&str; 14] = [
    "ts > NOW() - INTERVAL '20' SECOND",
    "ts <= NOW()",
    "ts BETWEEN NOW() - INTERVAL '20' SECOND AND NOW() - INTERVAL '5' SECOND",
    "ts < NOW() + INTERVAL '7' SECOND AND until >= NOW()",
    "ts <= NOW() AND NOW() < until AND n <> 3",
    "NOW() - ts < INTERVAL '15' SECOND AND n % 2 = 0",
    "INTERVAL '1' MINUTE >= until - NOW()",
    "ts + INTERVAL '9' SECOND > LOCALTIMESTAMP",
    "ts + n * INTERVAL '3' SECOND > NOW()",
    "date_trunc('minute', ts) = date_trunc('minute', LOCALTIMESTAMP)",
    "CAST(ts AS DATE) >= CURRENT_DATE",
    "ts > NOW() - INTERVAL '1' MONTH AND ts < NOW()",
    "ts < NOW() AND EXTRACT(SECOND FROM NOW()) <> n",
    "NOT (ts >= NOW()) AND (n = 1 OR until > NOW())",
];

fn create(engine: &Engine, conditions: &[&str], first: usize) {
    for (number, condition) in conditions.iter().enumerate() {
        let name = format!("v{}", first + number);
        let select = format!("SELECT k, n, ts FROM t WHERE {condition}");
        engine.execute(&format!("CREATE MATERIALIZED VIEW {name} AS {select}")).unwrap();
    }
    let grouped = "SELECT n, COUNT(*) AS c, MAX(ts) AS last FROM t WHERE ts <= NOW() AND until > NOW() GROUP BY n
                   HAVING MAX(ts) > NOW() - INTERVAL '10' SECOND";
    engine.execute(&format!("CREATE MATERIALIZED VIEW grouped{first} AS {grouped}")).unwrap();
}

fn assert_equal(engine: &Engine, views: usize, when: &str) {
    for (number, condition) in CONDITIONS.iter().enumerate().take(views) {
        let expected = query(engine, &format!("SELECT k, n, ts FROM t WHERE {condition}"));
        let found = query(engine, &format!("SELECT * FROM v{number}"));
        assert_eq!(found, expected, "{condition}, {when}");
    }
}

/// Random numbers.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.0 >> 33) % end
    }
}

/// The statements of a transaction: some rows are new, some are replaced, one is deleted.
fn changes(now: u64, random: &mut Random) -> String {
    let at = |random: &mut Random| match random.below(9) {
        0 => "NULL".to_owned(),
        _ => {
            let at = (now + random.below(60)).saturating_sub(30);
            format!("TIMESTAMP '2024-01-01' + INTERVAL '{at} seconds'")
        }
    };
    let mut statements = "BEGIN;".to_owned();
    for _ in 0..random.below(5) {
        let (k, n) = (random.below(40), random.below(5));
        let (from, until) = (at(random), at(random));
        statements += &format!(
            "INSERT INTO t VALUES ({k}, {n}, {from}, {until})
             ON CONFLICT (k) DO UPDATE SET n = excluded.n, ts = excluded.ts, until = excluded.until;"
        );
    }
    statements + &format!("DELETE FROM t WHERE k = {}; COMMIT", random.below(40))
}

const TABLE: &str =
    "CREATE TABLE t (k BIGINT PRIMARY KEY, n BIGINT, ts TIMESTAMP, until TIMESTAMP)";

/// Time advances by random steps, and engines end and resume, with a checkpoint and without one.
#[test]
fn a_filter_on_the_time_equals_its_query_in_every_epoch() {
    for (seed, memory) in [(1, None), (2, Some(1 << 20)), (3, None)] {
        let directory = tempfile::tempdir().unwrap();
        let seconds = Arc::new(AtomicU64::new(0));
        let open = |workers: usize| {
            let state = format!("file:{}", directory.path().display());
            let clock = Arc::clone(&seconds);
            let now = move || second(clock.load(Ordering::Relaxed));
            let mut builder = Engine::builder().workers(workers).state(state).clock(now);
            if let Some(memory) = memory {
                builder = builder.memory(memory);
            }
            builder.open().unwrap()
        };
        let mut random = Random(seed);
        let mut engine = open(1 + seed as usize % 3);
        engine.execute(TABLE).unwrap();
        let early = CONDITIONS.len() / 2;
        create(&engine, &CONDITIONS[..early], 0);
        let (mut now, mut views) = (0, early);
        for step in 0..60 {
            now += [0, 1, 1, 3, 20][random.below(5) as usize];
            seconds.store(now, Ordering::Relaxed);
            engine.execute(&changes(now, &mut random)).unwrap();
            engine.wait(engine.progress().committed).unwrap();
            assert_equal(&engine, views, &format!("seed {seed}, step {step}"));
            match step {
                15 => {
                    create(&engine, &CONDITIONS[early..], early);
                    views = CONDITIONS.len();
                }
                25 | 40 => {
                    if step == 40 {
                        engine.execute("CHECKPOINT").unwrap();
                    }
                    drop(engine);
                    // Also with other workers.
                    engine = open(1 + (seed as usize + step / 20) % 3);
                }
                _ => {}
            }
            assert_equal(&engine, views, &format!("seed {seed}, after step {step}"));
        }
        let expected = query(
            &engine,
            "SELECT n, COUNT(*) AS c, MAX(ts) AS last FROM t WHERE ts <= NOW() AND until > NOW() GROUP BY n
             HAVING MAX(ts) > NOW() - INTERVAL '10' SECOND",
        );
        for view in ["grouped0", "grouped7"] {
            assert_eq!(query(&engine, &format!("SELECT * FROM {view}")), expected);
        }
    }
}

/// 100,000 rows are in view, and 1,000 epochs each take one out of it.
#[test]
fn an_epoch_costs_what_enters_and_leaves() {
    let engine = Engine::builder().workers(2).open().unwrap();
    engine
        .execute(
            "CREATE TABLE t (n BIGINT, ts TIMESTAMP) WITH ('materialized' = 'false');
             CREATE VIEW recent AS SELECT n FROM t WHERE ts > NOW() - INTERVAL '1' DAY",
        )
        .unwrap();
    let mut changes = engine.subscribe("recent").unwrap();
    changes.next().unwrap().unwrap();
    let insert = |at: u64, rows: &str| {
        let mut tx = engine.begin_at(second(at)).unwrap();
        engine.query(rows).unwrap().into_iter().for_each(|rows| tx.insert("t", rows).unwrap());
        engine.wait(tx.commit().unwrap()).unwrap();
    };
    let at = "TIMESTAMP '2024-01-01' + n * INTERVAL '1' SECOND AS ts";
    insert(0, &format!("SELECT n, {at} FROM generate_series(0, 99999) AS s (n)"));
    let mut shown = 0;
    while shown < 100_000 {
        shown += changes.next().unwrap().unwrap().weights.iter().sum::<i64>();
    }
    // Epochs with no rows, of which each takes the oldest one out.
    for epoch in 0..1_000 {
        let tx = engine.begin_at(second(86_400 + epoch)).unwrap();
        engine.wait(tx.commit().unwrap()).unwrap();
        let change = changes.next().unwrap().unwrap();
        assert_eq!(change.weights.to_vec(), [-1], "epoch {epoch}");
    }
    let kept = query(
        &engine,
        "SELECT SUM(rows) FROM alluvium.arrangements
         WHERE view = 'recent' AND operator = 'ArrangeTemporalFilter'",
    );
    let kept: u64 = kept[0].parse().unwrap();
    assert!((99_000..=100_000).contains(&kept), "{kept} rows are kept");
}

/// It says what is kept, and until when.
#[test]
fn explanations_tell_temporal_filters() {
    let engine = Engine::builder().workers(1).clock(|| second(7200)).open().unwrap();
    engine.execute("CREATE TABLE t (n BIGINT, ts TIMESTAMP)").unwrap();
    engine
        .execute(
            "CREATE VIEW v AS SELECT n FROM t WHERE ts BETWEEN NOW() - INTERVAL '1' HOUR AND NOW()",
        )
        .unwrap();
    let rows = "(1, '2024-01-01 01:30:00'), (2, '2024-01-01 03:00:00')";
    engine.execute(&format!("INSERT INTO t VALUES {rows}")).unwrap();
    engine.wait(engine.progress().committed).unwrap();
    let text = |statement: &str| match engine.session().execute(statement).unwrap().pop() {
        Some(Outcome::Text(text)) => text,
        other => panic!("it is a text, not {other:?}"),
    };
    let bound = "pruned: ts >= 2024-01-01T01:00:00, from NOW() at the time of the last change";
    let mut state = text("EXPLAIN STATE v");
    // It says how far the state was pruned, which follows the commits.
    for _ in 0..100 {
        if state.contains(bound) {
            break;
        }
        engine.execute("INSERT INTO t VALUES (3, NULL)").unwrap();
        engine.wait(engine.progress().committed).unwrap();
        state = text("EXPLAIN STATE v");
    }
    assert!(state.contains("rows in view in temporal_filter.2"), "{state}");
    assert!(state.contains("rows that come into view later in temporal_filter.1"), "{state}");
    assert!(state.contains(bound), "{state}");
    let view = text("EXPLAIN VIEW v");
    assert!(view.contains("temporal filter ts >= CAST(now() - '1 hours'"), "{view}");
}

/// Rows of a view of constants are there before there is a transaction, whose time may be any.
#[test]
fn constant_rows_are_in_view_before_the_first_transaction() {
    let engine = engine_with(
        2,
        "CREATE MATERIALIZED VIEW past AS SELECT TIMESTAMP '2020-01-01 00:00:00' AS ts;
         CREATE MATERIALIZED VIEW same AS SELECT ts FROM past WHERE ts IS NOT NULL;
         CREATE MATERIALIZED VIEW seen AS SELECT ts FROM same WHERE ts < NOW();
         CREATE TABLE t (ts TIMESTAMP)",
    );
    let rows = || query(&engine, "SELECT COUNT(*) FROM seen");
    assert_eq!(rows(), ["1"]);
    engine.execute("INSERT INTO t VALUES (NOW())").unwrap();
    assert_eq!(rows(), ["1"]);
}
