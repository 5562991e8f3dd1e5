//! Rows that programs insert.

use arrow::array::{ArrayRef, RecordBatch};

use super::check::check;
use super::{Transaction, conditions};
use crate::catalog::Entry;
use crate::changes::TableChange;
use crate::error::Result;

impl Transaction {
    /// Inserts rows into a table. In a table with a primary key no two rows may have the same key, as with SQL's `INSERT`: that is
    /// checked when the transaction commits. A table `WITH ('on_conflict' = 'replace')` takes them as [`Transaction::upsert`] does.
    ///
    /// The columns are taken in the table's order, whatever their names are; their types must be the
    /// table's, and each row has to meet its `CHECK`s. On an error nothing of the rows is inserted, and the transaction stays open.
    ///
    /// # Errors of the commit
    ///
    /// If a key is taken, by a row that is there or that the transaction has inserted before and not deleted since, the commit fails
    /// with [`Error::Data`](crate::Error::Data), SQLSTATE 23505, and names the key; nothing of the transaction is committed. If another
    /// transaction writes one of the keys just then, it fails with [`Error::Conflict`](crate::Error::Conflict), SQLSTATE 40001: run the
    /// transaction again. Beyond 10,000 rows that holds for all keys of the table.
    pub fn insert(&mut self, table: &str, rows: RecordBatch) -> Result<()> {
        let entry = self.writer().table(table)?;
        self.stage_insertions(&entry, rows.columns())
    }

    /// Inserts rows of which only these columns are given, in this order. All others get their DEFAULT, or
    /// NULL; a `DEFAULT NOW()` is the transaction's time.
    ///
    /// Else as [`Transaction::insert`].
    pub fn insert_columns(
        &mut self,
        table: &str,
        columns: &[&str],
        rows: RecordBatch,
    ) -> Result<()> {
        let entry = self.writer().table(table)?;
        let columns = self.writer().defaults(&entry, self.time).complete(columns, &rows, &[])?;
        self.stage_insertions(&entry, &columns)
    }

    /// Inserts rows into a table; in a table with a primary key each takes the place of the row with its key, if there is one, as
    /// with SQL's `INSERT OR REPLACE`. Of rows with the same key the last one counts.
    ///
    /// It depends on nothing that is there: a transaction that only upserts and deletes never conflicts with others. A table without
    /// a primary key takes the rows as [`Transaction::insert`] does, whose columns these are as well.
    pub fn upsert(&mut self, table: &str, rows: RecordBatch) -> Result<()> {
        let entry = self.writer().table(table)?;
        self.stage_upserts(&entry, rows.columns())
    }

    /// Inserts or replaces rows of which only these columns are given, as [`Transaction::insert_columns`] completes them: a row that
    /// takes the place of another keeps none of its values.
    ///
    /// Else as [`Transaction::upsert`].
    pub fn upsert_columns(
        &mut self,
        table: &str,
        columns: &[&str],
        rows: RecordBatch,
    ) -> Result<()> {
        let entry = self.writer().table(table)?;
        let columns = self.writer().defaults(&entry, self.time).complete(columns, &rows, &[])?;
        self.stage_upserts(&entry, &columns)
    }

    fn stage_insertions(&mut self, table: &Entry, columns: &[ArrayRef]) -> Result<()> {
        let mut change = TableChange::insertions(self.meeting(table, columns)?);
        if table.key_columns()?.is_some() && !table.replaces() {
            change = change.of_new_keys();
        }
        self.note_inserted(table)?;
        self.stage(table, change)
    }

    fn stage_upserts(&mut self, table: &Entry, columns: &[ArrayRef]) -> Result<()> {
        self.note_inserted(table)?;
        self.stage(table, TableChange::insertions(self.meeting(table, columns)?))
    }

    /// Notes that rows are inserted into a table, if some of its columns are UNIQUE.
    fn note_inserted(&mut self, table: &Entry) -> Result<()> {
        if table.uniques().next().is_some() {
            self.inserted.insert(table.as_table()?.id);
        }
        Ok(())
    }

    /// The rows of these columns, which meet the conditions of the table.
    fn meeting(&self, table: &Entry, columns: &[ArrayRef]) -> Result<RecordBatch> {
        let rows = check(table, columns)?;
        if let Some(checks) = table.checks(&self.instance.definitions.planner)? {
            conditions::meet(checks, &table.name, &rows)?;
        }
        Ok(rows)
    }
}
