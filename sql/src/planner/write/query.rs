//! Names, and relations in FROM, as syntax.

use sqlparser::ast::{
    Expr, Ident, ObjectName, Query, SelectItem, TableAlias, TableFactor, TableWithJoins,
};

use crate::name::{self, SCHEMA};
use crate::syntax::from_table;
pub(super) use crate::syntax::simple_query as select;

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
    let relation = TableFactor::Derived {
        lateral: false,
        subquery: Box::new(query),
        alias: Some(self::alias(alias)),
        sample: None,
    };
    TableWithJoins { relation, joins: Vec::new() }
}

fn alias(name: &str) -> TableAlias {
    TableAlias { explicit: true, name: exactly(name), columns: Vec::new(), at: None }
}
