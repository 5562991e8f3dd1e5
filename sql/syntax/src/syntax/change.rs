//! INSERT, UPDATE and DELETE.

use sqlparser::ast::{
    Assignment, ConflictTarget, Delete, DoUpdate, FromTable, Insert, OnConflict, OnConflictAction,
    OnInsert, SelectItem, Spanned, SqliteOnConflict, Statement, TableAliasWithoutColumns,
    TableFactor, TableObject, TableWithJoins, Update, UpdateTableFromKind,
};
use sqlparser::tokenizer::Span;

use super::check;
use super::clause::{Clause, none_of, refuse};
use super::column_names::name_items;
use super::relation::check_joins;
use super::select::check_item;
use crate::error::Result;

/// Names the computed columns of RETURNING, as those of a SELECT. It comes before calls are replaced by what they stand for.
pub fn name_returned(statement: &mut Statement) {
    let returning = match statement {
        Statement::Insert(insert) => &mut insert.returning,
        Statement::Update(update) => &mut update.returning,
        Statement::Delete(delete) => &mut delete.returning,
        _ => return,
    };
    if let Some(items) = returning {
        name_items(items);
    }
}

/// Refuses the parts of an INSERT that nothing reads.
pub fn check_insert(insert: &Insert) -> Result<()> {
    let Insert {
        insert_token,
        optimizer_hints,
        or,
        ignore,
        into: _,
        table,
        table_alias,
        columns: _,
        overwrite,
        source: _,
        assignments,
        partitioned,
        after_columns,
        has_table_keyword: _,
        on,
        returning,
        output,
        replace_into,
        priority,
        insert_alias,
        settings,
        format_clause,
        multi_table_insert_type,
        multi_table_into_clauses,
        multi_table_when_clauses,
        multi_table_else_clause,
    } = insert;
    let name = match table {
        TableObject::TableName(name) => name,
        TableObject::TableFunction(_) | TableObject::TableQuery(_) => {
            return refuse("INSERT INTO a function or a query", || insert_token.0.span);
        }
    };
    let at = || name.span();
    let several: &[&dyn Clause] = &[
        multi_table_insert_type,
        multi_table_into_clauses,
        multi_table_when_clauses,
        multi_table_else_clause,
    ];
    let several = several.iter().any(|clause| clause.is_there());
    let replaces = replaces(insert);
    if replaces && on.is_some() {
        return refuse("INSERT OR REPLACE with ON CONFLICT", at);
    }
    let or = or.filter(|_| !replaces);
    let refused: &[(&dyn Clause, &str)] = &[
        (&several, "INSERT … INTO several tables"),
        (optimizer_hints, "an optimizer hint"),
        (&or, "INSERT … OR"),
        (ignore, "INSERT … IGNORE"),
        (overwrite, "INSERT … OVERWRITE"),
        (replace_into, "REPLACE INTO"),
        (priority, "INSERT … LOW_PRIORITY, DELAYED or HIGH_PRIORITY"),
        (partitioned, "INSERT … PARTITION"),
        (after_columns, "INSERT … PARTITION"),
        (assignments, "INSERT … SET"),
        (output, "INSERT … OUTPUT"),
        (insert_alias, "INSERT … AS"),
        (settings, "INSERT … SETTINGS"),
        (format_clause, "INSERT … FORMAT"),
    ];
    none_of(refused, at)?;
    if let Some(TableAliasWithoutColumns { explicit: _, alias }) = table_alias {
        refuse("INSERT … with an alias", || alias.span)?;
    }
    check_on(on, at)?;
    check_items(returning)?;
    check(insert)
}

/// Whether a row takes the place of one that has its key: INSERT OR REPLACE.
pub fn replaces(insert: &Insert) -> bool {
    insert.or == Some(SqliteOnConflict::Replace)
}

/// ON CONFLICT.
fn check_on(on: &Option<OnInsert>, at: impl Fn() -> Span) -> Result<()> {
    match on {
        None => {}
        Some(OnInsert::DuplicateKeyUpdate(_)) => {
            let name = "ON DUPLICATE KEY UPDATE (write ON CONFLICT (…) DO UPDATE SET …)";
            refuse(name, at)?;
        }
        Some(OnInsert::OnConflict(OnConflict { conflict_target, action })) => {
            match conflict_target {
                None | Some(ConflictTarget::Columns(_) | ConflictTarget::OnConstraint(_)) => {}
            }
            match action {
                OnConflictAction::DoNothing => {}
                OnConflictAction::DoUpdate(DoUpdate { assignments, selection: _ }) => {
                    check_assignments(assignments);
                }
            }
        }
        Some(_) => refuse("INSERT … ON", at)?,
    }
    Ok(())
}

/// Refuses the parts of an UPDATE that nothing reads.
pub fn check_update(update: &Update) -> Result<()> {
    let Update {
        update_token: _,
        optimizer_hints,
        table,
        assignments,
        from,
        selection: _,
        returning,
        output,
        or,
        order_by,
        limit,
    } = update;
    let refused: &[(&dyn Clause, &str)] = &[
        (optimizer_hints, "an optimizer hint"),
        (or, "UPDATE … OR"),
        (output, "UPDATE … OUTPUT"),
        (order_by, "UPDATE … ORDER BY"),
        (limit, "UPDATE … LIMIT"),
    ];
    none_of(refused, || table.span())?;
    check_single(table)?;
    match from {
        None => {}
        Some(UpdateTableFromKind::AfterSet(from)) => from.iter().try_for_each(check_joins)?,
        Some(UpdateTableFromKind::BeforeSet(_)) => {
            refuse("FROM in front of SET (write UPDATE … SET … FROM)", || table.span())?;
        }
    }
    check_assignments(assignments);
    check_items(returning)?;
    check(update)
}

/// Refuses the parts of a DELETE that nothing reads.
pub fn check_delete(delete: &Delete) -> Result<()> {
    let Delete {
        delete_token,
        optimizer_hints,
        tables,
        from,
        using,
        selection: _,
        returning,
        output,
        order_by,
        limit,
    } = delete;
    let refused: &[(&dyn Clause, &str)] = &[
        (optimizer_hints, "an optimizer hint"),
        (tables, "DELETE from several tables"),
        (output, "DELETE … OUTPUT"),
        (order_by, "DELETE … ORDER BY"),
        (limit, "DELETE … LIMIT"),
    ];
    let (FromTable::WithFromKeyword(from) | FromTable::WithoutKeyword(from)) = from;
    let at = || from.first().map_or(delete_token.0.span, Spanned::span);
    none_of(refused, at)?;
    let [table] = from.as_slice() else {
        return refuse("DELETE from several tables", at);
    };
    check_single(table)?;
    using.iter().flatten().try_for_each(check_joins)?;
    check_items(returning)?;
    check(delete)
}

/// All of them is read.
fn check_assignments(assignments: &[Assignment]) {
    for Assignment { target: _, value: _ } in assignments {}
}

/// The columns of RETURNING.
fn check_items(items: &Option<Vec<SelectItem>>) -> Result<()> {
    items.iter().flatten().try_for_each(check_item)
}

/// Refuses to change anything but one table.
fn check_single(table: &TableWithJoins) -> Result<()> {
    let is_single =
        table.joins.is_empty() && matches!(&table.relation, TableFactor::Table { args: None, .. });
    match is_single {
        true => Ok(()),
        false => refuse("changing anything but a table", || table.relation.span()),
    }
}
