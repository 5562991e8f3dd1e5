//! Large transactions: the first of their changes are recorded before they are ordered.
//!
//! A commit of many rows takes long to record. So it does that before it takes the lock that orders commits, in parts between
//! which others record theirs. The record of its epoch has only what is left, and the number by which its parts are known. Parts
//! of a transaction that fails have no such record, and are never read.

use std::collections::BTreeMap;
use std::mem;

use alluvium_storage::Position;

use super::{Changed, Sequencer};
use crate::durable::record::{self, ChangedTable, Record};
use crate::error::Result;
use crate::interrupt;

/// How many parts are written before the next ones wait until they are on the disk. Concurrent commits wait for so much
/// at most.
const IN_FLIGHT: u32 = 4;

/// The transactions of which parts are recorded, and the records of whose epochs are not.
#[derive(Default)]
pub(super) struct OpenParts {
    /// The number that a transaction had last.
    last: u64,
    /// The first record of each, by its number.
    first: BTreeMap<u64, Position>,
}

impl OpenParts {
    /// A number that no transaction with parts has in a journal that ends at `end`. Each number is followed by a record, so none
    /// is beyond the end of the journal, also after a restart.
    fn begin(&mut self, end: Position) -> u64 {
        self.last = self.last.max(end.0) + 1;
        self.last
    }

    /// The first record of all.
    pub(super) fn first(&self) -> Option<Position> {
        self.first.values().min().copied()
    }
}

/// The changes of a transaction as they are recorded. Once dropped, they belong to no transaction.
pub(crate) struct RecordedChanges<'a> {
    sequencer: &'a Sequencer,
    /// The number of the transaction, if there are parts.
    transaction: Option<u64>,
    /// How many parts there are.
    parts: u32,
    /// The rest, for the record of the epoch.
    rest: Vec<ChangedTable>,
}

impl Sequencer {
    /// Records the first changes of a transaction, if there are many; `None` without a journal.
    pub(crate) fn record_changes(
        &self,
        changes: &[Changed],
    ) -> Result<Option<RecordedChanges<'_>>> {
        if !self.durable.is_attached() {
            return Ok(None);
        }
        let (transaction, parts, rest) = Default::default();
        let mut recorded = RecordedChanges { sequencer: self, transaction, parts, rest };
        let changes = changes.iter().filter(|changed| !changed.is_temporary);
        let changes = changes.map(|changed| (&*changed.name, &*changed.changes));
        recorded.rest = record::split(changes, |part| recorded.record(part))?;
        Ok(Some(recorded))
    }
}

impl RecordedChanges<'_> {
    fn record(&mut self, changes: Vec<ChangedTable>) -> Result<()> {
        interrupt::check()?;
        let durable = &self.sequencer.durable;
        let number = self.parts;
        let position = match self.transaction {
            Some(transaction) => durable.append(&Record::Part { transaction, number, changes })?,
            // No checkpoint is taken meanwhile.
            None => {
                let mut open = self.sequencer.parts.lock();
                let transaction = open.begin(durable.end());
                let position = durable.append(&Record::Part { transaction, number, changes })?;
                open.first.extend(position.map(|position| (transaction, position)));
                self.transaction = Some(transaction);
                position
            }
        };
        self.parts += 1;
        match self.parts % IN_FLIGHT {
            0 => durable.settle(position),
            _ => Ok(()),
        }
    }

    /// The number of the transaction, how many parts it has, and the rest for the record of its epoch.
    pub(super) fn take(&mut self) -> (u64, u32, Vec<ChangedTable>) {
        let transaction = self.transaction.unwrap_or(record::UNNUMBERED);
        (transaction, self.parts, mem::take(&mut self.rest))
    }
}

impl Drop for RecordedChanges<'_> {
    fn drop(&mut self) {
        if let Some(transaction) = self.transaction {
            self.sequencer.parts.lock().first.remove(&transaction);
        }
    }
}
