//! Tables that keep their rows, and tables that do not.

use std::num::NonZeroUsize;

use alluvium::Durability;
use alluvium_nexmark::harness::{Options, measure};
use alluvium_nexmark::query::Query;
use alluvium_nexmark::source::{Extent, RATE, Source};
use alluvium_nexmark::tables::Tables;

#[test]
fn a_view_is_the_same_whatever_its_tables_keep() {
    for query in Query::list("q4,q18").unwrap() {
        let of = |tables: Tables| {
            let options = Options {
                extent: Extent { events: 3_000, epoch_rows: 500, rate: RATE },
                tables,
                workers: NonZeroUsize::MIN,
                source: Source::Memory,
                memory: None,
                rate: None,
                merge_threads: 0,
                state: None,
                durability: Durability::Always,
                on_pressure: |_| (),
            };
            measure(&query, &options).unwrap()
        };
        let [append_only, unchecked, append_only_kept, kept, keyed] = Tables::ALL.map(of);
        assert_ne!(append_only.decided.rows, 0);
        for measured in [&unchecked, &append_only_kept, &kept, &keyed] {
            assert_eq!(measured.decided, append_only.decided, "{}", query.name);
        }
        // Most rows once more; operators keep some less.
        assert!(append_only_kept.state_rows > append_only.state_rows + 2_000);
        assert!(kept.state_rows > unchecked.state_rows + 2_000);
        assert!(keyed.state_rows > unchecked.state_rows + 2_000);
    }
}
