//! The relations and their columns: SHOW TABLES and DESCRIBE, with DuckDB's columns; and where rows come from and go to: SHOW SOURCES and SHOW SINKS.

use std::sync::Arc;

use alluvium_sql::planner::type_name;
use arrow::array::{ArrayRef, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Schema, TimeUnit};

use crate::authorizer::{Object, Rights};
use crate::catalog::{Definition, Entries, Entry, default_text};
use crate::error::{Error, Result};
use crate::query::Rows;
use crate::session::Outcome;
use crate::session::paths::FoundFile;
use crate::sink::ShownOutput;
use crate::source::SourceProgress;

/// The names of tables and views, in order: those that may be read.
pub(in crate::session) fn show_tables(
    entries: &Entries,
    rights: Option<&Rights>,
) -> Result<Outcome> {
    let shown = entries
        .keys()
        .filter(|name| rights.is_none_or(|rights| rights.tells(Object::Relation(name))));
    rows(vec![("name", shown.map(|name| Some(name.clone())).collect())])
}

/// What tables are read from.
pub(in crate::session) fn show_sources(sources: Vec<SourceProgress>) -> Result<Outcome> {
    let texts = |text: fn(&SourceProgress) -> String| {
        sources.iter().map(|source| Some(text(source))).collect::<Vec<_>>()
    };
    rows(vec![
        ("name", texts(|source| source.table.clone())),
        ("type", texts(|source| source.kind.clone())),
        ("path", texts(|source| source.path.display().to_string())),
        ("state", texts(|source| source.state.word().to_owned())),
    ])
}

/// What relations are written to.
pub(in crate::session) fn show_sinks(sinks: Vec<ShownOutput>) -> Result<Outcome> {
    let texts = |text: fn(&ShownOutput) -> String| {
        sinks.iter().map(|sink| Some(text(sink))).collect::<Vec<_>>()
    };
    rows(vec![
        ("name", texts(|sink| sink.sink.clone().unwrap_or_else(|| sink.relation.clone()))),
        ("relation", texts(|sink| sink.relation.clone())),
        ("type", texts(|sink| sink.kind.clone())),
        ("path", texts(|sink| sink.path.display().to_string())),
        ("state", texts(|sink| sink.state.to_owned())),
    ])
}

/// The columns of a relation. Those of a view may be NULL as far as is known.
pub(in crate::session) fn describe(entry: &Entry) -> Result<Outcome> {
    let fields = entry.schema.fields();
    let (keys, defaults, lateness) = match &entry.definition {
        Definition::Table(table) => {
            (&table.primary_key[..], &table.defaults[..], &table.lateness[..])
        }
        Definition::View(view) => (&[][..], &[][..], &view.lateness[..]),
        Definition::Declared(_) => (&[][..], &[][..], &[][..]),
    };
    let yes_or_no = |yes: bool| Some(if yes { "YES" } else { "NO" }.to_owned());
    let key = |column: usize| keys.contains(&column).then(|| "PRI".to_owned());
    let default = |column: usize| Some(default_text(defaults.get(column)?.as_ref()?));
    let extra = |column: usize| {
        let lateness = lateness.iter().find(|lateness| lateness.column == column)?;
        Some(format!("LATENESS {}", duration(lateness.by, fields[column].data_type())))
    };
    rows(vec![
        ("column_name", fields.iter().map(|field| Some(field.name().clone())).collect()),
        ("column_type", fields.iter().map(|field| Some(type_name(field.data_type()))).collect()),
        ("null", fields.iter().map(|field| yes_or_no(field.is_nullable())).collect()),
        ("key", (0..fields.len()).map(key).collect()),
        ("default", (0..fields.len()).map(default).collect()),
        ("extra", (0..fields.len()).map(extra).collect()),
    ])
}

/// The columns of a file, why they are of their types, and the options that it is read with.
pub(in crate::session) fn describe_file(found: &FoundFile) -> Result<Outcome> {
    let fields = found.file.request.schema.fields();
    let quoted = |value: &str| value.replace('\'', "''");
    let mut options = vec![format!("FORMAT {}", found.format)];
    // The last of two that have one name counts.
    let named = |name: &str| found.read_with.iter().rev().find(|(other, _)| other == name);
    for (index, (name, _)) in found.read_with.iter().enumerate() {
        let is_first = found.read_with[..index].iter().all(|(other, _)| other != name);
        if let Some((_, value)) = named(name).filter(|_| is_first) {
            options.push(format!("{name} '{}'", quoted(value)));
        }
    }
    let options = options.join(", ");
    let remark = |column: usize| found.remarks.get(column).cloned().flatten();
    rows(vec![
        ("column_name", fields.iter().map(|field| Some(field.name().clone())).collect()),
        ("column_type", fields.iter().map(|field| Some(type_name(field.data_type()))).collect()),
        ("remark", (0..fields.len()).map(remark).collect()),
        ("read_with", fields.iter().map(|_| Some(options.clone())).collect()),
    ])
}

/// A lateness of a column of this type as SQL has it.
fn duration(by: i64, data_type: &DataType) -> String {
    let (whole, fraction, digits) = match data_type {
        DataType::Date32 => return format!("INTERVAL '{by} days'"),
        DataType::Timestamp(TimeUnit::Second, _) => (by, 0, 0),
        DataType::Timestamp(TimeUnit::Millisecond, _) => (by / 1_000, by % 1_000, 3),
        DataType::Timestamp(TimeUnit::Microsecond, _) => (by / 1_000_000, by % 1_000_000, 6),
        DataType::Timestamp(TimeUnit::Nanosecond, _) => (by / 1_000_000_000, by % 1_000_000_000, 9),
        _ => return by.to_string(),
    };
    match fraction {
        0 => format!("INTERVAL '{whole} seconds'"),
        _ => format!("INTERVAL '{whole}.{fraction:0digits$} seconds'"),
    }
}

/// Columns of texts, by name.
pub(in crate::session) fn rows(columns: Vec<(&str, Vec<Option<String>>)>) -> Result<Outcome> {
    let fields: Vec<Field> =
        columns.iter().map(|(name, _)| Field::new(*name, DataType::Utf8, true)).collect();
    let schema = Arc::new(Schema::new(fields));
    let columns = columns.into_iter();
    let columns: Vec<ArrayRef> =
        columns.map(|(_, texts)| Arc::new(StringArray::from(texts)) as ArrayRef).collect();
    let batch = RecordBatch::try_new(Arc::clone(&schema), columns)
        .map_err(|error| Error::sql(error.to_string()))?;
    Ok(Outcome::Rows(Rows::new(schema, vec![batch])))
}
