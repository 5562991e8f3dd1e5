//! Physical operators that delegate everything but execution.

use std::fmt::{self, Debug};
use std::sync::Arc;

use arrow::array::RecordBatch;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use futures::stream::BoxStream;

/// The rows of an operator.
pub(super) type Rows = BoxStream<'static, Result<RecordBatch>>;

/// The part of a wrapping operator that differs from the wrapped one.
pub(super) trait Around: Clone + Debug + Send + Sync + 'static {
    /// Its name.
    const NAME: &'static str;

    /// The properties of its rows, which have the columns of `inner`.
    fn properties(&self, inner: &Arc<dyn ExecutionPlan>) -> Arc<PlanProperties> {
        Arc::clone(inner.properties())
    }

    /// Its rows.
    fn execute(
        &self,
        inner: &Arc<dyn ExecutionPlan>,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<Rows>;
}

/// The operator of `around` around `inner`.
pub(super) fn wrapped(
    around: impl Around,
    inner: Arc<dyn ExecutionPlan>,
) -> Arc<dyn ExecutionPlan> {
    let properties = around.properties(&inner);
    Arc::new(Wrapped { around, inner, properties })
}

/// An operator around another one.
#[derive(Debug)]
pub(super) struct Wrapped<A> {
    around: A,
    inner: Arc<dyn ExecutionPlan>,
    properties: Arc<PlanProperties>,
}

impl<A> Wrapped<A> {
    pub(super) fn around(&self) -> &A {
        &self.around
    }

    pub(super) fn inner(&self) -> &Arc<dyn ExecutionPlan> {
        &self.inner
    }
}

impl<A: Around> DisplayAs for Wrapped<A> {
    fn fmt_as(&self, _: DisplayFormatType, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(A::NAME)
    }
}

impl<A: Around> ExecutionPlan for Wrapped<A> {
    fn name(&self) -> &str {
        A::NAME
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.inner]
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let inner = children.into_iter().next().unwrap_or_else(|| self.inner.clone());
        Ok(wrapped(self.around.clone(), inner))
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
        let rows = self.around.execute(&self.inner, partition, context)?;
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), rows)))
    }
}
