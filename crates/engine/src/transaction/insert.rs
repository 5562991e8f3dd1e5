//! Rows that programs and connectors insert.

use std::collections::HashMap;

use arrow::array::{Array, ArrayRef, BooleanArray, RecordBatch, make_array};
use arrow::buffer::ScalarBuffer;
use arrow::compute::{and, filter, not};

use super::check::check;
use super::key::KeyColumns;
use super::{Transaction, conditions};
use crate::catalog::Entry;
use crate::changes::TableChange;
use crate::error::Result;
use crate::source::Portion;
use crate::writer::column_names;

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

    /// Inserts or replaces rows of a source, with the columns it has, and deletes others. They need not meet the conditions of the
    /// table.
    pub(crate) fn insert_portion(&mut self, table: &str, portion: &Portion) -> Result<()> {
        let entry = self.writer().table(table)?;
        let Portion { rows, absent, deleted, .. } = portion;
        let defaults = self.writer().defaults(&entry, self.time);
        let columns = defaults.complete(&column_names(rows), rows, absent)?;
        match deleted {
            Some(deleted) if deleted.true_count() > 0 => {
                self.stage_changes(&entry, columns, deleted)
            }
            _ => {
                let rows = check(&entry, &columns)?;
                self.stage(&entry, TableChange::insertions(rows))
            }
        }
    }

    /// Deletes the rows of these columns that are marked, and inserts or replaces the others.
    fn stage_changes(
        &mut self,
        entry: &Entry,
        columns: Vec<ArrayRef>,
        deleted: &BooleanArray,
    ) -> Result<()> {
        let table = entry.as_table()?;
        if table.check_unchecked(&entry.name).is_ok() {
            let weight = |row| if deleted.value(row) { -1 } else { 1 };
            let weights = (0..deleted.len()).map(weight).collect::<ScalarBuffer<i64>>();
            let rows = check(entry, &columns)?;
            return self.stage(entry, TableChange::weighted(&rows, weights)?);
        }
        table.check_delete(&entry.name)?;
        let (mut deletions, mut insertions) = (deleted.clone(), not(deleted)?);
        let key = entry.key_columns()?;
        if let Some(key) = key {
            let last = last_of_keys(key, &columns)?;
            (deletions, insertions) = (and(&deletions, &last)?, and(&insertions, &last)?);
        }
        let rows_of = |marked: &BooleanArray| {
            let columns = columns.iter().map(|column| filter(column, marked));
            columns.collect::<std::result::Result<Vec<_>, _>>()
        };
        let mut deletions = rows_of(&deletions)?;
        if let Some(key) = key {
            for (number, column) in deletions.iter_mut().enumerate() {
                if !key.columns().contains(&number) && !entry.schema.field(number).is_nullable() {
                    *column = without_nulls(column)?;
                }
            }
        }
        let deletions = check(entry, &deletions)?;
        let insertions = check(entry, &rows_of(&insertions)?)?;
        self.stage(entry, TableChange::deletions(deletions))?;
        self.stage(entry, TableChange::insertions(insertions))
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

/// For each row whether no later one has its key.
fn last_of_keys(key: &KeyColumns, columns: &[ArrayRef]) -> Result<BooleanArray> {
    let keys = key.of(columns)?;
    let mut last = HashMap::with_capacity(keys.num_rows());
    for (row, key) in keys.iter().enumerate() {
        last.insert(key, row);
    }
    let is_last = keys.iter().enumerate().map(|(row, key)| Some(last.get(&key) == Some(&row)));
    Ok(is_last.collect())
}

/// The same values, with any other one in place of NULL.
fn without_nulls(column: &ArrayRef) -> Result<ArrayRef> {
    match column.null_count() {
        0 => Ok(column.clone()),
        _ => Ok(make_array(column.to_data().into_builder().nulls(None).build()?)),
    }
}
