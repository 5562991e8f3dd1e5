//! The 22 queries of TPC-H as views of one program, at a small budget.
//!
//! ```sh
//! cargo run -p alluvium-benches --bin tpch -- target/release/alluvium [SCALE]
//! ```
//!
//! Loads the tables of the scale factor (default 0.1, which has 600,000 line items) into all 22 views at once, and prints the peak of
//! resident memory beside that of the same views over empty tables, for one worker and for two. The peak may exceed that by the budget and
//! 64 MiB. Ends with status 1 if it does, or if rows failed.

use std::fs::File;
use std::path::Path;
use std::process::ExitCode;

use alluvium_benches::tpch::{NAMES, TABLES, VIEWS, generate};
use alluvium_benches::{Finished, Folder, Result, run_program};

const MIB: u64 = 1 << 20;
const BUDGET: u64 = 64 * MIB;
/// The most that the peak may be above the budget and an empty run.
const MARGIN: u64 = 64 * MIB;

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let Some(binary) = arguments.next() else {
        eprintln!("usage: tpch BINARY [SCALE]");
        return ExitCode::from(2);
    };
    let scale = arguments.next().and_then(|scale| scale.parse().ok()).unwrap_or(0.1);
    match run(Path::new(&binary), scale) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}

/// Prints the table; whether all runs are within their bounds.
fn run(binary: &Path, scale: f64) -> Result<bool> {
    let (full, empty) = (Folder::new("tpch")?, Folder::new("tpch-empty")?);
    generate(full.path(), scale)?;
    for name in NAMES {
        File::create(empty.path().join(format!("{name}.csv")))?;
    }
    println!("| workers | rows of the views | seconds | empty | peak | at most |");
    println!("|---|---|---|---|---|---|");
    let mut within = true;
    for workers in [1, 2] {
        let measure =
            |folder: &Path| run_program(binary, folder, &program(folder), workers, BUDGET);
        let empty = measure(empty.path())?;
        let Finished { printed, peak, seconds } = measure(full.path())?;
        let (rows, errors) = printed
            .lines()
            .last()
            .and_then(|line| line.split_once(','))
            .ok_or_else(|| format!("it printed {printed:?}"))?;
        let most = BUDGET + empty.peak + MARGIN;
        let is_within = peak <= most && errors == "0";
        within &= is_within;
        let [empty, peak, most] = [empty.peak, peak, most].map(|bytes| bytes / MIB);
        let mark = if is_within { "" } else { " **more**" };
        println!(
            "| {workers} | {rows}, {errors} errors | {seconds:.0} | {empty} MiB | {peak} MiB{mark} | {most} MiB |"
        );
    }
    Ok(within)
}

/// The tables, the views, and a query for their numbers of rows.
fn program(folder: &Path) -> String {
    let tables = TABLES.replace("{folder}", &folder.display().to_string());
    let counts: Vec<String> =
        (1..=22).map(|query| format!("(SELECT COUNT(*) FROM q{query})")).collect();
    let errors = "(SELECT COUNT(*) FROM alluvium.errors)";
    format!("{tables}{VIEWS}SELECT {} AS n, {errors} AS errors;", counts.join(" + "))
}
