//! Joins of more rows than a query has memory for.
//!
//! DataFusion's hash join keeps all rows of its build side in memory. One whose build side is larger than a query's share becomes a
//! join of sorted rows here: these are sorted in files where they must. How large it is, is estimated; a query that runs out of
//! memory before it has emitted a row runs again with all of its joins like that ([`MergeJoins::all`]).
//!
//! Stays as it is: a join with a key that DataFusion's merge join cannot compare as the hash join does, such as a float, and `NOT
//! IN`, which has to know of NULLs before it emits a row.

use std::sync::Arc;

use arrow::compute::SortOptions;
use arrow::datatypes::{DataType, Schema};
use datafusion::common::config::ConfigOptions;
use datafusion::common::stats::Precision;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::error::Result;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::joins::utils::JoinFilter;
use datafusion::physical_plan::joins::{HashJoinExec, SortMergeJoinExec};
use datafusion::physical_plan::projection::{ProjectionExec, ProjectionExpr};
use datafusion::physical_plan::statistics::{StatisticsArgs, StatisticsContext};

use super::memory::QueryMemory;

/// The bytes of a value whose type does not say how many it has.
const VALUE: usize = 16;

/// The bytes that a hash table takes beside the columns of a row.
const ENTRY: usize = 24;

/// Makes merge joins of hash joins whose build sides are too large. Runs once build sides are chosen, and before rows are sorted
/// where operators need it.
#[derive(Debug)]
pub(super) struct MergeJoins {
    /// `None` if all are too large.
    memory: Option<Arc<QueryMemory>>,
}

impl MergeJoins {
    /// Of those whose build sides are estimated to exceed what a query may hold.
    pub(super) fn above(memory: Arc<QueryMemory>) -> Self {
        Self { memory: Some(memory) }
    }

    /// Of all.
    pub(super) fn all() -> Self {
        Self { memory: None }
    }
}

impl PhysicalOptimizerRule for MergeJoins {
    fn name(&self) -> &str {
        "merge_joins"
    }

    fn schema_check(&self) -> bool {
        true
    }

    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let limit = self.memory.as_ref().map_or(0, |memory| memory.share());
        let merged = plan.transform_up(|plan| {
            let Some(join) = plan.downcast_ref::<HashJoinExec>() else {
                return Ok(Transformed::no(plan));
            };
            let is_large = self.memory.is_none() || build_bytes(join)? > Some(limit);
            match is_large && is_mergeable(join) {
                true => Ok(Transformed::yes(merge_join(join)?)),
                false => Ok(Transformed::no(plan)),
            }
        })?;
        Ok(merged.data)
    }
}

/// Whether a plan has a hash join that could be a merge join.
pub(super) fn has_mergeable(plan: &Arc<dyn ExecutionPlan>) -> Result<bool> {
    let is_mergeable = |plan: &Arc<dyn ExecutionPlan>| {
        Ok(plan.downcast_ref::<HashJoinExec>().is_some_and(is_mergeable))
    };
    plan.exists(is_mergeable)
}

/// The approximate size of the hash table of a join.
fn build_bytes(join: &HashJoinExec) -> Result<Option<usize>> {
    let statistics = StatisticsContext::new().compute(&**join.left(), &StatisticsArgs::new())?;
    let rows = match statistics.num_rows {
        Precision::Exact(rows) | Precision::Inexact(rows) => rows,
        Precision::Absent => return Ok(None),
    };
    Ok(Some(rows.saturating_mul(row_bytes(&join.left().schema()))))
}

fn row_bytes(schema: &Schema) -> usize {
    let fields = schema.fields().iter();
    let values = fields.map(|field| field.data_type().primitive_width().unwrap_or(VALUE));
    ENTRY + values.sum::<usize>()
}

fn is_mergeable(join: &HashJoinExec) -> bool {
    let schema = join.left().schema();
    let has_type = |key: &Arc<dyn PhysicalExpr>| key.data_type(&schema);
    let is_comparable = |key| has_type(key).is_ok_and(|key| is_comparable(&key));
    !join.null_aware && join.on().iter().all(|(key, _)| is_comparable(key))
}

/// Whether the merge join can compare values of a type, and finds the same ones equal as the hash join.
fn is_comparable(key: &DataType) -> bool {
    key.is_integer()
        || matches!(
            key,
            DataType::Boolean
                | DataType::Utf8
                | DataType::Binary
                | DataType::Decimal128(..)
                | DataType::Date32
                | DataType::Timestamp(_, None)
        )
}

/// The same join, of sorted rows.
fn merge_join(join: &HashJoinExec) -> Result<Arc<dyn ExecutionPlan>> {
    let merged: Arc<dyn ExecutionPlan> = Arc::new(SortMergeJoinExec::try_new(
        join.left().clone(),
        join.right().clone(),
        join.on().to_vec(),
        join.filter().map(with_nulls),
        *join.join_type(),
        vec![SortOptions::default(); join.on().len()],
        join.null_equality(),
    )?);
    let Some(columns) = &join.projection else { return Ok(merged) };
    let schema = merged.schema();
    let columns = columns.iter().map(|&column| {
        let name = schema.field(column).name();
        ProjectionExpr::new(Arc::new(Column::new(name, column)), name.clone())
    });
    Ok(Arc::new(ProjectionExec::try_new(columns.collect::<Vec<_>>(), merged)?))
}

/// The same condition of columns that may be NULL: DataFusion's merge join of outer joins also evaluates it for rows without a
/// match, and fails for these otherwise.
fn with_nulls(condition: &JoinFilter) -> JoinFilter {
    let fields = condition.schema().fields().iter();
    let fields = fields.map(|field| field.as_ref().clone().with_nullable(true));
    let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
    let columns = condition.column_indices().to_vec();
    JoinFilter::new(condition.expression().clone(), columns, schema)
}
