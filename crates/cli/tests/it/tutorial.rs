//! The tutorial has the same results as SQLite, on its sample and on the whole year.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use alluvium::unstable::{StatementKind, tree};
use alluvium::{Engine, Outcome, Session};

use crate::binary::binary;
use crate::sqlite::{self, Sqlite};

fn tutorial() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/tutorial"))
}

/// The outcome of a comparison.
struct Comparison {
    /// The number of flights at the end.
    flights: usize,
    /// The time until the flights were in all views.
    reading: Duration,
    /// The number of transactions after which all relations were equal.
    comparisons: usize,
}

/// Runs the tutorial in both databases, with the files of a folder. From the first query on, compares all relations
/// after each transaction.
fn compare(data: &str, workers: usize) -> Comparison {
    let text = fs::read_to_string(tutorial().join("flights.sql")).unwrap();
    let text = text.replace("${DATA:-data}", data);
    let builder = Engine::builder().workers(workers);
    let engine = alluvium_connect::formats(builder).open_in_memory().unwrap();
    let mut session = engine.session();
    session.set_base(tutorial());
    session.set_awaits_sources(true);
    let mut sqlite = Sqlite::new();
    let mut relations = Vec::new();
    let mut comparisons = 0;
    let mut has_data = false;
    let mut reading = Duration::ZERO;
    for statement in alluvium::parse(&text) {
        let statement = statement.unwrap();
        let start = Instant::now();
        session.run(&statement).unwrap_or_else(|error| panic!("{error} in {}", statement.text()));
        if matches!(tree(&statement).kind, StatementKind::Query(_)) && !has_data {
            reading = start.elapsed();
        }
        sqlite.run(&statement, tutorial());
        match &tree(&statement).kind {
            StatementKind::CreateTable(table) => relations.push(table.name.clone()),
            StatementKind::CreateView(view) => relations.push(view.name.clone()),
            StatementKind::Query(_) if !has_data => has_data = true,
            StatementKind::Query(_) | StatementKind::ExplainView { .. } => continue,
            _ => {}
        }
        if has_data && !session.in_transaction() {
            for relation in &relations {
                compare_relation(&mut session, &sqlite, relation);
            }
            comparisons += 1;
        }
    }
    Comparison { flights: sqlite.rows("flights").len(), reading, comparisons }
}

fn compare_relation(session: &mut Session, sqlite: &Sqlite, relation: &str) {
    let outcome = session.execute(&format!("SELECT * FROM {relation}")).unwrap().remove(0);
    let Outcome::Rows(rows) = outcome else {
        panic!("a query returns rows, not {outcome:?}");
    };
    let (ours, theirs) = (sqlite::rows(&rows.into_batches().unwrap()), sqlite.rows(relation));
    assert_eq!(ours.len(), theirs.len(), "rows of {relation}");
    for (ours, theirs) in ours.iter().zip(&theirs) {
        assert!(sqlite::same(ours, theirs), "{relation}: {ours:?} instead of {theirs:?}");
    }
}

#[test]
fn the_sample_agrees_with_sqlite_after_every_transaction() {
    for workers in 1..=3 {
        let Comparison { flights, comparisons, .. } = compare("data", workers);
        assert!(flights > 20_000, "{flights} flights");
        assert_eq!(comparisons, 7);
    }
}

#[test]
fn the_whole_year_agrees_with_sqlite_after_every_transaction() {
    let Some(year) = std::env::var_os("ALLUVIUM_FLIGHTS") else {
        // Not by a macro, whose output is printed for failed tests only.
        let _ = writeln!(std::io::stderr(), "skipped: ALLUVIUM_FLIGHTS names no folder of flights");
        return;
    };
    let year = Path::new(&year).canonicalize().unwrap();
    let Comparison { flights, reading, .. } = compare(year.to_str().unwrap(), 2);
    assert!(flights > 336_000, "{flights} flights");
    let rate = flights as f64 / reading.as_secs_f64();
    let _ = writeln!(
        std::io::stderr(),
        "{flights} flights read into all views in {reading:.1?}: {rate:.0} per second"
    );
}

#[test]
fn the_program_prints_its_views_before_and_after_the_corrections() {
    let program = tutorial().join("flights.sql");
    let run =
        Command::new(binary()).args(["run", "--format", "csv"]).arg(program).output().unwrap();
    let (text, errors) =
        (String::from_utf8(run.stdout).unwrap(), String::from_utf8(run.stderr).unwrap());
    assert!(run.status.success(), "{errors}");
    assert_eq!(errors, "");
    let lines_with = |start: &str| text.lines().filter(|line| line.starts_with(start)).count();
    assert_eq!(lines_with("airline,scheduled,departed"), 2);
    assert_eq!(lines_with("20938,"), 1);
    assert_eq!(lines_with("20939,"), 1);
    assert_eq!(lines_with("Zephyr Air,3,2,130.0,135"), 1);
    assert!(lines_with("ExpressJet Airlines Inc.,") == lines_with("Atlantic Southeast Airlines,"));
}
