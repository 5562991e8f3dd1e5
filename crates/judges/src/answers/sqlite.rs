//! SQLite, which runs the same statements and shares no code with Alluvium.

use alluvium::arrow::datatypes::DataType;
use alluvium::name::split;
use alluvium_sql::planner::defaults;
use alluvium_sql::statement::TableDefinition;
use datafusion::sql::unparser::expr_to_sql;
use rusqlite::Connection;
use rusqlite::types::ValueRef;

use super::batch::{column_list, quoted};
use super::row::{Cell, Row};
use crate::query::{Kind, Value};

/// An SQLite database in memory.
pub(crate) struct Sqlite {
    connection: Connection,
}

impl Sqlite {
    pub(crate) fn new() -> Self {
        let connection = Connection::open_in_memory().expect("a database in memory can be opened");
        connection.execute_batch("PRAGMA case_sensitive_like = ON").expect("the pragma is known");
        Self { connection }
    }

    /// Runs a statement.
    pub(crate) fn execute(&self, sql: &str) -> Result<(), String> {
        self.connection.execute_batch(sql).map_err(|error| format!("{error}, in: {sql}"))
    }

    /// Creates a table with columns that do not convert values, in which an insert replaces the row of the same key if the table
    /// says so.
    pub(crate) fn create_table(&self, table: &TableDefinition) -> Result<(), String> {
        let mut items = Vec::new();
        for (field, default) in
            table.schema.fields().iter().zip(defaults(table).map_err(|error| error.to_string())?)
        {
            let mut item = format!("{} {}", quoted(field.name()), affinity(field.data_type()));
            if !field.is_nullable() {
                item += " NOT NULL";
            }
            if let Some(default) = default {
                let default = expr_to_sql(&default).map_err(|error| error.to_string())?;
                item += &format!(" DEFAULT ({default})");
            }
            items.push(item);
        }
        if !table.primary_key.is_empty() {
            let key: Vec<_> = table
                .primary_key
                .iter()
                .map(|&column| quoted(table.schema.field(column).name()))
                .collect();
            let replaces = if table.replaces() { " ON CONFLICT REPLACE" } else { "" };
            items.push(format!("PRIMARY KEY ({}){replaces}", key.join(", ")));
        }
        self.execute(&format!("CREATE TABLE {} ({})", own(&table.name), items.join(", ")))
    }

    pub(crate) fn create_view(
        &self,
        name: &str,
        columns: &[String],
        query: &str,
    ) -> Result<(), String> {
        self.execute(&format!("CREATE VIEW {}{} AS {query}", own(name), column_list(columns)))?;
        // SQLite resolves the names in a view only when the view is queried.
        self.answer(name).map(drop)
    }

    pub(crate) fn drop_table(&self, name: &str) -> Result<(), String> {
        self.execute(&format!("DROP TABLE {}", own(name)))
    }

    pub(crate) fn drop_view(&self, name: &str) -> Result<(), String> {
        self.execute(&format!("DROP VIEW {}", own(name)))
    }

    /// The contents of a view.
    pub(crate) fn answer(&self, view: &str) -> Result<Vec<Row>, String> {
        self.rows(view).map_err(|error| format!("{error}, in view {view}"))
    }

    /// The result of a query.
    pub(crate) fn ask(&self, query: &str) -> Result<Vec<Row>, String> {
        self.rows_of(query).map_err(|error| error.to_string())
    }

    /// Creates a table with these columns.
    pub(crate) fn declare(&self, name: &str, columns: &[(String, Kind)]) -> Result<(), String> {
        let columns = columns.iter().map(|(name, kind)| {
            let affinity = match kind {
                Kind::Boolean => "BOOLEAN",
                kind if kind.is_whole() => "BIGINT",
                Kind::Float | Kind::Real => "REAL",
                Kind::Decimal => "NUMERIC",
                Kind::Bytes => "BLOB",
                _ => "TEXT",
            };
            format!("{} {affinity}", quoted(name))
        });
        let columns = columns.collect::<Vec<_>>().join(", ");
        self.execute(&format!("CREATE TABLE {} ({columns})", quoted(name)))
    }

    /// Replaces the rows of a table.
    pub(crate) fn refill(&self, name: &str, rows: &[Vec<Value>]) -> Result<(), String> {
        let refill = || -> rusqlite::Result<()> {
            self.connection.execute_batch(&format!("DELETE FROM {}", quoted(name)))?;
            let Some(first) = rows.first() else { return Ok(()) };
            let places = vec!["?"; first.len()].join(", ");
            let insert = format!("INSERT INTO {} VALUES ({places})", quoted(name));
            let mut insert = self.connection.prepare(&insert)?;
            for row in rows {
                insert.execute(rusqlite::params_from_iter(row.iter().map(parameter)))?;
            }
            Ok(())
        };
        refill().map_err(|error| format!("{error}, filling {name}"))
    }

    fn rows(&self, view: &str) -> rusqlite::Result<Vec<Row>> {
        self.rows_of(&format!("SELECT * FROM {}", own(view)))
    }

    fn rows_of(&self, query: &str) -> rusqlite::Result<Vec<Row>> {
        let mut statement = self.connection.prepare(query)?;
        let columns = statement.column_count();
        let mut rows = statement.query([])?;
        let mut answer = Vec::new();
        while let Some(row) = rows.next()? {
            let cell = |column| row.get_ref(column).map(cell);
            answer.push((0..columns).map(cell).collect::<rusqlite::Result<Row>>()?);
        }
        Ok(answer)
    }
}

/// The quoted name of a relation; files with schemas are excluded.
fn own(relation: &str) -> String {
    quoted(&split(relation).1)
}

fn affinity(data_type: &DataType) -> &'static str {
    match data_type {
        DataType::Boolean => "BOOLEAN",
        // Not INTEGER: an INTEGER PRIMARY KEY generates numbers in place of NULLs.
        integer if integer.is_integer() => "BIGINT",
        float if float.is_floating() => "REAL",
        decimal if decimal.is_decimal() => "NUMERIC",
        DataType::Binary => "BLOB",
        _ => "TEXT",
    }
}

fn parameter(value: &Value) -> rusqlite::types::Value {
    use rusqlite::types::Value as Parameter;
    match value {
        Value::Null => Parameter::Null,
        Value::Boolean(value) => Parameter::Integer((*value).into()),
        Value::Whole(value) => Parameter::Integer(*value as i64),
        Value::Float(value) => Parameter::Real(*value),
        Value::Decimal(..) => Parameter::Real(value.number().unwrap_or_default()),
        Value::Bytes(bytes) => Parameter::Blob(bytes.clone()),
        other => Parameter::Text(other.plain()),
    }
}

fn cell(value: ValueRef<'_>) -> Cell {
    match value {
        ValueRef::Null => Cell::Null,
        ValueRef::Integer(value) => Cell::Integer(value.into()),
        ValueRef::Real(value) => Cell::Float(value),
        ValueRef::Text(bytes) => Cell::Text(String::from_utf8_lossy(bytes).into_owned()),
        ValueRef::Blob(bytes) => Cell::Bytes(bytes.to_vec()),
    }
}
