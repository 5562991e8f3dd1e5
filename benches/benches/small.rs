//! The cost of an epoch of one row, from its transaction to its completion.
//!
//! ```sh
//! cargo bench -p alluvium-benches --bench small -- [rows] [workers] [part of a name]
//! ```
//!
//! A table with a primary key has so many rows, in groups of 100. Every epoch has one row: in turn a new one, and another
//! value of one that is there. It is waited for, or only every 64th is (*pipelined*). The first table has one view of each
//! kind, the second many views at once, which read that table or another one.
//!
//! The aims: a median of at most 60 µs with 1,000,000 rows and 100 µs with 10,000,000, three times as much for LAG, a
//! rolling sum and MEDIAN; 300 views that read another table add at most 100 µs; with 300 that read this one it is at most 5 ms.

use std::time::Instant;

use alluvium::Engine;
use alluvium_benches::grouped::{self, TABLES, VIEWS, insert, rows};
use alluvium_benches::processors;

/// Epochs before those that are measured.
const WARM: i64 = 500;
const EPOCHS: i64 = 4_000;
/// The number of epochs of which one is waited for.
const PIPELINED: i64 = 64;

/// Measurements of epochs: microseconds.
struct Measured {
    median: f64,
    /// The time that 99 of 100 epochs take at most.
    p99: f64,
    /// The time of all processors, on average.
    processors: f64,
    /// The time of one of many that are not waited for.
    pipelined: f64,
}

/// An engine with the rows and these views.
fn engine(workers: usize, size: i64, views: impl Iterator<Item = String>) -> Engine {
    let engine = Engine::builder().workers(workers).open_in_memory().expect("an engine opens");
    engine.execute(TABLES).expect("the statements are right");
    for (number, view) in views.enumerate() {
        engine
            .execute(&format!("CREATE MATERIALIZED VIEW v{number} AS {view}"))
            .expect("the views are right");
    }
    insert(&engine, "u", rows(0..1_000, 1_000, |id| id * 7919 % 1009));
    grouped::load(&engine, size);
    engine
}

fn measure(engine: &Engine, size: i64) -> Measured {
    let one = |epoch: i64| {
        // Somewhere in the table; a new one is even.
        let row = (epoch / 2 + 1) * 1_000_003 % size;
        rows(std::iter::once(2 * row + 1 + epoch % 2), size, |id| (id + epoch) * 31 % 1009)
    };
    let mut epochs = 0..;
    let mut next = || one(epochs.next().expect("there is always another"));
    for _ in 0..WARM {
        let epoch = insert(engine, "t", next());
        engine.wait(epoch).expect("epochs complete");
    }
    let busy = processors();
    let took = (0..EPOCHS).map(|_| {
        let row = next();
        let begun = Instant::now();
        let epoch = insert(engine, "t", row);
        engine.wait(epoch).expect("epochs complete");
        begun.elapsed().as_secs_f64() * 1e6
    });
    let mut took: Vec<f64> = took.collect();
    took.sort_unstable_by(f64::total_cmp);
    let processors = (processors() - busy) * 1e6 / EPOCHS as f64;
    let begun = Instant::now();
    for number in 1..=EPOCHS {
        let epoch = insert(engine, "t", next());
        if number % PIPELINED == 0 || number == EPOCHS {
            engine.wait(epoch).expect("epochs complete");
        }
    }
    let pipelined = begun.elapsed().as_secs_f64() * 1e6 / EPOCHS as f64;
    let quantile = |share: f64| took[(took.len() as f64 * share) as usize];
    Measured { median: quantile(0.5), p99: quantile(0.99), processors, pipelined }
}

fn print(what: &str, measured: &Measured) {
    let Measured { median, p99, processors, pipelined } = measured;
    println!("| {what} | {median:.0} | {p99:.0} | {processors:.0} | {pipelined:.0} |");
}

fn main() {
    // `cargo test` runs it to see that it starts.
    let is_bench = std::env::args().any(|argument| argument == "--bench");
    let arguments = std::env::args().skip(1).filter(|argument| argument != "--bench");
    let (numbers, names): (Vec<String>, Vec<String>) =
        arguments.partition(|argument| argument.parse::<i64>().is_ok());
    let mut numbers = numbers.iter().map(|number| number.parse().expect("it is a number"));
    let size = numbers.next().unwrap_or(if is_bench { 1_000_000 } else { 0 });
    let workers = numbers.next().unwrap_or(1) as usize;
    let is_asked = |name: &str| names.iter().all(|part| name.contains(part.as_str()));
    if size == 0 {
        return;
    }
    println!("{size} rows, {workers} workers; µs for an epoch of one row\n");
    println!("| view | median | p99 | processors | pipelined |\n|---|---|---|---|---|");
    let all = std::iter::once(("no view", "")).chain(VIEWS);
    for (name, view) in all.filter(|(name, _)| is_asked(name)) {
        let views = (!view.is_empty()).then(|| view.to_owned());
        print(name, &measure(&engine(workers, size, views.into_iter()), size));
    }
    println!("\n| views | median | p99 | processors | pipelined |\n|---|---|---|---|---|");
    for (table, what) in [("t", "this table"), ("u", "another table")] {
        for count in [1, 10, 100, 300] {
            let views = (0..count).map(|number| {
                format!("SELECT g, COUNT(*) AS c, SUM(n + {number}) AS s FROM {table} GROUP BY g")
            });
            // The state of many views over many rows takes long to load, and is not what is measured.
            let size = size.min(100_000);
            let name = format!("{count} over {what}, {size} rows");
            if is_asked(&name) {
                print(&name, &measure(&engine(workers, size, views), size));
            }
        }
    }
}
