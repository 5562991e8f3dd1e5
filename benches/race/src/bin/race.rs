//! A race between Alluvium and another engine over the queries of Nexmark.

use std::env;
use std::fs;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::process::ExitCode;

use alluvium_nexmark::query::Query;
use alluvium_nexmark::source::{Extent, RATE};
use alluvium_race::mode::Mode;
use alluvium_race::race::{Outcome, race};
use alluvium_race::report::Table;
use alluvium_race::side::Side;
use alluvium_race::task::{Goal, Task};
use alluvium_race::{Result, allocator, process};
use clap::{Parser, Subcommand};
use serde_json::{Value, json};

#[global_allocator]
static ALLOCATOR: allocator::Allocator = allocator::Allocator;

/// Times Alluvium and another engine over the same events, in turn, and compares their answers.
#[derive(Parser)]
struct Arguments {
    #[command(subcommand)]
    alone: Option<Alone>,
    /// The queries, such as `q4,q7`, or `all`.
    #[arg(long, default_value = "all")]
    queries: String,
    /// The conditions, one after the other.
    #[arg(long, value_enum, value_delimiter = ',', default_value = "append-only")]
    mode: Vec<Mode>,
    /// Alluvium's opponent.
    #[arg(long, value_enum, default_value = "dbsp")]
    against: Side,
    /// The number of events in all three streams, such as 500k or 5M.
    #[arg(long, value_parser = count, default_value = "5M")]
    events: u64,
    /// The number of events in an epoch.
    #[arg(long, value_parser = count, default_value = "40k")]
    epoch_rows: u64,
    /// The number of workers of each side.
    #[arg(long, default_value = "2")]
    workers: NonZeroUsize,
    /// How often each side is timed.
    #[arg(long, default_value_t = 3)]
    pairs: usize,
    /// Writes all figures to this file.
    #[arg(long)]
    json: Option<PathBuf>,
    /// A directory on a disk for state beyond the memory; what is made there is removed.
    #[arg(long, default_value_os_t = env::temp_dir())]
    directory: PathBuf,
}

#[derive(Subcommand)]
enum Alone {
    /// Runs one side once and prints its report; the race starts such processes.
    #[command(name = process::ALONE, hide = true)]
    Run(Run),
}

#[derive(clap::Args)]
struct Run {
    #[arg(long, value_enum)]
    side: Side,
    #[arg(long, value_enum)]
    goal: Goal,
    #[arg(long)]
    query: String,
    #[arg(long, value_enum)]
    mode: Mode,
    #[arg(long)]
    events: u64,
    #[arg(long)]
    epoch_rows: u64,
    #[arg(long)]
    workers: NonZeroUsize,
    #[arg(long)]
    memory: Option<usize>,
    #[arg(long)]
    directory: PathBuf,
}

/// A number with an optional unit, `k` for thousands and `M` for millions.
fn count(text: &str) -> std::result::Result<u64, String> {
    let (digits, unit) = match text.strip_suffix(['k', 'K']) {
        Some(digits) => (digits, 1_000),
        None => match text.strip_suffix('M') {
            Some(digits) => (digits, 1_000_000),
            None => (text, 1),
        },
    };
    let number = digits.parse::<u64>().ok().and_then(|number| number.checked_mul(unit));
    let number = number.filter(|&number| number > 0);
    number.ok_or_else(|| "expected a number such as 40k or 5M".to_owned())
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<()> {
    let arguments = Arguments::parse();
    if let Some(Alone::Run(run)) = arguments.alone {
        return run.run();
    }
    let queries = Query::list(&arguments.queries)?;
    let mut reports: Vec<Value> = Vec::new();
    let mut is_well = true;
    for &mode in &arguments.mode {
        let (outcomes, failed) = arguments.race_all(mode, &queries);
        println!(
            "\n{}, {} events in epochs of {}, {} workers, {} pairs\n",
            mode.name(),
            arguments.events,
            mode.epoch_rows(arguments.epoch_rows),
            arguments.workers,
            arguments.pairs,
        );
        print!("{}", Table { other: arguments.against, outcomes: &outcomes });
        is_well &= failed == 0 && outcomes.iter().all(Outcome::agrees);
        reports.extend(outcomes.iter().map(|outcome| outcome.to_json(arguments.against)));
        if let Some(path) = &arguments.json {
            let report = json!({
                "events": arguments.events,
                "workers": arguments.workers.get(),
                "races": reports,
            });
            fs::write(path, format!("{report:#}\n"))?;
        }
    }
    if is_well { Ok(()) } else { Err("some answers differ, or some runs failed: see above".into()) }
}

impl Arguments {
    /// The outcomes of all queries, and how many have none because a run failed.
    fn race_all(&self, mode: Mode, queries: &[Query]) -> (Vec<Outcome>, usize) {
        let (mut outcomes, mut failed) = (Vec::new(), 0);
        for &query in queries {
            let epoch_rows = mode.epoch_rows(self.epoch_rows);
            let task = Task {
                query,
                mode,
                extent: Extent { events: self.events, epoch_rows, rate: RATE },
                workers: self.workers,
                memory: None,
                directory: self.directory.clone(),
            };
            if !self.against.takes(&task) {
                eprintln!("{}: {} does not take it in this mode", query.name, self.against.title());
                continue;
            }
            match race(task, self.against, self.pairs) {
                Ok(outcome) => {
                    eprint!(
                        "{}",
                        Table { other: self.against, outcomes: std::slice::from_ref(&outcome) }
                    );
                    outcomes.push(outcome);
                }
                Err(error) => {
                    eprintln!("{}: {error}", query.name);
                    failed += 1;
                }
            }
        }
        (outcomes, failed)
    }
}

impl Run {
    fn run(self) -> Result<()> {
        let Self { side, goal, query, mode, events, epoch_rows, workers, memory, directory } = self;
        let query = *Query::list(&query)?.first().ok_or("no query")?;
        let extent = Extent { events, epoch_rows, rate: RATE };
        let task = Task { query, mode, extent, workers, memory, directory };
        allocator::loosen();
        process::print(side, &task, goal)
    }
}
