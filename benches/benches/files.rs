//! How fast files are read: by one thread, and by several that decode parts of a file at once.
//!
//! ```sh
//! cargo bench -p alluvium-benches --bench files -- [rows] [part of a name]
//! ```
//!
//! A table of seven columns is written as CSV, also with texts in quotes, as lines of JSON and as Parquet. Then *decode* reads all of
//! its columns and drops them, and *query* computes a sum over it in an engine with as many workers. The table has rows a second, by the
//! clock and by the seconds of all processors, and MiB of the file a second. The file is in the page cache; each is read twice, and
//! the better one counts.
//!
//! The aim: half of the rows a second a core that DuckDB reads (`docs/benchmarks.md` has its command).

use std::path::Path;
use std::time::Instant;

use alluvium::{Engine, Source, SourceRequest};
use alluvium_benches::{Folder, processors};
use alluvium_connect::{Csv, Json, Parquet};

/// The rows by number, as a query.
fn table(rows: u64) -> String {
    format!(
        "SELECT value AS id, value % 1000 AS part, value * 1.25 AS price, value % 7 = 0 AS is_new, 'name ' || value % 5000 AS name, \
         DATE '2020-01-01' + CAST(value % 1500 AS INT) AS day, TIMESTAMP '2020-01-01 00:00:00' + value % 100000 * INTERVAL '1' SECOND AS at \
         FROM generate_series(1, {rows}) AS series (value)"
    )
}

/// A file of the table: its name, the source of its format, and its option.
type Written = (&'static str, Box<dyn Source>, Option<(&'static str, &'static str)>);

fn files() -> [Written; 4] {
    [
        ("plain.csv", Box::new(Csv), None),
        ("quoted.csv", Box::new(Csv), Some(("DELIMITER", " "))),
        ("lines.jsonl", Box::new(Json::LINES), None),
        ("groups.parquet", Box::new(Parquet), None),
    ]
}

/// Seconds by the clock and of all processors.
#[derive(Clone, Copy)]
struct Taken {
    clock: f64,
    processors: f64,
}

/// The better of two times that something took.
fn taken(mut run: impl FnMut()) -> Taken {
    let mut once = || {
        let (begun, before) = (Instant::now(), processors());
        run();
        Taken { clock: begun.elapsed().as_secs_f64(), processors: processors() - before }
    };
    let (first, second) = (once(), once());
    if first.clock < second.clock { first } else { second }
}

/// Reads all rows of a file, and returns how many there are.
fn decode(source: &dyn Source, path: &Path, option: &[(String, String)], threads: usize) -> u64 {
    let inferred = source.infer(path, option).expect("the file has columns");
    let mut request = SourceRequest::new(path, inferred.schema);
    (request.options, request.threads) = (inferred.options, threads);
    let mut reader = source.open(&request).expect("the file is there");
    let mut rows = 0;
    while let Some(portion) = reader.next().expect("the file can be read") {
        assert!(portion.refused.is_empty(), "{:?}", portion.refused.first());
        rows += portion.rows.num_rows() as u64;
    }
    rows
}

fn engine(workers: usize) -> Engine {
    let builder = alluvium_connect::formats(Engine::builder()).workers(workers);
    builder.open_in_memory().expect("an engine opens")
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|a| a != "--bench").collect();
    let rows: u64 =
        arguments.first().map_or(5_000_000, |rows| rows.parse().expect("a number of rows"));
    let part = arguments.get(1).map_or("", String::as_str);
    let folder = Folder::new("files").expect("a folder can be made");
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    println!("| file | MiB | read by | threads | million rows/s | a core | MiB/s |");
    println!("|---|---|---|---|---|---|---|");
    for (name, source, option) in files().into_iter().filter(|(name, ..)| name.contains(part)) {
        let path = folder.path().join(name);
        let with = option.map_or(String::new(), |(name, value)| format!("({name} '{value}')"));
        let option = option.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let option: Vec<(String, String)> = option.into_iter().collect();
        let written = format!("COPY ({}) TO '{}' {with}", table(rows), path.display());
        engine(1).execute(&written).expect("the file can be written");
        let mib = path.metadata().map_or(0.0, |file| file.len() as f64 / f64::from(1 << 20));
        let report = |by: &str, threads: usize, taken: Taken| {
            let millions = rows as f64 / 1e6;
            println!(
                "| {name} | {mib:.0} | {by} | {threads} | {:.2} | {:.2} | {:.0} |",
                millions / taken.clock,
                millions / taken.processors,
                mib / taken.clock
            );
        };
        let mut counts = vec![1];
        counts.extend((cores > 1).then_some(cores));
        for threads in counts {
            let decoded = taken(|| assert_eq!(decode(&*source, &path, &option, threads), rows));
            report("decode", threads, decoded);
            let engine = engine(threads);
            let sum =
                format!("SELECT COUNT(*), SUM(price), MAX(name) FROM '{}' {with}", path.display());
            let queried = taken(|| drop(engine.query(&sum).expect("the query runs")));
            report("query", threads, queried);
        }
    }
}
