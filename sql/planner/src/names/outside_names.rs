//! Names of columns of files and variables of a program, which may have capitals.
//!
//! Alluvium's own columns have the names that statements give them, in lower case without quotes. A frame or a file has a column `Name` because
//! somebody else has called it so. Where a statement names a column that no relation has in this spelling, and one of these relations has it in
//! another one, it means that column, as in DuckDB: `name`, `NAME` and `"name"` are `"Name"`.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use alluvium_sql_syntax::error::{Error, Position, SqlState};
use alluvium_sql_syntax::name;
use alluvium_sql_syntax::statement::fold;
use alluvium_sql_syntax::walk::walk;
use arrow::datatypes::SchemaRef;
use sqlparser::ast::{
    ExcludeSelectItem, Expr, Ident, JoinConstraint, JoinOperator, ObjectName, ObjectNamePart,
    Query, RenameSelectItem, Select, SelectItem, SetExpr, Statement, TableFactor, TableWithJoins,
    Visit, VisitMut, Visitor, VisitorMut, WildcardAdditionalOptions,
};
use sqlparser::tokenizer::Location;

use crate::catalog::Catalog;

/// Spells names of columns as files and variables have them.
///
/// # Errors
/// If a name is that of several columns, which differ in case.
pub(crate) fn spell(statement: &mut Statement, catalog: &dyn Catalog) -> Result<(), Error> {
    let outside: BTreeMap<String, SchemaRef> = catalog.outside().into_iter().collect();
    if outside.is_empty() {
        return Ok(());
    }
    let mut own = Own::default();
    walk(statement, &mut own)?;
    let mut spelling = Spelling {
        relations: Relations { catalog, outside: &outside, queries: BTreeMap::new() },
        scopes: Vec::new(),
        own,
    };
    match statement.visit(&mut spelling) {
        ControlFlow::Break(error) => Err(error),
        ControlFlow::Continue(()) => Ok(()),
    }
}

/// The names that columns have, by these in lower case, and whether a statement may spell each of them in another way.
#[derive(Clone, Debug, Default, PartialEq)]
struct Columns(BTreeMap<String, BTreeMap<String, bool>>);

impl Columns {
    fn add(&mut self, name: String, is_outside: bool) {
        *self.0.entry(name.to_lowercase()).or_default().entry(name).or_default() |= is_outside;
    }

    fn extend(&mut self, other: &Self) {
        for (name, is_outside) in other.0.values().flatten() {
            self.add(name.clone(), *is_outside);
        }
    }

    /// Gives a name the spelling that a column has, unless a column has its own. Returns whether there is a column of the name.
    fn spell(&self, name: &mut Ident) -> Result<bool, Error> {
        let folded = fold(name);
        let Some(found) = self.0.get(&folded.to_lowercase()) else { return Ok(false) };
        if found.contains_key(&folded) {
            return Ok(true);
        }
        let mut outside = found.iter().filter(|(_, is_outside)| **is_outside);
        match (outside.next(), outside.next()) {
            (Some((spelling, _)), None) => {
                name.value.clone_from(spelling);
                name.quote_style = Some('"');
                Ok(true)
            }
            (Some((one, _)), Some((other, _))) => {
                let message = format!(
                    "column \"{folded}\" may be \"{one}\" or \"{other}\": write the one that is meant in quotes"
                );
                let error = Error::new(message, Position::of_span(name.span));
                Err(error.with_sqlstate(SqlState::AMBIGUOUS_COLUMN))
            }
            _ => Ok(false),
        }
    }
}

/// The relations that a statement may name.
struct Relations<'a> {
    catalog: &'a dyn Catalog,
    outside: &'a BTreeMap<String, SchemaRef>,
    /// The columns of the queries of WITH.
    queries: BTreeMap<String, Columns>,
}

/// The columns that a part of a query may name: of all its relations, and of each.
#[derive(Default)]
struct Scope {
    all: Columns,
    each: BTreeMap<String, Columns>,
}

impl Relations<'_> {
    fn scope(&self, select: &Select) -> Scope {
        let mut scope = Scope::default();
        select.from.iter().for_each(|from| self.add(from, &mut scope));
        scope
    }

    fn add(&self, from: &TableWithJoins, scope: &mut Scope) {
        let joined = from.joins.iter().map(|join| &join.relation);
        for factor in std::iter::once(&from.relation).chain(joined) {
            if let TableFactor::NestedJoin { table_with_joins, alias: None } = factor {
                self.add(table_with_joins, scope);
                continue;
            }
            let (called, columns) = self.columns(factor);
            scope.all.extend(&columns);
            if let Some(called) = called {
                scope.each.entry(called).or_default().extend(&columns);
            }
        }
    }

    /// The columns of a relation, and the name that the query has for it.
    fn columns(&self, factor: &TableFactor) -> (Option<String>, Columns) {
        let mut columns = Columns::default();
        let (alias, written) = match factor {
            TableFactor::Table { name, alias, args: None, .. } => {
                columns = self.of_table(name);
                (alias, name.0.last().and_then(|part| part.as_ident()))
            }
            TableFactor::Derived { subquery, alias, .. } => {
                columns = self.of_query(subquery);
                (alias, None)
            }
            TableFactor::NestedJoin { table_with_joins, alias } => {
                let mut scope = Scope::default();
                self.add(table_with_joins, &mut scope);
                columns = scope.all;
                (alias, None)
            }
            TableFactor::Table { alias, .. }
            | TableFactor::Function { alias, .. }
            | TableFactor::UNNEST { alias, .. }
            | TableFactor::Pivot { alias, .. }
            | TableFactor::Unpivot { alias, .. } => {
                // It may also be the name of its only column.
                let name = alias.iter().map(|alias| fold(&alias.name));
                name.for_each(|name| columns.add(name, false));
                (alias, None)
            }
            _ => return (None, columns),
        };
        if let Some(alias) = alias
            && !alias.columns.is_empty()
        {
            columns = Columns::default();
            alias.columns.iter().for_each(|column| columns.add(fold(&column.name), false));
        }
        (alias.as_ref().map(|alias| &alias.name).or(written).map(fold), columns)
    }

    fn of_table(&self, name: &ObjectName) -> Columns {
        let mut columns = Columns::default();
        let Ok(name) = name::of_object(name) else { return columns };
        if let Some(query) = self.queries.get(&name) {
            return query.clone();
        }
        if let Some(schema) = self.outside.get(&name) {
            schema.fields().iter().for_each(|field| columns.add(field.name().clone(), true));
        } else if let Some(relation) = self.catalog.relation(&name) {
            let schema = crate::RelationSource::new(name, relation);
            let schema = datafusion_expr::TableSource::schema(&schema);
            schema.fields().iter().for_each(|field| columns.add(field.name().clone(), false));
        }
        columns
    }

    /// The columns of the result of a query.
    fn of_query(&self, query: &Query) -> Columns {
        match leftmost(&query.body) {
            Some(select) => self.of_select(select),
            None => Columns::default(),
        }
    }

    fn of_select(&self, select: &Select) -> Columns {
        let scope = self.scope(select);
        let mut columns = Columns::default();
        for item in &select.projection {
            let name = match item {
                SelectItem::ExprWithAlias { alias, .. } => {
                    columns.add(fold(alias), false);
                    continue;
                }
                SelectItem::ExprWithAliases { aliases, .. } => {
                    aliases.iter().for_each(|alias| columns.add(fold(alias), false));
                    continue;
                }
                SelectItem::UnnamedExpr(Expr::Identifier(name)) => name,
                SelectItem::UnnamedExpr(Expr::CompoundIdentifier(names)) => match names.last() {
                    Some(name) => name,
                    None => continue,
                },
                SelectItem::UnnamedExpr(_) => continue,
                SelectItem::Wildcard(_) | SelectItem::QualifiedWildcard(..) => {
                    columns.extend(&scope.all);
                    continue;
                }
            };
            let mut name = name.clone();
            // Errors come where the name stands.
            let before = fold(&name);
            scope.all.spell(&mut name).ok();
            let is_outside = name.value != before
                || scope.all.0.values().flatten().any(|(known, out)| *known == before && *out);
            columns.add(fold(&name), is_outside);
        }
        columns
    }
}

/// The SELECT that names the columns of a query's result.
fn leftmost(body: &SetExpr) -> Option<&Select> {
    match body {
        SetExpr::Select(select) => Some(select),
        SetExpr::Query(query) => leftmost(&query.body),
        SetExpr::SetOperation { left, .. } => leftmost(left),
        _ => None,
    }
}

/// Names that mean something else than columns of relations.
#[derive(Default)]
struct Own {
    /// Parameters of lambdas.
    parameters: BTreeSet<String>,
    /// The places of names that mean columns of a result, where such a name comes first: in ORDER BY and the like.
    results: BTreeSet<Location>,
}

impl Own {
    /// Notes which names of a part of a query are those of its result.
    fn results(&mut self, part: &impl Visit, aliases: &[String]) -> ControlFlow<Error> {
        if aliases.is_empty() {
            return ControlFlow::Continue(());
        }
        let mut names = Names(Vec::new());
        if let Err(error) = walk(part, &mut names) {
            return ControlFlow::Break(error);
        }
        let of_result = names.0.into_iter().filter(|name| aliases.contains(&fold(name)));
        self.results.extend(of_result.map(|name| name.span.start));
        ControlFlow::Continue(())
    }
}

impl Visitor for Own {
    type Break = Error;

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<Error> {
        let aliases = leftmost(&query.body).map(aliases).unwrap_or_default();
        self.results(&query.order_by, &aliases)
    }

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<Error> {
        let aliases = aliases(select);
        self.results(&select.group_by, &aliases)?;
        self.results(&select.having, &aliases)?;
        self.results(&select.qualify, &aliases)?;
        self.results(&select.distinct, &aliases)
    }

    fn pre_visit_expr(&mut self, expression: &Expr) -> ControlFlow<Error> {
        if let Expr::Lambda(lambda) = expression {
            self.parameters.extend(lambda.params.iter().map(|parameter| fold(&parameter.name)));
        }
        ControlFlow::Continue(())
    }
}

/// What a query calls columns of its result.
fn aliases(select: &Select) -> Vec<String> {
    let aliases = select.projection.iter().flat_map(|item| match item {
        SelectItem::ExprWithAlias { alias, .. } => std::slice::from_ref(alias),
        SelectItem::ExprWithAliases { aliases, .. } => aliases,
        _ => &[],
    });
    aliases.map(fold).collect()
}

/// The names of columns in a part of a query.
struct Names(Vec<Ident>);

impl Visitor for Names {
    type Break = Error;

    fn pre_visit_expr(&mut self, expression: &Expr) -> ControlFlow<Error> {
        if let Expr::Identifier(name) = expression {
            self.0.push(name.clone());
        }
        ControlFlow::Continue(())
    }
}

/// Spells names.
struct Spelling<'a> {
    relations: Relations<'a>,
    /// Of the queries around a name, the innermost last.
    scopes: Vec<Scope>,
    own: Own,
}

impl Spelling<'_> {
    /// A name of a column of any relation.
    fn column(&self, name: &mut Ident) -> ControlFlow<Error> {
        if self.own.parameters.contains(&fold(name)) || self.own.results.contains(&name.span.start)
        {
            return ControlFlow::Continue(());
        }
        for scope in self.scopes.iter().rev() {
            match scope.all.spell(name) {
                Ok(true) => break,
                Ok(false) => {}
                Err(error) => return ControlFlow::Break(error),
            }
        }
        ControlFlow::Continue(())
    }

    /// A name of a column of a relation, or of a field of a column.
    fn qualified(&self, names: &mut [Ident]) -> ControlFlow<Error> {
        let [first, second, ..] = names else { return ControlFlow::Continue(()) };
        let relation = fold(first);
        match self.scopes.iter().rev().find_map(|scope| scope.each.get(&relation)) {
            Some(columns) => match columns.spell(second) {
                Ok(_) => ControlFlow::Continue(()),
                Err(error) => ControlFlow::Break(error),
            },
            None => self.column(first),
        }
    }

    fn object(&self, name: &mut ObjectName) -> ControlFlow<Error> {
        match name.0.last_mut() {
            Some(ObjectNamePart::Identifier(name)) => self.column(name),
            _ => ControlFlow::Continue(()),
        }
    }

    fn wildcard(&self, options: &mut WildcardAdditionalOptions) -> ControlFlow<Error> {
        match &mut options.opt_exclude {
            Some(ExcludeSelectItem::Single(name)) => self.object(name)?,
            Some(ExcludeSelectItem::Multiple(names)) => {
                names.iter_mut().try_for_each(|name| self.object(name))?;
            }
            None => {}
        }
        if let Some(except) = &mut options.opt_except {
            self.column(&mut except.first_element)?;
            except.additional_elements.iter_mut().try_for_each(|name| self.column(name))?;
        }
        match &mut options.opt_rename {
            Some(RenameSelectItem::Single(renamed)) => self.column(&mut renamed.ident)?,
            Some(RenameSelectItem::Multiple(renamed)) => {
                renamed.iter_mut().try_for_each(|renamed| self.column(&mut renamed.ident))?;
            }
            None => {}
        }
        let replaced = options.opt_replace.iter_mut().flat_map(|replace| &mut replace.items);
        replaced.into_iter().try_for_each(|item| self.column(&mut item.column_name))
    }

    fn joins(&self, from: &mut TableWithJoins) -> ControlFlow<Error> {
        for join in &mut from.joins {
            if let Some(JoinConstraint::Using(names)) = constraint(&mut join.join_operator) {
                names.iter_mut().try_for_each(|name| self.object(name))?;
            }
        }
        ControlFlow::Continue(())
    }

    fn select(&self, select: &mut Select) -> ControlFlow<Error> {
        for item in &mut select.projection {
            match item {
                SelectItem::Wildcard(options) | SelectItem::QualifiedWildcard(_, options) => {
                    self.wildcard(options)?;
                }
                _ => {}
            }
        }
        select.from.iter_mut().try_for_each(|from| self.joins(from))
    }
}

impl VisitorMut for Spelling<'_> {
    type Break = Error;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Error> {
        for with in query.with.iter().flat_map(|with| &with.cte_tables) {
            let mut columns = self.relations.of_query(&with.query);
            if !with.alias.columns.is_empty() {
                columns = Columns::default();
                with.alias.columns.iter().for_each(|column| columns.add(fold(&column.name), false));
            }
            self.relations.queries.insert(fold(&with.alias.name), columns);
        }
        // For its ORDER BY.
        let scope = leftmost(&query.body).map(|select| self.relations.scope(select));
        self.scopes.push(scope.unwrap_or_default());
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<Error> {
        self.scopes.pop();
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<Error> {
        self.scopes.push(self.relations.scope(select));
        self.select(select)
    }

    fn post_visit_select(&mut self, _: &mut Select) -> ControlFlow<Error> {
        self.scopes.pop();
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<Error> {
        match factor {
            TableFactor::NestedJoin { table_with_joins, .. } => self.joins(table_with_joins),
            _ => ControlFlow::Continue(()),
        }
    }

    fn pre_visit_expr(&mut self, expression: &mut Expr) -> ControlFlow<Error> {
        match expression {
            Expr::Identifier(name) => self.column(name),
            Expr::CompoundIdentifier(names) => self.qualified(names),
            _ => ControlFlow::Continue(()),
        }
    }
}

fn constraint(operator: &mut JoinOperator) -> Option<&mut JoinConstraint> {
    match operator {
        JoinOperator::Join(constraint)
        | JoinOperator::Inner(constraint)
        | JoinOperator::Left(constraint)
        | JoinOperator::LeftOuter(constraint)
        | JoinOperator::Right(constraint)
        | JoinOperator::RightOuter(constraint)
        | JoinOperator::FullOuter(constraint)
        | JoinOperator::CrossJoin(constraint)
        | JoinOperator::Semi(constraint)
        | JoinOperator::LeftSemi(constraint)
        | JoinOperator::RightSemi(constraint)
        | JoinOperator::Anti(constraint)
        | JoinOperator::LeftAnti(constraint)
        | JoinOperator::RightAnti(constraint)
        | JoinOperator::AsOf { constraint, .. } => Some(constraint),
        _ => None,
    }
}
