//! `alluvium run`: running a program until its sources are exhausted, and writing its views.
//!
//! A run uses the [shell](crate::shell) on one file. Sources start at the first statement that reads, at START, or
//! after the last statement. The program ends when all finite sources are exhausted. [`outputs`] writes views to
//! files. Without output files and without queries in the program, [`contents`] prints the views. [`statistics`]
//! reports the cost.

mod contents;
mod outputs;
mod reconcile;
mod rehearsal;
mod statistics;
mod systems;

use std::fs;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::time::Instant;

use alluvium::unstable::{StatementKind, tree};
use alluvium::{Engine, Outcome, Session, Statement};
use outputs::Outputs;
use reconcile::{Reconciled, Step};
use statistics::Statistics;

use crate::args::{RunArgs, StateArgs};
use crate::console;
use crate::log::{Level, Log};
use crate::output::{Format, Output};
use crate::process::status::Status;
use crate::program::Program;
use crate::progress::{Aside, ProgressLine, waits};
#[cfg(feature = "serve")]
use crate::serve::of_run::Console;
use crate::shell::{self, Around, Shell, Stop, failed};

/// Runs a program. The exit status is that of the shell.
pub(crate) fn run(args: RunArgs) -> Status {
    shell::status(to_the_end(&args))
}

/// Runs a program until its sources are exhausted, and writes its views.
pub(crate) fn to_the_end(args: &RunArgs) -> Result<(), Stop> {
    let start = Instant::now();
    let log = match args.has_console() {
        true => Log::begin(&args.log, Level::Off).map(Some),
        false => Log::asked(&args.log),
    };
    let log = log.map_err(|wrong| failed(None, wrong))?;
    let mut program = Program::from_file(&args.program)
        .map_err(|error| failed(Some(&args.program.display()), error))?;
    if let Some(folder) = &args.output {
        fs::create_dir_all(folder).map_err(|error| failed(Some(&folder.display()), error))?;
    }
    let builder = shell::engine(args.workers.get(), args.memory)
        .merge_threads(args.merge_threads)
        .strict(args.strict);
    #[cfg(feature = "serve")]
    let builder = match &log {
        Some(log) if args.has_console() => Console::prepared(builder, log),
        _ => builder,
    };
    let engine = shell::opened(builder, &args.open)?;
    #[cfg(feature = "serve")]
    let console = args.console.map(|address| Console::start(&engine, address)).transpose()?;
    shell::interruptible(&engine, || run_on(&engine, args, &mut program, start))?;
    #[cfg(feature = "serve")]
    console.map_or(Ok(()), |console| console.stay())?;
    Ok(())
}

/// Runs a program on an engine.
fn run_on(
    engine: &Engine,
    args: &RunArgs,
    program: &mut Program,
    start: Instant,
) -> Result<(), Stop> {
    let line = ProgressLine::on_terminal();
    let to = Aside { to: io::stdout(), line: line.clone() };
    let format = args.format.and_then(|format| format.of_results()).unwrap_or(Format::Table);
    let mut shell = Shell::new(engine.clone(), Output::new(BufWriter::new(to), format, None))?;
    shell.set_run(args.set.iter().cloned().collect(), line.clone());

    let reconciled = reconciled(&shell, &args.program, &args.open.state)?;
    let drawing = line.draw(engine.clone());
    let watch = waits::watch(engine.clone(), line.clone());
    let outputs = args
        .output
        .as_ref()
        .map(|folder| Outputs { folder: folder.clone(), format: args.format.unwrap_or_default() });
    let ended = run_statements(&mut shell, program, reconciled, outputs.as_ref())
        .and_then(|shown| end(&mut shell, program, outputs.as_ref()).map(|()| shown));
    let elapsed = start.elapsed();
    drop(drawing);
    drop(watch);
    shell.warn();
    let shown = ended?;
    shell.warn_of_errors(true)?;

    if outputs.is_none() && !shown {
        contents::show(&mut shell)?;
    }
    if let Some(file) = &args.stats {
        let statistics = Statistics::of(&shell, args, elapsed)?;
        let mut text = serde_json::to_string_pretty(&statistics.json())
            .map_err(|error| failed(Some(&file.display()), error))?;
        text.push('\n');
        fs::write(file, text).map_err(|error| failed(Some(&file.display()), error))?;
    }
    Ok(())
}

/// Runs the statements of a program that has not run, or has run in part or as it was before, over the state that there is.
#[cfg(feature = "serve")]
pub(crate) fn resume<W: Write>(
    shell: &mut Shell<W>,
    path: &Path,
    state: &StateArgs,
) -> Result<(), Stop> {
    let mut program =
        Program::from_file(path).map_err(|error| failed(Some(&path.display()), error))?;
    let reconciled = reconciled(shell, path, state)?;
    run_statements(shell, &mut program, reconciled, None).map(drop)
}

/// The program compared with the state, if there is one that is kept.
fn reconciled<W: Write>(
    shell: &Shell<W>,
    program: &Path,
    state: &StateArgs,
) -> Result<Option<Reconciled>, Stop> {
    state.directory.as_ref().map(|_| reconcile(shell, program)).transpose()
}

/// Compares the program with the state, and drops the views that are rebuilt.
fn reconcile<W: Write>(shell: &Shell<W>, path: &Path) -> Result<Reconciled, Stop> {
    let program = Program::from_file(path);
    let mut program = program.map_err(|error| failed(Some(&path.display()), error))?;
    let (statements, positions): (Vec<_>, Vec<_>) =
        shell.statements(&mut program)?.into_iter().unzip();
    let engine = shell.engine();
    let stop = |statement: Option<usize>, message: String| match statement
        .and_then(|number| positions.get(number))
    {
        Some((line, column)) => failed(Some(&format!("{}:{line}:{column}", program.name)), message),
        None => failed(Some(&program.name), message),
    };
    let reconciled = Reconciled::new(engine, &statements)
        .map_err(|problem| stop(problem.statement, problem.message))?;
    if let Some(summary) = reconciled.summary() {
        rehearsal::failure(&statements)
            .map_err(|(number, error)| stop(Some(number), error.to_string()))?;
        console::report(summary);
    }
    reconciled.drop_old(engine).map_err(|error| shell.report_program(&program.name, &error))?;
    Ok(reconciled)
}

/// Runs the statements of a program; returns whether one of them has printed rows.
fn run_statements<W: Write>(
    shell: &mut Shell<W>,
    program: &mut Program,
    reconciled: Option<Reconciled>,
    outputs: Option<&Outputs>,
) -> Result<bool, Stop> {
    let engine = shell.engine().clone();
    let mut running = Running {
        engine,
        reconciled,
        outputs,
        number: 0,
        unwritten: Vec::new(),
        is_skipping: false,
        shown: false,
    };
    shell.run_program_with(program, &mut running)?;
    running.add_outputs().map_err(|error| shell.report_program(&program.name, &error))?;
    Ok(running.shown)
}

/// A program that is being run.
struct Running<'a> {
    engine: Engine,
    reconciled: Option<Reconciled>,
    outputs: Option<&'a Outputs>,
    /// How many statements have come.
    number: usize,
    /// Views that were created, or are there, and that are not written yet: LATENESS may follow, of a view that no other view reads, and
    /// views that a view recurs over.
    unwritten: Vec<String>,
    /// Whether the statements of a transaction are left out.
    is_skipping: bool,
    /// Whether one of them has printed rows.
    shown: bool,
}

impl Running<'_> {
    /// Notes that a view was created, or is there.
    fn expect_output(&mut self, statement: &Statement) {
        if let StatementKind::CreateView(view) = &tree(statement).kind {
            self.unwritten.push(view.name.clone());
        }
    }

    /// Writes the changes of such views.
    fn add_outputs(&mut self) -> alluvium::Result<()> {
        let views = std::mem::take(&mut self.unwritten);
        let Some(outputs) = self.outputs else { return Ok(()) };
        for view in views {
            if !outputs.add_changes(&self.engine, &view)? {
                self.unwritten.push(view);
            }
        }
        Ok(())
    }
}

impl Around for Running<'_> {
    fn before(&mut self, session: &mut Session, statement: &Statement) -> alluvium::Result<bool> {
        if !matches!(tree(statement).kind, StatementKind::Lateness(_)) {
            self.add_outputs()?;
        }
        let number = self.number;
        self.number += 1;
        let step = self.reconciled.as_ref().map_or(Step::Run, |found| found.step(number));
        match step {
            Step::Run => Ok(true),
            Step::Keep => {
                self.expect_output(statement);
                Ok(false)
            }
            Step::Inside => Ok(!self.is_skipping),
            Step::Once(key) => {
                self.is_skipping = self.engine.committed(&key)?.is_some();
                if !self.is_skipping {
                    session.set_key(key);
                }
                Ok(!self.is_skipping)
            }
        }
    }

    fn after(&mut self, statement: &Statement, outcome: &Outcome) -> alluvium::Result<()> {
        self.shown |= matches!(outcome, Outcome::Rows { .. } | Outcome::Subscribed(_));
        self.expect_output(statement);
        Ok(())
    }
}

/// Waits for the sources and completes the output files.
fn end<W: Write>(
    shell: &mut Shell<W>,
    program: &Program,
    outputs: Option<&Outputs>,
) -> Result<(), Stop> {
    let engine = shell.engine().clone();
    let fail = |error: alluvium::Error| shell.report_program(&program.name, &error);
    if let Some(outputs) = outputs {
        outputs.add_contents(&engine).map_err(&fail)?;
    }
    engine.start().map_err(&fail)?;
    engine.finish().map_err(&fail)
}
