//! The command line inside of a process that is not the executable's.

use std::env;
use std::ffi::OsString;
use std::process::Command;

use crate::shell::Run;

/// Set in the process that runs command lines: this one's, in which settings of the process would disturb other tests.
const INSIDE: &str = "ALLUVIUM_TEST_INSIDE";

#[test]
fn a_command_line_returns_its_status_to_the_process_that_runs_it() {
    if env::var_os(INSIDE).is_some() {
        return run_inside();
    }
    let mut command = Command::new(env::current_exe().unwrap());
    let name = "library::a_command_line_returns_its_status_to_the_process_that_runs_it";
    command.args(["--exact", name, "--nocapture"]).env(INSIDE, "1");
    let found = Run::from(command.output().unwrap());
    assert_eq!(found.status, Some(0), "{found:?}");
    for line in ["a\r\n", "7\r\n", "statuses [0, 0, 1, 2, 0]\n", "Usage: alluvium "] {
        assert!(found.output.contains(line), "{found:?}");
    }
    for line in ["error: <command>:1:8: ", "error: unexpected argument '--wrong'", "panicked"] {
        assert!(found.errors.contains(line), "{found:?}");
    }
}

fn run_inside() {
    let lines: [&[&str]; 5] = [
        &["--format", "csv", "-c", "SELECT 7 AS a"],
        &["--help"],
        &["-c", "SELECT missing"],
        &["run", "--wrong"],
        &["completions", "bash"],
    ];
    let statuses = lines.map(|line| alluvium_cli::main(line.iter().map(OsString::from)));
    println!("statuses {statuses:?}");
    // Panics are printed again.
    assert!(std::panic::catch_unwind(|| panic!("as it has to")).is_err());
}
