//! The table that a statement changes.

use alluvium_sql_syntax::error::{Error, Position, Result, SqlState, no_column};
use alluvium_sql_syntax::name;
use alluvium_sql_syntax::statement::KEEPING;
use alluvium_sql_syntax::statement::{TableDefinition, fold, relation_name};
use arrow::datatypes::SchemaRef;
use datafusion_expr::{Cast, Expr, LogicalPlan, LogicalPlanBuilder};
use sqlparser::ast::{self, ObjectName};

use super::defaults::Defaults;
use crate::catalog::Relation;
use crate::checks::extent::Extent;
use crate::context::{Context, Scope, no_relation};
use crate::expressions::constant;
use crate::names::selected_names;
use crate::relations::relation;
use crate::statements::set_operation;
use crate::subqueries::subquery;

/// The table that a statement changes.
pub(super) struct Target {
    pub(super) name: String,
    /// Its name without its schema, by which a statement knows it without an alias.
    pub(super) own_name: String,
    pub(super) position: Position,
    pub(super) columns: Vec<String>,
    pub(super) schema: SchemaRef,
    /// The columns of its primary key; empty without one.
    pub(super) key: Vec<usize>,
    /// The columns of each of its UNIQUE constraints.
    pub(super) uniques: Vec<Vec<usize>>,
    defaults: Vec<Option<Expr>>,
    always_generated: Vec<usize>,
    kept: bool,
    append_only: bool,
}

impl Target {
    pub(super) fn find(name: &ObjectName, scope: Scope<'_>) -> Result<Target> {
        let (name, position) = relation_name(name)?;
        match scope.catalog.relation(&name) {
            Some(Relation::Table {
                schema,
                kept,
                append_only,
                primary_key,
                uniques,
                defaults,
                always_generated,
                ..
            }) => {
                let columns = schema.fields().iter().map(|field| field.name().clone()).collect();
                let (key, (_, own_name)) = (primary_key, name::split(&name));
                Ok(Target {
                    name,
                    own_name,
                    position,
                    columns,
                    schema,
                    key,
                    uniques,
                    defaults,
                    always_generated,
                    kept,
                    append_only,
                })
            }
            Some(_) => Err(Error::new(
                format!("\"{name}\" is not a table: only tables can be changed"),
                position,
            )
            .with_sqlstate(SqlState::WRONG_KIND)),
            None => Err(no_relation(&name, scope.catalog).at(Some(position))),
        }
    }

    /// A table that is being defined.
    pub(super) fn of_definition(table: &TableDefinition) -> Target {
        let columns: Vec<String> =
            table.schema.fields().iter().map(|field| field.name().clone()).collect();
        let (_, own_name) = name::split(&table.name);
        Target {
            name: table.name.clone(),
            own_name,
            position: table.position,
            defaults: vec![None; columns.len()],
            always_generated: Vec::new(),
            columns,
            schema: table.schema.clone(),
            key: table.primary_key.clone(),
            uniques: Vec::new(),
            kept: table.is_kept(),
            append_only: table.is_append_only(),
        }
    }

    /// Refuses to change rows that are not kept or are append-only.
    pub(super) fn check_changes(&self, statement: &str) -> Result<()> {
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

    /// Refuses a value for a column whose values are all generated.
    pub(super) fn check_given(&self, column: usize, at: Option<Position>) -> Result<()> {
        if !self.always_generated.contains(&column) {
            return Ok(());
        }
        let message = format!(
            "column \"{}\" is GENERATED ALWAYS, and takes no value but DEFAULT: leave it out",
            self.columns[column]
        );
        let error = Error::new(message, at.or(Some(self.position)));
        Err(error.with_sqlstate(SqlState::GENERATED_ALWAYS))
    }

    /// The number of the column that a list of columns or an assignment names.
    pub(super) fn column(&self, name: &ObjectName) -> Result<usize> {
        let position = Position::of(name);
        match name.0.last().and_then(|part| part.as_ident()) {
            Some(identifier) => self.column_of(identifier).map_err(|error| error.at(position)),
            None => Err(Error::new(format!("\"{name}\" is not a column"), position)),
        }
    }

    /// The number of a column.
    pub(super) fn column_of(&self, identifier: &ast::Ident) -> Result<usize> {
        let name = fold(identifier);
        let columns = || self.columns.iter().map(String::as_str);
        columns().position(|column| column == name).ok_or_else(|| {
            let at = Position::of_span(identifier.span);
            no_column(&name, Some(&self.name), columns()).at(at)
        })
    }

    /// The rows cast to the table's types. DataFusion's own casts use types from before its analysis, which changes, for
    /// example, the types of lists in a UNION or a CASE.
    pub(super) fn cast(&self, plan: LogicalPlan) -> Result<LogicalPlan> {
        let columns = plan.schema().columns().into_iter().zip(self.schema.fields());
        let cast = columns.map(|(column, field)| {
            let name = column.name.clone();
            Expr::Cast(Cast::new(Box::new(Expr::Column(column)), field.data_type().clone()))
                .alias(name)
        });
        let cast: Vec<Expr> = cast.collect();
        let cast = LogicalPlanBuilder::from(plan).project(cast).and_then(LogicalPlanBuilder::build);
        cast.map_err(|error| Error::from_datafusion(&error))
    }

    /// The rows of an INSERT, as DataFusion plans them.
    pub(super) fn inserted(&self, insert: ast::Insert, scope: Scope<'_>) -> Result<LogicalPlan> {
        let plan = self.context(scope).plan(ast::Statement::Insert(insert));
        match plan.map_err(|error| Error::from_datafusion(&error))? {
            LogicalPlan::Dml(change) => self.checked(change.input.as_ref().clone()),
            _ => Err(Error::new("the statement does not change a table", self.position)),
        }
    }

    /// The rows of a query that is a part of the statement.
    pub(super) fn queried(&self, query: ast::Query, scope: Scope<'_>) -> Result<LogicalPlan> {
        let plan = self.context(scope).plan(ast::Statement::Query(Box::new(query)));
        self.checked(plan.map_err(|error| Error::from_datafusion(&error))?)
    }

    fn context<'a>(&self, scope: Scope<'a>) -> Context<'a> {
        let (expressions, schema) = (self.defaults.clone(), self.schema.clone());
        Context::of_statement(scope, Defaults { expressions, schema })
    }

    fn checked(&self, plan: LogicalPlan) -> Result<LogicalPlan> {
        Extent::of(&plan)?;
        let plan = set_operation::plan(plan)
            .and_then(relation::inline_views)
            .and_then(selected_names::apart)
            .and_then(subquery::decorrelate)
            .and_then(set_operation::expand)
            .map_err(|error| Error::from_datafusion(&error))?;
        relation::check_kept(&plan).and_then(|()| constant::check(&plan))?;
        Ok(plan)
    }
}
