//! The rows of a statement that is running: plans scan them before they are there.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion_common::Result;
use datafusion_common::tree_node::{Transformed, TransformedResult};
use datafusion_expr::{LogicalPlan, TableScan, TableSource};

use crate::LiteralRows;

/// The name by which a query scans them. No relation has it.
pub const NAME: &str = "\u{1}rows of the statement";

/// Their columns.
#[derive(Debug)]
pub struct StatementRows {
    pub schema: SchemaRef,
}

impl TableSource for StatementRows {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}

/// The plan with these rows in their place.
pub(super) fn put(plan: LogicalPlan, rows: &RecordBatch) -> Result<LogicalPlan> {
    plan.transform_up_with_subqueries(|node| match node {
        LogicalPlan::TableScan(scan) if scan.source.downcast_ref::<StatementRows>().is_some() => {
            let source = Arc::new(LiteralRows::new(rows.clone()));
            Ok(Transformed::yes(LogicalPlan::TableScan(TableScan { source, ..scan })))
        }
        node => Ok(Transformed::no(node)),
    })
    .data()
}
