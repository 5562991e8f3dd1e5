//! RETURNING: the values that a statement returns of the rows that it changed.

use alluvium_sql_syntax::error::{Error, Position, Result};
use datafusion_expr::LogicalPlan;
use sqlparser::ast::{SelectItem, Spanned};

use super::Returning;
use super::query::{from, select};
use super::statement_rows::NAME;
use super::target::Target;
use crate::context::Scope;

/// The columns that `items` select of changed rows, which they name by `alias`.
pub(super) fn plan(
    items: &Option<Vec<SelectItem>>,
    target: &Target,
    alias: &str,
    scope: Scope<'_>,
) -> Result<Option<Returning>> {
    let Some(items) = items else { return Ok(None) };
    let at = items.first().and_then(|item| Position::of_span(item.span()));
    let query = select(items.clone(), vec![from(NAME, alias)], None);
    let plan = target.queried(query, scope).map_err(|error| error.at(at))?;
    match is_row_by_row(&plan) {
        true => Ok(Some(Returning { plan })),
        false => {
            let what = "an aggregate, a window function, UNNEST or a subquery in RETURNING";
            Err(Error::not_supported(what, at))
        }
    }
}

/// Whether a query only computes columns of the rows.
pub(super) fn is_row_by_row(plan: &LogicalPlan) -> bool {
    let mut has_subquery = false;
    let walked = plan.apply_subqueries(|_| {
        has_subquery = true;
        Ok(datafusion_common::tree_node::TreeNodeRecursion::Stop)
    });
    let LogicalPlan::Projection(projection) = plan else { return false };
    let is_of_rows = match projection.input.as_ref() {
        LogicalPlan::SubqueryAlias(alias) => {
            matches!(alias.input.as_ref(), LogicalPlan::TableScan(_))
        }
        LogicalPlan::TableScan(_) => true,
        _ => false,
    };
    walked.is_ok() && !has_subquery && is_of_rows
}
