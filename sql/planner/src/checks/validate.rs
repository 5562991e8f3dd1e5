//! Checks that every column of an optimized plan exists where it is used.
//!
//! The optimizer can produce a reference to a column that its input does not have, without an error: a correlation over two
//! levels does. Or it leaves a subquery as it is. Such plans are refused.

use alluvium_sql_syntax::error::{Error, Position, Result};
use datafusion_common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion_common::{Column, DFSchema};
use datafusion_expr::{Expr, LogicalPlan};

use crate::checks::refusal::Landmarks;
use crate::subqueries::subquery::is_single;

/// Refuses a plan in which a column does not resolve in its node's inputs.
pub fn validate(plan: &LogicalPlan, landmarks: &Landmarks) -> Result<()> {
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
                part => subquery_left(part, landmarks).map(|()| TreeNodeRecursion::Continue),
            })
        })
    })
    .map(|_| ())
    .map_err(|error| Error::from_datafusion(&error))
}

/// Refuses subqueries that were not rewritten, except scalars of one row: an optimizer rule handles these.
pub fn check_subqueries(plan: &LogicalPlan, landmarks: &Landmarks) -> Result<()> {
    plan.apply(|node| {
        node.apply_expressions(|expression| {
            expression.apply(|part| match part {
                Expr::ScalarSubquery(query) if is_single(&query.subquery) => {
                    Ok(TreeNodeRecursion::Continue)
                }
                part => subquery_left(part, landmarks).map(|()| TreeNodeRecursion::Continue),
            })
        })
    })
    .map(|_| ())
    .map_err(|error| Error::from_datafusion(&error))
}

fn subquery_left(part: &Expr, landmarks: &Landmarks) -> datafusion_common::Result<()> {
    match part {
        Expr::ScalarSubquery(_) => {
            Err(left_over("this scalar subquery", landmarks.scalar_subquery))
        }
        Expr::InSubquery(_) => Err(left_over("this IN (SELECT …)", landmarks.in_subquery)),
        Expr::Exists(_) => Err(left_over("this EXISTS", landmarks.exists)),
        _ => Ok(()),
    }
}

/// The error for a subquery that was not rewritten, at the position of the first of its kind.
fn left_over(name: &str, position: Option<Position>) -> datafusion_common::DataFusionError {
    let error = Error::not_supported(
        format!("{name}, with what it refers to outside, in a view"),
        position,
    );
    datafusion_common::DataFusionError::External(Box::new(error))
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
