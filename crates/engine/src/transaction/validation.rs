//! Validation: whether the reads of a transaction still hold.
//!
//! The writes of later epochs to a table are compared with the keys that were read of it. A view whose tables have been written is
//! read once more, and compared: outside of the write lock as of the last epoch, and under it, for [`MOST_WAIT`] at most, if there
//! were commits meanwhile.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use alluvium_dataflow::state::key_ranges::KeyRanges;
use alluvium_dataflow::state::snapshot::Snapshot;
use alluvium_sql::planner::CLOCK;
use alluvium_trace::Epoch;
use arrow::array::RecordBatch;

use super::reads::{Read, Reads};
use super::version::{ReadVersion, snapshots};
use crate::catalog::{Entries, Entry};
use crate::changes::TableChange;
use crate::changes::late::Bounds;
use crate::error::{Conflict, Error, Result};
use crate::fault::{Fault, armed};
use crate::interrupt;
use crate::query::Reader;
use crate::sequencer::WritesAfter;
use crate::worker::{DataflowId, Durable};

/// For how long others wait at most until a view that was read is compared.
const MOST_WAIT: Duration = Duration::from_millis(50);

/// A transaction that is validated.
pub(super) struct Validation<'a> {
    reader: &'a Reader,
    version: &'a ReadVersion,
    reads: Vec<(DataflowId, Read)>,
    /// Its reads are the same as of this epoch.
    upto: Epoch,
}

impl<'a> Validation<'a> {
    /// Compares the reads as of a version with the last epoch. Others may commit meanwhile.
    pub(super) fn begin(
        reader: &'a Reader,
        version: &'a ReadVersion,
        reads: &Reads,
    ) -> Result<Self> {
        let reads = reads.all();
        let mut validation = Self { reader, version, reads, upto: version.epoch() };
        let last = reader.last();
        if last > validation.upto {
            validation.compare()?;
            validation.upto = last;
        }
        Ok(validation)
    }

    /// Compares it with the commits since. The caller holds the write lock.
    pub(super) fn finish(self) -> Result<()> {
        for (id, read) in &self.reads {
            check_there(self.reader, *id, &read.name)?;
        }
        if self.reader.last() == self.upto || armed(Fault::SkipLastCommits) {
            return Ok(());
        }
        interrupt::limited(Some(Instant::now() + MOST_WAIT), || self.compare()).map_err(|error| {
            match error {
                Error::TimedOut if !interrupt::ends_call() => Error::conflict(
                    Conflict::Serialization,
                    "whether what the transaction has read still holds could not be told in time, because others commit all the \
                     time to what its views read; run the transaction again",
                ),
                error => error,
            }
        })
    }

    /// Fails if something that was read is another one as of the last epoch than as of `upto`.
    fn compare(&self) -> Result<()> {
        if armed(Fault::SkipValidation) {
            return Ok(());
        }
        let entries = self.reader.catalog.entries();
        for (id, read) in &self.reads {
            let entry = check_there(self.reader, *id, &read.name)?;
            let is_changed = match entry.is_table() {
                true => self.is_written(*id, &entry, read)?,
                false if armed(Fault::SkipViews) => false,
                false => self.may_have_changed(&entry, &entries)? && !self.is_same(*id, read)?,
            };
            if is_changed {
                return Err(Error::conflict(
                    Conflict::Serialization,
                    format!(
                        "what the transaction has read of \"{}\" has been changed by another one; run the transaction again",
                        read.name
                    ),
                ));
            }
        }
        Ok(())
    }

    /// Whether rows of a table have been written.
    fn is_written(&self, id: DataflowId, entry: &Entry, read: &Read) -> Result<bool> {
        let writes = self.reader.sequencer.writes_after(id, self.upto);
        let WritesAfter::Known(epochs) = writes else { return Ok(true) };
        if epochs.is_empty() || read.is_all {
            return Ok(!epochs.is_empty());
        }
        let key = entry.key_columns()?;
        let uniques: Vec<_> = entry.uniques().map(|(_, values)| values).collect();
        for epoch in epochs {
            for ranges in &read.ranges {
                if key.map_or(Ok(true), |key| epoch.touches(key, ranges))? {
                    return Ok(true);
                }
            }
            for (unique, ranges) in &read.values {
                let values = uniques.get(*unique);
                if values.map_or(Ok(true), |values| epoch.inserts(values, ranges))? {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// Whether a table that a view reads, itself or through others, has been written.
    fn may_have_changed(&self, view: &Entry, entries: &Entries) -> Result<bool> {
        let (mut seen, mut waiting) = (BTreeSet::new(), vec![view]);
        while let Some(entry) = waiting.pop() {
            if let Ok(table) = entry.as_table()
                && !self.reader.sequencer.writes_after(table.id, self.upto).is_empty()
            {
                return Ok(true);
            }
            let mut reads_clock = false;
            if let Ok(view) = entry.as_view() {
                view.plan.visit_relations(&mut |name| reads_clock |= name == CLOCK);
            }
            if reads_clock {
                return Ok(true);
            }
            for name in &entry.depends {
                if seen.insert(name.as_str())
                    && let Some(entry) = entries.get(name)
                {
                    waiting.push(entry);
                }
            }
        }
        Ok(false)
    }

    /// Whether rows of a view are the same as of the last epoch.
    fn is_same(&self, id: DataflowId, read: &Read) -> Result<bool> {
        let Some(before) = self.version.pinned(id) else { return Ok(false) };
        let at_least = (self.reader.last(), Durable::No);
        let progress = &self.reader.progress;
        let now = progress.pin_and_hold(&[id], &[], at_least, Duration::ZERO)?;
        let Some((held, parts)) = now else { return Ok(false) };
        let after = parts.first().map_or(&[][..], Vec::as_slice);
        let (before, after) = (snapshots(before), snapshots(after));
        let (from, to) = ((&*before, self.version.epoch()), (&*after, held.epoch));
        Ok(match read.is_all {
            true => are_same(from, to, &KeyRanges::all()),
            false => read.ranges.iter().all(|ranges| are_same(from, to, ranges)),
        })
    }
}

/// Whether two versions of a relation have the same rows in ranges of keys.
fn are_same(one: (&[Snapshot], Epoch), other: (&[Snapshot], Epoch), ranges: &KeyRanges) -> bool {
    let rows = |(snapshots, epoch): (&[Snapshot], Epoch)| {
        let columns = snapshots.first().map_or(0, |first| first.schema().fields().len());
        let columns: Vec<usize> = (0..columns).collect();
        let batches = Snapshot::read_ranges(snapshots, epoch, &columns, ranges);
        let rows = |batch: RecordBatch| (0..batch.num_rows()).map(move |row| batch.slice(row, 1));
        batches.into_iter().flatten().flat_map(rows)
    };
    // Both come by key, and by value.
    rows(one).eq(rows(other))
}

/// Fails if a row that a statement has changed was in time then, within `before`, and is late by now: a statement is done as a whole.
pub(super) fn check_in_time(
    table: &str,
    changes: &[TableChange],
    before: Option<Bounds>,
    now: Option<Bounds>,
) -> Result<()> {
    let Some(now) = now.filter(|now| before.as_ref() != Some(now)) else { return Ok(()) };
    for change in changes {
        let (mut rows, _) = change.load()?;
        if let Some(before) = &before {
            rows = before.in_time(rows)?;
        }
        if now.late(rows.columns())?.is_some_and(|late| late.true_count() > 0) {
            return Err(Error::conflict(
                Conflict::Serialization,
                format!(
                    "a row of \"{table}\" that the transaction has written comes too late by now, because others have raised the \
                     waterline; run the transaction again"
                ),
            ));
        }
    }
    Ok(())
}

/// The entry of a relation whose dataflow this is. Fails if it has been dropped or altered.
pub(super) fn check_there(reader: &Reader, id: DataflowId, name: &str) -> Result<Arc<Entry>> {
    // A transaction that has renamed it may know it by that name.
    let entry = reader.catalog.get(name).ok().filter(|entry| entry.dataflow() == Some(id));
    entry.or_else(|| reader.catalog.of_dataflow(id)).ok_or_else(|| Error::replaced(name))
}
