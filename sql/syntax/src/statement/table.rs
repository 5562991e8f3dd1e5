//! `CREATE TABLE`.

use std::collections::HashSet;
use std::sync::Arc;

use alluvium_sql_functions::microseconds::in_microseconds;
use arrow::datatypes::{DataType, Field, Fields, Schema, SchemaRef, TimeUnit};
use sqlparser::ast::{
    self, ColumnOption, CreateTableOptions, GeneratedAs, PrimaryKeyConstraint, TableConstraint,
};

use super::column_type::{column_type, interval};
use super::connector::{ConnectorDefinition, Options, Setting};
use super::constraint::check::Check;
use super::constraint::unique::Unique;
use super::default::ColumnDefault;
use super::kind::if_taken;
use super::lateness::{Declared, Lateness};
use super::sequence::{self, Generated};
use super::{IfTaken, OnCommit};
use crate::error::{Error, Position, Result, SqlState, no_column};
use crate::name::{self, fold, relation_name};

/// When a table keeps its rows, for messages.
pub const KEEPING: &str = "a table keeps its contents if it has no connector, has a PRIMARY KEY, or says \
                           'materialized' = 'true'";

/// A table as it was written.
#[derive(Clone, Debug)]
pub struct TableDefinition {
    /// Its folded name.
    pub name: String,
    /// Where it is named.
    pub position: Position,
    /// The action if one of its name exists.
    pub if_taken: IfTaken,
    /// Its columns; those of the primary key and those declared NOT NULL are not nullable.
    pub schema: SchemaRef,
    /// The columns of the primary key, in its order; empty without one.
    pub primary_key: Vec<usize>,
    /// The columns of a primary key that is declared NOT ENFORCED; empty without one.
    pub promised_key: Vec<usize>,
    /// The conditions that its rows have to meet.
    pub checks: Vec<Check>,
    /// The columns that no two rows have the same values in, in the order in which they are written.
    pub uniques: Vec<Unique>,
    /// The default of each column, for columns that an INSERT leaves out; `None` for NULL.
    pub defaults: Vec<Option<ColumnDefault>>,
    /// How each column is generated, if it is: it then has no other default.
    pub generated: Vec<Option<Generated>>,
    /// How late its rows may come, by columns that differ, in their order.
    pub lateness: Vec<Lateness>,
    /// The options of its WITH clause that are its own, names and values in lower case.
    pub options: Vec<(String, String)>,
    /// The connectors that its rows come from.
    pub connectors: Vec<ConnectorDefinition>,
    /// If it is temporary, its fate when a transaction commits.
    pub temporary: Option<OnCommit>,
    /// The statement's source.
    pub text: String,
}

impl TableDefinition {
    /// Whether the table keeps its contents; see [`KEEPING`].
    pub fn is_kept(&self) -> bool {
        let connected = !self.connectors.is_empty();
        !self.primary_key.is_empty() || self.flag("materialized").unwrap_or(!connected)
    }

    /// Whether rows are only ever inserted: by its option and, without that, if it keeps no contents and does not say
    /// so itself. One that says `'materialized' = 'false'` alone takes unchecked changes.
    pub fn is_append_only(&self) -> bool {
        let by_default = !self.is_kept() && self.flag("materialized").is_none();
        self.flag("append_only").unwrap_or(by_default)
    }

    /// Whether a row that is inserted takes the place of one with its key; else that is an error.
    pub fn replaces(&self) -> bool {
        self.option(ON_CONFLICT) == Some("replace")
    }

    /// Whether rows that come too late are rows of `alluvium.errors`, or else only counted.
    pub fn shows_late_rows(&self) -> bool {
        self.option(LATE_ROWS) == Some("errors")
    }

    /// For how many microseconds it has had no rows when it is idle: its waterlines then hold back no others.
    pub fn idle_after(&self) -> Option<i64> {
        idle_after(self.option(IDLE_AFTER)?).ok()
    }

    /// The columns that are generated, with the names of their sequences, which follow those of the table and the column.
    pub fn sequences(&self) -> impl Iterator<Item = (usize, String, Generated)> + '_ {
        let columns = self.generated.iter().enumerate();
        columns.filter_map(|(column, generated)| {
            let name = sequence_of(&self.name, self.schema.field(column).name());
            Some((column, name, (*generated)?))
        })
    }

    /// Whether a column takes values of a sequence, its own or another one.
    pub fn takes_values(&self) -> bool {
        let mut written = self.defaults.iter().flatten();
        written.any(ColumnDefault::calls_sequence) || self.generated.iter().any(Option::is_some)
    }

    /// The sequences that DEFAULTs name.
    pub fn used_sequences(&self) -> impl Iterator<Item = String> + '_ {
        let written = self.defaults.iter().flatten().flat_map(ColumnDefault::named_sequences);
        written.map(|written| name::of_text(&written))
    }

    /// The columns whose values statements cannot give.
    pub fn always_generated(&self) -> Vec<usize> {
        let always = self.sequences().filter(|(_, _, generated)| generated.always);
        always.map(|(column, _, _)| column).collect()
    }

    fn flag(&self, option: &str) -> Option<bool> {
        Some(self.option(option)? == "true")
    }

    fn option(&self, option: &str) -> Option<&str> {
        self.options.iter().find(|(name, _)| name == option).map(|(_, value)| &**value)
    }

    pub(super) fn read(
        create: ast::CreateTable,
        lateness: &[Declared],
        text: &str,
    ) -> Result<TableDefinition> {
        let (name, position) = relation_name(&create.name)?;
        let if_taken = if_taken(create.or_replace, create.if_not_exists, position)?;
        if create.columns.is_empty() {
            return Err(Error::new(format!("table \"{name}\" has no columns"), position));
        }

        check_count(create.columns.len(), position)?;
        let columns = Columns::read(&create, position)?;
        let lateness = read_lateness(lateness, &columns.fields)?;
        let has = Has { lateness: !lateness.is_empty(), key: !columns.primary_key.is_empty() };
        let (options, connectors) = options(&create.table_options, has, position)?;
        let is_discarded =
            options.iter().any(|(name, value)| name == "materialized" && value == "false");
        if is_discarded && !columns.primary_key.is_empty() {
            return Err(Error::new(
                "a table with a PRIMARY KEY keeps its contents: 'materialized' cannot be 'false'",
                position,
            ));
        }
        let definition = TableDefinition {
            name,
            position,
            if_taken,
            schema: Arc::new(Schema::new(columns.fields)),
            primary_key: columns.primary_key,
            promised_key: columns.promised_key,
            checks: columns.checks,
            uniques: columns.uniques,
            defaults: columns.defaults,
            generated: columns.generated,
            lateness,
            options,
            connectors,
            temporary: None,
            text: text.to_string(),
        };
        if !definition.uniques.is_empty() && !definition.is_kept() {
            let message = format!(
                "UNIQUE needs a table that keeps its rows, which they are compared with: {KEEPING}"
            );
            return Err(Error::new(message, position));
        }
        Ok(definition)
    }
}

/// The name of the sequence of a column.
fn sequence_of(table: &str, column: &str) -> String {
    let (schema, table) = name::split(table);
    name::qualified(Some(&schema), &format!("{table}_{column}_seq"))
}

/// How late rows of these columns may come.
fn read_lateness(declared: &[Declared], fields: &[Field]) -> Result<Vec<Lateness>> {
    let mut read: Vec<Lateness> = Vec::with_capacity(declared.len());
    for declared in declared {
        let lateness = declared.read(fields)?;
        if read.iter().any(|other| other.column == lateness.column) {
            let name = fields[lateness.column].name();
            let message = format!("column \"{name}\" has a LATENESS or WATERMARK already");
            return Err(Error::new(message, declared.position()));
        }
        read.push(lateness);
    }
    read.sort_by_key(|lateness| lateness.column);
    Ok(read)
}

/// Refuses more columns than tables can have: planning takes time that grows with their square.
fn check_count(columns: usize, position: impl Into<Option<Position>>) -> Result<()> {
    if columns <= MOST_COLUMNS {
        return Ok(());
    }
    let message = format!("a table has at most {MOST_COLUMNS} columns, and not {columns}");
    Err(Error::new(message, position))
}

/// The largest number of columns of a table.
pub const MOST_COLUMNS: usize = 4_096;

/// Refuses longer names than columns can have together: every plan, batch and file has them.
fn check_names(columns: &Fields) -> Result<()> {
    if name_bytes(columns) <= MOST_NAME_BYTES {
        return Ok(());
    }
    let message =
        format!("the names of a table's columns have at most {MOST_NAME_BYTES} bytes together");
    Err(Error::new(message, None))
}

/// The most bytes that the names of a table's columns have together, with those of the fields of their types.
pub const MOST_NAME_BYTES: usize = 1 << 20;

fn name_bytes(fields: &Fields) -> usize {
    let of_type = |data_type: &DataType| match data_type {
        DataType::Struct(fields) => name_bytes(fields),
        DataType::List(element) => name_bytes(&[element.clone()].into()),
        DataType::Map(entries, _) => name_bytes(&[entries.clone()].into()),
        _ => 0,
    };
    fields.iter().map(|field| field.name().len() + of_type(field.data_type())).sum()
}

/// The columns of a CREATE TABLE.
struct Columns {
    fields: Vec<Field>,
    defaults: Vec<Option<ColumnDefault>>,
    generated: Vec<Option<Generated>>,
    primary_key: Vec<usize>,
    promised_key: Vec<usize>,
    checks: Vec<Check>,
    uniques: Vec<Unique>,
}

/// A primary key.
struct Key {
    columns: Vec<usize>,
    /// Whether it is only promised that no two rows have the same.
    promised: bool,
}

impl Key {
    fn new(columns: Vec<usize>, constraint: &PrimaryKeyConstraint) -> Self {
        let characteristics = constraint.characteristics;
        let enforced = characteristics.and_then(|characteristics| characteristics.enforced);
        Self { columns, promised: enforced == Some(false) }
    }
}

impl Columns {
    fn read(create: &ast::CreateTable, position: Position) -> Result<Columns> {
        let mut fields: Vec<Field> = Vec::with_capacity(create.columns.len());
        let mut names = HashSet::with_capacity(create.columns.len());
        let mut defaults = Vec::with_capacity(create.columns.len());
        let mut generated = Vec::with_capacity(create.columns.len());
        let mut primary_key: Option<Key> = None;
        let (mut checks, mut uniques) = (Vec::new(), Vec::new());
        for (number, column) in create.columns.iter().enumerate() {
            let at = Position::of_span(column.name.span);
            let column_name = fold(&column.name);
            if !names.insert(column_name.clone()) {
                let error = Error::new(format!("column \"{column_name}\" appears twice"), at);
                return Err(error.with_sqlstate(SqlState::DUPLICATE_COLUMN));
            }
            let serial = sequence::serial(&column.data_type);
            let mut sequence = match &serial {
                Some(data_type) => Some(Generated::serial(data_type, position)?),
                None => None,
            };
            let data_type = match serial {
                Some(data_type) => data_type,
                None => column_type(column).map_err(|error| error.at(at))?,
            };
            let mut nullable = sequence.is_none();
            let mut default = None;
            for option in &column.options {
                match &option.option {
                    ColumnOption::Null | ColumnOption::ForeignKey(_) => {}
                    ColumnOption::NotNull => nullable = false,
                    ColumnOption::Default(expression) => {
                        let read = ColumnDefault::read(expression);
                        default = Some(read.map_err(|error| error.at(at))?);
                    }
                    ColumnOption::Generated {
                        generated_as: generated @ (GeneratedAs::Always | GeneratedAs::ByDefault),
                        sequence_options,
                        generation_expr: None,
                        generation_expr_mode: None,
                        generated_keyword: true,
                    } => {
                        let options = sequence_options.as_deref();
                        let at = at.unwrap_or(position);
                        sequence = Some(Generated::identity(generated, options, &data_type, at)?);
                        nullable = false;
                    }
                    ColumnOption::PrimaryKey(_) if primary_key.is_some() => {
                        return Err(second_key(at));
                    }
                    ColumnOption::PrimaryKey(key) => {
                        primary_key = Some(Key::new(vec![number], key))
                    }
                    ColumnOption::Check(check) => {
                        checks.push(Check::read(check, option.name.as_ref(), Some(number), at)?);
                    }
                    ColumnOption::Unique(unique) => {
                        let name = option.name.as_ref();
                        uniques.push(Unique::read(unique, name, vec![number], at)?);
                    }
                    other => return Err(Error::not_supported(option_name(other), at)),
                }
            }
            if sequence.is_some() && default.is_some() {
                let message = format!(
                    "column \"{column_name}\" has values of a sequence of its own, and can have no DEFAULT"
                );
                return Err(Error::new(message, at));
            }
            fields.push(Field::new(column_name, data_type, nullable));
            defaults.push(default);
            generated.push(sequence);
        }
        for constraint in &create.constraints {
            if primary_key.is_some() && matches!(constraint, TableConstraint::PrimaryKey(_)) {
                return Err(second_key(Position::of(constraint).or(Some(position))));
            }
            if let TableConstraint::Check(check) = constraint {
                checks.push(Check::read(check, None, None, Position::of(constraint))?);
                continue;
            }
            if let TableConstraint::Unique(unique) = constraint {
                let columns = key_columns(&unique.columns, &fields, "UNIQUE")?;
                uniques.push(Unique::read(unique, None, columns, Position::of(constraint))?);
                continue;
            }
            if let Some(key) = table_constraint(constraint, &fields, position)? {
                primary_key = Some(key);
            }
        }
        for &column in primary_key.iter().flat_map(|key| &key.columns) {
            fields[column].set_nullable(false);
        }
        let (primary_key, promised_key) = match primary_key {
            None => (Vec::new(), Vec::new()),
            Some(Key { columns, promised: false }) => (columns, Vec::new()),
            Some(Key { columns, promised: true }) => (Vec::new(), columns),
        };
        Ok(Columns { fields, defaults, generated, primary_key, promised_key, checks, uniques })
    }
}

/// The primary key, if a constraint declares it.
fn table_constraint(
    constraint: &TableConstraint,
    fields: &[Field],
    position: Position,
) -> Result<Option<Key>> {
    match constraint {
        TableConstraint::ForeignKey(_) => Ok(None),
        TableConstraint::PrimaryKey(key) => {
            let columns = key_columns(&key.columns, fields, "PRIMARY KEY")?;
            Ok(Some(Key::new(columns, key)))
        }
        other => {
            let name = other.to_string();
            let name = name.split(['(', ' ']).next().unwrap_or_default().to_string();
            Err(Error::not_supported(name, Position::of(other).or(Some(position))))
        }
    }
}

impl TableDefinition {
    /// A table of these columns, without options. A type that tables cannot store is replaced by the nearest one that they
    /// can; fails at the first column without one.
    pub fn with_columns(
        name: &str,
        position: Position,
        schema: &Schema,
    ) -> Result<TableDefinition> {
        let schema = TableDefinition::columns(schema).map_err(|error| error.at(Some(position)))?;
        Ok(TableDefinition {
            name: name.to_owned(),
            position,
            primary_key: Vec::new(),
            promised_key: Vec::new(),
            checks: Vec::new(),
            uniques: Vec::new(),
            defaults: vec![None; schema.fields().len()],
            generated: vec![None; schema.fields().len()],
            schema,
            lateness: Vec::new(),
            options: Vec::new(),
            connectors: Vec::new(),
            if_taken: IfTaken::Fail,
            temporary: None,
            text: String::new(),
        })
    }

    /// The columns, checked for types that tables can store and for distinct names.
    pub fn columns(schema: &Schema) -> Result<SchemaRef> {
        check_count(schema.fields().len(), None)?;
        check_names(schema.fields())?;
        let mut columns: Vec<Field> = Vec::with_capacity(schema.fields().len());
        let mut names = HashSet::with_capacity(schema.fields().len());
        for field in schema.fields() {
            let name = field.name();
            if !names.insert(name) {
                let error = Error::new(format!("column \"{name}\" appears twice"), None);
                return Err(error.with_sqlstate(SqlState::DUPLICATE_COLUMN));
            }
            let data_type = nearest(field.data_type()).ok_or_else(|| {
                let what = format!("column \"{name}\" of type {}", field.data_type());
                Error::not_supported(what, None)
            })?;
            columns.push(Field::new(name, data_type, field.is_nullable()));
        }
        if columns.is_empty() {
            return Err(Error::new("there are no columns", None));
        }
        Ok(Arc::new(Schema::new(columns)))
    }
}

/// The type of a table's column that holds all values of another type. NULL alone is text.
pub fn nearest(data_type: &DataType) -> Option<DataType> {
    let nearest = match data_type {
        DataType::Null | DataType::LargeUtf8 | DataType::Utf8View => DataType::Utf8,
        DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_) => {
            DataType::Binary
        }
        DataType::Float16 => DataType::Float32,
        DataType::Decimal32(precision, scale) | DataType::Decimal64(precision, scale) => {
            DataType::Decimal128(*precision, *scale)
        }
        DataType::Date64 => DataType::Date32,
        DataType::Time32(_) => DataType::Time64(TimeUnit::Microsecond),
        DataType::Timestamp(TimeUnit::Nanosecond, None) => in_microseconds(data_type),
        DataType::Timestamp(unit, Some(_)) => {
            in_microseconds(&DataType::Timestamp(*unit, Some("+00:00".into())))
        }
        DataType::Dictionary(_, values) => nearest(values)?,
        DataType::LargeList(item) | DataType::ListView(item) | DataType::FixedSizeList(item, _) => {
            nearest(&DataType::List(Arc::clone(item)))?
        }
        DataType::List(item) => DataType::List(Arc::new(nearest_field(item)?)),
        DataType::Struct(fields) => {
            let fields = fields.iter().map(|field| nearest_field(field));
            DataType::Struct(fields.collect::<Option<Vec<_>>>()?.into())
        }
        DataType::Map(entries, sorted) => DataType::Map(Arc::new(nearest_field(entries)?), *sorted),
        other => other.clone(),
    };
    is_column_type(&nearest).then_some(nearest)
}

fn nearest_field(field: &Field) -> Option<Field> {
    let data_type = match field.data_type() {
        // The entries of a map are a struct, which need not be a column's type.
        DataType::Struct(fields) => {
            let fields = fields.iter().map(|field| nearest_field(field));
            DataType::Struct(fields.collect::<Option<Vec<_>>>()?.into())
        }
        other => nearest(other)?,
    };
    Some(Field::new(field.name(), data_type, field.is_nullable()))
}

fn second_key(position: Option<Position>) -> Error {
    Error::new("the table has a PRIMARY KEY already", position)
}

/// The columns of a key of some kind.
fn key_columns(columns: &[ast::IndexColumn], fields: &[Field], kind: &str) -> Result<Vec<usize>> {
    let mut read = Vec::with_capacity(columns.len());
    let mut taken = HashSet::new();
    for column in columns {
        let number = key_column(column, fields, kind)?;
        if !taken.insert(number) {
            let name = fields[number].name();
            let message = format!("column \"{name}\" is in the {kind} twice");
            return Err(Error::new(message, Position::of(&column.column.expr)));
        }
        read.push(number);
    }
    Ok(read)
}

fn key_column(column: &ast::IndexColumn, fields: &[Field], kind: &str) -> Result<usize> {
    let ast::Expr::Identifier(identifier) = &column.column.expr else {
        let message = format!("a {kind} must consist of columns");
        return Err(Error::new(message, Position::of(&column.column.expr)));
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
    let words = text.split('(').next().unwrap_or_default();
    words
        .split_whitespace()
        .map(|word| word.trim_end_matches(|character: char| !character.is_alphanumeric()))
        .take_while(|word| {
            !word.is_empty()
                && word.chars().all(|character| character.is_uppercase() || character == '_')
        })
        .take(2)
        .collect::<Vec<_>>()
        .join(" ")
}

/// The names of the table's own options.
type Flags = Vec<(String, String)>;

/// The option for rows that come too late.
const LATE_ROWS: &str = "late_rows";

/// The option that says when a table without new rows is idle.
const IDLE_AFTER: &str = "idle_after";

/// The option for a row whose key is taken.
const ON_CONFLICT: &str = "on_conflict";

/// The microseconds of an interval that is written as text.
fn idle_after(text: &str) -> Result<i64> {
    let value = ast::Value::SingleQuotedString(text.to_owned()).with_empty_span();
    let literal = ast::Expr::Interval(ast::Interval {
        value: Box::new(ast::Expr::Value(value)),
        leading_field: None,
        leading_precision: None,
        last_field: None,
        fractional_seconds_precision: None,
    });
    let wrong = || {
        let message = format!("'idle_after' is an interval as '1 minute', not '{text}'");
        Error::new(message, None)
    };
    let interval = interval(&literal).ok().flatten().ok_or_else(wrong)?;
    let day = 86_400_000_000_i64;
    let microseconds = i64::from(interval.days)
        .checked_mul(day)
        .and_then(|days| days.checked_add(interval.nanoseconds / 1_000));
    match microseconds {
        Some(microseconds) if interval.months == 0 && microseconds > 0 => Ok(microseconds),
        _ => Err(wrong()),
    }
}

/// Parts of a table that options are about.
#[derive(Clone, Copy)]
struct Has {
    /// Columns with LATENESS.
    lateness: bool,
    /// A primary key.
    key: bool,
}

/// Whether an option says how full pages are, which is Postgres's: here it says nothing.
fn is_of_pages(option: &ast::SqlOption) -> bool {
    matches!(option, ast::SqlOption::KeyValue { key, .. } if key.value.eq_ignore_ascii_case("fillfactor"))
}

/// The table's own options, in lower case, and its connectors.
fn options(
    options: &CreateTableOptions,
    has: Has,
    position: Position,
) -> Result<(Flags, Vec<ConnectorDefinition>)> {
    let options = match options {
        CreateTableOptions::None => return Ok((Vec::new(), Vec::new())),
        CreateTableOptions::With(options) => options,
        CreateTableOptions::Options(_)
        | CreateTableOptions::Plain(_)
        | CreateTableOptions::TableProperties(_) => {
            return Err(Error::new("write a table's options as WITH ('name' = 'value')", position));
        }
    };
    let options: Vec<_> = options.iter().filter(|option| !is_of_pages(option)).cloned().collect();
    let options = &options[..];
    let known = ["materialized", "append_only", LATE_ROWS, IDLE_AFTER, ON_CONFLICT];
    let Options { own, connectors } = Options::read(options, &known, position)?;
    let mut read = Vec::with_capacity(own.len());
    for Setting { name, value, position } in own {
        if name == LATE_ROWS {
            if !["errors", "count"].iter().any(|known| value.eq_ignore_ascii_case(known)) {
                let message =
                    format!("option 'late_rows' must be 'errors' or 'count', not '{value}'");
                return Err(Error::new(message, position));
            }
            if !has.lateness {
                let message = "'late_rows' is for a table with a column that has LATENESS: without it no row comes too late";
                return Err(Error::new(message, position));
            }
            read.push((name, value.to_ascii_lowercase()));
            continue;
        }
        if name == ON_CONFLICT {
            if !["error", "replace"].iter().any(|known| value.eq_ignore_ascii_case(known)) {
                let message =
                    format!("option 'on_conflict' must be 'error' or 'replace', not '{value}'");
                return Err(Error::new(message, position));
            }
            if !has.key {
                let message = "'on_conflict' is for a table with a PRIMARY KEY: without one no row conflicts with another";
                return Err(Error::new(message, position));
            }
            read.push((name, value.to_ascii_lowercase()));
            continue;
        }
        if name == IDLE_AFTER {
            if !has.lateness {
                let message = "'idle_after' is for a table with a column that has LATENESS: without it there is no waterline that could hold others back";
                return Err(Error::new(message, position));
            }
            idle_after(&value).map_err(|error| error.at(Some(position)))?;
            read.push((name, value));
            continue;
        }
        if !value.eq_ignore_ascii_case("true") && !value.eq_ignore_ascii_case("false") {
            let message = format!("option '{name}' must be 'true' or 'false', not '{value}'");
            return Err(Error::new(message, position));
        }
        read.push((name, value.to_ascii_lowercase()));
    }
    Ok((read, connectors))
}

/// Whether tables can store columns of this type.
pub fn is_column_type(data_type: &DataType) -> bool {
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
