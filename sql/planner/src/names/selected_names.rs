//! Unique names for the columns of correlated subqueries.
//!
//! When a subquery becomes a join, the columns of its correlation are added to those it selects. In
//! `(SELECT MAX(n) AS k FROM u WHERE u.k = t.k)` both would be called `k`.

use std::collections::HashSet;
use std::sync::Arc;

use datafusion_common::Result;
use datafusion_common::alias::AliasGenerator;
use datafusion_common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion_expr::expr_rewriter::NamePreserver;
use datafusion_expr::{Expr, LogicalPlan, logical_plan as logical};

/// The plan with names in its correlated subqueries that no column below has. Names outside of them stay.
pub(crate) fn apart(plan: LogicalPlan) -> Result<LogicalPlan> {
    let generator = AliasGenerator::new();
    plan.transform_up_with_subqueries(|node| {
        let names = NamePreserver::new(&node);
        let mut saved = Vec::new();
        node.apply_expressions(|expression| {
            saved.push(names.save(expression));
            Ok(TreeNodeRecursion::Continue)
        })?;
        let renamed = node.map_subqueries(|query| renamed(query, &generator))?;
        if !renamed.transformed {
            return Ok(renamed);
        }
        let mut saved = saved.into_iter();
        renamed.data.map_expressions(|expression| {
            Ok(Transformed::yes(match saved.next() {
                Some(name) => name.restore(expression),
                None => expression,
            }))
        })
    })
    .data()
}

fn renamed(query: LogicalPlan, names: &AliasGenerator) -> Result<Transformed<LogicalPlan>> {
    let LogicalPlan::Subquery(mut subquery) = query else { return Ok(Transformed::no(query)) };
    let LogicalPlan::Projection(projection) = subquery.subquery.as_ref() else {
        return Ok(Transformed::no(LogicalPlan::Subquery(subquery)));
    };
    if subquery.outer_ref_columns.is_empty() {
        return Ok(Transformed::no(LogicalPlan::Subquery(subquery)));
    }
    let mut taken = HashSet::new();
    projection.input.apply(|node| {
        taken.extend(node.schema().fields().iter().map(|field| field.name().clone()));
        Ok(TreeNodeRecursion::Continue)
    })?;
    let apart = |expression: &Expr| match expression {
        Expr::Alias(alias) if taken.contains(&alias.name) => {
            alias.expr.as_ref().clone().alias(names.next("__selected"))
        }
        expression => expression.clone(),
    };
    let selected = projection.expr.iter().map(apart).collect();
    let selected = logical::Projection::try_new(selected, Arc::clone(&projection.input))?;
    subquery.subquery = Arc::new(LogicalPlan::Projection(selected));
    Ok(Transformed::yes(LogicalPlan::Subquery(subquery)))
}
