//! The engine with a fault, before the judges: after how many pairs they object.

use alluvium_dataflow::fault::{self, Fault};

use crate::program::run::Judges;
use crate::tally::Tally;

/// Arms every fault that makes wrong answers, or `only` the one of a name, one after the other, and runs programs until a judge objects, or until
/// there were `most` pairs.
///
/// `each` is told the fault, and the pairs it took with what was objected, or none if nobody did. The fault is armed in
/// the whole process: nothing else may use an engine meanwhile.
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
            // It is the fault that is found only if there is nothing to object to without it.
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
