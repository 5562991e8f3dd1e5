//! Reads through handles.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::ops::Bound;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use alluvium::arrow::array::AsArray;
use alluvium::arrow::datatypes::Int64Type;
use alluvium::{Engine, Value, View};

use crate::support::{batch_lines, engine, engine_with};

const PROGRAM: &str = "
    CREATE TABLE t (id INTEGER PRIMARY KEY, name VARCHAR, v BIGINT);
    CREATE TABLE pairs (v BIGINT, a BIGINT, b VARCHAR, PRIMARY KEY (a, b));
    CREATE MATERIALIZED VIEW sums AS SELECT SUM(v) AS total, name FROM t GROUP BY name;
    INSERT INTO t VALUES (1, 'a', 10), (2, 'b', 20), (3, 'a', 30), (4, NULL, 40);
    INSERT INTO pairs VALUES (1, 1, 'x'), (2, 1, 'y'), (3, 2, 'x'), (4, 3, 'z')";

fn get(view: &View, key: &[Value]) -> Vec<String> {
    batch_lines(&view.get(key).unwrap())
}

fn range(view: &View, low: Bound<&[Value]>, high: Bound<&[Value]>) -> Vec<String> {
    view.range(low, high).unwrap().flat_map(|rows| batch_lines(&rows.unwrap())).collect()
}

#[test]
fn rows_are_found_by_their_key_and_by_its_first_columns() {
    for workers in 1..=3 {
        let engine = engine_with(workers, PROGRAM);
        let t = engine.view("t").unwrap();
        assert_eq!((t.name(), t.key()), ("t", &[0][..]));
        assert_eq!(get(&t, &[2.into()]), ["2 b 20"]);
        assert_eq!(get(&t, &[2_i64.into()]), ["2 b 20"]);
        assert!(get(&t, &[5.into()]).is_empty());
        assert_eq!(t.get(&[5.into()]).unwrap().schema(), *t.schema());

        let pairs = engine.view("pairs").unwrap();
        assert_eq!(pairs.key(), [1, 2]);
        assert_eq!(get(&pairs, &[1_i64.into(), "y".into()]), ["2 1 y"]);
        assert_eq!(get(&pairs, &[1_i64.into()]), ["1 1 x", "2 1 y"]);
        assert_eq!(get(&pairs, &[]).len(), 4);

        let sums = engine.view("sums").unwrap();
        assert_eq!(sums.key(), [1]);
        assert_eq!(get(&sums, &["a".into()]), ["40 a"]);
        assert_eq!(get(&sums, &[Value::NULL]), ["40 NULL"]);
        assert_eq!(get(&sums, &[Value::NULL]), ["40 NULL"]);
    }
}

#[test]
fn a_value_that_has_no_text_is_no_value_of_a_key() {
    let engine = engine_with(1, "CREATE TABLE days (day DATE PRIMARY KEY)");
    let days = engine.view("days").unwrap();
    let error = days.get(&[Value::timestamp(1)]).unwrap_err().to_string();
    assert_eq!(
        error,
        "1970-01-01T00:00:00.000001 (TIMESTAMP) is no value of the key column \"day\" (DATE)"
    );
    assert_eq!(days.get(&[Value::timestamp(0)]).unwrap().num_rows(), 0);
}

#[test]
fn a_range_has_its_rows_in_order() {
    let engine = engine_with(2, PROGRAM);
    let pairs = engine.view("pairs").unwrap();
    let (one, two) = ([Value::from(1_i64)], [Value::from(2_i64)]);
    let y = [Value::from(1_i64), "y".into()];
    let included = Bound::Included;
    let excluded = Bound::Excluded;
    assert_eq!(range(&pairs, included(&one), included(&two)), ["1 1 x", "2 1 y", "3 2 x"]);
    assert_eq!(range(&pairs, excluded(&one), included(&two)), ["3 2 x"]);
    assert_eq!(range(&pairs, included(&y), excluded(&two)), ["2 1 y"]);
    assert_eq!(range(&pairs, excluded(&y), Bound::Unbounded), ["3 2 x", "4 3 z"]);
    assert_eq!(range(&pairs, Bound::Unbounded, excluded(&y)), ["1 1 x"]);
    assert_eq!(range(&pairs, included(&two), included(&one)), [""; 0]);
    assert_eq!(range(&pairs, Bound::Unbounded, Bound::Unbounded).len(), 4);
}

#[test]
fn what_cannot_be_a_key_is_an_error() {
    let engine = engine_with(1, PROGRAM);
    engine
        .execute(
            "CREATE TABLE heap (v BIGINT);
             CREATE VIEW plain AS SELECT v FROM heap;
             CREATE LOCAL VIEW local AS SELECT v FROM heap;
             CREATE TABLE passing (v BIGINT) WITH ('materialized' = 'false')",
        )
        .unwrap();
    let fails = |view: &View, key: &[Value], expected: &str| {
        let message = view.get(key).unwrap_err().to_string();
        assert!(message.contains(expected), "{message}");
    };
    let t = engine.view("t").unwrap();
    fails(&t, &["x".into()], "no value of the key column \"id\"");
    fails(&t, &[1.5.into()], "no value of the key column \"id\"");
    fails(&t, &[(1_i64 << 40).into()], "no value of the key column \"id\"");
    fails(&t, &[1.into(), 2.into()], "the key has 1 columns (id), and 2 values were given");
    let heap = engine.view("heap").unwrap();
    assert!(heap.key().is_empty());
    fails(&heap, &[1_i64.into()], "no unique key is known");
    for (name, expected) in [
        ("nothing", "there is no table or view \"nothing\""),
        ("plain", "which keeps no rows to read"),
        ("local", "which keeps no rows to read"),
        ("passing", "keeps no rows to read"),
    ] {
        let message = engine.view(name).unwrap_err().to_string();
        assert!(message.contains(expected), "{message}");
    }
}

#[test]
fn an_empty_relation_has_no_rows_and_a_dropped_one_is_gone_for_good() {
    let engine = engine_with(2, "CREATE TABLE t (id BIGINT PRIMARY KEY)");
    let t = engine.view("t").unwrap();
    assert!(get(&t, &[1_i64.into()]).is_empty());
    engine.execute("INSERT INTO t VALUES (1)").unwrap();
    assert_eq!(get(&t, &[1_i64.into()]), ["1"]);
    let rows = t.range(Bound::Unbounded, Bound::Unbounded).unwrap();
    engine.execute("DROP TABLE t; CREATE TABLE t (id BIGINT PRIMARY KEY)").unwrap();
    let message = t.get(&[1_i64.into()]).unwrap_err().to_string();
    assert!(message.contains("\"t\" has been dropped"), "{message}");
    // Pinned rows are still there.
    assert_eq!(rows.map(|rows| rows.unwrap().num_rows()).sum::<usize>(), 1);
}

#[test]
fn keys_are_found_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let open = |workers| {
        let state = format!("file:{}", folder.path().display());
        Engine::builder().workers(workers).state(state).open().unwrap()
    };
    let first = open(2);
    first.execute(PROGRAM).unwrap();
    first.checkpoint().unwrap();
    first.execute("UPDATE t SET v = 21 WHERE id = 2").unwrap();
    drop(first);
    for workers in [2, 1, 3] {
        let engine = open(workers);
        assert_eq!(get(&engine.view("t").unwrap(), &[2.into()]), ["2 b 21"]);
        let sums = engine.view("sums").unwrap();
        assert_eq!(get(&sums, &["b".into()]), ["21 b"]);
        assert_eq!(get(&sums, &[Value::NULL]), ["40 NULL"]);
        engine.checkpoint().unwrap();
    }
}

/// A writer moves amounts between the two accounts of a group, so their sum stays zero, and counts each transfer in both.
#[test]
fn threads_read_whole_epochs_that_are_no_older_than_what_was_committed() {
    const TRANSFERS: u64 = 300;
    for workers in 1..=2 {
        let engine = engine(workers);
        engine
            .execute(
                "CREATE TABLE accounts (pair BIGINT, side BIGINT, balance BIGINT, transfers BIGINT, PRIMARY KEY (pair, side));
                 INSERT INTO accounts VALUES (1, 0, 0, 0), (1, 1, 0, 0), (2, 0, 9, 0), (0, 0, 9, 0)",
            )
            .unwrap();
        engine.wait(engine.progress().committed).unwrap();
        let (ends, committed) = (AtomicBool::new(false), AtomicU64::new(0));
        thread::scope(|scope| {
            for is_stale in [false, false, true] {
                let view = engine.view("accounts").unwrap();
                let view = if is_stale { view.stale() } else { view };
                let (ends, committed) = (&ends, &committed);
                scope.spawn(move || {
                    let mut last = 0;
                    while !ends.load(Ordering::SeqCst) {
                        let before = committed.load(Ordering::SeqCst);
                        let rows = view.get(&[1_i64.into()]).unwrap();
                        assert_eq!(rows.num_rows(), 2);
                        let column = |column: usize| {
                            rows.column(column).as_primitive::<Int64Type>().values().to_vec()
                        };
                        assert_eq!(column(2).iter().sum::<i64>(), 0);
                        let transfers = column(3);
                        assert_eq!(transfers[0], transfers[1]);
                        let transfers = transfers[0] as u64;
                        assert!(transfers >= last && (is_stale || transfers >= before));
                        last = transfers;
                    }
                });
            }
            let mut session = engine.session();
            for transfer in 1..=TRANSFERS {
                session
                    .execute(
                        "BEGIN;
                         UPDATE accounts SET balance = balance - 1, transfers = transfers + 1 WHERE pair = 1 AND side = 0;
                         UPDATE accounts SET balance = balance + 1, transfers = transfers + 1 WHERE side = 1 AND pair = 1;
                         COMMIT",
                    )
                    .unwrap();
                committed.store(transfer, Ordering::SeqCst);
            }
            ends.store(true, Ordering::SeqCst);
        });
    }
}
