//! Judges every function and operator over the edges of every type.

use std::path::PathBuf;
use std::process::ExitCode;

use alluvium_judges::sweep::{Others, Sweep};
use clap::Parser;

/// Compares every function and operator with DuckDB and Postgres, over the edges of every type of its arguments: as a
/// constant, in a query, and in a view whose rows come, go and come again.
#[derive(Parser)]
struct Arguments {
    /// The Python that has the module `duckdb`.
    #[arg(long, default_value = "python3")]
    python: PathBuf,
    /// The folder of Postgres's programs.
    #[arg(long, default_value = "/usr/lib/postgresql/15/bin")]
    postgres: PathBuf,
    /// Combinations of values for each combination of types.
    #[arg(long, default_value_t = 40)]
    rows: usize,
    /// Only functions and operators whose names begin so.
    #[arg(long, default_value = "")]
    only: String,
    /// Writes the answers of DuckDB and Postgres to a file, and compares nothing.
    #[arg(long)]
    record: Option<PathBuf>,
    /// Reads the answers of DuckDB and Postgres from a file that `--record` wrote with the same options.
    #[arg(long)]
    replay: Option<PathBuf>,
    /// Prints what others take and the engine refuses.
    #[arg(long)]
    refusals: bool,
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> Result<ExitCode, String> {
    // Panics of DataFusion and of workers are part of the result.
    std::panic::set_hook(Box::new(|_| {}));
    let sweep = Sweep::new(arguments.rows, &arguments.only)?;
    let others = Others { python: arguments.python.clone(), postgres: arguments.postgres.clone() };
    if let Some(path) = &arguments.record {
        sweep.record(&others, path)?;
        return Ok(ExitCode::SUCCESS);
    }
    let report = match &arguments.replay {
        Some(path) => {
            let text = std::fs::read_to_string(path);
            sweep.replay(&text.map_err(|error| format!("{}: {error}", path.display()))?)?
        }
        None => sweep.run(&others)?,
    };
    print!("{report}");
    for (line, count) in report.deviations() {
        println!("\ndeviates {count}: {line}");
    }
    if arguments.refusals {
        println!();
        for (what, count) in report.refused() {
            println!("refused {count}: {what}");
        }
    }
    for (function, what) in report.wrong() {
        println!("\nwrong: {function}\n  {what}");
    }
    Ok(if report.wrong().is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
