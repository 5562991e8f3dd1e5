//! How long the 22 queries of TPC-H, as views, take to follow an order that goes or comes.
//!
//! ```sh
//! cargo run --release -p alluvium-benches --bin tpch_orders -- [SCALE]
//! ```
//!
//! Loads the tables of the scale factor (default 0.1, which has 150,000 orders) into all 22 views, in memory. Then it deletes some
//! 190 orders, spread over all, each with its line items in a transaction of its own, and inserts them again. The time of an order
//! is that from the beginning of the transaction until all views have followed. Ends with status 1 if the median of the
//! deletions is more than 5 ms, or if the views do not have as many rows at the end as before.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use alluvium::Engine;
use alluvium::arrow::array::{AsArray, RecordBatch};
use alluvium::arrow::compute::concat_batches;
use alluvium::arrow::datatypes::Int64Type;
use alluvium_benches::{Folder, Result, tpch};

/// The most that the median of the deletions may be.
const AIM: Duration = Duration::from_millis(5);

/// An order and its line items.
struct Order {
    order: RecordBatch,
    items: RecordBatch,
}

fn main() -> ExitCode {
    let scale = std::env::args().nth(1).and_then(|scale| scale.parse().ok()).unwrap_or(0.1);
    match run(scale) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}

/// Prints the table; whether the aim is met.
fn run(scale: f64) -> Result<bool> {
    let folder = Folder::new("tpch-orders")?;
    tpch::generate(folder.path(), scale)?;
    println!("| workers | orders | load | | median | 99 % | longest |");
    println!("|---|---|---|---|---|---|---|");
    let mut is_met = true;
    for workers in [1, 2] {
        let begun = Instant::now();
        let engine = loaded(&folder, workers)?;
        let load = begun.elapsed();
        let orders = orders(&engine, scale)?;
        let before = rows(&engine)?;
        let mut took = [Vec::new(), Vec::new()];
        for order in &orders {
            took[0].push(timed(&engine, order, false)?);
            took[1].push(timed(&engine, order, true)?);
        }
        is_met &= rows(&engine)? == before;
        for (what, mut took) in ["delete", "insert"].into_iter().zip(took) {
            took.sort_unstable();
            let at = |share: f64| took[(took.len() as f64 * share) as usize];
            let (median, late) = (at(0.5), at(0.99));
            let longest = took.last().copied().unwrap_or_default();
            println!(
                "| {workers} | {} | {load:.0?} | {what} | {median:.2?} | {late:.2?} | {longest:.2?} |",
                orders.len()
            );
            is_met &= what == "insert" || median <= AIM;
        }
    }
    Ok(is_met)
}

/// An engine with all rows and all views.
fn loaded(folder: &Folder, workers: usize) -> Result<Engine> {
    let builder = alluvium_connect::formats(Engine::builder().workers(workers));
    let engine = builder.open_in_memory()?;
    engine.execute(&tpch::tables_alone())?;
    for name in tpch::NAMES {
        let path = folder.path().join(format!("{name}.csv"));
        engine.execute(&format!("COPY {name} FROM '{}' (HEADERS false)", path.display()))?;
    }
    engine.execute(tpch::VIEWS)?;
    Ok(engine)
}

/// Orders in all parts of the table. Of every 32 numbers the first eight are orders.
fn orders(engine: &Engine, scale: f64) -> Result<Vec<Order>> {
    let apart = 32 * (1000.0 * scale).ceil().max(1.0) as i64;
    let select = |table: &str, key: &str| -> Result<RecordBatch> {
        let found = engine
            .query(&format!("SELECT * FROM {table} WHERE {key} % {apart} = 1 ORDER BY {key}"))?;
        let schema = found.first().ok_or("there are no orders")?.schema();
        Ok(concat_batches(&schema, &found)?)
    };
    let (orders, items) = (select("orders", "o_orderkey")?, select("lineitem", "l_orderkey")?);
    let keys = items.column(0).as_primitive::<Int64Type>().values();
    let orders_of = orders.column(0).as_primitive::<Int64Type>().values().iter().enumerate();
    let order = |(row, key): (usize, &i64)| {
        let (start, end) =
            (keys.partition_point(|other| other < key), keys.partition_point(|other| other <= key));
        Order { order: orders.slice(row, 1), items: items.slice(start, end - start) }
    };
    Ok(orders_of.map(order).collect())
}

/// How long an order takes to go, or to come.
fn timed(engine: &Engine, order: &Order, comes: bool) -> Result<Duration> {
    let begun = Instant::now();
    let mut transaction = engine.begin()?;
    for (table, rows) in [("orders", &order.order), ("lineitem", &order.items)] {
        match comes {
            true => transaction.insert(table, rows.clone())?,
            false => transaction.delete(table, rows.clone())?,
        }
    }
    engine.wait(transaction.commit()?)?;
    Ok(begun.elapsed())
}

/// How many rows each view has.
fn rows(engine: &Engine) -> Result<Vec<i64>> {
    let count = |view: usize| -> Result<i64> {
        let counted = engine.query(&format!("SELECT COUNT(*) FROM q{view}"))?;
        Ok(counted[0].column(0).as_primitive::<Int64Type>().value(0))
    };
    (1..=22).map(count).collect()
}
