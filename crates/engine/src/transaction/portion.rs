//! Portions of sources: rows that connectors insert and delete, and tables that they empty.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, BooleanBufferBuilder, RecordBatch, make_array,
};
use arrow::buffer::ScalarBuffer;
use arrow::compute::{and, filter, filter_record_batch, interleave, not};
use datafusion::scalar::ScalarValue;

use super::Transaction;
use super::check::check;
use super::key::KeyColumns;
use crate::catalog::{Entries, Entry};
use crate::changes::TableChange;
use crate::error::{Error, Result};
use crate::name;
use crate::query::{Files, Reading};
use crate::source::{Absent, Portion, Refusal};
use crate::worker::Durable;
use crate::writer::column_names;

impl Transaction {
    /// Deletes all rows of a table, as the transaction sees them.
    pub(crate) fn clear(&mut self, table: &str) -> Result<()> {
        let entries = self.entries();
        let entry = entry(&entries, table)?;
        entry.as_table()?.check_delete(&entry.name)?;
        let mut staging = self.begin_staging(entry)?;
        let sql = format!("SELECT * FROM {}", name::written(table));
        self.read(&entries, &sql, &[], &mut |rows| staging.delete(rows.columns()).map(drop))?;
        self.finish_staging(staging).map(drop)
    }

    /// The portion with the values that its rows keep. A row that is not there to keep one of is refused.
    pub(crate) fn with_kept<'a>(
        &self,
        table: &str,
        portion: &'a Portion,
    ) -> Result<Cow<'a, Portion>> {
        if portion.kept.is_empty() {
            return Ok(Cow::Borrowed(portion));
        }
        let entries = self.entries();
        let entry = entry(&entries, table)?;
        let mut portion = portion.clone();
        let (kept, count) = (std::mem::take(&mut portion.kept), portion.rows.num_rows());
        let keeps = |row: &usize| kept.iter().any(|kept| kept.rows.value(*row));
        let rows: Vec<usize> = (0..count).filter(keeps).collect();
        // The rows that are there, and which of them each row keeps values of.
        let mut found: Vec<RecordBatch> = Vec::new();
        let mut places: HashMap<usize, usize> = HashMap::new();
        let mut stays = BooleanBufferBuilder::new(count);
        stays.append_n(count, true);
        for row in rows {
            match self.row_with_key(&entries, entry, &portion.rows, row)? {
                Some(there) => {
                    places.insert(row, found.len());
                    found.push(there);
                }
                None => stays.set_bit(row, false),
            }
        }
        let mut columns = portion.rows.columns().to_vec();
        for Absent { column, rows } in &kept {
            let name = portion.rows.schema_ref().field(*column).name().clone();
            let there = found.iter().map(|row| row.column_by_name(&name).map(|values| &**values));
            let there = there.collect::<Option<Vec<_>>>();
            let there = there.ok_or_else(|| Error::source(format!("no column \"{name}\"")))?;
            let given = columns[*column].clone();
            let mut sources: Vec<&dyn Array> = vec![&given];
            sources.extend(there);
            let source = |row: usize| match places.get(&row).filter(|_| rows.value(row)) {
                Some(place) => (place + 1, 0),
                None => (0, row),
            };
            let sources_of_rows: Vec<_> = (0..count).map(source).collect();
            columns[*column] = interleave(&sources, &sources_of_rows)?;
        }
        portion.rows = RecordBatch::try_new(portion.rows.schema(), columns)?;
        let stays = BooleanArray::new(stays.finish(), None);
        if stays.false_count() > 0 {
            let keep =
                |rows: &BooleanArray| filter(rows, &stays).map(|kept| kept.as_boolean().clone());
            portion.rows = filter_record_batch(&portion.rows, &stays)?;
            for absent in &mut portion.absent {
                absent.rows = keep(&absent.rows)?;
            }
            portion.deleted = portion.deleted.as_ref().map(keep).transpose()?;
            let message = "it keeps values of the row with its key, and there is none";
            let refusals = (0..stays.false_count()).map(|_| Refusal::new(table, 0, message));
            portion.refused.extend(refusals);
        }
        Ok(Cow::Owned(portion))
    }

    /// The row of a table that has the primary key of one of these rows.
    fn row_with_key(
        &self,
        entries: &Arc<Entries>,
        entry: &Entry,
        rows: &RecordBatch,
        row: usize,
    ) -> Result<Option<RecordBatch>> {
        let mut conditions = Vec::new();
        let mut values = Vec::new();
        for &column in &entry.as_table()?.primary_key {
            let name = entry.schema.field(column).name();
            let given = rows.column_by_name(name).ok_or_else(|| {
                Error::source(format!(
                    "a row that keeps values has no column \"{name}\" of its key"
                ))
            })?;
            values.push(ScalarValue::try_from_array(given, row)?);
            conditions.push(format!("{} = ${}", name::written(name), values.len()));
        }
        if conditions.is_empty() {
            return Err(Error::source("rows of a table without a PRIMARY KEY keep no values"));
        }
        let (table, conditions) = (name::written(&entry.name), conditions.join(" AND "));
        let sql = format!("SELECT * FROM {table} WHERE {conditions}");
        let mut found = None;
        self.read(entries, &sql, &values, &mut |rows| {
            if rows.num_rows() > 0 {
                found = Some(rows.slice(0, 1));
            }
            Ok(())
        })?;
        Ok(found)
    }

    /// Reads rows as the transaction sees them, without depending on them.
    fn read(
        &self,
        entries: &Arc<Entries>,
        sql: &str,
        values: &[ScalarValue],
        take: &mut dyn FnMut(RecordBatch) -> Result<()>,
    ) -> Result<()> {
        let reader = &self.instance.reader;
        let (files, at_least) = (Files::new(), reader.last());
        let reading = Reading {
            entries,
            files: &files,
            at_least,
            transaction: Some(self),
            durable: Durable::No,
            counts: false,
            rights: None,
            taker: None,
            waited: None,
        };
        let plan = reader.plan_of(sql, entries)?;
        reader.evaluate_each(reader.plan_once(plan, values)?, reading, take)
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
}

fn entry<'a>(entries: &'a Entries, table: &str) -> Result<&'a Arc<Entry>> {
    entries.get(table).ok_or_else(|| Error::replaced(table))
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
