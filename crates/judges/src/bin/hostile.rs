//! Gives hostile statements, files and calls to engines, and looks whether they survive.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use alluvium_judges::hostile::{Kind, Run, Summary, child, show, watch};
use clap::{Args, Parser, Subcommand};

/// Gives hostile input to engines in a process that it watches.
#[derive(Parser)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Statements: mutants of those in the SQL files, and others that are deep, wide or long.
    Statements(Watched),
    /// Damaged and disproportionate files of every format.
    Files(Watched),
    /// Calls of the library: batches, parameters, keys and names that are wrong.
    Calls(Watched),
    /// Runs cases in this process, for a process that watches.
    #[command(subcommand, hide = true)]
    Child(Child),
}

#[derive(Subcommand)]
enum Child {
    Statements(Cases),
    Files(Cases),
    Calls(Cases),
}

#[derive(Args)]
struct Watched {
    #[command(flatten)]
    cases: Cases,
    /// Writes the statements and files of cases with findings to this folder.
    #[arg(long)]
    out: Option<PathBuf>,
    /// The number of findings after which to stop.
    #[arg(long, default_value_t = 100)]
    most: usize,
    /// Prints the first case instead of running it.
    #[arg(long)]
    show: bool,
}

#[derive(Args)]
struct Cases {
    /// The seed from which cases are generated.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The number of the first case.
    #[arg(long, default_value_t = 0)]
    first: u64,
    /// The number of cases.
    #[arg(long, default_value_t = 1_000)]
    count: u64,
    /// How many times slower than a release build the engine may be.
    #[arg(long, default_value_t = if cfg!(debug_assertions) { 10 } else { 1 })]
    factor: u32,
    /// The most bytes of a deep or wide statement, more or less; of a file, four times as many.
    #[arg(long, default_value_t = 4 << 20)]
    longest: usize,
}

impl Cases {
    fn run(&self, kind: Kind) -> Run {
        let Self { seed, first, count, factor, longest } = *self;
        Run { kind, seed, first, count, factor, longest }
    }
}

fn main() -> ExitCode {
    match &Arguments::parse().command {
        Command::Statements(watched) => run(watched, Kind::Statements),
        Command::Files(watched) => run(watched, Kind::Files),
        Command::Calls(watched) => run(watched, Kind::Calls),
        Command::Child(Child::Statements(cases)) => run_child(cases.run(Kind::Statements)),
        Command::Child(Child::Files(cases)) => run_child(cases.run(Kind::Files)),
        Command::Child(Child::Calls(cases)) => run_child(cases.run(Kind::Calls)),
    }
}

/// Runs cases on a thread as programs start them, with less stack than the first.
fn run_child(run: Run) -> ExitCode {
    match std::thread::spawn(move || child(&run)).join() {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

fn run(watched: &Watched, kind: Kind) -> ExitCode {
    let run = watched.cases.run(kind);
    if watched.show {
        let (files, text) = show(&run);
        for (name, bytes) in files {
            println!("-- {name}, {} bytes: {}", bytes.len(), String::from_utf8_lossy(&bytes));
        }
        println!("{text}");
        return ExitCode::SUCCESS;
    }
    let start = Instant::now();
    let (mut printed, mut cases) = (0, 0);
    let summary = watch(&run, |summary: &Summary| {
        for (number, finding) in &summary.findings[printed..] {
            println!("{number} {}: {}", finding.fault, finding.what);
            if let Some(folder) = &watched.out
                && let Err(error) = keep(folder, &Run { first: *number, ..run.clone() })
            {
                eprintln!("{}: {error}", folder.display());
            }
        }
        printed = summary.findings.len();
        if summary.cases >= cases + 1_000 {
            cases = summary.cases;
            eprintln!("{cases} cases, {} s", start.elapsed().as_secs());
        }
        printed < watched.most
    });
    print!("{summary}");
    println!("seed {}, {} s", run.seed, start.elapsed().as_secs());
    if summary.findings.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Writes the statements and the files of a case.
fn keep(folder: &Path, run: &Run) -> std::io::Result<()> {
    std::fs::create_dir_all(folder)?;
    let (files, text) = show(run);
    std::fs::write(folder.join(format!("{}-{}.sql", run.seed, run.first)), text)?;
    files.into_iter().try_for_each(|(name, bytes)| {
        std::fs::write(folder.join(format!("{}-{}-{name}", run.seed, run.first)), bytes)
    })
}
