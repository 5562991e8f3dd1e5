//! Views that recur: `DECLARE RECURSIVE VIEW`, and then `CREATE VIEW`.

use std::collections::BTreeSet;

use alluvium_sql_syntax::error::{self, Error};
use alluvium_sql_syntax::statement::ViewDefinition;
use arrow::datatypes::Schema;
use datafusion_common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion_common::{Result, plan_err};
use datafusion_expr::{Expr, LogicalPlan, LogicalPlanBuilder, cast};

use crate::catalog::{DeclaredView, Relation};
use crate::relations::relation::source_of;
use crate::type_name;

/// The views that a plan reads, itself or through others, and that are declared and not complete.
pub(crate) fn awaited(plan: &LogicalPlan) -> Result<BTreeSet<String>> {
    let mut found = BTreeSet::new();
    plan.apply_with_subqueries(|node| {
        if let LogicalPlan::TableScan(scan) = node
            && let Some(source) = source_of(scan.source.as_ref())
        {
            match source.relation() {
                Relation::Declared { recursion: None, .. } => {
                    found.insert(source.name().to_owned());
                }
                Relation::View { plan, .. } => found.extend(awaited(plan)?),
                _ => {}
            }
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(found)
}

/// Refuses clauses that a view that recurs cannot have.
pub(crate) fn check(view: &ViewDefinition) -> error::Result<()> {
    let refused = [
        (view.emit_final.is_some(), "final rows of a view that recurs"),
        (!view.lateness.is_empty(), "LATENESS of a view that recurs"),
    ];
    match refused.iter().find(|(is_said, _)| *is_said) {
        None => Ok(()),
        Some((_, what)) => {
            let message = format!("{what}: put it into a view over \"{}\"", view.name);
            Err(Error::not_supported(message, view.position))
        }
    }
}

/// The same rows with integers of the types that were declared: literals, and sums with them, are BIGINT.
pub(crate) fn with_integers(plan: LogicalPlan, declared: &Schema) -> Result<LogicalPlan> {
    let made = plan.schema().clone();
    // Its branches have no common types yet: it is said to have those of the first one.
    let has_union = plan.exists(|node| Ok(matches!(node, LogicalPlan::Union(_))))?;
    let columns = made.columns().into_iter().zip(made.fields()).enumerate();
    let mut is_as_declared = true;
    let columns: Vec<Expr> = columns
        .map(|(place, (column, made))| match declared.fields().get(place) {
            Some(field)
                if (has_union || field.data_type() != made.data_type())
                    && field.data_type().is_integer()
                    && made.data_type().is_integer() =>
            {
                is_as_declared = false;
                cast(Expr::Column(column), field.data_type().clone()).alias(made.name())
            }
            _ => Expr::Column(column),
        })
        .collect();
    match is_as_declared {
        true => Ok(plan),
        false => LogicalPlanBuilder::from(plan).project(columns)?.build(),
    }
}

/// Refuses columns that are not those that were declared.
pub fn check_columns(view: &DeclaredView, columns: &Schema) -> error::Result<()> {
    let (declared, name) = (view.schema.fields(), &view.name);
    let count = columns.fields().len();
    if declared.len() != count {
        let message = format!(
            "\"{name}\" was declared with {} columns, and its query has {count}",
            declared.len()
        );
        return Err(Error::new(message, None));
    }
    for (declared, made) in declared.iter().zip(columns.fields()) {
        let (column, is) = (declared.name(), type_name(made.data_type()));
        let what = if column != made.name() {
            format!("is called \"{}\" in its query: write AS \"{column}\"", made.name())
        } else if declared.data_type() != made.data_type() {
            let to = type_name(declared.data_type());
            format!("is {is} in its query: CAST it to {to}, or declare it so")
        } else if made.is_nullable() && !declared.is_nullable() {
            "can be NULL in its query: declare it without NOT NULL".to_owned()
        } else {
            continue;
        };
        let declared = type_name(declared.data_type());
        let message =
            format!("column \"{column}\" of \"{name}\" was declared {declared}, and {what}");
        return Err(Error::new(message, None));
    }
    Ok(())
}

/// Refuses to evaluate a view that recurs as a query.
pub(crate) fn refuse<T>(view: &str, is_complete: bool) -> Result<T> {
    match is_complete {
        true => plan_err!(
            "\"{view}\" recurs, so it can be queried if it keeps its rows: CREATE MATERIALIZED VIEW"
        ),
        false => plan_err!(
            "\"{view}\" is declared, and it, or a view that it recurs over, is not created yet: CREATE VIEW first"
        ),
    }
}
