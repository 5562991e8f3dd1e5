//! Seeded faults, each armed in a process of its own until something notices it.

use std::process::{self, Command};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use alluvium_trace::fault::{self, FaultId};

/// Names the fault that a process arms.
const FAULT: &str = "ALLUVIUM_TEST_FAULT";

/// How many runs a fault may take to be noticed. Most take a few; how many depends on how threads happen to run.
const RUNS: u64 = 300;

/// How long a run may take: a fault may hang it.
const PATIENCE: Duration = Duration::from_secs(20);

/// Expects that for each fault one of the first runs returns a problem. `test` is the name of the test that calls this: it is
/// run in the process that arms the fault.
pub fn each_is_noticed(
    test: &str,
    faults: &[(String, FaultId)],
    run: impl Fn(u64) -> Vec<String> + Clone + Send + 'static,
) {
    if let Ok(name) = std::env::var(FAULT) {
        let (_, fault) =
            faults.iter().find(|(known, _)| *known == name).expect("a fault of this name");
        notice(&name, *fault, &run);
    }
    let program = std::env::current_exe().expect("a test knows its program");
    for (name, _) in faults {
        let mut command = Command::new(&program);
        command.args(["--exact", test, "--nocapture"]);
        let output = command.env(FAULT, name).output().expect("the program starts");
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{name}: {said}");
    }
}

/// Runs with a fault until it is noticed, and ends the process: some threads may hang.
fn notice(
    name: &str,
    fault: FaultId,
    run: &(impl Fn(u64) -> Vec<String> + Clone + Send + 'static),
) -> ! {
    for seed in 0..RUNS {
        fault::arm_everywhere(Some(fault));
        let (done, problems) = mpsc::channel();
        let run = run.clone();
        thread::spawn(move || done.send(run(seed)));
        let problems = problems.recv_timeout(PATIENCE);
        let problems = problems.unwrap_or_else(|_| vec!["a call hangs, or panics".to_owned()]);
        if let Some(problem) = problems.first() {
            println!("{name} is noticed in run {seed}: {problem}");
            process::exit(0);
        }
    }
    println!("{name} is not noticed");
    process::exit(1);
}
