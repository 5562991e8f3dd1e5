//! `alluvium.errors`: the rows of all views whose expressions failed, and of all files that were refused.

use std::sync::Arc;

use alluvium_trace::Epoch;
use arrow::array::{ArrayRef, AsArray, RecordBatch, StringArray, new_null_array};
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

/// The message of errors whose rows are not shown.
const HIDDEN: &str =
    "the role may not SELECT from all that the view reads, so the row and its values are not shown";

/// The errors of `views` as of `epoch`, given what each worker showed of each, and the rows that sources
/// `refused`. They tell of rows of what a view reads: only of views of which `shows_rows` they show these.
pub(super) fn table(
    views: &[&Entry],
    published: Vec<Vec<Published>>,
    epoch: Epoch,
    refused: Vec<RecordBatch>,
    shows_rows: impl Fn(&Entry) -> bool,
) -> Result<Arc<dyn TableProvider>> {
    let mut all = refused;
    for (view, parts) in views.iter().zip(published) {
        let shows_rows = shows_rows(view);
        for errors in parts.into_iter().filter_map(|part| part.errors) {
            let columns: Vec<usize> = (0..errors.schema().fields().len()).collect();
            for rows in errors.read(epoch, &columns) {
                let count = rows.num_rows();
                let names = std::iter::repeat_n(&view.name, count);
                let name: ArrayRef = Arc::new(StringArray::from_iter_values(names));
                let columns = std::iter::once(name).chain(rows.columns().iter().cloned());
                let mut columns: Vec<ArrayRef> = columns.collect();
                if !shows_rows {
                    hide_rows(&mut columns, count);
                }
                all.push(RecordBatch::try_new(ERRORS_SCHEMA.clone(), columns)?);
            }
        }
    }
    Ok(Arc::new(MemTable::try_new(ERRORS_SCHEMA.clone(), vec![all])?))
}

/// Takes the rows that errors are of out of their columns, and what their messages quote of these.
fn hide_rows(columns: &mut [ArrayRef], count: usize) {
    for (field, column) in ERRORS_SCHEMA.fields().iter().zip(columns) {
        match field.name().as_str() {
            "row" => *column = new_null_array(field.data_type(), count),
            "message" => *column = Arc::new(StringArray::from(vec![HIDDEN; count])),
            _ => {}
        }
    }
}
