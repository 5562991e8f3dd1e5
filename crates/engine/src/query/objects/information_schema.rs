//! `information_schema.tables`, `columns` and `schemata`, as other systems have them.

use std::collections::BTreeSet;
use std::sync::Arc;

use alluvium_sql::name::{DATABASE, OWN_SCHEMAS, SCHEMA, split};
use alluvium_sql::planner::type_name;
use arrow::array::{ArrayRef, Int32Array, RecordBatch, StringArray};
use datafusion::datasource::{MemTable, TableProvider};

use crate::catalog::{
    Definition, Entries, Entry, INFORMATION_COLUMNS, INFORMATION_COLUMNS_SCHEMA,
    INFORMATION_SCHEMATA, INFORMATION_SCHEMATA_SCHEMA, INFORMATION_TABLES,
    INFORMATION_TABLES_SCHEMA, default_text,
};
use crate::error::Result;
use crate::query::providers::Providers;
use crate::sequencer::Comments;

/// Adds those of them that are among the names.
pub(in crate::query) fn add(
    names: &[String],
    entries: &Entries,
    comments: impl Fn() -> Comments,
    providers: &mut Providers,
) -> Result<()> {
    for name in names {
        let table = match name.as_str() {
            INFORMATION_TABLES => tables(entries, &comments())?,
            INFORMATION_COLUMNS => columns(entries, &comments())?,
            INFORMATION_SCHEMATA => schemata(&entries.schemas)?,
            _ => continue,
        };
        providers.insert(name.clone(), table);
    }
    Ok(())
}

/// A row for each schema.
fn schemata(created: &BTreeSet<String>) -> Result<Arc<dyn TableProvider>> {
    let mut names: Vec<String> =
        [SCHEMA].iter().chain(&OWN_SCHEMAS).map(|&name| name.into()).collect();
    names.extend(created.iter().cloned());
    names.sort();
    let columns: Vec<ArrayRef> = vec![
        Arc::new(StringArray::from(vec![DATABASE; names.len()])),
        Arc::new(StringArray::from(names)),
    ];
    let rows = RecordBatch::try_new(INFORMATION_SCHEMATA_SCHEMA.clone(), columns)?;
    Ok(Arc::new(MemTable::try_new(INFORMATION_SCHEMATA_SCHEMA.clone(), vec![vec![rows]])?))
}

/// A row for each table and view.
fn tables(entries: &Entries, comments: &Comments) -> Result<Arc<dyn TableProvider>> {
    let count = entries.len();
    let kind = |entry: &Arc<Entry>| match entry.is_table() {
        true if entry.temporary().is_some() => "LOCAL TEMPORARY",
        true => "BASE TABLE",
        false => "VIEW",
    };
    let said = entries.keys().map(|name| comments.get(name, None)).collect::<StringArray>();
    let (schemas, names): (Vec<_>, Vec<_>) = entries.keys().map(|name| split(name)).unzip();
    let columns: Vec<ArrayRef> = vec![
        Arc::new(StringArray::from(vec![DATABASE; count])),
        Arc::new(StringArray::from(schemas)),
        Arc::new(StringArray::from(names)),
        Arc::new(StringArray::from_iter_values(entries.values().map(kind))),
        Arc::new(said),
    ];
    let rows = RecordBatch::try_new(INFORMATION_TABLES_SCHEMA.clone(), columns)?;
    Ok(Arc::new(MemTable::try_new(INFORMATION_TABLES_SCHEMA.clone(), vec![vec![rows]])?))
}

/// A row for each of their columns.
fn columns(entries: &Entries, comments: &Comments) -> Result<Arc<dyn TableProvider>> {
    let (mut schemas, mut relations) = (Vec::new(), Vec::new());
    let (mut names, mut places) = (Vec::new(), Vec::new());
    let (mut defaults, mut nullable, mut types) = (Vec::new(), Vec::new(), Vec::new());
    let mut said = Vec::new();
    for entry in entries.values() {
        let given = match &entry.definition {
            Definition::Table(table) => &table.defaults[..],
            Definition::View(_) | Definition::Declared(_) => &[],
        };
        let (schema, name) = split(&entry.name);
        for (place, field) in entry.schema.fields().iter().enumerate() {
            schemas.push(schema.clone());
            relations.push(name.clone());
            names.push(field.name().as_str());
            places.push(i32::try_from(place + 1).unwrap_or(i32::MAX));
            defaults.push(given.get(place).and_then(Option::as_ref).map(default_text));
            nullable.push(if field.is_nullable() { "YES" } else { "NO" });
            types.push(type_name(field.data_type()));
            said.push(comments.get(&entry.name, Some(field.name())));
        }
    }
    let count = relations.len();
    let columns: Vec<ArrayRef> = vec![
        Arc::new(StringArray::from(vec![DATABASE; count])),
        Arc::new(StringArray::from(schemas)),
        Arc::new(StringArray::from(relations)),
        Arc::new(StringArray::from(names)),
        Arc::new(Int32Array::from(places)),
        Arc::new(StringArray::from(defaults)),
        Arc::new(StringArray::from(nullable)),
        Arc::new(StringArray::from_iter_values(types)),
        Arc::new(StringArray::from(said)),
    ];
    let rows = RecordBatch::try_new(INFORMATION_COLUMNS_SCHEMA.clone(), columns)?;
    Ok(Arc::new(MemTable::try_new(INFORMATION_COLUMNS_SCHEMA.clone(), vec![vec![rows]])?))
}
