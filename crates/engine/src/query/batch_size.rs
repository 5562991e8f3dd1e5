//! How many rows the batches of a query have.
//!
//! An operator makes batches of equally many rows, however long these are: a literal of a megabyte, selected beside
//! each row, would fill gigabytes. Where rows are long, batches have fewer.

use alluvium_dataflow::movement::delta::DELTA_ROWS;
use datafusion::common::Result;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::datasource::source_as_provider;
use datafusion::logical_expr::{Expr, LogicalPlan};

use super::table::RelationTable;

/// The largest number of rows of a batch: that of a delta, so that what a scan reads is not cut.
pub(super) const MOST: usize = DELTA_ROWS;

/// The bytes of the longest batches, about, where memory is plentiful.
const BYTES: usize = 32 << 20;

/// The part of the memory of queries that a batch may take: a sort merges many at once.
const PART: usize = 32;

/// Literals of fewer bytes may as well be in lists.
const LONG: usize = 1 << 10;

/// The number of rows of the batches of a plan, by its long literals and by the mean size of the rows it scans, if queries have
/// so much memory.
pub(super) fn of(plan: &LogicalPlan, memory: usize) -> Result<usize> {
    let mut row = 0;
    plan.apply_with_subqueries(|node| {
        match node {
            // Each of its literals is one value, and not one for each row.
            LogicalPlan::Values(_) => {}
            LogicalPlan::TableScan(scan) => {
                if let Ok(provider) = source_as_provider(&scan.source)
                    && let Some(table) = provider.downcast_ref::<RelationTable>()
                {
                    row += table.row_bytes();
                }
            }
            _ => {
                node.apply_expressions(|expression| {
                    expression.apply(|part| {
                        if let Expr::Literal(value, _) = part {
                            row += Some(value.size()).filter(|&size| size >= LONG).unwrap_or(0);
                        }
                        Ok(TreeNodeRecursion::Continue)
                    })
                })?;
            }
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok((BYTES.min(memory / PART) / row.max(1)).clamp(1, MOST))
}
