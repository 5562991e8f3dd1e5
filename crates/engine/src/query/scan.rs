//! Reading some columns of a relation's rows, all or those that a seek finds.

use std::fmt;
use std::sync::Arc;

use alluvium_dataflow::state::key_ranges::{KeyCondition, KeyRanges};
use alluvium_dataflow::state::snapshot::Snapshot;
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

use super::access_path::AccessPath;
use super::seek::{Seek, nulls_apart};
use crate::transaction::Overlay;

/// Some columns of a relation, decoded as they are read.
#[derive(Clone)]
pub(super) struct Scan {
    pub(super) relation: Arc<str>,
    /// Of these columns.
    pub(super) schema: SchemaRef,
    pub(super) columns: Arc<[usize]>,
    pub(super) epoch: Epoch,
    /// The rows of the relation, in the orders in which they are kept. The relation's own comes first.
    pub(super) paths: Arc<[AccessPath]>,
    /// Which of them is read.
    pub(super) path: usize,
    /// The changes of the transaction that reads.
    pub(super) overlay: Option<Arc<Overlay>>,
    /// Which keys are read; all without.
    pub(super) seek: Option<Seek>,
    pub(super) order: Order,
    /// How many rows are read at most; only without an overlay.
    pub(super) limit: Option<usize>,
}

/// The order in which rows come.
#[derive(Clone)]
pub(super) enum Order {
    /// One worker's after the other's.
    None,
    /// By key: NULL comes first.
    Key,
    /// By key, NULL last. The keys of rows with NULL in the first column where that may be come apart, after all others, if
    /// there may be such rows.
    NullsLast(Option<[KeyRanges; 2]>),
}

type Rows = Box<dyn Iterator<Item = RecordBatch> + Send>;

impl Scan {
    /// The same scan with its rows in the orders in which they can come: those of the path that it seeks in, or of all if it
    /// seeks in none.
    pub(super) fn ordered(&self) -> Result<Vec<Self>> {
        if self.overlay.is_some() {
            return Ok(Vec::new());
        }
        let paths = match self.seek {
            Some(_) => self.path..self.path + 1,
            None => 0..self.paths.len(),
        };
        let mut ordered = Vec::new();
        for path in paths {
            for order in [Order::Key, Order::NullsLast(self.nulls_apart(path)?)] {
                let scan = Self { path, order, ..self.clone() };
                if !scan.sorted_by().is_empty() {
                    ordered.push(scan);
                }
            }
        }
        Ok(ordered)
    }

    /// The order of rows as they come, as far as the key's columns are read. It ends before floats: as keys, -0.0 and 0.0 are
    /// one.
    pub(super) fn sorted_by(&self) -> Vec<PhysicalSortExpr> {
        let Some(path) = self.paths.get(self.path) else { return Vec::new() };
        let Some(layout) = path.layout() else { return Vec::new() };
        let nulls_first = match self.order {
            Order::None => return Vec::new(),
            Order::Key => true,
            Order::NullsLast(_) => false,
        };
        // Only the first column with NULLs has them last.
        let nulls_at = self.nulls_at(path);
        let end = match &self.order {
            Order::NullsLast(Some(_)) => nulls_at.map(|place| place + 1),
            Order::NullsLast(None) => nulls_at,
            Order::Key | Order::None => None,
        };
        let options = SortOptions { descending: false, nulls_first };
        let key = path.key().iter().take(end.unwrap_or(usize::MAX));
        let sorted = key.map_while(|&key| {
            let field = layout.schema().field(key);
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

    /// The conditions of the seek on the first columns of the key.
    fn conditions(&self) -> &[KeyCondition] {
        self.seek.as_ref().map_or(&[], |seek| &seek.conditions)
    }

    /// The first column of the key in which the rows of a path may have NULL and something else, by its place in the key.
    fn nulls_at(&self, path: &AccessPath) -> Option<usize> {
        let schema = path.layout()?.schema();
        let has_nulls = |&place: &usize| schema.field(path.key()[place]).is_nullable();
        let several = |&place: &usize| match self.conditions().get(place) {
            None => true,
            Some(KeyCondition::In(values)) => values.null_count() > 0 && values.len() > 1,
            Some(KeyCondition::Between(..)) => false,
        };
        (0..path.key().len()).find(|place| has_nulls(place) && several(place))
    }

    /// The keys that the scan reads of a path, those with NULL in the first column that may have it apart, if they are otherwise
    /// contiguous.
    fn nulls_apart(&self, path: usize) -> Result<Option<[KeyRanges; 2]>> {
        let path = &self.paths[path];
        match (self.nulls_at(path), path.layout()) {
            (Some(place), Some(layout)) if place == self.conditions().len() => {
                nulls_apart(self.conditions(), layout)
            }
            _ => Ok(None),
        }
    }

    /// The rows, with the transaction's changes.
    pub(super) fn rows(&self) -> Box<dyn Iterator<Item = Result<RecordBatch>> + Send> {
        match &self.overlay {
            None => {
                let rows = self.read(&self.columns);
                let rows = match self.limit {
                    Some(limit) => first(limit, rows),
                    None => rows,
                };
                Box::new(rows.map(Ok))
            }
            Some(overlay) => {
                // The writes of the transaction are sorted by the relation's own key.
                let ranges = self.seek.as_ref().filter(|_| self.path == 0).map(|seek| &seek.ranges);
                let before = self.read(&overlay.columns_to_read(&self.columns));
                let rows = overlay.apply(&self.columns, ranges, before);
                Box::new(
                    rows.map(|rows| {
                        rows.map_err(|error| DataFusionError::External(Box::new(error)))
                    }),
                )
            }
        }
    }

    /// The rows without the transaction's changes.
    fn read(&self, columns: &[usize]) -> Rows {
        let Some(AccessPath { snapshots, .. }) = self.paths.get(self.path) else {
            return Box::new(std::iter::empty());
        };
        let ranges = match &self.order {
            Order::NullsLast(Some(parts)) => parts.to_vec(),
            Order::Key | Order::NullsLast(None) if self.seek.is_none() => vec![KeyRanges::all()],
            _ => self.seek.iter().map(|seek| seek.ranges.clone()).collect(),
        };
        if ranges.is_empty() {
            let read = |snapshot: &Snapshot| snapshot.read(self.epoch, columns);
            let rows: Vec<_> = snapshots.iter().map(read).collect();
            return Box::new(rows.into_iter().flatten());
        }
        let (snapshots, columns, epoch) = (snapshots.clone(), columns.to_vec(), self.epoch);
        let read =
            move |ranges| Snapshot::read_ranges(&snapshots, epoch, &columns, &ranges).into_iter();
        Box::new(ranges.into_iter().flat_map(read).flatten())
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
        let rows = futures::stream::iter(self.rows());
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema.clone(), rows)))
    }

    fn fmt_as(&self, _: DisplayFormatType, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> =
            self.schema.fields().iter().map(|field| field.name().as_str()).collect();
        write!(formatter, "relation={}, columns=[{}]", self.relation, names.join(", "))?;
        if let Some(AccessPath { index: Some(index), .. }) = self.paths.get(self.path) {
            write!(formatter, ", index={index}")?;
        }
        if let Some(seek) = &self.seek {
            write!(formatter, ", {seek}")?;
        }
        match self.order {
            Order::None => {}
            Order::Key => write!(formatter, ", by key")?,
            Order::NullsLast(_) => write!(formatter, ", by key, NULL last")?,
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
        let schema = self.schema.clone();
        match self.sorted_by() {
            order if order.is_empty() => EquivalenceProperties::new(schema),
            order => EquivalenceProperties::new_with_orderings(schema, [order]),
        }
    }

    /// How many rows there are, near enough to choose the side of a join that is hashed.
    fn partition_statistics(&self, _partition: Option<usize>) -> Result<Arc<Statistics>> {
        let rows = |snapshot: &Snapshot| match &self.seek {
            Some(seek) => snapshot.updates_in(&seek.ranges),
            None => snapshot.updates(),
        };
        let snapshots = self.paths.get(self.path).map_or(&[][..], |path| &path.snapshots);
        let rows = snapshots.iter().map(rows).sum();
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
