//! Correlations that become the condition of a join as they are.
//!
//! DataFusion's functions move conditions on columns outside up to the top of a subquery. They do so through operators that
//! would have to keep the rows for different rows outside apart: windows, unmatched rows of joins, aggregates that have a row
//! over nothing. So their result is only used where each operator on the way lets conditions pass.

use datafusion_common::{JoinType, Result};
use datafusion_expr::{Expr, LogicalPlan, logical_plan as logical};

use crate::subqueries::dependent_join::refers_outside;

/// Whether conditions on columns outside can move to the top of a plan.
pub(crate) fn passes(plan: &LogicalPlan) -> Result<bool> {
    if !refers_outside(plan)? {
        return Ok(true);
    }
    match plan {
        LogicalPlan::Projection(logical::Projection { input, .. })
        | LogicalPlan::Filter(logical::Filter { input, .. })
        | LogicalPlan::Distinct(logical::Distinct::All(input))
        | LogicalPlan::Sort(logical::Sort { input, fetch: None, .. }) => passes(input),
        LogicalPlan::SubqueryAlias(alias) => passes(&alias.input),
        LogicalPlan::Subquery(subquery) => passes(&subquery.subquery),
        LogicalPlan::Aggregate(aggregate) => {
            let is_set = |group: &Expr| matches!(group, Expr::GroupingSet(_));
            let has_groups = !aggregate.group_expr.is_empty();
            Ok(has_groups && !aggregate.group_expr.iter().any(is_set) && passes(&aggregate.input)?)
        }
        LogicalPlan::Join(join) => match join.join_type {
            JoinType::Inner => Ok(passes(&join.left)? && passes(&join.right)?),
            JoinType::Left | JoinType::LeftSemi | JoinType::LeftAnti | JoinType::LeftMark => {
                Ok(!refers_outside(&join.right)? && passes(&join.left)?)
            }
            _ => Ok(false),
        },
        _ => Ok(false),
    }
}

/// The same of a subquery of which only matters whether it has rows.
pub(crate) fn passes_to_exists(plan: &LogicalPlan) -> Result<bool> {
    match plan {
        LogicalPlan::Limit(limit) => passes(&limit.input),
        LogicalPlan::Projection(projection) => passes_to_exists(&projection.input),
        plan => passes(plan),
    }
}

/// The same of a scalar subquery that is an aggregate over all rows.
pub(crate) fn passes_to_aggregate(plan: &LogicalPlan) -> Result<bool> {
    match plan {
        LogicalPlan::Projection(projection) => passes_to_aggregate(&projection.input),
        LogicalPlan::SubqueryAlias(alias) => passes_to_aggregate(&alias.input),
        LogicalPlan::Subquery(subquery) => passes_to_aggregate(&subquery.subquery),
        LogicalPlan::Aggregate(aggregate) if aggregate.group_expr.is_empty() => {
            passes(&aggregate.input)
        }
        plan => Ok(!refers_outside(plan)?),
    }
}
