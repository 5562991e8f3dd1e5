//! Every query, maintained by one to three workers, equals DataFusion's answer over all events.
//!
//! `ALLUVIUM_NEXMARK_EVENTS` sets the number of events, and `ALLUVIUM_NEXMARK_QUERIES` the list of queries; see
//! `docs/benchmarks.md`.

use std::collections::BTreeMap;
use std::env;
use std::time::Duration;

use alluvium::Engine;
use alluvium_nexmark::Stream;
use alluvium_nexmark::checksum::Checksum;
use alluvium_nexmark::harness::changes;
use alluvium_nexmark::query::{QUERIES, Query};
use alluvium_nexmark::source::{Extent, Input, RATE, Source};
use alluvium_nexmark::tables::{Keeping, Tables};
use arrow::array::RecordBatch;
use arrow::util::display::{ArrayFormatter, FormatOptions};

use crate::batch::Batch;

/// Enough for windows, sessions and auctions to end at this rate.
const SMALL: Extent = Extent { events: 12_000, epoch_rows: 700, rate: 400 };

/// The multiplicity of each row.
type Rows = BTreeMap<String, i64>;

fn extent() -> Extent {
    match env::var("ALLUVIUM_NEXMARK_EVENTS") {
        Ok(events) => Extent { events: events.parse().unwrap(), epoch_rows: 40_000, rate: RATE },
        Err(_) => SMALL,
    }
}

fn add(rows: &mut Rows, batch: &RecordBatch, weight: impl Fn(usize) -> i64) {
    let options = FormatOptions::default().with_null("NULL");
    let columns: Vec<_> = batch
        .columns()
        .iter()
        .map(|column| ArrayFormatter::try_new(column.as_ref(), &options).unwrap())
        .collect();
    for row in 0..batch.num_rows() {
        let values: Vec<String> =
            columns.iter().map(|column| column.value(row).to_string()).collect();
        let copies = rows.entry(values.join(" | ")).or_default();
        *copies += weight(row);
    }
}

/// Some rows of the difference between two multisets.
fn difference(expected: &Rows, found: &Rows) -> String {
    let missing = expected.iter().filter(|(row, copies)| found.get(*row) != Some(copies));
    let extra = found.iter().filter(|(row, copies)| expected.get(*row) != Some(copies));
    let mut lines = vec![format!("{} rows are expected, {} found", expected.len(), found.len())];
    lines.extend(missing.take(5).map(|(row, copies)| format!("expected {copies} times: {row}")));
    lines.extend(extra.take(5).map(|(row, copies)| format!("found {copies} times: {row}")));
    lines.join("\n")
}

fn names(rows: &RecordBatch) -> Vec<String> {
    rows.schema().fields().iter().map(|field| field.name().clone()).collect()
}

/// The columns of these names.
fn project(rows: &RecordBatch, names: &[String]) -> RecordBatch {
    let schema = rows.schema();
    let indices: Vec<_> = names.iter().map(|name| schema.index_of(name).unwrap()).collect();
    rows.project(&indices).unwrap()
}

/// Where bids tie, a query may return any of them, but only complete bids, and each at most as often as it occurs.
fn check_bids(query: &Query, changes: &[alluvium::Change], batch: &Batch) {
    let is_of_bids = |name: &String| Stream::Bid.schema().index_of(name).is_ok();
    let columns: Vec<_> = names(&changes[0].rows).into_iter().filter(is_of_bids).collect();
    let (mut bids, mut found) = (Rows::new(), Rows::new());
    for rows in batch.bids(&columns) {
        add(&mut bids, &rows, |_| 1);
    }
    for change in changes {
        add(&mut found, &project(&change.rows, &columns), |row| change.weights[row]);
    }
    for (row, copies) in found {
        let there = bids.get(&row).copied().unwrap_or_default();
        assert!(copies <= there, "{}: {copies} times a bid made {there} times: {row}", query.name);
    }
}

fn check(query: &Query, input: &Input, batch: &Batch) {
    let mut expected = Rows::new();
    let mut expected_sum = Checksum::default();
    let answer = batch.answer(query);
    for rows in &answer {
        add(&mut expected, rows, |_| 1);
        expected_sum.add_all(rows).unwrap();
    }
    assert!(!expected.is_empty(), "{}: an empty answer shows nothing", query.name);
    let determined = names(&answer[0]);
    let mut sums = Vec::new();
    // Events come in order: what the tables declare changes no result, though state is pruned.
    let lateness = Some(Duration::from_millis(100));
    let keeping = Keeping::default();
    for (workers, keeping, lateness) in [
        (1, keeping, None),
        (2, keeping, None),
        (3, keeping, None),
        (1, keeping, lateness),
        (2, keeping, lateness),
        (2, Keeping::Promised, lateness),
    ] {
        let mut found = Rows::new();
        let mut found_sum = Checksum::default();
        let mut open = Vec::new();
        let mut take = |change: alluvium::Change| {
            add(&mut found, &project(&change.rows, &determined), |row| change.weights[row]);
            let added = found_sum.add(&change.rows, &change.weights);
            let is_open = |name: &String| !determined.contains(name);
            let left: Vec<_> = names(&change.rows).into_iter().filter(is_open).collect();
            assert_eq!(left, query.open(), "{}", query.name);
            if !left.is_empty() {
                open.push(change);
            }
            added
        };
        let builder = Engine::builder().workers(workers);
        let tables = Tables { keeping, lateness };
        if let Err(error) = changes(query, tables, input, builder, &mut take) {
            panic!("{}: {error}", query.name);
        }
        found.retain(|_, copies| *copies != 0);
        assert!(
            expected == found,
            "{} with {workers} workers, {keeping:?} and lateness {lateness:?}: {}",
            query.name,
            difference(&expected, &found)
        );
        match open.is_empty() {
            true => sums.push(expected_sum),
            false => check_bids(query, &open, batch),
        }
        sums.push(found_sum);
        assert_eq!(sums[0], found_sum, "{}: the checksums of equal rows", query.name);
    }
}

#[test]
fn every_query_equals_the_batch_answer() {
    let list = env::var("ALLUVIUM_NEXMARK_QUERIES").unwrap_or_else(|_| "all".to_owned());
    let input = Input::prepare(&Source::Memory, extent(), false).unwrap();
    let batch = Batch::new(&input);
    for query in Query::list(&list).unwrap() {
        check(&query, &input, &batch);
    }
}

/// The checksum must depend on the events, or comparing it would prove nothing.
#[test]
fn answers_over_fewer_events_differ() {
    let batch = |events: u64| {
        let extent = Extent { events, ..SMALL };
        Batch::new(&Input::prepare(&Source::Memory, extent, false).unwrap())
    };
    let (all, fewer) = (batch(SMALL.events), batch(SMALL.events / 2));
    let sum = |batch: &Batch, query: &Query| {
        let mut sum = Checksum::default();
        batch.answer(query).iter().for_each(|rows| sum.add_all(rows).unwrap());
        sum
    };
    for query in &QUERIES {
        assert_ne!(sum(&all, query), sum(&fewer, query), "{}", query.name);
    }
}
