//! The `alluvium` command.
//!
//! [`args`] parses the command line. [`shell`] runs statements as they are read, on a terminal with a [`prompt`],
//! and [`run`] runs a whole program with its sources. [`program`] splits text into statements, [`output`] writes
//! results, and [`diagnostic`] prints errors. [`nexmark`] runs the benchmark. [`allocator`] and [`descriptors`] set
//! limits of the process.

#![warn(unreachable_pub)]

mod allocator;
mod args;
mod descriptors;
mod diagnostic;
mod disk_full;
mod interrupt;
mod memory;
mod nexmark;
mod output;
mod program;
mod progress;
mod prompt;
mod run;
mod shell;
mod size;
mod ticker;

use std::process::ExitCode;

use args::Args;

fn main() -> ExitCode {
    allocator::loosen();
    descriptors::raise();
    match args::parse() {
        Args::Shell(args) => shell::run(args),
        Args::Run(args) => run::run(args),
        Args::Nexmark(args) => nexmark::run(args),
        Args::Completions(shell) => shell::write(&args::completions(shell)),
    }
}
