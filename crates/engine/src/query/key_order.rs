//! ORDER BY on the columns that rows are sorted by.
//!
//! A scan reads one worker's rows after the other's. Where its rows are sorted next, and the relation's key or an index is that
//! order, it reads all workers' rows by that instead. DataFusion then drops the sort, and a LIMIT ends the scan.

use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::datasource::source::DataSourceExec;
use datafusion::error::Result;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::execution_plan::replace_children_if_necessary;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties};

use super::scan::Scan;

/// Orders the scans below sorts. It is to come before the rules that drop sorts.
#[derive(Debug)]
pub(super) struct KeyOrder;

impl PhysicalOptimizerRule for KeyOrder {
    fn name(&self) -> &str {
        "key_order"
    }

    fn schema_check(&self) -> bool {
        true
    }

    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let ordered = plan.transform_up(|plan| {
            let Some(sort) = plan.downcast_ref::<SortExec>() else {
                return Ok(Transformed::no(plan));
            };
            for scan in orders(sort.input())? {
                let input = reading(sort.input(), scan)?;
                if input.equivalence_properties().ordering_satisfy(sort.expr().clone())? {
                    return Ok(Transformed::yes(replace_children_if_necessary(plan, vec![input])?));
                }
            }
            Ok(Transformed::no(plan))
        })?;
        Ok(ordered.data)
    }
}

/// The scan of a plan in the orders in which its rows can come, if there is nothing but filters and projections above it.
fn orders(plan: &Arc<dyn ExecutionPlan>) -> Result<Vec<Scan>> {
    if let Some(source) = plan.downcast_ref::<DataSourceExec>() {
        let scan = source.data_source().downcast_ref::<Scan>();
        return scan.map_or_else(|| Ok(Vec::new()), Scan::ordered);
    }
    match plan.children()[..] {
        [input] if plan.is::<FilterExec>() || plan.is::<ProjectionExec>() => orders(input),
        _ => Ok(Vec::new()),
    }
}

/// The plan with this scan in the place of its own.
fn reading(plan: &Arc<dyn ExecutionPlan>, scan: Scan) -> Result<Arc<dyn ExecutionPlan>> {
    match plan.children()[..] {
        [input] => replace_children_if_necessary(plan.clone(), vec![reading(input, scan)?]),
        _ => Ok(DataSourceExec::from_data_source(scan)),
    }
}
