//! `FROM t, UNNEST(t.list)`: UNNEST of columns of the relations before it.
//!
//! DataFusion plans the UNNEST as a lateral subquery and has no rule that removes it. The subquery only projects, filters
//! and unnests, starting from one row without columns. Starting from the rows of the other relations instead, and keeping
//! their columns, gives the join. Other lateral subqueries, and outer joins, are left to [`subquery`](crate::subqueries::subquery).

use std::sync::Arc;

use datafusion_common::tree_node::{Transformed, TreeNode};
use datafusion_common::{Column, JoinType, Result};
use datafusion_expr::expr_rewriter::NamePreserver;
use datafusion_expr::logical_plan as logical;
use datafusion_expr::{Expr, LogicalPlan, LogicalPlanBuilder};

/// The plan with joins to such subqueries replaced by unnested rows.
pub(crate) fn unnest_in_place(plan: LogicalPlan) -> Result<LogicalPlan> {
    let rewritten = plan.transform_up_with_subqueries(|node| {
        let LogicalPlan::Join(join) = &node else { return Ok(Transformed::no(node)) };
        let Some(body) = lateral(&join.right) else { return Ok(Transformed::no(node)) };
        if join.join_type != JoinType::Inner {
            return Ok(Transformed::no(node));
        }
        let Some(joined) = start_from(&body, &join.left)? else { return Ok(Transformed::no(node)) };
        let keys = join.on.iter().map(|(left, right)| left.clone().eq(right.clone()));
        let condition = keys.chain(join.filter.clone()).reduce(Expr::and);
        let mut joined = LogicalPlanBuilder::from(joined);
        if let Some(condition) = condition {
            joined = joined.filter(condition)?;
        }
        Ok(Transformed::yes(joined.build()?))
    })?;
    Ok(rewritten.data)
}

/// The plan of a lateral subquery in FROM.
fn lateral(plan: &LogicalPlan) -> Option<LogicalPlan> {
    match plan {
        LogicalPlan::Subquery(subquery) if !subquery.outer_ref_columns.is_empty() => {
            Some(subquery.subquery.as_ref().clone())
        }
        LogicalPlan::SubqueryAlias(alias) => {
            let body = lateral(&alias.input)?;
            let aliased = logical::SubqueryAlias::try_new(Arc::new(body), alias.alias.clone());
            aliased.ok().map(LogicalPlan::SubqueryAlias)
        }
        _ => None,
    }
}

/// `body` over each of `rows` instead of over one row, with the columns of both; `None` if it does more than project,
/// filter and unnest.
fn start_from(body: &LogicalPlan, rows: &LogicalPlan) -> Result<Option<LogicalPlan>> {
    let names = NamePreserver::new_for_projection();
    let carried = || rows.schema().columns().into_iter().map(Expr::Column);
    Ok(Some(match body {
        LogicalPlan::EmptyRelation(logical::EmptyRelation { produce_one_row: true, .. }) => {
            rows.clone()
        }
        LogicalPlan::Projection(projection) => {
            let Some(below) = start_from(&projection.input, rows)? else { return Ok(None) };
            let own = projection.expr.iter().map(|expression| {
                let name = names.save(expression);
                Ok(name.restore(inner(expression.clone(), rows)?))
            });
            let own = own.collect::<Result<Vec<Expr>>>()?;
            LogicalPlanBuilder::from(below).project(carried().chain(own))?.build()?
        }
        LogicalPlan::Filter(filter) => {
            let Some(below) = start_from(&filter.input, rows)? else { return Ok(None) };
            LogicalPlanBuilder::from(below)
                .filter(inner(filter.predicate.clone(), rows)?)?
                .build()?
        }
        LogicalPlan::SubqueryAlias(alias) => {
            let Some(below) = start_from(&alias.input, rows)? else { return Ok(None) };
            let from = alias.input.schema().columns();
            let own = from.into_iter().zip(alias.schema.columns()).map(
                |(from, Column { relation, name, .. })| {
                    Expr::Column(from).alias_qualified(relation, name)
                },
            );
            LogicalPlanBuilder::from(below).project(carried().chain(own))?.build()?
        }
        LogicalPlan::Unnest(unnest) => {
            let Some(below) = start_from(&unnest.input, rows)? else { return Ok(None) };
            let (columns, options) = (unnest.exec_columns.clone(), unnest.options.clone());
            LogicalPlan::Unnest(logical::Unnest::try_new(Arc::new(below), columns, options)?)
        }
        _ => return Ok(None),
    }))
}

/// The expression with outer references to columns of `rows` as plain columns.
fn inner(expression: Expr, rows: &LogicalPlan) -> Result<Expr> {
    let inner = expression.transform_up(|part| match part {
        Expr::OuterReferenceColumn(_, column) if rows.schema().has_column(&column) => {
            Ok(Transformed::yes(Expr::Column(column)))
        }
        part => Ok(Transformed::no(part)),
    })?;
    Ok(inner.data)
}
