//! Names, and relations in FROM, as syntax.

use sqlparser::ast::{Expr, Ident, ObjectName, Query, SelectItem, TableWithJoins};

use alluvium_sql_syntax::name::{self, SCHEMA};
pub(super) use alluvium_sql_syntax::syntax::simple_query as select;
use alluvium_sql_syntax::syntax::{from_query, from_table, known_as};

/// A name as it is, whatever its letters.
pub(super) fn exactly(name: impl Into<String>) -> Ident {
    Ident::with_quote('"', name)
}

/// `relation.column`
pub(super) fn column(relation: &str, column: &str) -> Expr {
    Expr::CompoundIdentifier(vec![exactly(relation), exactly(column)])
}

/// `expression AS name`
pub(super) fn named(expr: Expr, name: impl Into<String>) -> SelectItem {
    SelectItem::ExprWithAlias { expr, alias: exactly(name) }
}

/// `relation AS alias` in FROM.
pub(super) fn from(relation: &str, alias: &str) -> TableWithJoins {
    let (schema, name) = name::split(relation);
    let is_known_so = schema == SCHEMA && name == alias;
    let parts = if schema == SCHEMA { vec![name] } else { vec![schema, name] };
    let name = ObjectName::from(parts.into_iter().map(exactly).collect::<Vec<_>>());
    from_table(name, (!is_known_so).then(|| exactly(alias)))
}

/// A query in FROM.
pub(super) fn derived(query: Query, alias: &str) -> TableWithJoins {
    from_query(query, known_as(exactly(alias)))
}
