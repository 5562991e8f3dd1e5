//! Window functions over random partitions, compared with a model.

use std::collections::BTreeMap;
use std::sync::Arc;

use alluvium_dataflow::fault::Fault;
use alluvium_dataflow::reductions::window::{self, Argument, Definition, WindowFunction, window};
use alluvium_trace::memory::context;
use arrow::compute::SortOptions;
use arrow::datatypes::{DataType, Field};
use datafusion_common::ScalarValue;
use datafusion_expr::{WindowFrame, WindowFrameBound, WindowFrameUnits, WindowFunctionDefinition};

use crate::digest::{self, digest};
use crate::harness::{Row, Rows, Run, assert_caught, compare_single, every_seed, numbers};

const COLUMNS: [&str; 3] = ["group", "value", "other"];

/// Descending with NULLs last, as the model orders them.
const DESCENDING: SortOptions = SortOptions { descending: true, nulls_first: false };

/// A digest over all rows up to the current one, or over the whole partition.
fn digest_of(column: usize, running: bool) -> WindowFunction {
    let unbounded = ScalarValue::UInt64(None);
    let end = match running {
        true => WindowFrameBound::CurrentRow,
        false => WindowFrameBound::Following(unbounded.clone()),
    };
    let start = WindowFrameBound::Preceding(unbounded);
    WindowFunction {
        function: WindowFunctionDefinition::AggregateUDF(digest::function()),
        arguments: vec![Argument::Column(column)],
        frame: Arc::new(WindowFrame::new_bounds(WindowFrameUnits::Rows, start, end)),
        filter: None,
        distinct: false,
        ignore_nulls: false,
        result: Arc::new(Field::new("digest", DataType::Int64, true)),
    }
}

fn check(seed: u64, fault: Option<Fault>) -> Result<(), String> {
    let run = Run::draw(seed, fault);
    let mut random = run.random(0x51_49_13);
    let history = run.grouped_history(&mut random, 2);
    let partitioned = random.once_in(2);
    let keys: &'static [usize] = if partitioned { &[0] } else { &[] };
    // The remaining columns are part of the order, or break its ties.
    let (order, ties) = match random.once_in(2) {
        true => (vec![(1, DESCENDING), (2, DESCENDING), (0, DESCENDING)], vec![]),
        false => (vec![(1, DESCENDING)], vec![2, 0]),
    };
    let all_ordered = ties.is_empty();
    compare_single(
        &run,
        &COLUMNS,
        &history,
        move |rows, schema| {
            let functions = [digest_of(2, true), digest_of(1, false)];
            let output = numbers(&["group", "value", "other", "running", "whole"]);
            let spec = window::Spec::compile(&Definition {
                input: schema,
                keys,
                order: &order,
                ties: &ties,
                functions: &functions,
                output: &output,
            });
            window(&spec.unwrap(), rows, &context::current()).rows
        },
        |rows| model(rows, partitioned, all_ordered),
    )
    .map_err(|difference| format!("partitioned {partitioned}, {difference}"))
}

fn model(rows: &Rows, partitioned: bool, all_ordered: bool) -> Rows {
    let mut partitions: BTreeMap<Option<i64>, Vec<Row>> = BTreeMap::new();
    for (row, weight) in rows {
        let partition = partitions.entry(if partitioned { row[0] } else { None }).or_default();
        partition.extend((0..*weight).map(|_| row.clone()));
    }
    let last = |value: Option<i64>| (value.is_none(), value);
    let mut results = Rows::new();
    for mut partition in partitions.into_values() {
        partition.sort_by(|one, other| {
            let by_value = other[1].cmp(&one[1]);
            by_value.then_with(|| match all_ordered {
                true => (other[2], other[0]).cmp(&(one[2], one[0])),
                false => (last(one[2]), last(one[0])).cmp(&(last(other[2]), last(other[0]))),
            })
        });
        let whole = digest(partition.iter().map(|row| row[1]));
        for (place, row) in partition.iter().enumerate() {
            let running = digest(partition[..=place].iter().map(|row| row[2]));
            let result = row.iter().copied().chain([running, whole]).collect();
            *results.entry(result).or_default() += 1;
        }
    }
    results
}

#[test]
fn window_functions_equal_the_model_at_every_epoch() {
    every_seed(200, check);
}

#[test]
fn faults_in_recomputing_partitions_are_caught() {
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
