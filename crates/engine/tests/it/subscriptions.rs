//! The changes of a view, epoch by epoch.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use alluvium::arrow::array::{ArrayRef, Int64Array, RecordBatch};
use alluvium::{Change, Engine, Subscription};

use crate::support::{batch_lines, engine_with, query, without_hanging};

const TABLES: &str = "
    CREATE TABLE t (k BIGINT, v BIGINT);
    CREATE MATERIALIZED VIEW m AS SELECT k, SUM(v) AS total FROM t GROUP BY k;
    CREATE VIEW p AS SELECT k, v FROM t WHERE v > 2 UNION ALL SELECT k, v FROM t WHERE v < 9";

/// The sum of a subscription's changes.
#[derive(Clone, Default)]
struct Sum(BTreeMap<String, i64>);

impl Sum {
    fn add(&mut self, change: &Change) {
        if change.is_snapshot {
            self.0.clear();
        }
        assert_eq!(change.rows.num_rows(), change.weights.len());
        for (line, weight) in batch_lines(&change.rows).into_iter().zip(change.weights.iter()) {
            assert_ne!(*weight, 0);
            *self.0.entry(line).or_default() += weight;
        }
        self.0.retain(|_, weight| *weight != 0);
        assert!(self.0.values().all(|weight| *weight > 0), "{:?}", self.0);
    }

    fn lines(&self) -> Vec<String> {
        self.0.iter().flat_map(|(line, weight)| vec![line.clone(); *weight as usize]).collect()
    }
}

fn take(subscription: &mut Subscription) -> Change {
    subscription.next().expect("there is a change").expect("the engine is well")
}

fn execute_and_wait(engine: &Engine, sql: &str) {
    engine.execute(sql).expect("the statements are right");
    engine.wait(engine.progress().committed).expect("the engine is well");
}

#[test]
fn the_changes_add_up_to_the_contents() {
    for workers in 1..=3 {
        let engine = engine_with(workers, TABLES);
        execute_and_wait(&engine, "INSERT INTO t VALUES (1, 1), (2, 5), (2, 5)");
        let mut sums = [Sum::default(), Sum::default(), Sum::default()];
        let names = ["m", "p", "t"];
        let mut subscriptions =
            names.map(|name| engine.subscribe(name).expect("it can be subscribed to"));
        let mut last = [0; 3];
        for step in 0..20 {
            execute_and_wait(
                &engine,
                &format!("INSERT INTO t VALUES ({}, {step}), (2, 3)", step % 4),
            );
            execute_and_wait(&engine, &format!("DELETE FROM t WHERE v = {}", step / 2));
            execute_and_wait(&engine, "UPDATE t SET v = v + 1 WHERE k = 3");
            for (index, subscription) in subscriptions.iter_mut().enumerate() {
                while let Some(change) = subscription.try_next().expect("the engine is well") {
                    assert!(change.epoch > last[index], "epochs ascend");
                    last[index] = change.epoch;
                    sums[index].add(&change);
                }
                assert_eq!(
                    sums[index].lines(),
                    query(&engine, &format!("SELECT * FROM {}", names[index]))
                );
            }
        }
    }
}

#[test]
fn the_first_change_is_the_snapshot_even_if_it_is_empty() {
    for workers in 1..=3 {
        let engine = engine_with(workers, TABLES);
        let mut subscription = engine.subscribe("m").expect("the view exists");
        let first = take(&mut subscription);
        assert_eq!((first.epoch, first.rows.num_rows(), first.rows.num_columns()), (0, 0, 2));
        assert!(first.is_snapshot);
        execute_and_wait(&engine, "INSERT INTO t VALUES (1, 1)");
        let change = take(&mut subscription);
        assert_eq!((change.epoch, change.is_snapshot), (1, false));
        let mut late = engine.subscribe("m").expect("the view exists");
        let first = take(&mut late);
        assert_eq!((first.epoch, batch_lines(&first.rows)), (1, vec!["1 1".to_owned()]));
    }
}

#[test]
fn epochs_that_change_nothing_are_not_delivered() {
    let engine = engine_with(2, TABLES);
    let mut subscription = engine.subscribe("m").expect("the view exists");
    take(&mut subscription);
    execute_and_wait(&engine, "INSERT INTO t VALUES (1, 1)");
    execute_and_wait(&engine, "BEGIN; INSERT INTO t VALUES (1, 5), (1, -5); COMMIT");
    execute_and_wait(&engine, "INSERT INTO t VALUES (1, 2)");
    assert_eq!(take(&mut subscription).epoch, 1);
    let change = take(&mut subscription);
    // The group exists with the same total: the second epoch is no change.
    assert_eq!((change.epoch, change.rows.num_rows()), (3, 2));
}

#[test]
fn a_subscription_ends_with_its_view_and_with_its_engine() {
    let engine = engine_with(2, TABLES);
    let mut dropped = engine.subscribe("p").expect("the view exists");
    let mut closed = engine.subscribe("m").expect("the view exists");
    take(&mut dropped);
    take(&mut closed);
    engine.execute("DROP VIEW p").expect("nothing uses it");
    assert!(without_hanging(move || dropped.next().is_none()));
    drop(engine);
    assert!(without_hanging(move || closed.next().is_none()));
}

#[test]
fn a_subscription_can_be_dropped_and_data_flows_on() {
    let engine = engine_with(2, TABLES);
    for step in 0..20 {
        let mut subscription = engine.subscribe("m").expect("the view exists");
        execute_and_wait(&engine, &format!("INSERT INTO t VALUES (1, {step})"));
        take(&mut subscription);
    }
    assert_eq!(query(&engine, "SELECT * FROM m"), ["1 190"]);
}

#[test]
fn a_subscriber_that_is_far_behind_holds_commits_up() {
    let engine = engine_with(1, TABLES);
    let mut subscription = engine.subscribe("m").expect("the view exists");
    let writer = std::thread::spawn({
        let engine = engine.clone();
        move || {
            for value in 1..=1500 {
                let column = |value: i64| -> ArrayRef { Arc::new(Int64Array::from(vec![value])) };
                let row = RecordBatch::try_from_iter([("k", column(1)), ("v", column(value))]);
                let mut transaction = engine.begin().expect("nobody else writes");
                transaction.insert("t", row.expect("two columns")).expect("a row of the table");
                transaction.commit().expect("it commits");
            }
        }
    });
    // Until commits stop, which may be right after the 1,024th: with the snapshot, 1,025 deliveries wait then.
    let committed = || engine.progress().committed;
    loop {
        let before = committed();
        std::thread::sleep(Duration::from_millis(100));
        if before >= 1024 && before == committed() {
            break;
        }
    }
    assert!(committed() < 1500 && !writer.is_finished(), "1,500 commits were not held up");
    let mut last = 0;
    while last < 1500 {
        last = take(&mut subscription).epoch;
    }
    without_hanging(move || writer.join().expect("the writer does not fail"));
}

#[test]
fn a_local_view_is_no_output() {
    let engine =
        engine_with(1, "CREATE TABLE t (a BIGINT); CREATE LOCAL VIEW l AS SELECT a FROM t");
    let Err(error) = engine.subscribe("l") else { panic!("a local view has no changes") };
    assert_eq!(error.to_string(), "\"l\" is a local view, which is not an output");
    assert!(engine.subscribe("x").is_err());
}
