//! Joins.

use std::sync::Arc;

use alluvium_dataflow::joins::outer_join::OuterJoinKind;
use alluvium_dataflow::reductions::aggregate::{Aggregate, Function};
use alluvium_sql_syntax::error::Result;
use arrow::datatypes::DataType;
use datafusion_common::{JoinType, NullEquality, ScalarValue};
use datafusion_expr::logical_plan as logical;
use datafusion_expr::{Expr, LogicalPlan, Operator};
use datafusion_physical_expr::expressions::{BinaryExpr, IsNullExpr, Literal, case};

use super::{Builder, band, check_columns};
use crate::IncrementalPlan;
use crate::expression::{self, Expression};
use crate::fault::{self, Fault};
use crate::node::joined_schema;

/// A logical join that is not inner, with its sides swapped where the only side that is kept is the right one.
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
    /// A join of any kind.
    pub(super) fn join(&self, join: &logical::Join) -> Result<IncrementalPlan> {
        if join.join_type != JoinType::Inner {
            return self.outer_join(join);
        }
        let drop_null = join.null_equality == NullEquality::NullEqualsNothing;
        let (left_keys, right_keys): (Vec<&Expr>, Vec<&Expr>) =
            join.on.iter().map(|(left, right)| (left, right)).unzip();
        let (mut left, left_keys) = self.keyed(&join.left, &left_keys, drop_null)?;
        let (mut right, right_keys) = self.keyed(&join.right, &right_keys, drop_null)?;
        let mut on: Vec<(usize, usize)> = left_keys.into_iter().zip(right_keys).collect();
        let widths = (join.left.schema().fields().len(), join.right.schema().fields().len());
        let filter = join.filter.as_ref();
        let filter = filter.map(|filter| self.expression(filter, &join.schema)).transpose()?;
        if let Some(filter) = &filter {
            let schema = (join.schema.inner(), widths.0);
            if let Some(keyed) = band::keyed_by_slots(&left, &right, &on, filter, schema)? {
                (left, right) = keyed;
                on.insert(0, (left.width() - 1, right.width() - 1));
            }
        }
        let width = left.width();
        let kept = (0..widths.0).chain((0..widths.1).map(|column| width + column));
        let kept: Vec<usize> = kept.collect();
        check_columns(&left.schema)?;
        check_columns(&right.schema)?;
        let joined = IncrementalPlan::columns(IncrementalPlan::join(left, right, on)?, &kept)?;
        match filter {
            None => Ok(joined),
            Some(filter) => Ok(IncrementalPlan::filter(joined, filter)?),
        }
    }

    /// One side of a join: its columns, then the keys that are not among them; and the places of the keys.
    pub(super) fn keyed(
        &self,
        input: &LogicalPlan,
        keys: &[&Expr],
        drop_null: bool,
    ) -> Result<(IncrementalPlan, Vec<usize>)> {
        let plan = self.build(input)?;
        let mut project = plan.identity();
        let mut places = Vec::with_capacity(keys.len());
        let mut present = None;
        for key in keys {
            let key = self.expression(key, input.schema())?;
            let drops = drop_null && !fault::armed(Fault::NullsMeet);
            if drops && expression::is_nullable(&key, &plan.schema)? {
                present = expression::and(present, Some(expression::is_not_null(&key)));
            }
            places.push(expression::as_column(&key).unwrap_or_else(|| {
                project.push((key, format!("key{}", places.len() + 1)));
                project.len() - 1
            }));
        }
        let keyed = IncrementalPlan::map(plan, present, project)?;
        Ok((keyed, places))
    }

    /// A join of any kind but inner.
    fn outer_join(&self, join: &logical::Join) -> Result<IncrementalPlan> {
        let Read { kind, left, right, left_keys, right_keys } = read(join);
        // A row whose key is NULL has no partner, and is dropped unless its side is kept. Where one side is kept,
        // its NULL keys then meet none of the other side.
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
            // This is how the planner says that there is none.
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

/// Adds a key in which rows with a NULL among their keys differ between the sides, if both can have such rows.
fn kept_apart(
    left: IncrementalPlan,
    left_keys: &mut Vec<usize>,
    right: IncrementalPlan,
    right_keys: &mut Vec<usize>,
) -> datafusion_common::Result<(IncrementalPlan, IncrementalPlan)> {
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
fn any_row(plan: IncrementalPlan) -> datafusion_common::Result<IncrementalPlan> {
    let count = Aggregate {
        function: Function::Count,
        input: None,
        rank: None,
        distinct: false,
        filter: None,
        result: DataType::Int64,
    };
    let counted =
        IncrementalPlan::aggregate(plan, Vec::new(), vec![(count, "count(*)".into())], Vec::new())?;
    let rows = expression::column(&counted.schema, 0);
    let none: Expression = Arc::new(Literal::new(ScalarValue::Int64(Some(0))));
    let some = Arc::new(BinaryExpr::new(rows, Operator::Gt, none));
    IncrementalPlan::filter(counted, some)
}
