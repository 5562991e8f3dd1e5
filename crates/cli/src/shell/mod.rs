//! Running programs statement by statement.
//!
//! [`Shell`] is a [backend] and an output for results: an engine with one session, [`local`], or the connection to a
//! server. It runs statements from files, arguments, standard input and the [prompt](crate::prompt). [`command`] handles lines
//! that begin with a dot, [`shown`] writes answers, and [`subscription`] prints the [`changes`] of a view. [`stop`] says why a shell stops.

pub(crate) mod backend;
mod changes;
mod command;
mod errors;
pub(crate) mod local;
#[cfg(feature = "connect")]
mod remote;
mod shown;
mod stop;
mod subscription;
mod wake;

use std::fmt::Display;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::time::Instant;

use alluvium::arrow::array::RecordBatch;
use alluvium::arrow::datatypes::SchemaRef;
use alluvium::{Builder, Engine, Error, Statement};
pub(crate) use backend::Around;
use backend::{Answer, Backend, Changes, Failure, ended};
pub(crate) use command::COMMANDS;
use local::Local;
use shown::Shown;
use stop::unwritten;
pub(crate) use stop::{Stop, failed, stopped};

use crate::args::{OpenArgs, Origin, ShellArgs};
use crate::console;
use crate::diagnostic::{Diagnostic, Refused};
use crate::log::Log;
use crate::output::Output;
use crate::process::allocator;
use crate::process::interrupt::Interrupt;
use crate::process::status::Status;
use crate::program::{Filled, Piece, PieceKind, Position, Program, Variables, offset};
use crate::progress::ProgressLine;
use crate::progress::waits;
use crate::prompt::Prompt;

/// Runs the statements named on the command line. The status is 0 on success, 1 after an error in SQL or data, and after a
/// signal 128 and its number.
pub(crate) fn run(args: ShellArgs) -> Status {
    status(run_origins(args))
}

/// Opens an engine, and says where the copy is that has the commits it was told to leave out.
pub(crate) fn opened(builder: Builder, open: &OpenArgs) -> Result<Engine, Stop> {
    let builder = open.apply(builder).map_err(|wrong| failed(None, wrong))?;
    let engine = builder.open().map_err(|error| failed(None, error))?;
    if let Some(path) = engine.put_aside() {
        let path = path.display();
        console::report(format_args!(
            "a copy of the state directory as it was is in {path}: remove it when nobody needs what was left out"
        ));
    }
    Ok(engine)
}

fn run_origins(args: ShellArgs) -> Result<(), Stop> {
    #[cfg(feature = "connect")]
    if let Some(address) = &args.connect {
        let output = Output::new(BufWriter::new(io::stdout()), args.format, args.null);
        let interrupt = Interrupt::listen().map_err(|error| failed(Some(&"signals"), error))?;
        let remote = remote::Remote::connect(address, interrupt)?;
        let mut shell = Shell::over(remote, output)?;
        let stop = shell.run_all(&args.origins);
        shell.warn();
        return stop;
    }
    let _log = Log::asked(&args.log).map_err(|wrong| failed(None, wrong))?;
    let builder = engine(args.workers.get(), args.memory).merge_threads(args.merge_threads);
    let engine = opened(builder, &args.open)?;
    interruptible(&engine, || {
        let _watch = waits::watch(engine.clone(), ProgressLine::hidden());
        let output = Output::new(BufWriter::new(io::stdout()), args.format, args.null);
        let mut shell = Shell::new(engine.clone(), output)?;
        let stop = shell.run_all(&args.origins);
        shell.warn();
        match stop {
            Ok(()) | Err(Stop::Closed) => {
                shell.warn_of_errors(true)?;
                engine.write_outputs().map_err(stopped)?;
                // The next one begins where this one ends.
                match engine.checkpoint() {
                    Err(error)
                        if !matches!(error, Error::Interrupted) && engine.relations().is_ok() =>
                    {
                        console::report(format_args!(
                            "warning: {error}; nothing is lost: the journal has what the checkpoint would have"
                        ));
                    }
                    taken => taken.map_err(stopped)?,
                }
                stop
            }
            stop => stop,
        }
    })
}

/// Runs `act`, whose calls on an engine end when the user asks for it.
pub(crate) fn interruptible<R>(
    engine: &Engine,
    act: impl FnOnce() -> Result<R, Stop>,
) -> Result<R, Stop> {
    let interrupt = Interrupt::listen().map_err(|error| failed(Some(&"signals"), error))?;
    let watched = engine.interrupt();
    interrupt.attach(watched.clone());
    watched.watch(act)
}

/// Writes text to standard output.
pub(crate) fn write(text: &[u8]) -> Status {
    let mut to = io::stdout();
    status(to.write_all(text).and_then(|()| to.flush()).map_err(unwritten))
}

/// A builder of engines with all file formats, and with a memory budget if there is one.
pub(crate) fn engine(workers: usize, memory: Option<usize>) -> Builder {
    let builder = Engine::builder().workers(workers).memory(memory);
    alluvium_connect::formats(builder.on_pressure(allocator::tighten))
}

/// The exit status.
pub(crate) fn status(stop: Result<(), Stop>) -> Status {
    match stop {
        Ok(()) | Err(Stop::Closed) => Status::SUCCESS,
        Err(Stop::Failed) => Status::FAILURE,
        Err(Stop::Interrupted) => {
            Interrupt::listen().map_or(Status::FAILURE, |interrupt| interrupt.status())
        }
    }
}

/// What runs statements, and the output for their results.
pub(crate) struct Shell<W, B = Local> {
    backend: B,
    output: Output<W>,
    pub(crate) interrupt: Interrupt,
    refused: Refused,
    /// The numbers of rows that COPY has inserted and refused.
    copied: (u64, u64),
    /// The progress line, which messages must not overwrite.
    line: ProgressLine,
    /// The variables of a program started by `alluvium run`.
    variables: Option<Variables>,
    /// Whether this is a prompt, which confirms each statement, and where a subscription lasts until interrupted.
    is_prompt: bool,
    /// Whether a statement has failed since the last transaction began.
    has_failed: bool,
    /// Whether another program may write statements while it reads the changes of subscriptions.
    is_driven: bool,
    /// The subscriptions whose changes are printed between statements.
    followed: Vec<Changes>,
    /// Whether to print how long each statement took.
    timer: bool,
    /// How many files are read from within each other.
    reading: usize,
}

impl<W: Write> Shell<W> {
    /// A shell with a new session.
    pub(crate) fn new(engine: Engine, output: Output<W>) -> Result<Self, Stop> {
        Self::over(Local::new(engine), output)
    }

    /// The engine that statements run on.
    pub(crate) fn engine(&self) -> &Engine {
        &self.backend.engine
    }
}

impl<W: Write, B: Backend> Shell<W, B> {
    /// A shell whose statements run there.
    fn over(backend: B, output: Output<W>) -> Result<Self, Stop> {
        let interrupt = Interrupt::listen().map_err(|error| failed(Some(&"signals"), error))?;
        Ok(Self {
            backend,
            output,
            interrupt,
            refused: Refused::default(),
            copied: (0, 0),
            line: ProgressLine::hidden(),
            variables: None,
            is_prompt: false,
            has_failed: false,
            is_driven: false,
            followed: Vec::new(),
            timer: false,
            reading: 0,
        })
    }

    /// Sets the variables of programs and the progress line.
    pub(crate) fn set_run(&mut self, variables: Variables, line: ProgressLine) {
        self.variables = Some(variables);
        self.line = line;
    }

    /// The numbers of rows that COPY has inserted and refused.
    pub(crate) fn copied(&self) -> (u64, u64) {
        self.copied
    }

    /// What runs statements.
    pub(crate) fn backend(&self) -> &B {
        &self.backend
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
            self.interrupt.at_prompt();
            self.backend.at_prompt();
            return Prompt::new(self)?.run();
        }
        let mut program = Program::from_stdin().map_err(|error| failed(Some(&"<stdin>"), error))?;
        self.is_driven = true;
        self.run_program(&mut program)?;
        self.follow_to_the_end()
    }

    /// Runs a program up to its first error, and writes its results.
    pub(crate) fn run_program(&mut self, program: &mut Program) -> Result<(), Stop> {
        self.run_program_with(program, &mut ())
    }

    /// As [`Shell::run_program`], with more to do around the statements.
    pub(crate) fn run_program_with(
        &mut self,
        program: &mut Program,
        around: &mut dyn Around,
    ) -> Result<(), Stop> {
        let interrupt = self.interrupt.clone();
        while let Some(piece) = self.next_piece(program, &interrupt)? {
            match piece.kind {
                PieceKind::Command if self.variables.is_none() => {
                    self.command(&piece.text).map_err(|stop| match stop {
                        Ok(stop) => stop,
                        Err(message) => self.report(program, &piece, Some(0), &message),
                    })?;
                }
                _ => self.run_statement(program, &piece, around)?,
            }
            if self.interrupt.is_asked() {
                return Err(Stop::Interrupted);
            }
        }
        Ok(())
    }

    /// The next piece of a program. While it is waited for, changes of subscriptions are printed.
    fn next_piece(
        &mut self,
        program: &mut Program,
        interrupt: &Interrupt,
    ) -> Result<Option<Piece>, Stop> {
        if self.followed.is_empty() {
            let next = interrupt.while_idle(|| program.next());
            return next.map_err(|error| failed(Some(&program.name), error));
        }
        self.deliver()?;
        let mut stopped = None;
        let mut idle = || {
            self.deliver().map_err(|stop| {
                stopped = Some(stop);
                io::Error::other("changes cannot be delivered")
            })
        };
        let next = interrupt.while_idle(|| program.next_while(Some(&mut idle)));
        match stopped {
            Some(stop) => Err(stop),
            None => next.map_err(|error| failed(Some(&program.name), error)),
        }
    }

    fn run_statement(
        &mut self,
        program: &Program,
        piece: &Piece,
        around: &mut dyn Around,
    ) -> Result<(), Stop> {
        self.backend.set_base(&program.base);
        let filled = self.fill(program, piece)?;
        let at = |position| filled.written(offset(&filled.text, position));
        // A piece is one statement or none, or more if the value of a variable contains a semicolon.
        for statement in alluvium::parse(&filled.text) {
            let start = Instant::now();
            let shown = match statement {
                Ok(statement) => self.answer(&statement, around)?,
                Err(error) => Err(error.into()),
            };
            if let Err(failure) = shown {
                self.has_failed = true;
                return Err(self.report_failure(program, piece, &failure, at));
            }
            if self.variables.is_none() {
                // In a program later statements do not wait for this one.
                self.warn_of_errors(self.is_prompt)?;
            }
            if self.timer {
                console::report(format_args!("time: {:.3} s", start.elapsed().as_secs_f64()));
            }
            if self.interrupt.is_asked() {
                return Err(Stop::Interrupted);
            }
        }
        Ok(())
    }

    /// Runs a statement and writes its result. The rows of a query are computed meanwhile: their failure is the statement's.
    fn answer(
        &mut self,
        statement: &Statement,
        around: &mut dyn Around,
    ) -> Result<Result<(), Failure>, Stop> {
        let Self { backend, output, refused, copied, is_prompt, has_failed, .. } = self;
        let (is_prompt, command) = (*is_prompt, statement.command());
        let changes = match backend.run(statement, around) {
            Ok(Answer::Changes(changes)) => changes,
            Ok(answer) => {
                let shown = Shown { output, refused, copied, is_prompt, command, has_failed };
                return shown.write(answer);
            }
            Err(failure) => return Ok(Err(failure)),
        };
        self.follow(changes)
    }

    /// A piece of a program with the values of variables.
    fn fill(&self, program: &Program, piece: &Piece) -> Result<Filled, Stop> {
        match &self.variables {
            None => Ok(Filled::from(piece.text.clone())),
            Some(variables) => variables
                .fill(&piece.text)
                .map_err(|unknown| self.report(program, piece, Some(unknown.at), &unknown.message)),
        }
    }

    /// The statements of a whole program, each with its line and column.
    pub(crate) fn statements(
        &self,
        program: &mut Program,
    ) -> Result<Vec<(Statement, Position)>, Stop> {
        let mut all = Vec::new();
        while let Some(piece) =
            program.next().map_err(|error| failed(Some(&program.name), error))?
        {
            let filled = self.fill(program, &piece)?;
            let at = |position| filled.written(offset(&filled.text, position));
            for statement in alluvium::parse(&filled.text) {
                let statement = statement
                    .map_err(|error| self.report_failure(program, &piece, &error.into(), at))?;
                let position = program.position(&piece, at(statement.position()));
                all.push((statement, position));
            }
        }
        Ok(all)
    }

    /// Writes rows under a name.
    pub(crate) fn write_rows(
        &mut self,
        name: &str,
        schema: &SchemaRef,
        rows: &[RecordBatch],
    ) -> Result<(), Stop> {
        self.output.named(name, schema, rows).map_err(unwritten)
    }

    /// Warns of the input rows refused since the last call.
    pub(crate) fn warn(&mut self) {
        let mut refused = std::mem::take(&mut self.refused);
        refused.append(self.backend.refused());
        if !refused.is_empty() {
            self.line.aside(|| console::report(&refused));
        }
    }

    /// Reports the failure of a statement, unless the user has ended it. Its position is in the text that was parsed.
    fn report_failure(
        &self,
        program: &Program,
        piece: &Piece,
        failure: &Failure,
        at: impl Fn(Position) -> usize,
    ) -> Stop {
        match failure {
            Failure::Interrupted => Stop::Interrupted,
            Failure::Error(message, position) => {
                self.report(program, piece, position.map(at), message)
            }
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
        self.line.aside(|| console::report(Diagnostic { program, position, message }));
        Stop::Failed
    }

    /// Reports an error of a whole program.
    pub(crate) fn report_program(&self, program: &str, error: &Error) -> Stop {
        match error {
            Error::Interrupted => Stop::Interrupted,
            error => self.line.aside(|| failed(Some(&program), error)),
        }
    }
}
