//! ASOF joins of every kind under random changes, compared with a naive model at every epoch.
//!
//! Some keys and times are NULL; such rows match nothing. Rows of one key and one time are frequent, and some rows have
//! several copies. One view joins the result of another join, so that joins also receive input on schedules that joins
//! produce.

use std::collections::BTreeMap;
use std::sync::Arc;

use alluvium_dataflow::fault::Fault;
use alluvium_dataflow::joins::asof_join::{Contexts, Nearest, Side, Spec, asof_join};
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
    /// A join on the key, or without a key; and whether it keeps rows without a match.
    Join { nearest: Nearest, keyed: bool, keeps_left: bool },
    /// The rows of an inner join, each with its nearest right row by the time of its match.
    Chain,
}

fn views() -> Vec<View> {
    let mut views = vec![View::Chain];
    for bits in 0..16 {
        let nearest = Nearest { later: bits & 1 > 0, or_equal: bits & 2 > 0 };
        views.push(View::Join { nearest, keyed: bits & 4 > 0, keeps_left: bits & 8 > 0 });
    }
    views
}

const EARLIER: Nearest = Nearest { later: false, or_equal: false };
const LATER: Nearest = Nearest { later: true, or_equal: true };

fn sides() -> SchemaRef {
    numbers(&["key", "time", "x"])
}

fn joined() -> SchemaRef {
    numbers(&["key", "time", "x", "key2", "time2", "x2"])
}

/// The rows that have a key and a time.
fn present<'scope>(rows: DeltaStream<'scope, Epoch>) -> DeltaStream<'scope, Epoch> {
    let schema = sides();
    let column = |index: usize| {
        Arc::new(Column::new(schema.field(index).name(), index)) as Arc<dyn PhysicalExpr>
    };
    let is_there = |index| Arc::new(IsNotNullExpr::new(column(index))) as Arc<dyn PhysicalExpr>;
    let both = Arc::new(BinaryExpr::new(is_there(0), Operator::And, is_there(1)));
    let columns = (0..3).map(column).collect();
    map(rows, Some(both), columns, schema.clone(), &StateContext::default()).0
}

/// The join of rows by a key, if there is one, and a time.
fn join<'scope>(
    (left, schema): (DeltaStream<'scope, Epoch>, &SchemaRef),
    right: DeltaStream<'scope, Epoch>,
    on: (&[usize], &[usize]),
    time: usize,
    (nearest, keeps_left): (Nearest, bool),
) -> DeltaStream<'scope, Epoch> {
    let right_schema = sides();
    let fields = schema.fields().iter().map(|field| field.name().as_str());
    let names: Vec<&str> = fields.chain(["key3", "time3", "x3"]).collect();
    let spec = Spec::compile(
        &Side { schema, keys: on.0, time },
        &Side { schema: &right_schema, keys: on.1, time: 1 },
        &[0, 2],
        nearest,
        keeps_left,
        numbers(&names),
    );
    let context = context::current();
    let contexts = Contexts { left: context.clone(), right: context };
    asof_join(&spec.unwrap(), left, right, &contexts)
}

fn run_dataflow(run: &Run, histories: &[History; 2]) -> BTreeMap<View, History> {
    run.execute_two(views(), &sides(), histories, |left, right, watch| {
        let right = present(right);
        for view in views() {
            let View::Join { nearest, keyed, keeps_left } = view else { continue };
            let on: (&[usize], &[usize]) = if keyed { (&[0], &[0]) } else { (&[], &[]) };
            let sides = (left.clone(), &sides());
            let rows = join(sides, right.clone(), on, 1, (nearest, keeps_left));
            if (nearest, keyed, keeps_left) == (EARLIER, true, false) {
                let left = (rows.clone(), &joined());
                let chain = join(left, right.clone(), (&[3], &[0]), 4, (LATER, true));
                watch.watch(&View::Chain, chain);
            }
            watch.watch(&view, rows);
        }
    })
}

/// For each left row all right rows are looked at.
fn join_model(
    (left, key, time): (&Rows, usize, usize),
    right: &Rows,
    keyed: bool,
    (nearest, keeps_left): (Nearest, bool),
) -> Rows {
    let mut joined = Rows::new();
    for (row, weight) in left {
        let matches = |other: &&Row| {
            let (Some(_), Some(at)) = (other[0], other[1]) else { return false };
            let Some(own) = row[time] else { return false };
            let is_near = match nearest.later {
                false => at < own || nearest.or_equal && at == own,
                true => at > own || nearest.or_equal && at == own,
            };
            is_near && (!keyed || row[key] == other[0])
        };
        let near = |other: &&Row| {
            let distance = other[1].map(|at| if nearest.later { -at } else { at });
            (distance, other[0], other[2])
        };
        match right.keys().filter(matches).max_by_key(near) {
            Some(other) => *joined.entry([&row[..], other].concat()).or_default() += weight,
            None if keeps_left => {
                *joined.entry([&row[..], &[None; 3]].concat()).or_default() += weight;
            }
            None => {}
        }
    }
    joined
}

fn model(left: &Rows, right: &Rows) -> BTreeMap<View, Rows> {
    let of_view = |view| match view {
        View::Join { nearest, keyed, keeps_left } => {
            join_model((left, 0, 1), right, keyed, (nearest, keeps_left))
        }
        View::Chain => {
            let first = join_model((left, 0, 1), right, true, (EARLIER, false));
            join_model((&first, 3, 4), right, true, (LATER, true))
        }
    };
    views().into_iter().map(|view| (view, of_view(view))).collect()
}

fn check(seed: u64, fault: Option<Fault>) -> Result<(), String> {
    let run = Run::draw(seed, fault);
    let mut random = run.random(0xa50f);
    let (keys, times, others) = (1 + random.below(3), 1 + random.below(12), 1 + random.below(4));
    let mut draw = |last| {
        history(&mut random, last, |random| {
            vec![random.value(keys), random.value(times), random.value(others)]
        })
    };
    let left = draw(run.epochs);
    let right = draw(if run.close_early { run.epochs / 2 } else { run.epochs });
    let histories = [left, right];
    let views = run_dataflow(&run, &histories);
    run.compare(&views, |epoch| model(&at(&histories[0], epoch), &at(&histories[1], epoch)))
}

#[test]
fn asof_joins_equal_the_model_at_every_epoch() {
    every_seed(100, check);
}

#[test]
fn an_asof_join_that_does_not_follow_nearer_rows_is_caught() {
    assert_caught(12, &[Fault::KeepMatch], check);
}

#[test]
fn an_asof_join_that_takes_the_first_row_to_come_is_caught() {
    assert_caught(12, &[Fault::TiesByArrival], check);
}

#[test]
fn an_asof_join_that_ignores_earlier_input_is_caught() {
    assert_caught(12, &[Fault::ForgetHistory], check);
}

#[test]
fn an_asof_join_that_does_not_retract_its_old_output_is_caught() {
    assert_caught(12, &[Fault::KeepOldAnswer], check);
}

#[test]
fn an_asof_join_that_reads_only_the_first_of_several_batches_is_caught() {
    assert_caught(12, &[Fault::FirstTileOnly], check);
}

#[test]
fn an_asof_join_that_loses_rows_without_a_match_is_caught() {
    assert_caught(12, &[Fault::NoLonelyRows], check);
}
