//! Tables that keep their rows, and tables that do not.

use std::num::NonZeroUsize;

use alluvium::Durability;
use alluvium_nexmark::harness::{Options, measure};
use alluvium_nexmark::measurement::Measurement;
use alluvium_nexmark::query::Query;
use alluvium_nexmark::source::{Extent, RATE, Source};
use alluvium_nexmark::tables::{Keeping, Tables};

fn measured(query: &Query, keeping: Keeping, source: Source, revisions: bool) -> Measurement {
    let options = Options {
        extent: Extent { events: 3_000, epoch_rows: 500, rate: RATE },
        tables: Tables { keeping, lateness: None },
        workers: NonZeroUsize::MIN,
        source,
        revisions,
        memory: None,
        rate: None,
        merge_threads: 0,
        state: None,
        durability: Durability::Always,
        on_pressure: |_| (),
    };
    measure(query, &options).unwrap()
}

#[test]
fn a_view_is_the_same_whatever_its_tables_keep() {
    for query in Query::list("q4,q18").unwrap() {
        let of = |keeping| measured(&query, keeping, Source::Memory, false);
        let [append_only, unchecked, append_only_kept, kept, keyed, promised] =
            Keeping::ALL.map(of);
        assert_ne!(append_only.decided.rows, 0);
        for measured in [&unchecked, &append_only_kept, &kept, &keyed, &promised] {
            assert_eq!(measured.decided, append_only.decided, "{}", query.name);
        }
        // Most rows once more; operators keep some less.
        assert!(append_only_kept.state_rows > append_only.state_rows + 2_000);
        assert!(kept.state_rows > unchecked.state_rows + 2_000);
        assert!(keyed.state_rows > unchecked.state_rows + 2_000);
    }
}

#[test]
fn one_bid_in_twenty_is_deleted_and_one_gets_another_price() {
    let query = &Query::list("q0").unwrap()[0];
    let of = |keeping, source, revisions| measured(query, keeping, source, revisions).contents;
    let all = of(Keeping::Kept, Source::Memory, false);
    let revised = of(Keeping::Kept, Source::Memory, true);
    // Those of the last of six epochs stay as they are.
    assert_eq!((all.rows, revised.rows), (2_760, 2_760 - 2_300 / 20));
    for (keeping, source) in [
        (Keeping::Unchecked, Source::Memory),
        (Keeping::Kept, Source::Generator),
        (Keeping::Keyed, Source::Memory),
    ] {
        assert_eq!(of(keeping, source, true), revised, "{keeping:?}");
    }
}
