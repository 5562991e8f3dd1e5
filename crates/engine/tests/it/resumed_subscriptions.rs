//! Subscribers that resume where they were.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::collections::BTreeMap;
use std::thread::sleep;
use std::time::Duration;

use alluvium::{Builder, Engine, Error, Subscription};
use tempfile::TempDir;

use crate::support::{batch_lines, query};

const DEFINITIONS: &str = "CREATE TABLE t (k BIGINT PRIMARY KEY, v BIGINT);
    CREATE TABLE u (v BIGINT);
    CREATE MATERIALIZED VIEW m AS SELECT v % 3 AS g, SUM(k) AS s, COUNT(*) AS c FROM t GROUP BY v % 3;
    CREATE MATERIALIZED VIEW j AS SELECT t.k, u.v FROM t JOIN u ON t.v = u.v;";

const RELATIONS: [&str; 4] = ["t", "u", "m", "j"];

/// A copy of a relation that only changes tell what is in it.
#[derive(Clone, Default)]
struct Replica {
    rows: BTreeMap<String, i64>,
    /// It has all changes up to this epoch.
    epoch: u64,
}

impl Replica {
    /// Takes all changes that are there.
    fn take(&mut self, subscription: &mut Subscription) {
        while let Some(change) = subscription.try_next().unwrap() {
            if change.is_snapshot {
                self.rows.clear();
            } else {
                assert!(change.epoch > self.epoch, "no change comes twice");
            }
            self.epoch = change.epoch;
            for (row, weight) in batch_lines(&change.rows).into_iter().zip(change.weights.iter()) {
                assert_ne!(*weight, 0);
                *self.rows.entry(row).or_default() += weight;
            }
            self.rows.retain(|_, weight| *weight != 0);
        }
    }

    /// Resumes in an engine, or begins with a snapshot; returns whether it resumes.
    fn resume(&mut self, engine: &Engine, name: &str) -> bool {
        let (mut subscription, goes_on) = match engine.subscribe_from(name, self.epoch) {
            Ok(subscription) => (subscription, true),
            Err(Error::Gone { message, oldest, .. }) => {
                let oldest = oldest.unwrap();
                assert!(oldest > self.epoch || self.epoch > engine.progress().committed);
                assert!(
                    oldest <= self.epoch || message.contains(&format!("behind epoch {oldest}"))
                );
                (engine.subscribe(name).unwrap(), false)
            }
            Err(error) => panic!("{error}"),
        };
        engine.wait(engine.progress().committed).unwrap();
        self.take(&mut subscription);
        self.epoch = engine.progress().committed;
        goes_on
    }

    fn lines(&self) -> Vec<String> {
        let copies = |(row, weight): (&String, &i64)| vec![row.clone(); *weight as usize];
        self.rows.iter().flat_map(copies).collect()
    }
}

/// Changes rows in a way that depends on the number.
fn change(engine: &Engine, number: u64) {
    let sql = match number % 5 {
        0 => format!("DELETE FROM t WHERE k % 7 = {}; DELETE FROM u WHERE v = 1", number % 7),
        1 => "UPDATE t SET v = v + 1".to_owned(),
        2 => format!("INSERT INTO u VALUES ({}), (1), (2)", number % 4),
        _ => format!("INSERT INTO t VALUES ({number}, {}), ({}, 2)", number % 6, 1000 + number),
    };
    engine.execute(&sql).unwrap();
}

fn assert_goes_on(engine: &Engine, replica: &Replica, name: &str, goes_on: bool) {
    let mut resumed = replica.clone();
    let (epoch, last) = (replica.epoch, engine.progress().committed);
    assert_eq!(resumed.resume(engine, name), goes_on, "{name} from {epoch}, now {last}");
    assert_eq!(
        resumed.lines(),
        query(engine, &format!("SELECT * FROM {name}")),
        "{name} from {epoch}"
    );
}

#[test]
fn a_subscriber_goes_on_as_far_back_as_changes_are_kept() {
    for (workers, history) in [(1, 6), (2, 0), (3, 9)] {
        for memory in [usize::MAX, 1 << 20] {
            let builder = Engine::builder().workers(workers).history(history).memory(memory);
            let engine = builder.open_in_memory().unwrap();
            engine.execute(DEFINITIONS).unwrap();
            change(&engine, 3);
            let mut before = Vec::new();
            for number in 4..40 {
                for name in RELATIONS {
                    let mut replica = Replica::default();
                    assert!(!replica.resume(&engine, name), "nobody has had epoch 0");
                    before.push((name, replica));
                }
                change(&engine, number);
                let last = engine.progress().committed;
                before.retain(|(_, replica)| replica.epoch + history + 3 >= last);
                for (name, replica) in &before {
                    let is_kept = replica.epoch + history >= last;
                    assert_goes_on(&engine, replica, name, is_kept);
                }
            }
        }
    }
}

#[test]
fn a_subscriber_goes_on_after_a_restart_with_any_number_of_workers() {
    let directory = TempDir::new().unwrap();
    let state = format!("file:{}", directory.path().display());
    let open =
        |workers| Engine::builder().workers(workers).history(8).state(&state).open().unwrap();
    let mut engine = open(2);
    engine.execute(DEFINITIONS).unwrap();
    let mut replicas: BTreeMap<_, _> =
        RELATIONS.iter().map(|name| (*name, Replica::default())).collect();
    for number in 3..9 {
        change(&engine, number);
    }
    for (name, replica) in &mut replicas {
        replica.resume(&engine, name);
    }
    let old = replicas.clone();
    for round in 0..6 {
        // With a checkpoint the journal has nothing of what the subscriber missed.
        change(&engine, 10 + 2 * round);
        if round % 2 == 0 {
            engine.execute("CHECKPOINT").unwrap();
        }
        change(&engine, 11 + 2 * round);
        drop(engine);
        engine = open([2, 2, 3, 1, 4, 2][round as usize]);
        for (name, replica) in &mut replicas {
            assert_goes_on(&engine, replica, name, true);
            replica.resume(&engine, name);
        }
    }
    for (name, replica) in &old {
        assert_goes_on(&engine, replica, name, false);
    }
}

#[test]
fn a_subscriber_of_a_relation_that_was_made_again_begins_anew() {
    let directory = TempDir::new().unwrap();
    let builder = || -> Builder {
        let state = format!("file:{}", directory.path().display());
        Engine::builder().workers(1).history(100).state(state)
    };
    let engine = builder().open().unwrap();
    engine.execute(DEFINITIONS).unwrap();
    change(&engine, 3);
    change(&engine, 4);
    let mut replica = Replica::default();
    replica.resume(&engine, "m");
    // It is made again in the epoch that the subscriber has had, also if that is a checkpoint's.
    engine
        .execute(
            "CREATE OR REPLACE MATERIALIZED VIEW m AS SELECT v % 3 AS g, SUM(k) AS s, COUNT(*) AS c
        FROM t WHERE k < 1000 GROUP BY v % 3",
        )
        .unwrap();
    assert_goes_on(&engine, &replica, "m", false);
    engine.execute("CHECKPOINT").unwrap();
    drop(engine);
    let engine = builder().open().unwrap();
    assert_goes_on(&engine, &replica, "m", false);
    change(&engine, 6);
    assert_goes_on(&engine, &replica, "m", false);
    replica.resume(&engine, "m");
    change(&engine, 7);
    assert_goes_on(&engine, &replica, "m", true);
    // The changes of a plain view are not kept, and no subscriber has had a future epoch.
    engine.execute("CREATE VIEW p AS SELECT * FROM t").unwrap();
    let last = engine.progress().committed;
    let gone = |name, epoch| match engine.subscribe_from(name, epoch) {
        Err(Error::Gone { oldest, .. }) => oldest,
        other => panic!("{name} goes on behind {epoch}: {other:?}"),
    };
    assert_eq!(gone("p", last), None);
    assert!(gone("m", last + 1).is_some_and(|oldest| oldest <= last));
    assert!(matches!(engine.subscribe_from("absent", 1), Err(Error::Sql { .. })));
}

const HOUR: Duration = Duration::from_secs(3600);

#[test]
fn changes_are_kept_for_a_time_and_over_so_many_bytes() {
    let moment = Duration::from_millis(1);
    for (epochs, time, bytes, is_kept) in [
        (0, HOUR, u64::MAX, true),
        (1000, Duration::ZERO, 1 << 30, true),
        (0, HOUR, 100, false),
        (1000, HOUR, 100, false),
        (1000, Duration::ZERO, 100, false),
        (1000, moment, u64::MAX, true),
        (10, moment, u64::MAX, false),
    ] {
        let builder = Engine::builder().workers(2).history(epochs);
        let builder = builder.history_time(time).history_bytes(bytes);
        let engine = builder.open_in_memory().unwrap();
        engine.execute(DEFINITIONS).unwrap();
        change(&engine, 3);
        let mut replicas: BTreeMap<_, _> =
            RELATIONS.iter().map(|name| (*name, Replica::default())).collect();
        for (name, replica) in &mut replicas {
            replica.resume(&engine, name);
        }
        for number in 4..100 {
            change(&engine, number);
        }
        sleep(10 * moment);
        for (name, replica) in &replicas {
            assert_goes_on(&engine, replica, name, is_kept);
        }
    }
}

#[test]
fn changes_that_are_kept_for_a_time_are_there_after_a_restart() {
    let directory = TempDir::new().unwrap();
    let state = format!("file:{}", directory.path().display());
    let open = |workers, time| {
        Engine::builder().workers(workers).history_time(time).state(&state).open().unwrap()
    };
    let mut engine = open(2, HOUR);
    engine.execute(DEFINITIONS).unwrap();
    change(&engine, 3);
    let mut replicas: BTreeMap<_, _> =
        RELATIONS.iter().map(|name| (*name, Replica::default())).collect();
    for (name, replica) in &mut replicas {
        replica.resume(&engine, name);
    }
    for round in 0..4_u64 {
        for number in 0..10 {
            change(&engine, 10 + 10 * round + number);
        }
        // With a checkpoint the journal has nothing of what the subscriber missed.
        if round % 2 == 0 {
            engine.execute("CHECKPOINT").unwrap();
        }
        drop(engine);
        engine = open([1, 3, 3, 2][round as usize], HOUR);
        for (name, replica) in &replicas {
            assert_goes_on(&engine, replica, name, true);
        }
    }
    // The engine that opens it decides how much of it stays.
    drop(engine);
    let engine = open(2, Duration::from_millis(1));
    change(&engine, 100);
    sleep(Duration::from_millis(10));
    for (name, replica) in &replicas {
        assert_goes_on(&engine, replica, name, false);
    }
}
