//! Random changes through chains of operators, compared with a naive model at every epoch.
//!
//! A run draws a script (changes to two inputs over some epochs, with retractions) and a schedule
//! (which epochs are pipelined, where the frontier jumps, how far one input lags, whether it closes
//! early, whether batches come in tiles, whether a reader holds compaction back, on how many workers).
//! The views are built from joins, a self join, aggregates, the first rows of groups and DISTINCT, chained
//! and grouped again by what came out. For every epoch, what the changes of a view add up to must be
//! what the model computes from its inputs.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use alluvium_dataflow::KeyColumns;
use alluvium_dataflow::aggregate::{self, Aggregate, Function, aggregate};
use alluvium_dataflow::arrangement::{Kept, keep};
use alluvium_dataflow::delta::DeltaStream;
use alluvium_dataflow::distinct::{self, distinct};
use alluvium_dataflow::exchange::exchange;
use alluvium_dataflow::fault::{self, Fault};
use alluvium_dataflow::input::input;
use alluvium_dataflow::join::{self, join};
use alluvium_dataflow::layout::Layout;
use alluvium_dataflow::ranked::top;
use alluvium_dataflow::ranked::{Numbering, Top};
use alluvium_trace::Epoch;
use alluvium_trace::memory::context;
use arrow::compute::SortOptions;
use arrow::datatypes::{DataType, SchemaRef};
use timely::dataflow::operators::probe::{Handle, Probe};

use crate::model::{Collected, History, Row, Rows, at, collect, numbers};
use crate::schedule::{Run, Script, play, script, surround};

const VIEWS: [&str; 8] =
    ["join", "self join", "totals", "extremes", "top", "regrouped", "distinct", "everything"];

type Collections = BTreeMap<&'static str, Collected>;

fn keyed<'scope>(
    stream: DeltaStream<'scope, Epoch>,
    schema: &SchemaRef,
    key: usize,
) -> Kept<'scope> {
    let stream = exchange(stream, &KeyColumns::new(schema, &[key]).unwrap(), &context::current());
    keep(stream, Layout::keyed(schema.clone(), &[key]).unwrap(), "Test", &context::current())
}

/// Runs the dataflow of all views over the script and gives back what each put out.
fn run_dataflow(run: &Run, script: &Script) -> BTreeMap<&'static str, History> {
    let collections: Collections =
        VIEWS.iter().map(|view| (*view, Arc::new(Mutex::new(Vec::new())))).collect();
    let shared = collections.clone();
    let settings = run.clone();
    let script = script.clone();
    let config = timely::Config::process(run.workers);
    let guards = timely::execute(config, move |worker| {
        let run = &settings;
        fault::arm(run.fault);
        fault::tile(run.tiled);
        surround(run.seed);
        let probe = Handle::new();
        let (left_input, right_input, holder) = worker.dataflow(|scope| {
            let schema = numbers(&["key", "value"]);
            let pair = numbers(&["key", "left", "key2", "right"]);
            let (left_input, left) = input(scope, "left", &context::current());
            let (right_input, right) = input(scope, "right", &context::current());
            let watch = |name: &'static str, stream: DeltaStream<'_, Epoch>| {
                collect(stream, shared[name].clone()).probe_with(&probe);
            };
            let left_keyed = keyed(left.clone(), &schema, 0);
            let holder = run.hold_compaction.then(|| left_keyed.arranged.trace.clone());
            let right_keyed = keyed(right, &schema, 0);
            let spec = join::Spec::new((&schema, &[0, 1]), (&schema, &[0, 1]));
            let pairs = join(&spec, left_keyed.clone(), right_keyed, &context::current());
            watch("join", pairs.clone());
            watch("self join", join(&spec, left_keyed.clone(), left_keyed, &context::current()));

            let count = Aggregate {
                function: Function::Count,
                input: None,
                distinct: false,
                result: DataType::Int64,
            };
            let of = |function, input| Aggregate {
                function,
                input: Some(input),
                distinct: false,
                result: DataType::Int64,
            };
            let group = |stream, schema: &SchemaRef, keys: &[usize], aggregates: &[Aggregate]| {
                let names: Vec<String> =
                    (0..keys.len() + aggregates.len()).map(|column| format!("c{column}")).collect();
                let output = numbers(&names.iter().map(String::as_str).collect::<Vec<_>>());
                let spec = aggregate::Spec::compile(schema, keys, aggregates, &[], false, &output);
                let groups = aggregate(&spec.unwrap(), stream, &context::current());
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
            let spec = top::Spec::compile(&pair, &[1], &order, which, false, pair.clone()).unwrap();
            let best = top::top(&spec, pairs.clone(), &context::current());
            watch("top", best.clone());
            let unique = distinct(
                &distinct::Spec::compile(pair.clone()).unwrap(),
                best,
                &context::current(),
            );
            watch("distinct", unique.clone());
            let unique_keyed = keyed(unique, &pair, 0);
            let regrouped_keyed = keyed(regrouped, &regrouped_schema, 3);
            let four = [0, 1, 2, 3];
            let spec = join::Spec::new((&pair, &four), (&regrouped_schema, &four));
            watch("everything", join(&spec, unique_keyed, regrouped_keyed, &context::current()));
            (left_input, right_input, holder)
        });

        play(worker, run, &script, (left_input, right_input), &probe);
        drop(holder);
    })
    .unwrap();
    for result in guards.join() {
        result.unwrap();
    }
    collections
        .into_iter()
        .map(|(view, collected)| (view, std::mem::take(&mut *collected.lock().unwrap())))
        .collect()
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

/// What every view holds, given its inputs.
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

/// The first view and epoch where the dataflow and the model differ.
fn compare(run: &Run) -> Result<(), String> {
    let script = script(run);
    let views = run_dataflow(run, &script);
    for epoch in 0..=run.epochs {
        let expected = model(&at(&script.left, epoch), &at(&script.right, epoch));
        for (view, history) in &views {
            let found = at(history, epoch);
            if found != expected[view] {
                return Err(format!(
                    "{view} at epoch {epoch}: found {found:?}, expected {:?}, in {run:?}",
                    expected[view]
                ));
            }
        }
    }
    Ok(())
}

#[test]
fn every_view_equals_the_model_at_every_epoch() {
    let runs = std::env::var("ALLUVIUM_RUNS").map_or(150, |runs| runs.parse().unwrap());
    for seed in 0..runs {
        if let Err(difference) = compare(&Run::draw(seed)) {
            panic!("{difference}");
        }
    }
}

/// How many of 40 runs notice the fault.
fn noticed(fault: Fault) -> usize {
    (0..40)
        .filter(|&seed| {
            let run = Run { fault: Some(fault), ..Run::draw(seed) };
            compare(&run).is_err()
        })
        .count()
}

#[test]
fn a_join_that_answers_at_the_time_of_one_side_is_caught() {
    assert!(noticed(Fault::JoinAtLeftTime) > 0);
}

#[test]
fn a_reduction_that_uses_only_the_first_of_several_batches_is_caught() {
    assert!(noticed(Fault::FirstTileOnly) > 0);
}

#[test]
fn a_reduction_that_skips_the_times_between_is_caught() {
    assert!(noticed(Fault::LastTimeOnly) > 0);
}

#[test]
fn a_reduction_that_does_not_take_its_old_answer_back_is_caught() {
    assert!(noticed(Fault::KeepOldAnswer) > 0);
}

#[test]
fn a_reduction_that_forgets_what_its_input_held_is_caught() {
    assert!(noticed(Fault::ForgetHistory) > 0);
}
