//! `CREATE INDEX`.

use arrow::datatypes::Schema;
use sqlparser::ast::{
    CreateIndex, Expr, Ident, IndexColumn, IndexType, ObjectName, OrderByExpr, OrderByOptions,
    Spanned,
};

use super::StatementKind;
use crate::error::{Error, Position, Result, no_column};
use crate::name;
use crate::name::{fold, relation_name};

/// An index of a table or a materialized view.
#[derive(Clone, Debug)]
pub struct IndexDefinition {
    /// Its name, which is in the schema of its relation.
    pub name: String,
    /// Where it is named.
    pub position: Position,
    /// Whether it may be there already.
    pub if_not_exists: bool,
    /// The relation whose rows it has.
    pub relation: String,
    /// Where that is named.
    pub relation_position: Position,
    /// The columns that the rows are sorted by, and where each is named.
    pub columns: Vec<(String, Option<Position>)>,
    /// The statement's source.
    pub text: String,
}

impl IndexDefinition {
    /// The places of its columns among those of its relation.
    ///
    /// # Errors
    /// If there is no such column.
    pub fn places(&self, schema: &Schema) -> Result<Vec<usize>> {
        let place = |(name, position): &(String, Option<Position>)| {
            let found = schema.fields().iter().position(|field| field.name() == name);
            let names = || schema.fields().iter().map(|field| field.name().as_str());
            found.ok_or_else(|| no_column(name, Some(&self.relation), names()).at(*position))
        };
        self.columns.iter().map(place).collect()
    }
}

/// Reads `CREATE INDEX`, which the parser has parsed. Every clause is read or refused by name.
pub(super) fn create(
    create: CreateIndex,
    start: Option<Position>,
    text: &str,
) -> Result<StatementKind> {
    let CreateIndex {
        name,
        table_name,
        using,
        columns,
        unique,
        concurrently,
        if_not_exists,
        include,
        nulls_distinct,
        with,
        predicate,
        index_options,
        alter_options,
    } = create;
    let refuse = |what: &str, position: Option<Position>| {
        Err(Error::not_supported(what, position.or(start)))
    };
    let of_predicate = predicate.as_ref().and_then(|predicate| Position::of_span(predicate.span()));
    let of_included = include.first().and_then(|column| Position::of_span(column.span));
    if unique || nulls_distinct.is_some() {
        return refuse("a UNIQUE INDEX (write ALTER TABLE … ADD UNIQUE)", None);
    }
    if concurrently {
        return refuse("CREATE INDEX CONCURRENTLY (leave it out: reads go on meanwhile)", None);
    }
    if !matches!(using, None | Some(IndexType::BTree)) {
        return refuse(
            "an index USING anything but btree (leave it out: indexes are ordered)",
            None,
        );
    }
    if !include.is_empty() {
        return refuse("INCLUDE (leave it out: an index has all columns)", of_included);
    }
    if predicate.is_some() {
        let what = "an index with WHERE (create a materialized view with it, and its index)";
        return refuse(what, of_predicate);
    }
    if !with.is_empty() || !index_options.is_empty() || !alter_options.is_empty() {
        return refuse("an index with options", None);
    }
    let Some(name) = name else {
        return Err(Error::new("an index needs a name: CREATE INDEX name ON …", start));
    };
    let (relation, relation_position) = relation_name(&table_name)?;
    let (name, position) = index_name(&name, &relation)?;
    let mut named: Vec<(String, Option<Position>)> = Vec::with_capacity(columns.len());
    for column in &columns {
        let column = column_name(column)?;
        let position = Position::of_span(column.span);
        let column = fold(column);
        if named.iter().any(|(other, _)| *other == column) {
            return Err(Error::new(format!("\"{column}\" is in the index already"), position));
        }
        named.push((column, position));
    }
    let (columns, text) = (named, text.to_owned());
    Ok(StatementKind::CreateIndex(IndexDefinition {
        name,
        position,
        if_not_exists,
        relation,
        relation_position,
        columns,
        text,
    }))
}

/// The text by which an index of a relation goes, and where it is named.
fn index_name(name: &ObjectName, relation: &str) -> Result<(String, Position)> {
    let position = Position::of(name).unwrap_or(Position { line: 1, column: 1 });
    match name.0.as_slice() {
        [part] if let Some(index) = part.as_ident() => {
            let (schema, _) = name::split(relation);
            Ok((name::qualified(Some(&schema), &fold(index)), position))
        }
        _ => {
            let message = "an index takes a name without a schema: it is in that of its relation";
            Err(Error::new(message, position))
        }
    }
}

/// The column that an index is by.
fn column_name(column: &IndexColumn) -> Result<&Ident> {
    let IndexColumn { column: OrderByExpr { expr, options, with_fill }, operator_class } = column;
    let refuse = |what: &str| Err(Error::not_supported(what, Position::of_span(expr.span())));
    let OrderByOptions { asc, nulls_first } = options;
    if *asc == Some(false) {
        return refuse("DESC in an index (leave it out: an index is read in ascending order)");
    }
    if nulls_first.is_some() {
        return refuse("NULLS FIRST or LAST in an index (leave it out: either order is read)");
    }
    if operator_class.is_some() || with_fill.is_some() {
        return refuse("a column of an index with anything but its name");
    }
    match expr {
        Expr::Identifier(column) => Ok(column),
        _ => {
            refuse("an index of an expression (create a materialized view with it, and its index)")
        }
    }
}
