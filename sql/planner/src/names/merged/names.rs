//! Names of merged columns in the syntax.
//!
//! DataFusion finds a merged column by its name among the selected columns and not in WHERE. So each name is qualified
//! before it plans: `k` becomes `"!1".k`, where `!1` qualifies what the first joins of the statement merge.

use std::collections::{HashMap, HashSet};
use std::convert::Infallible;
use std::ops::ControlFlow;

use alluvium_sql_syntax::name;
use alluvium_sql_syntax::statement::fold;
use alluvium_sql_syntax::syntax::{known_as, refers};
use datafusion_common::JoinType;
use sqlparser::ast::{
    Expr, Ident, JoinConstraint, OrderBy, Query, Select, SelectItem, SetExpr, Statement,
    TableFactor, TableWithJoins, Value, VisitMut, VisitorMut,
};

use super::{MERGED, is_planned_here, kind};
use crate::catalog::{Catalog, Relation};

/// Puts joins that merge columns into brackets with a name for what they merge, and qualifies merged columns by it.
pub fn qualify(statement: &mut Statement, catalog: &dyn Catalog) {
    let mut names = Names { catalog, local: HashSet::new(), brackets: 0 };
    let ControlFlow::Continue(()) = statement.visit(&mut names);
}

struct Names<'a> {
    catalog: &'a dyn Catalog,
    /// The queries of WITH, which hide relations of the catalog.
    local: HashSet<String>,
    brackets: usize,
}

impl VisitorMut for Names<'_> {
    type Break = Infallible;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Infallible> {
        let with = query.with.iter().flat_map(|with| &with.cte_tables);
        self.local.extend(with.map(|query| fold(&query.alias.name)));
        if let SetExpr::Select(select) = query.body.as_mut() {
            self.qualify(select, query.order_by.as_mut());
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<Infallible> {
        self.qualify(select, None);
        ControlFlow::Continue(())
    }
}

/// The qualifiers of merged columns by their names.
type Qualifiers = HashMap<String, Ident>;

/// The columns of a relation and the tables they are of, if they are known.
type Columns = Option<Vec<(String, Ident)>>;

impl Names<'_> {
    fn qualify(&mut self, select: &mut Select, order_by: Option<&mut OrderBy>) {
        if !select.from.iter().any(|from| from.joins.iter().any(is_planned_here)) {
            return;
        }
        let columns: Vec<Vec<Columns>> =
            select.from.iter().map(|from| self.columns_of_all(from)).collect();
        let mut names = Qualifiers::new();
        for (place, from) in select.from.iter_mut().enumerate() {
            let merged = self.bracket(from);
            // A name that another relation beside the brackets may have is left to DataFusion, which finds it ambiguous.
            let inside = columns[place].len() - from.joins.len();
            let others =
                columns.iter().enumerate().flat_map(|(other, columns)| match other == place {
                    true => &columns[inside..],
                    false => columns.as_slice(),
                });
            let others: Vec<&Columns> = others.collect();
            let is_alone = |name: &str| others.iter().all(|columns| lacks(columns, name));
            names.extend(merged.into_iter().filter(|(name, _)| is_alone(name)));
        }
        if names.is_empty() {
            return;
        }
        rename(&mut select.selection, &names);
        rename(&mut select.qualify, &names);
        rename(&mut select.distinct, &names);
        rename(&mut select.named_window, &names);
        // Elsewhere the name of a selected column comes first.
        let (aliases, plain): (Vec<String>, Vec<String>) = selected(&select.projection);
        rename(&mut select.projection, &names);
        names.retain(|name, _| !aliases.contains(name));
        rename(&mut select.group_by, &names);
        rename(&mut select.having, &names);
        names.retain(|name, _| !plain.contains(name));
        if let Some(order_by) = order_by {
            rename(order_by, &names);
        }
    }

    /// Puts brackets around the joins up to the last that merges columns; returns what is merged. Relations that refer to
    /// others stay outside.
    fn bracket(&mut self, from: &mut TableWithJoins) -> Vec<(String, Ident)> {
        let Some(last) = from.joins.iter().rposition(is_planned_here) else { return Vec::new() };
        let mut relations = from.joins[..=last].iter().map(|join| &join.relation);
        if refers(&from.relation) || relations.any(refers) {
            return Vec::new();
        }
        self.brackets += 1;
        let name = Ident::with_quote('"', format!("{MERGED}{}", self.brackets));
        let outside = from.joins.split_off(last + 1);
        // Anything may stand here: it is replaced.
        let nothing = TableFactor::TableFunction { expr: Expr::value(Value::Null), alias: None };
        let relation = std::mem::replace(&mut from.relation, nothing);
        let joins = std::mem::replace(&mut from.joins, outside);
        let inside = TableWithJoins { relation, joins };
        let merged = self.merged(&inside, &name);
        let alias = Some(known_as(name));
        from.relation = TableFactor::NestedJoin { table_with_joins: Box::new(inside), alias };
        merged
    }

    /// The columns that joins merge, with their qualifiers: of the table that has the column first, if its rows all remain,
    /// otherwise `name`.
    fn merged(&self, from: &TableWithJoins, name: &Ident) -> Vec<(String, Ident)> {
        let mut merged: Vec<(String, Ident)> = Vec::new();
        let mut known = self.columns(&from.relation);
        for join in &from.joins {
            let right = self.columns(&join.relation);
            let Some((kind, constraint)) = kind(&join.join_operator) else { return Vec::new() };
            let common: Vec<String> = match constraint {
                JoinConstraint::Using(names) => {
                    let names = names.iter().filter_map(|name| name.0.last()?.as_ident());
                    names.map(fold).collect()
                }
                JoinConstraint::Natural => match (&known, &right) {
                    (Some(left), Some(right)) => {
                        let has = |name: &String| right.iter().any(|(other, _)| other == name);
                        left.iter().map(|(name, _)| name.clone()).filter(has).collect()
                    }
                    _ => Vec::new(),
                },
                JoinConstraint::On(_) | JoinConstraint::None => Vec::new(),
            };
            // A name is ambiguous from here on, if another relation may have it.
            merged.retain(|(name, _)| common.contains(name) || lacks(&right, name));
            let keeps_left = matches!(kind, JoinType::Inner | JoinType::Left);
            for column in &common {
                let owner = known.iter().flatten().find(|(other, _)| other == column);
                let before = merged.iter().position(|(other, _)| other == column);
                let before = before.map(|place| merged.swap_remove(place).1);
                let owner = before.or_else(|| owner.map(|(_, owner)| owner.clone()));
                let owner = owner.filter(|_| keeps_left).unwrap_or_else(|| name.clone());
                merged.push((column.clone(), owner));
            }
            known = match kind {
                JoinType::Inner | JoinType::Left | JoinType::Right | JoinType::Full => {
                    known.zip(right).map(|(mut left, right)| {
                        left.extend(right.into_iter().filter(|(name, _)| !common.contains(name)));
                        left
                    })
                }
                JoinType::RightSemi | JoinType::RightAnti => right,
                _ => known,
            };
        }
        merged
    }

    fn columns_of_all(&self, from: &TableWithJoins) -> Vec<Columns> {
        let joined = from.joins.iter().map(|join| &join.relation);
        std::iter::once(&from.relation).chain(joined).map(|of| self.columns(of)).collect()
    }

    /// The columns of a relation, if it is one of the catalog or names them.
    fn columns(&self, factor: &TableFactor) -> Columns {
        let alias = match factor {
            TableFactor::Table { alias, .. }
            | TableFactor::Derived { alias, .. }
            | TableFactor::UNNEST { alias, .. } => alias.as_ref(),
            _ => return None,
        };
        let named = |name: &Ident, columns: Vec<String>| {
            let qualifier = Ident::with_quote('"', fold(name));
            Some(columns.into_iter().map(|column| (column, qualifier.clone())).collect())
        };
        if let Some(alias) = alias
            && !alias.columns.is_empty()
        {
            let columns = alias.columns.iter().map(|column| fold(&column.name));
            return named(&alias.name, columns.collect());
        }
        match factor {
            TableFactor::Table { name, args: None, .. } => {
                let table = name.0.last()?.as_ident()?;
                // A query of WITH has no schema.
                if name.0.len() == 1 && self.local.contains(&fold(table)) {
                    return None;
                }
                let columns = self.columns_of_table(&name::of_object(name).ok()?)?;
                named(alias.map_or(table, |alias| &alias.name), columns)
            }
            TableFactor::Derived { subquery, .. } => {
                let SetExpr::Select(select) = subquery.body.as_ref() else { return None };
                let columns = select.projection.iter().map(selected_name);
                named(&alias?.name, columns.collect::<Option<Vec<String>>>()?)
            }
            _ => None,
        }
    }

    fn columns_of_table(&self, name: &str) -> Option<Vec<String>> {
        let schema = match self.catalog.relation(name)? {
            Relation::Table { schema, .. }
            | Relation::MaterializedView { schema, .. }
            | Relation::View { schema, .. }
            | Relation::Declared { schema, .. }
            | Relation::System { schema } => schema,
            Relation::Clock => return None,
        };
        Some(schema.fields().iter().map(|field| field.name().clone()).collect())
    }
}

/// Whether a relation is known not to have a column.
fn lacks(columns: &Columns, name: &str) -> bool {
    columns.as_ref().is_some_and(|columns| columns.iter().all(|(other, _)| other != name))
}

/// The name of a selected column, if it has one.
fn selected_name(item: &SelectItem) -> Option<String> {
    match item {
        SelectItem::ExprWithAlias { alias, .. } => Some(fold(alias)),
        SelectItem::UnnamedExpr(Expr::Identifier(name)) => Some(fold(name)),
        SelectItem::UnnamedExpr(Expr::CompoundIdentifier(parts)) => parts.last().map(fold),
        _ => None,
    }
}

/// The names that AS gives to selected columns, and those of columns that are selected with a qualifier.
fn selected(projection: &[SelectItem]) -> (Vec<String>, Vec<String>) {
    let (mut aliases, mut plain) = (Vec::new(), Vec::new());
    for item in projection {
        match item {
            SelectItem::ExprWithAlias { alias, .. } => aliases.push(fold(alias)),
            SelectItem::UnnamedExpr(Expr::CompoundIdentifier(parts)) => {
                plain.extend(parts.last().map(fold));
            }
            _ => {}
        }
    }
    (aliases, plain)
}

/// Qualifies the names in a part of a SELECT, but not in its subqueries, which have names of their own.
fn rename(part: &mut impl VisitMut, names: &Qualifiers) {
    let ControlFlow::Continue(()) = part.visit(&mut Rename { names, depth: 0 });
}

struct Rename<'a> {
    names: &'a Qualifiers,
    depth: usize,
}

impl VisitorMut for Rename<'_> {
    type Break = Infallible;

    fn pre_visit_query(&mut self, _: &mut Query) -> ControlFlow<Infallible> {
        self.depth += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<Infallible> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expression: &mut Expr) -> ControlFlow<Infallible> {
        if let Expr::Identifier(name) = expression
            && self.depth == 0
            && let Some(qualifier) = self.names.get(&fold(name))
        {
            let qualifier = Ident { span: name.span, ..qualifier.clone() };
            *expression = Expr::CompoundIdentifier(vec![qualifier, name.clone()]);
        }
        ControlFlow::Continue(())
    }
}
