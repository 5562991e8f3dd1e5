//! Whether every column of an optimized plan exists where it is used.
//!
//! The optimizer can leave a column behind that its input does not have, without an error: a
//! correlation over two levels does. Such a plan must be refused, not run.

use datafusion_common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion_common::{Column, DFSchema};
use datafusion_expr::{Expr, LogicalPlan};

use crate::error::{Error, Position, Result};

/// Refuses a plan in which a column does not resolve in its node's inputs.
pub(crate) fn validate(plan: &LogicalPlan) -> Result<()> {
    plan.apply(|node| {
        let inputs = node.inputs();
        let schemas: Vec<&DFSchema> = match node {
            LogicalPlan::TableScan(scan) => vec![scan.projected_schema.as_ref()],
            _ => inputs.iter().map(|input| input.schema().as_ref()).collect(),
        };
        node.apply_expressions(|expression| {
            expression.apply(|part| match part {
                Expr::Column(column) if !schemas.iter().any(|schema| schema.has_column(column)) => {
                    Err(unresolved(column))
                }
                Expr::OuterReferenceColumn(_, column) => Err(unresolved(column)),
                _ => Ok(TreeNodeRecursion::Continue),
            })
        })
    })
    .map(|_| ())
    .map_err(|error| Error::from_datafusion(&error))
}

fn unresolved(column: &Column) -> datafusion_common::DataFusionError {
    let position = column
        .spans
        .first()
        .map(|span| Position { line: span.start.line, column: span.start.column });
    let error = Error::not_supported(
        format!("the reference to column \"{column}\" of an outer query in a view"),
        position,
    );
    datafusion_common::DataFusionError::External(Box::new(error))
}
