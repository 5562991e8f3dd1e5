//! Mutation testing: how many pairs it takes to find a seeded fault of the engine.

use alluvium_dataflow::fault::{self, Fault};

use crate::program::run::Judges;
use crate::tally::Tally;

/// Arms the faults that make results wrong one after the other, or `only` the one of this name, and runs programs
/// until a judge objects or `most` pairs have run.
///
/// `each` receives the fault, and the number of pairs with the objection, or `None` if there was none. The fault is
/// armed in the whole process, so nothing else may use an engine at the same time.
pub fn run(
    seed: u64,
    most: u64,
    judges: Judges,
    only: Option<&str>,
    mut each: impl FnMut(Fault, Option<(u64, &str)>),
) {
    let wanted = |fault: &Fault| only.is_none_or(|name| format!("{fault:?}") == name);
    for fault in Fault::WRONG.into_iter().filter(wanted) {
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
        each(fault, found.as_deref().map(|what| (pairs, what)));
    }
}
