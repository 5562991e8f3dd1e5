//! `alluvium serve`: an engine for many clients.
//!
//! [`options`] are its command line, with times in [`duration`], and [`config`] makes one of a configuration file. [`check`] says what is
//! wrong with it. [`of_run`] is the console of `alluvium run`, and [`reload`] reads anew what may change while it runs.

pub(crate) mod check;
pub(crate) mod config;
mod duration;
pub(crate) mod of_run;
pub(crate) mod options;
mod reload;

use std::io::{self, BufWriter, IsTerminal};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use alluvium::Engine;
use alluvium::unstable::BuilderParts;
use alluvium_server::{Running, Server, with_catalog};

use self::check::{Checked, check};
use self::options::ServeArgs;
use crate::console;
#[cfg(feature = "remote")]
use crate::journal::promotion::Watching;
use crate::log::{Level, Log};
use crate::output::{Format, Output};
use crate::process::interrupt::Interrupt;
use crate::process::status::Status;
use crate::process::temporary::Temporary;
use crate::progress::ProgressLine;
use crate::run;
use crate::shell::{self, Shell, Stop, failed};

/// The name of the socket, by which Postgres's clients find it in its folder: 5432 is the port they expect.
const SOCKET: &str = ".s.PGSQL.5432";

/// The name of the file with the token of clients of HTTP, in the socket's folder.
const TOKEN: &str = "http.token";

/// What is logged unless the options say it.
const LEVEL: Level = Level::Info;

/// What remains to be done once all clients are gone takes no longer.
const LAST_STEPS: Duration = Duration::from_secs(60);

/// Serves clients until a signal comes. The status is then 0.
pub(crate) fn run(args: &ServeArgs) -> Status {
    shell::status(serve(args))
}

fn serve(args: &ServeArgs) -> Result<(), Stop> {
    let checked = check(args).map_err(|wrong| failed(None, wrong))?;
    if args.check {
        console::report("the configuration is right");
        return Ok(());
    }
    let log = Log::begin(&args.log, LEVEL).map_err(|wrong| failed(None, wrong))?;
    let builder = with_catalog(shell::engine(args.workers.get(), args.memory))
        .log(log.recent())
        .merge_threads(args.merge_threads)
        .history_time(args.history);
    #[cfg(feature = "remote")]
    let builder = match &args.follow {
        Some(name) => builder.follow(name),
        None => builder,
    };
    let engine = shell::opened(builder, &args.open)?;
    #[cfg(feature = "remote")]
    let _promotion = promotion(&engine, args)?;
    if let Some(program) = &args.program {
        shell::interruptible(&engine, || begin(&engine, args, program))?;
    }
    let made = match &args.socket {
        Some(_) => None,
        None => Some(folder_of_socket()?),
    };
    let folder: PathBuf = match (&args.socket, &made) {
        (Some(folder), _) => folder.clone(),
        (None, Some(made)) => made.path().to_owned(),
        (None, None) => PathBuf::new(),
    };
    let server = configured(&engine, args, checked).pg_socket(folder.join(SOCKET));
    let token = folder.join(TOKEN);
    let server = if args.http.is_empty() { server } else { server.http_token_file(&token) };
    let interrupt = Interrupt::listen().map_err(|error| failed(Some(&"signals"), error))?;
    interrupt.attach(engine.interrupt());
    interrupt.allow(args.grace + LAST_STEPS);
    interrupt.unparks(&thread::current());
    let running = server.start().map_err(|error| failed(None, error))?;
    console::report(format_args!("psql -h {} -U alluvium", folder.display()));
    #[cfg(feature = "connect")]
    console::report(format_args!("alluvium shell --connect {}", folder.display()));
    for address in running.pg_addresses() {
        console::report(format_args!("psql -h {} -p {} -U alluvium", address.ip(), address.port()));
    }
    note_address(args, &folder);
    greet_browsers(&running, &token);
    reload::whenever_asked(&interrupt, &running, &log, args, || interrupt.wait())
        .map_err(|error| failed(Some(&"signals"), error))?;
    running.stop(args.grace);
    engine.write_outputs().map_err(|error| failed(None, error))?;
    engine.checkpoint().map_err(|error| failed(None, error))
}

/// What looks whether a standby is to be promoted, if the engine is one.
#[cfg(feature = "remote")]
fn promotion(engine: &Engine, args: &ServeArgs) -> Result<Option<Watching>, Stop> {
    match (&args.follow, &args.open.state.directory) {
        (Some(_), Some(directory)) => {
            let watching = Watching::begin(engine, Path::new(directory));
            watching.map(Some).map_err(|error| failed(Some(directory), error))
        }
        _ => Ok(None),
    }
}

/// A folder for the socket, which is removed at the end.
fn folder_of_socket() -> Result<Temporary, Stop> {
    Temporary::new("alluvium-")
        .map_err(|error| failed(Some(&std::env::temp_dir().display()), error))
}

/// The server of an engine, as the options say, without the socket.
fn configured(engine: &Engine, args: &ServeArgs, checked: Checked) -> Server {
    let mut server =
        Server::new(engine.clone()).limits(args.limits.limits()).file_access(checked.files);
    if let Some(tls) = checked.tls {
        server = server.tls(tls);
    }
    if args.insecure {
        server = server.insecure();
    }
    let server = args.pg.iter().fold(server, |server, address| server.pg(*address));
    let server = args.http.iter().fold(server, |server, address| server.http(*address));
    #[cfg(feature = "flight")]
    let server = args.flight.iter().fold(server, |server, address| server.flight(*address));
    let server = args.http_origin.iter().cloned().fold(server, Server::http_origin);
    args.http_name.iter().fold(server, Server::http_name)
}

/// Leaves word in the state directory of where the server is, for those who open the directory meanwhile.
fn note_address(args: &ServeArgs, folder: &Path) {
    let Some(directory) = &args.open.state.directory else { return };
    let address = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    let noted =
        alluvium::unstable::note_address(Path::new(directory), &address.display().to_string());
    if let Err(error) = noted {
        // They are told of this process alone.
        console::report(format_args!(
            "warning: the server's address is not noted in \"{directory}\": {error}"
        ));
    }
}

/// Says how to open the door of HTTP. The token is shown on a terminal alone: elsewhere standard error is kept.
fn greet_browsers(running: &Running, file: &Path) {
    let Some(token) = running.http_token() else { return };
    for address in running.http_addresses() {
        match io::stderr().is_terminal() {
            true => console::report(format_args!("http://{address}/login?token={token}")),
            false => console::report(format_args!(
                "http://{address}, with the token of {}",
                file.display()
            )),
        }
    }
}

/// Runs the program that comes before the clients.
fn begin(engine: &Engine, args: &ServeArgs, program: &Path) -> Result<(), Stop> {
    let output = Output::new(BufWriter::new(io::stdout()), Format::Table, None);
    let mut shell = Shell::new(engine.clone(), output)?;
    shell.set_run(args.set.iter().cloned().collect(), ProgressLine::hidden());
    run::resume(&mut shell, program, &args.open.state)?;
    engine.start().map_err(|error| shell.report_program(&program.display().to_string(), &error))
}
