//! The relations that WITH defines around a place in a query.

use sqlparser::ast::Query;

use crate::name::fold;

/// The queries around a place, the outermost first. It is told of each query before and after its parts, as a
/// [walk](crate::walk) comes to them.
#[derive(Default)]
pub(super) struct Scopes(Vec<Scope>);

/// A query, and the relations that its WITH defines.
struct Scope {
    /// Each with the query that defines it, by its address.
    defined: Vec<(String, *const Query)>,
    is_recursive: bool,
    /// How many of them can be named at this place.
    visible: usize,
}

impl Scopes {
    /// A query begins.
    pub(super) fn enter(&mut self, query: &Query) {
        if let Some(scope) = self.0.last_mut()
            && let Some(number) =
                scope.defined.iter().position(|(_, body)| std::ptr::eq(*body, query))
        {
            scope.visible = if scope.is_recursive { scope.defined.len() } else { number };
        }
        let tables = query.with.iter().flat_map(|with| &with.cte_tables);
        let defined: Vec<_> = tables
            .map(|table| (fold(&table.alias.name), std::ptr::from_ref::<Query>(&table.query)))
            .collect();
        let is_recursive = query.with.as_ref().is_some_and(|with| with.recursive);
        self.0.push(Scope { visible: defined.len(), defined, is_recursive });
    }

    /// A query ends.
    pub(super) fn leave(&mut self, query: &Query) {
        self.0.pop();
        if let Some(scope) = self.0.last_mut()
            && scope.defined.iter().any(|(_, body)| std::ptr::eq(*body, query))
        {
            scope.visible = scope.defined.len();
        }
    }

    /// Whether WITH defines a relation of this folded name for this place.
    pub(super) fn define(&self, name: &str) -> bool {
        let visible =
            |scope: &Scope| scope.defined[..scope.visible].iter().any(|(it, _)| it == name);
        self.0.iter().any(visible)
    }
}
