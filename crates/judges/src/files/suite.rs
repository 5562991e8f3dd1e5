//! Running all files.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use sqllogictest::{Condition, Record, Runner, parse_with_name, strict_column_validator};

use super::database::{Client, Letter, locked};
use super::trial::{Skips, Tally, Trial};

const FILES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../sql/tests/slt");

/// The variable that selects files by a part of their path.
const ONLY: &str = "ALLUVIUM_SLT";

/// The number of errors printed per file.
const MOST_ERRORS: usize = 5;

/// Directives for a whole file.
const WITHOUT_SQLITE: &str = "sqlite: none";

/// Runs every file on an engine with `workers` workers. Panics with all errors.
pub fn run(workers: usize) {
    let files = texts();
    let mut faults = Vec::new();
    let mut queries = 0;
    let mut tally = Tally::default();
    for (name, text) in &files {
        let report = run_text(name, text, workers);
        queries += report.queries;
        tally += report.tally;
        faults.extend(report.faults);
    }
    let summary = format!(
        "{} files with {queries} queries on {workers} workers; views looked at {} times, {} times with DataFusion, \
         {} with SQLite, {} while they had errors",
        files.len(),
        tally.looks,
        tally.batch,
        tally.sqlite,
        tally.failing
    );
    println!("{summary}");
    assert!(faults.is_empty(), "{summary}\n{}", faults.join("\n"));
    if is_whole() {
        // Detects a judge that stopped answering.
        assert!(queries >= 150, "{summary}");
        assert!(
            tally.batch * 10 >= tally.looks * 7 && tally.sqlite * 2 >= tally.looks,
            "{summary}"
        );
    }
}

/// Whether all files are run.
pub(super) fn is_whole() -> bool {
    std::env::var_os(ONLY).is_none()
}

/// The files, or those whose path contains what `ALLUVIUM_SLT` says: their names and texts, in order.
pub(crate) fn texts() -> Vec<(String, String)> {
    let only = std::env::var(ONLY).unwrap_or_default();
    let mut files = find(Path::new(FILES)).unwrap_or_else(|error| panic!("{FILES}: {error}"));
    files.retain(|file| file.to_string_lossy().contains(&only));
    assert!(!files.is_empty(), "no file under {FILES} has {only:?} in its path");
    let text = |file: &PathBuf| {
        let name = file.strip_prefix(FILES).unwrap_or(file).display().to_string();
        let text = std::fs::read_to_string(file).unwrap_or_else(|error| panic!("{name}: {error}"));
        (name, text)
    };
    files.iter().map(text).collect()
}

/// The files for `sqllogictest` in a folder and those within it, in order.
pub(crate) fn find(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    let (mut files, mut folders) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in folder.read_dir()? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "slt") {
                files.push(path);
            }
        }
    }
    files.sort();
    Ok(files)
}

/// The outcome of a file.
pub(crate) struct Report {
    pub(crate) queries: usize,
    pub(crate) tally: Tally,
    pub(crate) faults: Vec<String>,
}

/// Runs the text of a file on an engine of its own.
pub(crate) fn run_text(place: &str, text: &str, workers: usize) -> Report {
    let records: Vec<Record<Letter>> = parse_with_name(text, place)
        .unwrap_or_else(|error| panic!("not a file of records: {error}"));
    let with_sqlite =
        !records.iter().any(|record| matches!(record, Record::Comment(lines) if asks(lines)));
    let middle = records.len() / 2;
    // Some record, in no order.
    let reopened = place.len() * 31 % records.len().max(1);

    let trial = Arc::new(Mutex::new(Trial::new(workers, with_sqlite)));
    let client = trial.clone();
    let mut runner = Runner::new(move || std::future::ready(Ok(Client::new(&client))));
    runner.with_column_validator(strict_column_validator);

    let mut report = Report { queries: 0, tally: Tally::default(), faults: Vec::new() };
    let mut reads_errors = false;
    for (number, record) in records.into_iter().enumerate() {
        if number == middle {
            locked(&trial).watch_again();
        }
        // Half of the files resume from a checkpoint, the others with all that was done.
        if number >= reopened / 2 && place.len().is_multiple_of(2) {
            locked(&trial).save();
        }
        if number >= reopened {
            locked(&trial).reopen();
        }
        let (line, conditions, sql) = match &record {
            Record::Statement { loc, conditions, sql, .. } => (loc.line(), conditions, sql),
            Record::Query { loc, conditions, sql, .. } => {
                report.queries += 1;
                (loc.line(), conditions, sql)
            }
            _ => continue,
        };
        reads_errors |= sql.contains("alluvium.errors");
        let skips = |who: &str| {
            conditions
                .iter()
                .any(|condition| matches!(condition, Condition::SkipIf { label } if label == who))
        };
        let only = |who: &str| {
            conditions
                .iter()
                .any(|condition| matches!(condition, Condition::OnlyIf { label } if label == who))
        };
        if only("sqlite") {
            locked(&trial).sqlite_only(sql);
        } else if only("datafusion") {
            locked(&trial).datafusion_only(sql);
        } else {
            locked(&trial).skips =
                Skips { sqlite: skips("sqlite"), datafusion: skips("datafusion") };
        }
        let result = runner.run(record);
        let mut faults = locked(&trial).objections();
        faults.extend(result.err().map(|error| error.kind().to_string()));
        report.faults.extend(
            faults.into_iter().map(|fault| format!("{place}:{line}, {workers} workers: {fault}")),
        );
        if report.faults.len() >= MOST_ERRORS {
            report.faults.truncate(MOST_ERRORS);
            break;
        }
    }
    report.tally = locked(&trial).tally;
    if report.tally.failing > 0 && !reads_errors {
        report.faults.push(format!(
            "{place}, {workers} workers: there are errors that the file does not speak of"
        ));
    }
    report
}

fn asks(lines: &[String]) -> bool {
    lines.iter().any(|line| line.trim_start().starts_with(WITHOUT_SQLITE))
}
