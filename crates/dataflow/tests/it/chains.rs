//! Chains of operators under random changes, compared with a naive model at every epoch.
//!
//! The views are joins, a self join, aggregates, top-k per group and DISTINCT, chained and grouped again by their own
//! results.

use std::collections::BTreeMap;

use alluvium_dataflow::fault::Fault;
use alluvium_dataflow::joins::join::{self, join};
use alluvium_dataflow::movement::delta::DeltaStream;
use alluvium_dataflow::movement::input::input;
use alluvium_dataflow::reductions::aggregate::{self, Aggregate, Function, aggregate};
use alluvium_dataflow::reductions::distinct::{self, distinct};
use alluvium_dataflow::reductions::ranked::top::{self, top};
use alluvium_dataflow::reductions::ranked::{Numbering, Top};
use alluvium_trace::Epoch;
use alluvium_trace::memory::context;
use arrow::compute::SortOptions;
use arrow::datatypes::SchemaRef;

use crate::fallback::own;
use crate::harness::{
    Feed, History, Row, Rows, Run, assert_caught, at, every_seed, feed, keyed, numbers,
};

const VIEWS: [&str; 8] =
    ["join", "self join", "totals", "extremes", "top", "regrouped", "distinct", "everything"];

/// Runs the dataflow of all views and returns their changes.
fn run_dataflow(run: &Run, histories: &[History; 2]) -> BTreeMap<&'static str, History> {
    let (settings, histories) = (run.clone(), histories.clone());
    run.execute(VIEWS, move |worker, watch| {
        let run = &settings;
        let schema = numbers(&["key", "value"]);
        let context = context::current();
        let (inputs, holder) = worker.dataflow(|scope| {
            let pair = numbers(&["key", "left", "key2", "right"]);
            let (left_input, left) = input(scope, "left", &context);
            let (right_input, right) = input(scope, "right", &context);
            let watch =
                |name: &'static str, stream: DeltaStream<'_, Epoch>| watch.watch(&name, stream);
            let left_keyed = keyed(left.clone(), &schema, &[0]);
            let holder = run.hold_compaction.then(|| left_keyed.arranged.trace.clone());
            let right_keyed = keyed(right, &schema, &[0]);
            let spec = join::Spec::new((&schema, &[0, 1]), (&schema, &[0, 1]));
            let pairs = join(&spec, left_keyed.clone(), right_keyed, &context);
            watch("join", pairs.clone());
            watch("self join", join(&spec, left_keyed.clone(), left_keyed, &context));

            let count = own(Function::Count, None, false);
            let of = |function, input| own(function, Some(input), false);
            let group = |stream, schema: &SchemaRef, keys: &[usize], aggregates: &[Aggregate]| {
                let names: Vec<String> =
                    (0..keys.len() + aggregates.len()).map(|column| format!("c{column}")).collect();
                let output = numbers(&names.iter().map(String::as_str).collect::<Vec<_>>());
                let spec = aggregate::Spec::compile(schema, keys, aggregates, &[], false, &output);
                let groups = aggregate(&spec.unwrap(), stream, &context);
                (groups.rows, output)
            };
            let (totals, totals_schema) =
                group(pairs.clone(), &pair, &[0], &[count.clone(), of(Function::Sum, 3)]);
            watch("totals", totals.clone());
            let (extremes, _) =
                group(left.clone(), &schema, &[0], &[of(Function::Min, 1), of(Function::Max, 1)]);
            watch("extremes", extremes);
            let (regrouped, regrouped_schema) = group(
                totals,
                &totals_schema,
                &[1],
                &[of(Function::Max, 2), count.clone(), of(Function::Min, 0)],
            );
            watch("regrouped", regrouped.clone());

            let order = [
                (3, SortOptions { descending: true, nulls_first: false }),
                (0, SortOptions::default()),
            ];
            let which = Top { numbering: Numbering::Row, skip: 0, take: Some(3), numbered: false };
            let spec = top::Spec::compile(&pair, &[1], &order, which, false, pair.clone());
            let best = top(&spec.unwrap(), pairs.clone(), &context);
            watch("top", best.clone());
            let spec = distinct::Spec::compile(pair.clone()).unwrap();
            let unique = distinct(&spec, best, &context);
            watch("distinct", unique.clone());
            let unique_keyed = keyed(unique, &pair, &[0]);
            let regrouped_keyed = keyed(regrouped, &regrouped_schema, &[3]);
            let all = [0, 1, 2, 3];
            let spec = join::Spec::new((&pair, &all), (&regrouped_schema, &all));
            watch("everything", join(&spec, unique_keyed, regrouped_keyed, &context));
            ([left_input, right_input], holder)
        });
        let feeds = inputs.into_iter().zip(&histories);
        let feeds = feeds.map(|(input, history)| Feed::new(input, history)).collect();
        feed(worker, run, &schema, feeds, &watch.probe);
        drop(holder);
    })
}

fn join_model(left: &Rows, right: &Rows, left_key: usize, right_key: usize) -> Rows {
    let mut pairs = Rows::new();
    for (one, one_weight) in left {
        for (other, other_weight) in right {
            if one[left_key] == other[right_key] {
                let row = one.iter().chain(other).copied().collect();
                *pairs.entry(row).or_default() += one_weight * other_weight;
            }
        }
    }
    pairs
}

fn groups(rows: &Rows, key: usize) -> BTreeMap<Option<i64>, Vec<(&Row, i64)>> {
    let mut groups: BTreeMap<_, Vec<(&Row, i64)>> = BTreeMap::new();
    for (row, weight) in rows {
        groups.entry(row[key]).or_default().push((row, *weight));
    }
    groups
}

fn sum(rows: &[(&Row, i64)], column: usize) -> Option<i64> {
    let values = rows.iter().filter_map(|(row, weight)| row[column].map(|value| value * weight));
    values.reduce(|one, other| one + other)
}

fn least(rows: &[(&Row, i64)], column: usize) -> Option<i64> {
    rows.iter().filter_map(|(row, _)| row[column]).min()
}

fn greatest(rows: &[(&Row, i64)], column: usize) -> Option<i64> {
    rows.iter().filter_map(|(row, _)| row[column]).max()
}

/// The contents of every view, computed from its inputs.
fn model(left: &Rows, right: &Rows) -> BTreeMap<&'static str, Rows> {
    let pairs = join_model(left, right, 0, 0);
    let mut totals = Rows::new();
    for (key, rows) in groups(&pairs, 0) {
        let count = rows.iter().map(|(_, weight)| weight).sum();
        totals.insert(vec![key, Some(count), sum(&rows, 3)], 1);
    }
    let mut extremes = Rows::new();
    for (key, rows) in groups(left, 0) {
        extremes.insert(vec![key, least(&rows, 1), greatest(&rows, 1)], 1);
    }
    let mut regrouped = Rows::new();
    for (count, rows) in groups(&totals, 1) {
        let number = Some(rows.len() as i64);
        regrouped.insert(vec![count, greatest(&rows, 2), number, least(&rows, 0)], 1);
    }
    let mut top = Rows::new();
    for (value, mut rows) in groups(&pairs, 1) {
        // NULLs last in descending order of column 3, then column 0 ascending.
        rows.sort_by_key(|(row, _)| (std::cmp::Reverse(row[3]), row[0]));
        let mut wanted = 3;
        for (row, weight) in rows {
            let taken = weight.min(wanted);
            wanted -= taken;
            if taken > 0 {
                debug_assert_eq!(row[1], value);
                *top.entry(row.clone()).or_default() += taken;
            }
        }
    }
    let distinct: Rows = top.keys().map(|row| (row.clone(), 1)).collect();
    let everything = join_model(&distinct, &regrouped, 0, 3);
    BTreeMap::from([
        ("join", pairs),
        ("self join", join_model(left, left, 0, 0)),
        ("totals", totals),
        ("extremes", extremes),
        ("regrouped", regrouped),
        ("top", top),
        ("distinct", distinct),
        ("everything", everything),
    ])
}

fn check(seed: u64, fault: Option<Fault>) -> Result<(), String> {
    let run = Run::draw(seed, fault);
    let histories = run.keyed_histories();
    let views = run_dataflow(&run, &histories);
    run.compare(&views, |epoch| model(&at(&histories[0], epoch), &at(&histories[1], epoch)))
}

#[test]
fn every_view_equals_the_model_at_every_epoch() {
    every_seed(150, check);
}

#[test]
fn a_join_that_emits_at_the_time_of_one_side_is_caught() {
    assert_caught(40, &[Fault::JoinAtLeftTime], check);
}

#[test]
fn a_reduction_that_reads_only_the_first_of_several_batches_is_caught() {
    assert_caught(40, &[Fault::FirstTileOnly], check);
}

#[test]
fn a_reduction_that_skips_intermediate_times_is_caught() {
    assert_caught(40, &[Fault::LastTimeOnly], check);
}

#[test]
fn a_reduction_that_does_not_retract_its_old_output_is_caught() {
    assert_caught(40, &[Fault::KeepOldAnswer], check);
}

#[test]
fn a_reduction_that_ignores_earlier_input_is_caught() {
    assert_caught(40, &[Fault::ForgetHistory], check);
}
