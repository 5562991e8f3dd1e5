//! `alluvium.tables`: the rows that each table, and each view with lateness, has not taken, and its waterline.

use std::sync::Arc;

use alluvium_dataflow::time::waterlines::TimeColumn;
use alluvium_trace::Epoch;
use arrow::array::{ArrayRef, BooleanArray, RecordBatch, StringArray, UInt64Array};
use arrow::datatypes::Schema;
use datafusion::datasource::{MemTable, TableProvider};

use super::Reader;
use crate::catalog::{Definition, Entries, Entry, TABLES_SCHEMA};
use crate::changes::late::written;
use crate::error::Result;
use crate::worker::Published;

/// The tables of a catalog, and the views with lateness.
pub(super) fn shown(entries: &Entries) -> Vec<&Entry> {
    let is_shown = |entry: &&Entry| match &entry.definition {
        // Nothing is known of what an open transaction has created.
        _ if entry.is_staged => false,
        Definition::Table(_) => true,
        Definition::Declared(_) => false,
        Definition::View(view) => view.id.is_some() && !view.lateness.is_empty(),
    };
    entries.values().map(|entry| &**entry).filter(is_shown).collect()
}

/// The rows of `tables`, [all that are shown](shown), as of `epoch`, given what each worker showed of each.
pub(super) fn table(
    reader: &Reader,
    tables: &[&Entry],
    published: Vec<Vec<Published>>,
    epoch: Epoch,
) -> Result<Arc<dyn TableProvider>> {
    let mut kept = Vec::with_capacity(tables.len());
    let (mut refused, mut late, mut waterlines) = (Vec::new(), Vec::new(), Vec::new());
    for (entry, parts) in tables.iter().zip(published) {
        kept.push(entry.keeps_rows());
        let counts = reader.sum(entry, &parts);
        refused.push(counts.refused);
        late.push(counts.late);
        waterlines.push(text(&reader.waterlines(entry, &parts, epoch), &entry.schema));
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

/// The bounds for rows to be in time; `None` if all are.
fn text(waterlines: &[(usize, Option<i64>)], schema: &Schema) -> Option<String> {
    let texts = waterlines.iter().filter_map(|(column, value)| {
        let field = schema.field(*column);
        Some(format!("{} >= {}", field.name(), written((*value)?, field.data_type())))
    });
    let texts: Vec<String> = texts.collect();
    (!texts.is_empty()).then(|| texts.join(" AND "))
}

/// How many changes a table or view has not taken.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    /// Deletions of absent rows.
    pub(super) refused: u64,
    /// Rows that came too late.
    pub(super) late: u64,
}

impl Reader {
    /// How many changes a table or view has not taken so far.
    pub(super) fn counts(&self, entry: &Entry) -> Result<Counts> {
        let failures = self.progress.failures();
        let id = entry.dataflow().filter(|id| failures.get(*id).is_none());
        let Some(id) = id else { return Ok(Counts::default()) };
        Ok(self.sum(entry, &self.progress.published(&[id])?))
    }

    /// The counts of a table or view, of which each worker has published this.
    fn sum(&self, entry: &Entry, parts: &[Published]) -> Counts {
        let waterlines = entry.dataflow().and_then(|id| self.sequencer.waterlines(id));
        let late = waterlines.map_or(0, |waterlines| waterlines.late());
        Counts {
            refused: parts.iter().map(Published::refused).sum(),
            late: late + parts.iter().map(Published::late).sum::<u64>(),
        }
    }

    /// The columns of a table or view with lateness and their waterlines after `epoch`, which are `None` before the first value.
    fn waterlines(
        &self,
        entry: &Entry,
        parts: &[Published],
        epoch: Epoch,
    ) -> Vec<(usize, Option<i64>)> {
        let Definition::View(view) = &entry.definition else {
            let waterlines = entry.dataflow().and_then(|id| self.sequencer.waterlines(id));
            return waterlines.map_or_else(Vec::new, |known| known.columns().collect());
        };
        let waterline = |column: usize| {
            let column = TimeColumn { table: entry.name.clone(), column };
            // All workers have the same.
            let known = parts.iter().map(|part| {
                part.waterlines.as_ref().and_then(|known| known.at(&column, epoch + 1))
            });
            known.min().flatten()
        };
        let columns = view.lateness.iter().map(|lateness| lateness.column);
        columns.map(|column| (column, waterline(column))).collect()
    }
}
