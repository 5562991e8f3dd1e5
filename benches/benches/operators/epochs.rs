//! Epochs of a table below views of each kind.

use alluvium::Engine;
use alluvium_benches::grouped::{self, TABLES, VIEWS, insert, rows};

use crate::Times;

/// How many epochs there are, and the rows of each.
const EPOCHS: [(i64, i64); 2] = [(10_000, 1), (100, 1_000)];
/// The number of epochs of which one is waited for.
const PIPELINED: i64 = 64;

/// An engine with the rows and these views.
fn engine(workers: usize, size: i64, views: &[(&str, &str)]) -> Engine {
    let engine = Engine::builder().workers(workers).open_in_memory().expect("an engine opens");
    engine.execute(TABLES).expect("the statements are right");
    for (number, (_, view)) in views.iter().enumerate() {
        let create = format!("CREATE MATERIALIZED VIEW v{number} AS {view}");
        engine.execute(&create).expect("the views are right");
    }
    grouped::load(&engine, size);
    engine
}

/// Prints a table of those views whose names have all of these parts.
pub fn print(names: &[String], numbers: &[i64]) {
    let (size, workers) = (numbers.first().copied().unwrap_or(100_000), numbers.get(1).copied());
    let workers = workers.unwrap_or(1) as usize;
    println!("{size} rows, {workers} workers\n");
    println!("| view | epochs | operators, s | threads, s | ratio |\n|---|---|---|---|---|");
    let each = VIEWS.iter().map(|view| (view.0, std::slice::from_ref(view)));
    for (name, views) in each.chain([("all of them", &VIEWS[..])]) {
        if names.iter().all(|part| name.contains(part.as_str())) {
            measure(name, &engine(workers, size, views), size);
        }
    }
}

/// Commits epochs, and prints what they took.
fn measure(name: &str, engine: &Engine, size: i64) {
    let mut next = 0..;
    for (epochs, together) in EPOCHS {
        let before = Times::now(engine);
        for number in 1..=epochs {
            // Somewhere in the table; a new one is even.
            let ids: Vec<i64> = next.by_ref().take(together as usize).collect();
            let ids = ids
                .into_iter()
                .map(|row: i64| 2 * ((row / 2 + 1) * 1_000_003 % size) + 1 + row % 2);
            let epoch = insert(engine, "t", rows(ids, size, |id| (id + number) * 31 % 1009));
            if number % PIPELINED == 0 || number == epochs {
                engine.wait(epoch).expect("epochs complete");
            }
        }
        let Times { operators, threads } = Times::now(engine).since(before);
        println!(
            "| {name} | {epochs} of {together} | {operators:.3} | {threads:.3} | {:.2} |",
            operators / threads
        );
    }
}
