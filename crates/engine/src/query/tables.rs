//! `alluvium.tables`: what each table has not taken, and its waterline.

use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray, RecordBatch, StringArray, UInt64Array};
use arrow::datatypes::Schema;
use datafusion::datasource::{MemTable, TableProvider};

use super::Reader;
use crate::catalog::{Entries, Entry, TABLES_SCHEMA, Table};
use crate::error::Result;
use crate::sequencer::TableWaterlines;
use crate::transaction::late::written;

/// The tables of a catalog.
pub(super) fn table(reader: &Reader, entries: &Entries) -> Result<Arc<dyn TableProvider>> {
    let is_table = |entry: &&Entry| entry.is_table();
    let tables: Vec<&Entry> = entries.values().map(|entry| &**entry).filter(is_table).collect();
    let mut kept = Vec::with_capacity(tables.len());
    let (mut refused, mut late, mut waterlines) = (Vec::new(), Vec::new(), Vec::new());
    for entry in &tables {
        let table = entry.as_table()?;
        kept.push(table.kept);
        let counts = reader.counts(table)?;
        refused.push(counts.refused);
        late.push(counts.late);
        let waterline = reader.sequencer.waterlines(table.id);
        waterlines.push(waterline.and_then(|waterline| text(&waterline, &entry.schema)));
    }
    let names = tables.iter().map(|entry| &entry.name);
    let columns: Vec<ArrayRef> = vec![
        Arc::new(StringArray::from_iter_values(names)),
        Arc::new(BooleanArray::from(kept)),
        Arc::new(UInt64Array::from(refused)),
        Arc::new(UInt64Array::from(late)),
        Arc::new(StringArray::from(waterlines)),
    ];
    let rows = RecordBatch::try_new(TABLES_SCHEMA.clone(), columns)?;
    Ok(Arc::new(MemTable::try_new(TABLES_SCHEMA.clone(), vec![vec![rows]])?))
}

/// What rows must have to be in time; `None` if all are.
fn text(waterlines: &TableWaterlines, schema: &Schema) -> Option<String> {
    let texts = waterlines.columns().filter_map(|(column, value)| {
        let field = schema.field(column);
        Some(format!("{} >= {}", field.name(), written(value?, field.data_type())))
    });
    let texts: Vec<String> = texts.collect();
    (!texts.is_empty()).then(|| texts.join(" AND "))
}

/// How many changes a table has not taken.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    /// Deletions of absent rows.
    pub(super) refused: u64,
    /// Rows that came too late.
    pub(super) late: u64,
}

impl Reader {
    /// How many changes a table has not taken so far.
    pub(super) fn counts(&self, table: &Table) -> Result<Counts> {
        let mut counts = Counts::default();
        let pinned = self.progress.pin(&[table.id])?;
        for part in pinned.into_iter().flat_map(|pinned| pinned.dataflows).flatten() {
            counts.refused += part.refused();
            counts.late += part.late();
        }
        let waterlines = self.sequencer.waterlines(table.id);
        counts.late += waterlines.map_or(0, |waterlines| waterlines.late());
        Ok(counts)
    }
}
