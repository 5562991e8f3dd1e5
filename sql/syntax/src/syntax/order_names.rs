//! Names in ORDER BY.
//!
//! In Postgres a name alone is that of a selected column, and an expression has those of FROM: `SELECT -v AS v … ORDER BY v + 0`
//! orders by the `v` of FROM. DuckDB adds that a name which FROM does not have is that of a selected column there, too. DataFusion takes
//! selected columns first, and cannot order by a column whose name a selected column has. So
//!
//! - an expression that is selected under a name becomes that name;
//! - one with a name that is given to another expression becomes a column of its own, `"order 1"`, of a query inside, where
//!   names are those of FROM: `SELECT * EXCLUDE ("order 1") FROM (SELECT -v AS v, v + 0 AS "order 1" …) ORDER BY "order 1"`.

use std::collections::HashMap;
use std::convert::Infallible;
use std::ops::ControlFlow;

use sqlparser::ast::{
    BinaryOperator, Distinct, ExcludeSelectItem, Expr, Function, Ident, ObjectName, OrderByKind,
    Query, Select, SelectItem, SetExpr, Value, Visit, VisitMut, Visitor, VisitorMut,
    WildcardAdditionalOptions,
};

use super::calls::name_of;
use super::column_names::name_columns;
use super::simple_query::{binary, from_query, known_as, simple_query};
use crate::statement::fold;

/// The operator after the name of a column of FROM, and before the meaning of that name if FROM has no such column: `'v' NAMED -v`.
pub const NAMED: &str = "NAMED";

/// How the names of columns begin that a query is ordered by.
const KEY: &str = "order ";

/// The name of the query inside.
const INSIDE: &str = "ordered";

/// Functions that give another value at each call, and those that make rows of one.
const NOT_TWICE: [&str; 9] = [
    "random",
    "rand",
    "uuid",
    "gen_random_uuid",
    "nextval",
    "setval",
    "unnest",
    "generate_series",
    "generate_subscripts",
];

/// Has the names in ORDER BY mean what they mean in Postgres.
pub(super) fn resolve(query: &mut Query) {
    let SetExpr::Select(select) = query.body.as_mut() else { return };
    let Some(order_by) = &mut query.order_by else { return };
    let OrderByKind::Expressions(keys) = &mut order_by.kind else { return };
    if matches!(select.distinct, Some(Distinct::On(_)))
        || !keys.iter().any(|key| is_computed(&key.expr))
    {
        return;
    }
    let Some(given) = given_names(select) else { return };
    for key in keys.iter_mut() {
        let selected =
            given.iter().find(|(_, item)| is_computed(&key.expr) && item.expr == key.expr);
        if let Some((_, item)) = selected {
            key.expr = Expr::Identifier(item.alias.clone());
        }
    }
    if select.distinct.is_some() {
        return;
    }
    let mut inside = Vec::new();
    for key in keys.iter_mut().filter(|key| is_computed(&key.expr)) {
        let mut names = Names { given: &given, found: false, is_plain: true };
        let ControlFlow::Continue(()) = key.expr.visit(&mut names);
        if !names.found || !names.is_plain {
            continue;
        }
        let name = Ident::with_quote('"', format!("{KEY}{}", inside.len() + 1));
        let mut expr = std::mem::replace(&mut key.expr, Expr::Identifier(name.clone()));
        let ControlFlow::Continue(()) = VisitMut::visit(&mut expr, &mut OfFrom { given: &given });
        inside.push(SelectItem::ExprWithAlias { expr, alias: name });
    }
    if !inside.is_empty() {
        select_inside(query, inside);
    }
}

/// Adds columns to the SELECT of a query, and puts one around it that has all but these.
fn select_inside(query: &mut Query, keys: Vec<SelectItem>) {
    let SetExpr::Select(select) = query.body.as_mut() else { return };
    name_columns(select);
    let names = keys.iter().filter_map(|key| match key {
        SelectItem::ExprWithAlias { alias, .. } => Some(ObjectName::from(vec![alias.clone()])),
        _ => None,
    });
    let options = WildcardAdditionalOptions {
        opt_exclude: Some(ExcludeSelectItem::Multiple(names.collect())),
        ..WildcardAdditionalOptions::default()
    };
    select.projection.extend(keys);
    let mut inside = simple_query(Vec::new(), Vec::new(), None);
    let outside = simple_query(vec![SelectItem::Wildcard(options)], Vec::new(), None);
    inside.body = std::mem::replace(&mut query.body, outside.body);
    let from = from_query(inside, known_as(Ident::with_quote('"', INSIDE)));
    if let SetExpr::Select(select) = query.body.as_mut() {
        select.from = vec![from];
    }
}

/// Whether a key is not a name alone, nor the place of a column.
fn is_computed(key: &Expr) -> bool {
    match key {
        Expr::Nested(inner) => is_computed(inner),
        Expr::Identifier(_) | Expr::Value(_) => false,
        _ => true,
    }
}

/// An expression that is selected under a name.
struct Given {
    expr: Expr,
    alias: Ident,
}

/// The expressions that are selected under names that are not their own; `None` if names may be there twice.
fn given_names(select: &Select) -> Option<HashMap<String, Given>> {
    let mut given = HashMap::new();
    let mut others = Vec::new();
    for item in &select.projection {
        match item {
            SelectItem::ExprWithAlias { expr, alias } => {
                let name = fold(alias);
                if own_name(expr).is_some_and(|own| own == name) {
                    others.push(name);
                    continue;
                }
                let item = Given { expr: expr.clone(), alias: alias.clone() };
                if given.insert(name, item).is_some() {
                    return None;
                }
            }
            SelectItem::UnnamedExpr(expr) => others.extend(own_name(expr)),
            _ => return None,
        }
    }
    let is_once = others.iter().all(|name| !given.contains_key(name));
    others.sort_unstable();
    let length = others.len();
    others.dedup();
    (is_once && others.len() == length).then_some(given)
}

fn own_name(expression: &Expr) -> Option<String> {
    match expression {
        Expr::Nested(inner) => own_name(inner),
        Expr::Identifier(name) => Some(fold(name)),
        Expr::CompoundIdentifier(parts) => parts.last().map(fold),
        _ => None,
    }
}

/// Whether an expression names columns of FROM by names that are given to others.
struct Names<'a> {
    given: &'a HashMap<String, Given>,
    found: bool,
    /// Whether it, and what the names are given to, can be computed twice and without another query.
    is_plain: bool,
}

impl Visitor for Names<'_> {
    type Break = Infallible;

    fn pre_visit_query(&mut self, _: &Query) -> ControlFlow<Infallible> {
        self.is_plain = false;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expression: &Expr) -> ControlFlow<Infallible> {
        match expression {
            Expr::Identifier(name) => {
                if let Some(given) = self.given.get(&fold(name)) {
                    self.found = true;
                    // The expression with this name uses the names of FROM.
                    let nothing = HashMap::new();
                    let mut names = Names { given: &nothing, found: false, is_plain: true };
                    let ControlFlow::Continue(()) = given.expr.visit(&mut names);
                    self.is_plain &= names.is_plain;
                }
            }
            Expr::CompoundIdentifier(parts) => {
                self.found |= parts.last().is_some_and(|name| self.given.contains_key(&fold(name)));
            }
            Expr::Function(function) => self.is_plain &= may_be_twice(function),
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

fn may_be_twice(function: &Function) -> bool {
    name_of(function).is_none_or(|name| !NOT_TWICE.contains(&name.as_str()))
}

/// Puts `'name' NAMED expression` in the place of names that are given to expressions.
struct OfFrom<'a> {
    given: &'a HashMap<String, Given>,
}

impl VisitorMut for OfFrom<'_> {
    type Break = Infallible;

    fn post_visit_expr(&mut self, expression: &mut Expr) -> ControlFlow<Infallible> {
        if let Expr::Identifier(name) = expression
            && let Some(given) = self.given.get(&fold(name))
        {
            let text = Value::SingleQuotedString(fold(name)).with_span(name.span);
            let given = given.expr.clone();
            let named = binary(Expr::Value(text), BinaryOperator::Custom(NAMED.to_owned()), given);
            *expression = Expr::Nested(Box::new(named));
        }
        ControlFlow::Continue(())
    }
}
