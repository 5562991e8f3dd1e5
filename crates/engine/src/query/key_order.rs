//! ORDER BY on the columns that rows are sorted by.
//!
//! A scan reads one worker's rows after the other's. Where its rows are sorted next, and the relation's key is that order, it
//! reads all workers' rows by key instead. DataFusion then drops the sort, and a LIMIT ends the scan.

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
            let Some(input) = by_key(sort.input())? else { return Ok(Transformed::no(plan)) };
            match input.equivalence_properties().ordering_satisfy(sort.expr().clone())? {
                true => Ok(Transformed::yes(replace_children_if_necessary(plan, vec![input])?)),
                false => Ok(Transformed::no(plan)),
            }
        })?;
        Ok(ordered.data)
    }
}

/// The plan with its scan by key, if there is nothing but filters and projections between.
fn by_key(plan: &Arc<dyn ExecutionPlan>) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    if let Some(source) = plan.downcast_ref::<DataSourceExec>() {
        let scan = source.data_source().downcast_ref::<Scan>().and_then(Scan::ordered);
        return Ok(scan.map(|scan| DataSourceExec::from_data_source(scan) as _));
    }
    match plan.children()[..] {
        [input] if plan.is::<FilterExec>() || plan.is::<ProjectionExec>() => {
            let Some(input) = by_key(input)? else { return Ok(None) };
            replace_children_if_necessary(plan.clone(), vec![input]).map(Some)
        }
        _ => Ok(None),
    }
}
