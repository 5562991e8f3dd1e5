//! Names for casts inside aggregates and window functions.
//!
//! DataFusion names a function by its arguments without their casts and finds its results by that name. It would confuse
//! `SUM(n)` with `SUM(CAST(n AS DOUBLE))`.

use datafusion_common::Result;
use datafusion_common::tree_node::TreeNode;
use datafusion_expr::Expr;
use datafusion_expr::planner::{ExprPlanner, PlannerResult, RawAggregateExpr, RawWindowExpr};

/// Gives arguments that contain casts names of their own.
#[derive(Debug)]
pub(crate) struct NamedCasts;

impl ExprPlanner for NamedCasts {
    fn plan_aggregate(
        &self,
        mut call: RawAggregateExpr,
    ) -> Result<PlannerResult<RawAggregateExpr>> {
        call.args = named(call.args);
        Ok(PlannerResult::Original(call))
    }

    fn plan_window(&self, mut call: RawWindowExpr) -> Result<PlannerResult<RawWindowExpr>> {
        call.args = named(call.args);
        Ok(PlannerResult::Original(call))
    }
}

fn named(arguments: Vec<Expr>) -> Vec<Expr> {
    let named = |argument: Expr| match has_cast(&argument) && !argument.column_refs().is_empty() {
        true => {
            let name = argument.to_string();
            argument.alias(name)
        }
        false => argument,
    };
    arguments.into_iter().map(named).collect()
}

fn has_cast(argument: &Expr) -> bool {
    let is_cast = |part: &Expr| Ok(matches!(part, Expr::Cast(_) | Expr::TryCast(_)));
    argument.exists(is_cast).is_ok_and(|found| found)
}
