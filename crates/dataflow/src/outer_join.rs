//! Joins in which it matters whether a row has a partner: outer, semi, anti and mark joins.
//!
//! The pairs are those of the inner join. The rest is decided by existence over the same two
//! arrangements: a row has a partner if there is a row under its key on the other side. With a residual
//! condition it has one if it is among the pairs that pass: the rows of these pairs are arranged once more,
//! laid out as where they came from, and each row looks for itself there. So a change costs as much as
//! the pairs it changes, and a pair for which the condition fails is an error and no partner.

use std::sync::Arc;

use alluvium_trace::Epoch;
use arrow::datatypes::{DataType, Schema, SchemaRef};
use datafusion_physical_expr::PhysicalExpr;
use datafusion_physical_expr::expressions::Column;
use timely::container::NoopBuilder;
use timely::dataflow::channels::pact::Pipeline;
use timely::dataflow::operators::Concatenate;
use timely::dataflow::operators::generic::OutputBuilderSession;
use timely::dataflow::operators::generic::operator::Operator;

use crate::arrangement::{Kept, keep};
use crate::cogroup::Shape;
use crate::delta::{Delta, DeltaStream};
use crate::fault::{self, Fault};
use crate::join::join;
use crate::map::map;
use crate::semijoin::{Partner, Wanted, existence};

/// What comes out of a join besides, or instead of, its pairs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum OuterJoinKind {
    /// The pairs, and the left rows without a partner, with NULLs on the right.
    Left,
    /// The pairs, and the right rows without a partner, with NULLs on the left.
    Right,
    /// The pairs, and the rows of both sides without a partner.
    Full,
    /// The left rows with a partner.
    Semi,
    /// The left rows without a partner.
    Anti,
    /// The left rows, and whether each has a partner.
    Mark,
}

impl OuterJoinKind {
    /// Whether pairs come out.
    pub fn has_pairs(self) -> bool {
        matches!(self, OuterJoinKind::Left | OuterJoinKind::Right | OuterJoinKind::Full)
    }

    /// Whether left rows without a partner come out.
    pub fn keeps_left(self) -> bool {
        !matches!(self, OuterJoinKind::Right | OuterJoinKind::Semi)
    }

    /// Whether right rows without a partner come out.
    pub fn keeps_right(self) -> bool {
        matches!(self, OuterJoinKind::Right | OuterJoinKind::Full)
    }
}

/// What came of a join.
pub struct Matched<'scope> {
    /// Its rows.
    pub rows: DeltaStream<'scope, Epoch>,
    /// The pairs for which the residual condition fails, if there is one.
    pub errors: Option<DeltaStream<'scope, Epoch>>,
}

/// Joins `left` and `right`, each given with those of its columns that matter. Both are keyed by columns of
/// the same types; equal keys, NULLs among them, agree and are on the same worker.
///
/// Only pairs for which `residual`, over the columns of both sides, is true are partners; with one, the
/// columns that matter are all columns, in order. `schema` names the output: the columns of both
/// sides for outer joins, those of the left for semi and anti joins, and with one more, a boolean, for mark
/// joins.
pub fn outer_join<'scope>(
    (left, left_columns): (Kept<'scope, Epoch>, &[usize]),
    (right, right_columns): (Kept<'scope, Epoch>, &[usize]),
    kind: OuterJoinKind,
    residual: Option<Arc<dyn PhysicalExpr>>,
    schema: SchemaRef,
) -> Matched<'scope> {
    let right_in_pairs: Vec<usize> =
        (0..right_columns.len()).map(|column| left_columns.len() + column).collect();
    let left_in_pairs: Vec<usize> = (0..left_columns.len()).collect();
    let mut errors = None;
    let mut pairs = None;
    if kind.has_pairs() || residual.is_some() {
        let both = join(left.clone(), right.clone(), left_columns, right_columns);
        let passed = match residual.clone() {
            Some(residual) if !fault::armed(Fault::DropResidual) => {
                let (passed, failed) = filter(both, residual, &left, &right, kind);
                errors = Some(failed);
                passed
            }
            _ => both,
        };
        pairs = Some(passed);
    }
    // What a row finds its partners in, and by what.
    let partners =
        |side: &Kept<'scope, Epoch>, other: &Kept<'scope, Epoch>, columns: &[usize]| match &pairs {
            Some(pairs) if residual.is_some() => {
                let rows = project(pairs.clone(), columns.to_vec());
                (keep(rows, side.layout.clone(), "ArrangeMatches"), Partner::SameRow)
            }
            _ => (other.clone(), Partner::SameKey),
        };
    let mut streams = Vec::new();
    let loses = kind.has_pairs() && fault::armed(Fault::NoLonelyRows);
    if kind.keeps_left() && !loses || kind == OuterJoinKind::Semi {
        let (found, partner) = partners(&left, &right, &left_in_pairs);
        let wanted = match kind {
            OuterJoinKind::Semi => Wanted::Matched,
            OuterJoinKind::Mark => Wanted::Marked,
            _ => Wanted::Unmatched,
        };
        let shape = Shape {
            schema: schema.clone(),
            nulls_before: Vec::new(),
            columns: left_columns.to_vec(),
            nulls_after: if kind.has_pairs() { types(&right, right_columns) } else { Vec::new() },
            marked: kind == OuterJoinKind::Mark,
        };
        streams.push(existence(left.clone(), found, partner, wanted, shape));
    }
    if kind.keeps_right() {
        let (found, partner) = partners(&right, &left, &right_in_pairs);
        let shape = Shape {
            schema: schema.clone(),
            nulls_before: types(&left, left_columns),
            columns: right_columns.to_vec(),
            nulls_after: Vec::new(),
            marked: false,
        };
        streams.push(existence(right.clone(), found, partner, Wanted::Unmatched, shape));
    }
    if let Some(pairs) = pairs
        && kind.has_pairs()
    {
        streams.push(named(pairs, schema));
    }
    let scope = streams[0].scope();
    Matched { rows: scope.concatenate(streams), errors }
}

fn types(side: &Kept<'_, Epoch>, columns: &[usize]) -> Vec<DataType> {
    let schema = side.layout.schema();
    columns.iter().map(|&column| schema.field(column).data_type().clone()).collect()
}

/// The pairs for which `residual` is true, with the columns of both sides; only those of the left where no
/// pairs are wanted. And the errors.
fn filter<'scope>(
    pairs: DeltaStream<'scope, Epoch>,
    residual: Arc<dyn PhysicalExpr>,
    left: &Kept<'scope, Epoch>,
    right: &Kept<'scope, Epoch>,
    kind: OuterJoinKind,
) -> (DeltaStream<'scope, Epoch>, DeltaStream<'scope, Epoch>) {
    let mut fields: Vec<_> = left.layout.schema().fields().iter().cloned().collect();
    if kind.has_pairs() {
        fields.extend(right.layout.schema().fields().iter().cloned());
    }
    let columns = fields.iter().enumerate().map(|(number, field)| {
        Arc::new(Column::new(field.name(), number)) as Arc<dyn PhysicalExpr>
    });
    let columns = columns.collect();
    map(pairs, Some(residual), columns, Arc::new(Schema::new(fields)))
}

/// The columns `columns` of the rows.
fn project<'scope>(
    rows: DeltaStream<'scope, Epoch>,
    columns: Vec<usize>,
) -> DeltaStream<'scope, Epoch> {
    rows.unary(Pipeline, "Project", move |_, _| {
        move |input, output: &mut OutputBuilderSession<'_, Epoch, NoopBuilder<Delta<Epoch>>>| {
            input.for_each(|capability, delta: &mut Delta<Epoch>| {
                let mut projected = delta.project(&columns);
                output.session_with_builder(&capability).give_container(&mut projected);
            });
        }
    })
}

/// The rows under the names, and with the NULLs, of `schema`.
fn named<'scope>(
    rows: DeltaStream<'scope, Epoch>,
    schema: SchemaRef,
) -> DeltaStream<'scope, Epoch> {
    rows.unary(Pipeline, "Name", move |_, _| {
        move |input, output: &mut OutputBuilderSession<'_, Epoch, NoopBuilder<Delta<Epoch>>>| {
            input.for_each(|capability, delta: &mut Delta<Epoch>| {
                let mut delta = std::mem::take(delta);
                let rows = delta.rows.num_rows();
                let columns = delta.rows.columns().to_vec();
                delta.rows = crate::layout::assemble(schema.clone(), columns, rows);
                output.session_with_builder(&capability).give_container(&mut delta);
            });
        }
    })
}
