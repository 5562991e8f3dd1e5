//! The `alluvium` command.
//!
//! [`args`] reads the command line; [`shell`] runs statements as they come, at a terminal with a [`prompt`], and
//! [`run`] a whole program with its sources. [`program`] is text to be run, [`output`] writes results, and
//! [`diagnostic`] says what went wrong and where. [`nexmark`] is the benchmark. [`allocator`] says when free
//! memory is given back to the system, and [`descriptors`] how many files may be open.

mod allocator;
mod args;
mod descriptors;
mod diagnostic;
mod interrupt;
mod memory;
mod nexmark;
mod output;
mod program;
mod progress;
mod prompt;
mod room;
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
