//! A query of Nexmark, and the share of each kind of its operators.

use alluvium::Engine;
use alluvium::arrow::array::AsArray;
use alluvium::arrow::datatypes::UInt64Type;
use alluvium_nexmark::harness::{IN_FLIGHT, side_input};
use alluvium_nexmark::query::Query;
use alluvium_nexmark::source::{Extent, Input, RATE, Source};
use alluvium_nexmark::tables::Tables;
use alluvium_nexmark::{Result, Stream};

use crate::Times;

/// The events of an epoch.
const EPOCH: u64 = 40_000;

/// The work by kind, the first word of what operators are called. What takes rows in and what workers do outside of operators is left out.
const KINDS: &str = "SELECT split_part(name, ' ', 1) AS kind, SUM(busy_ns) AS busy FROM alluvium.operators
    WHERE view IS NOT NULL AND name NOT LIKE 'table %' GROUP BY 1 HAVING SUM(busy_ns) > 0 ORDER BY 2 DESC";

/// Runs a query over so many events, and prints the share of each kind of operators.
pub fn print(query: &Query, events: u64) -> Result<()> {
    let extent = Extent { events, epoch_rows: EPOCH, rate: RATE };
    let input = Input::prepare(&Source::Memory, extent, false)?;
    let engine = Engine::builder().workers(1).open_in_memory()?;
    engine.execute(&Tables::default().sql())?;
    let mut transaction = engine.begin()?;
    transaction.insert("side_input", side_input()?)?;
    transaction.commit()?;
    engine.execute(query.sql)?;
    let before = Times::now(&engine);
    let mut last = 0;
    for events in input.epochs() {
        let mut transaction = engine.begin()?;
        for (stream, rows) in Stream::ALL.into_iter().zip(events?.arrive()?) {
            transaction.insert(stream.name(), rows)?;
        }
        last = transaction.submit()?;
        engine.wait(last.saturating_sub(IN_FLIGHT as u64))?;
    }
    engine.wait(last)?;
    let Times { operators, threads } = Times::now(&engine).since(before);
    println!(
        "\n{}: {operators:.3} s of operators, {threads:.3} s of the thread, {:.2}\n",
        query.name,
        operators / threads
    );
    println!("| kind | s | share |\n|---|---|---|");
    let mut kinds: Vec<(String, f64)> = Vec::new();
    for rows in engine.query(KINDS)? {
        let (names, busy) =
            (rows.column(0).as_string::<i32>(), rows.column(1).as_primitive::<UInt64Type>());
        let of_each = names.iter().flatten().zip(busy.values());
        kinds.extend(of_each.map(|(name, busy)| (name.to_owned(), *busy as f64 / 1e9)));
    }
    let all: f64 = kinds.iter().map(|(_, busy)| busy).sum();
    for (kind, busy) in kinds {
        println!("| {kind} | {busy:.3} | {:.3} |", busy / all);
    }
    Ok(())
}
