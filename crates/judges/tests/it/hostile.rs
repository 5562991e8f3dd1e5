//! Some hostile statements, files and calls, in this process; `hostile` runs many more.

use alluvium_judges::hostile::{Kind, Run, here};

/// How much slower the engine may be on a single processor: in a debug build, beside other tests.
const FACTOR: u32 = 20;

fn survives(kind: Kind, count: u64) {
    // The processor time is that of all tests of this process.
    let processors = std::thread::available_parallelism().map_or(1, |count| count.get() as u32);
    let factor = FACTOR * processors;
    let summary = here(&Run { kind, seed: 1, first: 0, count, factor, longest: 10 << 10 });
    assert!(summary.findings.is_empty(), "{summary}{:#?}", summary.findings);
    // Detects input that is all refused at once.
    assert!(summary.answered * 10 > summary.refused, "{summary}");
}

#[test]
fn a_program_survives_hostile_statements() {
    survives(Kind::Statements, 480);
}

#[test]
fn a_program_survives_damaged_files() {
    survives(Kind::Files, 100);
}

#[test]
fn a_program_survives_hostile_calls() {
    survives(Kind::Calls, 300);
}
