//! Whether the keys of inserted rows are free.
//!
//! A key is taken if the statement inserts another row with it, or if there is a row with it that the statement does not delete: one
//! that the transaction has written, or one of the version that it reads. That version need not be computed: its missing rows are in the
//! [writes](crate::sequencer::WritesAfter) of the last epochs. So an insert never waits.
//!
//! Rows that a program [inserts](Transaction::insert) are checked together when it commits, in the order of its calls.

use std::sync::Arc;

use alluvium_dataflow::state::key_ranges::KeyRanges;
use alluvium_dataflow::state::snapshot::Snapshot;
use alluvium_trace::{Epoch, RowBuffer};
use arrow::array::RecordBatch;

use super::key::KeyColumns;
use super::version::{snapshots, too_new};
use super::written::{Writes, WrittenKeys};
use super::{Overlay, Staging, Transaction, validation};
use crate::catalog::Entry;
use crate::changes::TableChange;
use crate::error::{Error, Result, SqlState};
use crate::interrupt;
use crate::sequencer::{EpochWrites, WritesAfter};
use crate::worker::Durable;

/// How many keys are looked up together.
const TOGETHER: usize = 1024;

/// So many rows are sorted in memory.
const FEW: usize = 10_000;

/// The rows of a table as of an epoch.
struct Rows {
    snapshots: Vec<Snapshot>,
    epoch: Epoch,
    /// The writes after that, up to the version that the transaction reads.
    later: Vec<Arc<EpochWrites>>,
}

impl Rows {
    fn are_none(&self) -> bool {
        self.later.is_empty() && self.snapshots.iter().all(|snapshot| snapshot.updates() == 0)
    }
}

/// The effect of a change on the keys of its rows.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Write {
    Delete,
    /// Inserts rows that take the places of others.
    Upsert,
    /// Inserts rows whose keys must be free.
    Insert,
}

/// The check of changes to a table.
struct Check<'a> {
    transaction: &'a Transaction,
    table: &'a Entry,
    key: &'a KeyColumns,
    /// The changes to check, in order.
    writes: Vec<(&'a TableChange, Write)>,
    /// The earlier writes of the transaction.
    overlay: Option<Arc<Overlay>>,
    /// The rows before the transaction; none until they are needed.
    rows: Option<Rows>,
}

impl Transaction {
    /// Fails if a statement inserts a row whose key is taken.
    pub(crate) fn check_new_keys(&self, staging: &Staging<'_>) -> Result<()> {
        let Staging { table, deletions, insertions, .. } = staging;
        let key = table.key_columns()?.filter(|_| staging.keys_are_new);
        let Some(key) = key else { return Ok(()) };
        let deletions = deletions.changes().iter().map(|change| (change, Write::Delete));
        let insertions = insertions.changes().iter().map(|change| (change, Write::Insert));
        let writes = deletions.chain(insertions).collect();
        let overlay = self.overlay(table)?;
        let mut check = Check { transaction: self, table, key, writes, overlay, rows: None };
        let keys = match &staging.keys {
            WrittenKeys::Keys(keys) => keys,
            WrittenKeys::All => return check.many(),
        };
        if let Some((twice, _)) = keys.iter().find(|(_, writes)| writes.inserts > 1) {
            return Err(check.taken(twice));
        }
        let is_new = |(_, writes): &(_, &Writes)| writes.inserts > 0 && !writes.deletes;
        let new: Vec<&[u8]> = keys.iter().filter(is_new).map(|(key, _)| &**key).collect();
        check.are_free(&new)
    }

    /// Fails if a row that a program has inserted has a key that is taken.
    pub(super) fn check_inserted(&self) -> Result<()> {
        for (id, (name, staged)) in &self.changes {
            if !staged.changes().iter().any(TableChange::has_new_keys) {
                continue;
            }
            let writes = staged.changes().iter().map(|change| {
                let write = match (change.deletes(), change.has_new_keys()) {
                    (true, _) => Write::Delete,
                    (false, true) => Write::Insert,
                    (false, false) => Write::Upsert,
                };
                (change, write)
            });
            let writes = writes.collect();
            if self.is_committed()? {
                return Ok(());
            }
            let table = validation::check_there(&self.instance.reader, *id, name)?;
            let Some(key) = table.key_columns()? else { continue };
            let table = &table;
            let mut check =
                Check { transaction: self, table, key, writes, overlay: None, rows: None };
            match staged.rows() <= FEW as u64 {
                true => check.few()?,
                false => check.many()?,
            }
        }
        Ok(())
    }

    /// The rows of a table as of the version that the transaction reads, as far as they are computed.
    fn rows_to_check(&self, table: &Entry) -> Result<Rows> {
        if table.is_staged {
            return Ok(Rows { snapshots: Vec::new(), epoch: 0, later: Vec::new() });
        }
        let id = table.as_table()?.id;
        let reader = &self.instance.reader;
        let mut version = self.version.lock();
        let version = self.version_with(&mut version, table)?;
        if let Some(parts) = version.pinned(id) {
            return Ok(Rows {
                snapshots: snapshots(parts),
                epoch: version.epoch(),
                later: Vec::new(),
            });
        }
        let (computed, parts) =
            reader.progress.computed(id)?.ok_or_else(|| Error::replaced(&table.name))?;
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
    /// Fails if a key is taken, of so few rows that their keys are sorted here.
    fn few(&mut self) -> Result<()> {
        let mut keys = Vec::with_capacity(self.writes.len());
        for (change, write) in &self.writes {
            keys.push((self.key.of(change.load()?.0.columns())?, *write));
        }
        let keys = keys.iter().flat_map(|(keys, write)| keys.iter().map(move |key| (key, *write)));
        let mut sorted: Vec<_> = keys.collect();
        sorted.sort_by_key(|(key, _)| *key);
        let mut new: Vec<&[u8]> = Vec::with_capacity(sorted.len());
        for writes in sorted.chunk_by(|(one, _), (other, _)| one == other) {
            let key = writes[0].0.data();
            match must_be_free(writes.iter().map(|(_, write)| *write)) {
                None => return Err(self.taken(key)),
                Some(true) => new.push(key),
                Some(false) => {}
            }
        }
        self.are_free(&new)
    }

    /// Fails if a key is taken, of very many rows.
    fn many(&mut self) -> Result<()> {
        // Keys that ascend are told apart without being sorted.
        if self.writes.iter().all(|(_, write)| *write == Write::Insert) && self.is_ascending()? {
            if self.overlay.is_none() {
                self.note(None);
                if self.rows()?.are_none() {
                    return Ok(());
                }
            }
            for (change, _) in self.writes.clone() {
                let (rows, _) = change.load()?;
                let keys = self.key.of(rows.columns())?;
                let keys: Vec<_> = keys.iter().collect();
                for keys in keys.chunks(TOGETHER) {
                    let keys: Vec<&[u8]> = keys.iter().map(|key| key.as_ref()).collect();
                    self.are_free(&keys)?;
                }
            }
            return Ok(());
        }
        let mut sorted = RowBuffer::<Epoch>::new(&self.transaction.instance.writer.context);
        // Changes of one kind that follow each other have one number, by which those of a key are sorted.
        let mut kinds: Vec<Write> = Vec::new();
        for (change, write) in &self.writes {
            interrupt::check()?;
            if kinds.last() != Some(write) {
                kinds.push(*write);
            }
            let number = (kinds.len() - 1) as u32;
            let (rows, _) = change.load()?;
            for key in &self.key.of(rows.columns())? {
                sorted.push(key.as_ref(), &number.to_be_bytes(), &0, 1);
            }
        }
        let sorted = sorted.seal_all();
        let mut cursor = sorted.scan();
        let mut new: Vec<Box<[u8]>> = Vec::with_capacity(TOGETHER);
        let mut writes: Vec<Write> = Vec::new();
        while let Some(found) = cursor.key().map(Box::<[u8]>::from) {
            writes.clear();
            while let Some(value) = cursor.val() {
                let number = value.try_into().map_or(0, u32::from_be_bytes) as usize;
                let count: i64 = cursor.updates().map(|(_, weight)| weight).sum();
                // Whether it is done twice or more often is the same.
                let count = usize::try_from(count.min(2)).unwrap_or_default();
                writes.extend(kinds.get(number).into_iter().cycle().take(count));
                cursor.step_val();
            }
            match must_be_free(writes.iter().copied()) {
                None => return Err(self.taken(&found)),
                Some(true) => new.push(found),
                Some(false) => {}
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

    /// Notes that rows of the table are read: those with these keys; all without.
    fn note(&self, keys: Option<&[&[u8]]>) {
        let Some(id) = self.table.dataflow() else { return };
        // No other session writes to it.
        if self.table.temporary().is_some() {
            return;
        }
        let noted = self.transaction.noted(id, &self.table.name);
        match keys.filter(|keys| keys.len() <= FEW) {
            Some(keys) => noted.add(Some(&KeyRanges::of_keys(keys.iter().copied()))),
            None => noted.add(None),
        }
    }

    /// The rows before the transaction.
    fn rows(&mut self) -> Result<&Rows> {
        let rows = match self.rows.take() {
            Some(rows) => rows,
            None => self.transaction.rows_to_check(self.table)?,
        };
        Ok(self.rows.insert(rows))
    }

    /// Fails if one of these keys, which ascend, is taken by a row that was there before.
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
        self.note(Some(&left));
        let (table, key) = (self.table, self.key);
        let rows = self.rows()?;
        if !rows.later.is_empty() {
            let mut unwritten = Vec::with_capacity(left.len());
            for new in left {
                let written = rows.later.iter().rev().find_map(|of| of.has(key, new).transpose());
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
            Some(rows) => Err(is_taken(&table.name, &key.written(&rows, 0))),
            None => Ok(()),
        }
    }

    /// Whether the keys of all rows ascend, none of them twice.
    fn is_ascending(&self) -> Result<bool> {
        let mut last: Option<Vec<u8>> = None;
        for (change, _) in &self.writes {
            interrupt::check()?;
            let (rows, _) = change.load()?;
            let keys = self.key.of(rows.columns())?;
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

    /// The error for an encoded key that is taken, of a row that is inserted.
    fn taken(&self, encoded: &[u8]) -> Error {
        let inserted = self.writes.iter().filter(|(_, write)| *write == Write::Insert);
        let written = inserted.into_iter().find_map(|(change, _)| {
            let (rows, _) = change.load().ok()?;
            let keys = self.key.of(rows.columns()).ok()?;
            let row = keys.iter().position(|key| key.as_ref() == encoded)?;
            Some(self.key.written(&rows, row))
        });
        is_taken(&self.table.name, &written.unwrap_or_default())
    }
}

/// Whether a key must be free before these writes, which are in order; `None` if one of them inserts a row onto another one of them.
fn must_be_free(writes: impl Iterator<Item = Write>) -> Option<bool> {
    let (mut is_there, mut must) = (None, false);
    for write in writes {
        match (write, is_there) {
            (Write::Insert, Some(true)) => return None,
            (Write::Insert, None) => must = true,
            _ => {}
        }
        is_there = Some(write != Write::Delete);
    }
    Some(must)
}

/// The error for a key that is taken.
fn is_taken(table: &str, key: &str) -> Error {
    let message = |key: &str| {
        format!(
            "a row with the {key} is in \"{table}\" already; INSERT OR REPLACE takes its place, ON CONFLICT says what else to do"
        )
    };
    Error::data(message(&format!("key {key}")))
        .or_bare(message("same key"))
        .with_sqlstate(SqlState::UNIQUE)
}
