//! Queries that lock the rows of a table that they find: they return the keys of these as well.

use alluvium_sql_syntax::error::{Error, Position, Result};
use alluvium_sql_syntax::name;
use alluvium_sql_syntax::statement::{IfLocked, LockingQuery, fold, relation_name};
use datafusion_expr::LogicalPlan;
use sqlparser::ast::{self, Expr, Ident, LimitClause, SelectItem, SetExpr, TableFactor};

use crate::catalog::Relation;
use crate::context::{Scope, no_relation};
use crate::statements::query;

/// A query that locks rows, once it is planned.
#[derive(Clone, Debug)]
pub struct PlannedLocking {
    /// The table.
    pub table: String,
    /// Its rows. The key of the table's row follows the columns of the query.
    pub plan: LogicalPlan,
    /// How many columns the key has: none if the table has no key.
    pub key: usize,
    /// How many rows are skipped and returned at most, if the plan does not say so itself: rows are counted when they are locked.
    pub range: Option<RowRange>,
}

/// The rows of a query that are returned.
#[derive(Clone, Debug, Default)]
pub struct RowRange {
    /// How many there are at most.
    pub limit: Option<Expr>,
    /// How many come before them.
    pub offset: Option<Expr>,
}

/// The plan of a query that locks rows of one table.
pub(crate) fn plan(locking: &LockingQuery, scope: Scope<'_>) -> Result<PlannedLocking> {
    let mut query = (*locking.query).clone();
    let range = match locking.locked {
        // Those that others have locked do not count.
        IfLocked::Skip => Some(taken_range(&mut query)?),
        IfLocked::Wait | IfLocked::Fail => None,
    };
    let (table, row) = table(&query, locking)?;
    let key = match scope.catalog.relation(&table) {
        Some(Relation::Table { schema, primary_key, .. }) => {
            let names = primary_key.into_iter().map(|column| schema.field(column).name().clone());
            names.collect::<Vec<_>>()
        }
        Some(_) => {
            let what = "FOR UPDATE of anything but a table";
            return Err(Error::not_supported(what, Position::of(&query)));
        }
        None => return Err(no_relation(&table, scope.catalog).at(Position::of(&query))),
    };
    let plain = query.clone();
    if let SetExpr::Select(select) = query.body.as_mut() {
        for (number, column) in key.iter().enumerate() {
            let name = [row.clone(), Ident::with_quote('"', column)];
            let alias = Ident::with_quote('"', format!("part {number} of the key"));
            let expr = Expr::CompoundIdentifier(name.into());
            select.projection.push(SelectItem::ExprWithAlias { expr, alias });
        }
    }
    // An error in the query is reported for the query; if it has none, only the key is wrong there.
    let plan = query::plan(&query, scope)
        .map_err(|_| query::plan(&plain, scope).err().unwrap_or_else(|| not_rows(&plain)))?;
    Ok(PlannedLocking { table, plan, key: key.len(), range })
}

/// The table whose rows the query finds, and the name by which the query knows it.
fn table(query: &ast::Query, locking: &LockingQuery) -> Result<(String, Ident)> {
    let at = Position::of(query);
    let SetExpr::Select(select) = query.body.as_ref() else { return Err(not_rows(query)) };
    let is_grouped = match &select.group_by {
        ast::GroupByExpr::All(_) => true,
        ast::GroupByExpr::Expressions(by, _) => !by.is_empty(),
    };
    if select.distinct.is_some() || is_grouped || select.having.is_some() {
        return Err(not_rows(query));
    }
    let [from] = &select.from[..] else {
        return Err(Error::not_supported("FOR UPDATE of a query that reads several relations", at));
    };
    let TableFactor::Table { name, alias, args: None, .. } = &from.relation else {
        return Err(Error::not_supported("FOR UPDATE of anything but a table", at));
    };
    if !from.joins.is_empty() {
        return Err(Error::not_supported("FOR UPDATE of a query that reads several relations", at));
    }
    let (table, position) = relation_name(name)?;
    let with = query.with.iter().flat_map(|with| &with.cte_tables);
    if with.map(|table| fold(&table.alias.name)).any(|defined| defined == table) {
        return Err(Error::not_supported("FOR UPDATE of a query in WITH", position));
    }
    let known = match alias {
        Some(alias) => fold(&alias.name),
        None => name::split(&table).1,
    };
    if let Some((of, position)) = &locking.of
        && *of != known
        && *of != table
    {
        let message = format!("OF names \"{of}\", and the query reads \"{known}\"");
        return Err(Error::new(message, *position));
    }
    Ok((table, Ident::with_quote('"', known)))
}

/// Takes LIMIT and OFFSET out of a query.
fn taken_range(query: &mut ast::Query) -> Result<RowRange> {
    let at = Position::of(&*query);
    if query.fetch.is_some() {
        return Err(Error::not_supported("FETCH beside SKIP LOCKED (write LIMIT)", at));
    }
    Ok(match query.limit_clause.take() {
        None => RowRange::default(),
        Some(LimitClause::LimitOffset { limit, offset, .. }) => {
            RowRange { limit, offset: offset.map(|offset| offset.value) }
        }
        Some(LimitClause::OffsetCommaLimit { offset, limit }) => {
            RowRange { limit: Some(limit), offset: Some(offset) }
        }
    })
}

/// The rows that the query returns are not rows of a table.
fn not_rows(query: &ast::Query) -> Error {
    let message = "FOR UPDATE locks the rows that a query returns: it cannot be with DISTINCT, GROUP BY, aggregates, window functions, \
                   or UNION and its like";
    Error::new(message, Position::of(query))
}
