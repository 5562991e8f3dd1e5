//! Every program gives the answer of the view.

use std::num::NonZeroUsize;

use alluvium_nexmark::query::QUERIES;
use alluvium_nexmark::source::{Extent, RATE};
use alluvium_race::mode::Mode;
use alluvium_race::side::Side;
use alluvium_race::task::Task;

/// Windows, sessions and auctions end at this rate, and epochs end within windows.
const SLOW: Extent = Extent { events: 20_000, epoch_rows: 700, rate: 400 };

/// The events of a race.
const FAST: Extent = Extent { events: 20_000, epoch_rows: 3_000, rate: RATE };

/// Compares the answers of another side with Alluvium's, for every query.
fn compare(other: Side, mode: Mode, extent: Extent, memory: Option<usize>) {
    let mut compared = 0;
    for query in QUERIES {
        for workers in [1, 2] {
            let workers = NonZeroUsize::new(workers).unwrap();
            let directory = std::env::temp_dir();
            let task = Task { query, mode, extent, workers, memory, directory };
            if !other.takes(&task) {
                continue;
            }
            let expected = Side::Alluvium.answer(&task).unwrap();
            let found = other.answer(&task).unwrap();
            assert_eq!(found.decided, expected.decided, "{} with {workers} workers", query.name);
            let is_expected_empty = query.name == "q2" && extent == SLOW;
            assert!(expected.decided.rows > 0 || is_expected_empty, "{} has no rows", query.name);
            compared += 1;
        }
    }
    assert!(compared > 0);
}

#[test]
fn dbsp_answers_over_streams_of_inserts() {
    compare(Side::Dbsp, Mode::AppendOnly, SLOW, None);
    compare(Side::Dbsp, Mode::AppendOnly, FAST, None);
}

#[test]
fn dbsp_answers_over_streams_of_changes() {
    compare(Side::Dbsp, Mode::Unchecked, FAST, None);
    compare(Side::Dbsp, Mode::Revised, SLOW, None);
}

#[test]
fn dbsp_answers_over_tables_that_keep_their_rows() {
    compare(Side::Dbsp, Mode::Kept, FAST, None);
    compare(Side::Dbsp, Mode::Keyed, SLOW, None);
}

#[test]
fn dbsp_answers_with_a_lateness() {
    compare(Side::Dbsp, Mode::Lateness, SLOW, None);
}

#[test]
fn dbsp_answers_with_state_in_files() {
    compare(Side::Dbsp, Mode::Budget, SLOW, Some(1 << 20));
}
