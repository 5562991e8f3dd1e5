//! DataFusion's rules for the keys of joins, except for plans whose meaning they would change.

use std::fmt::Debug;

use datafusion_common::tree_node::{Transformed, TreeNodeRecursion};
use datafusion_common::{JoinType, NullEquality, Result};
use datafusion_expr::LogicalPlan;
use datafusion_optimizer::OptimizerConfig;
use datafusion_optimizer::eliminate_cross_join::EliminateCrossJoin;
use datafusion_optimizer::extract_equijoin_predicate::ExtractEquijoinPredicate;
use datafusion_optimizer::optimizer::{ApplyOrder, OptimizerRule};

/// A rule, except for plans where a join that pairs NULLs would get keys of others, or give them its own: its keys are compared
/// with `IS NOT DISTINCT FROM`, and theirs with `=`.
#[derive(Debug)]
pub struct JoinKeys<R> {
    rule: R,
    pairs_nulls: fn(&LogicalPlan) -> Result<bool>,
}

/// DataFusion's rule collects the keys of nested inner joins and gives all of them the NULL equality of the outermost join.
pub type CrossJoinElimination = JoinKeys<EliminateCrossJoin>;

/// DataFusion's rule makes `=` among the conditions of a join one of its keys, whatever the NULL equality of the others is.
pub type EquijoinExtraction = JoinKeys<ExtractEquijoinPredicate>;

impl Default for CrossJoinElimination {
    fn default() -> Self {
        JoinKeys { rule: EliminateCrossJoin::new(), pairs_nulls: any_pairs_nulls }
    }
}

impl Default for EquijoinExtraction {
    fn default() -> Self {
        JoinKeys { rule: ExtractEquijoinPredicate::new(), pairs_nulls: keys_pair_nulls }
    }
}

impl<R: OptimizerRule + Debug> OptimizerRule for JoinKeys<R> {
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
        match (self.pairs_nulls)(&plan)? {
            true => Ok(Transformed::no(plan)),
            false => self.rule.rewrite(plan, config),
        }
    }
}

/// Whether some inner join of the plan treats NULL keys as equal.
fn any_pairs_nulls(plan: &LogicalPlan) -> Result<bool> {
    let mut found = false;
    plan.apply_with_subqueries(|node| {
        found |= matches!(node, LogicalPlan::Join(join)
            if join.join_type == JoinType::Inner && join.null_equality == NullEquality::NullEqualsNull);
        Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    Ok(found)
}

/// Whether this join has keys and treats NULLs among them as equal.
fn keys_pair_nulls(plan: &LogicalPlan) -> Result<bool> {
    Ok(matches!(plan, LogicalPlan::Join(join)
        if join.null_equality == NullEquality::NullEqualsNull && !join.on.is_empty()))
}
