//! WITH in front of INSERT, UPDATE and DELETE.
//!
//! The parser makes such a statement the body of a query. Each query in the statement gets the WITH, and a relation of
//! FROM or USING that names one of its queries becomes a query itself.

use std::convert::Infallible;
use std::ops::ControlFlow;

use sqlparser::ast::{
    FromTable, Query, SelectItem, SetExpr, Statement, TableFactor, VisitMut, VisitorMut,
    WildcardAdditionalOptions, With,
};

use super::simple_query::{from_query, from_table, known_as, simple_query};
use crate::error::{Error, Position, Result};
use crate::statement::fold;

/// The change that a query has as its body, with the query's WITH in the queries of the change; `None` if it has none.
///
/// # Errors
/// If the query has clauses after the change.
pub fn change(query: &Query) -> Result<Option<Statement>> {
    let (Some(with), SetExpr::Insert(change) | SetExpr::Update(change) | SetExpr::Delete(change)) =
        (&query.with, query.body.as_ref())
    else {
        return Ok(None);
    };
    if query.order_by.is_some() || query.limit_clause.is_some() || query.fetch.is_some() {
        let message = "ORDER BY and LIMIT are not for INSERT, UPDATE and DELETE";
        return Err(Error::new(message, Position::of(query)));
    }
    let (with, mut change) = (with.clone(), change.clone());
    let target = match &change {
        Statement::Update(update) => Some(update.table.relation.clone()),
        Statement::Delete(delete) => {
            let (FromTable::WithFromKeyword(from) | FromTable::WithoutKeyword(from)) = &delete.from;
            from.first().map(|table| table.relation.clone())
        }
        _ => None,
    };
    let mut spread = Spread { with, target, depth: 0 };
    let ControlFlow::Continue(()) = VisitMut::visit(&mut change, &mut spread);
    Ok(Some(change))
}

/// Adds the WITH to a query, around its own.
fn add(with: &With, query: &mut Query) {
    match query.with {
        None => query.with = Some(with.clone()),
        Some(_) => {
            let inner = std::mem::replace(query, simple_query(Vec::new(), Vec::new(), None));
            query.with = Some(with.clone());
            *query.body = SetExpr::Query(Box::new(inner));
        }
    }
}

struct Spread {
    with: With,
    /// The table that changes.
    target: Option<TableFactor>,
    /// How many queries are around.
    depth: usize,
}

impl VisitorMut for Spread {
    type Break = Infallible;

    fn pre_visit_query(&mut self, _: &mut Query) -> ControlFlow<Infallible> {
        self.depth += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, query: &mut Query) -> ControlFlow<Infallible> {
        self.depth -= 1;
        if self.depth == 0 {
            add(&self.with, query);
        }
        ControlFlow::Continue(())
    }

    fn post_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<Infallible> {
        let is_target = self.target.as_ref() == Some(&*factor);
        if self.depth == 0
            && !is_target
            && let TableFactor::Table { name, alias, args: None, .. } = &*factor
            && let [part] = &name.0[..]
            && let Some(ident) = part.as_ident()
            && self.with.cte_tables.iter().any(|query| fold(&query.alias.name) == fold(ident))
        {
            let alias = alias.clone().unwrap_or_else(|| known_as(ident.clone()));
            let all = SelectItem::Wildcard(WildcardAdditionalOptions::default());
            let mut query = simple_query(vec![all], vec![from_table(name.clone(), None)], None);
            query.with = Some(self.with.clone());
            *factor = from_query(query, alias).relation;
        }
        ControlFlow::Continue(())
    }
}
