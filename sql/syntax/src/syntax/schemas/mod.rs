//! Names in schemas.
//!
//! `FROM s.t` is known to the rest of the statement as `t`, as if it were `FROM s.t AS t`; so it becomes that. `s.t.c` and
//! `s.t.*` then become `t.c` and `t.*`, where `t` is in the schema `s`. [`standard`] are those of functions and types.

mod standard;

use std::ops::ControlFlow;

use sqlparser::ast::{
    Expr, FromTable, Ident, ObjectName, Query, Select, SelectItem, SelectItemQualifiedWildcardKind,
    SetExpr, Statement, TableAlias, TableFactor, TableObject, TableWithJoins, UpdateTableFromKind,
    VisitMut, VisitorMut,
};

use super::simple_query::known_as;
use crate::error::{Error, Position, Result};
use crate::name::{DATABASE, SCHEMA};
use crate::statement::fold;

/// Rewrites the names of a part of a statement.
///
/// # Errors
/// If two relations beside each other are known by one name, or a column is one of a relation in another schema.
pub(super) fn resolve(part: &mut impl VisitMut) -> Result<()> {
    match part.visit(&mut Schemas { scopes: Vec::new() }) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(error) => Err(error),
    }
}

struct Schemas {
    /// The relations around an expression that have names there, the outermost first.
    scopes: Vec<Vec<Named>>,
}

/// A relation, as a query knows it.
struct Named {
    name: String,
    /// `None` under an alias.
    schema: Option<String>,
    /// Whether the schema is written.
    is_qualified: bool,
    position: Option<Position>,
}

impl Named {
    fn of(name: &ObjectName) -> Option<Self> {
        let mut parts = name.0.iter().rev().map(|part| part.as_ident());
        let (last, schema) = (parts.next()??, parts.next().flatten());
        Some(Self {
            name: fold(last),
            schema: Some(schema.map_or_else(|| SCHEMA.to_owned(), fold)),
            is_qualified: schema.is_some(),
            position: Position::of(name),
        })
    }

    fn under(alias: &TableAlias) -> Self {
        let position = Position::of_span(alias.name.span);
        Self { name: fold(&alias.name), schema: None, is_qualified: false, position }
    }
}

/// The relations of FROM.
fn named(from: &[TableWithJoins]) -> Vec<Named> {
    fn add(from: &TableWithJoins, found: &mut Vec<Named>) {
        let joined = from.joins.iter().map(|join| &join.relation);
        for factor in std::iter::once(&from.relation).chain(joined) {
            match factor {
                TableFactor::Table { alias: Some(alias), .. }
                | TableFactor::Derived { alias: Some(alias), .. }
                | TableFactor::UNNEST { alias: Some(alias), .. }
                | TableFactor::Function { alias: Some(alias), .. }
                | TableFactor::NestedJoin { alias: Some(alias), .. } => {
                    found.push(Named::under(alias));
                }
                TableFactor::Table { name, args: None, .. } => found.extend(Named::of(name)),
                TableFactor::NestedJoin { table_with_joins, alias: None } => {
                    add(table_with_joins, found);
                }
                _ => {}
            }
        }
    }
    let mut found = Vec::new();
    from.iter().for_each(|from| add(from, &mut found));
    found
}

impl Schemas {
    fn enter(&mut self, relations: Vec<Named>) -> Result<()> {
        for (place, relation) in relations.iter().enumerate() {
            let other = relations[..place].iter().find(|other| other.name == relation.name);
            if other.is_some_and(|other| other.is_qualified || relation.is_qualified) {
                let message = format!(
                    "\"{}\" is in FROM twice: give one of the two another name with AS",
                    relation.name
                );
                return Err(Error::new(message, relation.position));
            }
        }
        self.scopes.push(relations);
        Ok(())
    }

    fn leave(&mut self) -> ControlFlow<Error> {
        self.scopes.pop();
        ControlFlow::Continue(())
    }

    fn around(&self) -> impl Iterator<Item = &Named> {
        self.scopes.iter().rev().flatten()
    }

    fn is_there(&self, schema: &Ident, name: &Ident) -> bool {
        let (schema, name) = (fold(schema), fold(name));
        let found = self.around().find(|relation| relation.name == name);
        found.is_some_and(|found| found.schema.as_ref() == Some(&schema))
    }

    /// How many of the first of these names say where a relation is that begins the remaining names.
    fn before_relation(&self, names: &[Ident]) -> Result<usize> {
        if let [database, schema, relation, ..] = names
            && fold(database) == DATABASE
            && self.is_there(schema, relation)
        {
            return Ok(2);
        }
        let [first, second, ..] = names else { return Ok(0) };
        if self.is_there(first, second) {
            return Ok(1);
        }
        let name = fold(first);
        let is_relation = self.around().any(|relation| relation.name == name);
        let name = fold(second);
        let other = self.around().find(|relation| relation.name == name);
        match other {
            Some(Named { schema: Some(schema), is_qualified: true, .. }) if !is_relation => {
                let message = format!(
                    "\"{first}.{second}\" is not in FROM: \"{name}\" is that in the schema \"{schema}\""
                );
                Err(Error::new(message, Position::of_span(first.span)))
            }
            _ => Ok(0),
        }
    }

    fn wildcard(&self, name: &mut ObjectName) -> Result<()> {
        let names = name.0.iter().filter_map(|part| part.as_ident().cloned());
        let names: Vec<Ident> = names.collect();
        let before = self.before_relation(&names)?;
        name.0.drain(..before);
        Ok(())
    }
}

/// Continues, or ends with an error.
fn flow(result: Result<()>) -> ControlFlow<Error> {
    match result {
        Ok(()) => ControlFlow::Continue(()),
        Err(error) => ControlFlow::Break(error),
    }
}

impl VisitorMut for Schemas {
    type Break = Error;

    fn pre_visit_statement(&mut self, statement: &mut Statement) -> ControlFlow<Error> {
        let relations = match statement {
            Statement::Insert(insert) => match &insert.table {
                TableObject::TableName(name) => Named::of(name).into_iter().collect(),
                _ => Vec::new(),
            },
            Statement::Update(update) => {
                let from = match &update.from {
                    None => &[][..],
                    Some(
                        UpdateTableFromKind::BeforeSet(from) | UpdateTableFromKind::AfterSet(from),
                    ) => from,
                };
                let mut relations = named(std::slice::from_ref(&update.table));
                relations.extend(named(from));
                relations
            }
            Statement::Delete(delete) => {
                let (FromTable::WithFromKeyword(from) | FromTable::WithoutKeyword(from)) =
                    &delete.from;
                let mut relations = named(from);
                relations.extend(named(delete.using.as_deref().unwrap_or_default()));
                relations
            }
            _ => Vec::new(),
        };
        flow(self.enter(relations))
    }

    fn post_visit_statement(&mut self, _: &mut Statement) -> ControlFlow<Error> {
        self.leave()
    }

    /// The ORDER BY of a query may name the relations of its SELECT.
    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Error> {
        flow(self.enter(match query.body.as_ref() {
            SetExpr::Select(select) => named(&select.from),
            _ => Vec::new(),
        }))
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<Error> {
        self.leave()
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<Error> {
        flow(self.enter(named(&select.from)))?;
        for item in &mut select.projection {
            if let SelectItem::QualifiedWildcard(
                SelectItemQualifiedWildcardKind::ObjectName(name),
                _,
            ) = item
            {
                flow(self.wildcard(name))?;
            }
        }
        ControlFlow::Continue(())
    }

    fn post_visit_select(&mut self, _: &mut Select) -> ControlFlow<Error> {
        self.leave()
    }

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<Error> {
        standard::leave_out_in_from(factor);
        if let TableFactor::Table { name, alias: alias @ None, args: None, .. } = factor
            && let [_, .., last] = &name.0[..]
            && let Some(last) = last.as_ident()
        {
            let name = Ident::with_quote('"', fold(last));
            let name = Ident { span: last.span, ..name };
            *alias = Some(known_as(name));
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expression: &mut Expr) -> ControlFlow<Error> {
        standard::leave_out(expression);
        if let Expr::CompoundIdentifier(names) = expression
            && names.len() > 2
        {
            match self.before_relation(&names[..names.len() - 1]) {
                Ok(before) => drop(names.drain(..before)),
                Err(error) => return ControlFlow::Break(error),
            }
        }
        ControlFlow::Continue(())
    }
}
