//! DataFusion's pushing of filters towards tables, kept from aggregates that have a row of nothing.

use datafusion_common::Result;
use datafusion_common::tree_node::Transformed;
use datafusion_expr::logical_plan::Aggregate;
use datafusion_expr::{Expr, GroupingSet, LogicalPlan};
use datafusion_optimizer::OptimizerConfig;
use datafusion_optimizer::optimizer::{ApplyOrder, OptimizerRule};
use datafusion_optimizer::push_down_filter::PushDownFilter;

/// [`PushDownFilter`], except through an aggregate that has a row where its input has none.
///
/// DataFusion's rule lets a condition pass that names nothing but groups, as one on a constant does: below an
/// aggregate without GROUP BY it takes the input's rows away, and not the one row of the aggregate.
#[derive(Debug, Default)]
pub struct FilterPushDown {
    rule: PushDownFilter,
}

impl OptimizerRule for FilterPushDown {
    fn name(&self) -> &str {
        self.rule.name()
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        self.rule.apply_order()
    }

    fn supports_rewrite(&self) -> bool {
        true
    }

    fn rewrite(
        &self,
        plan: LogicalPlan,
        config: &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>> {
        match filtered(&plan) {
            LogicalPlan::Aggregate(aggregate) if has_row_of_nothing(aggregate) => {
                Ok(Transformed::no(plan))
            }
            _ => self.rule.rewrite(plan, config),
        }
    }
}

/// What is below the filters that a plan begins with, which the rule takes for one.
fn filtered(plan: &LogicalPlan) -> &LogicalPlan {
    match plan {
        LogicalPlan::Filter(filter) => filtered(&filter.input),
        plan => plan,
    }
}

/// Whether an aggregate groups by nothing, or does so among others.
fn has_row_of_nothing(aggregate: &Aggregate) -> bool {
    aggregate.group_expr.is_empty()
        || aggregate.group_expr.iter().any(|group| match group {
            Expr::GroupingSet(GroupingSet::GroupingSets(sets)) => sets.iter().any(Vec::is_empty),
            Expr::GroupingSet(_) => true,
            _ => false,
        })
}
