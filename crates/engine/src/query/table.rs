//! A relation's rows as of one epoch, as DataFusion reads them.

use std::fmt;
use std::sync::Arc;

use alluvium_dataflow::contents::Snapshot;
use alluvium_trace::Epoch;
use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use async_trait::async_trait;
use datafusion::catalog::Session;
use datafusion::datasource::memory::MemorySourceConfig;
use datafusion::datasource::{TableProvider, TableType};
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::Expr;
use datafusion::physical_plan::ExecutionPlan;
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

/// A table with a transaction's writes: laid over each other on the first scan, since then rows.
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

    fn read(&self, columns: &[usize]) -> Vec<RecordBatch> {
        self.snapshots.iter().flat_map(|snapshot| snapshot.read(self.epoch, columns)).collect()
    }

    fn rows(&self, columns: &[usize]) -> crate::error::Result<Vec<RecordBatch>> {
        let Some(overlaid) = &self.overlaid else {
            return Ok(self.read(columns));
        };
        let mut rows = overlaid.rows.lock();
        if let Some(overlay) = overlaid.overlay.lock().take() {
            let all: Vec<usize> = (0..self.schema.fields().len()).collect();
            *rows = Some(overlay.apply(self.read(&all))?);
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
        let rows =
            self.rows(&columns).map_err(|error| DataFusionError::External(Box::new(error)))?;
        let plan: Arc<dyn ExecutionPlan> = MemorySourceConfig::try_new_exec(&[rows], schema, None)?;
        Ok(plan)
    }
}
