//! A few random programs; `judge` runs many more.

use alluvium_judges::Judges;
use alluvium_judges::tally::Tally;

/// The number of programs, with twelve views each.
const PROGRAMS: u64 = 30;

#[test]
fn random_programs_agree_with_the_judges() {
    let judges =
        Judges { datafusion: true, sqlite: true, naive: true, duckdb: false, variations: true };
    let tally = Tally::run(1, 0..PROGRAMS, judges, |_| true);
    assert!(tally.wrong.is_empty(), "{:#?}", tally.wrong);
    // Detects a judge that stopped answering, and queries that are refused too often.
    assert!(tally.pairs >= 300, "{tally}");
    assert!(tally.refused * 20 <= tally.pairs, "{tally}");
    assert!(tally.filled * 10 >= tally.pairs * 6, "{tally}");
    assert!(tally.unjudged * 20 <= tally.pairs, "{tally}");
    assert!(tally.looks[..3].iter().all(|looks| *looks >= tally.pairs / 3), "{tally}");
    assert!(tally.varied >= PROGRAMS / 2, "{tally}");
}

#[test]
fn a_standby_that_takes_over_goes_on_as_the_first_engine_would() {
    let judges =
        Judges { datafusion: false, sqlite: false, naive: false, duckdb: false, variations: true };
    // Those whose turn it is.
    let programs = (0..8).map(|turn| 3 * (15 * turn + 13));
    let tally = Tally::run(3, programs, judges, |_| true);
    assert!(tally.wrong.is_empty(), "{:#?}", tally.wrong);
    assert_eq!(tally.varied, 8);
}
