//! Joins of every kind, with and without residual conditions, and set operations, under random changes,
//! compared with a naive model at every epoch.
//!
//! Keys are NULL now and then, and agree with NULL. One residual condition fails for some pairs: such a
//! pair is an error and no partner. The results of joins are joined again, so that what they put out meets
//! every schedule too.

use std::collections::BTreeMap;
use std::sync::Arc;

use alluvium_dataflow::KeyColumns;
use alluvium_dataflow::arrangement::{Kept, keep};
use alluvium_dataflow::delta::DeltaStream;
use alluvium_dataflow::distinct::{self, distinct};
use alluvium_dataflow::exchange::{broadcast, exchange};
use alluvium_dataflow::fault::{self, Fault};
use alluvium_dataflow::input::input;
use alluvium_dataflow::layout::Layout;
use alluvium_dataflow::map::map;
use alluvium_dataflow::outer_join::{self, OuterJoinKind, outer_join};
use alluvium_dataflow::sets::{self, SetOperation, set_operation};
use alluvium_trace::Epoch;
use alluvium_trace::memory::context;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion_common::ScalarValue;
use datafusion_expr::Operator;
use datafusion_physical_expr::PhysicalExpr;
use datafusion_physical_expr::expressions::{BinaryExpr, CastExpr, Column, Literal};
use timely::dataflow::operators::probe::{Handle, Probe};

use crate::model::{Collected, History, Row, Rows, at, collect, numbers};
use crate::schedule::{Run, Script, play, script, surround};

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

/// A condition on pairs beyond their keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Residual {
    /// None.
    Free,
    /// The left value is less than the right one.
    Less,
    /// The left value divided by the right one is zero: fails where the right one is.
    Quotient,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum View {
    Join(OuterJoinKind, Residual),
    /// The pairs for which the condition of a full join fails, as rows without columns of their own.
    Errors,
    /// A left join whose key is no column, where one side is on every worker.
    Semijoin,
    /// A left join of what an anti join leaves with what a left join makes.
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

/// Keys of zero as NULL: keys are NULL now and then.
fn with_null_keys<'scope>(
    stream: DeltaStream<'scope, Epoch>,
    schema: &SchemaRef,
) -> DeltaStream<'scope, Epoch> {
    let key = column("key", 0);
    let null = Arc::new(Literal::new(ScalarValue::Int64(None))) as Expression;
    let is_zero = binary(Arc::clone(&key), Operator::Eq, number(0));
    let case = datafusion_physical_expr::expressions::case(None, vec![(is_zero, null)], Some(key));
    map(stream, None, vec![case.unwrap(), column("value", 1)], schema.clone()).0
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
    map(stream, None, columns, numbers(&["key", "value", "mark"])).0
}

fn keyed<'scope>(
    stream: DeltaStream<'scope, Epoch>,
    schema: &SchemaRef,
    keys: &[usize],
) -> Kept<'scope> {
    let stream = exchange(stream, &KeyColumns::new(schema, keys).unwrap(), &context::current());
    keep(stream, Layout::keyed(schema.clone(), keys).unwrap(), "Test", &context::current())
}

fn run_dataflow(run: &Run, script: &Script) -> BTreeMap<View, History> {
    let collections: BTreeMap<View, Collected> =
        views().into_iter().map(|view| (view, Arc::default())).collect();
    let shared = collections.clone();
    let (settings, script) = (run.clone(), script.clone());
    let guards = timely::execute(timely::Config::process(run.workers), move |worker| {
        let run = &settings;
        fault::arm(run.fault);
        fault::tile(run.tiled);
        surround(run.seed);
        let probe = Handle::new();
        let (left_input, right_input, holder) = worker.dataflow(|scope| {
            let schema = numbers(&["key", "value"]);
            let watch = |view: View, stream: DeltaStream<'_, Epoch>| {
                collect(stream, shared[&view].clone()).probe_with(&probe);
            };
            let (left_input, left) = input(scope, "left", &context::current());
            let (right_input, right) = input(scope, "right", &context::current());
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
                    let joined = outer_join(
                        &spec,
                        left_keyed.clone(),
                        right_keyed.clone(),
                        &context::current(),
                    );
                    watch(View::Join(kind, residual), with_numbers(joined.rows.clone(), kind));
                    kept.insert((kind, residual), joined.rows);
                    if let (OuterJoinKind::Full, Residual::Quotient, Some(errors)) =
                        (kind, residual, joined.errors)
                    {
                        let one = vec![number(1)];
                        watch(View::Errors, map(errors, None, one, numbers(&["one"])).0);
                    }
                }
            }
            // One row, or none, on all workers.
            let some = map(right.clone(), None, vec![number(1)], numbers(&["one"])).0;
            let spec = distinct::Spec::compile(numbers(&["one"])).unwrap();
            let some = distinct(&spec, some, &context::current());
            let none = &[];
            let here = keep(
                left.clone(),
                Layout::keyed(schema.clone(), none).unwrap(),
                "Here",
                &context::current(),
            );
            let there = Layout::keyed(numbers(&["one"]), none).unwrap();
            let there =
                keep(broadcast(some, &context::current()), there, "There", &context::current());
            let spec = outer_join::Spec::new(
                OuterJoinKind::Left,
                (&schema, &[0, 1]),
                (&numbers(&["one"]), &[0]),
                None,
                numbers(&["key", "value", "one"]),
            );
            let joined = outer_join(&spec, here, there, &context::current());
            watch(View::Semijoin, joined.rows);

            let anti = kept[&(OuterJoinKind::Anti, Residual::Less)].clone();
            let outer = kept[&(OuterJoinKind::Left, Residual::Less)].clone();
            let left_output = output(OuterJoinKind::Left);
            let spec = outer_join::Spec::new(
                OuterJoinKind::Left,
                (&schema, &[0, 1]),
                (&left_output, &[0, 1, 2, 3]),
                None,
                numbers(&["a", "b", "c", "d", "e", "f"]),
            );
            let anti = keyed(anti, &schema, &[1]);
            let chain =
                outer_join(&spec, anti, keyed(outer, &left_output, &[3]), &context::current());
            watch(View::Chain, chain.rows);

            for operation in SETS {
                let (left, right) = (left.clone(), right.clone());
                let spec = sets::Spec::compile(operation, schema.clone()).unwrap();
                let rows = set_operation(&spec, left, right, &context::current());
                watch(View::Set(operation), rows);
            }
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

/// Whether a pair passes; `None` if that fails.
fn passes(residual: Residual, left: &Row, right: &Row) -> Option<bool> {
    match (residual, left[1], right[1]) {
        (Residual::Free, ..) => Some(true),
        (_, None, _) | (_, _, None) => Some(false),
        (Residual::Less, Some(left), Some(right)) => Some(left < right),
        (Residual::Quotient, Some(left), Some(right)) => Some(left.checked_div(right)? == 0),
    }
}

/// A join by brute force, of rows whose keys are columns `on`.
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
                    "{view:?} at epoch {epoch}: found {found:?}, expected {:?}, in {run:?}",
                    expected[view]
                ));
            }
        }
    }
    Ok(())
}

#[test]
fn every_kind_of_join_and_set_operation_equals_the_model_at_every_epoch() {
    let runs = std::env::var("ALLUVIUM_RUNS").map_or(60, |runs| runs.parse().unwrap());
    for seed in 0..runs {
        if let Err(difference) = compare(&Run::draw(seed)) {
            panic!("{difference}");
        }
    }
}

/// How many of 12 runs notice the fault.
fn noticed(fault: Fault) -> usize {
    let run = |seed| Run { fault: Some(fault), ..Run::draw(seed) };
    (0..12).filter(|&seed| compare(&run(seed)).is_err()).count()
}

#[test]
fn a_join_without_its_residual_condition_is_caught() {
    assert!(noticed(Fault::DropResidual) > 0);
}

#[test]
fn a_join_that_overlooks_the_only_partner_is_caught() {
    assert!(noticed(Fault::MissLastPartner) > 0);
}

#[test]
fn a_join_that_forgets_what_was_there_is_caught() {
    assert!(noticed(Fault::ForgetHistory) > 0);
}

#[test]
fn a_join_that_does_not_take_its_old_rows_back_is_caught() {
    assert!(noticed(Fault::KeepOldAnswer) > 0);
}

#[test]
fn a_join_that_uses_only_the_first_of_several_batches_is_caught() {
    assert!(noticed(Fault::FirstTileOnly) > 0);
}
