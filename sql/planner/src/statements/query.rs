//! Planning a query.

use alluvium_sql_syntax::error::{Error, Result};
use datafusion_expr::LogicalPlan;
use sqlparser::ast;

use crate::checks::extent::Extent;
use crate::context::{Context, Scope};
use crate::expressions::constant;
use crate::names::repeated_names;
use crate::names::selected_names;
use crate::names::unnested_names;
use crate::relations::asof;
use crate::relations::relation;
use crate::statements::recursion;
use crate::statements::set_operation;
use crate::subqueries::subquery;

/// The plan of a query that runs once.
pub(crate) fn plan(query: &ast::Query, scope: Scope<'_>) -> Result<LogicalPlan> {
    recursion::check_syntax(query)?;
    let mut distinct = query.clone();
    repeated_names::apart(&mut distinct);
    let plan = Context::new(scope)
        .plan(ast::Statement::Query(Box::new(distinct)))
        .and_then(|plan| unnested_names::name(plan, query))
        .map_err(|error| Error::from_datafusion(&error))?;
    Extent::of(&plan)?;
    recursion::check(&plan)?;
    let plan = set_operation::plan(plan)
        .and_then(relation::inline_views)
        .and_then(selected_names::apart)
        .and_then(subquery::decorrelate)
        .and_then(set_operation::expand)
        .and_then(asof::expand)
        .map_err(|error| Error::from_datafusion(&error))?;
    relation::check_kept(&plan)?;
    constant::check(&plan)?;
    Ok(plan)
}
