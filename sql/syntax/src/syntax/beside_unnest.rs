//! Aliases beside UNNEST in SELECT that columns of FROM have, too: `SELECT a + 1 AS a, UNNEST(l) FROM t`.
//!
//! DataFusion computes what is beside UNNEST below it, together with the columns of FROM that the items name, and could not
//! tell the two of one name apart. So such a column has another name there, and gets its own in a relation around, as
//! [`wildcards`](super::wildcards) makes one for RENAME.

use std::collections::HashSet;
use std::convert::Infallible;
use std::ops::ControlFlow;

use sqlparser::ast::{Expr, Ident, OrderBy, Select, SelectItem, Visit, Visitor, visit_expressions};

use super::calls::name_of;
use super::column_names::unnested_name_of;
use crate::statement::fold;

/// How the names begin that such columns have below.
const BELOW: &str = "!beside";

/// Gives such columns other names. Returns these, behind no qualifier, and those that they are to have.
///
/// Leaves them if the order of the query names columns of relations, which the relation around does not have.
pub(super) fn apart(select: &mut Select, order_by: Option<&OrderBy>) -> Vec<[Ident; 3]> {
    let unnests = |item: &SelectItem| expression(item).is_some_and(has_unnest);
    if !select.projection.iter().any(unnests) {
        return Vec::new();
    }
    let mut columns = Columns::default();
    let ControlFlow::Continue(()) = select.projection.visit(&mut columns);
    let mut order = Columns::default();
    if let Some(order_by) = order_by {
        let ControlFlow::Continue(()) = order_by.visit(&mut order);
    }
    let is_twice = |item: &SelectItem| {
        matches!(item, SelectItem::ExprWithAlias { expr, alias }
            if columns.names.contains(&fold(alias)) && !has_unnest(expr))
    };
    if order.are_qualified || !select.projection.iter().any(is_twice) {
        return Vec::new();
    }
    let mut renamed = Vec::new();
    for (number, item) in select.projection.iter_mut().enumerate() {
        let is_twice = is_twice(item);
        match item {
            SelectItem::ExprWithAlias { alias, .. } if is_twice => {
                let below = Ident::with_quote('"', format!("{BELOW}{number}"));
                renamed.push([Ident::new(""), below.clone(), std::mem::replace(alias, below)]);
            }
            // Nobody sees around what an item was that has no alias.
            SelectItem::UnnamedExpr(expr) => {
                if let Some(name) = unnested_name_of(expr) {
                    let alias = Ident::with_quote('"', name);
                    *item = SelectItem::ExprWithAlias { expr: expr.clone(), alias };
                }
            }
            _ => {}
        }
    }
    renamed
}

fn expression(item: &SelectItem) -> Option<&Expr> {
    match item {
        SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => Some(expr),
        _ => None,
    }
}

fn has_unnest(expression: &Expr) -> bool {
    visit_expressions(expression, |part| match part {
        Expr::Function(call) if name_of(call).as_deref() == Some("unnest") => {
            ControlFlow::Break(())
        }
        _ => ControlFlow::Continue(()),
    })
    .is_break()
}

/// The names of columns.
#[derive(Default)]
struct Columns {
    names: HashSet<String>,
    are_qualified: bool,
}

impl Visitor for Columns {
    type Break = Infallible;

    fn pre_visit_expr(&mut self, expression: &Expr) -> ControlFlow<Infallible> {
        match expression {
            Expr::Identifier(name) => drop(self.names.insert(fold(name))),
            Expr::CompoundIdentifier(parts) => {
                self.are_qualified = true;
                self.names.extend(parts.iter().map(fold));
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }
}
