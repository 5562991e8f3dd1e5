//! Joins of every kind, with and without residual conditions, and set operations, under random changes, compared with
//! a naive model at every epoch.
//!
//! Some keys are NULL; NULL keys are equal to each other here. One residual condition fails for some pairs: such a
//! pair is an error row and does not count as a match. One view joins the results of joins, so that joins also
//! receive input on schedules that joins produce.

use std::collections::BTreeMap;
use std::sync::Arc;

use alluvium_dataflow::fault::Fault;
use alluvium_dataflow::joins::outer_join::{self, OuterJoinKind, outer_join};
use alluvium_dataflow::map::map;
use alluvium_dataflow::movement::delta::DeltaStream;
use alluvium_dataflow::movement::exchange::broadcast;
use alluvium_dataflow::movement::input::input;
use alluvium_dataflow::reductions::distinct::{self, distinct};
use alluvium_dataflow::reductions::sets::{self, SetOperation, set_operation};
use alluvium_dataflow::rows::layout::Layout;
use alluvium_dataflow::state::arrangement::keep;
use alluvium_trace::Epoch;
use alluvium_trace::memory::StateContext;
use alluvium_trace::memory::context;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion_common::ScalarValue;
use datafusion_expr::Operator;
use datafusion_physical_expr::PhysicalExpr;
use datafusion_physical_expr::expressions::{BinaryExpr, CastExpr, Column, Literal};

use crate::harness::{
    Feed, History, Row, Rows, Run, assert_caught, at, every_seed, feed, keyed, numbers,
};

type Expression = Arc<dyn PhysicalExpr>;

const KINDS: [OuterJoinKind; 6] = [
    OuterJoinKind::Left,
    OuterJoinKind::Right,
    OuterJoinKind::Full,
    OuterJoinKind::Semi,
    OuterJoinKind::Anti,
    OuterJoinKind::Mark,
];

const SETS: [SetOperation; 4] = [
    SetOperation::Intersect,
    SetOperation::IntersectAll,
    SetOperation::Except,
    SetOperation::ExceptAll,
];

/// A condition on pairs besides the equality of keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Residual {
    /// None.
    Free,
    /// The left value is less than the right one.
    Less,
    /// The left value divided by the right one is zero. Division by zero is an error.
    Quotient,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum View {
    Join(OuterJoinKind, Residual),
    /// One constant row for each pair for which the condition of a full join fails.
    Errors,
    /// A left join without key columns, one side of which is broadcast.
    Semijoin,
    /// A left join of the rows of an anti join with those of another left join.
    Chain,
    Set(SetOperation),
}

fn views() -> Vec<View> {
    let mut views = vec![View::Errors, View::Semijoin, View::Chain];
    for kind in KINDS {
        views.extend(
            [Residual::Free, Residual::Less, Residual::Quotient]
                .map(|residual| View::Join(kind, residual)),
        );
    }
    views.extend(SETS.map(View::Set));
    views
}

fn column(name: &str, index: usize) -> Expression {
    Arc::new(Column::new(name, index))
}

fn number(value: i64) -> Expression {
    Arc::new(Literal::new(ScalarValue::Int64(Some(value))))
}

fn binary(left: Expression, operator: Operator, right: Expression) -> Expression {
    Arc::new(BinaryExpr::new(left, operator, right))
}

fn expression(residual: Residual) -> Option<Expression> {
    let (left, right) = (column("value", 1), column("value2", 3));
    match residual {
        Residual::Free => None,
        Residual::Less => Some(binary(left, Operator::Lt, right)),
        Residual::Quotient => {
            Some(binary(binary(left, Operator::Divide, right), Operator::Eq, number(0)))
        }
    }
}

fn output(kind: OuterJoinKind) -> SchemaRef {
    match kind {
        OuterJoinKind::Left | OuterJoinKind::Right | OuterJoinKind::Full => {
            numbers(&["key", "value", "key2", "value2"])
        }
        OuterJoinKind::Semi | OuterJoinKind::Anti => numbers(&["key", "value"]),
        OuterJoinKind::Mark => {
            let fields = numbers(&["key", "value"]).fields().to_vec();
            let mark = Arc::new(Field::new("mark", DataType::Boolean, false));
            Arc::new(Schema::new([fields, vec![mark]].concat()))
        }
    }
}

/// Turns keys of zero into NULL.
fn with_null_keys<'scope>(
    stream: DeltaStream<'scope, Epoch>,
    schema: &SchemaRef,
) -> DeltaStream<'scope, Epoch> {
    let key = column("key", 0);
    let null = Arc::new(Literal::new(ScalarValue::Int64(None))) as Expression;
    let is_zero = binary(Arc::clone(&key), Operator::Eq, number(0));
    let case = datafusion_physical_expr::expressions::case(None, vec![(is_zero, null)], Some(key));
    map(
        stream,
        None,
        vec![case.unwrap(), column("value", 1)],
        schema.clone(),
        &StateContext::default(),
    )
    .0
}

fn null_key(rows: &Rows) -> Rows {
    let null = |row: &Row| vec![row[0].filter(|key| *key != 0), row[1]];
    rows.iter().map(|(row, weight)| (null(row), *weight)).collect()
}

/// The booleans of a mark join as numbers.
fn with_numbers<'scope>(
    stream: DeltaStream<'scope, Epoch>,
    kind: OuterJoinKind,
) -> DeltaStream<'scope, Epoch> {
    if kind != OuterJoinKind::Mark {
        return stream;
    }
    let mark = Arc::new(CastExpr::new(column("mark", 2), DataType::Int64, None)) as Expression;
    let columns = vec![column("key", 0), column("value", 1), mark];
    map(stream, None, columns, numbers(&["key", "value", "mark"]), &StateContext::default()).0
}

/// Runs the dataflow of all views and returns their changes.
fn run_dataflow(run: &Run, histories: &[History; 2]) -> BTreeMap<View, History> {
    let (settings, histories) = (run.clone(), histories.clone());
    run.execute(views(), move |worker, watch| {
        let run = &settings;
        let schema = numbers(&["key", "value"]);
        let context = context::current();
        let (inputs, holder) = worker.dataflow(|scope| {
            let watch = |view: View, stream: DeltaStream<'_, Epoch>| watch.watch(&view, stream);
            let (left_input, left) = input(scope, "left", &context);
            let (right_input, right) = input(scope, "right", &context);
            let left = with_null_keys(left, &schema);
            let right = with_null_keys(right, &schema);
            let left_keyed = keyed(left.clone(), &schema, &[0]);
            let right_keyed = keyed(right.clone(), &schema, &[0]);
            let holder = run.hold_compaction.then(|| right_keyed.arranged.trace.clone());
            let mut kept = BTreeMap::new();
            for kind in KINDS {
                for residual in [Residual::Free, Residual::Less, Residual::Quotient] {
                    let spec = outer_join::Spec::new(
                        kind,
                        (&schema, &[0, 1]),
                        (&schema, &[0, 1]),
                        expression(residual),
                        output(kind),
                    );
                    let (left, right) = (left_keyed.clone(), right_keyed.clone());
                    let joined = outer_join(&spec, left, right, &context.clone().into());
                    watch(View::Join(kind, residual), with_numbers(joined.rows.clone(), kind));
                    kept.insert((kind, residual), joined.rows);
                    if let (OuterJoinKind::Full, Residual::Quotient, Some(errors)) =
                        (kind, residual, joined.errors)
                    {
                        let one = vec![number(1)];
                        watch(View::Errors, map(errors, None, one, numbers(&["one"]), &context).0);
                    }
                }
            }
            // One row or none, broadcast.
            let some = map(right.clone(), None, vec![number(1)], numbers(&["one"]), &context).0;
            let spec = distinct::Spec::compile(numbers(&["one"])).unwrap();
            let some = distinct(&spec, some, &context);
            let none = &[];
            let here = Layout::keyed(schema.clone(), none).unwrap();
            let here = keep(left.clone(), here, "Here", &context);
            let there = Layout::keyed(numbers(&["one"]), none).unwrap();
            let there = keep(broadcast(some, &context), there, "There", &context);
            let spec = outer_join::Spec::new(
                OuterJoinKind::Left,
                (&schema, &[0, 1]),
                (&numbers(&["one"]), &[0]),
                None,
                numbers(&["key", "value", "one"]),
            );
            let joined = outer_join(&spec, here, there, &context.clone().into());
            watch(View::Semijoin, joined.rows);

            let anti = kept[&(OuterJoinKind::Anti, Residual::Less)].clone();
            let outer = kept[&(OuterJoinKind::Left, Residual::Less)].clone();
            let outer_schema = output(OuterJoinKind::Left);
            let spec = outer_join::Spec::new(
                OuterJoinKind::Left,
                (&schema, &[0, 1]),
                (&outer_schema, &[0, 1, 2, 3]),
                None,
                numbers(&["a", "b", "c", "d", "e", "f"]),
            );
            let anti = keyed(anti, &schema, &[1]);
            let outer = keyed(outer, &outer_schema, &[3]);
            let chain = outer_join(&spec, anti, outer, &context.clone().into());
            watch(View::Chain, chain.rows);

            for operation in SETS {
                let (left, right) = (left.clone(), right.clone());
                let spec = sets::Spec::compile(operation, schema.clone()).unwrap();
                watch(View::Set(operation), set_operation(&spec, left, right, &context));
            }
            ([left_input, right_input], holder)
        });
        let feeds = inputs.into_iter().zip(&histories);
        let feeds = feeds.map(|(input, history)| Feed::new(input, history)).collect();
        feed(worker, run, &schema, feeds, &watch.probe);
        drop(holder);
    })
}

/// Whether a pair satisfies the condition; `None` if evaluating it fails.
fn passes(residual: Residual, left: &Row, right: &Row) -> Option<bool> {
    match (residual, left[1], right[1]) {
        (Residual::Free, ..) => Some(true),
        (_, None, _) | (_, _, None) => Some(false),
        (Residual::Less, Some(left), Some(right)) => Some(left < right),
        (Residual::Quotient, Some(left), Some(right)) => Some(left.checked_div(right)? == 0),
    }
}

/// A nested-loop join on one key column of each side.
fn join_model(
    (left, left_on): (&Rows, usize),
    (right, right_on): (&Rows, usize),
    kind: OuterJoinKind,
    passes: impl Fn(&Row, &Row) -> bool,
) -> Rows {
    let width = |rows: &Rows, otherwise| rows.keys().next().map_or(otherwise, Vec::len);
    let nulls = |count: usize| vec![None; count];
    let agree = |one: &Row, other: &Row| one[left_on] == other[right_on] && passes(one, other);
    let mut joined = Rows::new();
    let mut add = |row: Row, weight: i64| *joined.entry(row).or_default() += weight;
    for (one, weight) in left {
        let partners: Vec<_> = right.iter().filter(|(other, _)| agree(one, other)).collect();
        match kind {
            OuterJoinKind::Semi if partners.is_empty() => {}
            OuterJoinKind::Anti if !partners.is_empty() => {}
            OuterJoinKind::Semi | OuterJoinKind::Anti => add(one.clone(), *weight),
            OuterJoinKind::Mark => {
                add([one.as_slice(), &[Some(i64::from(!partners.is_empty()))]].concat(), *weight)
            }
            OuterJoinKind::Left | OuterJoinKind::Right | OuterJoinKind::Full => {
                for (other, count) in &partners {
                    add([one.as_slice(), other].concat(), weight * *count);
                }
                if partners.is_empty() && kind != OuterJoinKind::Right {
                    let right_width = if left_on == 1 { 4 } else { 2 };
                    add([one.clone(), nulls(width(right, right_width))].concat(), *weight);
                }
            }
        }
    }
    if kind.keeps_right() {
        for (other, count) in right {
            if !left.keys().any(|one| agree(one, other)) {
                add([nulls(2), other.clone()].concat(), *count);
            }
        }
    }
    joined
}

fn set_model(left: &Rows, right: &Rows, operation: SetOperation) -> Rows {
    let mut rows = Rows::new();
    for (row, &count) in left {
        let other = right.get(row).copied().unwrap_or(0);
        let weight = match operation {
            SetOperation::Intersect => i64::from(other > 0),
            SetOperation::IntersectAll => count.min(other),
            SetOperation::Except => i64::from(other == 0),
            SetOperation::ExceptAll => (count - other).max(0),
        };
        if weight > 0 {
            rows.insert(row.clone(), weight);
        }
    }
    rows
}

fn model(left: &Rows, right: &Rows) -> BTreeMap<View, Rows> {
    let (left, right) = (&null_key(left), &null_key(right));
    let join = |kind, residual| {
        join_model((left, 0), (right, 0), kind, |one, other| {
            passes(residual, one, other) == Some(true)
        })
    };
    let mut models = BTreeMap::new();
    for view in views() {
        let rows = match view {
            View::Join(kind, residual) => join(kind, residual),
            View::Errors => {
                let mut count = 0;
                for (one, weight) in left {
                    for (other, number) in right {
                        if one[0] == other[0] && passes(Residual::Quotient, one, other).is_none() {
                            count += weight * number;
                        }
                    }
                }
                if count == 0 { Rows::new() } else { Rows::from([(vec![Some(1)], count)]) }
            }
            View::Semijoin => {
                let some = (!right.is_empty()).then_some(1);
                left.iter()
                    .map(|(row, weight)| ([row.as_slice(), &[some]].concat(), *weight))
                    .collect()
            }
            View::Chain => {
                let anti = join(OuterJoinKind::Anti, Residual::Less);
                let outer = join(OuterJoinKind::Left, Residual::Less);
                join_model((&anti, 1), (&outer, 3), OuterJoinKind::Left, |_, _| true)
            }
            View::Set(operation) => set_model(left, right, operation),
        };
        models.insert(view, rows);
    }
    models
}

fn check(seed: u64, fault: Option<Fault>) -> Result<(), String> {
    let run = Run::draw(seed, fault);
    let histories = run.keyed_histories();
    let views = run_dataflow(&run, &histories);
    run.compare(&views, |epoch| model(&at(&histories[0], epoch), &at(&histories[1], epoch)))
}

#[test]
fn joins_and_set_operations_equal_the_model_at_every_epoch() {
    every_seed(60, check);
}

#[test]
fn a_join_without_its_residual_condition_is_caught() {
    assert_caught(12, &[Fault::DropResidual], check);
}

#[test]
fn a_join_that_overlooks_the_last_partner_is_caught() {
    assert_caught(12, &[Fault::MissLastPartner], check);
}

#[test]
fn a_join_that_ignores_earlier_input_is_caught() {
    assert_caught(12, &[Fault::ForgetHistory], check);
}

#[test]
fn a_join_that_does_not_retract_its_old_output_is_caught() {
    assert_caught(12, &[Fault::KeepOldAnswer], check);
}

#[test]
fn a_join_that_reads_only_the_first_of_several_batches_is_caught() {
    assert_caught(12, &[Fault::FirstTileOnly], check);
}
