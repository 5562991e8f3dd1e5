//! `CREATE TABLE`.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion_expr::Expr;
use sqlparser::ast::helpers::stmt_create_table::CreateTableBuilder;
use sqlparser::ast::{self, ColumnOption, CreateTableOptions, SqlOption, TableConstraint, Value};

use super::IfTaken;
use super::kind::{fold, if_taken, relation_name};
use crate::error::{Error, Position, Result, no_column};
use crate::planner::{column_default, column_type};

/// A table as it was written.
#[derive(Clone, Debug)]
pub struct TableDefinition {
    /// Its folded name.
    pub name: String,
    /// Where it is named.
    pub position: Position,
    /// What becomes of it if there is one of its name.
    pub if_taken: IfTaken,
    /// Its columns; those of the primary key and those declared NOT NULL are not nullable.
    pub schema: SchemaRef,
    /// The columns of the primary key, in its order; empty without one.
    pub primary_key: Vec<usize>,
    /// What a column gets that an INSERT leaves out: one entry per column, `None` for NULL.
    pub defaults: Vec<Option<Expr>>,
    /// The options of its WITH clause, names in lower case.
    pub options: Vec<(String, String)>,
    /// The statement's source.
    pub text: String,
}

impl TableDefinition {
    /// Whether the table keeps its contents; see [`KEEPING`](crate::catalog::KEEPING).
    pub fn is_kept(&self) -> bool {
        let connected =
            || self.options.iter().any(|(name, _)| name == "connectors" || name == "connector");
        !self.primary_key.is_empty() || self.flag("materialized").unwrap_or_else(|| !connected())
    }

    /// Whether rows are only ever inserted.
    pub fn is_append_only(&self) -> bool {
        self.flag("append_only").unwrap_or(false)
    }

    fn flag(&self, option: &str) -> Option<bool> {
        let (_, value) = self.options.iter().find(|(name, _)| name == option)?;
        Some(value == "true")
    }

    pub(super) fn read(create: ast::CreateTable, text: &str) -> Result<TableDefinition> {
        let (name, position) = relation_name(&create.name)?;
        let if_taken = if_taken(create.or_replace, create.if_not_exists, position)?;
        if create.query.is_some() {
            return Err(Error::not_supported("CREATE TABLE … AS", position));
        }
        let understood = CreateTableBuilder::new(create.name.clone())
            .columns(create.columns.clone())
            .constraints(create.constraints.clone())
            .table_options(create.table_options.clone())
            .hive_formats(create.hive_formats.clone())
            .or_replace(create.or_replace)
            .if_not_exists(create.if_not_exists)
            .build();
        if understood != create {
            return Err(Error::not_supported("a clause of this CREATE TABLE", position));
        }
        if create.columns.is_empty() {
            return Err(Error::new(format!("table \"{name}\" has no columns"), position));
        }

        let mut fields: Vec<Field> = Vec::with_capacity(create.columns.len());
        let mut defaults = Vec::with_capacity(create.columns.len());
        let mut primary_key: Option<Vec<usize>> = None;
        for (number, column) in create.columns.iter().enumerate() {
            let at = Position::of_span(column.name.span);
            let column_name = fold(&column.name);
            if fields.iter().any(|field| *field.name() == column_name) {
                return Err(Error::new(format!("column \"{column_name}\" appears twice"), at));
            }
            let data_type = column_type(column).map_err(|error| error.at(at))?;
            let mut nullable = true;
            let mut default = None;
            for option in &column.options {
                match &option.option {
                    ColumnOption::Null | ColumnOption::ForeignKey(_) => {}
                    ColumnOption::NotNull => nullable = false,
                    ColumnOption::Default(expression) => {
                        default = Some(
                            column_default(expression, &data_type).map_err(|error| error.at(at))?,
                        );
                    }
                    ColumnOption::PrimaryKey(_) if primary_key.is_some() => {
                        return Err(second_key(at));
                    }
                    ColumnOption::PrimaryKey(_) => primary_key = Some(vec![number]),
                    other => return Err(Error::not_supported(option_name(other), at)),
                }
            }
            fields.push(Field::new(column_name, data_type, nullable));
            defaults.push(default);
        }

        for constraint in &create.constraints {
            match constraint {
                TableConstraint::ForeignKey(_) => {}
                TableConstraint::PrimaryKey(_) if primary_key.is_some() => {
                    return Err(second_key(Position::of(constraint).or(Some(position))));
                }
                TableConstraint::PrimaryKey(key) => {
                    let columns: Result<Vec<usize>> =
                        key.columns.iter().map(|column| key_column(column, &fields)).collect();
                    primary_key = Some(columns?);
                }
                other => {
                    let name = other.to_string();
                    let name = name.split(['(', ' ']).next().unwrap_or_default().to_string();
                    return Err(Error::not_supported(name, Position::of(other).or(Some(position))));
                }
            }
        }
        let primary_key = primary_key.unwrap_or_default();
        for &column in &primary_key {
            fields[column].set_nullable(false);
        }

        let options = options(&create.table_options, position)?;
        let forgets =
            options.iter().any(|(name, value)| name == "materialized" && value == "false");
        if forgets && !primary_key.is_empty() {
            return Err(Error::new(
                "a table with a PRIMARY KEY keeps its contents: 'materialized' cannot be 'false'",
                position,
            ));
        }
        Ok(TableDefinition {
            name,
            position,
            if_taken,
            schema: Arc::new(Schema::new(fields)),
            primary_key,
            defaults,
            options,
            text: text.to_string(),
        })
    }
}

fn second_key(position: Option<Position>) -> Error {
    Error::new("the table has a PRIMARY KEY already", position)
}

fn key_column(column: &ast::IndexColumn, fields: &[Field]) -> Result<usize> {
    let ast::Expr::Identifier(identifier) = &column.column.expr else {
        return Err(Error::new(
            "a PRIMARY KEY is made of columns",
            Position::of(&column.column.expr),
        ));
    };
    let name = fold(identifier);
    fields.iter().position(|field| *field.name() == name).ok_or_else(|| {
        no_column(&name, None, fields.iter().map(|field| field.name().as_str()))
            .at(Position::of_span(identifier.span))
    })
}

/// The words that start a column option.
fn option_name(option: &ColumnOption) -> String {
    let text = option.to_string();
    text.split_whitespace()
        .map(|word| word.trim_end_matches(|character: char| !character.is_alphanumeric()))
        .take_while(|word| {
            !word.is_empty()
                && word.chars().all(|character| character.is_uppercase() || character == '_')
        })
        .take(2)
        .collect::<Vec<_>>()
        .join(" ")
}

fn options(options: &CreateTableOptions, position: Position) -> Result<Vec<(String, String)>> {
    let options = match options {
        CreateTableOptions::None => return Ok(Vec::new()),
        CreateTableOptions::With(options) => options,
        CreateTableOptions::Options(_)
        | CreateTableOptions::Plain(_)
        | CreateTableOptions::TableProperties(_) => {
            return Err(Error::new("write a table's options as WITH ('name' = 'value')", position));
        }
    };
    let mut read = Vec::with_capacity(options.len());
    for option in options {
        let SqlOption::KeyValue { key, value } = option else {
            return Err(Error::not_supported(format!("the option {option}"), position));
        };
        let at = Position::of_span(key.span).or_else(|| Position::of(value)).or(Some(position));
        let name = key.value.to_ascii_lowercase();
        let value = match value {
            ast::Expr::Value(value) => match &value.value {
                Value::SingleQuotedString(text) => text.clone(),
                value => value.to_string(),
            },
            other => other.to_string(),
        };
        match name.as_str() {
            "materialized" | "append_only"
                if value.eq_ignore_ascii_case("true") || value.eq_ignore_ascii_case("false") => {}
            "materialized" | "append_only" => {
                return Err(Error::new(
                    format!("option '{name}' is 'true' or 'false', not '{value}'"),
                    at,
                ));
            }
            "connectors" | "connector" => {
                return Err(Error::not_supported(format!("the option '{name}'"), at));
            }
            _ => return Err(Error::new(format!("there is no option '{name}' of a table"), at)),
        }
        read.push((name, value.to_ascii_lowercase()));
    }
    Ok(read)
}

/// Whether tables can hold columns of this type.
pub(crate) fn is_column_type(data_type: &DataType) -> bool {
    match data_type {
        DataType::Boolean
        | DataType::Int8
        | DataType::Int16
        | DataType::Int32
        | DataType::Int64
        | DataType::UInt8
        | DataType::UInt16
        | DataType::UInt32
        | DataType::UInt64
        | DataType::Float32
        | DataType::Float64
        | DataType::Decimal128(_, _)
        | DataType::Utf8
        | DataType::Binary
        | DataType::Date32
        | DataType::Time64(_)
        | DataType::Timestamp(_, None) => true,
        DataType::Timestamp(_, Some(zone)) => zone.as_ref() == "+00:00",
        DataType::List(element) => is_column_type(element.data_type()),
        DataType::Struct(fields) => fields.iter().all(|field| is_column_type(field.data_type())),
        DataType::Map(entries, _) => is_column_type(entries.data_type()),
        _ => false,
    }
}
