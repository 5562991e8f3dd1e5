//! NOW(): the time of the epoch, as the driver gives it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use alluvium::Engine;
use alluvium::arrow::array::{ArrayRef, Int64Array, RecordBatch};

use crate::support::{batch_lines, engine_with, lines, query, settled};

/// So many seconds after the start of 2024.
fn second(second: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(1_704_067_200 + second)
}

/// An engine whose clock shows as many seconds as it is told.
fn with_clock(workers: usize) -> (Engine, Arc<AtomicU64>) {
    let seconds = Arc::new(AtomicU64::new(0));
    let shown = seconds.clone();
    let clock = move || second(shown.load(Ordering::Relaxed));
    let engine = Engine::builder().workers(workers).clock(clock).open_in_memory();
    (engine.expect("an engine starts"), seconds)
}

/// Moves the time on, and waits until all views know.
fn tick(engine: &Engine, at: u64) {
    let epoch = engine.begin_at(second(at)).and_then(|tx| tx.commit()).expect("time goes on");
    engine.wait(epoch).expect("epochs complete");
}

/// Inserts numbers, each with a time of so many seconds.
fn insert(engine: &Engine, at: u64, rows: &[(i64, u64)]) {
    let values: Vec<String> = rows
        .iter()
        .map(|(n, at)| format!("({n}, TIMESTAMP '2024-01-01' + INTERVAL '{at} seconds')"))
        .collect();
    let mut tx = engine.begin_at(second(at)).expect("time goes on");
    let plan = format!("SELECT * FROM (VALUES {}) AS v (n, ts)", values.join(", "));
    for batch in engine.query(&plan).expect("rows") {
        tx.insert("t", batch).expect("rows of the table");
    }
    let epoch = tx.commit().expect("it commits");
    engine.wait(epoch).expect("epochs complete");
}

#[test]
fn rows_leave_a_window_of_the_last_seconds_as_time_goes_on() {
    for workers in 1..=3 {
        let engine = engine_with(
            workers,
            "CREATE TABLE t (n BIGINT, ts TIMESTAMP);
             CREATE MATERIALIZED VIEW recent AS
                SELECT n FROM t WHERE ts >= NOW() - INTERVAL 10 SECONDS AND ts <= NOW();
             CREATE MATERIALIZED VIEW counted AS
                SELECT COUNT(*) AS rows, MAX(NOW()) AS latest FROM t WHERE ts > NOW() - INTERVAL 10 SECONDS",
        );
        insert(&engine, 100, &[(1, 90), (2, 95), (3, 100), (4, 105), (5, 1)]);
        assert_eq!(query(&engine, "SELECT n FROM recent"), ["1", "2", "3"], "{workers} workers");
        tick(&engine, 105);
        assert_eq!(query(&engine, "SELECT n FROM recent"), ["2", "3", "4"]);
        assert_eq!(query(&engine, "SELECT * FROM counted"), ["2 2024-01-01T00:01:45Z"]);
        insert(&engine, 112, &[(6, 102)]);
        assert_eq!(query(&engine, "SELECT n FROM recent"), ["4", "6"]);
        tick(&engine, 1000);
        assert!(query(&engine, "SELECT n FROM recent").is_empty());
        assert_eq!(query(&engine, "SELECT * FROM counted"), ["0 NULL"]);
    }
}

#[test]
fn a_subscription_sees_only_what_time_has_changed() {
    for workers in 1..=3 {
        let engine = engine_with(
            workers,
            "CREATE TABLE t (n BIGINT, ts TIMESTAMP);
             CREATE VIEW old AS SELECT n, ts < LOCALTIMESTAMP AS over FROM t",
        );
        insert(&engine, 10, &[(1, 5), (2, 15), (3, 25)]);
        let mut changes = engine.subscribe("old").expect("it is an output");
        let first = changes.next().expect("a snapshot").expect("no error");
        assert_eq!(lines(&[first.rows]), ["1 true", "2 false", "3 false"]);
        tick(&engine, 16);
        let change = changes.next().expect("a change").expect("no error");
        let rows = batch_lines(&change.rows).into_iter();
        let mut weighted: Vec<_> = rows.zip(change.weights.iter().copied()).collect();
        weighted.sort();
        assert_eq!(weighted, [("2 false".to_string(), -1), ("2 true".to_string(), 1)]);
    }
}

#[test]
fn a_view_and_its_query_agree_at_every_epoch() {
    let select = "SELECT n, date_trunc('minute', ts) = date_trunc('minute', LOCALTIMESTAMP) AS same, \
                  ts > NOW() AS ahead, CURRENT_DATE AS today FROM t \
                  WHERE n % 3 <> 0 OR ts + INTERVAL '20 seconds' > LOCALTIMESTAMP";
    for workers in 1..=3 {
        let engine = engine_with(workers, "CREATE TABLE t (n BIGINT, ts TIMESTAMP)");
        engine.execute(&format!("CREATE VIEW plain AS {select}")).expect("a view");
        let mut state = 7 + workers as u64;
        let mut random = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) % below
        };
        let mut now = 0;
        for step in 0..20 {
            if step == 5 {
                let create = format!("CREATE MATERIALIZED VIEW late AS {select}");
                engine.execute(&create).expect("a view");
            }
            now += random(15);
            let rows: Vec<(i64, u64)> =
                (0..random(4) + 1).map(|_| (random(9) as i64, random(200))).collect();
            insert(&engine, now, &rows);
            let expected = query(&engine, select);
            assert_eq!(query(&engine, "SELECT * FROM plain"), expected, "step {step}");
            if step >= 5 {
                assert_eq!(query(&engine, "SELECT * FROM late"), expected, "step {step}");
            }
        }
    }
}

#[test]
fn a_default_of_now_is_the_time_of_the_transaction() {
    let engine = engine_with(
        2,
        "CREATE TABLE arrival (n BIGINT, at TIMESTAMP DEFAULT NOW(), day DATE DEFAULT CURRENT_DATE, more TEXT)",
    );
    let numbers: ArrayRef = Arc::new(Int64Array::from(vec![1, 2]));
    let rows = || RecordBatch::try_from_iter([("whatever", numbers.clone())]).expect("a batch");
    let mut tx = engine.begin_at(second(5)).expect("time goes on");
    tx.insert_columns("arrival", &["n"], rows()).expect("rows of the table");
    let missing = tx.insert_columns("arrival", &["m"], rows()).expect_err("no such column");
    assert_eq!(missing.to_string(), "\"arrival\" has no column \"m\"");
    let twice = RecordBatch::try_from_iter([("a", numbers.clone()), ("b", numbers)]);
    let twice = tx.insert_columns("arrival", &["n", "n"], twice.expect("a batch"));
    assert_eq!(twice.expect_err("one column").to_string(), "column \"n\" is named twice");
    tx.commit().expect("it commits");
    assert_eq!(
        settled(&engine, "SELECT * FROM arrival"),
        ["1 2024-01-01T00:00:05 2024-01-01 NULL", "2 2024-01-01T00:00:05 2024-01-01 NULL"]
    );
}

#[test]
fn statements_have_the_time_of_the_builders_clock() {
    let (engine, seconds) = with_clock(2);
    engine.execute("CREATE TABLE t (n BIGINT, at TIMESTAMP DEFAULT NOW())").expect("a table");
    let at = |at: u64, sql: &str| {
        seconds.store(at, Ordering::Relaxed);
        engine.execute(sql).expect("the statements are right");
    };
    at(3, "INSERT INTO t (n) VALUES (1)");
    at(4, "BEGIN; INSERT INTO t (n) VALUES (2); INSERT INTO t VALUES (3, LOCALTIMESTAMP); COMMIT");
    at(5, "UPDATE t SET at = NOW() WHERE n = 1");
    // Where the clock goes back, time stands still.
    at(2, "INSERT INTO t (n) VALUES (4)");
    let rows = settled(&engine, "SELECT n, EXTRACT(SECOND FROM at) FROM t");
    assert_eq!(rows, ["1 5", "2 4", "3 4", "4 5"]);
    // A query reads the last epoch, and so tells its time.
    seconds.store(60, Ordering::Relaxed);
    assert_eq!(query(&engine, "SELECT NOW()"), ["2024-01-01T00:00:05Z"]);
}

#[test]
fn a_plan_that_is_kept_has_the_time_of_each_run() {
    let (engine, seconds) = with_clock(1);
    engine
        .execute(
            "CREATE TABLE t (n BIGINT PRIMARY KEY, at TIMESTAMP DEFAULT NOW(), day DATE, zoned TIMESTAMPTZ)",
        )
        .expect("a table");
    let mut session = engine.session();
    let insert = "INSERT INTO t (n, day, zoned) VALUES ($1, CURRENT_DATE, NOW())";
    let inserted = session.prepare(insert).expect("a statement");
    let updated = session.prepare("UPDATE t SET zoned = NOW() WHERE n = $1").expect("a statement");
    for n in 0..4_i64 {
        seconds.store(86_400 * n.unsigned_abs() + 1, Ordering::Relaxed);
        session.execute_prepared(&inserted, &[n.into()]).expect("a row");
        // As a text, which is kept by its shape.
        session
            .execute(&format!("INSERT INTO t (n, day) VALUES ({}, CURRENT_DATE)", n + 10))
            .expect("a row");
        seconds.fetch_add(1, Ordering::Relaxed);
        session.execute_prepared(&updated, &[n.into()]).expect("a row");
    }
    let rows = settled(&engine, "SELECT n, at, day, zoned FROM t");
    let mut expected: Vec<String> = (0..4)
        .map(|n| {
            let day = format!("2024-01-0{}", n + 1);
            format!("{n} {day}T00:00:01 {day} {day}T00:00:02Z")
        })
        .chain((0..4).map(|n| format!("1{n} 2024-01-0{0}T00:00:01 2024-01-0{0} NULL", n + 1)))
        .collect();
    expected.sort();
    assert_eq!(rows, expected);
}

#[test]
fn time_does_not_go_backwards() {
    let engine = engine_with(1, "CREATE TABLE t (n BIGINT, ts TIMESTAMP)");
    insert(&engine, 10, &[(1, 1)]);
    let error = engine.begin_at(second(9)).map(drop).expect_err("it was later already");
    assert_eq!(error.to_string(), "the time is before that of the last epoch");
    // The turn to write was given back.
    insert(&engine, 10, &[(2, 1)]);
    assert_eq!(query(&engine, "SELECT COUNT(*) FROM t"), ["2"]);
}

#[test]
fn nobody_can_name_the_clock() {
    let engine = engine_with(
        1,
        "CREATE TABLE t (n BIGINT); CREATE MATERIALIZED VIEW v AS SELECT n, NOW() AS now FROM t",
    );
    assert!(engine.query("SELECT * FROM alluvium.clock").is_err());
    assert_eq!(engine.relations().expect("relations").len(), 2);
}
