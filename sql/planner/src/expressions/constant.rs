//! Overflow in constant arithmetic.
//!
//! DataFusion folds constants with wrapping arithmetic, so overflow is checked before it plans.

use alluvium_sql_syntax::error::{Error, Result};
use datafusion_common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion_common::{DFSchema, DataFusionError};
use datafusion_expr::execution_props::ExecutionProps;
use datafusion_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion_expr::{BinaryExpr, ColumnarValue, Expr, ExprSchemable, LogicalPlan, Operator};
use datafusion_physical_expr::create_physical_expr;

use crate::expressions::evaluation::{checked, one_row};

/// Refuses constant integer arithmetic whose result does not fit its type.
pub fn check(plan: &LogicalPlan) -> Result<()> {
    plan.apply_with_subqueries(|node| {
        node.apply_expressions(|expression| {
            expression.apply(|expression| {
                let Expr::BinaryExpr(BinaryExpr {
                    op: Operator::Plus | Operator::Minus | Operator::Multiply,
                    ..
                }) = expression
                else {
                    return Ok(TreeNodeRecursion::Continue);
                };
                if !is_constant(expression) {
                    return Ok(TreeNodeRecursion::Continue);
                }
                evaluate(expression)?;
                Ok(TreeNodeRecursion::Jump)
            })
        })
    })
    .map(|_| ())
    .map_err(|error| Error::from_datafusion(&error))
}

fn is_constant(expression: &Expr) -> bool {
    let mut constant = true;
    let walked = expression.apply(|part| {
        constant &= matches!(
            part,
            Expr::Literal(..)
                | Expr::BinaryExpr(_)
                | Expr::Negative(_)
                | Expr::Cast(_)
                | Expr::Alias(_)
        );
        Ok(if constant { TreeNodeRecursion::Continue } else { TreeNodeRecursion::Stop })
    });
    walked.is_ok() && constant
}

fn evaluate(expression: &Expr) -> datafusion_common::Result<()> {
    let nothing = DFSchema::empty();
    // An expression without a type or value gets its error message later.
    let is_integer = expression.get_type(&nothing).is_ok_and(|data_type| data_type.is_integer());
    let physical = create_physical_expr(
        expression,
        &nothing,
        &ExecutionProps::new(),
        &PhysicalPlanningContext::default(),
    );
    let (true, Ok(physical)) = (is_integer, physical) else { return Ok(()) };
    let row = one_row();
    match checked(physical, row.schema_ref()).and_then(|physical| physical.evaluate(&row)) {
        Err(error) if error.find_root().to_string().contains("verflow") => {
            Err(DataFusionError::External(Box::new(Error::new(
                format!("{expression} overflows its type"),
                None,
            ))))
        }
        Ok(ColumnarValue::Array(_) | ColumnarValue::Scalar(_)) | Err(_) => Ok(()),
    }
}
