//! Fallback aggregates, which are recomputed, and aggregates of distinct values, beside sums and extremes; compared with
//! a model.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use alluvium_dataflow::fault::Fault;
use alluvium_dataflow::reductions::aggregate::{self, Aggregate, Fallback, Function, aggregate};
use alluvium_dataflow::reductions::window::Argument;
use alluvium_trace::memory::context;
use arrow::compute::SortOptions;
use arrow::datatypes::DataType;

use crate::digest::{self, digest};
use crate::harness::{Row, Rows, Run, assert_caught, compare_single, every_seed, numbers};

const COLUMNS: [&str; 3] = ["group", "value", "other"];
const RESULTS: [&str; 9] = [
    "group",
    "rows",
    "values",
    "distinct values",
    "sum of distinct others",
    "greatest",
    "digest of values",
    "digest of distinct others",
    "digest of values by others",
];

/// An aggregate that is maintained incrementally, with a number as its result.
pub fn own(function: Function, input: Option<usize>, distinct: bool) -> Aggregate {
    Aggregate { function, input, rank: None, distinct, filter: None, result: DataType::Int64 }
}

fn digest_of(column: usize, order: Vec<(usize, SortOptions)>, distinct: bool) -> Fallback {
    Fallback {
        function: digest::function(),
        arguments: vec![Argument::Column(column)],
        order,
        filter: None,
        distinct,
        ignore_nulls: false,
        result: DataType::Int64,
    }
}

/// One run with a random choice of aggregates.
fn check(seed: u64, fault: Option<Fault>) -> Result<(), String> {
    let run = Run::draw(seed, fault);
    let mut random = run.random(0x51_49_13);
    let history = run.grouped_history(&mut random, 2);
    let descending = SortOptions { descending: true, nulls_first: false };
    let all_own = [
        own(Function::Count, None, false),
        own(Function::Count, Some(1), false),
        own(Function::Count, Some(1), true),
        own(Function::Sum, Some(2), true),
        own(Function::Max, Some(1), false),
    ];
    let all_fallback = [
        digest_of(1, vec![], false),
        digest_of(2, vec![], true),
        digest_of(1, vec![(2, descending)], false),
    ];
    let mut chosen: Vec<usize> = (1..RESULTS.len()).filter(|_| random.once_in(2)).collect();
    if chosen.is_empty() {
        chosen.push(6);
    }
    let pick = |from: usize, to: usize| -> Vec<usize> {
        chosen.iter().filter(|&&at| (from..to).contains(&at)).map(|at| at - from).collect()
    };
    let own: Vec<Aggregate> = pick(1, 6).into_iter().map(|at| all_own[at].clone()).collect();
    let fallback: Vec<Fallback> =
        pick(6, 9).into_iter().map(|at| all_fallback[at].clone()).collect();
    let columns: Vec<usize> = std::iter::once(0).chain(chosen).collect();
    let names: Vec<&'static str> = columns.iter().map(|&at| RESULTS[at]).collect();
    let shown = names.clone();
    compare_single(
        &run,
        &COLUMNS,
        &history,
        move |rows, schema| {
            let output = numbers(&names);
            let spec = aggregate::Spec::compile(schema, &[0], &own, &fallback, false, &output);
            aggregate(&spec.unwrap(), rows, &context::current()).rows
        },
        |rows| {
            let all = model(rows).into_iter();
            all.map(|row| (columns.iter().map(|&at| row[at]).collect(), 1)).collect()
        },
    )
    .map_err(|difference| format!("{shown:?}, {difference}"))
}

/// The results of all aggregates for each group.
fn model(rows: &Rows) -> Vec<Row> {
    let mut groups: BTreeMap<Option<i64>, Vec<&Row>> = BTreeMap::new();
    for (row, weight) in rows {
        groups.entry(row[0]).or_default().extend((0..*weight).map(|_| row));
    }
    let results = groups.into_iter().map(|(group, mut rows)| {
        let values = |column: usize| rows.iter().filter_map(move |row| row[column]);
        let distinct = |column: usize| values(column).collect::<BTreeSet<i64>>();
        // NULLs sort last, as if greater than all numbers.
        let last = |value: Option<i64>| (value.is_none(), value);
        let mut ascending: Vec<Option<i64>> = rows.iter().map(|row| row[1]).collect();
        ascending.sort_by_key(|&value| last(value));
        let mut others: Vec<Option<i64>> = rows.iter().map(|row| row[2]).collect();
        others.sort_by_key(|&value| last(value));
        others.dedup();
        let counts = [rows.len(), values(1).count(), distinct(1).len()];
        let sum = distinct(2).into_iter().reduce(|one, other| one + other);
        let greatest = values(1).max();
        // Descending, NULLs last; ties are broken by the value.
        rows.sort_by_key(|row| (Reverse(row[2]), last(row[1])));
        let mut result = vec![group];
        result.extend(counts.map(|count| Some(count as i64)));
        result.extend([sum, greatest, digest(ascending), digest(others)]);
        result.push(digest(rows.iter().map(|row| row[1])));
        result
    });
    results.collect()
}

#[test]
fn aggregates_of_all_kinds_equal_the_model_at_every_epoch() {
    every_seed(200, check);
}

#[test]
fn faults_in_recomputing_groups_are_caught() {
    let faults = [
        Fault::FirstTileOnly,
        Fault::LastTimeOnly,
        Fault::KeepOldAnswer,
        Fault::ForgetHistory,
        Fault::ForgetOldResults,
        Fault::IgnoreCopies,
    ];
    assert_caught(60, &faults, check);
}
