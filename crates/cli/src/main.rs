//! The `alluvium` command.

use std::env;
use std::process::ExitCode;

fn main() -> ExitCode {
    let executable = env::current_exe().ok();
    alluvium_cli::main_of(executable.as_deref(), env::args_os().skip(1)).into()
}
