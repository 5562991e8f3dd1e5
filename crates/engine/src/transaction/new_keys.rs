//! Whether the keys of inserted rows are free.
//!
//! A key is taken if the statement inserts another row with it, or if there is a row with it that the statement does not delete: one
//! that the transaction has written, or one of the version that it reads. That version need not be computed: what is not is in the
//! [writes](crate::sequencer::WritesAfter) of the last epochs. So who inserts waits for nobody.

use std::sync::Arc;

use alluvium_dataflow::key_ranges::KeyRanges;
use alluvium_dataflow::snapshot::Snapshot;
use alluvium_trace::{Epoch, RowBuffer};
use arrow::array::RecordBatch;

use super::change::TableChange;
use super::key::KeyColumns;
use super::version::{ReadVersion, snapshots, too_new};
use super::written::{Writes, WrittenKeys};
use super::{Overlay, Staging, Transaction};
use crate::catalog::Entry;
use crate::error::{Error, Result, SqlState};
use crate::interrupt;
use crate::sequencer::{EpochWrites, WritesAfter};
use crate::worker::Durable;

/// How many keys are looked up together.
const TOGETHER: usize = 1024;

/// The rows of a table as of an epoch.
struct Rows {
    snapshots: Vec<Snapshot>,
    epoch: Epoch,
    /// What was written after that, up to the version that the transaction reads.
    later: Vec<Arc<EpochWrites>>,
}

/// The check of a statement.
struct Check<'a> {
    transaction: &'a Transaction,
    staging: &'a Staging<'a>,
    key: &'a KeyColumns,
    /// What the transaction has written before.
    overlay: Option<Arc<Overlay>>,
    /// What was there before it; none before somebody asks.
    rows: Option<Rows>,
}

impl Transaction {
    /// Fails if a statement inserts a row whose key is taken.
    pub(crate) fn check_new_keys(&self, staging: &Staging<'_>) -> Result<()> {
        let key = staging.table.key_columns()?.filter(|_| staging.keys_are_new);
        let Some(key) = key else { return Ok(()) };
        let overlay = self.overlay(staging.table)?;
        let mut check = Check { transaction: self, staging, key, overlay, rows: None };
        let keys = match &staging.keys {
            WrittenKeys::Keys(keys) => keys,
            WrittenKeys::All => return check.all(),
        };
        if let Some((twice, _)) = keys.iter().find(|(_, writes)| writes.inserts > 1) {
            return Err(check.taken(twice));
        }
        let is_new = |(_, writes): &(_, &Writes)| writes.inserts > 0 && !writes.deletes;
        let new: Vec<&[u8]> = keys.iter().filter(is_new).map(|(key, _)| &**key).collect();
        check.are_free(&new)
    }

    /// The rows of a table as of the version that the transaction reads, as far as they are computed.
    fn rows_to_check(&self, table: &Entry) -> Result<Rows> {
        let id = table.as_table()?.id;
        let reader = &self.instance.reader;
        let mut version = self.version.lock();
        if version.is_none() {
            let last = ReadVersion::last(reader, (&[], &[]), Durable::No)?;
            *version = last.map(|(version, _)| version);
        }
        let dropped = || Error::replaced(&table.name);
        let version = version.as_mut().ok_or_else(dropped)?;
        if !table.is_there_as_of(version.epoch()) {
            return Err(too_new());
        }
        if let Some(parts) = version.pinned(id) {
            return Ok(Rows {
                snapshots: snapshots(parts),
                epoch: version.epoch(),
                later: Vec::new(),
            });
        }
        let (computed, parts) = reader.progress.computed(id)?.ok_or_else(dropped)?;
        if computed < version.epoch()
            && let WritesAfter::Known(mut later) = reader.sequencer.writes_after(id, computed)
        {
            later.retain(|writes| writes.epoch <= version.epoch());
            return Ok(Rows { snapshots: snapshots(&parts), epoch: computed, later });
        }
        let parts = version.pin(reader, (&[id], &[]), Durable::No)?;
        let parts = parts.ok_or_else(too_new)?;
        let snapshots = snapshots(parts.first().map_or(&[][..], Vec::as_slice));
        Ok(Rows { snapshots, epoch: version.epoch(), later: Vec::new() })
    }
}

impl Check<'_> {
    /// Fails if a key is taken, of very many rows.
    fn all(&mut self) -> Result<()> {
        let Staging { deletions, insertions, .. } = self.staging;
        let key = self.key;
        // Keys that ascend are told apart without being sorted.
        if deletions.changes().is_empty() && is_ascending(insertions.changes(), key)? {
            for change in insertions.changes() {
                let (rows, _) = change.load()?;
                let keys = key.of(rows.columns())?;
                let keys: Vec<_> = keys.iter().collect();
                for keys in keys.chunks(TOGETHER) {
                    let keys: Vec<&[u8]> = keys.iter().map(|key| key.as_ref()).collect();
                    self.are_free(&keys)?;
                }
            }
            return Ok(());
        }
        let mut sorted = RowBuffer::<Epoch>::new(&self.transaction.instance.writer.context);
        for (staged, inserts) in [(deletions, 0), (insertions, 1)] {
            for change in staged.changes() {
                interrupt::check()?;
                let (rows, _) = change.load()?;
                for key in &key.of(rows.columns())? {
                    sorted.push(key.as_ref(), &[inserts], &0, 1);
                }
            }
        }
        let sorted = sorted.seal_all();
        let mut cursor = sorted.scan();
        let mut new: Vec<Box<[u8]>> = Vec::with_capacity(TOGETHER);
        while let Some(found) = cursor.key().map(Box::<[u8]>::from) {
            let (mut deletes, mut inserts) = (false, 0);
            while let Some(value) = cursor.val() {
                let count: i64 = cursor.updates().map(|(_, weight)| weight).sum();
                match value {
                    [1] => inserts += count,
                    _ => deletes = true,
                }
                cursor.step_val();
            }
            match (inserts, deletes) {
                (2.., _) => return Err(self.taken(&found)),
                (1, false) => new.push(found),
                _ => {}
            }
            cursor.step_key();
            if new.len() == TOGETHER || cursor.key().is_none() {
                let keys: Vec<&[u8]> = new.iter().map(|key| &**key).collect();
                self.are_free(&keys)?;
                new.clear();
            }
        }
        Ok(())
    }

    /// Fails if one of these keys, which ascend, is taken by a row that was there before the statement.
    fn are_free(&mut self, keys: &[&[u8]]) -> Result<()> {
        interrupt::check()?;
        let mut left = Vec::with_capacity(keys.len());
        for &new in keys {
            match self.overlay.as_ref().and_then(|overlay| overlay.has(new)) {
                Some(true) => return Err(self.taken(new)),
                Some(false) => {}
                None => left.push(new),
            }
        }
        if left.is_empty() {
            return Ok(());
        }
        let table = self.staging.table;
        let id = table.as_table()?.id;
        let noted = self.transaction.noted(id, &table.name);
        match &self.staging.keys {
            WrittenKeys::Keys(_) => noted.add(Some(&KeyRanges::of_keys(left.iter().copied()))),
            WrittenKeys::All => noted.add(None),
        }
        let rows = match self.rows.take() {
            Some(rows) => rows,
            None => self.transaction.rows_to_check(table)?,
        };
        let rows = self.rows.insert(rows);
        if !rows.later.is_empty() {
            let mut unwritten = Vec::with_capacity(left.len());
            for new in left {
                let written =
                    rows.later.iter().rev().find_map(|of| of.has(self.key, new).transpose());
                match written.transpose()? {
                    Some(true) => return Err(self.taken(new)),
                    Some(false) => {}
                    None => unwritten.push(new),
                }
            }
            left = unwritten;
        }
        if rows.snapshots.iter().all(|snapshot| snapshot.updates() == 0) {
            return Ok(());
        }
        let ranges = KeyRanges::of_keys(left);
        let columns: Vec<usize> = (0..table.schema.fields().len()).collect();
        let found = Snapshot::read_ranges(&rows.snapshots, rows.epoch, &columns, &ranges);
        match found.into_iter().flatten().find(|rows: &RecordBatch| rows.num_rows() > 0) {
            Some(rows) => Err(is_taken(&table.name, &self.key.written(&rows, 0))),
            None => Ok(()),
        }
    }

    /// The error for an encoded key that is taken, of a row that the statement inserts.
    fn taken(&self, encoded: &[u8]) -> Error {
        let written = self.staging.insertions.changes().iter().find_map(|change| {
            let (rows, _) = change.load().ok()?;
            let keys = self.key.of(rows.columns()).ok()?;
            let row = keys.iter().position(|key| key.as_ref() == encoded)?;
            Some(self.key.written(&rows, row))
        });
        is_taken(&self.staging.table.name, &written.unwrap_or_default())
    }
}

/// Whether the keys of changes ascend, none of them twice.
fn is_ascending(changes: &[TableChange], key: &KeyColumns) -> Result<bool> {
    let mut last: Option<Vec<u8>> = None;
    for change in changes {
        interrupt::check()?;
        let (rows, _) = change.load()?;
        let keys = key.of(rows.columns())?;
        let mut before: Option<&[u8]> = last.as_deref();
        for row in 0..keys.num_rows() {
            let key = keys.row(row).data();
            if before.is_some_and(|before| before >= key) {
                return Ok(false);
            }
            before = Some(key);
        }
        last = before.map(<[u8]>::to_vec);
    }
    Ok(true)
}

/// The error for a key that is taken.
fn is_taken(table: &str, key: &str) -> Error {
    Error::data(format!(
        "a row with the key {key} is in \"{table}\" already; INSERT OR REPLACE takes its place, ON CONFLICT says what else to do"
    ))
    .with_sqlstate(SqlState::UNIQUE)
}
