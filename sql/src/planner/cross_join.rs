//! DataFusion's elimination of cross joins, kept from plans it would change the meaning of.

use datafusion_common::tree_node::{Transformed, TreeNodeRecursion};
use datafusion_common::{JoinType, NullEquality, Result};
use datafusion_expr::LogicalPlan;
use datafusion_optimizer::OptimizerConfig;
use datafusion_optimizer::eliminate_cross_join::EliminateCrossJoin;
use datafusion_optimizer::optimizer::OptimizerRule;

/// [`EliminateCrossJoin`], except where a join pairs NULLs.
///
/// DataFusion's rule puts nested inner joins into one pool of keys and gives all of them the NULL equality of
/// the outermost: beside a join with `IS NOT DISTINCT FROM`, one with `=` would pair NULLs, or the other
/// way round.
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

/// Whether some inner join of the plan takes NULL keys as equal.
fn pairs_nulls(plan: &LogicalPlan) -> Result<bool> {
    let mut found = false;
    plan.apply_with_subqueries(|node| {
        found |= matches!(node, LogicalPlan::Join(join)
            if join.join_type == JoinType::Inner && join.null_equality == NullEquality::NullEqualsNull);
        Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    Ok(found)
}
