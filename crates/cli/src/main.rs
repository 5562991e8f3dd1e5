//! The `alluvium` command.
//!
//! [`args`] reads the command line, [`shell`] runs what it asks for, [`program`] is text to be run,
//! [`output`] writes results, and [`diagnostic`] says what went wrong and where.

mod args;
mod diagnostic;
mod interrupt;
mod output;
mod program;
mod prompt;
mod shell;

use std::process::ExitCode;

fn main() -> ExitCode {
    shell::run(args::parse())
}
