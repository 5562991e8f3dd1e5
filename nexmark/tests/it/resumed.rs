//! Runs with a state directory.

use std::num::NonZeroUsize;

use alluvium::Durability;
use alluvium_nexmark::harness::{Options, measure};
use alluvium_nexmark::query::Query;
use alluvium_nexmark::source::{Extent, RATE, Source};
use alluvium_nexmark::tables::Tables;

#[test]
fn a_run_goes_on_behind_the_epochs_of_the_last_one() {
    let directory = tempfile::tempdir().unwrap();
    let query = &Query::list("q4").unwrap()[0];
    let run = |events: u64| {
        let options = Options {
            extent: Extent { events, epoch_rows: 500, rate: RATE },
            tables: Tables::default(),
            workers: NonZeroUsize::MIN,
            source: Source::Memory,
            revisions: false,
            memory: None,
            rate: None,
            merge_threads: 0,
            state: Some(directory.path().to_owned()),
            durability: Durability::Never,
            on_pressure: |_| (),
        };
        measure(query, &options).unwrap().events
    };
    assert_eq!([run(2_000), run(3_500), run(3_500)], [2_000, 1_500, 0]);
    assert!(directory.path().join("q4").is_dir());
}
