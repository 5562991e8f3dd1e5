//! The rows that window functions hold.
//!
//! DataFusion's operators for windows keep rows that they have read, and count none of them: one keeps all, and then all
//! together in one batch, the other those that it has not passed on, and those before them in a frame. Here what an operator
//! has read and not passed on counts among the rows that queries hold.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::Schema;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::error::Result;
use datafusion::execution::TaskContext;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::execution_plan::replace_children_if_necessary;
use datafusion::physical_plan::windows::{BoundedWindowAggExec, WindowAggExec};
use futures::StreamExt;

use super::wrapped::{Around, Rows, wrapped};
use crate::changes::bytes_of;

/// The bytes of a value whose type does not say how many it has.
const VALUE: usize = 16;

/// The plan with window functions whose rows are counted.
pub(super) fn counted(plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    let counted = plan.transform_up(|node| {
        Ok(match node.is::<WindowAggExec>() || node.is::<BoundedWindowAggExec>() {
            true => Transformed::yes(wrapped(Window, node)),
            false => Transformed::no(node),
        })
    })?;
    Ok(counted.data)
}

/// The memory of an operator for windows.
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

/// The bytes that columns after the first `columns` add to each row.
fn added(schema: &Schema, columns: usize) -> usize {
    let added = schema.fields().iter().skip(columns);
    added.map(|field| field.data_type().primitive_width().unwrap_or(VALUE)).sum()
}

/// An operator for windows, counted.
#[derive(Clone, Debug)]
pub(super) struct Window;

impl Around for Window {
    const NAME: &'static str = "Window";

    fn execute(
        &self,
        window: &Arc<dyn ExecutionPlan>,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<Rows> {
        let reservation = MemoryConsumer::new("window").register(context.memory_pool());
        let inputs = window.children();
        let columns = inputs.iter().map(|input| input.schema().fields().len()).sum();
        let reads_all = window.is::<WindowAggExec>();
        let beside = reads_all.then(|| added(&window.schema(), columns));
        let held = Arc::new(Held { reservation, beside });
        let reads = inputs.into_iter().map(|input| wrapped(Read(held.clone()), input.clone()));
        let window = replace_children_if_necessary(window.clone(), reads.collect())?;
        let rows = window.execute(partition, context)?;
        Ok(rows.inspect(move |rows| rows.iter().for_each(|rows| held.pass(rows))).boxed())
    }
}

/// The input of an operator for windows, counted as it is read.
#[derive(Clone, Debug)]
struct Read(Arc<Held>);

impl Around for Read {
    const NAME: &'static str = "Read";

    fn execute(
        &self,
        input: &Arc<dyn ExecutionPlan>,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<Rows> {
        let held = self.0.clone();
        let rows = input.execute(partition, context)?;
        Ok(rows.map(move |rows| rows.and_then(|rows| held.add(&rows).map(|()| rows))).boxed())
    }
}
