//! DataFusion's pushing of filters towards tables, kept from aggregates where it would change what is true or what
//! fails.

use std::sync::Arc;

use datafusion_common::Result;
use datafusion_common::tree_node::{Transformed, TreeNode};
use datafusion_expr::logical_plan::{Aggregate, Filter};
use datafusion_expr::utils::{conjunction, split_conjunction};
use datafusion_expr::{BinaryExpr, Expr, GroupingSet, LogicalPlan};
use datafusion_optimizer::OptimizerConfig;
use datafusion_optimizer::optimizer::{ApplyOrder, OptimizerRule};
use datafusion_optimizer::push_down_filter::PushDownFilter;

/// [`PushDownFilter`], except
///
/// - through an aggregate that has a row where its input has none: DataFusion's rule lets a condition pass that names
///   nothing but groups, as one on a constant does, but below an aggregate without GROUP BY that takes the input's rows
///   away, and not the one row of the aggregate;
/// - of a condition that [may fail](may_fail), through an aggregate where another condition stays above it, as one of
///   HAVING does: it would fail for groups that the other leaves out;
/// - of such a condition through a join, where a failure is not of a row but of a whole query: it would fail for rows that
///   meet none.
#[derive(Debug, Default)]
pub struct FilterPushDown {
    rule: PushDownFilter,
    is_careful: bool,
}

impl FilterPushDown {
    /// For plans of which one failure is the end.
    pub fn careful() -> Self {
        FilterPushDown { is_careful: true, ..Self::default() }
    }
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
        let mut conditions = Vec::new();
        let below = filtered(&plan, &mut conditions);
        let groups = match below {
            LogicalPlan::Aggregate(aggregate) if has_row_of_nothing(aggregate) => {
                return Ok(Transformed::no(plan));
            }
            LogicalPlan::Aggregate(aggregate) => {
                aggregate.schema.columns()[..aggregate.group_expr.len()].to_vec()
            }
            _ => Vec::new(),
        };
        let passes = |condition: &Expr| {
            condition.column_refs().into_iter().all(|column| groups.contains(column))
        };
        let all_pass = conditions.iter().all(passes);
        let is_held = |condition: &&Expr| {
            may_fail(condition)
                && match below {
                    LogicalPlan::Aggregate(_) => !all_pass && passes(condition),
                    LogicalPlan::Join(_) => self.is_careful,
                    _ => false,
                }
        };
        let (held, others): (Vec<&Expr>, Vec<&Expr>) = conditions.iter().partition(is_held);
        let Some(held) = conjunction(held.into_iter().cloned()) else {
            return self.rule.rewrite(plan, config);
        };
        let Some(others) = conjunction(others.into_iter().cloned()) else {
            return Ok(Transformed::no(plan));
        };
        let below = LogicalPlan::Filter(Filter::try_new(others, Arc::new(below.clone()))?);
        let below = self.rule.rewrite(below, config)?;
        if !below.transformed {
            return Ok(Transformed::no(plan));
        }
        let above = Filter::try_new(held, Arc::new(below.data))?;
        Ok(Transformed::yes(LogicalPlan::Filter(above)))
    }
}

/// What is below the filters that a plan begins with, which the rule takes for one; their conditions, one by one, from
/// above.
fn filtered<'a>(plan: &'a LogicalPlan, conditions: &mut Vec<Expr>) -> &'a LogicalPlan {
    match plan {
        LogicalPlan::Filter(filter) => {
            conditions.extend(split_conjunction(&filter.predicate).into_iter().cloned());
            filtered(&filter.input, conditions)
        }
        plan => plan,
    }
}

/// Whether evaluating an expression may fail for a row; it is taken for one that may where that is not known.
pub fn may_fail(expression: &Expr) -> bool {
    let part_may = |part: &Expr| {
        Ok(match part {
            Expr::BinaryExpr(BinaryExpr { op, .. }) => op.is_numerical_operators(),
            Expr::Cast(_) | Expr::ScalarFunction(_) | Expr::Negative(_) => true,
            _ => false,
        })
    };
    expression.exists(part_may).is_ok_and(|may| may)
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
