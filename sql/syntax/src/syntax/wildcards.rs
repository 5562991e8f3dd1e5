//! `* RENAME (a AS b)` and `(e).*`, whose columns depend on what they are of.
//!
//! ```sql
//! SELECT * RENAME (a AS b), (s).* FROM t WHERE n > 0 ORDER BY a
//! SELECT * FROM (SELECT *, s AS "!fields" FROM t WHERE n > 0) AS "!columns" (a, b) ORDER BY b
//! ```
//!
//! are the same: whoever plans the relation `!columns` knows its columns, gives them the names, and puts the fields in the
//! place of `!fields`.
//!
//! So are columns named of which DataFusion finds the names ambiguous: in `SELECT a + 1 AS a, UNNEST(l) FROM t` it computes what is
//! beside UNNEST below it, together with the columns of FROM that the items name.

use std::collections::HashSet;
use std::ops::ControlFlow;

use sqlparser::ast::{
    Expr, Ident, IdentWithAlias, OrderBy, RenameSelectItem, Select, SelectItem,
    SelectItemQualifiedWildcardKind, SetExpr, Spanned, Visit, VisitMut, Visitor, VisitorMut,
    WildcardAdditionalOptions, visit_expressions,
};

use super::calls::name_of;
use super::clause::refuse;
use super::column_names::unnested_name_of;
use super::simple_query::{from_query, simple_query, with_columns};
use crate::error::Result;
use crate::statement::fold;

/// The name of the relation whose columns get other names. Its list of columns has the qualifier (or nothing), the name and
/// the new name of one after the other.
pub const COLUMNS: &str = "!columns";

/// How names of columns begin that stand for their fields.
pub const FIELDS: &str = "!fields";

/// Makes the rows of such a SELECT a relation, of which everything is selected.
///
/// # Errors
/// If options follow `(e).*`.
pub(super) fn as_relation(select: &mut Select, order_by: Option<&mut OrderBy>) -> Result<()> {
    let mut renamed = beside_unnest(select, order_by.as_deref());
    let mut has_fields = false;
    for (number, item) in select.projection.iter_mut().enumerate() {
        match item {
            SelectItem::Wildcard(options) => {
                renamed.extend(take_renamed(options, &Ident::new("")));
            }
            SelectItem::QualifiedWildcard(
                SelectItemQualifiedWildcardKind::ObjectName(name),
                options,
            ) => {
                let qualifier = name.0.last().and_then(|part| part.as_ident()).cloned();
                let qualifier = qualifier.unwrap_or_else(|| Ident::new(""));
                renamed.extend(take_renamed(options, &qualifier));
            }
            SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::Expr(expr), options) => {
                let WildcardAdditionalOptions { wildcard_token, .. } = options;
                let plain = WildcardAdditionalOptions {
                    wildcard_token: wildcard_token.clone(),
                    ..WildcardAdditionalOptions::default()
                };
                if *options != plain {
                    return refuse("EXCLUDE, REPLACE or RENAME of fields", || expr.span());
                }
                has_fields = true;
                let expr = expr.clone();
                let alias = Ident::with_quote('"', format!("{FIELDS}{number}"));
                *item = SelectItem::ExprWithAlias { expr, alias };
            }
            SelectItem::UnnamedExpr(_)
            | SelectItem::ExprWithAlias { .. }
            | SelectItem::ExprWithAliases { .. } => {}
        }
    }
    if renamed.is_empty() && !has_fields {
        return Ok(());
    }
    if let Some(order_by) = order_by {
        let ControlFlow::Continue(()) = order_by.visit(&mut NewNames { renamed: &renamed });
    }
    let columns = renamed.into_iter().flatten();
    let alias = with_columns(Ident::with_quote('"', COLUMNS), columns);
    let all = SelectItem::Wildcard(WildcardAdditionalOptions::default());
    let mut rows = simple_query(Vec::new(), Vec::new(), None);
    let mut outer = simple_query(vec![all], Vec::new(), None);
    let SetExpr::Select(outer_select) = outer.body.as_mut() else { return Ok(()) };
    outer_select.select_token = select.select_token.clone();
    let inner = std::mem::replace(select, outer_select.as_ref().clone());
    rows.body = Box::new(SetExpr::Select(Box::new(inner)));
    select.from = vec![from_query(rows, alias)];
    Ok(())
}

/// The names that RENAME after `*` gives, each with the qualifier of the column and its name; it is gone then.
fn take_renamed(options: &mut WildcardAdditionalOptions, qualifier: &Ident) -> Vec<[Ident; 3]> {
    let items = match options.opt_rename.take() {
        None => Vec::new(),
        Some(RenameSelectItem::Single(item)) => vec![item],
        Some(RenameSelectItem::Multiple(items)) => items,
    };
    let named = items.into_iter();
    named.map(|IdentWithAlias { ident, alias }| [qualifier.clone(), ident, alias]).collect()
}

/// Replaces the names of columns by the new ones. Qualifiers of columns do not exist outside.
struct NewNames<'a> {
    renamed: &'a [[Ident; 3]],
}

impl VisitorMut for NewNames<'_> {
    type Break = std::convert::Infallible;

    fn pre_visit_expr(&mut self, expression: &mut Expr) -> ControlFlow<Self::Break> {
        let (qualifier, name) = match expression {
            Expr::Identifier(name) => (None, &*name),
            Expr::CompoundIdentifier(parts) => match parts.as_slice() {
                [qualifier, name] => (Some(fold(qualifier)), name),
                _ => return ControlFlow::Continue(()),
            },
            _ => return ControlFlow::Continue(()),
        };
        let is_meant = |of: &Ident| {
            of.value.is_empty() || qualifier.as_ref().is_none_or(|qualifier| *qualifier == fold(of))
        };
        let new = self
            .renamed
            .iter()
            .find(|[of, old, _]| is_meant(of) && fold(old) == fold(name))
            .map_or(name, |[_, _, new]| new);
        *expression = Expr::Identifier(Ident { span: name.span, ..new.clone() });
        ControlFlow::Continue(())
    }
}

/// How the names begin that columns beside UNNEST have below.
const BELOW: &str = "!beside";

/// Gives aliases beside UNNEST that columns of FROM have, too, other names. Returns these, without a qualifier, and the names
/// that they are to have.
///
/// Leaves them if the order of the query names columns of relations, which the relation around does not have.
fn beside_unnest(select: &mut Select, order_by: Option<&OrderBy>) -> Vec<[Ident; 3]> {
    let unnests = |item: &SelectItem| expression(item).is_some_and(has_unnest);
    if !select.projection.iter().any(unnests) {
        return Vec::new();
    }
    let mut columns = Names::default();
    let ControlFlow::Continue(()) = select.projection.visit(&mut columns);
    let mut order = Names::default();
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
            // The expression of an item without an alias cannot be seen from outside.
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
struct Names {
    names: HashSet<String>,
    are_qualified: bool,
}

impl Visitor for Names {
    type Break = std::convert::Infallible;

    fn pre_visit_expr(&mut self, expression: &Expr) -> ControlFlow<Self::Break> {
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
