//! DataFusion's search for the keys of joins, except where it would change what they mean.

use datafusion_common::tree_node::Transformed;
use datafusion_common::{NullEquality, Result};
use datafusion_expr::{LogicalPlan, logical_plan as logical};
use datafusion_optimizer::OptimizerConfig;
use datafusion_optimizer::extract_equijoin_predicate::ExtractEquijoinPredicate;
use datafusion_optimizer::optimizer::{ApplyOrder, OptimizerRule};

/// [`ExtractEquijoinPredicate`], except in a join that pairs NULLs.
///
/// DataFusion's rule makes `=` among the conditions of a join one of its keys, also if the others are compared with `IS NOT
/// DISTINCT FROM`. The key would then pair NULLs, too.
#[derive(Debug, Default)]
pub struct EquijoinExtraction {
    rule: ExtractEquijoinPredicate,
}

impl OptimizerRule for EquijoinExtraction {
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
        match &plan {
            LogicalPlan::Join(logical::Join { null_equality, on, .. })
                if *null_equality == NullEquality::NullEqualsNull && !on.is_empty() =>
            {
                Ok(Transformed::no(plan))
            }
            _ => self.rule.rewrite(plan, config),
        }
    }
}
