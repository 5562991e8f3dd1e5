//! DataFusion's elimination of cross joins, except for plans whose meaning it would change.

use datafusion_common::tree_node::{Transformed, TreeNodeRecursion};
use datafusion_common::{JoinType, NullEquality, Result};
use datafusion_expr::LogicalPlan;
use datafusion_optimizer::OptimizerConfig;
use datafusion_optimizer::eliminate_cross_join::EliminateCrossJoin;
use datafusion_optimizer::optimizer::OptimizerRule;

/// [`EliminateCrossJoin`], except where a join pairs NULLs.
///
/// DataFusion's rule collects the keys of nested inner joins and gives all of them the NULL equality of the outermost
/// join. A join with `=` next to one with `IS NOT DISTINCT FROM` would then pair NULLs, or the other way round.
#[derive(Debug, Default)]
pub struct CrossJoinElimination {
    rule: EliminateCrossJoin,
}

impl OptimizerRule for CrossJoinElimination {
    fn name(&self) -> &str {
        self.rule.name()
    }

    fn supports_rewrite(&self) -> bool {
        true
    }

    fn rewrite(
        &self,
        plan: LogicalPlan,
        config: &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>> {
        if pairs_nulls(&plan)? {
            Ok(Transformed::no(plan))
        } else {
            self.rule.rewrite(plan, config)
        }
    }
}

/// Whether some inner join of the plan treats NULL keys as equal.
fn pairs_nulls(plan: &LogicalPlan) -> Result<bool> {
    let mut found = false;
    plan.apply_with_subqueries(|node| {
        found |= matches!(node, LogicalPlan::Join(join)
            if join.join_type == JoinType::Inner && join.null_equality == NullEquality::NullEqualsNull);
        Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    Ok(found)
}
