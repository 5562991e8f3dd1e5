//! Many clients notice seeded faults of the engine.

use std::time::Duration;

use alluvium::Outcome;
use alluvium::unstable::fault::Fault;
use alluvium_dataflow::fault::Fault as DataflowFault;
use alluvium_trace::fault::FaultId;

use super::Run;
use crate::armed::each_is_noticed;
use crate::support::{engine, lines};

/// The faults, by name.
fn faults() -> Vec<(String, FaultId)> {
    let filling = [DataflowFault::FillTwice, DataflowFault::FillLess];
    let filling = filling.map(|fault| (format!("{fault:?}"), fault.into()));
    Fault::ALL
        .map(|fault| (format!("{fault:?}"), fault.into()))
        .into_iter()
        .chain(filling)
        .collect()
}

/// A short run in memory.
fn problems(seed: u64) -> Vec<String> {
    let (time, patience) = (Duration::from_millis(500), Duration::from_secs(5));
    let run = Run { seed, clients: 24, time, patience, state: None };
    [run.problems(), read_again()].concat()
}

/// Reads a view again and again that is dropped and made in between. Returns what is wrong: clients rarely read what another one
/// has made again by the text that they have read it by before, and a table that is made again is another one for the plan.
fn read_again() -> Vec<String> {
    let engine = engine(1);
    let mut session = engine.session();
    let table =
        "CREATE TABLE base (k BIGINT PRIMARY KEY, v BIGINT); INSERT INTO base VALUES (1, 0)";
    session.execute(table).expect("the name is free");
    let mut problems = Vec::new();
    for round in 0..4 {
        let made = format!("CREATE VIEW again AS SELECT k, v + {round} AS v FROM base");
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
        session.execute("DROP VIEW again").expect("it is there");
    }
    problems
}

#[test]
fn clients_notice_faults() {
    each_is_noticed("many::faults::clients_notice_faults", &faults(), problems);
}
