//! Batches of rows, committed together.

use std::sync::Arc;

use alluvium::arrow::array::{
    ArrayRef, Float64Array, Int64Array, ListArray, RecordBatch, StringArray,
};
use alluvium::arrow::datatypes::Float64Type;
use alluvium::{Engine, Error};

use crate::support::{engine_with, query, settled, without_hanging};

const TABLES: &str = "
    CREATE TABLE counters (id BIGINT PRIMARY KEY, owner VARCHAR);
    CREATE TABLE payment (counters BIGINT, amount BIGINT NOT NULL);
    CREATE MATERIALIZED VIEW balance AS
        SELECT a.owner, SUM(p.amount) AS total FROM counters a JOIN payment p ON a.id = p.counters GROUP BY a.owner;";

fn spines(rows: &[(i64, &str)]) -> RecordBatch {
    let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(rows.iter().map(|row| row.0)));
    let owners: ArrayRef = Arc::new(StringArray::from_iter_values(rows.iter().map(|row| row.1)));
    RecordBatch::try_from_iter([("id", ids), ("owner", owners)]).expect("two columns of one length")
}

fn payments(rows: &[(i64, i64)]) -> RecordBatch {
    let spines: ArrayRef = Arc::new(Int64Array::from_iter_values(rows.iter().map(|row| row.0)));
    let amounts: ArrayRef = Arc::new(Int64Array::from_iter_values(rows.iter().map(|row| row.1)));
    RecordBatch::try_from_iter([("counters", spines), ("amount", amounts)])
        .expect("two columns of one length")
}

fn balances(engine: &Engine) -> Vec<String> {
    settled(engine, "SELECT * FROM balance")
}

#[test]
fn a_transaction_over_several_tables_becomes_visible_at_once() {
    for workers in 1..=3 {
        let engine = engine_with(workers, TABLES);
        let mut changes = engine.subscribe("balance").expect("the view exists");
        assert_eq!(changes.next().expect("a snapshot").expect("no error").rows.num_rows(), 0);
        let mut tx = engine.begin().expect("nobody else writes");
        tx.insert("counters", spines(&[(1, "ann"), (2, "bob")])).expect("the rows fit");
        tx.insert("payment", payments(&[(1, 10), (2, 5), (1, 7)])).expect("the rows fit");
        assert!(
            query(&engine, "SELECT * FROM counters").is_empty(),
            "nothing is visible before the commit"
        );
        let epoch = tx.commit().expect("it commits");
        let change = changes.next().expect("a change").expect("no error");
        assert_eq!((change.epoch, change.rows.num_rows()), (epoch, 2));
        engine.wait(epoch).expect("the epoch completes");
        assert_eq!(query(&engine, "SELECT * FROM balance"), ["ann 17", "bob 5"]);
    }
}

#[test]
fn a_dropped_transaction_leaves_nothing() {
    let engine = engine_with(2, TABLES);
    let mut tx = engine.begin().expect("nobody else writes");
    tx.insert("counters", spines(&[(1, "ann")])).expect("the rows fit");
    drop(tx);
    assert!(settled(&engine, "SELECT * FROM counters").is_empty());
}

#[test]
fn the_last_write_of_a_key_counts() {
    for workers in 1..=3 {
        let engine = engine_with(workers, TABLES);
        let mut tx = engine.begin().expect("nobody else writes");
        tx.upsert("counters", spines(&[(1, "ann"), (2, "bob"), (1, "anna")]))
            .expect("the rows fit");
        tx.delete("counters", spines(&[(2, "")])).expect("the rows fit");
        tx.upsert("counters", spines(&[(3, "cat"), (2, "ben")])).expect("the rows fit");
        tx.delete("counters", spines(&[(3, "")])).expect("the rows fit");
        tx.commit().expect("it commits");
        assert_eq!(settled(&engine, "SELECT * FROM counters"), ["1 anna", "2 ben"]);
    }
}

#[test]
fn deleting_absent_rows_of_an_unkeyed_table_is_counted() {
    let engine = engine_with(2, TABLES);
    let mut tx = engine.begin().expect("nobody else writes");
    tx.insert("payment", payments(&[(1, 10)])).expect("the rows fit");
    tx.delete("payment", payments(&[(1, 10), (1, 10), (2, 3)])).expect("the rows fit");
    tx.commit().expect("it commits");
    assert!(settled(&engine, "SELECT * FROM payment").is_empty());
    let relations = engine.relations().expect("they can be listed");
    let payment =
        relations.iter().find(|relation| relation.name == "payment").expect("the table exists");
    assert_eq!(payment.refused, 2);
}

#[test]
fn rows_that_do_not_fit_are_refused_and_the_transaction_goes_on() {
    let engine = engine_with(1, TABLES);
    let mut tx = engine.begin().expect("nobody else writes");
    tx.insert("counters", spines(&[(1, "ann")])).expect("the rows fit");
    let refused = |result: Result<(), Error>| result.expect_err("the rows do not fit").to_string();
    assert_eq!(
        refused(tx.insert("counters", payments(&[(2, 2)]))),
        "values of type Int64 are given for column \"owner\" of \"counters\", which is Utf8"
    );
    let id = spines(&[(2, "bob")]).project(&[0]).expect("the column exists");
    assert_eq!(
        refused(tx.insert("counters", id)),
        "1 columns are given for the 2 columns of \"counters\""
    );
    let amounts: ArrayRef = Arc::new(Int64Array::from(vec![Some(1), None]));
    let rows = RecordBatch::try_from_iter([("counters", amounts.clone()), ("amount", amounts)])
        .expect("two columns");
    assert_eq!(
        refused(tx.insert("payment", rows)),
        "NULL is not allowed in column \"amount\" of \"payment\""
    );
    assert_eq!(
        refused(tx.insert("nothing", payments(&[]))),
        "there is no table or view \"nothing\""
    );
    assert_eq!(
        refused(tx.insert("balance", payments(&[]))),
        "\"balance\" is a materialized view, not a table"
    );
    tx.commit().expect("it commits");
    assert_eq!(settled(&engine, "SELECT * FROM counters"), ["1 ann"]);
    assert!(query(&engine, "SELECT * FROM payment").is_empty());
}

#[test]
fn an_empty_transaction_makes_no_epoch() {
    let engine = engine_with(1, TABLES);
    let mut tx = engine.begin().expect("nobody else writes");
    tx.insert("counters", spines(&[(1, "ann")])).expect("the rows fit");
    let epoch = tx.commit().expect("it commits");
    assert_eq!(engine.begin().and_then(|tx| tx.commit()), Ok(epoch));
}

#[test]
fn writers_on_several_threads_take_turns() {
    const EACH: i64 = 50;
    for workers in 1..=3 {
        let engine = engine_with(workers, TABLES);
        let writers: Vec<_> = (0..3)
            .map(|counters| {
                let engine = engine.clone();
                std::thread::spawn(move || {
                    for amount in 1..=EACH {
                        let mut tx = engine.begin().expect("a turn comes");
                        tx.upsert("counters", spines(&[(counters, "all")])).expect("the rows fit");
                        tx.insert("payment", payments(&[(counters, amount)]))
                            .expect("the rows fit");
                        tx.commit().expect("it commits");
                    }
                })
            })
            .collect();
        writers.into_iter().for_each(|writer| writer.join().expect("no writer fails"));
        assert_eq!(balances(&engine), [format!("all {}", 3 * EACH * (EACH + 1) / 2)]);
    }
}

#[test]
fn a_large_transaction_is_dealt_out_over_the_workers() {
    const ROWS: i64 = 200_000;
    for workers in [1, 3] {
        let engine = engine_with(workers, TABLES);
        let mut tx = engine.begin().expect("nobody else writes");
        let keyed: Vec<(i64, &str)> = (0..ROWS)
            .map(|row| (row % 1000, if row < ROWS - 1000 { "early" } else { "late" }))
            .collect();
        tx.upsert("counters", spines(&keyed)).expect("the rows fit");
        tx.insert("payment", payments(&(0..ROWS).map(|row| (row % 1000, 1)).collect::<Vec<_>>()))
            .expect("the rows fit");
        tx.commit().expect("it commits");
        assert_eq!(balances(&engine), [format!("late {ROWS}")]);
        assert_eq!(query(&engine, "SELECT COUNT(*) FROM payment"), [ROWS.to_string()]);
    }
}

#[test]
fn waiting_for_an_epoch_to_come_ends_when_it_does() {
    let engine = engine_with(1, TABLES);
    let waiting = engine.clone();
    let waiter = std::thread::spawn(move || waiting.wait(2));
    for id in 0..2 {
        engine.execute(&format!("INSERT INTO counters VALUES ({id}, 'x')")).expect("it inserts");
    }
    assert_eq!(without_hanging(move || waiter.join().expect("no panic")), Ok(()));
}

#[test]
fn a_table_holds_one_nan_whichever_is_inserted() {
    let engine = engine_with(
        2,
        "CREATE TABLE m (x DOUBLE, l DOUBLE[]);
         CREATE MATERIALIZED VIEW above AS SELECT x > 5 AS above, l = [CAST('NaN' AS DOUBLE)] AS same FROM m",
    );
    let other = f64::from_bits(f64::NAN.to_bits() | 1);
    let nans = [f64::NAN, -f64::NAN, other];
    let lists = nans.map(|nan| Some([Some(nan)]));
    let rows = RecordBatch::try_from_iter_with_nullable([
        ("x", Arc::new(Float64Array::from_iter_values(nans)) as ArrayRef, true),
        (
            "l",
            Arc::new(ListArray::from_iter_primitive::<Float64Type, _, _>(lists)) as ArrayRef,
            true,
        ),
    ]);
    let mut tx = engine.begin().expect("nobody else writes");
    tx.insert("m", rows.expect("two columns of one length")).expect("the rows fit");
    let epoch = tx.commit().expect("it commits");
    engine.wait(epoch).expect("the epoch completes");
    for (sql, expected) in [
        ("SELECT COUNT(*) FROM above WHERE above AND same", "3"),
        ("SELECT COUNT(DISTINCT x) + COUNT(DISTINCT l) FROM m", "2"),
        ("SELECT COUNT(*) FROM m AS a JOIN m AS b ON a.x = b.x AND a.l = b.l", "9"),
        ("SELECT COUNT(*) FROM m WHERE x = 'NaN'", "3"),
    ] {
        assert_eq!(query(&engine, sql), [expected], "{sql}");
    }
}
