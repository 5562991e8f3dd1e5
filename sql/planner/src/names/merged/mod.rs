//! Joins with `USING` and `NATURAL`.
//!
//! DataFusion has no merged columns: a name that both sides have stands for the column of one of them, which is NULL where
//! that side has no match, and a second join makes the name ambiguous. Here a merged column is one of its own, in front of
//! the others, as the standard has it; `a.k` and `b.k` remain what they are. `names` finds where the syntax means it.
mod names;

use std::sync::Arc;

use alluvium_sql_functions::FUNCTIONS;
use alluvium_sql_syntax::error::Position;
use alluvium_sql_syntax::syntax::AsofJoin;
use datafusion_common::tree_node::{Transformed, TransformedResult};
use datafusion_common::{
    Column, DFSchema, JoinConstraint, JoinType, NullEquality, Result, TableReference, not_impl_err,
    plan_err,
};
use datafusion_expr::expr::ScalarFunction;
use datafusion_expr::expr_rewriter::normalize_col_with_schemas_and_ambiguity_check;
use datafusion_expr::planner::{
    PlannedRelation, RelationPlanner, RelationPlannerContext, RelationPlanning,
};
use datafusion_expr::utils::expand_wildcard;
use datafusion_expr::{Expr, LogicalPlan, LogicalPlanBuilder, logical_plan as logical};
use sqlparser::ast::{self, JoinOperator, TableFactor, TableWithJoins};

pub(crate) use self::names::qualify;
use crate::relations::asof::AsofConditions;

/// How the qualifier of a merged column starts: in front of all names, because DataFusion's `*` keeps the first of the
/// columns that a join merges.
const MERGED: char = '!';

/// Plans relations in brackets whose joins merge columns or are ASOF joins. [`qualify`] puts all of them in brackets.
#[derive(Debug)]
pub(crate) struct MergingPlanner;

impl RelationPlanner for MergingPlanner {
    fn plan_relation(
        &self,
        relation: TableFactor,
        context: &mut dyn RelationPlannerContext,
    ) -> Result<RelationPlanning> {
        match relation {
            TableFactor::NestedJoin { table_with_joins, alias }
                if table_with_joins.joins.iter().any(is_planned_here) =>
            {
                let name = match &alias {
                    Some(alias) if alias.name.value.starts_with(MERGED) => alias.name.value.clone(),
                    _ => MERGED.to_string(),
                };
                let mut plan = joined(*table_with_joins, &TableReference::bare(name), context)?;
                let alias = alias.filter(|alias| !alias.name.value.starts_with(MERGED));
                if alias.is_some() {
                    let columns = expand_wildcard(plan.schema(), &plan, None)?;
                    plan = LogicalPlanBuilder::from(plan).project(columns)?.build()?;
                }
                Ok(RelationPlanning::Planned(Box::new(PlannedRelation::new(plan, alias))))
            }
            relation => Ok(RelationPlanning::Original(Box::new(relation))),
        }
    }
}

/// Whether a join merges columns.
fn is_merging(join: &ast::Join) -> bool {
    use ast::JoinConstraint::{Natural, Using};
    matches!(kind(&join.join_operator), Some((_, Using(_) | Natural)))
}

/// Whether DataFusion does not plan a join: it merges columns, or is an ASOF join.
fn is_planned_here(join: &ast::Join) -> bool {
    is_merging(join) || AsofJoin::of(&join.join_operator).is_some()
}

fn kind(operator: &JoinOperator) -> Option<(JoinType, &ast::JoinConstraint)> {
    match operator {
        JoinOperator::Join(constraint) | JoinOperator::Inner(constraint) => {
            Some((JoinType::Inner, constraint))
        }
        JoinOperator::Left(constraint) | JoinOperator::LeftOuter(constraint) => {
            Some((JoinType::Left, constraint))
        }
        JoinOperator::Right(constraint) | JoinOperator::RightOuter(constraint) => {
            Some((JoinType::Right, constraint))
        }
        JoinOperator::FullOuter(constraint) => Some((JoinType::Full, constraint)),
        JoinOperator::CrossJoin(constraint) => Some((JoinType::Inner, constraint)),
        JoinOperator::LeftSemi(constraint) => Some((JoinType::LeftSemi, constraint)),
        JoinOperator::RightSemi(constraint) => Some((JoinType::RightSemi, constraint)),
        JoinOperator::LeftAnti(constraint) => Some((JoinType::LeftAnti, constraint)),
        JoinOperator::RightAnti(constraint) => Some((JoinType::RightAnti, constraint)),
        operator => AsofJoin::of(operator).map(|join| match join.keeps_left() {
            true => (JoinType::Left, join.constraint),
            false => (JoinType::Inner, join.constraint),
        }),
    }
}

/// The joins, with merged columns qualified by `name`.
fn joined(
    from: TableWithJoins,
    name: &TableReference,
    context: &mut dyn RelationPlannerContext,
) -> Result<LogicalPlan> {
    let mut left = context.plan(from.relation)?;
    for join in from.joins {
        let Some((kind, constraint)) = kind(&join.join_operator) else {
            return not_impl_err!("this kind of join beside USING or NATURAL");
        };
        let right = context.plan(join.relation)?;
        if let Some(asof) = AsofJoin::of(&join.join_operator) {
            left = asof_joined((left, right), &asof, name, context)?;
            continue;
        }
        left = match constraint {
            ast::JoinConstraint::Using(names) => {
                let names = used(names, context)?;
                merge(left, right, kind, &names, name)?
            }
            ast::JoinConstraint::Natural => {
                let there = visible(&right)?;
                let is_common =
                    |column: &Column| there.iter().any(|other| other.name == column.name);
                let common = visible(&left)?.into_iter().filter(is_common);
                let names: Vec<String> = common.map(|column| column.name).collect();
                merge(left, right, kind, &names, name)?
            }
            ast::JoinConstraint::On(condition) => {
                let schema = left.schema().join(right.schema())?;
                let condition = context.sql_to_expr(condition.clone(), &schema)?;
                let condition = normalize_col_with_schemas_and_ambiguity_check(
                    condition,
                    &[&[left.schema(), right.schema()]],
                    &left.using_columns()?,
                )?;
                LogicalPlanBuilder::from(left).join_on(right, kind, [condition])?.build()?
            }
            ast::JoinConstraint::None => match kind {
                JoinType::Inner => LogicalPlanBuilder::from(left).cross_join(right)?.build()?,
                kind => LogicalPlanBuilder::from(left).join_on(right, kind, [])?.build()?,
            },
        };
    }
    Ok(left)
}

/// The names of columns in USING.
fn used(names: &[ast::ObjectName], context: &dyn RelationPlannerContext) -> Result<Vec<String>> {
    let names = names.iter().map(|name| match name.0.as_slice() {
        [part] if let Some(name) = part.as_ident() => Ok(context.normalize_ident(name.clone())),
        _ => plan_err!("USING takes names of columns, not {name}"),
    });
    names.collect()
}

/// An ASOF join. Of the columns in USING that stand in for a condition the last one is the time.
fn asof_joined(
    (left, right): (LogicalPlan, LogicalPlan),
    join: &AsofJoin<'_>,
    name: &TableReference,
    context: &mut dyn RelationPlannerContext,
) -> Result<LogicalPlan> {
    let mut conditions = AsofConditions::new(&left, &right);
    let mut names = Vec::new();
    if let ast::JoinConstraint::Using(columns) = join.constraint {
        names = used(columns, context)?;
        let times = usize::from(join.condition.is_none());
        for (place, name) in names.iter().enumerate() {
            let (here, there) = (key(&left, name)?, key(&right, name)?);
            let (here, there) = (Expr::Column(here), Expr::Column(there));
            let at = Position::of(&columns[place]);
            let condition = match place + times < names.len() {
                true => here.eq(there),
                false => here.gt_eq(there),
            };
            conditions.add(condition, at)?;
        }
    }
    let on = match join.constraint {
        ast::JoinConstraint::On(on) => Some(on),
        _ => None,
    };
    if let Some(on) = on {
        conditions.add_all(on, join.condition.is_none(), context)?;
    }
    if let Some(condition) = join.condition {
        conditions.add_all(condition, true, context)?;
    }
    let here = names.iter().map(|name| key(&left, name)).collect::<Result<Vec<_>>>()?;
    let there = names.iter().map(|name| key(&right, name)).collect::<Result<Vec<_>>>()?;
    let kind = if join.keeps_left() { JoinType::Left } else { JoinType::Inner };
    let joined = conditions.join(join.keeps_left(), on.and_then(Position::of))?;
    match names.is_empty() {
        true => Ok(joined),
        false => with_merged(joined, kind, (&names, here, there), name),
    }
}

/// The columns that `*` stands for.
fn visible(plan: &LogicalPlan) -> Result<Vec<Column>> {
    let columns = expand_wildcard(plan.schema(), plan, None)?.into_iter();
    Ok(columns.filter_map(|column| column.try_as_col().cloned()).collect())
}

/// The column of a side with this name, which may be merged already.
fn key(side: &LogicalPlan, name: &str) -> Result<Column> {
    let schemas: &[&[&DFSchema]] = &[&[side.schema()]];
    Column::from_name(name)
        .normalize_with_schemas_and_ambiguity_check(schemas, &side.using_columns()?)
}

/// The join on equal values of columns that both sides have, with these merged.
fn merge(
    left: LogicalPlan,
    right: LogicalPlan,
    kind: JoinType,
    names: &[String],
    relation: &TableReference,
) -> Result<LogicalPlan> {
    if names.is_empty() {
        return LogicalPlanBuilder::from(left).join_on(right, kind, [])?.build();
    }
    let here = names.iter().map(|name| key(&left, name)).collect::<Result<Vec<_>>>()?;
    let there = names.iter().map(|name| key(&right, name)).collect::<Result<Vec<_>>>()?;
    let joined = LogicalPlanBuilder::from(left)
        .join(right, kind, (here.clone(), there.clone()), None)?
        .build()?;
    if !matches!(kind, JoinType::Inner | JoinType::Left | JoinType::Right | JoinType::Full) {
        return Ok(joined);
    }
    with_merged(joined, kind, (names, here, there), relation)
}

/// The rows of a join with the columns of these names merged.
fn with_merged(
    joined: LogicalPlan,
    kind: JoinType,
    (names, here, there): (&[String], Vec<Column>, Vec<Column>),
    relation: &TableReference,
) -> Result<LogicalPlan> {
    // The columns that are merged, but for those that earlier joins made of some of them.
    let is_merged = |column: &Column| {
        column.relation.as_ref().is_some_and(|relation| relation.table().starts_with(MERGED))
    };
    let merging: Vec<Column> = (joined.schema().columns().into_iter())
        .filter(|column| names.contains(&column.name) && !is_merged(column))
        .collect();
    let mut columns = Vec::with_capacity(joined.schema().fields().len());
    for ((name, here), there) in names.iter().zip(here).zip(there) {
        let merged = match kind {
            JoinType::Right => Expr::Column(there),
            JoinType::Full => coalesce(Expr::Column(here), Expr::Column(there))?,
            _ => Expr::Column(here),
        };
        columns.push(merged.alias_qualified(Some(relation.clone()), name));
    }
    let others = joined.schema().columns().into_iter();
    let others = others.filter(|column| !(names.contains(&column.name) && is_merged(column)));
    columns.extend(others.map(Expr::Column));
    let plan = LogicalPlanBuilder::from(joined).project(columns)?.build()?;
    let pairs = merging.into_iter().map(|column| {
        let merged = Column::new(Some(relation.clone()), &column.name);
        (Expr::Column(merged), Expr::Column(column))
    });
    Ok(marked(plan, pairs.collect()))
}

fn coalesce(here: Expr, there: Expr) -> Result<Expr> {
    let Some(function) = FUNCTIONS.scalar.get("coalesce") else {
        return plan_err!("there is no COALESCE");
    };
    let call = ScalarFunction::new_udf(Arc::clone(function), vec![here, there]);
    Ok(Expr::ScalarFunction(call))
}

/// The plan under a join that says which columns are merged: DataFusion resolves names by the joins below. It is gone
/// once names are resolved.
fn marked(plan: LogicalPlan, on: Vec<(Expr, Expr)>) -> LogicalPlan {
    let nothing =
        logical::EmptyRelation { produce_one_row: false, schema: Arc::new(DFSchema::empty()) };
    LogicalPlan::Join(logical::Join {
        schema: Arc::clone(plan.schema()),
        left: Arc::new(plan),
        right: Arc::new(LogicalPlan::EmptyRelation(nothing)),
        on,
        filter: None,
        join_type: JoinType::LeftSemi,
        join_constraint: JoinConstraint::Using,
        null_equality: NullEquality::NullEqualsNothing,
        null_aware: false,
    })
}

/// The plan without such joins.
pub(crate) fn unmark(plan: LogicalPlan) -> Result<LogicalPlan> {
    plan.transform_up_with_subqueries(|node| match node {
        LogicalPlan::Join(join)
            if join.join_constraint == JoinConstraint::Using
                && matches!(join.right.as_ref(), LogicalPlan::EmptyRelation(_)) =>
        {
            Ok(Transformed::yes(Arc::unwrap_or_clone(join.left)))
        }
        node => Ok(Transformed::no(node)),
    })
    .data()
}
