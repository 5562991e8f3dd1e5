//! The values that SET assigns to the columns of a table.

use std::collections::BTreeMap;

use alluvium_sql_syntax::error::{Error, Position, Result};
use sqlparser::ast::{
    Assignment, AssignmentTarget, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments,
    ObjectName, Query, SetExpr, Spanned,
};

use super::defaults::{is_default, of_column};
use super::target::Target;

/// The value that each assigned column gets, by the number of the column.
pub(super) fn read(assignments: &[Assignment], target: &Target) -> Result<BTreeMap<usize, Expr>> {
    let mut values = BTreeMap::new();
    for Assignment { target: to, value } in assignments {
        match to {
            AssignmentTarget::ColumnName(column) => {
                assign(&mut values, column, value.clone(), target)?;
            }
            AssignmentTarget::Tuple(columns) => {
                let parts = parts(value, columns.len())?;
                for (column, value) in columns.iter().zip(parts) {
                    assign(&mut values, column, value, target)?;
                }
            }
        }
    }
    Ok(values)
}

fn assign(
    values: &mut BTreeMap<usize, Expr>,
    name: &ObjectName,
    value: Expr,
    target: &Target,
) -> Result<()> {
    let column = target.column(name)?;
    let value = match is_default(&value) {
        true => of_column(column),
        false => {
            target.check_given(column, Position::of(&value))?;
            value
        }
    };
    match values.insert(column, value) {
        None => Ok(()),
        Some(_) => {
            let message = format!("column \"{}\" is assigned twice", target.columns[column]);
            Err(Error::new(message, Position::of(name)))
        }
    }
}

/// The values for so many columns: `(x, y)`, `ROW(x, y)`, or the columns of a query.
fn parts(value: &Expr, columns: usize) -> Result<Vec<Expr>> {
    let parts = match value {
        Expr::Tuple(values) => values.clone(),
        Expr::Function(row) if row.name.to_string().eq_ignore_ascii_case("row") => arguments(row),
        Expr::Subquery(query) => return columns_of(query, columns),
        Expr::Nested(value) => vec![value.as_ref().clone()],
        value => vec![value.clone()],
    };
    check_count(parts.len(), columns, value)?;
    Ok(parts)
}

/// The arguments of `ROW(…)`.
fn arguments(row: &Function) -> Vec<Expr> {
    let FunctionArguments::List(list) = &row.args else { return Vec::new() };
    let arguments = list.args.iter().filter_map(|argument| match argument {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(value)) => Some(value.clone()),
        _ => None,
    });
    arguments.collect()
}

fn check_count(values: usize, columns: usize, at: &impl Spanned) -> Result<()> {
    match values == columns {
        true => Ok(()),
        false => {
            let s = |count: usize| if count == 1 { "" } else { "s" };
            let message = format!(
                "SET (…) names {columns} column{}, and there {} {values} value{}",
                s(columns),
                if values == 1 { "is" } else { "are" },
                s(values)
            );
            Err(Error::new(message, Position::of(at)))
        }
    }
}

/// The columns of a query of one row, each as a query of its own.
fn columns_of(query: &Query, columns: usize) -> Result<Vec<Expr>> {
    let SetExpr::Select(select) = query.body.as_ref() else {
        let what = "SET (…) = (a query that is not a SELECT)";
        return Err(Error::not_supported(what, Position::of(query)));
    };
    check_count(select.projection.len(), columns, query)?;
    let one = |place: usize| {
        let mut one = query.clone();
        if let SetExpr::Select(select) = one.body.as_mut() {
            select.projection.swap(0, place);
            select.projection.truncate(1);
        }
        Expr::Subquery(Box::new(one))
    };
    Ok((0..columns).map(one).collect())
}
