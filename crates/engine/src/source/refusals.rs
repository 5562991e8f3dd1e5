//! The rows that sources refused, as `alluvium.errors` shows them.

use std::collections::BTreeMap;
use std::sync::Arc;

use alluvium_trace::Epoch;
use arrow::array::{ArrayRef, RecordBatch, StringArray, UInt64Array};
use parking_lot::Mutex;

use super::Refusal;
use crate::catalog::ERRORS_SCHEMA;
use crate::error::Result;

/// How many refused rows of a table are kept: a file of another format refuses all of its rows.
const MOST: usize = 100_000;

/// Refused rows by table, until the table is dropped.
#[derive(Default)]
pub(crate) struct Refusals {
    tables: Mutex<BTreeMap<String, Refused>>,
}

#[derive(Default)]
struct Refused {
    kept: usize,
    batches: Vec<(Epoch, RecordBatch)>,
}

impl Refusals {
    /// Adds what `source` refused while it made `epoch`.
    pub(crate) fn add(
        &self,
        table: &str,
        source: &str,
        epoch: Epoch,
        refusals: &[Refusal],
    ) -> Result<()> {
        let mut tables = self.tables.lock();
        let refused = tables.entry(table.to_owned()).or_default();
        let refusals = &refusals[..refusals.len().min(MOST - refused.kept)];
        if refusals.is_empty() {
            return Ok(());
        }
        let count = refusals.len();
        let same = |text: &str| -> ArrayRef {
            Arc::new(StringArray::from_iter_values(std::iter::repeat_n(text, count)))
        };
        let row = |refusal: &Refusal| format!("{}:{}", refusal.file.display(), refusal.line);
        let messages = refusals.iter().map(|refusal| refusal.message.as_str());
        let columns: Vec<ArrayRef> = vec![
            same(table),
            same(source),
            Arc::new(StringArray::from_iter_values(refusals.iter().map(row))),
            Arc::new(StringArray::from_iter_values(messages)),
            Arc::new(UInt64Array::from(vec![epoch; count])),
        ];
        refused.kept += count;
        refused.batches.push((epoch, RecordBatch::try_new(ERRORS_SCHEMA.clone(), columns)?));
        Ok(())
    }

    /// The rows refused up to an epoch.
    pub(crate) fn rows(&self, epoch: Epoch) -> Vec<RecordBatch> {
        let tables = self.tables.lock();
        let batches = tables.values().flat_map(|refused| &refused.batches);
        batches.filter(|(at, _)| *at <= epoch).map(|(_, rows)| rows.clone()).collect()
    }

    /// Forgets the rows of a table that is dropped.
    pub(crate) fn forget(&self, table: &str) {
        self.tables.lock().remove(table);
    }
}
