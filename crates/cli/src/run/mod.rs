//! `alluvium run`: running a program until its sources are exhausted, and writing its views.
//!
//! A run uses the [shell](crate::shell) on one file. Sources start at the first statement that reads, at START, or
//! after the last statement. The program ends when all finite sources are exhausted. [`outputs`] writes views to
//! files. Without output files and without queries in the program, [`contents`] prints the views. [`statistics`]
//! reports the cost.

mod contents;
mod outputs;
mod statistics;

use std::fs;
use std::io::{self, BufWriter, Write};
use std::process::ExitCode;
use std::time::Instant;

use alluvium::{Engine, Outcome, StatementKind};

use crate::args::RunArgs;
use crate::output::{Format, Output};
use crate::program::Program;
use crate::progress::{Aside, ProgressLine};
use crate::shell::{self, Shell, Stop, failed};
use crate::waits;
use outputs::Outputs;
use statistics::Statistics;

/// Runs a program. The exit status is that of the shell.
pub(crate) fn run(args: RunArgs) -> ExitCode {
    shell::status(to_the_end(&args))
}

fn to_the_end(args: &RunArgs) -> Result<(), Stop> {
    let start = Instant::now();
    let mut program = Program::from_file(&args.program)
        .map_err(|error| failed(Some(&args.program.display()), error))?;
    if let Some(folder) = &args.output {
        fs::create_dir_all(folder).map_err(|error| failed(Some(&folder.display()), error))?;
    }
    let engine = shell::engine(args.workers.get(), args.memory)
        .merge_threads(args.merge_threads)
        .strict(args.strict)
        .open_in_memory()
        .map_err(|error| failed(None, error))?;
    shell::interruptible(&engine, || run_on(&engine, args, &mut program, start))
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

    let drawing = line.draw(engine.clone());
    let watch = waits::watch(engine.clone(), line.clone());
    let outputs = args
        .output
        .as_ref()
        .map(|folder| Outputs { folder: folder.clone(), format: args.format.unwrap_or_default() });
    let ended = run_statements(&mut shell, program, outputs.as_ref())
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

/// Runs the statements of a program; returns whether one of them has printed rows.
fn run_statements<W: Write>(
    shell: &mut Shell<W>,
    program: &mut Program,
    outputs: Option<&Outputs>,
) -> Result<bool, Stop> {
    let mut shown = false;
    let engine = shell.engine().clone();
    shell.run_program_with(program, &mut |statement, outcome| {
        shown |= matches!(outcome, Outcome::Rows { .. } | Outcome::Subscribed(_));
        match (&statement.kind, outputs) {
            (StatementKind::CreateView(view), Some(outputs)) => {
                outputs.add_changes(&engine, &view.name)
            }
            _ => Ok(()),
        }
    })?;
    Ok(shown)
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
