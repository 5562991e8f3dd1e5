//! UPDATE and DELETE, as queries of the rows that they change.

use alluvium_sql_syntax::error::{Error, Position, Result};
use alluvium_sql_syntax::statement::fold;
use alluvium_sql_syntax::syntax::call;
use datafusion_common::DFSchema;
use datafusion_expr::{Cast, Expr, ExprSchemable, LogicalPlan, LogicalPlanBuilder, Projection};
use sqlparser::ast::{
    self, FromTable, ObjectName, SelectItem, TableFactor, TableWithJoins, UpdateTableFromKind,
    WildcardAdditionalOptions,
};

use super::query::{column, derived, from, named, select};
use super::target::Target;
use super::{PlannedWrite, assignments, returning};
use crate::context::Scope;

/// The number of a row of a table without a primary key.
const ROW: &str = "row of the table";

pub fn update(update: &ast::Update, scope: Scope<'_>) -> Result<PlannedWrite> {
    let (name, alias) = single_table(&update.table)?;
    let target = Target::find(name, scope)?;
    target.check_changes("UPDATE")?;
    let alias = alias.unwrap_or_else(|| target.own_name.clone());
    let mut values = assignments::read(&update.assignments, &target)?;
    let new = (0..target.columns.len())
        .map(|number| values.remove(&number).unwrap_or(column(&alias, &target.columns[number])));
    let others = match &update.from {
        None => &[][..],
        Some(UpdateTableFromKind::AfterSet(others) | UpdateTableFromKind::BeforeSet(others)) => {
            others
        }
    };
    let changed = Changed { target: &target, alias: &alias, others, selection: &update.selection };
    let plan = changed.rows(new.collect(), scope)?;
    let returning = returning::plan(&update.returning, &target, &alias, scope)?;
    Ok(PlannedWrite { table: target.name, plan, on_conflict: None, returning })
}

pub fn delete(delete: &ast::Delete, scope: Scope<'_>) -> Result<PlannedWrite> {
    let (FromTable::WithFromKeyword(from) | FromTable::WithoutKeyword(from)) = &delete.from;
    let [table] = from.as_slice() else {
        return Err(Error::not_supported("DELETE FROM several tables", Position::of(delete)));
    };
    let (name, alias) = single_table(table)?;
    let target = Target::find(name, scope)?;
    target.check_changes("DELETE")?;
    let alias = alias.unwrap_or_else(|| target.own_name.clone());
    let others = delete.using.as_deref().unwrap_or_default();
    let changed = Changed { target: &target, alias: &alias, others, selection: &delete.selection };
    let plan = changed.rows(Vec::new(), scope)?;
    let returning = returning::plan(&delete.returning, &target, &alias, scope)?;
    Ok(PlannedWrite { table: target.name, plan, on_conflict: None, returning })
}

/// The rows of a table that a statement changes.
struct Changed<'a> {
    target: &'a Target,
    /// The name that the statement has for the table.
    alias: &'a str,
    /// The relations of FROM or USING.
    others: &'a [TableWithJoins],
    selection: &'a Option<ast::Expr>,
}

impl Changed<'_> {
    /// The rows as they are, with columns qualified `old`, each once, and beside it the values that its columns get,
    /// qualified `new`. If several rows of the other relations go with one, any of them gives the values.
    fn rows(&self, values: Vec<ast::Expr>, scope: Scope<'_>) -> Result<LogicalPlan> {
        let Target { columns, .. } = self.target;
        let old = columns.iter().enumerate();
        let old = old
            .map(|(number, name)| named(column(self.alias, name), format!("old column {number}")));
        let new = values.into_iter().enumerate();
        let new = new.map(|(number, value)| named(value, format!("new column {number}")));
        let mut items: Vec<SelectItem> = old.chain(new).collect();
        let is_numbered = !self.others.is_empty() && self.target.key.is_empty();
        let mut relations = vec![match is_numbered {
            true => {
                items.push(named(column(self.alias, ROW), ROW));
                self.numbered()
            }
            false => from(&self.target.name, self.alias),
        }];
        relations.extend(self.others.iter().cloned());
        let query = select(items, relations, self.selection.clone());
        let plan = self.target.queried(query, scope)?;
        let rows = self.converted(plan, is_numbered)?;
        match self.others.is_empty() {
            true => Ok(rows),
            false => self.once(rows, is_numbered).map_err(|error| Error::from_datafusion(&error)),
        }
    }

    /// The table with a number for each row.
    fn numbered(&self) -> TableWithJoins {
        let mut number = call(ast::Ident::new("row_number"), []);
        if let ast::Expr::Function(function) = &mut number {
            function.over = Some(ast::WindowType::WindowSpec(ast::WindowSpec {
                window_name: None,
                partition_by: Vec::new(),
                order_by: Vec::new(),
                window_frame: None,
            }));
        }
        let items =
            vec![SelectItem::Wildcard(WildcardAdditionalOptions::default()), named(number, ROW)];
        let Target { name, own_name, .. } = self.target;
        derived(select(items, vec![from(name, own_name)], None), self.alias)
    }

    /// The selected rows with the names and types of the table's columns.
    fn converted(&self, plan: LogicalPlan, is_numbered: bool) -> Result<LogicalPlan> {
        let LogicalPlan::Projection(Projection { expr, input, .. }) = plan else {
            return Err(Error::new("the statement has no rows", self.target.position));
        };
        let fields = self.target.schema.fields();
        let places = ["old", "new"].into_iter().flat_map(|of| fields.iter().map(move |f| (of, f)));
        let width = expr.len() - usize::from(is_numbered);
        let mut expressions = expr.into_iter();
        let rows = expressions.by_ref().take(width).zip(places).map(|(expression, (of, field))| {
            let value = converted(expression.unalias(), field, input.schema());
            value.alias_qualified(Some(of), field.name())
        });
        let mut rows: Vec<Expr> = rows.collect();
        rows.extend(expressions);
        LogicalPlanBuilder::from(input)
            .project(rows)
            .and_then(LogicalPlanBuilder::build)
            .map_err(|error| Error::from_datafusion(&error))
    }

    /// One of the rows with each key or number, without that number.
    fn once(&self, rows: LogicalPlan, is_numbered: bool) -> datafusion_common::Result<LogicalPlan> {
        let mut columns = rows.schema().columns();
        let on = match is_numbered {
            true => columns.split_off(columns.len() - 1),
            false => self.target.key.iter().map(|&key| columns[key].clone()).collect(),
        };
        let expressions = |columns: Vec<_>| columns.into_iter().map(Expr::Column).collect();
        LogicalPlanBuilder::from(rows)
            .distinct_on(expressions(on), expressions(columns), None)?
            .build()
    }
}

/// A value with the type of a column.
fn converted(value: Expr, field: &arrow::datatypes::FieldRef, input: &DFSchema) -> Expr {
    match value {
        // Its value is cast where it takes its place.
        Expr::Placeholder(mut parameter) => {
            parameter.field.get_or_insert_with(|| field.clone());
            let fits =
                parameter.field.as_ref().is_some_and(|of| of.data_type() == field.data_type());
            match fits {
                true => Expr::Placeholder(parameter),
                false => cast(Expr::Placeholder(parameter), field),
            }
        }
        Expr::Column(column)
            if Expr::Column(column.clone())
                .get_type(input)
                .is_ok_and(|data_type| data_type == *field.data_type()) =>
        {
            Expr::Column(column)
        }
        value => cast(value, field),
    }
}

fn cast(value: Expr, field: &arrow::datatypes::FieldRef) -> Expr {
    Expr::Cast(Cast::new(Box::new(value), field.data_type().clone()))
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
