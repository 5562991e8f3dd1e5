//! SQLite as a judge: runs the statements of a program and returns the contents of its relations.

use std::io::Read;
use std::path::Path;

use alluvium::Statement;
use alluvium::arrow::array::{ArrayRef, AsArray, RecordBatch};
use alluvium::arrow::compute::cast;
use alluvium::arrow::datatypes::{DataType, Float64Type, Int64Type};
use alluvium::unstable::{StatementKind, tree};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, params_from_iter};

/// A database in memory.
pub struct Sqlite(Connection);

/// A value, with the types that both databases distinguish.
#[derive(Debug, PartialEq, PartialOrd)]
pub enum Value {
    Null,
    Integer(i64),
    Float(f64),
    Text(String),
}

impl Sqlite {
    pub fn new() -> Self {
        Self(Connection::open_in_memory().unwrap())
    }

    /// Runs a statement in Alluvium's dialect; connectors and COPY read files in `base`.
    pub fn run(&mut self, statement: &Statement, base: &Path) {
        let text = statement.text();
        match &tree(statement).kind {
            StatementKind::Copy { table, path: Some(path), .. } => {
                self.copy(table, &base.join(path));
            }
            StatementKind::CreateTable(table) => {
                self.execute(text.split(" WITH (").next().unwrap_or_default());
                for connector in &table.connectors {
                    let path =
                        connector.config.iter().find(|setting| setting.name == "path").unwrap();
                    self.copy(&table.name, &base.join(&path.value));
                }
            }
            StatementKind::CreateView(_) => self.execute(&text.replacen("MATERIALIZED ", "", 1)),
            StatementKind::Query(_) | StatementKind::ExplainView { .. } => {}
            _ => self.execute(text),
        }
    }

    fn execute(&self, text: &str) {
        self.0.execute_batch(text).unwrap_or_else(|error| panic!("{error} in {text}"));
    }

    /// Reads a file with headers, in which `NA` is NULL and timestamps end with a Z.
    fn copy(&mut self, table: &str, path: &Path) {
        let mut text = String::new();
        let file = std::fs::File::open(path).unwrap();
        flate2::read::GzDecoder::new(file).read_to_string(&mut text).unwrap();
        let mut reader = csv::Reader::from_reader(text.as_bytes());
        let columns: Vec<_> = reader.headers().unwrap().iter().map(str::to_string).collect();
        let places = vec!["?"; columns.len()].join(", ");
        let insert = format!("INSERT INTO {table} ({}) VALUES ({places})", columns.join(", "));

        let transaction = self.0.transaction().unwrap();
        let mut insert = transaction.prepare(&insert).unwrap();
        for record in reader.records() {
            let record = record.unwrap();
            let values = record.iter().zip(&columns).map(|(field, column)| match field {
                "NA" => None,
                _ if column == "time_hour" => Some(field.trim_end_matches('Z')),
                _ => Some(field),
            });
            insert.execute(params_from_iter(values)).unwrap();
        }
        drop(insert);
        transaction.commit().unwrap();
    }

    /// The rows of a relation, sorted by the columns that are compared exactly.
    pub fn rows(&self, relation: &str) -> Vec<Vec<Value>> {
        let mut statement = self.0.prepare(&format!("SELECT * FROM {relation}")).unwrap();
        let width = statement.column_count();
        let mut rows = statement.query([]).unwrap();
        let mut all = Vec::new();
        while let Some(row) = rows.next().unwrap() {
            let value = |column| match row.get_ref(column).unwrap() {
                ValueRef::Null => Value::Null,
                ValueRef::Integer(value) => Value::Integer(value),
                ValueRef::Real(value) => Value::Float(value),
                ValueRef::Text(value) => Value::Text(String::from_utf8(value.to_vec()).unwrap()),
                ValueRef::Blob(_) => panic!("the tables have no bytes"),
            };
            all.push((0..width).map(value).collect());
        }
        sorted(all)
    }
}

/// The rows of Alluvium's result, in the same order.
pub fn rows(batches: &[RecordBatch]) -> Vec<Vec<Value>> {
    let mut all = Vec::new();
    for batch in batches {
        let columns: Vec<_> = batch.columns().iter().map(values).collect();
        let mut columns: Vec<_> = columns.into_iter().map(Vec::into_iter).collect();
        for _ in 0..batch.num_rows() {
            all.push(columns.iter_mut().map(|column| column.next().unwrap()).collect());
        }
    }
    sorted(all)
}

fn values(column: &ArrayRef) -> Vec<Value> {
    fn all<T>(values: impl Iterator<Item = Option<T>>, value: impl Fn(T) -> Value) -> Vec<Value> {
        values.map(|found| found.map_or(Value::Null, &value)).collect()
    }
    let to = |kind| cast(column, &kind).unwrap();
    match column.data_type() {
        kind if kind.is_integer() => {
            all(to(DataType::Int64).as_primitive::<Int64Type>().iter(), Value::Integer)
        }
        kind if kind.is_floating() => {
            all(to(DataType::Float64).as_primitive::<Float64Type>().iter(), Value::Float)
        }
        _ => all(to(DataType::Utf8).as_string::<i32>().iter(), |text| Value::Text(text.into())),
    }
}

fn sorted(mut rows: Vec<Vec<Value>>) -> Vec<Vec<Value>> {
    let exact = |row: &[Value]| {
        row.iter()
            .map(|value| match value {
                Value::Float(_) => String::new(),
                value => format!("{value:?}"),
            })
            .collect::<Vec<_>>()
    };
    rows.sort_by_cached_key(|row| exact(row));
    rows
}

/// Whether two rows are equal: floats with a relative error of 1e-9, everything else exactly.
pub fn same(ours: &[Value], theirs: &[Value]) -> bool {
    let same = |pair| match pair {
        (&Value::Float(a), &Value::Float(b)) => {
            f64::abs(a - b) <= 1e-9 * f64::max(a.abs(), b.abs())
        }
        (a, b) => a == b,
    };
    ours.len() == theirs.len() && ours.iter().zip(theirs).all(same)
}
