//! Many clients notice seeded faults of the engine.

use std::process::{self, Command};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use alluvium::Outcome;
use alluvium::fault::Fault;
use alluvium_dataflow::fault::Fault as DataflowFault;
use alluvium_trace::fault::{self, FaultId};

use super::Run;
use crate::support::{engine, lines};

/// Names the fault that a process arms.
const FAULT: &str = "ALLUVIUM_TEST_FAULT";

/// How many runs a fault may take to be noticed.
const RUNS: u64 = 30;

/// The faults, by name.
fn faults() -> impl Iterator<Item = (String, FaultId)> {
    let filling = [DataflowFault::FillTwice, DataflowFault::FillLess];
    let filling = filling.map(|fault| (format!("{fault:?}"), fault.into()));
    Fault::ALL.map(|fault| (format!("{fault:?}"), fault.into())).into_iter().chain(filling)
}

/// Runs clients with a fault until they notice it, and ends the process: some may hang.
fn notice(name: &str) -> ! {
    let (_, fault) = faults().find(|(known, _)| known == name).expect("a fault of this name");
    for seed in 0..RUNS {
        fault::arm_everywhere(Some(fault));
        let (time, patience) = (Duration::from_millis(500), Duration::from_secs(5));
        let (done, problems) = mpsc::channel();
        thread::spawn(move || {
            let run = Run { seed, clients: 24, time, patience, state: None };
            done.send([run.problems(), read_again()].concat())
        });
        // A fault may hang this one, too.
        let problems = problems.recv_timeout(4 * patience);
        let problems = problems.unwrap_or_else(|_| vec!["a call hangs".to_owned()]);
        if let Some(problem) = problems.first() {
            println!("{name} is noticed in run {seed}: {problem}");
            process::exit(0);
        }
    }
    println!("{name} is not noticed");
    process::exit(1);
}

/// Reads a table again and again that is dropped and made in between. Returns what is wrong: clients rarely read what another one
/// has made again by the text that they have read it by before.
fn read_again() -> Vec<String> {
    let engine = engine(1);
    let mut session = engine.session();
    let mut problems = Vec::new();
    for round in 0..4 {
        let made = format!(
            "CREATE TABLE again (k BIGINT PRIMARY KEY, v BIGINT); INSERT INTO again VALUES (1, {round})"
        );
        session.execute(&made).expect("the name is free");
        for _ in 0..3 {
            let read = session.execute("SELECT v FROM again WHERE k = 1");
            match read.map(|mut outcomes| outcomes.pop()) {
                Ok(Some(Outcome::Rows(rows))) => {
                    let rows = rows.into_batches().map(|rows| lines(&rows));
                    if rows.as_ref().ok() != Some(&vec![round.to_string()]) {
                        problems.push(format!("{rows:?}, and not {round}"));
                    }
                }
                other => problems.push(format!("{other:?}")),
            }
        }
        session.execute("DROP TABLE again").expect("it is there");
    }
    problems
}

/// Each is armed in a process of its own.
#[test]
fn clients_notice_faults() {
    if let Ok(name) = std::env::var(FAULT) {
        notice(&name);
    }
    let program = std::env::current_exe().expect("a test knows its program");
    for (name, _) in faults() {
        let mut command = Command::new(&program);
        command.args(["--exact", "many::faults::clients_notice_faults", "--nocapture"]);
        let output = command.env(FAULT, &name).output().expect("the program starts");
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{name}: {said}");
    }
}
