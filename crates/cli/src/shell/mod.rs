//! Runs programs, one statement after the other.
//!
//! [`Shell`] is an engine with one session and a place for results. Statements and commands reach it from
//! files, arguments, standard input and the [prompt](crate::prompt); [`command`] is what begins with a dot,
//! and [`subscription`] shows the changes of a view.

mod command;
mod subscription;

use std::collections::BTreeMap;
use std::fmt::Display;
use std::io::{self, BufWriter, ErrorKind, IsTerminal, Stdout, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use alluvium::arrow::array::RecordBatch;
use alluvium::arrow::datatypes::SchemaRef;
use alluvium::{Builder, Engine, Error, Outcome, Session, SourceState, Statement};

pub use command::COMMANDS;

use crate::allocator;
use crate::args::{Origin, ShellArgs};
use crate::diagnostic::{Diagnostic, Refused};
use crate::interrupt::{self, Interrupt};
use crate::output::Output;
use crate::program::{Filled, Piece, PieceKind, Program, Variables, offset};
use crate::progress::ProgressLine;
use crate::prompt::Prompt;

/// Why no further statement is run.
#[derive(Debug)]
pub enum Stop {
    /// Something went wrong and has been reported.
    Failed,
    /// The user asked to stop.
    Interrupted,
    /// All has been done that was asked for, or nobody reads the results any more.
    Closed,
}

/// Runs what the command line asks for. The status is 0 if all was done, 1 after an error in SQL or
/// data, 130 if the user interrupted it.
pub fn run(args: ShellArgs) -> ExitCode {
    status(start(args).and_then(|(mut shell, origins)| {
        let stop = shell.run_all(&origins);
        shell.warn();
        stop
    }))
}

fn start(args: ShellArgs) -> Result<(Shell<BufWriter<Stdout>>, Vec<Origin>), Stop> {
    let engine = engine(args.workers.get(), args.memory)
        .open_in_memory()
        .map_err(|error| failed(None, error))?;
    let output = Output::new(BufWriter::new(io::stdout()), args.format, args.null);
    Ok((Shell::new(engine, output)?, args.origins))
}

/// Writes what is not a result of a statement.
pub fn write(text: &[u8]) -> ExitCode {
    let mut to = io::stdout();
    status(to.write_all(text).and_then(|()| to.flush()).map_err(unwritten))
}

/// An engine with all that it can be used with here, and with so much memory, if there is a limit.
pub fn engine(workers: usize, memory: Option<usize>) -> Builder {
    let builder = Engine::builder().workers(workers).memory(memory);
    alluvium_connect::formats(builder.on_pressure(allocator::tighten))
}

/// The status that tells how things ended.
pub fn status(stop: Result<(), Stop>) -> ExitCode {
    match stop {
        Ok(()) | Err(Stop::Closed) => ExitCode::SUCCESS,
        Err(Stop::Failed) => ExitCode::FAILURE,
        Err(Stop::Interrupted) => ExitCode::from(interrupt::STATUS),
    }
}

/// A session, and where its results go.
pub struct Shell<W> {
    engine: Engine,
    session: Session,
    output: Output<W>,
    pub interrupt: Interrupt,
    refused: Refused,
    /// How many refused rows of each input of a table have been told of.
    told: BTreeMap<(String, PathBuf), u64>,
    /// How many rows COPY has brought in, and how many it has refused.
    copied: (u64, u64),
    /// What is to be kept out of the way of messages.
    line: ProgressLine,
    /// What a program that is run may name; elsewhere there are no variables.
    variables: Option<Variables>,
    /// Whether it is told what each statement did and a subscription lasts until it is interrupted.
    is_prompt: bool,
    /// Whether it is told how long each statement took.
    timer: bool,
}

impl<W: Write> Shell<W> {
    /// A shell of its own session.
    pub fn new(engine: Engine, output: Output<W>) -> Result<Self, Stop> {
        let interrupt = Interrupt::listen().map_err(|error| failed(None, error))?;
        let mut session = engine.session();
        session.set_awaits_sources(true);
        Ok(Self {
            engine,
            session,
            output,
            interrupt,
            refused: Refused::default(),
            told: BTreeMap::new(),
            copied: (0, 0),
            line: ProgressLine::hidden(),
            variables: None,
            is_prompt: false,
            timer: false,
        })
    }

    /// Programs may name variables from now on, and messages keep out of the way of a line.
    pub fn becomes_run(&mut self, variables: Variables, line: ProgressLine) {
        self.variables = Some(variables);
        self.line = line;
    }

    /// How many rows COPY has brought in, and how many it has refused.
    pub fn copied(&self) -> (u64, u64) {
        self.copied
    }

    /// What its statements act on.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    fn run_all(&mut self, origins: &[Origin]) -> Result<(), Stop> {
        for origin in origins {
            let mut program = match origin {
                Origin::File(path) => Program::from_file(path)
                    .map_err(|error| failed(Some(&path.display()), error))?,
                Origin::Command(text) => Program::from_argument(text.clone()),
            };
            self.run_program(&mut program)?;
        }
        if !origins.is_empty() {
            return Ok(());
        }
        if io::stdin().is_terminal() {
            self.is_prompt = true;
            // Whoever sits at it can ask again.
            self.session.set_awaits_sources(false);
            return Prompt::new(self)?.run();
        }
        self.run_program(&mut Program::from_stdin())
    }

    /// Runs a program up to its first error, and writes what comes of it.
    pub fn run_program(&mut self, program: &mut Program) -> Result<(), Stop> {
        self.run_program_with(program, &mut |_, _| Ok(()))
    }

    /// Runs a program up to its first error, and writes what comes of it; of each statement that has been run,
    /// `after` is told first, whose errors are the statement's.
    pub fn run_program_with(
        &mut self,
        program: &mut Program,
        after: &mut dyn FnMut(&Statement, &Outcome) -> alluvium::Result<()>,
    ) -> Result<(), Stop> {
        let interrupt = self.interrupt.clone();
        while let Some(piece) = interrupt
            .while_idle(|| program.next())
            .map_err(|error| failed(Some(&program.name), error))?
        {
            match piece.kind {
                PieceKind::Command if self.variables.is_none() => {
                    self.command(&piece.text).map_err(|stop| match stop {
                        Ok(stop) => stop,
                        Err(message) => self.report(program, &piece, Some(0), &message),
                    })?;
                }
                _ => self.run_statement(program, &piece, after)?,
            }
            if self.interrupt.is_asked() {
                return Err(Stop::Interrupted);
            }
        }
        Ok(())
    }

    fn run_statement(
        &mut self,
        program: &Program,
        piece: &Piece,
        after: &mut dyn FnMut(&Statement, &Outcome) -> alluvium::Result<()>,
    ) -> Result<(), Stop> {
        self.session.set_base(&program.base);
        let filled = match &self.variables {
            None => Filled::from(piece.text.clone()),
            Some(variables) => variables.fill(&piece.text).map_err(|unknown| {
                self.report(program, piece, Some(unknown.at), &unknown.message)
            })?,
        };
        let at = |error: &Error| {
            error.position().map(|position| filled.written(offset(&filled.text, position)))
        };
        // A piece is one statement, or none; more if a variable's value says so.
        for statement in alluvium::parse(&filled.text) {
            let start = Instant::now();
            let outcome = statement.map_err(Error::from).and_then(|statement| {
                let outcome = self.session.run(&statement)?;
                after(&statement, &outcome)?;
                Ok(outcome)
            });
            match outcome {
                Ok(outcome) => self.show(outcome)?,
                Err(error) => return Err(self.report(program, piece, at(&error), &error)),
            }
            if self.timer {
                eprintln!("time: {:.3} s", start.elapsed().as_secs_f64());
            }
            if self.interrupt.is_asked() {
                return Err(Stop::Interrupted);
            }
        }
        Ok(())
    }

    /// Writes what comes of a statement; at a prompt, also that there is nothing to write.
    fn show(&mut self, outcome: Outcome) -> Result<(), Stop> {
        let told = match outcome {
            Outcome::Rows { schema, batches } => {
                return self.output.rows(&schema, &batches).map_err(unwritten);
            }
            Outcome::Text(text) => return self.output.text(&text).map_err(unwritten),
            Outcome::Subscribed(subscription) => return self.follow(subscription),
            Outcome::Changed { rows, .. } => format!("{rows} rows changed"),
            Outcome::Copied { rows, refused, messages, .. } => {
                self.copied.0 += rows;
                self.copied.1 += refused;
                self.refused.add(refused, messages);
                format!("{rows} rows copied")
            }
            Outcome::Done => "done".to_string(),
        };
        match self.is_prompt {
            true => self.output.text(&told).map_err(unwritten),
            false => Ok(()),
        }
    }

    /// Writes rows that no statement asked for.
    pub fn write_rows(
        &mut self,
        name: &str,
        schema: &SchemaRef,
        rows: &[RecordBatch],
    ) -> Result<(), Stop> {
        self.output.named(name, schema, rows).map_err(unwritten)
    }

    /// Whether nothing more comes from the sources that have started.
    pub fn is_all_read(&self) -> bool {
        let progress = self.engine.progress();
        !progress.sources.iter().any(|source| source.state == SourceState::Running)
    }

    /// Warns of the input rows that were refused since the last time.
    pub fn warn(&mut self) {
        let mut refused = std::mem::take(&mut self.refused);
        for source in self.engine.progress().sources {
            let told = self.told.entry((source.table, source.path)).or_default();
            let before = std::mem::replace(told, source.refused);
            let new = source.messages.into_iter().skip(before as usize).collect();
            refused.add(source.refused.saturating_sub(before), new);
        }
        if !refused.is_empty() {
            self.line.aside(|| eprint!("{refused}"));
        }
    }

    /// Reports an error at a byte of a piece of a program.
    fn report(
        &self,
        program: &Program,
        piece: &Piece,
        at: Option<usize>,
        message: &dyn Display,
    ) -> Stop {
        let position = at.map(|at| program.position(piece, at));
        self.line.aside(|| eprint!("{}", Diagnostic { program, position, message }));
        Stop::Failed
    }

    /// Reports an error of a whole program.
    pub fn complain(&self, program: &str, error: &Error) -> Stop {
        self.line.aside(|| failed(Some(&program), error))
    }
}

/// What it means that results cannot be written.
fn unwritten(error: io::Error) -> Stop {
    match error.kind() {
        ErrorKind::BrokenPipe => Stop::Closed,
        _ => failed(Some(&"<stdout>"), error),
    }
}

/// Reports an error that is not at any place in a program.
pub fn failed(what: Option<&dyn Display>, error: impl Display) -> Stop {
    match what {
        Some(what) => eprintln!("error: {what}: {error}"),
        None => eprintln!("error: {error}"),
    }
    Stop::Failed
}
