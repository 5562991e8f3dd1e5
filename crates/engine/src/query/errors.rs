//! `alluvium.errors`: the rows of all views whose expressions failed, and of all files that were refused.

use std::sync::Arc;

use alluvium_trace::Epoch;
use arrow::array::{ArrayRef, AsArray, RecordBatch, StringArray};
use arrow::compute::filter_record_batch;
use datafusion::datasource::{MemTable, TableProvider};

use crate::catalog::{ERRORS_SCHEMA, Entries, Entry};
use crate::error::Result;
use crate::worker::Published;

/// Those of the rows that sources refused whose tables are `shown`.
pub(super) fn of(shown: &Entries, refused: &[RecordBatch]) -> Result<Vec<RecordBatch>> {
    let of_shown = |rows: &RecordBatch| {
        let tables = rows.column(0).as_string::<i32>();
        let is_shown =
            tables.iter().map(|table| table.is_some_and(|table| shown.contains_key(table)));
        Ok(filter_record_batch(rows, &is_shown.map(Some).collect())?)
    };
    refused.iter().map(of_shown).collect()
}

/// The errors of `views` as of `epoch`, given what each worker showed of each, and the rows that sources
/// `refused`.
pub(super) fn table(
    views: &[&Entry],
    published: Vec<Vec<Published>>,
    epoch: Epoch,
    refused: Vec<RecordBatch>,
) -> Result<Arc<dyn TableProvider>> {
    let mut all = refused;
    for (view, parts) in views.iter().zip(published) {
        for errors in parts.into_iter().filter_map(|part| part.errors) {
            let columns: Vec<usize> = (0..errors.schema().fields().len()).collect();
            for rows in errors.read(epoch, &columns) {
                let name: ArrayRef = Arc::new(StringArray::from_iter_values(std::iter::repeat_n(
                    &view.name,
                    rows.num_rows(),
                )));
                let columns = std::iter::once(name).chain(rows.columns().iter().cloned()).collect();
                all.push(RecordBatch::try_new(ERRORS_SCHEMA.clone(), columns)?);
            }
        }
    }
    Ok(Arc::new(MemTable::try_new(ERRORS_SCHEMA.clone(), vec![all])?))
}
