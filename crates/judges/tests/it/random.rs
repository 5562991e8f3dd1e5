//! Random programs, as many as fit into a test; `judge` runs many more.

use alluvium_judges::Judges;
use alluvium_judges::tally::Tally;

/// Programs, of twelve views each.
const PROGRAMS: u64 = 30;

#[test]
fn random_programs_hold() {
    let judges =
        Judges { datafusion: true, sqlite: true, naive: true, duckdb: false, variations: true };
    let tally = Tally::run(1, 0..PROGRAMS, judges, |_| true);
    assert!(tally.wrong.is_empty(), "{:#?}", tally.wrong);
    // No judge may fall silent, and no query be refused, unnoticed.
    assert!(tally.pairs >= 300, "{tally}");
    assert!(tally.refused * 20 <= tally.pairs, "{tally}");
    assert!(tally.filled * 10 >= tally.pairs * 6, "{tally}");
    assert!(tally.unjudged * 20 <= tally.pairs, "{tally}");
    assert!(tally.looks[..3].iter().all(|looks| *looks >= tally.pairs / 3), "{tally}");
    assert!(tally.varied >= PROGRAMS / 2, "{tally}");
}
