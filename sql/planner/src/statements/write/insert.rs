//! INSERT.

use std::collections::BTreeSet;

use alluvium_sql_syntax::error::{Error, Position, Result, SqlState};
use alluvium_sql_syntax::syntax::replaces;
use sqlparser::ast::helpers::attached_token::AttachedToken;
use sqlparser::ast::{self, Expr, SetExpr, TableObject, Values};

use super::defaults::{is_default, of_column};
use super::query::select;
use super::target::Target;
use super::{PlannedWrite, conflict, returning};
use crate::context::Scope;
use crate::names::repeated_names;

pub fn insert(insert: &ast::Insert, scope: Scope<'_>) -> Result<PlannedWrite> {
    let TableObject::TableName(name) = &insert.table else {
        return Err(Error::not_supported(
            "INSERT INTO a function or a query",
            Position::of(&insert.insert_token.0),
        ));
    };
    let target = Target::find(name, scope)?;
    let mut insert = insert.clone();
    if replaces(&insert) && target.key.is_empty() {
        let message = format!(
            "INSERT OR REPLACE needs a table with a PRIMARY KEY, and \"{}\" has none",
            target.name
        );
        return Err(Error::new(message, Some(target.position)));
    }
    insert.or = None;
    let (on, items) = (insert.on.take(), insert.returning.take());
    let columns = named(&insert, &target)?;
    let source = insert.source.get_or_insert_with(|| all_defaults(columns.len()));
    fill_values(source, &columns, &target)?;
    // They go by their places.
    repeated_names::apart(source);
    let plan = target.cast(target.inserted(insert, scope)?)?;
    Ok(PlannedWrite {
        plan,
        on_conflict: conflict::plan(&on, &target, scope)?,
        returning: returning::plan(&items, &target, &target.own_name, scope)?,
        table: target.name,
    })
}

/// The columns that get values, in the order of these.
fn named(insert: &ast::Insert, target: &Target) -> Result<Vec<usize>> {
    if insert.columns.is_empty() {
        return Ok((0..target.columns.len()).collect());
    }
    let mut named = BTreeSet::new();
    let columns = insert.columns.iter().map(|name| {
        let column = target.column(name)?;
        match named.insert(column) {
            true => Ok(column),
            false => {
                let message = format!("column \"{}\" appears twice", target.columns[column]);
                let error = Error::new(message, Position::of(name));
                Err(error.with_sqlstate(SqlState::DUPLICATE_COLUMN))
            }
        }
    });
    columns.collect()
}

/// `DEFAULT VALUES`: one row.
fn all_defaults(columns: usize) -> Box<ast::Query> {
    let default = || Expr::Identifier(ast::Ident::new("DEFAULT"));
    let content = (0..columns).map(|_| default()).collect();
    let parens = ast::Parens {
        opening_token: AttachedToken::empty(),
        content,
        closing_token: AttachedToken::empty(),
    };
    let values = Values { explicit_row: false, value_keyword: false, rows: vec![parens] };
    let mut query = select(Vec::new(), Vec::new(), None);
    query.body = Box::new(SetExpr::Values(values));
    Box::new(query)
}

/// Puts the DEFAULTs of their columns among VALUES. Fails at a row of another length than there are columns.
fn fill_values(source: &mut ast::Query, columns: &[usize], target: &Target) -> Result<()> {
    let SetExpr::Values(values) = source.body.as_mut() else {
        return columns.iter().try_for_each(|column| target.check_given(*column, None));
    };
    for (number, row) in values.rows.iter_mut().enumerate() {
        let (given, wanted) = (row.content.len(), columns.len());
        if given != wanted {
            let message = format!(
                "row {} of VALUES has {} for {} of \"{}\"",
                number + 1,
                counted(given, "value"),
                counted(wanted, "column"),
                target.name
            );
            let at = row.content.first().and_then(Position::of);
            return Err(Error::new(message, at.or(Some(target.position))));
        }
        for (value, column) in row.content.iter_mut().zip(columns) {
            match is_default(value) {
                true => *value = of_column(*column),
                false => target.check_given(*column, Position::of(&*value))?,
            }
        }
    }
    Ok(())
}

fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}
