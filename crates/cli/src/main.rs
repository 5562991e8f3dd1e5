//! The `alluvium` command.
//!
//! [`args`] parses the command line. [`shell`] runs statements as they are read, on a terminal with a [`prompt`],
//! and [`run`] runs a whole program with its sources. [`program`] splits text into statements, [`output`] writes
//! results, and [`console`] and [`diagnostic`] show messages. [`state`] checks, lists, copies and upgrades state
//! directories. [`nexmark`] runs the benchmark. [`allocator`] and
//! [`descriptors`] set limits of the process, [`panics`] keeps it from printing panics, and [`interrupt`] ends it.

#![warn(unreachable_pub, clippy::print_stderr, clippy::print_stdout)]

mod allocator;
mod args;
mod console;
mod descriptors;
mod diagnostic;
mod interrupt;
mod memory;
mod nexmark;
mod output;
mod panics;
mod program;
mod progress;
mod prompt;
mod run;
mod shell;
mod size;
mod state;
mod terminal;
mod ticker;
mod waits;

use std::panic::catch_unwind;
use std::process::ExitCode;

use args::Args;
use interrupt::Interrupt;

fn main() -> ExitCode {
    allocator::loosen();
    descriptors::raise();
    panics::silence();
    let ran = catch_unwind(|| {
        let arguments = args::parse();
        if let Err(error) = Interrupt::listen() {
            return shell::status(Err(shell::failed(Some(&"signals"), error)));
        }
        match arguments {
            Args::Shell(args) => shell::run(args),
            Args::Run(args) => run::run(args),
            Args::Check(directory) => state::check(directory),
            Args::Manifest(directory, json) => state::manifest(directory, json),
            Args::Backup(args) => state::backup(args),
            Args::Upgrade(directory) => state::upgrade(&directory),
            Args::Nexmark(args) => nexmark::run(args),
            Args::Completions(shell) => shell::write(&args::completions(shell)),
        }
    });
    let status = ran.unwrap_or_else(|panic| {
        let what = panic.downcast_ref::<String>().map(String::as_str);
        let what = what.or(panic.downcast_ref::<&str>().copied());
        console::report(format_args!("error: {}", what.unwrap_or("the program failed")));
        ExitCode::FAILURE
    });
    if status == ExitCode::FAILURE {
        panics::report_place();
    }
    status
}
