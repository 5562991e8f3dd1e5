//! Runs programs, one statement after the other.

use std::fmt::Display;
use std::io::{self, BufWriter, ErrorKind, IsTerminal, Write};
use std::process::ExitCode;

use alluvium::{Engine, Error, Outcome, Session};

use crate::args::{Args, Origin};
use crate::diagnostic::{Diagnostic, Refused};
use crate::interrupt::{self, Interrupt};
use crate::output::Output;
use crate::program::Program;
use crate::prompt::Prompt;

/// Why no further statement is run.
pub enum Stop {
    /// Something went wrong and has been reported.
    Failed,
    /// The user asked to stop.
    Interrupted,
    /// Nobody reads the results any more.
    Closed,
}

/// Runs what the command line asks for. The status is 0 if all was done, 1 after an error in SQL or
/// data, 130 if the user interrupted it.
pub fn run(args: Args) -> ExitCode {
    let stop = match start(&args) {
        Ok(mut shell) => {
            let stop = shell.run_all(&args.origins);
            shell.warn();
            stop
        }
        Err(stop) => Err(stop),
    };
    match stop {
        Ok(()) | Err(Stop::Closed) => ExitCode::SUCCESS,
        Err(Stop::Failed) => ExitCode::FAILURE,
        Err(Stop::Interrupted) => ExitCode::from(interrupt::STATUS),
    }
}

fn start(args: &Args) -> Result<Shell<impl Write + use<>>, Stop> {
    let interrupt = Interrupt::listen().map_err(|error| failed(None, error))?;
    let engine = Engine::builder()
        .workers(args.workers.get())
        .source(alluvium_connect::Csv)
        .open_in_memory()
        .map_err(|error| failed(None, error))?;
    let output = Output::new(BufWriter::new(io::stdout()), args.format, args.null.clone());
    Ok(Shell { session: engine.session(), output, interrupt, refused: Refused::default() })
}

/// A session, and where its results go.
pub struct Shell<W> {
    session: Session,
    output: Output<W>,
    pub interrupt: Interrupt,
    refused: Refused,
}

impl<W: Write> Shell<W> {
    fn run_all(&mut self, origins: &[Origin]) -> Result<(), Stop> {
        for origin in origins {
            let program = match origin {
                Origin::File(path) => Program::from_file(path)
                    .map_err(|error| failed(Some(&path.display()), error))?,
                Origin::Command(text) => Program::from_argument(text.clone()),
            };
            self.run_program(&program)?;
        }
        if !origins.is_empty() {
            return Ok(());
        }
        if io::stdin().is_terminal() {
            return Prompt::new(self).run();
        }
        let program = Program::from_stdin().map_err(|error| failed(Some(&"<stdin>"), error))?;
        self.run_program(&program)
    }

    /// Runs a program up to its first error, and writes what comes of it.
    fn run_program(&mut self, program: &Program) -> Result<(), Stop> {
        self.run_statements(program, |output, outcome| match outcome {
            Outcome::Rows { schema, batches } => output.rows(schema, batches),
            Outcome::Text(text) => output.text(text),
            _ => Ok(()),
        })
    }

    /// Runs a program up to its first error, and shows what comes of each statement.
    pub fn run_statements(
        &mut self,
        program: &Program,
        show: impl Fn(&mut Output<W>, &Outcome) -> io::Result<()>,
    ) -> Result<(), Stop> {
        self.session.set_base(&program.base);
        for statement in alluvium::parse(&program.text) {
            let outcome = statement
                .map_err(Error::from)
                .and_then(|statement| self.session.run(&statement))
                .map_err(|error| report(&Diagnostic { program, error: &error }))?;
            show(&mut self.output, &outcome).map_err(|error| match error.kind() {
                ErrorKind::BrokenPipe => Stop::Closed,
                _ => failed(Some(&"<stdout>"), error),
            })?;
            if let Outcome::Copied { refused, messages, .. } = outcome {
                self.refused.add(refused, messages);
            }
            if self.interrupt.is_asked() {
                return Err(Stop::Interrupted);
            }
        }
        Ok(())
    }

    /// Warns of the input rows that were refused since the last time.
    pub fn warn(&mut self) {
        let refused = std::mem::take(&mut self.refused);
        if !refused.is_empty() {
            eprint!("{refused}");
        }
    }
}

fn report(diagnostic: &Diagnostic<'_>) -> Stop {
    eprint!("{diagnostic}");
    Stop::Failed
}

/// Reports an error that is not at any place in a program.
fn failed(what: Option<&dyn Display>, error: impl Display) -> Stop {
    match what {
        Some(what) => eprintln!("error: {what}: {error}"),
        None => eprintln!("error: {error}"),
    }
    Stop::Failed
}
