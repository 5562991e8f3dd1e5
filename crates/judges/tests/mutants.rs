//! The judges find seeded faults of the engine.
//!
//! A fault is armed in the whole process, so this is a separate binary with one test. It arms the faults that are
//! found quickly; `judge --mutants` arms all.

use alluvium_dataflow::fault::{Fault, arm_everywhere};
use alluvium_judges::Judges;
use alluvium_judges::recursion::judge;
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
        // Found only where one activation processes several epochs.
        Fault::LastTimeOnly,
    ] {
        arm_everywhere(Some(fault));
        let tally = Tally::run(1, 0..25, judges, |tally| tally.wrong.is_empty());
        arm_everywhere(None);
        assert!(!tally.wrong.is_empty(), "{fault:?} was not found in {} pairs", tally.pairs);
    }
    for fault in Fault::RECURSIVE {
        arm_everywhere(Some(fault));
        let is_found = (0..12).any(|number| judge(number).is_err());
        arm_everywhere(None);
        assert!(is_found, "{fault:?} was not found");
    }
}
