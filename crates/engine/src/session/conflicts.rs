//! INSERT … ON CONFLICT, batch by batch.

use std::collections::HashSet;

use alluvium_sql::planner::OnConflict;
use arrow::array::{ArrayRef, AsArray, BooleanArray, RecordBatch};
use arrow::compute::{filter, filter_record_batch};

use crate::catalog::Entry;
use crate::error::{Error, Result};
use crate::fault::{Fault, armed};
use crate::query::{Reader, Reading};
use crate::transaction::{KeyColumns, Staging};

/// The rows of an INSERT, against the keys that are taken before the statement and by rows of its own.
pub(super) struct Conflicts<'a> {
    reader: &'a Reader,
    reading: Reading<'a>,
    table: &'a Entry,
    on_conflict: &'a OnConflict,
    keys: KeyColumns,
    /// The keys of the statement's rows so far.
    seen: HashSet<Box<[u8]>>,
}

impl<'a> Conflicts<'a> {
    pub(super) fn new(
        reader: &'a Reader,
        reading: Reading<'a>,
        table: &'a Entry,
        on_conflict: &'a OnConflict,
    ) -> Result<Self> {
        let keys = KeyColumns::new(&table.schema, on_conflict.key())?;
        let transaction = reading.transaction.filter(|_| !armed(Fault::MissConflicts));
        let reading = Reading { transaction, ..reading };
        Ok(Self { reader, reading, table, on_conflict, keys, seen: HashSet::new() })
    }

    /// Stages what becomes of some rows. Returns the rows that are inserted and those that take the places of others.
    pub(super) fn stage(
        &mut self,
        staging: &mut Staging<'_>,
        rows: &RecordBatch,
    ) -> Result<Vec<RecordBatch>> {
        let rows = self.new_keys(&staging.checked(rows.columns())?)?;
        let width = self.table.schema.fields().len();
        let mut changed = Vec::new();
        let mut taken: HashSet<Box<[u8]>> = HashSet::new();
        let found = self.reader.evaluate(self.on_conflict.of(&rows)?.into(), self.reading)?;
        for found in found.batches {
            let (old, new) = found.columns().split_at(width);
            taken.extend(self.keys.of(old)?.iter().map(|key| key.as_ref().into()));
            let Some((changes, new)) = new.split_last() else { continue };
            let filtered = |columns: &[ArrayRef]| {
                let columns = columns.iter().map(|column| filter(column, changes.as_boolean()));
                columns.collect::<std::result::Result<Vec<_>, _>>()
            };
            let (old, new) = (filtered(old)?, filtered(new)?);
            staging.delete(&old)?;
            staging.check_late(&new)?;
            changed.push(staging.insert(&new)?);
        }
        let free = self.keys.of(rows.columns())?;
        let free: BooleanArray =
            free.iter().map(|key| Some(!taken.contains(key.as_ref()))).collect();
        let inserted = filter_record_batch(&rows, &free)?;
        changed.push(staging.insert(inserted.columns())?);
        Ok(changed)
    }

    /// The first row with each key that the statement has not had yet.
    fn new_keys(&mut self, rows: &RecordBatch) -> Result<RecordBatch> {
        let keys = self.keys.of(rows.columns())?;
        let mut is_new = Vec::with_capacity(rows.num_rows());
        for (row, key) in keys.iter().enumerate() {
            let new = self.seen.insert(key.as_ref().into());
            if !new && self.on_conflict.updates() {
                return Err(self.twice(rows, row));
            }
            is_new.push(new);
        }
        Ok(filter_record_batch(rows, &BooleanArray::from(is_new))?)
    }

    fn twice(&self, rows: &RecordBatch, row: usize) -> Error {
        Error::data(format!(
            "ON CONFLICT DO UPDATE: two of the rows have the key {}, and a statement changes a row once",
            self.keys.written(rows, row)
        ))
    }
}
