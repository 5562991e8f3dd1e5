//! Measuring with epochs that arrive by the clock.

use std::num::{NonZeroU64, NonZeroUsize};

use alluvium::Durability;
use alluvium_nexmark::harness::{Options, measure};
use alluvium_nexmark::query::Query;
use alluvium_nexmark::source::{Extent, RATE, Source};
use alluvium_nexmark::tables::Tables;

#[test]
fn epochs_arrive_at_a_rate_and_give_the_same_view() {
    let query = &Query::list("q1").unwrap()[0];
    let at = |rate: Option<u64>| {
        let extent = Extent { events: 2_900, epoch_rows: 500, rate: RATE };
        let options = Options {
            extent,
            tables: Tables::default(),
            workers: NonZeroUsize::MIN,
            source: Source::Memory,
            revisions: false,
            memory: None,
            rate: rate.and_then(NonZeroU64::new),
            merge_threads: 0,
            state: None,
            durability: Durability::Always,
            on_pressure: |_| (),
        };
        measure(query, &options).unwrap()
    };
    let (closed, open) = (at(None), at(Some(10_000)));
    assert_eq!(open.contents, closed.contents);
    // Six epochs, one every 50 milliseconds; the last one is smaller, but arrives like the others.
    assert!(open.elapsed >= 0.3, "{}", open.elapsed);
    for measured in [closed, open] {
        let epochs: u64 = measured.latency.histogram.iter().map(|bucket| bucket.epochs).sum();
        assert_eq!(epochs, 6);
    }
}
