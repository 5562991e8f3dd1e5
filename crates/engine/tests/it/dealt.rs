//! Resuming with another number of workers: rows are repartitioned, and no view is computed again.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use alluvium::{Builder, Engine};
use arrow::array::{ArrayRef, Int64Array, RecordBatch};

use crate::checkpoints::{DEFINITIONS, Minutes, change, shown, with};
use crate::support::query;

fn builder(directory: &Path, clock: &Minutes) -> Builder {
    let state = format!("file:{}", directory.display());
    with(clock).state(state).checkpoints(Duration::MAX, u64::MAX)
}

fn open(directory: &Path, workers: usize) -> Engine {
    builder(directory, &Minutes::default()).workers(workers).open().unwrap()
}

/// How many rows each worker keeps in the arrangements of some views.
fn rows_of(engine: &Engine, condition: &str) -> Vec<i64> {
    let sql = format!(
        "SELECT SUM(rows) FROM alluvium.arrangements WHERE {condition} GROUP BY worker ORDER BY worker"
    );
    query(engine, &sql).iter().map(|row| row.parse().unwrap()).collect()
}

/// Goes through `numbers` of workers, with a few changes in between, beside an engine that never ends.
fn goes_on(numbers: &[usize], memory: Option<usize>, checkpoint: impl Fn(usize) -> bool) {
    let directory = tempfile::tempdir().unwrap();
    let state = directory.path();
    let clock = Minutes::default();
    let judge = with(&clock).workers(1).open_in_memory().unwrap();
    judge.execute(DEFINITIONS).unwrap();
    let opened = |workers| builder(state, &clock).memory(memory).workers(workers).open().unwrap();
    let mut engine = opened(2);
    engine.execute(DEFINITIONS).unwrap();
    for (place, workers) in numbers.iter().enumerate() {
        for round in 0..3 {
            let round = 3 * place as i64 + round;
            clock.store(round as u64 * 11, Ordering::Relaxed);
            change(&engine, round);
            change(&judge, round);
            if round % 3 == 1 && checkpoint(place) {
                engine.execute("CHECKPOINT").unwrap();
            }
        }
        let epoch = engine.progress().committed;
        assert_eq!(shown(&engine), shown(&judge), "before there are {workers} workers");
        drop(engine);
        engine = opened(*workers);
        assert_eq!(engine.progress().committed, epoch);
        assert_eq!(shown(&engine), shown(&judge), "{workers} workers");
    }
    // All that came in is taken back.
    for engine in [&engine, &judge] {
        engine.execute("DELETE FROM accounts; DELETE FROM notes").unwrap();
    }
    assert_eq!(shown(&engine), shown(&judge));
}

#[test]
fn everything_goes_on_with_other_numbers_of_workers() {
    goes_on(&[3, 1, 4, 4, 2, 5, 1, 2], None, |_| true);
    // Some are repartitioned without a checkpoint after that.
    goes_on(&[1, 3, 2, 2, 4, 3], None, |place| place % 2 == 0);
}

#[test]
fn everything_goes_on_with_other_numbers_of_workers_where_all_state_is_in_files() {
    goes_on(&[3, 1, 4, 2, 2, 5], Some(1), |place| place != 3);
}

#[test]
fn a_view_of_rows_that_are_not_kept_goes_on_with_another_number_of_workers() {
    let directory = tempfile::tempdir().unwrap();
    let engine = open(directory.path(), 1);
    engine
        .execute(
            "CREATE TABLE ticks (n INT) WITH ('materialized' = 'false');
             CREATE MATERIALIZED VIEW ticked AS SELECT n % 10 AS d, SUM(n) AS n FROM ticks GROUP BY n % 10;
             INSERT INTO ticks SELECT v FROM UNNEST(range(0, 1000)) AS r(v)",
        )
        .unwrap();
    let sum = "SELECT SUM(n), COUNT(*) FROM ticked";
    engine.execute("CHECKPOINT").unwrap();
    drop(engine);
    for (round, workers) in [3, 2, 5].into_iter().enumerate() {
        let engine = open(directory.path(), workers);
        let expected = 499_500 + 7 * round;
        assert_eq!(query(&engine, sum), [format!("{expected} 10")], "{workers} workers");
        engine.execute("INSERT INTO ticks VALUES (7); CHECKPOINT").unwrap();
    }
}

#[test]
fn each_row_is_kept_once_and_all_workers_keep_some() {
    let directory = tempfile::tempdir().unwrap();
    let engine = open(directory.path(), 2);
    engine
        .execute(
            "CREATE TABLE t (id BIGINT PRIMARY KEY, g BIGINT);
             CREATE TABLE bag (a BIGINT, b DOUBLE);
             CREATE MATERIALIZED VIEW plain AS SELECT b, a + 1 AS a FROM bag;
             CREATE MATERIALIZED VIEW sums AS SELECT g, COUNT(*) AS n FROM t GROUP BY g;
             INSERT INTO t SELECT v, v % 700 FROM UNNEST(range(0, 9000)) AS r(v);
             INSERT INTO bag SELECT v, v / 3.0 FROM UNNEST(range(0, 5000)) AS r(v);
             CHECKPOINT",
        )
        .unwrap();
    drop(engine);
    for workers in [3, 1, 2, 7] {
        let engine = open(directory.path(), workers);
        for (view, rows) in [("t", 9000), ("bag", 5000), ("plain", 5000), ("sums", 700)] {
            // The groups are in the aggregate and in the view.
            let rows = if view == "sums" { 2 * rows } else { rows };
            let kept = rows_of(&engine, &format!("view = '{view}'"));
            assert_eq!(kept.len(), workers, "{view}");
            assert_eq!(kept.iter().sum::<i64>(), rows, "{view}, {workers} workers");
            let fair = rows / workers as i64;
            assert!(
                kept.iter().all(|kept| (fair / 2..=2 * fair).contains(kept)),
                "{view} {kept:?}"
            );
        }
    }
}

#[test]
fn what_one_worker_has_made_another_takes_back() {
    let directory = tempfile::tempdir().unwrap();
    let engine = open(directory.path(), 2);
    engine
        .execute(
            "CREATE TABLE bag (a BIGINT, b BIGINT);
             CREATE MATERIALIZED VIEW plain AS SELECT b, a + 1 AS a FROM bag;
             CREATE MATERIALIZED VIEW failing AS SELECT 10 / b AS c FROM bag;
             CREATE MATERIALIZED VIEW first AS SELECT a FROM bag ORDER BY a DESC LIMIT 3;
             INSERT INTO bag SELECT v, v % 50 FROM UNNEST(range(0, 5000)) AS r(v);
             CHECKPOINT",
        )
        .unwrap();
    drop(engine);
    for workers in [3, 1, 2, 7] {
        let engine = open(directory.path(), workers);
        engine.execute("DELETE FROM bag WHERE a >= 2500; CHECKPOINT").unwrap();
        assert_eq!(query(&engine, "SELECT COUNT(*), SUM(a) FROM plain"), ["2500 3126250"]);
        assert_eq!(query(&engine, "SELECT COUNT(*) FROM alluvium.errors"), ["50"]);
        assert_eq!(query(&engine, "SELECT a FROM first"), ["2497", "2498", "2499"]);
        engine
            .execute("INSERT INTO bag SELECT v, v % 50 FROM UNNEST(range(2500, 5000)) AS r(v); CHECKPOINT")
            .unwrap();
        assert_eq!(query(&engine, "SELECT COUNT(*), SUM(a) FROM plain"), ["5000 12502500"]);
        assert_eq!(query(&engine, "SELECT COUNT(*) FROM alluvium.errors"), ["100"]);
        assert_eq!(query(&engine, "SELECT a FROM first"), ["4997", "4998", "4999"]);
    }
}

#[test]
fn what_workers_have_counted_is_counted_on() {
    let directory = tempfile::tempdir().unwrap();
    let counted = |engine: &Engine| query(engine, "SELECT refused_deletions FROM alluvium.tables");
    let refuse = |engine: &Engine| {
        let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(0..100));
        let rows = RecordBatch::try_from_iter([("n", numbers)]).unwrap();
        let mut transaction = engine.begin().unwrap();
        transaction.delete("t", rows).unwrap();
        engine.wait(transaction.commit().unwrap()).unwrap();
    };
    let engine = open(directory.path(), 3);
    engine.execute("CREATE TABLE t (n BIGINT)").unwrap();
    refuse(&engine);
    assert_eq!(counted(&engine), ["100"]);
    engine.execute("CHECKPOINT").unwrap();
    drop(engine);
    let engine = open(directory.path(), 2);
    assert_eq!(counted(&engine), ["100"]);
    refuse(&engine);
    engine.execute("CHECKPOINT").unwrap();
    drop(engine);
    assert_eq!(counted(&open(directory.path(), 4)), ["200"]);
}

#[test]
fn dealt_rows_are_part_of_the_next_checkpoint_though_nothing_was_recorded() {
    let directory = tempfile::tempdir().unwrap();
    let workers = || {
        let state = alluvium::StateDirectory::open(directory.path()).unwrap();
        let last = state.checkpoints().unwrap().pop().unwrap();
        (last.number, last.workers)
    };
    let engine = open(directory.path(), 1);
    engine
        .execute("CREATE TABLE t (n INT); INSERT INTO t VALUES (1), (2), (3); CHECKPOINT")
        .unwrap();
    drop(engine);
    assert_eq!(workers(), (1, 1));
    // Until then nothing is published.
    drop(open(directory.path(), 2));
    assert_eq!(workers(), (1, 1));
    let engine = open(directory.path(), 2);
    engine.execute("CHECKPOINT; CHECKPOINT").unwrap();
    drop(engine);
    assert_eq!(workers(), (2, 2));
    assert_eq!(query(&open(directory.path(), 2), "SELECT SUM(n) FROM t"), ["6"]);
}
