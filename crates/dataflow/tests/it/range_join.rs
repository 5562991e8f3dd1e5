//! Range joins with every kind of ends under random changes, compared with a naive model at every epoch.
//!
//! Some keys and values are NULL; rows with a NULL that is compared match nothing. Equal values are frequent, and some rows have
//! several copies. One view joins the result of another join, so that joins also receive input on schedules that joins produce.

use std::collections::BTreeMap;
use std::sync::Arc;

use alluvium_dataflow::fault::Fault;
use alluvium_dataflow::joins::range_join::{Contexts, End, Ends, Left, Right, Spec, range_join};
use alluvium_dataflow::map::map;
use alluvium_dataflow::movement::delta::DeltaStream;
use alluvium_trace::Epoch;
use alluvium_trace::memory::{StateContext, context};
use arrow::datatypes::SchemaRef;
use datafusion_expr::Operator;
use datafusion_physical_expr::PhysicalExpr;
use datafusion_physical_expr::expressions::{BinaryExpr, Column, IsNotNullExpr};

use crate::harness::{History, Row, Rows, Run, assert_caught, at, every_seed, history, numbers};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum View {
    /// Pairs by ends that are in the range or not, with a key or without, and with the payload or without.
    Join { low: Option<bool>, high: Option<bool>, keyed: bool, payload: bool },
    /// The rows above an end that are also below another one.
    Chain,
}

fn views() -> Vec<View> {
    let mut views = vec![View::Chain];
    let ends = [None, Some(false), Some(true)];
    for (low, high) in ends.into_iter().flat_map(|low| ends.map(|high| (low, high))) {
        if low.is_none() && high.is_none() {
            continue;
        }
        for bits in 0..4 {
            views.push(View::Join { low, high, keyed: bits & 1 > 0, payload: bits & 2 > 0 });
        }
    }
    views
}

fn sides() -> SchemaRef {
    numbers(&["key", "low", "high", "x"])
}

/// The rows for which the column is not NULL, or those whose low end is below the high one, or equal if both are in the range.
fn present<'scope>(
    rows: DeltaStream<'scope, Epoch>,
    low: Option<bool>,
    high: Option<bool>,
) -> DeltaStream<'scope, Epoch> {
    let schema = sides();
    let column = |index: usize| {
        Arc::new(Column::new(schema.field(index).name(), index)) as Arc<dyn PhysicalExpr>
    };
    let is_there = |index| Arc::new(IsNotNullExpr::new(column(index))) as Arc<dyn PhysicalExpr>;
    let compared = |operator| {
        Arc::new(BinaryExpr::new(column(1), operator, column(2))) as Arc<dyn PhysicalExpr>
    };
    let condition = match (low, high) {
        (Some(true), Some(true)) => compared(Operator::LtEq),
        (Some(_), Some(_)) => compared(Operator::Lt),
        (Some(_), None) => is_there(1),
        _ => is_there(2),
    };
    let has_key = Arc::new(BinaryExpr::new(is_there(0), Operator::And, condition));
    let columns = (0..4).map(column).collect();
    map(rows, Some(has_key), columns, schema.clone(), &StateContext::default()).0
}

fn join<'scope>(
    left: DeltaStream<'scope, Epoch>,
    right: DeltaStream<'scope, Epoch>,
    (low, high): (Option<bool>, Option<bool>),
    (keyed, payload): (bool, bool),
) -> DeltaStream<'scope, Epoch> {
    let schema = sides();
    let end = |column: usize| move |is_included: bool| End { column, is_included };
    let keys: &[usize] = if keyed { &[0] } else { &[] };
    let payload: &[usize] = if payload { &[3] } else { &[] };
    let names = ["key", "low", "high", "x", "x2"];
    let ends = Ends { low: low.map(end(1)), high: high.map(end(2)) };
    let spec = Spec::compile(
        &Left { schema: &schema, keys, value: 1 },
        &Right { schema: &schema, keys, ends, payload },
        numbers(&names[..4 + payload.len()]),
    );
    let context = context::current();
    let contexts = Contexts { left: context.clone(), right: context };
    range_join(&spec.unwrap(), left, present(right, low, high), &contexts)
}

fn run_dataflow(run: &Run, histories: &[History; 2]) -> BTreeMap<View, History> {
    run.execute_two(views(), &sides(), histories, |left, right, watch| {
        let left = present(left, Some(true), None);
        for view in views() {
            let View::Join { low, high, keyed, payload } = view else { continue };
            let rows = join(left.clone(), right.clone(), (low, high), (keyed, payload));
            if (low, high, keyed, payload) == (Some(false), None, true, false) {
                let chain = join(rows.clone(), right.clone(), (None, Some(true)), (false, false));
                watch.watch(&View::Chain, chain);
            }
            watch.watch(&view, rows);
        }
    })
}

/// For each left row all right rows are looked at.
fn join_model(
    left: &Rows,
    right: &Rows,
    (low, high): (Option<bool>, Option<bool>),
    (keyed, payload): (bool, bool),
) -> Rows {
    let mut joined = Rows::new();
    for (row, weight) in left {
        let is_within = |other: &Row| {
            let (Some(value), Some(_), Some(_)) = (row[1], row[0], other[0]) else { return false };
            let is_above = |included: bool| {
                other[1].is_some_and(|low| low < value || included && low == value)
            };
            let is_below = |included: bool| {
                other[2].is_some_and(|high| value < high || included && high == value)
            };
            low.is_none_or(is_above) && high.is_none_or(is_below)
        };
        for (other, copies) in right {
            if is_within(other) && (!keyed || row[0] == other[0]) {
                let payload: &[_] = if payload { &other[3..] } else { &[] };
                *joined.entry([&row[..], payload].concat()).or_default() += weight * copies;
            }
        }
    }
    joined
}

fn model(left: &Rows, right: &Rows) -> BTreeMap<View, Rows> {
    let of_view = |view| match view {
        View::Join { low, high, keyed, payload } => {
            join_model(left, right, (low, high), (keyed, payload))
        }
        View::Chain => {
            let first = join_model(left, right, (Some(false), None), (true, false));
            join_model(&first, right, (None, Some(true)), (false, false))
        }
    };
    views().into_iter().map(|view| (view, of_view(view))).collect()
}

fn check(seed: u64, fault: Option<Fault>) -> Result<(), String> {
    let run = Run::draw(seed, fault);
    let mut random = run.random(0x4a6e);
    let (keys, values, others) = (1 + random.below(3), 1 + random.below(12), 1 + random.below(3));
    let mut draw = |last| {
        history(&mut random, last, |random| {
            let values = [keys, values, values, others];
            values.map(|most| random.value(most)).to_vec()
        })
    };
    let left = draw(run.epochs);
    let right = draw(if run.close_early { run.epochs / 2 } else { run.epochs });
    let histories = [left, right];
    let views = run_dataflow(&run, &histories);
    run.compare(&views, |epoch| model(&at(&histories[0], epoch), &at(&histories[1], epoch)))
}

#[test]
fn range_joins_equal_the_model_at_every_epoch() {
    every_seed(100, check);
}

#[test]
fn a_range_join_that_leaves_the_rows_that_an_end_passes_is_caught() {
    assert_caught(12, &[Fault::EndStays], check);
}

#[test]
fn a_range_join_that_ignores_earlier_input_is_caught() {
    assert_caught(12, &[Fault::ForgetHistory], check);
}

#[test]
fn a_range_join_that_reads_only_the_first_of_several_batches_is_caught() {
    assert_caught(12, &[Fault::FirstTileOnly], check);
}
