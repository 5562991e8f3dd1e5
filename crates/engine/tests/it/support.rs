//! Common parts of the tests: engines, rows as text, and a clock for what must not hang.

use std::sync::mpsc;
use std::time::Duration;

use alluvium::arrow::array::RecordBatch;
use alluvium::arrow::util::display::{ArrayFormatter, FormatOptions};
use alluvium::{Engine, Error};

/// An engine with so many workers.
pub fn engine(workers: usize) -> Engine {
    Engine::builder().workers(workers).open_in_memory().expect("an engine starts")
}

/// An engine in which statements have been executed.
pub fn engine_with(workers: usize, sql: &str) -> Engine {
    let engine = engine(workers);
    engine.execute(sql).expect("the statements are right");
    engine
}

/// The rows of some batches as text, sorted; NULL is written out.
pub fn lines(batches: &[RecordBatch]) -> Vec<String> {
    let mut lines: Vec<String> = batches.iter().flat_map(batch_lines).collect();
    lines.sort();
    lines
}

/// The rows of a batch as text, in order.
pub fn batch_lines(batch: &RecordBatch) -> Vec<String> {
    let options = FormatOptions::default().with_null("NULL");
    let columns: Vec<_> = batch
        .columns()
        .iter()
        .map(|column| {
            ArrayFormatter::try_new(column.as_ref(), &options).expect("a column can be shown")
        })
        .collect();
    let line = |row| {
        columns.iter().map(|column| column.value(row).to_string()).collect::<Vec<_>>().join(" ")
    };
    (0..batch.num_rows()).map(line).collect()
}

/// The answer to a query as sorted lines.
pub fn query(engine: &Engine, sql: &str) -> Vec<String> {
    lines(&engine.query(sql).expect("the query is right"))
}

/// Waits until all that was committed is complete; then the answer to a query as sorted lines.
pub fn settled(engine: &Engine, sql: &str) -> Vec<String> {
    engine
        .wait(engine.begin().and_then(|tx| tx.commit()).expect("an empty transaction"))
        .expect("epochs complete");
    query(engine, sql)
}

/// How long something that must not hang may take, on a machine that is busy with other tests.
pub const PATIENCE: Duration = Duration::from_secs(1_200);

/// Runs `act` on a thread of its own and fails if it hangs.
pub fn without_hanging<R: Send + 'static>(act: impl FnOnce() -> R + Send + 'static) -> R {
    let (done, result) = mpsc::channel();
    std::thread::spawn(move || done.send(act()));
    result.recv_timeout(PATIENCE).expect("it ends in time, and without a panic")
}

/// Fails unless the engine is poisoned with a message that contains `text`.
pub fn assert_poisoned<R: std::fmt::Debug>(result: Result<R, Error>, text: &str) {
    match result {
        Err(Error::Poisoned { message, .. }) => assert!(message.contains(text), "{message}"),
        other => panic!("the engine should be poisoned, but: {other:?}"),
    }
}

/// Runs the test of this name again in a process of its own, where nothing else runs threads and uses memory,
/// and fails if it fails there. True in that process: the test then does its work.
pub fn alone(test: &str) -> bool {
    const MARK: &str = "ALLUVIUM_TEST_ALONE";
    if std::env::var_os(MARK).is_some() {
        return true;
    }
    let program = std::env::current_exe().expect("a test knows its program");
    let mut command = std::process::Command::new(program);
    let status = command.args(["--exact", test, "--nocapture"]).env(MARK, "1").status();
    assert!(
        status.expect("the program starts").success(),
        "the test fails in a process of its own"
    );
    false
}
