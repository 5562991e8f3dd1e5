//! References to columns outside.

use datafusion_common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion_common::{Column, DFSchema, Result};
use datafusion_expr::{Expr, LogicalPlan};

use super::Key;

/// The columns of `outer` to which a plan refers, each once. Its subqueries refer to nothing that is outside of it.
pub(super) fn references(plan: &LogicalPlan, outer: &DFSchema) -> Result<Vec<Column>> {
    let mut found = Vec::new();
    plan.apply(|node| {
        node.apply_expressions(|expression| {
            add_references(expression, outer, &mut found)?;
            Ok(TreeNodeRecursion::Continue)
        })
    })?;
    Ok(found)
}

/// The columns of `outer` to which expressions refer, each once.
pub(super) fn references_of<'e>(
    expressions: impl IntoIterator<Item = &'e Expr>,
    outer: &DFSchema,
) -> Result<Vec<Column>> {
    let mut found = Vec::new();
    for expression in expressions {
        add_references(expression, outer, &mut found)?;
    }
    Ok(found)
}

fn add_references(expression: &Expr, outer: &DFSchema, found: &mut Vec<Column>) -> Result<()> {
    expression.apply(|part| {
        if let Expr::OuterReferenceColumn(_, column) = part
            && outer.has_column(column)
            && !found.contains(column)
        {
            found.push(column.clone());
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(())
}

/// Whether a plan refers to any column outside.
pub fn refers_outside(plan: &LogicalPlan) -> Result<bool> {
    plan.exists(|node| Ok(node.contains_outer_reference()))
}

/// The expression over the keys instead of the columns outside.
pub(super) fn replaced(expression: Expr, keys: &[Key]) -> Result<Expr> {
    expression
        .transform_up(|part| match &part {
            Expr::OuterReferenceColumn(_, column) => {
                match keys.iter().find(|key| key.outer == *column) {
                    Some(key) => Ok(Transformed::yes(Expr::Column(key.column.clone()))),
                    None => Ok(Transformed::no(part)),
                }
            }
            _ => Ok(Transformed::no(part)),
        })
        .data()
}

/// The same of several expressions.
pub(super) fn replaced_all(expressions: &[Expr], keys: &[Key]) -> Result<Vec<Expr>> {
    expressions.iter().map(|expression| replaced(expression.clone(), keys)).collect()
}
