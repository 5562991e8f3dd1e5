//! `alluvium serve`: an engine for many clients.

use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use alluvium::Engine;
use alluvium_server::{Limits, Server, with_catalog};

use crate::args::ServeArgs;
use crate::console;
use crate::output::{Format, Output};
use crate::process::interrupt::Interrupt;
use crate::process::status::Status;
use crate::process::temporary::Temporary;
use crate::progress::ProgressLine;
use crate::run;
use crate::shell::{self, Shell, Stop, failed};

/// The name of the socket, by which Postgres's clients find it in its folder: 5432 is the port they expect.
const SOCKET: &str = ".s.PGSQL.5432";

/// How long changes are kept for subscribers that resume.
const HISTORY: Duration = Duration::from_secs(5 * 60);

/// What remains to be done once all clients are gone takes no longer.
const LAST_STEPS: Duration = Duration::from_secs(60);

/// Serves clients until a signal comes. The status is then 0.
pub(crate) fn run(args: &ServeArgs) -> Status {
    shell::status(serve(args))
}

fn serve(args: &ServeArgs) -> Result<(), Stop> {
    let builder = with_catalog(shell::engine(args.workers.get(), args.memory))
        .merge_threads(args.merge_threads)
        .history_time(HISTORY);
    let engine = shell::opened(args.open.apply(builder))?;
    if let Some(program) = &args.program {
        shell::interruptible(&engine, || begin(&engine, args, program))?;
    }
    let made = match &args.socket {
        Some(_) => None,
        None => Some(
            Temporary::new("alluvium-")
                .map_err(|error| failed(Some(&std::env::temp_dir().display()), error))?,
        ),
    };
    let folder: PathBuf = match (&args.socket, &made) {
        (Some(folder), _) => folder.clone(),
        (None, Some(made)) => made.path().to_owned(),
        (None, None) => PathBuf::new(),
    };
    let mut limits = Limits::default();
    limits.connections = args.connections.get();
    let mut server = Server::new(engine.clone()).limits(limits).pg_socket(folder.join(SOCKET));
    for address in &args.pg {
        server = server.pg(*address);
    }
    let interrupt = Interrupt::listen().map_err(|error| failed(Some(&"signals"), error))?;
    let grace = Duration::from_secs(args.grace);
    interrupt.attach(engine.interrupt());
    interrupt.allow(grace + LAST_STEPS);
    interrupt.unparks(&thread::current());
    let running = server.start().map_err(|error| failed(None, error))?;
    console::report(format_args!("psql -h {} -U alluvium", folder.display()));
    for address in running.pg_addresses() {
        console::report(format_args!("psql -h {} -p {} -U alluvium", address.ip(), address.port()));
    }
    while !interrupt.is_asked() {
        thread::park();
    }
    running.stop(grace);
    engine.write_outputs().map_err(|error| failed(None, error))?;
    engine.checkpoint().map_err(|error| failed(None, error))
}

/// Runs the program that comes before the clients.
fn begin(engine: &Engine, args: &ServeArgs, program: &Path) -> Result<(), Stop> {
    let output = Output::new(BufWriter::new(io::stdout()), Format::Table, None);
    let mut shell = Shell::new(engine.clone(), output)?;
    shell.set_run(args.set.iter().cloned().collect(), ProgressLine::hidden());
    run::resume(&mut shell, program, &args.open.state)?;
    engine.start().map_err(|error| shell.report_program(&program.display().to_string(), &error))
}
