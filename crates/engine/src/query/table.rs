//! A relation's rows as of one epoch, as DataFusion finds them.

use std::fmt;
use std::sync::Arc;

use alluvium_dataflow::state::snapshot::Snapshot;
use alluvium_sql::planner::RelationSource;
use alluvium_trace::Epoch;
use arrow::datatypes::SchemaRef;
use async_trait::async_trait;
use datafusion::catalog::Session;
use datafusion::datasource::source::DataSourceExec;
use datafusion::datasource::{TableProvider, TableType};
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableScan};
use datafusion::physical_plan::ExecutionPlan;

use super::access_path::{AccessPath, choose};
use super::scan::{Order, Scan};
use super::seek::is_on_key;
use crate::catalog::Entry;
use crate::transaction::{Noted, Overlay};

/// A relation, pinned. Only the columns that a scan asks for are decoded, and only the keys that its filters leave are read.
pub(super) struct RelationTable {
    name: Arc<str>,
    schema: SchemaRef,
    epoch: Epoch,
    /// Its rows as the relation itself keeps them, and then as each of its indexes does.
    paths: Arc<[AccessPath]>,
    /// The changes of the transaction that reads.
    overlay: Option<Arc<Overlay>>,
    /// Where that notes what it reads.
    noted: Option<Noted>,
}

impl RelationTable {
    /// `paths` are the rows as the relation itself keeps them, and as its indexes do.
    pub(super) fn new(
        entry: &Entry,
        epoch: Epoch,
        paths: Vec<AccessPath>,
        overlay: Option<Arc<Overlay>>,
    ) -> Self {
        let (name, schema) = (entry.name.as_str().into(), entry.schema.clone());
        Self { name, schema, epoch, paths: paths.into(), overlay, noted: None }
    }

    /// The same, for a transaction that notes what it reads.
    pub(super) fn noted(self, noted: Option<Noted>) -> Self {
        Self { noted, ..self }
    }

    /// The mean size of a row.
    pub(super) fn row_bytes(&self) -> usize {
        let snapshots = self.paths.first().map_or(&[][..], |path| &path.snapshots);
        let rows: usize = snapshots.iter().map(Snapshot::updates).sum();
        let bytes: usize = snapshots.iter().map(Snapshot::bytes).sum();
        bytes / rows.max(1)
    }

    /// A scan of some columns, of the rows that filters may leave. The transaction depends on these from then on.
    pub(super) fn scan_of(
        &self,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Scan> {
        let columns =
            projection.cloned().unwrap_or_else(|| (0..self.schema.fields().len()).collect());
        let (path, seek) = choose(&self.paths, filters)?.unzip();
        if let Some(noted) = &self.noted {
            // Keys are those of the relation, not of an index.
            let own = seek.as_ref().filter(|_| path == Some(0));
            noted.add(own.map(|seek| &seek.ranges));
        }
        Ok(Scan {
            relation: self.name.clone(),
            schema: Arc::new(self.schema.project(&columns)?),
            columns: columns.into(),
            epoch: self.epoch,
            paths: self.paths.clone(),
            path: path.unwrap_or_default(),
            overlay: self.overlay.clone(),
            seek,
            order: Order::None,
            limit: limit.filter(|_| self.overlay.is_none()),
        })
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

    /// Filters on the columns of keys and indexes are seen, and evaluated again above the scan.
    fn supports_filters_pushdown(
        &self,
        filters: &[&Expr],
    ) -> Result<Vec<TableProviderFilterPushDown>> {
        let is_sought = |filter: &Expr| {
            self.paths.iter().any(|path| is_on_key(filter, &self.schema, path.key()))
        };
        let support = |filter: &&Expr| match is_sought(filter) {
            true => TableProviderFilterPushDown::Inexact,
            false => TableProviderFilterPushDown::Unsupported,
        };
        Ok(filters.iter().map(support).collect())
    }

    async fn scan(
        &self,
        _: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(DataSourceExec::from_data_source(self.scan_of(projection, filters, limit)?))
    }
}

/// The name of the relation that a scan reads.
pub(super) fn relation(scan: &TableScan) -> Option<&str> {
    scan.source.downcast_ref::<RelationSource>().map(RelationSource::name)
}
