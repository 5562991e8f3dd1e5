//! INSERT, UPDATE and DELETE.

use sqlparser::ast::{
    Assignment, Delete, FromTable, Insert, Spanned, TableAliasWithoutColumns, TableFactor,
    TableObject, TableWithJoins, Update,
};

use super::check;
use super::clause::{Clause, none_of, refuse};
use crate::error::Result;

pub(crate) fn check_insert(insert: &Insert) -> Result<()> {
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
        source,
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
    let without_source = source.is_none() && assignments.is_empty();
    let refused: &[(&dyn Clause, &str)] = &[
        (&several, "INSERT … INTO several tables"),
        (optimizer_hints, "an optimizer hint"),
        (or, "INSERT … OR"),
        (ignore, "INSERT … IGNORE"),
        (overwrite, "INSERT … OVERWRITE"),
        (replace_into, "REPLACE INTO"),
        (priority, "INSERT … LOW_PRIORITY, DELAYED or HIGH_PRIORITY"),
        (partitioned, "INSERT … PARTITION"),
        (after_columns, "INSERT … PARTITION"),
        (assignments, "INSERT … SET"),
        (on, "INSERT … ON CONFLICT"),
        (returning, "INSERT … RETURNING"),
        (output, "INSERT … OUTPUT"),
        (insert_alias, "INSERT … AS"),
        (settings, "INSERT … SETTINGS"),
        (format_clause, "INSERT … FORMAT"),
        (&without_source, "INSERT … DEFAULT VALUES"),
    ];
    none_of(refused, at)?;
    if let Some(TableAliasWithoutColumns { explicit: _, alias }) = table_alias {
        refuse("INSERT … with an alias", || alias.span)?;
    }
    check(insert)
}

pub(crate) fn check_update(update: &Update) -> Result<()> {
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
        (from, "UPDATE … FROM"),
        (returning, "UPDATE … RETURNING"),
        (output, "UPDATE … OUTPUT"),
        (order_by, "UPDATE … ORDER BY"),
        (limit, "UPDATE … LIMIT"),
    ];
    none_of(refused, || table.span())?;
    check_single(table)?;
    for Assignment { target: _, value: _ } in assignments {}
    check(update)
}

pub(crate) fn check_delete(delete: &Delete) -> Result<()> {
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
        (using, "DELETE … USING"),
        (returning, "DELETE … RETURNING"),
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
    check(delete)
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
