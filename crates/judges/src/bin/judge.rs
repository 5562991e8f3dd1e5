//! Runs random programs generated from a seed, and judges their results.

use std::process::ExitCode;
use std::time::Instant;

use alluvium_judges::Judges;
use alluvium_judges::tally::{Tally, printed, shrunk};
use clap::Parser;

/// Runs random programs and compares every view with other databases.
#[derive(Parser)]
struct Arguments {
    /// The number of pairs of a view and a script of changes.
    #[arg(long, default_value_t = 2_000)]
    pairs: u64,
    /// The seed from which programs are generated.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The number of the first program.
    #[arg(long, default_value_t = 0)]
    first: u64,
    /// Runs only every so many programs from the first one on.
    #[arg(long, default_value_t = 1)]
    step: usize,
    /// The judges: datafusion, sqlite, naive, variations, duckdb.
    #[arg(long, value_delimiter = ',', default_value = "datafusion,sqlite,naive,variations")]
    judges: Vec<String>,
    /// Counts the constructs of programs without running them.
    #[arg(long)]
    dry: bool,
    /// Prints why views were refused.
    #[arg(long)]
    refusals: bool,
    /// Shrinks the program of this number as long as it goes wrong, and prints it as an SQL file.
    #[arg(long)]
    shrink: Option<u64>,
    /// Prints the program of this number as an SQL file, without running it.
    #[arg(long)]
    print: Option<u64>,
    /// Arms the engine's seeded faults one after the other, and prints after how many pairs each is found. Needs
    /// the feature `faults`.
    #[arg(long)]
    mutants: bool,
    /// With --mutants, arms only the fault of this name.
    #[arg(long)]
    fault: Option<String>,
    /// The number of wrong programs after which to stop.
    #[arg(long, default_value_t = 20)]
    most: usize,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    // A panic of an engine's worker is reported as an error; only a panic of this thread is printed.
    std::panic::set_hook(Box::new(|panic| {
        if std::thread::current().name() == Some("main") {
            eprintln!("{panic}");
        }
    }));
    let uses = |name: &str| arguments.judges.iter().any(|judge| judge == name);
    let judges = Judges {
        datafusion: uses("datafusion"),
        sqlite: uses("sqlite"),
        naive: uses("naive"),
        duckdb: uses("duckdb"),
        variations: uses("variations"),
    };
    if let Some(number) = arguments.print {
        println!("{}", printed(arguments.seed, number));
        return ExitCode::SUCCESS;
    }
    if let Some(number) = arguments.shrink {
        return match shrunk(arguments.seed, number, judges) {
            Some((file, what)) => {
                println!("{file}\n# {}", what.replace('\n', "\n# "));
                ExitCode::FAILURE
            }
            None => ExitCode::SUCCESS,
        };
    }
    if arguments.mutants {
        return mutants(&arguments, judges);
    }
    if arguments.dry {
        let programs = arguments.pairs.div_ceil(12);
        let tally = Tally::dry(arguments.seed, arguments.first..arguments.first + programs);
        for (name, count) in &tally.constructs {
            println!("{count:>8} {name}");
        }
        return ExitCode::SUCCESS;
    }
    let start = Instant::now();
    let mut shown = 0;
    let numbers = (arguments.first..).step_by(arguments.step.max(1));
    let tally = Tally::run(arguments.seed, numbers, judges, |tally| {
        for (number, what) in &tally.wrong[shown..] {
            println!("program {number}: {what}\n");
        }
        shown = tally.wrong.len();
        if tally.pairs.is_multiple_of(480) {
            eprintln!("{} pairs, {} s", tally.pairs, start.elapsed().as_secs());
        }
        tally.pairs < arguments.pairs && shown < arguments.most
    });
    if arguments.refusals {
        for (reason, times) in &tally.refusals {
            println!("refused {times} times: {reason}");
        }
    }
    print!("{tally}");
    let rate = tally.pairs as f64 / start.elapsed().as_secs_f64();
    println!("{rate:>8.1} pairs per second");
    if tally.wrong.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

#[cfg(feature = "faults")]
fn mutants(arguments: &Arguments, judges: Judges) -> ExitCode {
    let mut escaped = false;
    let only = arguments.fault.as_deref();
    alluvium_judges::mutants::run(arguments.seed, arguments.pairs, judges, only, |fault, found| {
        match found {
            Some((pairs, what)) => {
                let what = what.lines().last().unwrap_or_default();
                let what: String = what.chars().take(100).collect();
                println!("{:<20} found after {pairs:>6} pairs: {what}", fault);
            }
            None => {
                escaped = true;
                println!("{:<20} not found in {} pairs", fault, arguments.pairs);
            }
        }
    });
    if escaped { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

#[cfg(not(feature = "faults"))]
fn mutants(_: &Arguments, _: Judges) -> ExitCode {
    eprintln!("--mutants needs a build with --features alluvium-judges/faults");
    ExitCode::from(2)
}
