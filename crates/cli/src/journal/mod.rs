//! Journals on other machines: `alluvium journal serve` keeps them, and `--journal` names one. [`args`] are the options of both. [`promotion`] lets a
//! standby take the place of the engine that it follows.

pub(crate) mod args;
pub(crate) mod promotion;

use std::thread;
use std::time::Duration;

use alluvium_remote::JournalServer;

use self::args::{JournalCommand, ServeArgs};
use crate::console;
use crate::log::{Level, Log, LogArgs};
use crate::process::interrupt::Interrupt;
use crate::process::status::Status;
use crate::shell::{self, Stop, failed};

/// How long it takes at most to end.
const LAST_STEPS: Duration = Duration::from_secs(60);

/// Runs a command for journals.
pub(crate) fn run(command: &JournalCommand) -> Status {
    match command {
        JournalCommand::Serve(args) => shell::status(serve(args)),
    }
}

fn serve(args: &ServeArgs) -> Result<(), Stop> {
    let _log = Log::begin(&LogArgs::default(), Level::Warn).map_err(|wrong| failed(None, wrong))?;
    let interrupt = Interrupt::listen().map_err(|error| failed(Some(&"signals"), error))?;
    interrupt.expect_end();
    interrupt.allow(LAST_STEPS);
    interrupt.unparks(&thread::current());
    let identity = args.identity().map_err(|wrong| failed(None, wrong))?;
    let scheme = if identity.is_some() { "https" } else { "http" };
    let server = JournalServer::new(args.listen);
    let server = match args.keep_all {
        true => server.keep_all(),
        false => server.followed_bytes(args.keep_for_standbys as u64),
    };
    let server = identity.into_iter().fold(server, JournalServer::identity);
    let running = server.start(&args.dir).map_err(|error| failed(None, error))?;
    console::report(format_args!("--journal {scheme}://{}/NAME", running.address()));
    interrupt.wait();
    drop(running);
    Ok(())
}
