//! `alluvium nexmark`: measures the queries of the Nexmark benchmark.

use std::fmt::Display;
use std::fs;
use std::io::{self, Write};
use std::num::{NonZeroU64, NonZeroUsize};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use alluvium::Durability;
use alluvium_nexmark::harness::{self, Options};
use alluvium_nexmark::measurement::{Header, Histogram, Measurement, report};
use alluvium_nexmark::query::Query;
use alluvium_nexmark::source::{Extent, RATE, Source};
use alluvium_nexmark::tables::{Keeping, Tables};
use clap::ValueEnum;

use crate::args::StateArgs;
use crate::process::allocator;
use crate::process::status::Status;
use crate::process::temporary::Temporary;
use crate::{console, size};

/// The arguments of `alluvium nexmark`.
#[derive(Clone, Debug, PartialEq, clap::Args)]
pub(crate) struct NexmarkArgs {
    /// The queries, such as `q4,q7`, or `all`
    #[arg(long, value_name = "LIST", default_value = "all", value_parser = Queries::parse)]
    queries: Queries,
    /// The number of events in all three streams
    #[arg(long, value_name = "N", default_value = "10M", value_parser = count)]
    events: u64,
    /// What the tables keep: append-only, promised and unchecked ones keep nothing; append-only-kept, kept and keyed ones
    /// their rows
    #[arg(long, value_name = "KIND", default_value = "append-only")]
    tables: Keeping,
    /// The number of worker threads
    #[arg(long, value_name = "N", default_value = "1")]
    workers: NonZeroUsize,
    /// The number of events per epoch
    #[arg(long, value_name = "N", default_value = "40k", value_parser = count)]
    epoch_rows: u64,
    /// The number of events that arrive per second, whether the engine keeps up or not; latency counts from their
    /// scheduled arrival, and its histogram is printed [default: as many as the engine takes]
    #[arg(long, value_name = "N", value_parser = count)]
    rate: Option<u64>,
    /// The source of the events
    #[arg(long, value_enum, default_value = "memory")]
    source: SourceKind,
    /// Of the bids of each epoch, one in twenty is deleted in the next epoch, and one in twenty gets another price
    #[arg(long)]
    revisions: bool,
    /// The folder of the events' Parquet files, which are written if missing [default: a temporary folder]
    #[arg(long, value_name = "DIR")]
    directory: Option<PathBuf>,
    /// Writes the report to a file, or to standard output for `-`
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// The memory budget, such as 512M; state beyond it is kept in files [default: 80% of the available memory]
    #[arg(long, value_name = "SIZE", value_parser = size::parse)]
    pub(crate) memory: Option<usize>,
    /// The number of threads that merge state in the background; 0: the workers merge their own
    #[arg(long, value_name = "N", default_value = "0")]
    merge_threads: usize,
    /// How late events may come, such as 4s or 500ms, which the tables then declare: state that is behind is forgotten
    /// [default: not declared, all is kept]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    lateness: Option<Duration>,
    /// Of each query in a folder of its own in it.
    #[command(flatten)]
    state: StateArgs,
}

/// The kinds of [`Source`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum SourceKind {
    /// Generated before the clock starts, and kept in memory
    Memory,
    /// Generated while the queries run, on the same cores
    Generator,
    /// Read from Parquet files
    Parquet,
}

/// A list of queries.
#[derive(Clone, Debug, PartialEq)]
struct Queries(Vec<Query>);

impl Queries {
    fn parse(list: &str) -> Result<Self, alluvium_nexmark::Error> {
        Query::list(list).map(Self)
    }
}

/// A number with an optional unit: `k` for thousands, `M` for millions, `G` for billions.
fn count(text: &str) -> Result<u64, String> {
    let (digits, unit) = match text.as_bytes().last() {
        Some(b'k' | b'K') => (&text[..text.len() - 1], 1_000),
        Some(b'M') => (&text[..text.len() - 1], 1_000_000),
        Some(b'G') => (&text[..text.len() - 1], 1_000_000_000),
        _ => (text, 1),
    };
    let number = digits.parse::<u64>().ok().and_then(|number| number.checked_mul(unit));
    number
        .filter(|&number| number > 0)
        .ok_or_else(|| "expected a number such as 40k or 10M".to_owned())
}

/// A number of seconds or milliseconds, as `4s` or `500ms`.
fn duration(text: &str) -> Result<Duration, String> {
    let (digits, unit) = match text.strip_suffix("ms") {
        Some(digits) => (digits, 1),
        None => (text.strip_suffix('s').unwrap_or_default(), 1_000),
    };
    let number = digits.parse::<u64>().ok().and_then(|number| number.checked_mul(unit));
    // The tables declare it as a number of microseconds.
    number
        .filter(|milliseconds| *milliseconds <= i64::MAX as u64 / 1_000)
        .map(Duration::from_millis)
        .ok_or_else(|| "expected a time such as 4s or 500ms".to_owned())
}

/// Runs the benchmark. The status is 0 if all queries could be measured, else 1. Several queries are measured in separate processes of
/// `executable`, or else in this process.
pub(crate) fn run(arguments: NexmarkArgs, executable: Option<&Path>) -> Status {
    match measure(arguments, executable) {
        Ok(true) => Status::SUCCESS,
        Ok(false) => Status::FAILURE,
        Err(message) => {
            console::report(format_args!("error: {message}"));
            Status::FAILURE
        }
    }
}

/// Measures the queries; returns whether all could be measured.
fn measure(mut arguments: NexmarkArgs, executable: Option<&Path>) -> Result<bool, String> {
    let temporary = match (arguments.source, &arguments.directory) {
        (SourceKind::Parquet, None) => {
            let folder = Temporary::new("alluvium-nexmark-");
            Some(folder.map_err(|error| at(&std::env::temp_dir(), error))?)
        }
        _ => None,
    };
    if let Some(folder) = &temporary {
        arguments.directory = Some(folder.path().to_owned());
    }
    let to_stdout = arguments.json.as_deref() == Some(Path::new("-"));
    if !to_stdout {
        print(&Header)?;
    }
    let Queries(queries) = &arguments.queries;
    let mut measured = Vec::with_capacity(queries.len());
    for query in queries {
        let result = match executable {
            // So that the peak of memory belongs to this query.
            Some(executable) if queries.len() > 1 => {
                arguments.measure_separately(query, executable)
            }
            _ => arguments.options().and_then(|options| {
                harness::measure(query, &options).map_err(|error| Failure::Here(error.to_string()))
            }),
        };
        match result {
            Ok(measurement) => {
                if !to_stdout {
                    print(&measurement)?;
                    if arguments.rate.is_some() {
                        print(&Histogram(&measurement))?;
                    }
                }
                measured.push(measurement);
            }
            // The process has printed the reason.
            Err(Failure::Separate) => {}
            Err(Failure::Here(message)) => {
                console::report(format_args!("error: {}: {message}", query.name));
            }
        }
    }
    if let Some(path) = &arguments.json {
        let text = format!("{:#}", report(&measured));
        if to_stdout {
            print(&text)?;
        } else {
            fs::write(path, format!("{text}\n")).map_err(|error| at(path, error))?;
        }
    }
    Ok(measured.len() == queries.len())
}

/// Writes a line to standard output.
fn print(line: &dyn Display) -> Result<(), String> {
    writeln!(io::stdout(), "{line}").map_err(|error| format!("<stdout>: {error}"))
}

impl NexmarkArgs {
    fn options(&self) -> Result<Options, Failure> {
        let source = match (self.source, &self.directory) {
            (SourceKind::Memory, _) => Source::Memory,
            (SourceKind::Generator, _) => Source::Generator,
            (SourceKind::Parquet, Some(folder)) => Source::Parquet(folder.clone()),
            (SourceKind::Parquet, None) => {
                return Err(Failure::Here("Parquet files need a folder".to_owned()));
            }
        };
        let extent = Extent { events: self.events, epoch_rows: self.epoch_rows, rate: RATE };
        let Self { workers, revisions, memory, merge_threads, .. } = *self;
        let tables = Tables { keeping: self.tables, lateness: self.lateness };
        let on_pressure = allocator::tighten;
        let rate = self.rate.and_then(NonZeroU64::new);
        let state = self.state.directory.as_ref().map(PathBuf::from);
        let durability = self.state.durability.unwrap_or_default();
        Ok(Options {
            extent,
            tables,
            workers,
            source,
            revisions,
            memory,
            rate,
            merge_threads,
            state,
            durability,
            on_pressure,
        })
    }

    /// Measures a query in a separate process.
    fn measure_separately(&self, query: &Query, executable: &Path) -> Result<Measurement, Failure> {
        let here = |error: &dyn Display| Failure::Here(error.to_string());
        let source = self.source.to_possible_value();
        let mut command = Command::new(executable);
        command
            .args(["nexmark", "--json", "-", "--queries", query.name])
            .args(["--events", &self.events.to_string()])
            .args(["--tables", self.tables.name()])
            .args(["--workers", &self.workers.to_string()])
            .args(["--epoch-rows", &self.epoch_rows.to_string()])
            .args(["--merge-threads", &self.merge_threads.to_string()])
            .args(["--source", source.as_ref().map_or("memory", |source| source.get_name())])
            .stderr(Stdio::inherit());
        if self.revisions {
            command.arg("--revisions");
        }
        if let Some(folder) = &self.directory {
            command.arg("--directory").arg(folder);
        }
        if let Some(folder) = &self.state.directory {
            command.arg("--state").arg(folder);
        }
        if let Some(Durability::Never) = self.state.durability {
            command.args(["--durability", "never"]);
        }
        if let Some(Durability::Interval(interval)) = self.state.durability {
            command.args(["--durability", &format!("interval({})", interval.as_millis())]);
        }
        if let Some(lateness) = self.lateness {
            command.args(["--lateness", &format!("{}ms", lateness.as_millis())]);
        }
        if let Some(rate) = self.rate {
            command.args(["--rate", &rate.to_string()]);
        }
        if let Some(memory) = self.memory {
            command.args(["--memory", &memory.to_string()]);
        }
        let output = command.output().map_err(|error| here(&error))?;
        match output.status.code() {
            Some(0) => {}
            Some(_) => return Err(Failure::Separate),
            None => return Err(here(&format_args!("its process ended with {}", output.status))),
        }
        let report: serde_json::Value =
            serde_json::from_slice(&output.stdout).map_err(|error| here(&error))?;
        Measurement::from_json(&report["queries"][0])
            .ok_or_else(|| here(&"the report of its process is incomplete"))
    }
}

/// Why a query has not been measured.
enum Failure {
    /// The query failed in this process, with this message.
    Here(String),
    /// The separate process failed, and has printed the reason.
    Separate,
}

fn at(path: &Path, error: impl Display) -> String {
    format!("{}: {error}", path.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units() {
        assert_eq!(duration("4s"), Ok(Duration::from_secs(4)));
        assert_eq!(duration("500ms"), Ok(Duration::from_millis(500)));
        for wrong in ["", "s", "4", "4m", "-1s", "1.5s", "99999999999999999s"] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn numbers_accept_units_of_thousands_and_millions() {
        assert_eq!(count("40k"), Ok(40_000));
        assert_eq!(count("10M"), Ok(10_000_000));
        assert_eq!(count("7"), Ok(7));
        for wrong in ["", "k", "0", "-1", "1.5M", "99999999999G", "10m", "é"] {
            assert!(count(wrong).is_err(), "{wrong}");
        }
    }
}
