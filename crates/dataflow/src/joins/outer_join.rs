//! Outer, semi, anti and mark joins: joins in which it matters whether a row has a match.
//!
//! The pairs are those of the inner join. Whether a row has a match is decided over the same two arrangements: without a
//! residual condition any row under its key on the other side is a match. With a residual condition the rows of the pairs
//! that pass are arranged once more, in the layout of the side they came from, and a row looks itself up there. So a
//! change costs as much as the pairs it changes. A pair for which the condition fails is an error and no match.

use std::sync::Arc;

use alluvium_trace::Epoch;
use alluvium_trace::memory::StateContext;
use arrow::datatypes::{DataType, Schema, SchemaRef};
use datafusion_physical_expr::PhysicalExpr;
use datafusion_physical_expr::expressions::Column;

use crate::fault::{self, Fault};
use crate::joins::join::{self, join};
use crate::joins::semijoin::{Match, Wanted, semijoin};
use crate::map::map;
use crate::movement::delta::{DeltaStream, concatenated, each_delta};
use crate::reductions::reduce::Shape;
use crate::rows::layout::assemble;
use crate::state::arrangement::{Kept, keep};

/// The rows that a join returns besides, or instead of, its pairs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum OuterJoinKind {
    /// The pairs, and the left rows without a match, with NULLs on the right.
    Left,
    /// The pairs, and the right rows without a match, with NULLs on the left.
    Right,
    /// The pairs, and the rows of both sides without a match.
    Full,
    /// The left rows with a match.
    Semi,
    /// The left rows without a match.
    Anti,
    /// The left rows, and whether each has a match.
    Mark,
}

impl OuterJoinKind {
    /// Whether it returns pairs.
    pub fn has_pairs(self) -> bool {
        matches!(self, OuterJoinKind::Left | OuterJoinKind::Right | OuterJoinKind::Full)
    }

    /// Whether it returns left rows without a match.
    pub fn keeps_left(self) -> bool {
        !matches!(self, OuterJoinKind::Right | OuterJoinKind::Semi)
    }

    /// Whether it returns right rows without a match.
    pub fn keeps_right(self) -> bool {
        matches!(self, OuterJoinKind::Right | OuterJoinKind::Full)
    }
}

/// The kind of a join, its condition, and its columns.
#[derive(Clone, Debug)]
pub struct Spec {
    kind: OuterJoinKind,
    residual: Option<Arc<dyn PhysicalExpr>>,
    pairs: join::Spec,
    left: SideSpec,
    right: SideSpec,
    schema: SchemaRef,
}

/// One side of a join.
#[derive(Clone, Debug)]
struct SideSpec {
    schema: SchemaRef,
    columns: Vec<usize>,
    /// Where `columns` are in the pairs.
    in_pairs: Vec<usize>,
}

impl SideSpec {
    fn types(&self) -> Vec<DataType> {
        self.columns.iter().map(|&at| self.schema.field(at).data_type().clone()).collect()
    }
}

impl Spec {
    /// A join of rows of the schema `left` with rows of the schema `right`, each given with the columns to return.
    ///
    /// A pair matches only if `residual`, over the columns of both sides, is true; with a residual condition the columns to
    /// return are all columns, in order. `schema` names the output: the columns of both sides for outer joins, those of the
    /// left side for semi and anti joins, and one more, a boolean, for mark joins.
    pub fn new(
        kind: OuterJoinKind,
        (left, left_columns): (&SchemaRef, &[usize]),
        (right, right_columns): (&SchemaRef, &[usize]),
        residual: Option<Arc<dyn PhysicalExpr>>,
        schema: SchemaRef,
    ) -> Self {
        let width = left_columns.len();
        Self {
            kind,
            residual,
            pairs: join::Spec::new((left, left_columns), (right, right_columns)),
            left: SideSpec {
                schema: left.clone(),
                columns: left_columns.to_vec(),
                in_pairs: (0..width).collect(),
            },
            right: SideSpec {
                schema: right.clone(),
                columns: right_columns.to_vec(),
                in_pairs: (width..width + right_columns.len()).collect(),
            },
            schema,
        }
    }

    /// The rows of the left side as semijoins return them.
    fn left_shape(&self) -> Shape {
        let pairs = self.kind.has_pairs();
        Shape {
            schema: self.schema.clone(),
            nulls_before: Vec::new(),
            columns: self.left.columns.clone(),
            nulls_after: if pairs { self.right.types() } else { Vec::new() },
            marked: self.kind == OuterJoinKind::Mark,
        }
    }

    /// The rows of the right side without a match.
    fn right_shape(&self) -> Shape {
        Shape {
            schema: self.schema.clone(),
            nulls_before: self.left.types(),
            columns: self.right.columns.clone(),
            nulls_after: Vec::new(),
            marked: false,
        }
    }
}

/// The contexts that the state of a join is made in: where the rows of a side are pruned, so are those of its rows that have a match.
#[derive(Clone, Debug)]
pub struct Contexts {
    /// That of the join.
    pub join: StateContext,
    /// That of the left rows with a match.
    pub left_matches: StateContext,
    /// That of the right rows with a match.
    pub right_matches: StateContext,
}

impl From<StateContext> for Contexts {
    /// Nothing is pruned.
    fn from(join: StateContext) -> Self {
        Self { left_matches: join.clone(), right_matches: join.clone(), join }
    }
}

/// The output of a join.
pub struct OuterJoined<'scope> {
    /// Its rows.
    pub rows: DeltaStream<'scope, Epoch>,
    /// The pairs for which the residual condition fails, if there is one.
    pub errors: Option<DeltaStream<'scope, Epoch>>,
}

/// Joins `left` and `right`.
///
/// Both are keyed by columns of the same types; equal keys, also of NULLs, match and are on the same worker.
pub fn outer_join<'scope>(
    spec: &Spec,
    left: Kept<'scope>,
    right: Kept<'scope>,
    contexts: &Contexts,
) -> OuterJoined<'scope> {
    let (kind, context) = (spec.kind, &contexts.join);
    let mut errors = None;
    let mut pairs = None;
    if kind.has_pairs() || spec.residual.is_some() {
        let both = join(&spec.pairs, left.clone(), right.clone(), context);
        let passed = match spec.residual.clone() {
            Some(residual) if !fault::armed(Fault::DropResidual) => {
                let (passed, failed) = filter(both, residual, spec, context);
                errors = Some(failed);
                passed
            }
            _ => both,
        };
        pairs = Some(passed);
    }
    // Where the rows of a side find their matches.
    let matched = |side: &Kept<'scope>, columns: &[usize], context: &StateContext| match &pairs {
        Some(pairs) if spec.residual.is_some() => {
            let rows = project(pairs.clone(), columns.to_vec());
            Some((keep(rows, side.layout.clone(), "ArrangeMatches", context), Match::SameRow))
        }
        _ => None,
    };
    let mut streams = Vec::new();
    let loses = kind.has_pairs() && fault::armed(Fault::NoLonelyRows);
    if kind.keeps_left() && !loses || kind == OuterJoinKind::Semi {
        let own = matched(&left, &spec.left.in_pairs, &contexts.left_matches);
        let (matches, by) = own.unwrap_or_else(|| (right.clone(), Match::SameKey));
        let wanted = match kind {
            OuterJoinKind::Semi => Wanted::Matched,
            OuterJoinKind::Mark => Wanted::Marked,
            _ => Wanted::Unmatched,
        };
        streams.push(semijoin(left.clone(), matches, by, wanted, spec.left_shape(), context));
    }
    if kind.keeps_right() {
        let own = matched(&right, &spec.right.in_pairs, &contexts.right_matches);
        let (matches, by) = own.unwrap_or_else(|| (left.clone(), Match::SameKey));
        streams.push(semijoin(
            right.clone(),
            matches,
            by,
            Wanted::Unmatched,
            spec.right_shape(),
            context,
        ));
    }
    if let Some(pairs) = pairs
        && kind.has_pairs()
    {
        streams.push(named(pairs, spec.schema.clone()));
    }
    let rows = concatenated(streams).expect("a join has pairs or rows of a side");
    OuterJoined { rows, errors }
}

/// The pairs for which `residual` is true, and the errors. Without the columns of the right side if the join returns no
/// pairs.
fn filter<'scope>(
    pairs: DeltaStream<'scope, Epoch>,
    residual: Arc<dyn PhysicalExpr>,
    spec: &Spec,
    context: &StateContext,
) -> (DeltaStream<'scope, Epoch>, DeltaStream<'scope, Epoch>) {
    let mut fields: Vec<_> = spec.left.schema.fields().iter().cloned().collect();
    if spec.kind.has_pairs() {
        fields.extend(spec.right.schema.fields().iter().cloned());
    }
    let columns = fields.iter().enumerate().map(|(number, field)| {
        Arc::new(Column::new(field.name(), number)) as Arc<dyn PhysicalExpr>
    });
    let columns = columns.collect();
    map(pairs, Some(residual), columns, Arc::new(Schema::new(fields)), context)
}

/// The columns `columns` of the rows.
fn project<'scope>(
    rows: DeltaStream<'scope, Epoch>,
    columns: Vec<usize>,
) -> DeltaStream<'scope, Epoch> {
    each_delta(rows, "Project", move |delta| *delta = delta.project(&columns))
}

/// The rows with the names and the nullability of `schema`.
fn named<'scope>(
    rows: DeltaStream<'scope, Epoch>,
    schema: SchemaRef,
) -> DeltaStream<'scope, Epoch> {
    each_delta(rows, "Name", move |delta| {
        let columns = delta.rows.columns().to_vec();
        delta.rows = assemble(schema.clone(), columns, delta.rows.num_rows());
    })
}
