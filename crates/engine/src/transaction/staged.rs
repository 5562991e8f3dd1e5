//! Writes to one table that wait for their transaction to commit.

use alluvium_trace::memory::StateContext;
use arrow::array::RecordBatch;

use super::fit;
use super::rows::Rows;
use super::write::{Direction, Write};
use crate::catalog::Entry;
use crate::error::Result;

/// Writes in the order they were made, in memory until they are too many for it.
pub(crate) struct Staged {
    writes: Vec<Write>,
    /// How many of the writes, from the first on, are in files.
    in_files: usize,
    /// How much memory the others take.
    bytes: usize,
    context: StateContext,
}

impl Staged {
    pub(super) fn new(context: &StateContext) -> Self {
        let context = context.clone();
        Self { writes: Vec::new(), in_files: 0, bytes: 0, context }
    }

    /// Adds a write; on an error nothing of it.
    pub(super) fn push(&mut self, mut write: Write) -> Result<()> {
        if write.rows.len() == 0 {
            return Ok(());
        }
        let bytes = write.rows.count(self.context.budget());
        self.add(|staged| {
            staged.bytes += bytes;
            staged.writes.push(write);
        })
    }

    /// Adds what is staged elsewhere, in this order; on an error nothing of it.
    pub(super) fn append(&mut self, others: [Self; 2]) -> Result<()> {
        self.add(|staged| {
            for mut other in others {
                if staged.in_files == staged.writes.len() {
                    staged.in_files += other.in_files;
                }
                staged.bytes += other.bytes;
                staged.writes.append(&mut other.writes);
            }
        })
    }

    /// Lets `add` add writes at the end, and takes them back if there is no place for them.
    fn add(&mut self, add: impl FnOnce(&mut Self)) -> Result<()> {
        let (writes, in_files, bytes) = (self.writes.len(), self.in_files, self.bytes);
        add(self);
        let relieved = self.relieve();
        if relieved.is_err() {
            self.writes.truncate(writes);
            (self.in_files, self.bytes) = (in_files, bytes);
        }
        relieved
    }

    pub(super) fn writes(&self) -> &[Write] {
        &self.writes
    }

    pub(super) fn into_writes(self) -> Vec<Write> {
        self.writes
    }

    /// The number of rows.
    fn rows(&self) -> u64 {
        self.writes.iter().map(|write| write.rows.len() as u64).sum()
    }

    /// Moves what is in memory to a file if it takes too much; on an error all stays where it is.
    fn relieve(&mut self) -> Result<()> {
        let (budget, disk_full) = (self.context.budget(), self.context.disk_full());
        let Some(storage) = self.context.storage() else {
            return Ok(());
        };
        if !budget.is_large_buffer(self.bytes) || self.bytes < budget.policy().smallest_file {
            return Ok(());
        }
        let late = &self.writes[self.in_files..];
        let directions: Vec<Direction> = late.iter().map(|write| write.direction).collect();
        let rows = late.iter().map(|write| write.rows.clone()).collect();
        let written = Rows::write(rows, storage, disk_full, budget)?;
        self.writes.truncate(self.in_files);
        for (parts, direction) in written.into_iter().zip(directions) {
            self.writes.extend(parts.into_iter().map(|rows| Write { rows, direction }));
        }
        (self.in_files, self.bytes) = (self.writes.len(), 0);
        Ok(())
    }
}

/// What one statement does to a table; nothing of it is part of a transaction until all is.
pub(crate) struct Staging<'a> {
    pub(super) table: &'a Entry,
    pub(super) leaving: Staged,
    pub(super) entering: Staged,
}

impl<'a> Staging<'a> {
    pub(super) fn new(table: &'a Entry, context: &StateContext) -> Self {
        let (leaving, entering) = (Staged::new(context), Staged::new(context));
        Self { table, leaving, entering }
    }

    /// Rows leave the table, before any enter.
    pub(crate) fn leave(&mut self, rows: &RecordBatch) -> Result<()> {
        self.leaving.push(Write::leave(fit::fit(self.table, rows.columns())?))
    }

    /// Rows enter the table.
    pub(crate) fn enter(&mut self, rows: &RecordBatch) -> Result<()> {
        self.entering.push(Write::enter(fit::fit(self.table, rows.columns())?))
    }

    /// How many rows enter or leave.
    pub(crate) fn rows(&self) -> u64 {
        self.leaving.rows() + self.entering.rows()
    }
}
