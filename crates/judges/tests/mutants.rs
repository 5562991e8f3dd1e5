//! The engine with a fault, before the judges.
//!
//! Faults are armed in the whole process, so that this is a binary of its own with one test. It arms those that are found
//! soon; `judge --mutants` arms all.

use alluvium_dataflow::fault::{Fault, arm_everywhere};
use alluvium_judges::Judges;
use alluvium_judges::tally::Tally;

#[test]
fn judges_object_to_an_engine_with_a_fault() {
    let judges =
        Judges { datafusion: false, sqlite: true, naive: true, duckdb: false, variations: true };
    for fault in [
        Fault::KeepOldAnswer,
        Fault::MissLastPartner,
        Fault::NoLonelyRows,
        Fault::WrongWorker,
        Fault::KeepDefault,
        Fault::CountNulls,
        // Only where a step takes several epochs.
        Fault::LastTimeOnly,
    ] {
        arm_everywhere(Some(fault));
        let tally = Tally::run(1, 0..25, judges, |tally| tally.wrong.is_empty());
        arm_everywhere(None);
        assert!(!tally.wrong.is_empty(), "{fault:?} was not found in {} pairs", tally.pairs);
    }
}
