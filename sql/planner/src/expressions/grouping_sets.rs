//! Grouping sets of columns.
//!
//! Rules that rewrite an expression of an aggregate keep its name with an alias. Around a whole grouping set there can be
//! none, and `GROUPING(a + 1)` is found by what the sets contain. So an expression in a grouping set is computed below the
//! aggregate, as a column of the same name.

use std::sync::Arc;

use datafusion_common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion_common::{Column, Result};
use datafusion_expr::{Expr, LogicalPlan, LogicalPlanBuilder, logical_plan::Aggregate};

/// The plan with columns in all grouping sets.
pub(crate) fn of_columns(plan: LogicalPlan) -> Result<LogicalPlan> {
    plan.transform_up_with_subqueries(|node| match node {
        LogicalPlan::Aggregate(aggregate) => over_columns(aggregate),
        node => Ok(Transformed::no(node)),
    })
    .data()
}

fn over_columns(aggregate: Aggregate) -> Result<Transformed<LogicalPlan>> {
    let computed = computed(&aggregate.group_expr);
    if computed.is_empty() || computed.iter().any(Expr::contains_outer) {
        return Ok(Transformed::no(LogicalPlan::Aggregate(aggregate)));
    }
    let Aggregate { input, group_expr, aggr_expr, .. } = aggregate;
    let name = |expression: &Expr| expression.schema_name().to_string();
    let columns = input.schema().columns().into_iter().map(Expr::Column);
    let named = computed.iter().map(|expression| expression.clone().alias(name(expression)));
    let columns: Vec<Expr> = columns.chain(named).collect();
    let input = LogicalPlanBuilder::from(input).project(columns)?.build()?;

    let column = |expression: Expr| {
        if !computed.contains(&expression) {
            return Ok(Transformed::no(expression));
        }
        Ok(Transformed::yes(Expr::Column(Column::from_name(name(&expression)))))
    };
    let group_expr = group_expr.into_iter().map(|group| group.transform_down(column).data());
    let aggr_expr = aggr_expr.into_iter().map(|aggregate| {
        aggregate
            .transform_down(|call| match &call {
                Expr::AggregateFunction(function) if function.func.name() == "grouping" => {
                    call.map_children(|argument| argument.transform_down(column))
                }
                _ => Ok(Transformed::no(call)),
            })
            .data()
    });
    let (group_expr, aggr_expr): (Result<Vec<_>>, Result<Vec<_>>) =
        (group_expr.collect(), aggr_expr.collect());
    let aggregate = Aggregate::try_new(Arc::new(input), group_expr?, aggr_expr?)?;
    Ok(Transformed::yes(LogicalPlan::Aggregate(aggregate)))
}

/// The expressions in grouping sets that are no columns.
fn computed(groups: &[Expr]) -> Vec<Expr> {
    let [Expr::GroupingSet(sets)] = groups else { return Vec::new() };
    let mut computed: Vec<Expr> = Vec::new();
    for expression in sets.distinct_expr() {
        if !matches!(expression, Expr::Column(_)) && !computed.contains(expression) {
            computed.push(expression.clone());
        }
    }
    computed
}
