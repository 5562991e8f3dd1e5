//! Many subscribers at once: how they wait, what they share, and what happens to those that fall behind.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;
use std::time::{Duration, Instant};

use alluvium::arrow::array::{ArrayRef, Int64Array, RecordBatch};
use alluvium::{Change, Engine, Error, Policy, SubscribeOptions, Subscription};
use futures::Stream;
use tempfile::TempDir;

use crate::support::{PATIENCE, batch_lines, engine_with, query, without_hanging};

const TABLES: &str = "
    CREATE TABLE t (k BIGINT, v BIGINT);
    CREATE MATERIALIZED VIEW m AS SELECT k, SUM(v) AS s FROM t GROUP BY k;
    CREATE VIEW p AS SELECT k, COUNT(*) AS c FROM t GROUP BY k";

/// Counts how often it is woken.
#[derive(Default)]
struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

fn poll(subscription: &mut Subscription, count: &Arc<Count>) -> Poll<Option<Change>> {
    let waker = Waker::from(count.clone());
    let next = Pin::new(subscription).poll_next(&mut Context::from_waker(&waker));
    next.map(|change| change.map(Result::unwrap))
}

fn insert(engine: &Engine, k: i64, v: i64) -> u64 {
    let column = |value: i64| -> ArrayRef { Arc::new(Int64Array::from(vec![value])) };
    let row = RecordBatch::try_from_iter([("k", column(k)), ("v", column(v))]).unwrap();
    let mut transaction = engine.begin().unwrap();
    transaction.insert("t", row).unwrap();
    transaction.commit().unwrap()
}

/// The rows that changes have told of.
#[derive(Clone, Default)]
struct Replica {
    rows: BTreeMap<String, i64>,
    epoch: u64,
}

impl Replica {
    fn apply(&mut self, change: &Change) {
        if change.is_snapshot {
            self.rows.clear();
        }
        assert!(change.is_snapshot || change.epoch > self.epoch, "epochs ascend");
        for (row, weight) in batch_lines(&change.rows).into_iter().zip(change.weights.iter()) {
            assert_ne!(*weight, 0);
            *self.rows.entry(row).or_default() += weight;
        }
        self.rows.retain(|_, weight| *weight != 0);
        self.epoch = change.epoch;
    }

    fn lines(&self) -> Vec<String> {
        let copies = |(row, weight): (&String, &i64)| vec![row.clone(); *weight as usize];
        self.rows.iter().flat_map(copies).collect()
    }
}

#[test]
fn a_task_is_woken_once_something_is_there_and_leaves_nothing_when_it_gives_up() {
    let engine = engine_with(2, TABLES);
    let mut subscription = engine.subscribe("m").unwrap();
    let (count, woken) =
        (Arc::new(Count::default()), |count: &Count| count.0.load(Ordering::SeqCst));
    assert!(
        matches!(poll(&mut subscription, &count), Poll::Ready(Some(change)) if change.is_snapshot)
    );
    assert!(poll(&mut subscription, &count).is_pending());
    // Another table's epochs are nothing to it.
    engine.execute("CREATE TABLE u (a BIGINT); INSERT INTO u VALUES (1), (2)").unwrap();
    engine.wait(1).unwrap();
    assert_eq!(woken(&count), 0);
    engine.wait(insert(&engine, 1, 1)).unwrap();
    assert_eq!(woken(&count), 1);
    assert!(
        matches!(poll(&mut subscription, &count), Poll::Ready(Some(change)) if change.epoch == 2)
    );
    assert!(poll(&mut subscription, &count).is_pending());
    assert_eq!(Arc::strong_count(&count), 2, "the feed keeps one waker");
    assert!(poll(&mut subscription, &count).is_pending());
    assert_eq!(Arc::strong_count(&count), 2, "however often it waits");
    // The last wait is that of the call that blocks, which has given up.
    assert!(subscription.next_timeout(Duration::from_millis(1)).unwrap().is_none());
    assert_eq!((Arc::strong_count(&count), woken(&count)), (1, 1));
    assert!(poll(&mut subscription, &count).is_pending());
    drop(subscription);
    assert_eq!(Arc::strong_count(&count), 1);
    // The end wakes it, too.
    let mut subscription = engine.subscribe("m").unwrap();
    assert!(poll(&mut subscription, &count).is_ready());
    assert!(poll(&mut subscription, &count).is_pending());
    engine.execute("DROP VIEW m").unwrap();
    assert_eq!(woken(&count), 2);
    assert!(matches!(poll(&mut subscription, &count), Poll::Ready(None)));
    assert!(subscription.is_over());
}

#[test]
fn of_a_thousand_waiters_those_are_woken_whose_relation_has_changed() {
    let engine = engine_with(2, TABLES);
    engine
        .execute(
            "CREATE TABLE u (k BIGINT, v BIGINT);
             CREATE MATERIALIZED VIEW n AS SELECT k, SUM(v) AS s FROM u GROUP BY k",
        )
        .unwrap();
    let mut waiters: Vec<(Subscription, Arc<Count>)> = (0..1000)
        .map(|number| {
            let relation = if number % 10 == 0 { "n" } else { "m" };
            (engine.subscribe(relation).unwrap(), Arc::default())
        })
        .collect();
    for (subscription, count) in &mut waiters {
        assert!(poll(subscription, count).is_ready());
        assert!(poll(subscription, count).is_pending());
    }
    // Epochs that wake no subscriber, and then one for a tenth of them.
    for k in 0..50 {
        engine
            .execute(&format!("CREATE TABLE t{k} (a BIGINT); INSERT INTO t{k} VALUES (1)"))
            .unwrap();
    }
    engine.execute("INSERT INTO u VALUES (1, 1)").unwrap();
    engine.wait(engine.progress().committed).unwrap();
    for (number, (subscription, count)) in waiters.iter_mut().enumerate() {
        let has_changed = number % 10 == 0;
        assert_eq!(count.0.load(Ordering::SeqCst), usize::from(has_changed), "waiter {number}");
        assert_eq!(poll(subscription, count).is_ready(), has_changed, "waiter {number}");
    }
}

#[test]
fn a_call_that_waits_ends_when_it_is_interrupted_and_the_subscription_goes_on() {
    let engine = engine_with(2, TABLES);
    let mut subscription = engine.subscribe("m").unwrap();
    subscription.next().unwrap().unwrap();
    let interrupt = engine.interrupt();
    let watched = interrupt.clone();
    let waiting = thread::spawn(move || {
        let interrupted = watched.watch(|| subscription.next());
        assert!(matches!(interrupted, Some(Err(Error::Interrupted))), "{interrupted:?}");
        subscription
    });
    thread::sleep(Duration::from_millis(100));
    interrupt.request();
    let mut subscription = without_hanging(move || waiting.join().unwrap());
    assert!(!subscription.is_over());
    let epoch = insert(&engine, 1, 1);
    assert_eq!(subscription.next().unwrap().unwrap().epoch, epoch);
}

#[test]
fn a_call_waits_no_longer_than_it_may_and_ends_with_the_subscription() {
    let engine = engine_with(1, TABLES);
    let mut subscription = engine.subscribe("m").unwrap();
    assert!(subscription.next_timeout(Duration::ZERO).unwrap().is_some_and(|it| it.is_snapshot));
    let start = Instant::now();
    assert!(subscription.next_timeout(Duration::from_millis(50)).unwrap().is_none());
    assert!(start.elapsed() >= Duration::from_millis(50) && !subscription.is_over());
    let epoch = insert(&engine, 1, 1);
    let change = subscription.next_timeout(PATIENCE).unwrap().unwrap();
    assert_eq!(change.epoch, epoch);
    let waiting = thread::spawn(move || {
        assert!(subscription.next_timeout(PATIENCE).unwrap().is_none());
        assert!(subscription.is_over() && subscription.next().is_none());
    });
    engine.execute("DROP VIEW m").unwrap();
    without_hanging(move || waiting.join().unwrap());
}

#[test]
fn subscribers_of_a_relation_share_one_dataflow_which_goes_with_the_last() {
    const DATAFLOWS: &str = "SELECT COUNT(DISTINCT \"view\") FROM alluvium.arrangements
        WHERE \"view\" LIKE 'subscription%'";
    for name in ["p", "m"] {
        let engine = engine_with(2, TABLES);
        insert(&engine, 1, 1);
        let mut subscriptions: Vec<Subscription> = Vec::new();
        let mut replicas: Vec<Replica> = Vec::new();
        for step in 0..100 {
            subscriptions.push(engine.subscribe(name).unwrap());
            replicas.push(Replica::default());
            engine.wait(insert(&engine, step % 7, step)).unwrap();
            // Some read as they come, some later, and each has the same.
            for (number, subscription) in subscriptions.iter_mut().enumerate() {
                if number % 3 == 0 || step == 99 {
                    while let Some(change) = subscription.try_next().unwrap() {
                        assert_eq!(change.is_snapshot, replicas[number].epoch == 0);
                        replicas[number].apply(&change);
                    }
                }
            }
        }
        let contents = query(&engine, &format!("SELECT * FROM {name}"));
        assert!(replicas.iter().all(|replica| replica.lines() == contents));
        if name == "p" {
            assert_eq!(query(&engine, DATAFLOWS), ["1"]);
        }
        subscriptions.truncate(1);
        let epoch = insert(&engine, 1, 1);
        assert_eq!(subscriptions[0].next().unwrap().unwrap().epoch, epoch);
        drop(subscriptions);
        engine.wait(insert(&engine, 2, 2)).unwrap();
        assert_eq!(query(&engine, DATAFLOWS), ["0"]);
    }
}

#[test]
fn a_subscriber_that_is_too_far_behind_is_disconnected_and_the_others_go_on() {
    let engine = engine_with(2, TABLES);
    let options = SubscribeOptions::new().policy(Policy::Disconnect).epochs(10);
    let mut slow = engine.subscribe_with("p", options).unwrap();
    let mut quick = engine.subscribe_with("p", options).unwrap();
    let mut patient = engine.subscribe("p").unwrap();
    let mut by_bytes = engine.subscribe_with("t", options.epochs(u64::MAX).bytes(100)).unwrap();
    assert!(slow.next().unwrap().unwrap().is_snapshot);
    for step in 0..20 {
        engine.wait(insert(&engine, step, step)).unwrap();
        while quick.try_next().unwrap().is_some() {}
    }
    match slow.next() {
        Some(Err(Error::Behind { relation, epochs: 11, bytes, .. })) => {
            assert!(relation == "p" && bytes > 0);
        }
        other => panic!("{other:?}"),
    }
    assert!(slow.is_over() && slow.next().is_none() && slow.try_next().unwrap().is_none());
    assert_eq!(patient.by_ref().take(21).filter(Result::is_ok).count(), 21);
    // A row has two numbers and a weight.
    match by_bytes.next() {
        Some(Err(Error::Behind { epochs, bytes, .. })) => {
            assert!(epochs <= 5 && bytes > 100, "{epochs} epochs, {bytes} bytes");
        }
        other => panic!("{other:?}"),
    }
    let epoch = insert(&engine, 1, 1);
    assert_eq!(quick.next().unwrap().unwrap().epoch, epoch);
    // One that waits is told at once.
    let options = options.epochs(0);
    let mut told = engine.subscribe_with("p", options).unwrap();
    assert!(told.next().unwrap().unwrap().is_snapshot);
    let waiting = thread::spawn(move || told.next());
    insert(&engine, 1, 1);
    let told = without_hanging(move || waiting.join().unwrap());
    assert!(matches!(told, Some(Err(Error::Behind { epochs: 1, .. }))), "{told:?}");
}

#[test]
fn a_subscriber_that_is_too_far_behind_gets_a_new_snapshot_and_nobody_waits() {
    for workers in 1..=3 {
        let engine = engine_with(workers, TABLES);
        let options = SubscribeOptions::new().policy(Policy::Resync).epochs(10);
        let mut subscription = engine.subscribe_with("m", options).unwrap();
        let mut unread = engine.subscribe_with("m", options).unwrap();
        let mut replica = Replica::default();
        replica.apply(&subscription.next().unwrap().unwrap());
        let mut snapshots = 0;
        for step in 0..100 {
            let epoch = insert(&engine, step % 5, step);
            engine.wait(epoch).unwrap();
            // It reads now and then, more or less behind.
            if step % 17 == 0 || step % 23 == 0 || step == 99 {
                while let Some(change) = subscription.try_next().unwrap() {
                    snapshots += usize::from(change.is_snapshot);
                    replica.apply(&change);
                }
                assert_eq!(replica.epoch, epoch);
                assert_eq!(replica.lines(), query(&engine, "SELECT * FROM m"));
            }
        }
        assert!((2..=8).contains(&snapshots), "{snapshots}");
        // Its first snapshot is gone, too: it begins with what there is now.
        let first = unread.next().unwrap().unwrap();
        assert!(first.is_snapshot && first.epoch == 100);
        let error = engine.subscribe_with("p", options).unwrap_err().to_string();
        assert!(error.contains("MATERIALIZED"), "{error}");
    }
}

#[test]
fn what_waits_for_many_subscribers_is_counted_once_and_spills() {
    const MEMORY: usize = 8 << 20;
    let engine = Engine::builder().workers(2).memory(MEMORY).open_in_memory().unwrap();
    engine.execute("CREATE TABLE t (k BIGINT, v VARCHAR)").unwrap();
    let subscriptions: Vec<_> = (0..20).map(|_| engine.subscribe("t").unwrap()).collect();
    for step in 0..20 {
        // 2 MiB an epoch.
        let sql = format!(
            "INSERT INTO t SELECT n + {step} * 2000, repeat('x', 1000) FROM range(2000) AS r (n)"
        );
        engine.execute(&sql).unwrap();
    }
    engine.wait(20).unwrap();
    let state = engine.state();
    assert!(state.memory_bytes < 2 * MEMORY as u64, "{state:?}");
    // 40 MiB are in the table, which writes them a few times, and once in the queue, not 20 times.
    assert!((40 << 20..400 << 20).contains(&state.spilled_bytes), "{state:?}");
    for mut subscription in subscriptions {
        let mut rows = 0;
        while let Some(change) = subscription.try_next().unwrap() {
            rows += change.rows.num_rows();
        }
        assert_eq!(rows, 40_000);
    }
}

/// The rows of the view `m` after each epoch.
#[derive(Default)]
struct Judge {
    contents: Mutex<BTreeMap<u64, Vec<String>>>,
    known: Condvar,
}

impl Judge {
    fn know(&self, epoch: u64, sums: &BTreeMap<i64, i64>) {
        let mut lines: Vec<String> = sums.iter().map(|(k, s)| format!("{k} {s}")).collect();
        lines.sort();
        self.contents.lock().unwrap().insert(epoch, lines);
        self.known.notify_all();
    }

    /// Waits until it knows the epoch: a subscriber may see it before the call that commits it returns.
    fn assert_right(&self, epoch: u64, found: &[String]) {
        let contents = self.contents.lock().unwrap();
        let (contents, waited) = self
            .known
            .wait_timeout_while(contents, PATIENCE, |contents| !contents.contains_key(&epoch))
            .unwrap();
        assert!(!waited.timed_out(), "epoch {epoch} was never committed");
        assert_eq!(contents[&epoch], found, "epoch {epoch}");
    }
}

/// One that subscribes again and again, and compares what it has after each change.
struct Visitor {
    replica: Replica,
    subscription: Option<Subscription>,
    rng: u64,
}

impl Visitor {
    fn random(&mut self, below: u64) -> u64 {
        self.rng = self
            .rng
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.rng >> 33) % below
    }

    fn subscribe(&mut self, engine: &Engine) -> Option<Subscription> {
        let policy = [Policy::Block, Policy::Disconnect, Policy::Resync][self.random(3) as usize];
        let epochs = if policy == Policy::Block { 1024 } else { 1 + self.random(20) };
        let options = SubscribeOptions::new().policy(policy).epochs(epochs);
        if self.replica.epoch > 0 && self.random(2) == 0 {
            match engine.subscribe_with("m", options.after(self.replica.epoch)) {
                Ok(subscription) => return Some(subscription),
                Err(Error::Gone { .. }) => {}
                Err(error) => panic!("{error}"),
            }
        }
        self.replica = Replica::default();
        Some(engine.subscribe_with("m", options).unwrap())
    }

    /// Does something with a subscription.
    fn visit(&mut self, engine: &Engine, judge: &Judge) {
        let Some(mut subscription) = self.subscription.take().or_else(|| self.subscribe(engine))
        else {
            return;
        };
        for _ in 0..self.random(12) {
            match subscription.next_timeout(Duration::from_millis(5)) {
                Ok(Some(change)) => {
                    if !change.is_snapshot {
                        judge.assert_right(change.epoch - 1, &self.replica.lines());
                    }
                    self.replica.apply(&change);
                    judge.assert_right(change.epoch, &self.replica.lines());
                }
                Ok(None) if subscription.is_over() => return,
                Ok(None) => break,
                Err(Error::Behind { .. }) => return,
                Err(error) => panic!("{error}"),
            }
        }
        if self.random(4) > 0 {
            self.subscription = Some(subscription);
        }
    }
}

#[test]
fn subscribers_that_come_and_go_see_each_epoch_as_it_was() {
    const VISITORS: usize = 100;
    const VIEW: &str =
        "CREATE OR REPLACE MATERIALIZED VIEW m AS SELECT k, SUM(v) AS s FROM t GROUP BY k";
    let directory = TempDir::new().unwrap();
    let state = format!("file:{}", directory.path().display());
    let judge = Arc::new(Judge::default());
    let mut sums = BTreeMap::new();
    let visitor = |number| Visitor { replica: Replica::default(), subscription: None, rng: number };
    let mut visitors: Vec<Visitor> = (0..VISITORS as u64).map(visitor).collect();
    judge.know(0, &sums);
    for round in 0..3 {
        let builder = Engine::builder().workers([2, 1, 3][round]).history(50).state(&state);
        let engine = builder.open().unwrap();
        if round == 0 {
            engine.execute("CREATE TABLE t (k BIGINT, v BIGINT)").unwrap();
            engine.execute(VIEW).unwrap();
        }
        let is_over = Arc::new(AtomicBool::new(false));
        let groups: Vec<Vec<Visitor>> =
            (0..4).map(|_| visitors.split_off(visitors.len() - VISITORS / 4)).collect();
        let threads = groups.into_iter().map(|mut group| {
            let (engine, judge, is_over) = (engine.clone(), judge.clone(), is_over.clone());
            thread::spawn(move || {
                while !is_over.load(Ordering::SeqCst) {
                    group.iter_mut().for_each(|visitor| visitor.visit(&engine, &judge));
                }
                // They get the changes that they have not taken after the restart.
                group.iter_mut().for_each(|visitor| visitor.subscription = None);
                group
            })
        });
        let threads: Vec<_> = threads.collect();
        for step in 0..150 {
            let (k, v) = (step % 11, step * 7 % 13);
            *sums.entry(k).or_default() += v;
            let epoch = insert(&engine, k, v);
            judge.know(epoch, &sums);
            if step % 60 == 30 {
                engine.execute(VIEW).unwrap();
            }
            if step % 50 == 20 {
                engine.checkpoint().unwrap();
            }
        }
        engine.wait(engine.progress().committed).unwrap();
        is_over.store(true, Ordering::SeqCst);
        for thread in threads {
            visitors.extend(without_hanging(move || thread.join().unwrap()));
        }
        let mut last = engine.subscribe("m").unwrap();
        let mut replica = Replica::default();
        replica.apply(&last.next().unwrap().unwrap());
        assert_eq!(replica.lines(), query(&engine, "SELECT * FROM m"));
    }
}

/// The rows that all changes so far have told of.
fn replicated(subscription: &mut Subscription) -> Replica {
    let mut replica = Replica::default();
    while let Some(change) = subscription.try_next().unwrap() {
        replica.apply(&change);
    }
    replica.rows.retain(|_, copies| *copies != 0);
    replica
}

#[test]
fn who_comes_while_epochs_are_in_flight_sees_a_plain_view_as_others_do() {
    let tables = "
        CREATE TABLE l (k BIGINT, a BIGINT);
        CREATE TABLE r (k BIGINT, a BIGINT);
        CREATE INDEX by_k ON l (k);
        CREATE INDEX by_a ON r (a);
        CREATE VIEW joined AS SELECT x.k, y.a FROM l AS x JOIN l AS y ON x.k <> y.a;
        CREATE VIEW outer_joined AS SELECT l.k, l.a, r.k AS rk FROM l LEFT JOIN r ON l.a = r.a;
        CREATE VIEW reached AS
            SELECT l.k, l.a, s.b FROM l LEFT JOIN (
                WITH RECURSIVE s AS (
                    SELECT k AS b FROM l WHERE a = 0 UNION SELECT l.a FROM s JOIN l ON s.b = l.k)
                SELECT * FROM s) AS s ON l.a = s.b";
    // So many that some of them wait for others.
    let others: Vec<String> = (0..30)
        .map(|number| {
            format!(
                "CREATE MATERIALIZED VIEW m{number} AS
                     SELECT l.k + {number} AS k, COUNT(*) AS c FROM l JOIN r ON l.a = r.a GROUP BY l.k"
            )
        })
        .collect();
    let tables = format!("{tables}; {}", others.join(";"));
    let column = |values: Vec<i64>| -> ArrayRef { Arc::new(Int64Array::from(values)) };
    for seed in 0..60 {
        let mut random = fastrand::Rng::with_seed(seed);
        let engine = engine_with(random.usize(1..4), &tables);
        let names = ["joined", "outer_joined", "reached"];
        let mut early = names.map(|name| engine.subscribe(name).unwrap());
        let mut rows: [Vec<(i64, i64)>; 2] = Default::default();
        let mut change = |random: &mut fastrand::Rng| {
            let mut transaction = engine.begin().unwrap();
            for (table, rows) in ["l", "r"].into_iter().zip(&mut rows) {
                for _ in 0..random.usize(0..3) {
                    let row = (random.i64(0..4), random.i64(0..4));
                    let batch = |(k, a)| {
                        RecordBatch::try_from_iter([("k", column(vec![k])), ("a", column(vec![a]))])
                            .unwrap()
                    };
                    match rows.len() > 3 && random.bool() {
                        true => {
                            let gone = rows.swap_remove(random.usize(..rows.len()));
                            transaction.delete(table, batch(gone)).unwrap();
                        }
                        false => {
                            rows.push(row);
                            transaction.insert(table, batch(row)).unwrap();
                        }
                    }
                }
            }
            transaction.commit().unwrap()
        };
        for _ in 0..random.usize(1..12) {
            change(&mut random);
        }
        let mut late = names.map(|name| engine.subscribe(name).unwrap());
        for _ in 0..random.usize(1..12) {
            change(&mut random);
        }
        engine.wait(engine.progress().committed).unwrap();
        for (number, name) in names.into_iter().enumerate() {
            let [one, other] = [&mut early, &mut late].map(|all| replicated(&mut all[number]));
            assert_eq!(one.rows, other.rows, "{name}, seed {seed}");
        }
    }
}
