//! Statements that write: the rows that they change are locked, and read again if others have changed them.

use std::time::{Duration, Instant};

use super::reads::ReadBefore;
use super::version::ReadVersion;
use super::written::WrittenKeys;
use super::{Staging, Transaction};
use crate::catalog::Entry;
use crate::error::{Conflict, Error, Result};
use crate::interrupt;
use crate::sequencer::WritesAfter;
use crate::worker::{DataflowId, Durable};
use crate::writer::{Mode, Resource};

impl Transaction {
    /// Its reads so far.
    pub(crate) fn read_before(&self) -> ReadBefore {
        self.reads.mark()
    }

    /// Forgets its reads since.
    pub(crate) fn forget_reads(&self, before: &ReadBefore) {
        self.reads.return_to(before);
    }

    /// Locks the rows that a statement changes, for as long as the transaction is open. Waits until no other transaction has any
    /// of them, at most for so long.
    pub(crate) fn lock_rows(&self, staging: &Staging<'_>, timeout: Option<Duration>) -> Result<()> {
        let Staging { table, keys, values, .. } = staging;
        self.lock_keys(table, keys, Mode::Exclusive, timeout)?;
        for (unique, values) in values.iter().enumerate() {
            let of_values = |id, value| Resource::Values(id, unique, value);
            self.lock_all(table, values, of_values, Mode::Exclusive, timeout)?;
        }
        Ok(())
    }

    /// As [`Transaction::lock_rows`], the rows of a table that have these keys.
    pub(crate) fn lock_keys(
        &self,
        table: &Entry,
        keys: &WrittenKeys,
        mode: Mode,
        timeout: Option<Duration>,
    ) -> Result<()> {
        self.lock_all(table, keys, Resource::Key, mode, timeout)
    }

    /// Locks the row of each of these keys of a table, or else all of the table.
    fn lock_all(
        &self,
        table: &Entry,
        keys: &WrittenKeys,
        resource: impl Fn(DataflowId, Box<[u8]>) -> Resource,
        mode: Mode,
        timeout: Option<Duration>,
    ) -> Result<()> {
        // Those who have the rows could not commit while this one waits for them.
        if self.lock.is_some() {
            return Ok(());
        }
        let id = table.as_table()?.id;
        let lock = |resource, mode| self.lock_within(table, resource, mode, timeout);
        match keys {
            WrittenKeys::All => lock(Resource::Table(id), mode),
            WrittenKeys::Keys(keys) if keys.is_empty() => Ok(()),
            WrittenKeys::Keys(keys) => {
                lock(Resource::Table(id), Mode::Shared)?;
                keys.keys().try_for_each(|key| lock(resource(id, key.clone()), mode))
            }
        }
    }

    /// Locks the row of a table with this key, or all of a table without one, unless other transactions have it. Returns whether it
    /// did.
    pub(crate) fn try_lock(&self, table: &Entry, key: Option<&[u8]>, mode: Mode) -> Result<bool> {
        let id = table.as_table()?.id;
        let Some(key) = key else { return self.locks.try_acquire(Resource::Table(id), mode) };
        Ok(self.locks.try_acquire(Resource::Table(id), Mode::Shared)?
            && self.locks.try_acquire(Resource::Key(id, key.into()), mode)?)
    }

    fn lock_within(
        &self,
        table: &Entry,
        resource: Resource,
        mode: Mode,
        timeout: Option<Duration>,
    ) -> Result<()> {
        let acquire = || self.locks.acquire(resource, mode).map(drop);
        let acquired = match timeout {
            None => acquire(),
            Some(timeout) => interrupt::limited(Some(Instant::now() + timeout), acquire),
        };
        let name = &table.name;
        acquired.map_err(|error| match (error, timeout) {
            (Error::Conflict { kind: Conflict::Deadlock, .. }, _) => Error::conflict(
                Conflict::Deadlock,
                format!(
                    "a deadlock: this transaction waits for a row of \"{name}\" that another one has written, which waits for \
                     one that this one has written; run the transaction again"
                ),
            ),
            (Error::TimedOut, Some(timeout)) if !interrupt::ends_call() => Error::conflict(
                Conflict::Locked,
                format!(
                    "another transaction has been writing a row of \"{name}\" for longer than lock_timeout allows, {timeout:?}; \
                     run the statement again"
                ),
            ),
            (error, _) => error,
        })
    }

    /// Whether the rows that a statement changes are as it has read them, and those that it could still change were the same.
    pub(crate) fn is_current(&self, staging: &Staging<'_>) -> Result<bool> {
        // The waterline may have risen before the statement began to read.
        let changes = staging.deletions.rows() > 0;
        if changes && self.writer().bounds(staging.table.as_table()?.id) != staging.bounds {
            return Ok(false);
        }
        Ok(self.are_current(staging.table, &staging.keys)? && self.are_values_current(staging)?)
    }

    /// Whether others have inserted rows with the same values in columns that are UNIQUE since the version that it reads.
    fn are_values_current(&self, staging: &Staging<'_>) -> Result<bool> {
        let version = self.version.lock();
        let Some(version) = version.as_ref().filter(|_| !staging.values.is_empty()) else {
            return Ok(true);
        };
        let sequencer = &self.instance.reader.sequencer;
        if staging.table.is_staged || sequencer.last() == version.epoch() {
            return Ok(true);
        }
        let written = sequencer.writes_after(staging.table.as_table()?.id, version.epoch());
        let WritesAfter::Known(epochs) = written else { return Ok(false) };
        for ((_, columns), values) in staging.table.uniques().zip(&staging.values) {
            let ranges = values.ranges();
            for epoch in &epochs {
                if epoch.inserts(columns, &ranges)? {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// Whether the rows of a table that have these keys are as the transaction has read them.
    pub(crate) fn are_current(&self, table: &Entry, keys: &WrittenKeys) -> Result<bool> {
        let version = self.version.lock();
        let Some(version) = version.as_ref().filter(|_| !table.is_staged) else {
            return Ok(true);
        };
        if !table.is_there_as_of(version.epoch()) {
            return Ok(false);
        }
        let sequencer = &self.instance.reader.sequencer;
        if sequencer.last() == version.epoch() {
            return Ok(true);
        }
        let written = sequencer.writes_after(table.as_table()?.id, version.epoch());
        let WritesAfter::Known(epochs) = written else {
            // Rows that it inserts into a table without a key depend on nothing there.
            return Ok(matches!(keys, WrittenKeys::Keys(keys) if keys.is_empty()));
        };
        if epochs.is_empty() {
            return Ok(true);
        }
        let Some(key) = table.key_columns()? else {
            return Ok(matches!(keys, WrittenKeys::Keys(keys) if keys.is_empty()));
        };
        let ranges = keys.ranges();
        for epoch in epochs {
            if epoch.touches(key, &ranges)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Moves to the last version, and forgets the reads of the statement. Fails if earlier reads differ there.
    pub(crate) fn go_on(&self, before: &ReadBefore) -> Result<()> {
        self.forget_reads(before);
        let reader = &self.instance.reader;
        let mut version = self.version.lock();
        let next = ReadVersion::last(reader, (&[], &[]), Durable::No)?;
        match next {
            Some((next, _)) if version.is_some() => self.move_to(&mut version, next),
            _ => Ok(()),
        }
    }
}
