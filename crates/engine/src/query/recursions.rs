//! Recursions whose columns may all be NULL.
//!
//! An operator may say that a column can be NULL where the plan says that it cannot, as one that catches errors does. DataFusion asks of
//! the operators of a recursion alone that they say what the plan says.

use std::borrow::Cow;
use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::LogicalPlan;

/// A plan, which is not optimized any more, whose recursions allow NULLs in their columns.
pub(super) fn with_nulls(plan: &LogicalPlan) -> Result<Cow<'_, LogicalPlan>> {
    if !plan.exists(|node| Ok(matches!(node, LogicalPlan::RecursiveQuery(_))))? {
        return Ok(Cow::Borrowed(plan));
    }
    let changed = plan.clone().transform_up(|node| match node {
        LogicalPlan::RecursiveQuery(mut query) => {
            let fields = query.schema.iter().map(|(relation, field)| {
                let field = field.as_ref().clone().with_nullable(true);
                (relation.cloned(), Arc::new(field))
            });
            let metadata = query.schema.metadata().clone();
            query.schema = Arc::new(DFSchema::new_with_metadata(fields.collect(), metadata)?);
            Ok(Transformed::yes(LogicalPlan::RecursiveQuery(query)))
        }
        node => Ok(Transformed::no(node)),
    })?;
    Ok(Cow::Owned(changed.data))
}
