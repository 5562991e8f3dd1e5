//! MIN and MAX of one column, which are both ends of one order, compared with a model.

use std::collections::BTreeMap;

use alluvium_dataflow::fault::Fault;
use alluvium_dataflow::reductions::aggregate::{self, Function, aggregate};
use alluvium_trace::memory::context;

use crate::fallback::own;
use crate::harness::{Row, Rows, Run, assert_caught, compare_single, every_seed, numbers};

const COLUMNS: [&str; 3] = ["group", "value", "other"];
const RESULTS: [&str; 6] = ["group", "max", "rows", "min", "other max", "other min"];

fn check(seed: u64, fault: Option<Fault>) -> Result<(), String> {
    let run = Run::draw(seed, fault);
    let mut random = run.random(0xe2_d5);
    let history = run.grouped_history(&mut random, 2);
    let own = [
        own(Function::Max, Some(1), false),
        own(Function::Count, None, false),
        own(Function::Min, Some(1), false),
        own(Function::Max, Some(2), false),
        own(Function::Min, Some(2), false),
    ];
    compare_single(
        &run,
        &COLUMNS,
        &history,
        move |rows, schema| {
            let output = numbers(&RESULTS);
            let spec = aggregate::Spec::compile(schema, &[0], &own, &[], false, &output);
            aggregate(&spec.unwrap(), rows, &context::current()).rows
        },
        |rows| model(rows).into_iter().map(|row| (row, 1)).collect(),
    )
}

fn model(rows: &Rows) -> Vec<Row> {
    let mut groups: BTreeMap<Option<i64>, Vec<(&Row, i64)>> = BTreeMap::new();
    for (row, copies) in rows {
        groups.entry(row[0]).or_default().push((row, *copies));
    }
    let results = groups.into_iter().map(|(group, rows)| {
        let values = |column: usize| rows.iter().filter_map(move |(row, _)| row[column]);
        let count = rows.iter().map(|(_, copies)| copies).sum();
        vec![group, values(1).max(), Some(count), values(1).min(), values(2).max(), values(2).min()]
    });
    results.collect()
}

#[test]
fn both_ends_equal_the_model_at_every_epoch() {
    every_seed(200, check);
}

#[test]
fn faults_at_the_ends_are_caught() {
    let faults = [Fault::LastIsNull, Fault::ForgetHistory, Fault::LastTimeOnly];
    assert_caught(60, &faults, check);
}
