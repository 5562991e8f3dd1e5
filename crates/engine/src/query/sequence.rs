//! Unions and outer joins whose orders and constants DataFusion does not see.
//!
//! DataFusion's union has a partition for each input. If every input has a constant in a column, it takes the column
//! as constant in the whole union: `SELECT 1 AS a, b FROM t UNION ALL SELECT 2, b FROM t ORDER BY a DESC, b LIMIT 2` leaves
//! rows out, and `GROUP BY ROLLUP (a, b)` has totals twice. If a condition fixes a column on the
//! optional side of an outer join, it takes that value in rows without a match too, and does not sort by it. A plan here
//! runs on one thread, so partitions would gain nothing.

use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::error::Result;
use datafusion::execution::TaskContext;
use datafusion::physical_expr::EquivalenceProperties;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::joins::{HashJoinExec, NestedLoopJoinExec};
use datafusion::physical_plan::union::UnionExec;
use datafusion::physical_plan::{
    ExecutionPlan, ExecutionPlanProperties, Partitioning, PlanProperties,
};
use futures::{StreamExt, TryStreamExt};

use super::wrapped::{Around, Rows, wrapped};

/// Puts each union and each outer join under a [`Sequence`]. It is to be the first rule: the others look at partitions and
/// orders.
#[derive(Debug)]
pub(super) struct Sequences;

impl PhysicalOptimizerRule for Sequences {
    fn name(&self) -> &str {
        "sequences"
    }

    fn schema_check(&self) -> bool {
        true
    }

    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let in_sequence = plan.transform_up(|plan| {
            if plan.is::<UnionExec>() || is_outer_join(plan.as_ref()) {
                return Ok(Transformed::yes(wrapped(Sequence, plan)));
            }
            Ok(Transformed::no(plan))
        })?;
        Ok(in_sequence.data)
    }
}

fn is_outer_join(plan: &dyn ExecutionPlan) -> bool {
    let hashed = plan.downcast_ref::<HashJoinExec>().map(HashJoinExec::join_type);
    let nested = || plan.downcast_ref::<NestedLoopJoinExec>().map(NestedLoopJoinExec::join_type);
    hashed.or_else(nested).is_some_and(|kind| kind.is_outer())
}

/// The partitions of its input, one after the other.
#[derive(Clone, Debug)]
struct Sequence;

impl Around for Sequence {
    const NAME: &'static str = "Sequence";

    // Orders and constants are left out.
    fn properties(&self, input: &Arc<dyn ExecutionPlan>) -> Arc<PlanProperties> {
        Arc::new(PlanProperties::new(
            EquivalenceProperties::new(input.schema()),
            Partitioning::UnknownPartitioning(1),
            input.pipeline_behavior(),
            input.boundedness(),
        ))
    }

    fn execute(
        &self,
        input: &Arc<dyn ExecutionPlan>,
        _: usize,
        context: Arc<TaskContext>,
    ) -> Result<Rows> {
        let input = input.clone();
        let partitions = 0..input.output_partitioning().partition_count();
        let rows = futures::stream::iter(partitions)
            .map(move |partition| input.execute(partition, context.clone()))
            .try_flatten();
        Ok(rows.boxed())
    }
}
