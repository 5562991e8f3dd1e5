//! How much ad-hoc queries slow the flow of changes down.
//!
//! One worker maintains a view while epochs are committed; in every other run a thread queries the view in a loop. Each
//! epoch moves an amount between accounts, so the sum over all accounts is zero after every complete epoch, and not in
//! the middle of one: an answer with another sum is a failure.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Instant;

use alluvium::Engine;
use alluvium::arrow::array::{ArrayRef, AsArray, Int64Array, RecordBatch};
use alluvium::arrow::datatypes::Int64Type;

const EPOCHS: u64 = 1_000;
const ROWS: u64 = 10_000;
const IN_FLIGHT: u64 = 4;
const ACCOUNTS: u64 = 100_000;
const PAIRS: usize = 5;

fn engine() -> Engine {
    let engine = Engine::builder().open_in_memory().expect("an engine opens");
    engine
        .execute(
            "CREATE TABLE moves (account BIGINT, amount BIGINT);
             CREATE MATERIALIZED VIEW balances AS
                 SELECT account, CAST(SUM(amount) AS BIGINT) AS balance FROM moves GROUP BY account;",
        )
        .expect("the statements are right");
    engine
}

/// The rows of an epoch: each amount is taken from one account and given to another.
fn moves(epoch: u64) -> RecordBatch {
    let rows = (0..ROWS).map(|row| epoch * ROWS + row);
    let account = rows.clone().map(|row| (row * 7919 % ACCOUNTS) as i64);
    let amount = rows.map(|row| if row % 2 == 0 { -(row as i64) } else { row as i64 - 1 });
    let column = |numbers: Vec<i64>| Arc::new(Int64Array::from(numbers)) as ArrayRef;
    let columns = [("account", column(account.collect())), ("amount", column(amount.collect()))];
    RecordBatch::try_from_iter(columns).expect("columns of one length")
}

/// Commits an epoch.
fn commit(engine: &Engine, rows: RecordBatch) -> alluvium::Result<u64> {
    let mut transaction = engine.begin()?;
    transaction.insert("moves", rows)?;
    transaction.commit()
}

/// Commits all epochs, while `query` runs in a loop if there is one. Returns the seconds and how many queries ran.
fn run(query: Option<&str>) -> (f64, u64) {
    let engine = engine();
    let epochs: Vec<RecordBatch> = (0..EPOCHS).map(moves).collect();
    let ends = AtomicBool::new(false);
    thread::scope(|scope| {
        let reader = query.map(|query| {
            let (engine, ends) = (&engine, &ends);
            scope.spawn(move || {
                let mut count = 0;
                while !ends.load(Ordering::Relaxed) {
                    let answer = engine.query(query).expect("the query is right");
                    let sums = answer.iter().map(|rows| rows.column(0).as_primitive::<Int64Type>());
                    let sum: i64 = sums.flat_map(|sums| sums.iter().flatten()).sum();
                    assert_eq!(sum, 0, "the answer is of an incomplete epoch");
                    count += 1;
                }
                count
            })
        });
        let begun = Instant::now();
        for rows in epochs {
            let epoch = commit(&engine, rows).expect("the rows fit");
            engine.wait(epoch.saturating_sub(IN_FLIGHT)).expect("epochs complete");
        }
        engine.wait(engine.progress().committed).expect("epochs complete");
        let took = begun.elapsed().as_secs_f64();
        ends.store(true, Ordering::Relaxed);
        (took, reader.map_or(0, |reader| reader.join().expect("the queries are right")))
    })
}

fn main() {
    // `cargo test` runs it to see that it starts.
    let pairs = if std::env::args().any(|argument| argument == "--bench") { PAIRS } else { 0 };
    for (what, query) in [
        ("sum of all balances", "SELECT CAST(SUM(balance) AS BIGINT) FROM balances"),
        ("no account without moves", "SELECT COUNT(*) FROM balances WHERE account = -1"),
    ] {
        for _ in 0..pairs {
            let ((alone, _), (together, queries)) = (run(None), run(Some(query)));
            println!(
                "{what}: {alone:.2} s alone, {together:.2} s with {queries} queries: {:.2}",
                together / alone
            );
        }
    }
}
