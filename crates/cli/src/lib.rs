//! The command line of Alluvium: the code of the executable `alluvium`, which others can run in their process.
//!
//! [`args`] parses the command line. [`shell`] runs statements as they are read, on a terminal with a [`prompt`],
//! and [`run`] runs a whole program with its sources. `serve` lets clients connect, if the feature of that name is on, and `report` asks a server why a view is slow. [`program`] splits text into statements, [`output`] writes
//! results, [`console`] and [`diagnostic`] show messages, and [`log`] writes the log. [`packed`] are files that are part of the executable,
//! and the commands that use them. [`state`] checks, lists, copies and upgrades state directories. `journal` keeps
//! journals of engines on other machines, and promotes standbys, if the feature `remote` is on. [`nexmark`]
//! runs the benchmark. [`process`] is about the process.

#![warn(unreachable_pub, clippy::print_stderr, clippy::print_stdout)]

mod args;
mod console;
mod diagnostic;
#[cfg(feature = "remote")]
mod journal;
mod log;
mod nexmark;
mod output;
mod packed;
mod process;
mod program;
mod progress;
mod prompt;
#[cfg(feature = "connect")]
mod report;
mod run;
#[cfg(feature = "serve")]
mod serve;
mod shell;
mod size;
mod state;

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::Path;

use args::Args;
use packed::{demo, init};
use process::interrupt::Interrupt;
use process::status::Status;
use process::{allocator, descriptors, panics};

/// Runs a command line and returns its exit status. The arguments are those after the name of the program.
///
/// The process should then end with this status: limits of the process change, panics of any thread print nothing until this function
/// returns, and SIGINT, SIGTERM and SIGHUP end the process from the first call on.
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> u8 {
    main_of(None, arguments)
}

/// As [`main`], in a process of `executable`, which runs its arguments as this function does.
///
/// With it, `alluvium nexmark` measures each of several queries in a separate process; without it, in this process.
pub fn main_of(executable: Option<&Path>, arguments: impl IntoIterator<Item = OsString>) -> u8 {
    allocator::loosen();
    descriptors::raise();
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    let ran = panics::silenced(|| match args::parse(arguments) {
        Ok(arguments) => dispatch(arguments, executable),
        Err(usage) => {
            // If it cannot be written, the status still tells.
            let _ = usage.print();
            Status(usage.exit_code() as u8)
        }
    });
    let status = ran.unwrap_or_else(|panic| {
        let what = panic.downcast_ref::<String>().map(String::as_str);
        let what = what.or(panic.downcast_ref::<&str>().copied());
        console::report(format_args!("error: {}", what.unwrap_or("the program failed")));
        Status::FAILURE
    });
    if status == Status::FAILURE {
        panics::report_place();
    }
    // Rust flushes it at the end of its own programs only.
    let _ = io::stdout().flush();
    status.0
}

/// Runs a parsed command line.
fn dispatch(arguments: Args, executable: Option<&Path>) -> Status {
    if let Err(error) = Interrupt::listen() {
        return shell::status(Err(shell::failed(Some(&"signals"), error)));
    }
    match arguments {
        Args::Shell(args) => shell::run(args),
        Args::Run(args) => run::run(args),
        #[cfg(feature = "serve")]
        Args::Serve(args) => serve::run(&args),
        #[cfg(feature = "connect")]
        Args::Report(args) => report::run(&args),
        Args::Demo(args) => demo::run(args),
        Args::Init(args) => init::run(args),
        Args::Check(directory) => state::check(directory),
        Args::Manifest(directory, json) => state::manifest(directory, json),
        Args::Backup(args) => state::backup(args),
        Args::Upgrade(directory) => state::upgrade(&directory),
        #[cfg(feature = "remote")]
        Args::Journal(command) => journal::run(&command),
        #[cfg(feature = "remote")]
        Args::Promote(directory) => journal::promotion::promote(&directory),
        Args::Nexmark(args) => nexmark::run(args, executable),
        Args::Completions(shell) => shell::write(&args::completions(shell)),
        Args::Man(page) => shell::write(&page),
    }
}
