//! The rows of a query are computed as they are pulled, from the version that the query began with.

use std::ops::Bound;
use std::thread;
use std::time::{Duration, Instant};

use alluvium::arrow::array::{AsArray, RecordBatch};
use alluvium::arrow::datatypes::Int64Type;
use alluvium::{Engine, Error, Outcome, Rows};

use crate::support::{PATIENCE, engine_with, query, without_hanging};

/// The rows of `t`.
const ROWS: i64 = 100_000;

fn engine() -> Engine {
    engine_with(
        2,
        "CREATE TABLE t (id BIGINT PRIMARY KEY, n BIGINT);
         INSERT INTO t SELECT x, x * 2 FROM range(100000) AS r (x)",
    )
}

fn sum(rows: impl IntoIterator<Item = RecordBatch>) -> i64 {
    let sum =
        |rows: RecordBatch| rows.column(0).as_primitive::<Int64Type>().values().iter().sum::<i64>();
    rows.into_iter().map(sum).sum()
}

fn pulled(rows: Rows) -> Vec<RecordBatch> {
    rows.map(|rows| rows.expect("rows")).collect()
}

const ALL: i64 = ROWS * (ROWS - 1) / 2;

#[test]
fn rows_are_those_of_the_version_that_the_query_began_with() {
    let engine = engine();
    let mut session = engine.session();
    let mut rows =
        engine.query_rows("SELECT id FROM t WHERE n >= $1", &[0_i64.into()]).expect("rows");
    assert_eq!(rows.schema().field(0).name(), "id");
    let first = rows.next().expect("there are rows").expect("a batch");
    assert!(first.num_rows() < ROWS as usize / 2, "{}", first.num_rows());
    let statement = |sql| alluvium::parse(sql).next().expect("a statement").expect("it is right");
    session.execute("BEGIN; DELETE FROM t WHERE id >= 10").expect("it writes");
    let outcome = session.run(&statement("SELECT id FROM t ORDER BY id")).expect("rows");
    let Outcome::Rows(own) = outcome else { panic!("{outcome:?}") };
    session
        .execute("DELETE FROM t; COMMIT; DROP TABLE t; CREATE TABLE t (id BIGINT)")
        .expect("it is done");
    // The transaction sees its own writes, those before the query.
    assert_eq!(sum(pulled(own)), 45);
    assert_eq!(sum([first].into_iter().chain(pulled(rows))), ALL);
    assert_eq!(query(&engine, "SELECT COUNT(*) FROM t"), ["0"]);
}

#[test]
fn rows_that_are_dropped_give_up_their_version() {
    let engine = engine();
    let used = |engine: &Engine| {
        engine
            .wait(engine.begin().and_then(|empty| empty.commit()).expect("a commit"))
            .expect("it is complete");
        engine.state().memory_bytes
    };
    let mut rows = engine.query_rows("SELECT * FROM t", &[]).expect("rows");
    assert!(rows.next().expect("a batch").is_ok());
    engine.execute("DROP TABLE t").expect("nothing depends on it");
    let held = used(&engine);
    assert!(held > ROWS as u64, "{held}");
    drop(rows);
    // The table's own batches go when its dataflow does.
    let begun = Instant::now();
    while used(&engine) > held / 10 {
        assert!(begun.elapsed() < PATIENCE, "{held} {}", used(&engine));
        thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn readers_that_do_not_pull_hold_up_nobody() {
    let engine = engine();
    let scans: Vec<Rows> =
        (0..64).map(|_| engine.query_rows("SELECT id FROM t", &[]).expect("rows")).collect();
    let other = engine.clone();
    let answer = without_hanging(move || query(&other, "SELECT SUM(id) FROM t GROUP BY id % 1"));
    assert_eq!(answer, [ALL.to_string()]);
    for rows in scans {
        assert_eq!(sum(pulled(rows)), ALL);
    }
}

#[test]
fn many_queries_at_once_have_the_same_answers() {
    let engine = engine();
    let sql = "SELECT SUM(a.id) FROM t AS a JOIN t AS b ON a.id = b.n / 2 WHERE b.id % 3 = 0 GROUP BY a.id % 1";
    let expected = query(&engine, sql);
    without_hanging(move || {
        thread::scope(|scope| {
            for _ in 0..16 {
                scope.spawn(|| assert_eq!(query(&engine, sql), expected));
            }
        });
    });
}

#[test]
fn an_interrupt_of_the_call_ends_a_pull_on_another_thread() {
    let engine = engine();
    let interrupt = engine.interrupt();
    let rows = interrupt.watch(|| engine.query_rows("SELECT id FROM t", &[])).expect("rows");
    interrupt.request();
    let ended = thread::spawn(move || rows.map(|rows| rows.map(drop)).collect::<Vec<_>>());
    let ended = ended.join().expect("no panic");
    assert_eq!(ended.last(), Some(&Err(Error::Interrupted)));
    interrupt.clear();
    let low = [0_i64.into()];
    let view = engine.view("t").expect("a view");
    let mut range =
        interrupt.watch(|| view.range(Bound::Included(&low), Bound::Unbounded)).expect("rows");
    assert!(range.next().expect("a batch").is_ok());
    interrupt.request();
    assert!(matches!(range.next(), Some(Err(Error::Interrupted))));
    assert!(range.next().is_none());
}

#[test]
fn errors_of_later_rows_have_positions() {
    let engine = engine();
    for sql in
        ["SELECT n,\n  10 / (id - 99999) FROM t", "SELECT * FROM (SELECT 10 / (99999 - id) FROM t)"]
    {
        let rows = engine.query_rows(sql, &[]).expect("the first rows are right");
        let late = rows.last().expect("an error").expect_err("the last row is wrong");
        let early =
            engine.query(&sql.replace("99999", "00000")).expect_err("the first row is wrong");
        assert_eq!(late, early);
        assert!(late.position().is_some(), "{late:?}");
    }
}

/// DataFusion would start tasks on the runtime of its caller, which waits.
#[test]
fn queries_run_on_a_thread_of_another_runtime() {
    let engine = engine();
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let sum = runtime.block_on(async {
        let rows = engine.query_rows(
            "SELECT id FROM t UNION ALL SELECT a.id FROM t AS a JOIN t AS b ON a.id = b.id ORDER BY 1",
            &[],
        );
        sum(pulled(rows.expect("rows")))
    });
    assert_eq!(sum, 2 * ALL);
}
