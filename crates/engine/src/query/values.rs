//! VALUES may be NULL in an INSERT: staging checks NOT NULL, with a better message.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::{LogicalPlan, Values};

/// The plan of an INSERT, with VALUES that may be NULL whatever the table's columns say.
///
/// DataFusion gives VALUES the nullability of the columns they go to, and fails on a NULL without being
/// able to name the table. Rows for a table are checked when they are staged.
pub(crate) fn allow_nulls(plan: LogicalPlan) -> Result<LogicalPlan> {
    let allowed = plan.transform_up(|node| match node {
        LogicalPlan::Values(Values { schema, values }) => {
            let fields = schema.iter().map(|(qualifier, field)| {
                (qualifier.cloned(), Arc::new(field.as_ref().clone().with_nullable(true)))
            });
            let schema = DFSchema::new_with_metadata(fields.collect(), schema.metadata().clone())?;
            Ok(Transformed::yes(LogicalPlan::Values(Values { schema: Arc::new(schema), values })))
        }
        node => Ok(Transformed::yes(node.recompute_schema()?)),
    })?;
    Ok(allowed.data)
}
