//! Some hostile statements and files, in this process; `hostile` runs many more.

use alluvium_judges::hostile::{Kind, Run, here};

/// Tests run beside others, on machines of all kinds.
const FACTOR: u32 = 20;

fn survives(kind: Kind, count: u64) {
    let summary = here(&Run { kind, seed: 1, first: 0, count, factor: FACTOR, longest: 10 << 10 });
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
