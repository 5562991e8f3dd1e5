//! A condition that may fail is evaluated only for rows that satisfy all other conditions.
//!
//! DataFusion puts the filters of views and of those that read them into one AND, and evaluates all of it for all rows:
//! `WHERE 10 / k > 1` would fail for rows that the view below it has left out with `WHERE k <> 0`.

use alluvium_sql::planner::may_fail;
use datafusion::common::Result;
use datafusion::common::tree_node::Transformed;
use datafusion::logical_expr::utils::{conjunction, split_conjunction_owned};
use datafusion::logical_expr::{Expr, Filter, LogicalPlan, lit, when};
use datafusion::optimizer::optimizer::{ApplyOrder, OptimizerConfig, OptimizerRule};

/// Makes a CASE of such a condition, which is evaluated for the rows that come to it. It is to be a last rule: another
/// one takes such a CASE for an AND.
#[derive(Debug)]
pub(super) struct ConditionsInTurn;

impl OptimizerRule for ConditionsInTurn {
    fn name(&self) -> &str {
        "conditions_in_turn"
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        Some(ApplyOrder::BottomUp)
    }

    fn supports_rewrite(&self) -> bool {
        true
    }

    fn rewrite(
        &self,
        plan: LogicalPlan,
        _: &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>> {
        let LogicalPlan::Filter(filter) = plan else { return Ok(Transformed::no(plan)) };
        let parts = split_conjunction_owned(filter.predicate.clone());
        let (fallible, sure): (Vec<Expr>, Vec<Expr>) = parts.into_iter().partition(may_fail);
        if fallible.is_empty() || fallible.len() + sure.len() == 1 {
            return Ok(Transformed::no(LogicalPlan::Filter(filter)));
        }
        let mut last: Option<Expr> = None;
        for condition in conjunction(sure).into_iter().chain(fallible).rev() {
            last = Some(match last {
                Some(later) => when(condition, later).otherwise(lit(false))?,
                None => condition,
            });
        }
        let Some(predicate) = last else { return Ok(Transformed::no(LogicalPlan::Filter(filter))) };
        let filter = Filter::try_new(predicate, filter.input)?;
        Ok(Transformed::yes(LogicalPlan::Filter(filter)))
    }
}
