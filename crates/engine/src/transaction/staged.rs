//! Changes to one table that wait for their transaction to commit.

use std::sync::Arc;

use alluvium_sql::planner::Checks;
use alluvium_trace::memory::{MemoryBudget, StateContext};
use arrow::array::{ArrayRef, RecordBatch};

use super::check::check;
use super::conditions;
use super::written::{Writes, WrittenKeys};
use crate::catalog::Entry;
use crate::changes::TableChange;
use crate::changes::late::Bounds;
use crate::changes::rows::Rows;
use crate::error::{Error, Result};
use crate::fault::{Fault, armed};

/// Changes in the order they were made, in memory until they take too much of it.
pub(crate) struct Staged {
    changes: Vec<TableChange>,
    /// How many of the changes, from the first on, are in files.
    in_files: usize,
    /// How much memory the others take.
    bytes: usize,
    /// The bounds for rows in time when a statement first changed some, if one has.
    in_time: Option<Option<Bounds>>,
    /// The number of their rows.
    rows: u64,
    context: StateContext,
}

impl Staged {
    pub(super) fn new(context: &StateContext) -> Self {
        let context = context.clone();
        Self { changes: Vec::new(), in_files: 0, bytes: 0, in_time: None, rows: 0, context }
    }

    /// Adds a change; on an error nothing is added.
    pub(super) fn push(&mut self, mut change: TableChange) -> Result<()> {
        if change.len() == 0 {
            return Ok(());
        }
        let bytes = change.count(self.context.budget());
        self.add(|staged| {
            staged.bytes += bytes;
            staged.rows += change.len() as u64;
            staged.changes.push(change);
        })
    }

    /// Adds changes that are staged elsewhere, in this order; on an error none of them.
    pub(super) fn append(&mut self, others: [Self; 2]) -> Result<()> {
        self.add(|staged| {
            for mut other in others {
                if staged.in_files == staged.changes.len() {
                    staged.in_files += other.in_files;
                }
                staged.bytes += other.bytes;
                staged.rows += other.rows;
                staged.changes.append(&mut other.changes);
            }
        })
    }

    /// Lets `add` add changes at the end, and removes them again if they cannot be spilled.
    fn add(&mut self, add: impl FnOnce(&mut Self)) -> Result<()> {
        let (changes, in_files) = (self.changes.len(), self.in_files);
        let (bytes, rows) = (self.bytes, self.rows);
        add(self);
        let spilled = self.spill();
        if spilled.is_err() {
            self.changes.truncate(changes);
            (self.in_files, self.bytes, self.rows) = (in_files, bytes, rows);
        }
        spilled
    }

    /// Notes the bounds for rows when a statement changes some.
    pub(super) fn note_bounds(&mut self, bounds: Option<Bounds>) {
        self.in_time.get_or_insert(bounds);
    }

    /// The bounds for rows in time when a statement first changed some; `None` if no statement has.
    pub(super) fn in_time(&self) -> Option<Option<Bounds>> {
        self.in_time.clone()
    }

    pub(super) fn changes(&self) -> &[TableChange] {
        &self.changes
    }

    /// Whether none of the changes is in a file.
    pub(super) fn is_in_memory(&self) -> bool {
        self.in_files == 0
    }

    /// The changes as they are committed: numbered, and in batches of a good size.
    pub(super) fn into_changes(self, budget: &MemoryBudget) -> Result<Vec<TableChange>> {
        TableChange::coalesce(self.changes, budget)
    }

    /// The number of rows.
    pub(super) fn rows(&self) -> u64 {
        self.rows
    }

    /// Removes all changes after the first `rows` rows, with which a change ends. Changes that went to a file since they were
    /// counted are there in parts, of which none is of two changes.
    pub(super) fn truncate(&mut self, rows: u64) {
        while self.rows > rows
            && let Some(change) = self.changes.pop()
        {
            self.rows -= change.len() as u64;
            if self.changes.len() >= self.in_files {
                self.bytes = self.bytes.saturating_sub(change.rows().bytes());
            }
        }
        self.in_files = self.in_files.min(self.changes.len());
    }

    /// Moves the changes in memory to a file if they take too much; on an error all stay where they are.
    fn spill(&mut self) -> Result<()> {
        let (budget, disk_full) = (self.context.budget(), self.context.disk_full());
        let Some(storage) = self.context.storage() else {
            return Ok(());
        };
        if !budget.is_large_buffer(self.bytes) || self.bytes < budget.policy().smallest_file {
            return Ok(());
        }
        let late = &self.changes[self.in_files..];
        let rows = late.iter().map(|change| change.rows().clone()).collect();
        let written = Rows::write(rows, storage, disk_full, budget)?;
        let late = self.changes.split_off(self.in_files);
        for (change, parts) in late.iter().zip(written) {
            self.changes.extend(parts.into_iter().map(|rows| change.with_rows(rows)));
        }
        (self.in_files, self.bytes) = (self.changes.len(), 0);
        Ok(())
    }
}

/// The changes of one statement to a table. None of them is part of the transaction until all are.
pub(crate) struct Staging<'a> {
    pub(super) table: &'a Entry,
    pub(super) deletions: Staged,
    pub(super) insertions: Staged,
    /// The bounds for rows that the table takes now.
    pub(super) bounds: Option<Bounds>,
    /// The keys of all of these rows.
    pub(super) keys: WrittenKeys,
    /// The values of all of these rows in the columns of each UNIQUE constraint of the table, which are not NULL.
    pub(super) values: Vec<WrittenKeys>,
    /// The conditions that inserted rows must meet, if there are any.
    checks: Option<Arc<Checks>>,
    /// Whether the keys of inserted rows must not be taken; else rows replace those that have their keys.
    pub(super) keys_are_new: bool,
}

impl<'a> Staging<'a> {
    /// Of all rows of a new table, which no transaction makes.
    pub(crate) fn of_new(
        table: &'a Entry,
        checks: Option<Arc<Checks>>,
        context: &StateContext,
    ) -> Self {
        Self { values: Vec::new(), ..Self::new(table, None, checks, context) }
    }

    /// The insertions as they are committed.
    pub(crate) fn into_insertions(self, budget: &MemoryBudget) -> Result<Vec<TableChange>> {
        self.insertions.into_changes(budget)
    }

    pub(super) fn new(
        table: &'a Entry,
        bounds: Option<Bounds>,
        checks: Option<Arc<Checks>>,
        context: &StateContext,
    ) -> Self {
        let (deletions, insertions) = (Staged::new(context), Staged::new(context));
        Self {
            table,
            deletions,
            insertions,
            bounds,
            keys: WrittenKeys::default(),
            values: table.uniques().map(|_| WrittenKeys::default()).collect(),
            checks,
            keys_are_new: !table.replaces(),
        }
    }

    /// From now on rows replace those that have their keys, whatever the table says.
    pub(crate) fn replace(&mut self) {
        self.keys_are_new = false;
    }

    /// Fails if one of these rows comes too late: a statement that changes rows which are there must not do a part of that.
    pub(crate) fn check_late(&self, columns: &[ArrayRef]) -> Result<()> {
        let Some(bounds) = &self.bounds else { return Ok(()) };
        if armed(Fault::SiftChanges) {
            return Ok(());
        }
        let Some(late) = bounds.late(columns)? else { return Ok(()) };
        let row = late.values().set_indices().next().unwrap_or_default();
        let reason = bounds.reason(&self.table.schema, columns, row);
        Err(Error::data(format!(
            "rows of \"{}\" behind the waterline can no longer change: {reason}",
            self.table.name
        )))
    }

    /// The rows as the table takes them, or why it does not.
    pub(crate) fn checked(&self, columns: &[ArrayRef]) -> Result<RecordBatch> {
        check(self.table, columns)
    }

    /// Deletes rows; deletions come before all insertions of the statement. Returns the rows.
    pub(crate) fn delete(&mut self, columns: &[ArrayRef]) -> Result<RecordBatch> {
        self.check_late(columns)?;
        let rows = check(self.table, columns)?;
        let key = self.table.key_columns()?.map(|key| &**key);
        self.keys.add(key, rows.columns(), |writes| writes.deletes = true)?;
        self.note_values(&rows, |writes| writes.deletes = true)?;
        self.deletions.push(TableChange::deletions(rows.clone()))?;
        Ok(rows)
    }

    /// Inserts rows. Returns them as the table takes them.
    pub(crate) fn insert(&mut self, columns: &[ArrayRef]) -> Result<RecordBatch> {
        let rows = check(self.table, columns)?;
        if let Some(checks) = &self.checks {
            conditions::meet(checks, &self.table.name, &rows)?;
        }
        // Rows without a key conflict with no others.
        if let Some(key) = self.table.key_columns()? {
            self.keys.add(Some(key), rows.columns(), |writes| writes.inserts += 1)?;
        }
        self.note_values(&rows, |writes| writes.inserts += 1)?;
        self.insertions.push(TableChange::insertions(rows.clone()))?;
        Ok(rows)
    }

    /// Whether it only inserts rows, which take the places of no others.
    pub(super) fn is_new(&self) -> bool {
        let has_key = self.table.key_columns().is_ok_and(|key| key.is_some());
        self.deletions.rows() == 0 && (self.keys_are_new || !has_key)
    }

    fn note_values(&mut self, rows: &RecordBatch, mut note: impl FnMut(&mut Writes)) -> Result<()> {
        for ((_, columns), values) in self.table.uniques().zip(&mut self.values) {
            let known = columns.without_nulls(rows)?;
            values.add(Some(columns), known.columns(), &mut note)?;
        }
        Ok(())
    }

    /// How many rows are deleted and inserted.
    pub(crate) fn rows(&self) -> u64 {
        self.deletions.rows() + self.insertions.rows()
    }
}
