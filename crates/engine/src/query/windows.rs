//! The rows that window functions hold.
//!
//! DataFusion's operators for windows keep rows that they have read, and count none of them: one keeps all, and then all
//! together in one batch, the other those that it has not passed on, and those before them in a frame. Here what an operator
//! has read and not passed on counts among the rows that queries hold.

use std::fmt;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::Schema;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::error::Result;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::execution_plan::replace_children_if_necessary;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::windows::{BoundedWindowAggExec, WindowAggExec};
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use futures::StreamExt;

use crate::transaction::bytes_of;

/// The bytes of a value whose type does not say how many it has.
const VALUE: usize = 16;

/// The plan with window functions whose rows are counted.
pub(super) fn counted(plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    let counted = plan.transform_up(|node| {
        Ok(match node.is::<WindowAggExec>() || node.is::<BoundedWindowAggExec>() {
            true => Transformed::yes(Arc::new(Window { window: node }) as _),
            false => Transformed::no(node),
        })
    })?;
    Ok(counted.data)
}

/// What an operator for windows holds.
#[derive(Debug)]
struct Held {
    reservation: MemoryReservation,
    /// The bytes that it adds to each row; `None` if it passes rows on before it has read all of them.
    beside: Option<usize>,
}

impl Held {
    fn add(&self, rows: &RecordBatch) -> Result<()> {
        let bytes = bytes_of(rows);
        self.reservation.try_grow(match self.beside {
            // The rows as they came, and together.
            Some(beside) => 2 * bytes + rows.num_rows() * beside,
            None => bytes,
        })
    }

    /// Rows leave it: they are the reader's now.
    fn pass(&self, rows: &RecordBatch) {
        self.reservation.shrink(bytes_of(rows).min(self.reservation.size()));
    }
}

/// The bytes that columns behind the first `columns` add to each row.
fn added(schema: &Schema, columns: usize) -> usize {
    let added = schema.fields().iter().skip(columns);
    added.map(|field| field.data_type().primitive_width().unwrap_or(VALUE)).sum()
}

/// An operator for windows, counted.
#[derive(Debug)]
struct Window {
    window: Arc<dyn ExecutionPlan>,
}

impl DisplayAs for Window {
    fn fmt_as(&self, _: DisplayFormatType, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Window")
    }
}

impl ExecutionPlan for Window {
    fn name(&self) -> &str {
        "Window"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.window.properties()
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.window]
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let window = children.into_iter().next().unwrap_or_else(|| self.window.clone());
        Ok(Arc::new(Window { window }))
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let reservation = MemoryConsumer::new("window").register(context.memory_pool());
        let inputs = self.window.children();
        let columns = inputs.iter().map(|input| input.schema().fields().len()).sum();
        let reads_all = self.window.is::<WindowAggExec>();
        let beside = reads_all.then(|| added(&self.schema(), columns));
        let held = Arc::new(Held { reservation, beside });
        let reads = inputs.into_iter().map(|input| {
            Arc::new(Read { input: input.clone(), held: held.clone() }) as Arc<dyn ExecutionPlan>
        });
        let window = replace_children_if_necessary(self.window.clone(), reads.collect())?;
        let rows = window.execute(partition, context)?;
        let rows = rows.inspect(move |rows| rows.iter().for_each(|rows| held.pass(rows)));
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), rows)))
    }
}

/// The input of an operator for windows, counted as it is read.
#[derive(Debug)]
struct Read {
    input: Arc<dyn ExecutionPlan>,
    held: Arc<Held>,
}

impl DisplayAs for Read {
    fn fmt_as(&self, _: DisplayFormatType, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Read")
    }
}

impl ExecutionPlan for Read {
    fn name(&self) -> &str {
        "Read"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.input.properties()
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let input = children.into_iter().next().unwrap_or_else(|| self.input.clone());
        Ok(Arc::new(Read { input, held: self.held.clone() }))
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let held = self.held.clone();
        let rows = self.input.execute(partition, context)?;
        let rows = rows.map(move |rows| rows.and_then(|rows| held.add(&rows).map(|()| rows)));
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), rows)))
    }
}
