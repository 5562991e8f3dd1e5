//! Planning INSERT, UPDATE and DELETE: which rows are inserted into and deleted from a table.

use std::collections::BTreeSet;

use arrow::datatypes::SchemaRef;
use datafusion_common::Column;
use datafusion_expr::{Cast, Expr, LogicalPlan, LogicalPlanBuilder, Projection};
use sqlparser::ast::{
    self, AssignmentTarget, FromTable, Ident, ObjectName, SetExpr, TableFactor, TableObject,
    TableWithJoins,
};

use super::context::{Context, no_relation};
use super::extent::Extent;
use super::{constant, relation, set_operation};
use crate::catalog::{Catalog, KEEPING, Relation};
use crate::error::{Error, Position, Result, no_column};
use crate::statement::{fold, relation_name};

/// The rows with which a statement changes a table.
#[derive(Clone, Debug)]
pub struct PlannedWrite {
    /// The table that is changed.
    pub table: String,
    /// The rows.
    pub plan: LogicalPlan,
}

pub(super) fn insert(insert: &ast::Insert, catalog: &dyn Catalog) -> Result<PlannedWrite> {
    let TableObject::TableName(name) = &insert.table else {
        return Err(Error::not_supported(
            "INSERT INTO a function or a query",
            Position::of(&insert.insert_token.0),
        ));
    };
    let target = Target::find(name, catalog)?;
    let Some(source) = &insert.source else {
        return Err(Error::not_supported("INSERT … DEFAULT VALUES", target.position));
    };
    refuse_default(source)?;
    let mut named = BTreeSet::new();
    for name in &insert.columns {
        let column = target.column(name)?;
        if !named.insert(column) {
            let message = format!("column \"{column}\" appears twice");
            return Err(Error::new(message, Position::of(name)));
        }
    }
    let mut planned = target.plan(ast::Statement::Insert(insert.clone()), catalog)?;
    planned.plan = target
        .cast(planned.plan)
        .map_err(|error| Error::from_datafusion(&error).at(Some(target.position)))?;
    Ok(planned)
}

pub(super) fn update(update: &ast::Update, catalog: &dyn Catalog) -> Result<PlannedWrite> {
    let (name, alias) = single_table(&update.table)?;
    let target = Target::find(name, catalog)?;
    target.check_changes("UPDATE")?;
    let mut update = update.clone();
    let mut assigned = BTreeSet::new();
    for assignment in &mut update.assignments {
        let AssignmentTarget::ColumnName(column) = &mut assignment.target else {
            return Err(Error::not_supported("UPDATE … SET (…)", target.position));
        };
        let at = Position::of(column);
        let name = target.column(column)?.to_string();
        if !assigned.insert(name.clone()) {
            return Err(Error::new(format!("column \"{name}\" is assigned twice"), at));
        }
        // DataFusion looks the target up without folding its name, so it gets the folded one.
        *column = ObjectName::from(vec![Ident::with_quote('"', name)]);
    }
    let qualifier = alias.unwrap_or_else(|| target.name.clone());
    let mut planned = target.plan(ast::Statement::Update(update), catalog)?;
    let LogicalPlan::Projection(Projection { expr, input, .. }) = planned.plan else {
        return Err(Error::new("the UPDATE has no new rows", target.position));
    };
    let names = target.columns.iter();
    let old = names.clone().map(|name| {
        Expr::Column(Column::new(Some(qualifier.clone()), name)).alias_qualified(Some("old"), name)
    });
    let new =
        names.zip(expr).map(|(name, value)| value.unalias().alias_qualified(Some("new"), name));
    planned.plan = LogicalPlanBuilder::from(input)
        .project(old.chain(new))
        .and_then(LogicalPlanBuilder::build)
        .map_err(|error| Error::from_datafusion(&error).at(Some(target.position)))?;
    Ok(planned)
}

pub(super) fn delete(delete: &ast::Delete, catalog: &dyn Catalog) -> Result<PlannedWrite> {
    let (FromTable::WithFromKeyword(from) | FromTable::WithoutKeyword(from)) = &delete.from;
    let position = Position::of(delete);
    let [table] = from.as_slice() else {
        return Err(Error::not_supported("DELETE FROM several tables", position));
    };
    let (name, alias) = single_table(table)?;
    let target = Target::find(name, catalog)?;
    target.check_changes("DELETE")?;
    if alias.is_some() {
        return Err(Error::not_supported("DELETE … with an alias", target.position));
    }
    target.plan(ast::Statement::Delete(delete.clone()), catalog)
}

/// The table that a statement writes to.
struct Target {
    name: String,
    position: Position,
    columns: Vec<String>,
    schema: SchemaRef,
    kept: bool,
    append_only: bool,
}

impl Target {
    fn find(name: &ObjectName, catalog: &dyn Catalog) -> Result<Target> {
        let (name, position) = relation_name(name)?;
        match catalog.relation(&name) {
            Some(Relation::Table { schema, kept, append_only, .. }) => {
                let columns = schema.fields().iter().map(|field| field.name().clone()).collect();
                Ok(Target { name, position, columns, schema, kept, append_only })
            }
            Some(_) => Err(Error::new(
                format!("\"{name}\" is not a table: only tables can be changed"),
                position,
            )),
            None => Err(no_relation(&name, catalog).at(Some(position))),
        }
    }

    /// Refuses to change rows that are not kept or are append-only.
    fn check_changes(&self, statement: &str) -> Result<()> {
        let name = &self.name;
        if !self.kept {
            let message = format!("{statement}: \"{name}\" keeps no rows: {KEEPING}");
            return Err(Error::new(message, self.position));
        }
        if self.append_only {
            let message = format!("{statement}: \"{name}\" is 'append_only': rows only enter it");
            return Err(Error::new(message, self.position));
        }
        Ok(())
    }

    /// The column that a list of columns or an assignment names.
    fn column(&self, name: &ObjectName) -> Result<&str> {
        let position = Position::of(name);
        let Some(identifier) = name.0.last().and_then(|part| part.as_ident()) else {
            return Err(Error::new(format!("\"{name}\" is not a column"), position));
        };
        let column = fold(identifier);
        self.columns.iter().find(|candidate| **candidate == column).map(String::as_str).ok_or_else(
            || {
                no_column(&column, Some(&self.name), self.columns.iter().map(String::as_str))
                    .at(position)
            },
        )
    }

    /// The rows cast to the table's types. DataFusion's own casts use types from before its analysis, which changes, for
    /// example, the types of lists in a UNION or a CASE.
    fn cast(&self, plan: LogicalPlan) -> datafusion_common::Result<LogicalPlan> {
        let columns = plan.schema().columns().into_iter().zip(self.schema.fields());
        let cast = columns.map(|(column, field)| {
            let name = column.name.clone();
            Expr::Cast(Cast::new(Box::new(Expr::Column(column)), field.data_type().clone()))
                .alias(name)
        });
        let cast: Vec<Expr> = cast.collect();
        LogicalPlanBuilder::from(plan).project(cast)?.build()
    }

    /// The rows of the statement, as DataFusion plans them.
    fn plan(&self, statement: ast::Statement, catalog: &dyn Catalog) -> Result<PlannedWrite> {
        let context = Context::new(catalog);
        let at = |error: datafusion_common::DataFusionError| {
            Error::from_datafusion(&error).at(Some(self.position))
        };
        let plan = context.plan(statement).map_err(at)?;
        Extent::of(&plan).map_err(|error| error.at(Some(self.position)))?;
        let LogicalPlan::Dml(change) = plan else {
            return Err(Error::new("the statement does not change a table", self.position));
        };
        let plan = set_operation::plan(change.input.as_ref().clone())
            .and_then(relation::inline_views)
            .and_then(set_operation::expand)
            .map_err(at)?;
        relation::check_kept(&plan)
            .and_then(|()| constant::check(&plan))
            .map_err(|error| error.at(Some(self.position)))?;
        Ok(PlannedWrite { table: self.name.clone(), plan })
    }
}

/// Refuses DEFAULT among VALUES, which DataFusion would take for a column.
fn refuse_default(source: &ast::Query) -> Result<()> {
    let SetExpr::Values(values) = source.body.as_ref() else { return Ok(()) };
    let mut values = values.rows.iter().flat_map(|row| row.content.iter());
    let default = values.find_map(|value| match value {
        ast::Expr::Identifier(word)
            if word.quote_style.is_none() && word.value.eq_ignore_ascii_case("default") =>
        {
            Some(Position::of_span(word.span))
        }
        _ => None,
    });
    match default {
        Some(position) => Err(Error::not_supported(
            "DEFAULT among VALUES (a column that is left out gets its default)",
            position,
        )),
        None => Ok(()),
    }
}

/// The table that UPDATE and DELETE name, and the folded alias it gets.
fn single_table(table: &TableWithJoins) -> Result<(&ObjectName, Option<String>)> {
    match &table.relation {
        TableFactor::Table { name, alias, args: None, .. } if table.joins.is_empty() => {
            Ok((name, alias.as_ref().map(|alias| fold(&alias.name))))
        }
        relation => {
            Err(Error::not_supported("changing anything but a table", Position::of(relation)))
        }
    }
}
