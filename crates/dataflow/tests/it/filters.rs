//! Aggregates of distinct values under filters, which share one state, compared with a model.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use alluvium_dataflow::fault::Fault;
use alluvium_dataflow::map::{MapStep, maps};
use alluvium_dataflow::reductions::aggregate::{self, Aggregate, Function, aggregate};
use alluvium_trace::memory::context;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion_common::ScalarValue;
use datafusion_expr::Operator;
use datafusion_physical_expr::PhysicalExpr;
use datafusion_physical_expr::expressions::{BinaryExpr, Column, Literal};

use crate::fallback::own;
use crate::harness::{Row, Rows, Run, assert_caught, compare_single, every_seed, numbers};

const COLUMNS: [&str; 3] = ["group", "value", "other"];
const RESULTS: [&str; 5] = ["group", "values", "low", "sum of low", "high"];

/// The column of the marks of others below 1.
const LOW: usize = 3;
/// The column of the marks of others above 0.
const HIGH: usize = 4;

fn check(seed: u64, fault: Option<Fault>) -> Result<(), String> {
    let run = Run::draw(seed, fault);
    let mut random = run.random(0xf1_17_e2);
    let history = run.grouped_history(&mut random, 2);
    let filtered =
        |function, filter| Aggregate { filter: Some(filter), ..own(function, Some(1), true) };
    let own = [
        own(Function::Count, Some(1), true),
        filtered(Function::Count, LOW),
        filtered(Function::Sum, LOW),
        filtered(Function::Count, HIGH),
    ];
    compare_single(
        &run,
        &COLUMNS,
        &history,
        move |rows, schema| {
            let step = marks(schema);
            let marked = Arc::clone(&step.schema);
            let (rows, _) = maps(rows, vec![step], &context::current());
            let output = numbers(&RESULTS);
            let spec = aggregate::Spec::compile(&marked, &[0], &own, &[], false, &output);
            aggregate(&spec.unwrap(), rows, &context::current()).rows
        },
        |rows| model(rows).into_iter().map(|row| (row, 1)).collect(),
    )
}

/// All columns, and the marks.
fn marks(schema: &SchemaRef) -> MapStep {
    let column = |at: usize| -> Arc<dyn PhysicalExpr> { Arc::new(Column::new(COLUMNS[at], at)) };
    let literal = |value: ScalarValue| -> Arc<dyn PhysicalExpr> { Arc::new(Literal::new(value)) };
    let compared = |operator, number: i64| -> Arc<dyn PhysicalExpr> {
        let number = literal(number.into());
        let compared = Arc::new(BinaryExpr::new(column(2), operator, number));
        Arc::new(BinaryExpr::new(compared, Operator::IsNotDistinctFrom, literal(true.into())))
    };
    let mut project: Vec<_> = (0..COLUMNS.len()).map(column).collect();
    project.extend([compared(Operator::Lt, 1), compared(Operator::Gt, 0)]);
    let fields = schema.fields().iter().cloned();
    let marks = ["low", "high"].map(|name| Arc::new(Field::new(name, DataType::Boolean, true)));
    let schema = Arc::new(Schema::new(fields.chain(marks).collect::<Vec<_>>()));
    MapStep { filter: None, project, schema, reports: false }
}

/// The results of all aggregates for each group.
fn model(rows: &Rows) -> Vec<Row> {
    let mut groups: BTreeMap<Option<i64>, Vec<&Row>> = BTreeMap::new();
    for row in rows.keys() {
        groups.entry(row[0]).or_default().push(row);
    }
    let results = groups.into_iter().map(|(group, rows)| {
        let values = |counts: fn(i64) -> bool| -> BTreeSet<i64> {
            let counted = rows.iter().filter(|row| row[2].is_some_and(counts));
            counted.filter_map(|row| row[1]).collect()
        };
        let all: BTreeSet<i64> = rows.iter().filter_map(|row| row[1]).collect();
        let (low, high) = (values(|other| other < 1), values(|other| other > 0));
        let count = |values: &BTreeSet<i64>| Some(values.len() as i64);
        let sum = low.iter().copied().reduce(|one, other| one + other);
        vec![group, count(&all), count(&low), sum, count(&high)]
    });
    results.collect()
}

#[test]
fn distinct_values_under_filters_equal_the_model_at_every_epoch() {
    every_seed(200, check);
}

#[test]
fn faults_in_marks_are_caught() {
    let faults = [Fault::KeepMarks, Fault::CountOnce, Fault::LeaveEarly, Fault::ForgetHistory];
    assert_caught(60, &faults, check);
}
