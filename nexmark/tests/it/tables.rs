//! Tables that keep their rows, and tables that do not.

use std::num::NonZeroUsize;

use alluvium::Durability;
use alluvium_nexmark::harness::{Options, measure};
use alluvium_nexmark::measurement::Measurement;
use alluvium_nexmark::query::Query;
use alluvium_nexmark::source::{Extent, RATE, Source};
use alluvium_nexmark::tables::Tables;

fn measured(query: &Query, tables: Tables, source: Source, revisions: bool) -> Measurement {
    let options = Options {
        extent: Extent { events: 3_000, epoch_rows: 500, rate: RATE },
        tables,
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
        let of = |tables| measured(&query, tables, Source::Memory, false);
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

#[test]
fn one_bid_in_twenty_is_deleted_and_one_gets_another_price() {
    let query = &Query::list("q0").unwrap()[0];
    let of = |tables, source, revisions| measured(query, tables, source, revisions).contents;
    let all = of(Tables::Kept, Source::Memory, false);
    let revised = of(Tables::Kept, Source::Memory, true);
    // Those of the last of six epochs stay as they are.
    assert_eq!((all.rows, revised.rows), (2_760, 2_760 - 2_300 / 20));
    for (tables, source) in [
        (Tables::Unchecked, Source::Memory),
        (Tables::Kept, Source::Generator),
        (Tables::Keyed, Source::Memory),
    ] {
        assert_eq!(of(tables, source, true), revised, "{tables:?}");
    }
}
