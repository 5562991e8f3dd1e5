//! Running a program on an engine, and judging the rows of its views.
//!
//! [`bench`] executes the steps of a program on an engine, on a naive model of its tables, and on the databases that
//! judge. [`judge`] compares each view with their answers: after every transaction with the naive evaluator and SQLite,
//! and with DataFusion, which is slower, at the end and in every third program once midway. The contents of a view after a transaction are the sum of the
//! changes that its subscription delivered.
//!
//! Rows that are found by [an index](mod@indexes) are those of the model for which the condition holds.
//!
//! The rows of a [view with lateness](late_view) depend on the past of its query as well.
//!
//! A view is judged over the actual contents of the relations it reads, so that an error in one view is not reported
//! again for each view that reads it.

mod bench;
mod final_rows;
mod indexes;
mod judge;
mod late_view;

use std::collections::BTreeMap;

use bench::Bench;

use super::Program;
use super::recording::{Recorder, Recording};
use crate::answers::row::Row;

/// The judges that are consulted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Judges {
    /// DataFusion, evaluating each query in batch.
    pub datafusion: bool,
    /// SQLite.
    pub sqlite: bool,
    /// The naive evaluator.
    pub naive: bool,
    /// DuckDB, if it is installed.
    pub duckdb: bool,
    /// The engine itself, running the program in another way that must not change results.
    pub variations: bool,
}

/// The outcome of a view.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fate {
    /// Why the engine refused to create it.
    pub(crate) refused: Option<String>,
    /// Whether it was created.
    pub(crate) created: bool,
    /// Whether it ever held a row.
    pub(crate) filled: bool,
    /// Whether an expression ever failed in it.
    pub(crate) failed: bool,
    /// The number of answers compared, by judge: naive evaluator, SQLite, DataFusion, DuckDB.
    pub(crate) judged: [u32; 4],
    /// The first step at which it was wrong, and how.
    pub(crate) wrong: Option<(usize, String)>,
}

/// The outcome of a program.
#[derive(Clone, Debug, Default)]
pub(crate) struct Report {
    pub(crate) fates: Vec<Fate>,
    /// The step at which the engine as a whole failed, and how.
    pub(crate) broken: Option<(usize, String)>,
    /// The final contents of each view according to the naive evaluator.
    pub(crate) judged: Vec<Option<Vec<Row>>>,
    /// The final contents of each view.
    pub(crate) contents: Vec<Option<Vec<Row>>>,
    /// The changes of each view by epoch; the first entry is its initial snapshot.
    pub(crate) changes: Vec<Vec<(u64, BTreeMap<Row, i64>)>>,
    /// The changes of the tables, if they are to be replayed.
    pub(crate) recording: Option<Recording>,
}

impl Report {
    /// The report of a program of which nothing is known yet.
    fn empty(program: &Program) -> Self {
        Self {
            fates: vec![Fate::default(); program.views.len()],
            broken: None,
            judged: vec![None; program.views.len()],
            contents: vec![None; program.views.len()],
            changes: vec![Vec::new(); program.views.len()],
            recording: None,
        }
    }

    /// The report of a program that failed as a whole.
    fn broken(program: &Program, what: String) -> Self {
        Self { broken: Some((program.steps.len(), what)), ..Self::empty(program) }
    }

    /// The first error: its step, its view if it concerns one, and a description.
    pub(crate) fn wrong(&self) -> Option<(usize, Option<usize>, String)> {
        let views = self.fates.iter().enumerate();
        let views = views.filter_map(|(view, fate)| {
            fate.wrong.as_ref().map(|(step, text)| (*step, Some(view), text.clone()))
        });
        let broken = self.broken.as_ref().map(|(step, text)| (*step, None, text.clone()));
        views.chain(broken).min_by_key(|(step, ..)| *step)
    }
}

/// Runs a program and judges every view after each transaction.
pub(crate) fn run(program: &Program, judges: Judges) -> Report {
    catch_panic(program, || run_in(program, judges, Mode::Stepwise))
}

/// Runs a program and reads its views only at its end.
pub(crate) fn run_to_end(program: &Program, judges: Judges) -> Report {
    catch_panic(program, || run_in(program, judges, Mode::ToEnd))
}

/// Commits the recorded changes of a program's tables as fast as possible, and reads its views at its end.
pub(crate) fn replay(program: &Program, judges: Judges, recording: &Recording) -> Report {
    catch_panic(program, || run_in(program, judges, Mode::Replay(recording)))
}

/// How steps are executed, and when views are judged.
#[derive(Clone, Copy)]
enum Mode<'a> {
    /// Executes the statements; judges after each transaction.
    Stepwise,
    /// Executes the statements; judges at the end.
    ToEnd,
    /// Commits recorded changes instead of executing statements; judges at the end.
    Replay(&'a Recording),
}

/// Reports a panic on the client's thread like any other error.
fn catch_panic(program: &Program, run: impl FnOnce() -> Report) -> Report {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or(panic.downcast_ref::<&str>().copied()).unwrap_or("no message");
        Report::broken(program, format!("a client panicked: {text}"))
    })
}

fn run_in(program: &Program, judges: Judges, mode: Mode<'_>) -> Report {
    let mut bench = match Bench::new(program, judges, mode) {
        Ok(bench) => bench,
        Err(error) => return Report::broken(program, error),
    };
    for (place, step) in program.steps.iter().enumerate() {
        bench.place = place;
        if let Err(error) = bench.step(step) {
            bench.report.broken = Some((place, error));
            return bench.report;
        }
    }
    // Not every kind of step is followed by a judgement.
    if !bench.judged_last
        && bench.before.is_none()
        && let Err(error) = bench.judge()
    {
        bench.report.broken = Some((bench.place, error));
    }
    bench.report.recording = bench.recorder.take().map(Recorder::finish);
    bench.report
}

/// The text of an error.
pub(crate) fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}
