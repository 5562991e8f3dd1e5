//! Reading some columns of a relation's rows, all or those that a seek finds.

use std::fmt;
use std::sync::Arc;

use alluvium_dataflow::key_ranges::KeyRanges;
use alluvium_dataflow::snapshot::Snapshot;
use alluvium_trace::Epoch;
use arrow::array::RecordBatch;
use arrow::compute::SortOptions;
use arrow::datatypes::{DataType, SchemaRef};
use datafusion::common::Statistics;
use datafusion::common::stats::Precision;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::datasource::source::DataSource;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::projection::ProjectionExprs;
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr, PhysicalSortExpr};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayFormatType, Partitioning};

use super::seek::Seek;
use crate::transaction::Overlay;

/// Some columns of a relation, decoded as they are read.
#[derive(Clone)]
pub(super) struct Scan {
    /// Of these columns.
    pub(super) schema: SchemaRef,
    pub(super) columns: Arc<[usize]>,
    pub(super) epoch: Epoch,
    /// One per worker.
    pub(super) snapshots: Arc<[Snapshot]>,
    /// The changes of the transaction that reads.
    pub(super) overlay: Option<Arc<Overlay>>,
    /// Which keys are read; all without.
    pub(super) seek: Option<Seek>,
    /// Whether rows come by key, instead of one worker's after the other's.
    pub(super) is_ordered: bool,
    /// How many rows are read at most; only without an overlay.
    pub(super) limit: Option<usize>,
}

type Rows = Box<dyn Iterator<Item = RecordBatch> + Send>;

impl Scan {
    /// The same scan with its rows by key. `None` if they cannot come so.
    pub(super) fn ordered(&self) -> Option<Self> {
        let has_order = self.overlay.is_none() && !self.order().is_empty();
        has_order.then(|| Self { is_ordered: true, ..self.clone() })
    }

    /// The order of rows that come by key, as far as the key's columns are read. It ends before floats: as keys, -0.0 and
    /// 0.0 are one.
    pub(super) fn order(&self) -> Vec<PhysicalSortExpr> {
        let Some(first) = self.snapshots.first() else { return Vec::new() };
        let options = SortOptions { descending: false, nulls_first: true };
        let key = first.layout().sorted_by().iter();
        let sorted = key.map_while(|&key| {
            let field = first.schema().field(key);
            let place = self.columns.iter().position(|&column| column == key)?;
            let is_comparable = super::seek::is_comparable(field.data_type())
                && !matches!(field.data_type(), DataType::Float32 | DataType::Float64);
            is_comparable.then(|| PhysicalSortExpr {
                expr: Arc::new(Column::new(field.name(), place)),
                options,
            })
        });
        sorted.collect()
    }

    /// The rows without the transaction's changes.
    fn read(&self, columns: &[usize]) -> Rows {
        if self.seek.is_some() || self.is_ordered {
            let all = KeyRanges::all();
            let ranges = self.seek.as_ref().map_or(&all, |seek| &seek.ranges);
            let rows = Snapshot::read_ranges(&self.snapshots, self.epoch, columns, ranges);
            return Box::new(rows.into_iter().flatten());
        }
        let read = |snapshot: &Snapshot| snapshot.read(self.epoch, columns);
        let rows: Vec<_> = self.snapshots.iter().map(read).collect();
        Box::new(rows.into_iter().flatten())
    }
}

/// The first `left` of some rows.
fn first(mut left: usize, mut rows: Rows) -> Rows {
    Box::new(std::iter::from_fn(move || {
        if left == 0 {
            return None;
        }
        let rows = rows.next()?;
        let rows = rows.slice(0, left.min(rows.num_rows()));
        left -= rows.num_rows();
        Some(rows)
    }))
}

impl fmt::Debug for Scan {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Scan").field("columns", &self.columns).finish_non_exhaustive()
    }
}

impl DataSource for Scan {
    fn open(&self, _partition: usize, _: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let schema = self.schema.clone();
        Ok(match &self.overlay {
            None => {
                let rows = self.read(&self.columns);
                let rows = match self.limit {
                    Some(limit) => first(limit, rows),
                    None => rows,
                };
                let rows = futures::stream::iter(rows.map(Ok));
                Box::pin(RecordBatchStreamAdapter::new(schema, rows))
            }
            Some(overlay) => {
                let ranges = self.seek.as_ref().map(|seek| &seek.ranges);
                let before = self.read(&overlay.columns_to_read(&self.columns));
                let rows = overlay.apply(&self.columns, ranges, before);
                let rows = rows
                    .map(|rows| rows.map_err(|error| DataFusionError::External(Box::new(error))));
                Box::pin(RecordBatchStreamAdapter::new(schema, futures::stream::iter(rows)))
            }
        })
    }

    fn fmt_as(&self, _: DisplayFormatType, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> =
            self.schema.fields().iter().map(|field| field.name().as_str()).collect();
        write!(formatter, "columns=[{}]", names.join(", "))?;
        if let Some(seek) = &self.seek {
            write!(formatter, ", {seek}")?;
        }
        if self.is_ordered {
            write!(formatter, ", by key")?;
        }
        match self.limit {
            Some(limit) => write!(formatter, ", limit={limit}"),
            None => Ok(()),
        }
    }

    fn output_partitioning(&self) -> Partitioning {
        Partitioning::UnknownPartitioning(1)
    }

    fn eq_properties(&self) -> EquivalenceProperties {
        match self.is_ordered {
            true => EquivalenceProperties::new_with_orderings(self.schema.clone(), [self.order()]),
            false => EquivalenceProperties::new(self.schema.clone()),
        }
    }

    /// How many rows there are, near enough to choose the side of a join that is hashed.
    fn partition_statistics(&self, _partition: Option<usize>) -> Result<Arc<Statistics>> {
        let rows = |snapshot: &Snapshot| match &self.seek {
            Some(seek) => snapshot.updates_in(&seek.ranges),
            None => snapshot.updates(),
        };
        let rows = self.snapshots.iter().map(rows).sum();
        let statistics = Statistics::new_unknown(&self.schema);
        Ok(Arc::new(statistics.with_num_rows(Precision::Inexact(rows))))
    }

    fn with_fetch(&self, limit: Option<usize>) -> Option<Arc<dyn DataSource>> {
        self.overlay.is_none().then(|| Arc::new(Self { limit, ..self.clone() }) as _)
    }

    fn fetch(&self) -> Option<usize> {
        self.limit
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
