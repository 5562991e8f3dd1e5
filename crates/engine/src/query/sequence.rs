//! Unions and outer joins whose orders and constants DataFusion does not see.
//!
//! DataFusion's union has a partition for each input. If every input has a constant in a column, it takes the column
//! as constant in the whole union: `SELECT 1 AS a, b FROM t UNION ALL SELECT 2, b FROM t ORDER BY a DESC, b LIMIT 2` leaves
//! rows out, and `GROUP BY ROLLUP (a, b)` has totals twice. If a condition fixes a column on the
//! optional side of an outer join, it takes that value in rows without a match too, and does not sort by it. A plan here
//! runs on one thread, so partitions would gain nothing.

use std::fmt;
use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::joins::{HashJoinExec, NestedLoopJoinExec};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::union::UnionExec;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, Partitioning,
    PlanProperties,
};
use futures::{StreamExt, TryStreamExt};

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
                return Ok(Transformed::yes(Arc::new(Sequence::new(plan)) as _));
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
#[derive(Debug)]
struct Sequence {
    input: Arc<dyn ExecutionPlan>,
    properties: Arc<PlanProperties>,
}

impl Sequence {
    fn new(input: Arc<dyn ExecutionPlan>) -> Self {
        // Nothing is said of orders and constants.
        let properties = PlanProperties::new(
            EquivalenceProperties::new(input.schema()),
            Partitioning::UnknownPartitioning(1),
            input.pipeline_behavior(),
            input.boundedness(),
        );
        Sequence { input, properties: Arc::new(properties) }
    }
}

impl DisplayAs for Sequence {
    fn fmt_as(&self, _: DisplayFormatType, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Sequence")
    }
}

impl ExecutionPlan for Sequence {
    fn name(&self) -> &str {
        "Sequence"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let input = children.into_iter().next().unwrap_or_else(|| self.input.clone());
        Ok(Arc::new(Sequence::new(input)))
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn execute(&self, _: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let input = self.input.clone();
        let partitions = 0..input.output_partitioning().partition_count();
        let rows = futures::stream::iter(partitions)
            .map(move |partition| input.execute(partition, context.clone()))
            .try_flatten();
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), rows)))
    }
}
