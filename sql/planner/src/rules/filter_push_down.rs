//! DataFusion's filter push-down, except through aggregates and joins where it would change results or errors.

use std::sync::Arc;

use datafusion_common::tree_node::{Transformed, TreeNode};
use datafusion_common::{Column, Result};
use datafusion_expr::logical_plan::{Aggregate, Filter};
use datafusion_expr::utils::{conjunction, split_conjunction};
use datafusion_expr::{BinaryExpr, Expr, GroupingSet, LogicalPlan};
use datafusion_optimizer::OptimizerConfig;
use datafusion_optimizer::optimizer::{ApplyOrder, OptimizerRule};
use datafusion_optimizer::push_down_filter::PushDownFilter;

use crate::rules::canonical_floats::{NAN_FUNCTION, ZERO_FUNCTION};

/// [`PushDownFilter`], except
///
/// - through an aggregate that has a row even over no input. DataFusion pushes down conditions that name only groups, and a
///   condition on a constant counts as one. Below an aggregate without GROUP BY it would remove input rows instead of the
///   aggregate's one row;
/// - of a condition that [may fail](may_fail), through an aggregate or a join above which another condition stays, such as
///   one of HAVING or one on both sides: it would fail for rows that the other condition rejects;
/// - of such a condition through any join, if one failure fails the whole query: it would fail for rows without a match.
#[derive(Debug, Default)]
pub struct FilterPushDown {
    rule: PushDownFilter,
    is_careful: bool,
}

impl FilterPushDown {
    /// For plans in which one failing row fails the query.
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
        let places: Vec<Vec<Column>> = match below {
            LogicalPlan::Aggregate(aggregate) if has_row_of_nothing(aggregate) => {
                return Ok(Transformed::no(plan));
            }
            LogicalPlan::Aggregate(aggregate) => {
                vec![aggregate.schema.columns()[..aggregate.group_expr.len()].to_vec()]
            }
            LogicalPlan::Join(join) => {
                vec![join.left.schema().columns(), join.right.schema().columns()]
            }
            _ => return self.rule.rewrite(plan, config),
        };
        // A condition can move to an input that has all columns it names.
        let passes = |condition: &Expr| {
            let names = condition.column_refs();
            places.iter().any(|columns| names.iter().all(|column| columns.contains(column)))
        };
        let all_pass = conditions.iter().all(passes);
        let is_careful = self.is_careful && matches!(below, LogicalPlan::Join(_));
        let is_held = |condition: &&Expr| {
            may_fail(condition) && passes(condition) && (is_careful || !all_pass)
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

/// The plan below the filters that a plan starts with, and their conditions from top to bottom; the rule treats adjacent
/// filters as one.
fn filtered<'a>(plan: &'a LogicalPlan, conditions: &mut Vec<Expr>) -> &'a LogicalPlan {
    match plan {
        LogicalPlan::Filter(filter) => {
            conditions.extend(split_conjunction(&filter.predicate).into_iter().cloned());
            filtered(&filter.input, conditions)
        }
        plan => plan,
    }
}

/// Functions that never fail.
const SURE: [&str; 17] = [
    "btrim",
    "character_length",
    "coalesce",
    "concat",
    "date_part",
    "date_trunc",
    "length",
    "lower",
    "ltrim",
    "nullif",
    "octet_length",
    NAN_FUNCTION,
    ZERO_FUNCTION,
    "rtrim",
    "starts_with",
    "substr",
    "upper",
];

/// Whether evaluating an expression may fail for a row; true if that is unknown.
pub fn may_fail(expression: &Expr) -> bool {
    let part_may = |part: &Expr| {
        Ok(match part {
            Expr::BinaryExpr(BinaryExpr { op, .. }) => op.is_numerical_operators(),
            Expr::ScalarFunction(call) => !SURE.contains(&call.name()),
            Expr::Cast(_) | Expr::Negative(_) => true,
            _ => false,
        })
    };
    expression.exists(part_may).is_ok_and(|may| may)
}

/// Whether an aggregate has no GROUP BY, or an empty grouping set.
fn has_row_of_nothing(aggregate: &Aggregate) -> bool {
    aggregate.group_expr.is_empty()
        || aggregate.group_expr.iter().any(|group| match group {
            Expr::GroupingSet(GroupingSet::GroupingSets(sets)) => sets.iter().any(Vec::is_empty),
            Expr::GroupingSet(_) => true,
            _ => false,
        })
}
