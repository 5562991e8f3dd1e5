//! Columns of one name in the result of a query.
//!
//! `SELECT a, b AS a` and `SELECT *, a` have two columns `a`, which DataFusion refuses, as it must in a subquery: they could not
//! be named. In the result of a statement they are told apart by their places. So the later ones get names that no
//! column has, and lose what makes them so when the result is there.

use std::collections::HashSet;
use std::convert::Infallible;
use std::ops::ControlFlow;
use std::sync::Arc;

use arrow::datatypes::{Schema, SchemaRef};
use sqlparser::ast::{Expr, Ident, Query, SelectItem, SetExpr, Visit, Visitor};

use alluvium_sql_syntax::statement::fold;

/// Follows the name of a column that is not the first of its name; a number follows it.
const MARK: char = '\u{1}';

/// Gives columns of one name different ones.
pub(crate) fn apart(query: &mut Query) {
    let mut named = Named::default();
    let ControlFlow::Continue(()) = query.order_by.visit(&mut named);
    body_apart(&mut query.body, &named);
}

fn body_apart(body: &mut SetExpr, named: &Named) {
    match body {
        SetExpr::Select(select) => {
            let mut named = named.clone();
            let ControlFlow::Continue(()) = select.group_by.visit(&mut named);
            let ControlFlow::Continue(()) = select.having.visit(&mut named);
            let ControlFlow::Continue(()) = select.qualify.visit(&mut named);
            items_apart(&mut select.projection, &named);
        }
        SetExpr::Query(query) => body_apart(&mut query.body, named),
        SetExpr::SetOperation { left, right, .. } => {
            body_apart(left, named);
            body_apart(right, named);
        }
        _ => {}
    }
}

fn items_apart(items: &mut [SelectItem], named: &Named) {
    let has_all = items.iter().any(|item| matches!(item, SelectItem::Wildcard(_)));
    let has_some = items.iter().any(|item| matches!(item, SelectItem::QualifiedWildcard(..)));
    let mut taken = HashSet::new();
    for (number, item) in items.iter_mut().enumerate() {
        // Beside `*`, a column is one of those; another expression may have the name of one.
        let (expr, name, may_repeat) = match item {
            SelectItem::ExprWithAlias { expr, alias } => {
                let name = fold(alias);
                let is_named = named.names.contains(&name);
                (expr, name, has_all && !is_named)
            }
            SelectItem::UnnamedExpr(expr) => match column(expr) {
                Some(name) => {
                    let name = fold(name);
                    let may_be_some = has_some && !named.names.contains(&name);
                    (expr, name, has_all || may_be_some)
                }
                None => continue,
            },
            _ => continue,
        };
        if taken.insert(name.clone()) && !may_repeat {
            continue;
        }
        let expr = std::mem::replace(expr, Expr::value(sqlparser::ast::Value::Null));
        let alias = Ident::with_quote('"', format!("{name}{MARK}{number}"));
        *item = SelectItem::ExprWithAlias { expr, alias };
    }
}

/// The names by which other clauses may mean selected columns.
#[derive(Clone, Default)]
struct Named {
    names: HashSet<String>,
}

impl Visitor for Named {
    type Break = Infallible;

    fn pre_visit_expr(&mut self, expression: &Expr) -> ControlFlow<Infallible> {
        if let Expr::Identifier(name) = expression {
            self.names.insert(fold(name));
        }
        ControlFlow::Continue(())
    }
}

fn column(mut expression: &Expr) -> Option<&Ident> {
    loop {
        expression = match expression {
            Expr::Nested(inner) => inner,
            Expr::Identifier(name) => return Some(name),
            Expr::CompoundIdentifier(parts) => return parts.last(),
            _ => return None,
        }
    }
}

/// The name that a column was given, if it was told apart from another one.
pub(crate) fn written(name: &str) -> Option<String> {
    name.split_once(MARK).map(|(name, _)| name.to_owned())
}

/// The columns of a result with the names that they were given; `None` if these are as they were.
pub fn as_written(schema: &Schema) -> Option<SchemaRef> {
    if !schema.fields().iter().any(|field| field.name().contains(MARK)) {
        return None;
    }
    let fields = schema.fields().iter().map(|field| match written(field.name()) {
        Some(name) => Arc::new(field.as_ref().clone().with_name(name)),
        None => Arc::clone(field),
    });
    let fields: Vec<_> = fields.collect();
    Some(Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone())))
}
