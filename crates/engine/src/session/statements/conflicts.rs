//! INSERT … ON CONFLICT, batch by batch.

use std::collections::HashSet;

use alluvium_sql::planner::{Arbiter, OnConflict};
use arrow::array::{ArrayRef, AsArray, BooleanArray, RecordBatch};
use arrow::buffer::NullBuffer;
use arrow::compute::{filter, filter_record_batch};
use arrow::row::Rows;

use crate::catalog::Entry;
use crate::error::{Error, Result};
use crate::fault::{Fault, armed};
use crate::query::{Reader, Reading};
use crate::transaction::{KeyColumns, Staging};

/// The rows of an INSERT, against the keys that are taken before the statement and by rows of its own.
pub(in crate::session) struct Conflicts<'a> {
    reader: &'a Reader,
    reading: Reading<'a>,
    table: &'a Entry,
    /// Whether rows whose keys are taken change the rows that have these.
    updates: bool,
    keys: Vec<Key<'a>>,
}

/// A key that counts.
struct Key<'a> {
    arbiter: &'a Arbiter,
    columns: KeyColumns,
    /// Those of the statement's rows so far.
    seen: HashSet<Box<[u8]>>,
}

impl<'a> Conflicts<'a> {
    pub(in crate::session) fn new(
        reader: &'a Reader,
        reading: Reading<'a>,
        table: &'a Entry,
        on_conflict: &'a OnConflict,
    ) -> Result<Self> {
        let keys = on_conflict.arbiters().iter().map(|arbiter| {
            let columns = KeyColumns::new(&table.schema, arbiter.key())?;
            Ok(Key { arbiter, columns, seen: HashSet::new() })
        });
        let (keys, updates) = (keys.collect::<Result<_>>()?, on_conflict.updates());
        let transaction = reading.transaction.filter(|_| !armed(Fault::MissConflicts));
        let reading = Reading { transaction, ..reading };
        Ok(Self { reader, reading, table, updates, keys })
    }

    /// Stages rows, with conflicts resolved. Returns the rows that are inserted and those that take the places of others.
    pub(in crate::session) fn stage(
        &mut self,
        staging: &mut Staging<'_>,
        rows: &RecordBatch,
    ) -> Result<Vec<RecordBatch>> {
        let rows = staging.checked(rows.columns())?;
        let width = self.table.schema.fields().len();
        let mut changed = Vec::new();
        let mut is_free = vec![true; rows.num_rows()];
        let mut encoded = Vec::with_capacity(self.keys.len());
        for key in &mut self.keys {
            let keys = key.columns.of(rows.columns())?;
            let nulls = key.columns.nulls(rows.columns());
            if self.updates {
                key.see(&keys, nulls.as_ref(), &rows)?;
            }
            let mut taken: HashSet<Box<[u8]>> = HashSet::new();
            let found = self.reader.evaluate(key.arbiter.of(&rows)?.into(), self.reading)?;
            for found in found.batches {
                let (old, new) = found.columns().split_at(width);
                taken.extend(key.columns.of(old)?.iter().map(|key| key.as_ref().into()));
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
            for (is_free, key) in is_free.iter_mut().zip(&keys) {
                *is_free &= !taken.contains(key.as_ref());
            }
            encoded.push((keys, nulls));
        }
        if !self.updates {
            // A row that is kept out takes no key from those that follow.
            for (row, is_free) in is_free.iter_mut().enumerate().filter(|(_, is_free)| **is_free) {
                let is_known = |nulls: &Option<NullBuffer>| {
                    nulls.as_ref().is_none_or(|nulls| nulls.is_valid(row))
                };
                let keys = || self.keys.iter().zip(&encoded).filter(|(_, (_, n))| is_known(n));
                *is_free = keys().all(|(of, (keys, _))| !of.seen.contains(keys.row(row).data()));
                if *is_free {
                    let known = self.keys.iter_mut().zip(&encoded);
                    for (of, (keys, _)) in known.filter(|(_, (_, nulls))| is_known(nulls)) {
                        of.seen.insert(keys.row(row).data().into());
                    }
                }
            }
        }
        let inserted = filter_record_batch(&rows, &BooleanArray::from(is_free))?;
        changed.push(staging.insert(inserted.columns())?);
        Ok(changed)
    }
}

impl Key<'_> {
    /// Fails if the statement has had one of these keys, of these rows.
    fn see(&mut self, keys: &Rows, nulls: Option<&NullBuffer>, rows: &RecordBatch) -> Result<()> {
        for (row, key) in keys.iter().enumerate() {
            let is_known = nulls.is_none_or(|nulls| nulls.is_valid(row));
            if is_known && !self.seen.insert(key.as_ref().into()) {
                return Err(Error::data(format!(
                    "ON CONFLICT DO UPDATE: two of the rows have the key {}, and a statement changes a row once",
                    self.columns.written(rows, row)
                )));
            }
        }
        Ok(())
    }
}
