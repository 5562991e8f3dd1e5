//! Judges the queries of TPC-DS as views.

use std::path::PathBuf;
use std::process::ExitCode;

use alluvium_judges::suites::{Report, Verdict, tpcds};
use clap::Parser;

/// Makes each query of TPC-DS in a folder of SQL files a view, and compares it with DataFusion while rows come and go.
#[derive(Parser)]
struct Arguments {
    /// The folder with `q1.sql` to `q99.sql`.
    folder: PathBuf,
    /// The seed from which rows and changes are generated.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    // Panics of DataFusion and of workers are part of the result.
    std::panic::set_hook(Box::new(|_| {}));
    println!("| query | result | rows at most | |\n|---|---|---|---|");
    let done = |_: &str, report: &Report| print!("{}", report.lines());
    let report = match tpcds::run(&arguments.folder, arguments.seed, done) {
        Ok(report) => report,
        Err(error) => {
            eprintln!("error: {error}");
            return ExitCode::FAILURE;
        }
    };
    println!("\n{}\n{}", Report::heading(), report.line("all"));
    let is_right = report.count(|verdict| matches!(verdict, Verdict::Wrong(_))) == 0;
    if is_right { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
