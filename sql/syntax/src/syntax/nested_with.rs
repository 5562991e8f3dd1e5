//! Queries of WITH whose names hide those of a WITH around them.
//!
//! DataFusion refuses the second of one name. So it gets another one, and what reads it is `FROM "a 2" AS a`.

use std::convert::Infallible;
use std::ops::ControlFlow;

use sqlparser::ast::{Ident, ObjectName, Query, TableFactor, VisitMut, VisitorMut, With};

use super::simple_query::known_as;
use crate::statement::fold;

/// Gives such queries names of their own.
pub(super) fn rename(part: &mut impl VisitMut) {
    let ControlFlow::Continue(()) = part.visit(&mut Nested::default());
}

#[derive(Default)]
struct Nested {
    /// The WITH of each query around, or none, the outermost first.
    around: Vec<Scope>,
    renamed: usize,
}

/// The queries of a WITH.
struct Scope {
    queries: Vec<Named>,
    /// How many of them can be read: those that were visited.
    visible: usize,
    /// Whether all of them can be read by each other.
    is_recursive: bool,
}

struct Named {
    name: String,
    /// Its new name, if it has another.
    renamed: Option<Ident>,
}

impl Scope {
    fn visible(&self) -> &[Named] {
        match self.is_recursive {
            true => &self.queries,
            false => &self.queries[..self.visible],
        }
    }
}

impl Nested {
    fn scope(&mut self, with: &mut With) -> Scope {
        let mut queries = Vec::with_capacity(with.cte_tables.len());
        for query in &mut with.cte_tables {
            let name = fold(&query.alias.name);
            let is_hiding =
                self.around.iter().flat_map(|scope| &scope.queries).any(|other| other.name == name);
            let renamed = is_hiding.then(|| {
                self.renamed += 1;
                let new = Ident::with_quote('"', format!("{name} {}", self.renamed + 1));
                let new = Ident { span: query.alias.name.span, ..new };
                query.alias.name = new.clone();
                new
            });
            queries.push(Named { name, renamed });
        }
        Scope { queries, visible: 0, is_recursive: with.recursive }
    }
}

impl VisitorMut for Nested {
    type Break = Infallible;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Infallible> {
        let scope = match &mut query.with {
            Some(with) => self.scope(with),
            None => Scope { queries: Vec::new(), visible: 0, is_recursive: false },
        };
        self.around.push(scope);
        ControlFlow::Continue(())
    }

    /// The queries of a WITH are visited before the query that it belongs to.
    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<Infallible> {
        self.around.pop();
        if let Some(around) = self.around.last_mut() {
            around.visible = (around.visible + 1).min(around.queries.len());
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<Infallible> {
        if let TableFactor::Table { name, alias, args: None, .. } = factor
            && let [part] = &name.0[..]
            && let Some(ident) = part.as_ident()
        {
            let wanted = fold(ident);
            let mut visible =
                self.around.iter().rev().flat_map(|scope| scope.visible().iter().rev());
            if let Some(Named { renamed: Some(renamed), .. }) =
                visible.find(|query| query.name == wanted)
            {
                let own = Ident { span: ident.span, ..Ident::with_quote('"', wanted) };
                let renamed = Ident { span: ident.span, ..renamed.clone() };
                alias.get_or_insert_with(|| known_as(own));
                *name = ObjectName::from(vec![renamed]);
            }
        }
        ControlFlow::Continue(())
    }
}
