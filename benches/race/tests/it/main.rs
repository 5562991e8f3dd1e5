//! Every program gives the answer of the view.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::num::NonZeroUsize;

use alluvium_nexmark::query::Query;
use alluvium_nexmark::source::{Extent, RATE};
use alluvium_race::mode::Mode;
use alluvium_race::side::Side;
use alluvium_race::task::Task;

/// Windows, sessions and auctions end at this rate, and epochs end within windows.
const SLOW: Extent = Extent { events: 20_000, epoch_rows: 700, rate: 400 };

/// The events of a race.
const FAST: Extent = Extent { events: 20_000, epoch_rows: 3_000, rate: RATE };

/// Compares the answers of another side with Alluvium's, for every query or for those of `ALLUVIUM_RACE_QUERIES`.
fn compare(other: Side, mode: Mode, extent: Extent, workers: usize, memory: Option<usize>) {
    let queries = std::env::var("ALLUVIUM_RACE_QUERIES").unwrap_or_else(|_| "all".to_owned());
    for query in Query::list(&queries).unwrap() {
        let workers = NonZeroUsize::new(workers).unwrap();
        let task = Task { query, mode, extent, workers, memory, directory: std::env::temp_dir() };
        if !other.takes(&task) {
            continue;
        }
        let expected = Side::Alluvium.answer(&task).unwrap();
        let found = other.answer(&task).unwrap();
        assert_eq!(found.decided, expected.decided, "{} in mode {}", query.name, mode.name());
        assert!(expected.decided.rows > 0, "{} has no rows", query.name);
    }
}

#[test]
fn dbsp_answers_over_streams_of_inserts() {
    compare(Side::Dbsp, Mode::AppendOnly, SLOW, 1, None);
    compare(Side::Dbsp, Mode::AppendOnly, FAST, 2, None);
}

#[test]
fn dbsp_answers_over_streams_of_changes() {
    compare(Side::Dbsp, Mode::Unchecked, FAST, 2, None);
    compare(Side::Dbsp, Mode::Revised, SLOW, 2, None);
}

#[test]
fn dbsp_answers_over_tables_that_keep_their_rows() {
    compare(Side::Dbsp, Mode::Kept, FAST, 2, None);
    compare(Side::Dbsp, Mode::Keyed, SLOW, 1, None);
}

#[test]
fn dbsp_answers_with_a_lateness() {
    compare(Side::Dbsp, Mode::Lateness, SLOW, 2, None);
}

#[test]
fn dbsp_answers_with_state_in_files() {
    compare(Side::Dbsp, Mode::Budget, FAST, 2, Some(1 << 20));
}

#[test]
fn differential_answers_over_streams() {
    compare(Side::Differential, Mode::AppendOnly, SLOW, 2, None);
    compare(Side::Differential, Mode::Revised, FAST, 1, None);
}

#[test]
fn datafusion_answers_over_all_events() {
    compare(Side::Datafusion, Mode::AppendOnly, SLOW, 2, None);
}
