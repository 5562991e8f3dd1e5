//! A relation's rows as of one epoch, as DataFusion reads them.

use std::fmt;
use std::sync::Arc;

use alluvium_dataflow::contents::Snapshot;
use alluvium_trace::Epoch;
use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use async_trait::async_trait;
use datafusion::catalog::Session;
use datafusion::common::Statistics;
use datafusion::common::stats::Precision;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::datasource::memory::MemorySourceConfig;
use datafusion::datasource::source::{DataSource, DataSourceExec};
use datafusion::datasource::{TableProvider, TableType};
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::Expr;
use datafusion::physical_expr::projection::ProjectionExprs;
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayFormatType, ExecutionPlan, Partitioning};
use parking_lot::Mutex;

use crate::transaction::Overlay;

/// A relation, pinned. Only the columns that a scan asks for are decoded.
pub(super) struct RelationTable {
    schema: SchemaRef,
    epoch: Epoch,
    /// One per worker.
    snapshots: Vec<Snapshot>,
    overlaid: Option<Overlaid>,
}

/// A table with a transaction's changes, which the first scan applies.
struct Overlaid {
    overlay: Mutex<Option<Overlay>>,
    rows: Mutex<Option<Vec<RecordBatch>>>,
}

impl RelationTable {
    pub(super) fn new(
        schema: SchemaRef,
        epoch: Epoch,
        snapshots: Vec<Snapshot>,
        overlay: Option<Overlay>,
    ) -> Self {
        let overlaid = overlay
            .map(|overlay| Overlaid { overlay: Mutex::new(Some(overlay)), rows: Mutex::new(None) });
        Self { schema, epoch, snapshots, overlaid }
    }

    /// The mean size of a row.
    pub(super) fn row_bytes(&self) -> usize {
        let rows: usize = self.snapshots.iter().map(Snapshot::updates).sum();
        let bytes: usize = self.snapshots.iter().map(Snapshot::bytes).sum();
        bytes / rows.max(1)
    }

    /// The rows of a table that the transaction has written to.
    fn overlaid(
        &self,
        overlaid: &Overlaid,
        columns: &[usize],
    ) -> crate::error::Result<Vec<RecordBatch>> {
        let mut rows = overlaid.rows.lock();
        if let Some(overlay) = overlaid.overlay.lock().take() {
            let all: Vec<usize> = (0..self.schema.fields().len()).collect();
            let before = read(&self.snapshots, self.epoch, &all).collect();
            *rows = Some(overlay.apply(before)?);
        }
        let project = |rows: &RecordBatch| Ok(rows.project(columns)?);
        rows.iter().flatten().map(project).collect()
    }
}

impl fmt::Debug for RelationTable {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("RelationTable").field("epoch", &self.epoch).finish_non_exhaustive()
    }
}

#[async_trait]
impl TableProvider for RelationTable {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    async fn scan(
        &self,
        _: &dyn Session,
        projection: Option<&Vec<usize>>,
        _: &[Expr],
        _: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let columns =
            projection.cloned().unwrap_or_else(|| (0..self.schema.fields().len()).collect());
        let schema = Arc::new(self.schema.project(&columns)?);
        if let Some(overlaid) = &self.overlaid {
            let rows = self
                .overlaid(overlaid, &columns)
                .map_err(|error| DataFusionError::External(Box::new(error)))?;
            let plan: Arc<dyn ExecutionPlan> =
                MemorySourceConfig::try_new_exec(&[rows], schema, None)?;
            return Ok(plan);
        }
        let (epoch, snapshots) = (self.epoch, self.snapshots.clone());
        Ok(DataSourceExec::from_data_source(Scan { schema, columns, epoch, snapshots }))
    }
}

/// The rows of snapshots, one after the other.
fn read(
    snapshots: &[Snapshot],
    epoch: Epoch,
    columns: &[usize],
) -> impl Iterator<Item = RecordBatch> + Send + use<> {
    let rows: Vec<_> = snapshots.iter().map(|snapshot| snapshot.read(epoch, columns)).collect();
    rows.into_iter().flatten()
}

/// Some columns of a relation, decoded as they are read.
#[derive(Clone)]
struct Scan {
    /// Of these columns.
    schema: SchemaRef,
    columns: Vec<usize>,
    epoch: Epoch,
    snapshots: Vec<Snapshot>,
}

impl fmt::Debug for Scan {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Scan").field("columns", &self.columns).finish_non_exhaustive()
    }
}

impl DataSource for Scan {
    fn open(&self, _partition: usize, _: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let rows = read(&self.snapshots, self.epoch, &self.columns);
        let rows = futures::stream::iter(rows.map(Ok));
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema.clone(), rows)))
    }

    fn fmt_as(&self, _: DisplayFormatType, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> =
            self.schema.fields().iter().map(|field| field.name().as_str()).collect();
        write!(formatter, "columns=[{}]", names.join(", "))
    }

    fn output_partitioning(&self) -> Partitioning {
        Partitioning::UnknownPartitioning(1)
    }

    fn eq_properties(&self) -> EquivalenceProperties {
        EquivalenceProperties::new(self.schema.clone())
    }

    /// How many rows there are, near enough to choose the side of a join that is hashed.
    fn partition_statistics(&self, _partition: Option<usize>) -> Result<Arc<Statistics>> {
        let rows = self.snapshots.iter().map(Snapshot::updates).sum();
        let statistics = Statistics::new_unknown(&self.schema);
        Ok(Arc::new(statistics.with_num_rows(Precision::Inexact(rows))))
    }

    fn with_fetch(&self, _limit: Option<usize>) -> Option<Arc<dyn DataSource>> {
        None
    }

    fn fetch(&self) -> Option<usize> {
        None
    }

    fn apply_expressions(
        &self,
        _visit: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn try_swapping_with_projection(
        &self,
        _projection: &ProjectionExprs,
    ) -> Result<Option<Arc<dyn DataSource>>> {
        Ok(None)
    }
}
