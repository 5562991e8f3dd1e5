//! Whether rows have values that are UNIQUE.
//!
//! After each statement no two rows of a table, as the transaction sees them, have the same values in the columns of a UNIQUE
//! constraint, unless one of these is NULL. The rows that have the values of those that the statement has inserted are found by the
//! index of the constraint or, while that is not as old as the version that is read, among all rows. That no row has such
//! values is read, and validated by these values: see [`Read::values`](super::reads::Read).
//!
//! The rows that a program inserts are compared when it commits, those of connectors never.

use alluvium_dataflow::state::key_ranges::KeyRanges;
use alluvium_dataflow::state::snapshot::Snapshot;
use alluvium_trace::{Epoch, RowBuffer};
use arrow::array::{BooleanArray, RecordBatch};
use arrow::compute::filter_record_batch;

use super::key::KeyColumns;
use super::version::{snapshots, too_new};
use super::written::WrittenKeys;
use super::{Transaction, validation};
use crate::catalog::{Entry, NamedIndex};
use crate::error::{Error, Result, SqlState};
use crate::fault::{Fault, armed};
use crate::interrupt;
use crate::worker::Durable;

/// How many values are looked up together.
const TOGETHER: usize = 1024;

/// A UNIQUE constraint of a table.
#[derive(Clone, Copy)]
struct Unique<'a> {
    table: &'a Entry,
    number: usize,
    index: &'a NamedIndex,
    columns: &'a KeyColumns,
}

impl<'a> Unique<'a> {
    fn all(table: &'a Entry) -> impl Iterator<Item = Self> {
        let uniques = table.uniques().enumerate();
        uniques.map(move |(number, (index, columns))| Self { table, number, index, columns })
    }

    /// The error for a row whose values another one has.
    fn taken(&self, rows: &RecordBatch, row: usize) -> Error {
        let (table, constraint) = (&self.table.name, &self.index.name);
        let message = |of: &str| {
            format!(
                "a row with {of} is in \"{table}\" already, whose constraint \"{constraint}\" is UNIQUE"
            )
        };
        Error::data(message(&self.columns.written(rows, row)))
            .or_bare(message("the same values"))
            .with_sqlstate(SqlState::UNIQUE)
    }
}

impl Transaction {
    /// Fails if rows that a statement has inserted have values of others. `values` are those of its rows, for each constraint; `before`
    /// is how many changed rows of the table the transaction had before, and whether the statement `is_new`: it only inserts rows.
    pub(super) fn check_unique(
        &self,
        table: &Entry,
        values: &[WrittenKeys],
        (before, is_new): (u64, bool),
    ) -> Result<()> {
        for (unique, values) in Unique::all(table).zip(values) {
            match values {
                WrittenKeys::Keys(values) => {
                    let inserted = values.iter().filter(|(_, writes)| writes.inserts > 0);
                    let inserted: Vec<&[u8]> = inserted.map(|(value, _)| &**value).collect();
                    self.check_values(unique, &inserted)?;
                }
                WrittenKeys::All if is_new && before == 0 => self.check_many(unique)?,
                WrittenKeys::All => self.check_rows(unique, before)?,
            }
        }
        Ok(())
    }

    /// As [`check_unique`](Self::check_unique), of rows that a program has inserted.
    pub(super) fn check_inserted_uniques(&self) -> Result<()> {
        for id in &self.inserted {
            if self.is_committed()? {
                return Ok(());
            }
            let Some((name, staged)) = self.changes.get(id) else { continue };
            let table = validation::check_there(&self.instance.reader, *id, name)?;
            let has_key = table.key_columns()?.is_some();
            let is_new = staged
                .changes()
                .iter()
                .all(|change| change.inserts() && (change.has_new_keys() || !has_key));
            for unique in Unique::all(&table) {
                match is_new {
                    true => self.check_many(unique)?,
                    false => self.check_rows(unique, 0)?,
                }
            }
        }
        Ok(())
    }

    /// Fails if two rows have one of these values, which ascend.
    fn check_values(&self, unique: Unique<'_>, values: &[&[u8]]) -> Result<()> {
        if values.is_empty() {
            return Ok(());
        }
        let Some(overlay) = self.overlay(unique.table)? else { return Ok(()) };
        for values in values.chunks(TOGETHER) {
            interrupt::check()?;
            let before = self.rows_before(unique, values)?;
            let rows = overlay.rows_with(unique.number, values, before)?;
            let mut seen = vec![false; values.len()];
            for rows in &rows {
                for (row, value) in unique.columns.of(rows.columns())?.iter().enumerate() {
                    let Ok(place) = values.binary_search(&value.as_ref()) else { continue };
                    if std::mem::replace(&mut seen[place], true) {
                        return Err(unique.taken(rows, row));
                    }
                }
            }
        }
        Ok(())
    }

    /// Fails if two rows have the values of one that was inserted after the first `before` changed rows of the table.
    fn check_rows(&self, unique: Unique<'_>, before: u64) -> Result<()> {
        let Some((_, staged)) = self.changes.get(&unique.table.as_table()?.id) else {
            return Ok(());
        };
        let mut seen = 0;
        for change in staged.changes() {
            seen += change.len() as u64;
            if seen <= before || !change.inserts() {
                continue;
            }
            let (rows, _) = change.load()?;
            let rows = unique.columns.without_nulls(&rows)?;
            let values = unique.columns.of(rows.columns())?;
            let mut values: Vec<_> = values.iter().collect();
            values.sort_unstable();
            values.dedup();
            let values: Vec<&[u8]> = values.iter().map(AsRef::as_ref).collect();
            self.check_values(unique, &values)?;
        }
        Ok(())
    }

    /// Fails if two rows have the same values, of very many that are inserted into a table of which the transaction has changed nothing
    /// else, and which take the places of no others.
    fn check_many(&self, unique: Unique<'_>) -> Result<()> {
        let Some((_, staged)) = self.changes.get(&unique.table.as_table()?.id) else {
            return Ok(());
        };
        let mut sorted = RowBuffer::<Epoch>::new(&self.instance.writer.context);
        for change in staged.changes() {
            interrupt::check()?;
            let (rows, _) = change.load()?;
            let rows = unique.columns.without_nulls(&rows)?;
            for value in &unique.columns.of(rows.columns())? {
                sorted.push(value.as_ref(), &[], &0, 1);
            }
        }
        let sorted = sorted.seal_all();
        let mut cursor = sorted.scan();
        let mut values: Vec<Box<[u8]>> = Vec::with_capacity(TOGETHER);
        while let Some(value) = cursor.key().map(Box::<[u8]>::from) {
            let mut count: i64 = 0;
            while cursor.val().is_some() {
                count += cursor.updates().map(|(_, weight)| weight).sum::<i64>();
                cursor.step_val();
            }
            if count > 1 {
                return Err(self.inserted_twice(unique, &value)?);
            }
            values.push(value);
            cursor.step_key();
            if values.len() == TOGETHER || cursor.key().is_none() {
                let sought: Vec<&[u8]> = values.iter().map(|value| &**value).collect();
                let before = self.rows_before(unique, &sought)?;
                if let Some(rows) = before.iter().find(|rows| rows.num_rows() > 0) {
                    return Err(unique.taken(rows, 0));
                }
                values.clear();
            }
        }
        Ok(())
    }

    /// The error for a value that two inserted rows have.
    fn inserted_twice(&self, unique: Unique<'_>, value: &[u8]) -> Result<Error> {
        let staged = self.changes.get(&unique.table.as_table()?.id);
        for change in staged.iter().flat_map(|(_, staged)| staged.changes()) {
            let (rows, _) = change.load()?;
            let values = unique.columns.of(rows.columns())?;
            if let Some(row) = values.iter().position(|other| other.as_ref() == value) {
                return Ok(unique.taken(&rows, row));
            }
        }
        Ok(unique.taken(&RecordBatch::new_empty(unique.table.schema.clone()), 0))
    }

    /// The rows with these values, which ascend, that were there before the transaction. Waits until the version that it reads is
    /// computed.
    fn rows_before(&self, unique: Unique<'_>, values: &[&[u8]]) -> Result<Vec<RecordBatch>> {
        let table = unique.table;
        if table.is_staged || armed(Fault::MissValues) {
            return Ok(Vec::new());
        }
        let id = table.as_table()?.id;
        let ranges = KeyRanges::of_keys(values.iter().copied());
        self.noted(id, &table.name).add_values(unique.number, &ranges);
        let reader = &self.instance.reader;
        let mut version = self.version.lock();
        let version = self.version_with(&mut version, table)?;
        let index: Vec<_> = unique.index.id.into_iter().collect();
        let parts = version.pin(reader, (&[id], &index), Durable::No)?.ok_or_else(too_new)?;
        let columns: Vec<usize> = (0..table.schema.fields().len()).collect();
        let epoch = version.epoch();
        if let Some(parts) = parts.get(1).filter(|parts| !parts.is_empty()) {
            let found = Snapshot::read_ranges(&snapshots(parts), epoch, &columns, &ranges);
            return Ok(found.into_iter().flatten().collect());
        }
        let mut found = Vec::new();
        for snapshot in snapshots(parts.first().map_or(&[][..], Vec::as_slice)) {
            for rows in snapshot.read(epoch, &columns) {
                interrupt::check()?;
                let rows = unique.columns.without_nulls(&rows)?;
                let keys = unique.columns.of(rows.columns())?;
                let is_sought =
                    keys.iter().map(|key| Some(values.binary_search(&key.as_ref()).is_ok()));
                let is_sought: BooleanArray = is_sought.collect();
                found.push(filter_record_batch(&rows, &is_sought)?);
            }
        }
        Ok(found)
    }
}
