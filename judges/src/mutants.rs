//! The engine with a fault, before the judges: after how many pairs they object.

use alluvium_dataflow::fault::{self, Fault};

use crate::program::run::Judges;
use crate::tally::Tally;

/// Arms every fault that makes wrong answers, one after the other, and runs programs until a judge objects, or until
/// there were `most` pairs.
///
/// `each` is told the fault, and the pairs it took with what was objected, or none if nobody did. The fault is armed in
/// the whole process: nothing else may use an engine meanwhile.
pub fn run(seed: u64, most: u64, judges: Judges, mut each: impl FnMut(Fault, Option<(u64, &str)>)) {
    for fault in Fault::WRONG {
        fault::arm_everywhere(Some(fault));
        let tally =
            Tally::run(seed, 0.., judges, |tally| tally.wrong.is_empty() && tally.pairs < most);
        fault::arm_everywhere(None);
        each(fault, tally.wrong.first().map(|(_, what)| (tally.pairs, what.as_str())));
    }
}
