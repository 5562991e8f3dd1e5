//! The time of operators beside the processor time of the threads that run them.
//!
//! ```sh
//! cargo bench -p alluvium-benches --bench operators -- [rows] [workers] [part of a name]
//! ```
//!
//! A table has so many rows, in groups of 100, below a view of one kind, and then below all of them. 10,000 epochs of one row change it,
//! and 100 of 1,000 rows; every 64th is waited for. Then all of `busy_ns` in `alluvium.operators`, the rows of workers outside of operators
//! included, stands beside what the kernel says the workers' threads had of processors. Epochs of one row are sampled, so their
//! figures vary from run to run. The aim: both are within 10 % of each other.
//!
//! ```sh
//! cargo bench -p alluvium-benches --bench operators -- nexmark q4,q9,q16 [events]
//! ```
//!
//! runs queries of Nexmark on one worker and prints the share of each kind of operators. `perf.py` beside this file finds the same
//! shares in call stacks that `perf` has sampled.

mod epochs;
mod nexmark;

use std::fs;

use alluvium::Engine;
use alluvium::arrow::array::AsArray;
use alluvium::arrow::datatypes::UInt64Type;
use alluvium_benches::{Result, arguments};
use alluvium_nexmark::query::Query;

/// Seconds of all workers.
#[derive(Clone, Copy)]
struct Times {
    operators: f64,
    threads: f64,
}

impl Times {
    fn now(engine: &Engine) -> Self {
        let busy = engine.query("SELECT SUM(busy_ns) AS busy FROM alluvium.operators");
        let busy = busy.expect("the query is right").remove(0);
        let operators = busy.column(0).as_primitive::<UInt64Type>().value(0) as f64 / 1e9;
        Self { operators, threads: threads() }
    }

    /// Those after a moment.
    fn since(self, before: Self) -> Self {
        Self {
            operators: self.operators - before.operators,
            threads: self.threads - before.threads,
        }
    }
}

/// The seconds that the threads of workers have had of processors.
fn threads() -> f64 {
    let tasks = fs::read_dir("/proc/self/task").expect("Linux lists threads");
    let of_thread = |task: std::io::Result<fs::DirEntry>| {
        // A thread may end meanwhile.
        let folder = task.ok()?.path();
        let name = fs::read_to_string(folder.join("comm")).ok()?;
        name.trim_end().strip_prefix("alluvium-")?.parse::<u32>().ok()?;
        let statistics = fs::read_to_string(folder.join("schedstat")).ok()?;
        let nanoseconds: u64 = statistics.split(' ').next()?.parse().ok()?;
        Some(nanoseconds as f64 / 1e9)
    };
    tasks.filter_map(of_thread).sum()
}

fn main() -> Result<()> {
    // `cargo test` runs it to see that it starts.
    let Some(arguments) = arguments() else { return Ok(()) };
    let (numbers, names): (Vec<_>, Vec<_>) =
        arguments.into_iter().partition(|argument| argument.parse::<i64>().is_ok());
    let numbers: Vec<i64> = numbers.iter().filter_map(|number| number.parse().ok()).collect();
    match &names[..] {
        [first, queries] if first == "nexmark" => {
            let events = numbers.first().map_or(2_000_000, |events| events.unsigned_abs());
            for query in Query::list(queries)? {
                nexmark::print(&query, events)?;
            }
        }
        _ => epochs::print(&names, &numbers),
    }
    Ok(())
}
