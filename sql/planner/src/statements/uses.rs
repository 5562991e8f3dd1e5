//! The uses that statements make of the relations that they name, for deciding whether they may.
//!
//! Views count as they are named: the relations that they read do not count.

use std::collections::BTreeMap;

use alluvium_sql_syntax::name;
use alluvium_sql_syntax::statement::{StatementKind, fold, relations};
use alluvium_sql_syntax::syntax::{from_table, replaces, simple_query};
use datafusion_common::Column;
use datafusion_common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion_expr::{Expr, LogicalPlan};
use sqlparser::ast::{
    self, AssignmentTarget, FromTable, ObjectName, OnConflictAction, OnInsert, SelectItem,
    TableFactor, TableObject, TableWithJoins, UpdateTableFromKind,
};

use crate::context::{Context, Scope};
use crate::names::repeated_names;
use crate::relations::relation::source_of;
use crate::sql_functions::inlined;

/// A use that a statement makes of a relation that it names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Use {
    /// The relation.
    pub relation: String,
    /// The kind of use.
    pub how: How,
    /// The columns that it does so with, in alphabetical order. None may be read, as by `SELECT count(*)`.
    pub columns: Vec<String>,
}

/// The kind of use that a statement makes of rows of a relation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum How {
    /// It reads them.
    Read,
    /// It inserts some.
    Insert,
    /// It updates them.
    Update,
    /// It deletes them.
    Delete,
}

/// The uses that a statement of this kind makes of relations of a catalog that have rows, in the order of [`How`] and of their names.
/// If it is wrong, it is taken to read all columns of the relations that it names.
pub(crate) fn uses(statement: &StatementKind, scope: Scope<'_>) -> Vec<Use> {
    let mut uses = Uses { scope, found: BTreeMap::new() };
    match statement {
        StatementKind::Query(query)
        | StatementKind::ExplainSelect { query, .. }
        | StatementKind::CopyTo { query, .. }
        | StatementKind::CreateTableAs { query, .. } => uses.query(query),
        StatementKind::LockingQuery(locking) => {
            uses.query(&locking.query);
            // Locking rows needs the right to change them.
            if let Some(table) = locking.table() {
                uses.found.entry((How::Update, table)).or_default();
            }
        }
        StatementKind::CreateView(view) => uses.query(&view.query),
        StatementKind::Insert(insert) => uses.insert(insert),
        StatementKind::Update(update) => uses.update(update),
        StatementKind::Delete(delete) => uses.delete(delete),
        StatementKind::Copy { table, columns, .. } => {
            let columns = columns.iter().map(|(name, _)| name.clone()).collect();
            uses.written(table.clone(), How::Insert, columns);
        }
        _ => {}
    }
    let found = uses.found.into_iter();
    let used = |((how, relation), mut columns): (_, Vec<String>)| {
        columns.sort();
        columns.dedup();
        Use { relation, how, columns }
    };
    found.map(used).collect()
}

struct Uses<'a> {
    scope: Scope<'a>,
    found: BTreeMap<(How, String), Vec<String>>,
}

impl Uses<'_> {
    /// The relations and columns that a query reads.
    fn query(&mut self, query: &ast::Query) {
        let planned = || {
            let mut query = inlined(query, self.scope.catalog).ok()?.part;
            repeated_names::apart(&mut query);
            let plan =
                Context::new(self.scope).plan(ast::Statement::Query(Box::new(query))).ok()?;
            read(&plan).ok()
        };
        match planned() {
            Some(read) => {
                for (relation, columns) in read {
                    self.found.entry((How::Read, relation)).or_default().extend(columns);
                }
            }
            None => relations(query).iter().for_each(|name| self.whole(name)),
        }
    }

    /// All columns of a relation, as it is written, are read.
    fn whole(&mut self, relation: &str) {
        let name = written(relation);
        let columns = self.columns(&name);
        self.found.entry((How::Read, name)).or_default().extend(columns);
    }

    /// The columns of the relation that goes by a name.
    fn columns(&self, name: &str) -> Vec<String> {
        let relation = self.scope.catalog.relation(name);
        let source = relation.map(|relation| crate::RelationSource::new(name.to_owned(), relation));
        let schema = source.map(|source| datafusion_expr::TableSource::schema(&source));
        let fields = schema.iter().flat_map(|schema| schema.fields());
        fields.map(|field| field.name().clone()).collect()
    }

    /// Some columns are written, or all if none is named.
    fn written(&mut self, relation: String, how: How, mut columns: Vec<String>) {
        if columns.is_empty() && how != How::Delete {
            columns = self.columns(&relation);
        }
        self.found.entry((how, relation)).or_default().extend(columns);
    }

    fn insert(&mut self, insert: &ast::Insert) {
        let TableObject::TableName(table) = &insert.table else { return };
        let Ok(relation) = name::of_object(table) else { return };
        let columns = insert.columns.iter().filter_map(last).collect();
        self.written(relation.clone(), How::Insert, columns);
        if replaces(insert) {
            let columns = self.columns(&relation);
            self.written(relation.clone(), How::Update, columns);
        }
        if let Some(source) = &insert.source {
            self.query(source);
        }
        if let Some(OnInsert::OnConflict(conflict)) = &insert.on
            && let OnConflictAction::DoUpdate(update) = &conflict.action
        {
            let columns = assigned(&update.assignments);
            self.written(relation.clone(), How::Update, columns);
            self.whole(&name::written(&relation));
            relations(update).iter().for_each(|name| self.whole(name));
        }
        if let Some(items) = &insert.returning {
            let alias = insert.table_alias.as_ref().map(|alias| alias.alias.clone());
            let alias = alias.or_else(|| table.0.last()?.as_ident().cloned());
            let from = from_table(table.clone(), alias);
            self.query(&simple_query(items.clone(), vec![from], None));
        }
    }

    fn update(&mut self, update: &ast::Update) {
        let Some(relation) = of_factor(&update.table.relation) else { return };
        self.written(relation, How::Update, assigned(&update.assignments));
        let mut items: Vec<SelectItem> = update.returning.clone().unwrap_or_default();
        for assignment in &update.assignments {
            match &assignment.value {
                ast::Expr::Identifier(name) if name.value.eq_ignore_ascii_case("default") => {}
                ast::Expr::Tuple(values) => {
                    items.extend(values.iter().cloned().map(SelectItem::UnnamedExpr));
                }
                value => items.push(SelectItem::UnnamedExpr(value.clone())),
            }
        }
        let mut from = vec![update.table.clone()];
        if let Some(
            UpdateTableFromKind::AfterSet(others) | UpdateTableFromKind::BeforeSet(others),
        ) = &update.from
        {
            from.extend(others.iter().cloned());
        }
        self.changed(items, from, update.selection.clone());
    }

    fn delete(&mut self, delete: &ast::Delete) {
        let (FromTable::WithFromKeyword(from) | FromTable::WithoutKeyword(from)) = &delete.from;
        let mut from = from.clone();
        let Some(relation) = from.first().and_then(|table| of_factor(&table.relation)) else {
            return;
        };
        self.written(relation, How::Delete, Vec::new());
        from.extend(delete.using.iter().flatten().cloned());
        let items = delete.returning.clone().unwrap_or_default();
        self.changed(items, from, delete.selection.clone());
    }

    /// The columns read to find the rows that change, and their new values; nothing if no column is.
    fn changed(
        &mut self,
        mut items: Vec<SelectItem>,
        from: Vec<TableWithJoins>,
        selection: Option<ast::Expr>,
    ) {
        let target = from.first().and_then(|table| of_factor(&table.relation));
        items.push(SelectItem::UnnamedExpr(ast::Expr::value(ast::Value::Null)));
        let before =
            target.as_ref().and_then(|name| self.found.get(&(How::Read, name.clone())).cloned());
        self.query(&simple_query(items, from, selection));
        // Without a column it is only written.
        if let Some(name) = target
            && before.is_none()
            && self.found.get(&(How::Read, name.clone())).is_some_and(Vec::is_empty)
        {
            self.found.remove(&(How::Read, name));
        }
    }
}

/// The relations that a plan scans, and those of their columns that it names.
fn read(plan: &LogicalPlan) -> datafusion_common::Result<BTreeMap<String, Vec<String>>> {
    // The names by which scans are known, and their relations.
    let mut scans: Vec<(String, String)> = Vec::new();
    let mut named: Vec<Column> = Vec::new();
    plan.apply_with_subqueries(|node| {
        match node {
            LogicalPlan::TableScan(scan) => {
                if let Some(source) = source_of(scan.source.as_ref()) {
                    scans.push((scan.table_name.table().to_owned(), source.name().to_owned()));
                }
            }
            LogicalPlan::SubqueryAlias(alias) => {
                if let LogicalPlan::TableScan(scan) = alias.input.as_ref()
                    && let Some(source) = source_of(scan.source.as_ref())
                {
                    scans.push((alias.alias.table().to_owned(), source.name().to_owned()));
                }
            }
            // Its expressions need not be all.
            LogicalPlan::Extension(extension) => {
                named.extend(
                    extension.node.inputs().iter().flat_map(|input| input.schema().columns()),
                );
            }
            _ => {}
        }
        node.apply_expressions(|expression| {
            expression.apply(|part| {
                if let Expr::Column(column) | Expr::OuterReferenceColumn(_, column) = part {
                    named.push(column.clone());
                }
                Ok(TreeNodeRecursion::Continue)
            })
        })
    })?;
    let mut read: BTreeMap<String, Vec<String>> = BTreeMap::new();
    plan.apply_with_subqueries(|node| {
        let LogicalPlan::TableScan(scan) = node else { return Ok(TreeNodeRecursion::Continue) };
        let Some(source) = source_of(scan.source.as_ref()) else {
            return Ok(TreeNodeRecursion::Continue);
        };
        let names = scans.iter().filter(|(_, relation)| relation == source.name());
        let names: Vec<&str> = names.map(|(name, _)| name.as_str()).collect();
        let columns = read.entry(source.name().to_owned()).or_default();
        for column in &named {
            let is_of_it = column.relation.as_ref().is_none_or(|of| names.contains(&of.table()));
            if is_of_it && scan.source.schema().field_with_name(&column.name).is_ok() {
                columns.push(column.name.clone());
            }
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(read)
}

/// The text by which a relation goes that is written like this.
fn written(relation: &str) -> String {
    let tokens = sqlparser::parser::Parser::new(&alluvium_sql_syntax::statement::Alluvium::new(0))
        .try_with_sql(relation)
        .and_then(|mut parser| parser.parse_object_name(false));
    let name = tokens.ok().and_then(|name| name::of_object(&name).ok());
    name.unwrap_or_else(|| relation.to_owned())
}

fn of_factor(factor: &TableFactor) -> Option<String> {
    match factor {
        TableFactor::Table { name, args: None, .. } => name::of_object(name).ok(),
        _ => None,
    }
}

/// The columns that SET assigns to.
fn assigned(assignments: &[ast::Assignment]) -> Vec<String> {
    let targets = assignments.iter().flat_map(|assignment| match &assignment.target {
        AssignmentTarget::ColumnName(column) => std::slice::from_ref(column),
        AssignmentTarget::Tuple(columns) => columns.as_slice(),
    });
    targets.filter_map(last).collect()
}

/// The last part of a name, folded.
fn last(name: &ObjectName) -> Option<String> {
    name.0.last()?.as_ident().map(fold)
}
