//! Mutation testing: how many pairs it takes to find a seeded fault of the engine.

use alluvium_sql::fault::named;
use alluvium_trace::fault::{self, FaultId};

use crate::program::run::Judges;
use crate::recursion;
use crate::tally::Tally;

/// The faults of all crates that make results wrong, by name.
fn registry() -> Vec<(String, FaultId)> {
    let sql = alluvium_sql::fault::wrong();
    let dataflow = alluvium_dataflow::fault::Fault::WRONG.into_iter().map(named);
    let trace = fault::Fault::WRONG.into_iter().map(named);
    let engine = alluvium::unstable::fault::Fault::WRONG.into_iter().map(named);
    dataflow.chain(trace).chain(sql).chain(engine).collect()
}

/// Arms the faults one after the other, or only the one named `only`, and runs programs until a judge objects or `most`
/// pairs have run.
///
/// Those of recursions only run random graphs, whose pairs are a view and a graph.
///
/// Calls `each` with the name of the fault, and with the number of pairs and the objection, if there was one. The fault
/// is armed in the whole process, so nothing else may use an engine at the same time.
pub fn run(
    seed: u64,
    most: u64,
    judges: Judges,
    only: Option<&str>,
    mut each: impl FnMut(&str, Option<(u64, &str)>),
) {
    let wanted = |fault: &(String, FaultId)| only.is_none_or(|name| fault.0 == name);
    for (name, fault) in registry().into_iter().filter(wanted) {
        let mut pairs = 0;
        let mut found = None;
        let mut number = 0;
        while found.is_none() && pairs < most {
            fault::arm_everywhere(Some(fault));
            let tally = Tally::run(seed, [number], judges, |_| true);
            fault::arm_everywhere(None);
            pairs += tally.pairs;
            // The objection counts only if the program passes without the fault.
            if let Some((_, what)) = tally.wrong.into_iter().next()
                && Tally::run(seed, [number], judges, |_| true).wrong.is_empty()
            {
                found = Some(what);
            }
            number += 1;
        }
        each(&name, found.as_deref().map(|what| (pairs, what)));
    }
    let recursive = alluvium_dataflow::fault::Fault::RECURSIVE.into_iter().map(named);
    for (name, fault) in recursive.filter(wanted) {
        let mut numbers = 0..most.div_ceil(recursion::VIEWS.len() as u64);
        let found = numbers.find_map(|number| {
            fault::arm_everywhere(Some(fault));
            let judged = recursion::judge(number);
            fault::arm_everywhere(None);
            let what = judged.err().filter(|_| recursion::judge(number).is_ok())?;
            Some(((number + 1) * recursion::VIEWS.len() as u64, what))
        });
        each(&name, found.as_ref().map(|(pairs, what)| (*pairs, &**what)));
    }
}
