//! Judges the queries of other projects' SQL files as views.

use std::path::PathBuf;
use std::process::ExitCode;

use alluvium_judges::suites::{self, Report};
use clap::Parser;

/// Makes each query in a folder of files for sqllogictest a view, and compares it with DataFusion while rows come and go.
#[derive(Parser)]
struct Arguments {
    /// The folder.
    folder: PathBuf,
    /// The seed from which changes are generated.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Prints each query that is refused, and why.
    #[arg(long)]
    refusals: bool,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    // Panics of DataFusion and of workers are part of the result.
    std::panic::set_hook(Box::new(|_| {}));
    println!("{}", Report::heading());
    let done = |name: &std::path::Path, report: &Report| {
        println!("{}", report.line(&name.display().to_string()));
    };
    let report = match suites::run(&arguments.folder, arguments.seed, done) {
        Ok(report) => report,
        Err(error) => {
            eprintln!("error: {error}");
            return ExitCode::FAILURE;
        }
    };
    println!("{}\n", report.line("all"));
    for (reason, count) in report.reasons() {
        println!("refused {count}: {reason}");
    }
    for (reason, count) in report.deviations() {
        println!("deviates {count}: {reason}");
    }
    if arguments.refusals {
        for (place, query, reason) in report.refused() {
            println!("\n{place}: refused: {reason}\n{query}");
        }
    }
    for (place, query, difference) in report.wrong() {
        println!("\n{place}: wrong: {difference}\n{query}");
    }
    if report.wrong().next().is_some() { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}
