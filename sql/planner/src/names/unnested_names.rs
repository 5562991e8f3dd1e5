//! Names for the columns of a result that UNNEST in SELECT computes and that have no alias.
//!
//! UNNEST of a list is one column, and of a struct as many as this has fields, which only the plan knows. So these are named as
//! DuckDB names them where a column is planned for each item, and as DataFusion does elsewhere.

use std::collections::HashSet;

use datafusion_common::Result;
use datafusion_expr::{Expr, LogicalPlan, LogicalPlanBuilder};
use sqlparser::ast::{Query, SelectItem, SetExpr};

use alluvium_sql_syntax::syntax::unnested_name_of;

/// The plan of `query`, whose columns are named.
pub(crate) fn name(plan: LogicalPlan, query: &Query) -> Result<LogicalPlan> {
    let items = items(&query.body);
    let schema = plan.schema();
    if items.len() != schema.fields().len() || items.iter().any(is_wildcard) {
        return Ok(plan);
    }
    let names: Vec<Option<String>> = items
        .iter()
        .map(|item| match item {
            SelectItem::UnnamedExpr(expression) => unnested_name_of(expression),
            _ => None,
        })
        .collect();
    if names.iter().all(Option::is_none) {
        return Ok(plan);
    }
    let others = schema.fields().iter().zip(&names).filter(|(_, name)| name.is_none());
    let mut taken: HashSet<String> = others.map(|(field, _)| field.name().clone()).collect();
    let columns = schema.columns().into_iter().zip(names).map(|(column, name)| {
        let Some(name) = name else { return Expr::Column(column) };
        let mut unique = name.clone();
        let mut number = 1;
        while !taken.insert(unique.clone()) {
            unique = format!("{name}_{number}");
            number += 1;
        }
        Expr::Column(column).alias(unique)
    });
    let columns: Vec<Expr> = columns.collect();
    LogicalPlanBuilder::from(plan).project(columns)?.build()
}

/// The items of the SELECT that names the columns.
fn items(mut body: &SetExpr) -> &[SelectItem] {
    loop {
        body = match body {
            SetExpr::Select(select) => return &select.projection,
            SetExpr::Query(query) => &query.body,
            SetExpr::SetOperation { left, .. } => left,
            _ => return &[],
        }
    }
}

fn is_wildcard(item: &SelectItem) -> bool {
    matches!(item, SelectItem::Wildcard(_) | SelectItem::QualifiedWildcard(..))
}
