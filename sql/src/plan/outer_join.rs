//! Joins in which it matters whether a row has a partner, in the incremental plan.

use std::collections::BTreeSet;
use std::sync::Arc;

use alluvium_dataflow::aggregate::{Aggregate, Function};
use alluvium_dataflow::outer_join::OuterJoinKind;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion_common::{JoinType, NullEquality, Result, ScalarValue};
use datafusion_expr::logical_plan as logical;
use datafusion_expr::{Expr, Operator};
use datafusion_physical_expr::expressions::{BinaryExpr, IsNullExpr, Literal, case};

use super::build::{Builder, check_columns};
use super::construct::{check_keys, minimal};
use super::expression::{self, Expression};
use super::prune::{place, prune, prune_to};
use super::{IncrementalPlan, Node};

/// A side of a join.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Left,
    Right,
}

/// A logical join that is not inner, read so that what is kept is on the left where only one side is.
struct Read<'a> {
    kind: OuterJoinKind,
    left: &'a logical::LogicalPlan,
    right: &'a logical::LogicalPlan,
    left_keys: Vec<&'a Expr>,
    right_keys: Vec<&'a Expr>,
}

fn read(join: &logical::Join) -> Read<'_> {
    let (kind, swapped) = match join.join_type {
        JoinType::Inner | JoinType::Left => (OuterJoinKind::Left, false),
        JoinType::Right => (OuterJoinKind::Right, false),
        JoinType::Full => (OuterJoinKind::Full, false),
        JoinType::LeftSemi => (OuterJoinKind::Semi, false),
        JoinType::RightSemi => (OuterJoinKind::Semi, true),
        JoinType::LeftAnti => (OuterJoinKind::Anti, false),
        JoinType::RightAnti => (OuterJoinKind::Anti, true),
        JoinType::LeftMark => (OuterJoinKind::Mark, false),
        JoinType::RightMark => (OuterJoinKind::Mark, true),
    };
    let (left_keys, right_keys) = join.on.iter().map(|(left, right)| (left, right)).unzip();
    if swapped {
        let (left, right) = (&join.right, &join.left);
        Read { kind, left, right, left_keys: right_keys, right_keys: left_keys }
    } else {
        Read { kind, left: &join.left, right: &join.right, left_keys, right_keys }
    }
}

impl Builder<'_> {
    /// A join of any kind but inner.
    pub(super) fn outer_join(&self, join: &logical::Join) -> crate::error::Result<IncrementalPlan> {
        let Read { kind, left, right, left_keys, right_keys } = read(join);
        // A row whose key is NULL has no partner. Where it is not kept it can go; where rows with NULL
        // keys are kept on one side only, those of the other are gone and it finds none.
        let nulls_differ = join.null_equality == NullEquality::NullEqualsNothing;
        let drop = |kept: bool| nulls_differ && !kept;
        let widths = (left.schema().fields().len(), right.schema().fields().len());
        let schemas = (left.schema(), right.schema());
        let (mut left, mut left_keys) = self.keyed(left, &left_keys, drop(kind.keeps_left()))?;
        let (mut right, mut right_keys) =
            self.keyed(right, &right_keys, drop(kind.keeps_right()))?;
        if nulls_differ && kind == OuterJoinKind::Full {
            (left, right) = kept_apart(left, &mut left_keys, right, &mut right_keys)?;
        }
        let width = left.schema.fields().len();
        let both = schemas.0.join(schemas.1)?;
        let residual = match &join.filter {
            // The planner's way of saying that there is none.
            None | Some(Expr::Literal(ScalarValue::Boolean(Some(true)), _)) => None,
            Some(filter) => {
                let filter = self.expression(filter, &both)?;
                let names = joined_schema(&left, &right);
                let shifted = expression::replace_columns(filter, |column| {
                    let column = if column < widths.0 { column } else { column - widths.0 + width };
                    expression::column(&names, column)
                })?;
                Some(shifted)
            }
        };
        check_columns(&left.schema)?;
        check_columns(&right.schema)?;
        let on: Vec<(usize, usize)> = left_keys.into_iter().zip(right_keys).collect();
        if on.is_empty() && residual.is_none() && !kind.has_pairs() {
            right = any_row(right)?;
        }
        let mark = kind == OuterJoinKind::Mark;
        let kept = (0..widths.0).chain(match kind.has_pairs() {
            true => width..width + widths.1,
            false if mark => width..width + 1,
            false => 0..0,
        });
        let kept: Vec<usize> = kept.collect();
        let joined = IncrementalPlan::outer_join(left, right, on, kind, residual)?;
        Ok(IncrementalPlan::columns(joined, &kept)?)
    }
}

/// Adds a key on which rows with a NULL among their keys differ between the sides, where both may have some.
fn kept_apart(
    left: IncrementalPlan,
    left_keys: &mut Vec<usize>,
    right: IncrementalPlan,
    right_keys: &mut Vec<usize>,
) -> Result<(IncrementalPlan, IncrementalPlan)> {
    let nullable = |plan: &IncrementalPlan, keys: &[usize]| {
        keys.iter().any(|&key| plan.schema.field(key).is_nullable())
    };
    if !nullable(&left, left_keys) || !nullable(&right, right_keys) {
        return Ok((left, right));
    }
    let with_side = |plan: IncrementalPlan, keys: &mut Vec<usize>, side: i8| {
        let is_null = keys.iter().map(|&key| {
            Arc::new(IsNullExpr::new(expression::column(&plan.schema, key))) as Expression
        });
        let any = is_null
            .reduce(|one, other| Arc::new(BinaryExpr::new(one, Operator::Or, other)) as Expression);
        let number =
            |value: i8| Arc::new(Literal::new(ScalarValue::Int8(Some(value)))) as Expression;
        let Some(any) = any else { return Ok(plan) };
        let side = case(None, vec![(any, number(side))], Some(number(0)))?;
        let mut project = plan.identity();
        keys.push(project.len());
        project.push((side, "without_partner".to_string()));
        IncrementalPlan::map(plan, None, project)
    };
    Ok((with_side(left, left_keys, 1)?, with_side(right, right_keys, 2)?))
}

/// One row if the plan has any, else none.
fn any_row(plan: IncrementalPlan) -> Result<IncrementalPlan> {
    let count = Aggregate {
        function: Function::Count,
        input: None,
        distinct: false,
        result: DataType::Int64,
    };
    let counted =
        IncrementalPlan::aggregate(plan, Vec::new(), vec![(count, "count(*)".into())], Vec::new())?;
    let rows = expression::column(&counted.schema, 0);
    let none: Expression = Arc::new(Literal::new(ScalarValue::Int64(Some(0))));
    let some = Arc::new(BinaryExpr::new(rows, Operator::Gt, none));
    IncrementalPlan::filter(counted, some)
}

/// The columns of both sides.
pub(super) fn joined_schema(left: &IncrementalPlan, right: &IncrementalPlan) -> Schema {
    let fields = left.schema.fields().iter().chain(right.schema.fields());
    Schema::new(fields.cloned().collect::<Vec<_>>())
}

impl IncrementalPlan {
    /// A join of two inputs that agree on the pairs of columns `on`; `residual` is over the columns of both.
    pub(crate) fn outer_join(
        left: IncrementalPlan,
        right: IncrementalPlan,
        on: Vec<(usize, usize)>,
        kind: OuterJoinKind,
        residual: Option<Expression>,
    ) -> Result<IncrementalPlan> {
        check_keys(&left, &right, &on)?;
        let schema = output_schema(&left, &right, kind);
        let width = left.schema.fields().len();
        let shifted =
            |key: &Vec<usize>| -> Vec<usize> { key.iter().map(|column| column + width).collect() };
        let unique = match kind {
            OuterJoinKind::Semi | OuterJoinKind::Anti | OuterJoinKind::Mark => left.unique.clone(),
            OuterJoinKind::Left if at_most_one(&right, on.iter().map(|pair| pair.1)) => {
                left.unique.clone()
            }
            OuterJoinKind::Right if at_most_one(&left, on.iter().map(|pair| pair.0)) => {
                right.unique.iter().map(shifted).collect()
            }
            OuterJoinKind::Left | OuterJoinKind::Right => {
                let pairs = left.unique.iter().flat_map(|l| {
                    let right = right.unique.iter();
                    right.map(|r| l.iter().copied().chain(shifted(r)).collect())
                });
                pairs.collect()
            }
            // A left and a right row without partners may look alike: all NULL.
            OuterJoinKind::Full => Vec::new(),
        };
        Ok(IncrementalPlan {
            unique: minimal(unique),
            schema,
            // Once a row has a partner it keeps it; only who has none may lose that.
            append_only: kind == OuterJoinKind::Semi && left.append_only && right.append_only,
            node: Node::OuterJoin {
                left: Box::new(left),
                right: Box::new(right),
                on,
                kind,
                residual,
            },
        })
    }

    /// Which side of a join without keys is sent to all workers, because it is a single row at most, while the
    /// other stays where it is.
    pub(crate) fn broadcast(&self) -> Option<Side> {
        match &self.node {
            Node::Join { left, right, on } if on.is_empty() => {
                let left = left.is_single().then_some(Side::Left);
                right.is_single().then_some(Side::Right).or(left)
            }
            Node::OuterJoin { right, on, kind, residual: None, .. }
                if on.is_empty() && right.is_single() && !kind.keeps_right() =>
            {
                Some(Side::Right)
            }
            _ => None,
        }
    }

    /// Whether the plan has one row at most, always.
    pub(crate) fn is_single(&self) -> bool {
        self.unique.iter().any(Vec::is_empty)
    }
}

/// Whether no two rows agree on these columns.
fn at_most_one(plan: &IncrementalPlan, columns: impl Iterator<Item = usize> + Clone) -> bool {
    let within = |column: &usize| columns.clone().any(|other| other == *column);
    plan.unique.iter().any(|key| key.iter().all(within))
}

fn output_schema(
    left: &IncrementalPlan,
    right: &IncrementalPlan,
    kind: OuterJoinKind,
) -> SchemaRef {
    let fields = |plan: &IncrementalPlan, nullable: bool| -> Vec<Field> {
        let fields = plan.schema.fields().iter().map(|field| field.as_ref().clone());
        fields
            .map(|field| {
                let nullable = nullable || field.is_nullable();
                field.with_nullable(nullable)
            })
            .collect()
    };
    let mut all = fields(left, kind.keeps_right());
    match kind {
        OuterJoinKind::Left | OuterJoinKind::Right | OuterJoinKind::Full => {
            all.extend(fields(right, kind.keeps_left()));
        }
        OuterJoinKind::Mark => all.push(Field::new("mark", DataType::Boolean, false)),
        OuterJoinKind::Semi | OuterJoinKind::Anti => {}
    }
    Arc::new(Schema::new(all))
}

/// A join, taken apart.
pub(super) struct Parts {
    pub(super) left: IncrementalPlan,
    pub(super) right: IncrementalPlan,
    pub(super) on: Vec<(usize, usize)>,
    pub(super) kind: OuterJoinKind,
    pub(super) residual: Option<Expression>,
}

/// The join reduced to the columns `required`, in this order.
pub(super) fn prune_match_join(parts: Parts, required: &[usize]) -> Result<IncrementalPlan> {
    let Parts { left, right, on, kind, residual } = parts;
    let width = left.schema.fields().len();
    // Nobody asks for the other side, and no row comes more than once for it.
    let only_left = required.iter().all(|&column| column < width);
    let unasked = match kind {
        OuterJoinKind::Mark => only_left,
        OuterJoinKind::Left => only_left && at_most_one(&right, on.iter().map(|pair| pair.1)),
        _ => false,
    };
    // A condition that fails for some pair has a say all the same.
    let silent = residual.as_ref().is_none_or(|it| !alluvium_dataflow::map::can_fail(it));
    if unasked && silent {
        return prune(left, required);
    }
    let mut of_left: BTreeSet<usize> = on.iter().map(|&(l, _)| l).collect();
    let mut of_right: BTreeSet<usize> = on.iter().map(|&(_, r)| r).collect();
    let mut use_column = |column: usize| {
        if column < width {
            of_left.insert(column)
        } else {
            of_right.insert(column - width)
        };
    };
    let marks = kind == OuterJoinKind::Mark;
    required.iter().filter(|&&column| column < width || !marks).for_each(|&it| use_column(it));
    if let Some(residual) = &residual {
        expression::for_each_column(residual, &mut use_column);
    }
    let (left, used_left) = prune_to(left, of_left)?;
    let (right, used_right) = prune_to(right, of_right)?;
    let moved = |column: usize| match column < width {
        true => place(&used_left, column),
        false => used_left.len() + place(&used_right, column - width),
    };
    let names = joined_schema(&left, &right);
    let residual = residual.map(|residual| {
        expression::replace_columns(residual, |column| expression::column(&names, moved(column)))
    });
    let on = on.iter().map(|&(l, r)| (place(&used_left, l), place(&used_right, r))).collect();
    let columns: Vec<usize> = required
        .iter()
        .map(|&column| if marks && column >= width { used_left.len() } else { moved(column) })
        .collect();
    let joined = IncrementalPlan::outer_join(left, right, on, kind, residual.transpose()?)?;
    IncrementalPlan::columns(joined, &columns)
}

/// How a join is called in SQL, or near it.
pub(super) fn kind_name(kind: OuterJoinKind) -> &'static str {
    match kind {
        OuterJoinKind::Left => "left join",
        OuterJoinKind::Right => "right join",
        OuterJoinKind::Full => "full join",
        OuterJoinKind::Semi => "semi join",
        OuterJoinKind::Anti => "anti join",
        OuterJoinKind::Mark => "mark join",
    }
}
