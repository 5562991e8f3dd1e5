//! A table as a transaction that has written to it reads it.

use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;
use std::sync::Arc;

use alluvium_dataflow::state::key_ranges::KeyRanges;
use arrow::array::{BooleanArray, RecordBatch, RecordBatchOptions};
use arrow::compute::{filter_record_batch, interleave_record_batch};
use arrow::datatypes::Schema;
use arrow::row::Row;

use super::key::KeyColumns;
use crate::catalog::Entry;
use crate::changes::TableChange;
use crate::changes::late::Bounds;
use crate::error::Result;

/// Rows that the transaction adds are returned in batches of so many.
const BATCH_ROWS: usize = 8192;

/// A transaction's changes to one table, to be applied to the rows the table held before.
pub(crate) struct Overlay {
    /// The columns that rows are compared by: the primary key, or all.
    columns: Arc<KeyColumns>,
    /// The bounds for inserted rows to be in time: others are dropped when the transaction is committed.
    bounds: Option<Bounds>,
    /// How many of the transaction's changed rows it has.
    seen: usize,
    /// The inserted rows.
    inserted: Vec<RecordBatch>,
    written: Written,
    /// The places of inserted rows by their values in the columns of each UNIQUE constraint, which are not NULL.
    uniques: Vec<Values>,
}

/// The places of rows by their values in some columns.
struct Values {
    columns: Arc<KeyColumns>,
    places: HashMap<Box<[u8]>, Vec<(usize, usize)>>,
}

/// The writes of the transaction.
enum Written {
    /// The last write to each key: the place of an inserted row, its batch and its number there; `None` if the row was
    /// deleted. Keys are encoded as the table's are.
    Keys(BTreeMap<Box<[u8]>, Option<(usize, usize)>>),
    /// How many copies of each row are deleted.
    Copies(HashMap<Box<[u8]>, u64>),
}

impl Overlay {
    /// No changes yet to a table.
    pub(super) fn of_table(table: &Entry, bounds: Option<Bounds>) -> Result<Self> {
        let mut overlay = Self::new(table.key_columns()?.cloned(), &table.schema, bounds)?;
        let uniques = table.uniques().map(|(_, columns)| columns.clone());
        overlay.uniques =
            uniques.map(|columns| Values { columns, places: HashMap::new() }).collect();
        Ok(overlay)
    }

    /// No changes yet to a table with this key, or with these columns if it has none, whose rows are in time within `bounds`.
    fn new(key: Option<Arc<KeyColumns>>, schema: &Schema, bounds: Option<Bounds>) -> Result<Self> {
        let (columns, written) = match key {
            Some(key) => (key, Written::Keys(BTreeMap::new())),
            None => {
                let all: Vec<usize> = (0..schema.fields().len()).collect();
                let all = Arc::new(KeyColumns::exact(schema, &all)?);
                (all, Written::Copies(HashMap::new()))
            }
        };
        let (inserted, uniques) = Default::default();
        Ok(Self { columns, bounds, seen: 0, inserted, written, uniques })
    }

    /// Adds those of the transaction's changes that it does not have yet. `changes` are all of them, in the order they were
    /// made; none has a weight for each row.
    pub(super) fn extend(&mut self, changes: &[TableChange]) -> Result<()> {
        let mut rows = 0;
        for change in changes {
            if rows >= self.seen {
                self.add(change)?;
            }
            rows += change.len();
        }
        self.seen = rows;
        Ok(())
    }

    fn add(&mut self, change: &TableChange) -> Result<()> {
        let (mut rows, _) = change.load()?;
        if let Some(bounds) = &self.bounds
            && change.inserts()
        {
            rows = bounds.in_time(rows)?;
        }
        let compared = (!change.inserts() || matches!(self.written, Written::Keys(_)))
            .then(|| self.columns.of(rows.columns()))
            .transpose()?;
        let batch = self.inserted.len();
        match (&mut self.written, compared) {
            // Of each key, the last write counts.
            (Written::Keys(keys), Some(compared)) => {
                for (row, key) in compared.iter().enumerate() {
                    let place = change.inserts().then_some((batch, row));
                    keys.insert(key.as_ref().into(), place);
                }
            }
            // Deletions hide copies of a row, of those from before and of those added.
            (Written::Copies(copies), Some(compared)) => {
                for row in &compared {
                    *copies.entry(row.as_ref().into()).or_default() += 1;
                }
            }
            (_, None) => {}
        }
        if change.inserts() {
            for Values { columns, places } in &mut self.uniques {
                let nulls = columns.nulls(rows.columns());
                for (row, value) in columns.of(rows.columns())?.iter().enumerate() {
                    if nulls.as_ref().is_none_or(|nulls| nulls.is_valid(row)) {
                        places.entry(value.as_ref().into()).or_default().push((batch, row));
                    }
                }
            }
            self.inserted.push(rows);
        }
        Ok(())
    }

    /// Whether there is a row with a key; `None` if the transaction has not written that.
    pub(super) fn has(&self, key: &[u8]) -> Option<bool> {
        match &self.written {
            Written::Keys(keys) => keys.get(key).map(Option::is_some),
            Written::Copies(_) => None,
        }
    }

    /// The rows of the table, as the transaction sees them, that have one of these values in the columns of a UNIQUE constraint. `before`
    /// has all columns of those that were there before it.
    pub(super) fn rows_with(
        &self,
        unique: usize,
        values: &[&[u8]],
        before: Vec<RecordBatch>,
    ) -> Result<Vec<RecordBatch>> {
        let Some(Values { places, .. }) = self.uniques.get(unique) else { return Ok(before) };
        let places: Vec<_> =
            values.iter().filter_map(|value| places.get(*value)).flatten().copied().collect();
        let mut rows = before;
        let all: Vec<usize> = match self.inserted.first() {
            Some(inserted) => (0..inserted.num_columns()).collect(),
            None => Vec::new(),
        };
        let compared = self.columns.columns();
        let mut left = HashMap::new();
        match &self.written {
            Written::Keys(keys) => {
                for rows in &mut rows {
                    *rows = self.without_hidden(rows, compared, &mut left)?;
                }
                if !places.is_empty() {
                    // Of each key, the last write counts.
                    let inserted = self.gather(&places, &all)?;
                    let written = self.columns.of(inserted.columns())?;
                    let is_last = |(key, place): (Row<'_>, &(usize, usize))| {
                        Some(keys.get(key.as_ref()) == Some(&Some(*place)))
                    };
                    let is_last: BooleanArray = written.iter().zip(&places).map(is_last).collect();
                    rows.push(filter_record_batch(&inserted, &is_last)?);
                }
            }
            Written::Copies(copies) => {
                if !places.is_empty() {
                    rows.push(self.gather(&places, &all)?);
                }
                for rows in &rows {
                    for row in &self.columns.of(rows.columns())? {
                        if let Some(copies) = copies.get(row.as_ref()) {
                            left.insert(row.as_ref().into(), *copies);
                        }
                    }
                }
                for rows in &mut rows {
                    *rows = self.without_hidden(rows, compared, &mut left)?;
                }
            }
        }
        Ok(rows)
    }

    /// The columns that rows from before need so that `columns` of them can be returned.
    pub(crate) fn columns_to_read(&self, columns: &[usize]) -> Vec<usize> {
        let mut all = columns.to_vec();
        for &column in self.columns.columns() {
            if !all.contains(&column) {
                all.push(column);
            }
        }
        all
    }

    /// The columns `columns` of the rows of the table as the transaction sees them, or of those whose keys are in `ranges`.
    /// `before` has such rows from before, with the [columns to read](Self::columns_to_read).
    pub(crate) fn apply<Rows: Iterator<Item = RecordBatch>>(
        self: &Arc<Self>,
        columns: &[usize],
        ranges: Option<&KeyRanges>,
        before: Rows,
    ) -> impl Iterator<Item = Result<RecordBatch>> + use<Rows> {
        let read_columns = self.columns_to_read(columns);
        let place = |column: &usize| read_columns.iter().position(|other| other == column);
        let compared: Vec<usize> = self.columns.columns().iter().filter_map(place).collect();
        let width: Vec<usize> = (0..columns.len()).collect();
        let mut left = match &self.written {
            Written::Keys(_) => HashMap::new(),
            Written::Copies(copies) => copies.clone(),
        };
        let before = before.map(Part::Before);
        let added = self.parts(ranges).into_iter();
        let (overlay, columns) = (self.clone(), columns.to_vec());
        let rows = before.chain(added).map(move |part| match part {
            Part::Before(rows) => {
                let seen = overlay.without_hidden(&rows, &compared, &mut left)?;
                Ok(seen.project(&width)?)
            }
            Part::Inserted(batch) => {
                let rows = &overlay.inserted[batch];
                let seen = overlay.without_hidden(rows, overlay.columns.columns(), &mut left)?;
                Ok(seen.project(&columns)?)
            }
            Part::Places(places) => overlay.gather(&places, &columns),
        });
        rows.filter(|rows| rows.as_ref().map_or(true, |rows| rows.num_rows() > 0))
    }

    /// The rows that the transaction adds.
    fn parts(&self, ranges: Option<&KeyRanges>) -> Vec<Part> {
        let Written::Keys(keys) = &self.written else {
            return (0..self.inserted.len()).map(Part::Inserted).collect();
        };
        let all = KeyRanges::all();
        let ranges = ranges.unwrap_or(&all);
        let within = ranges.iter().flat_map(|(low, high)| {
            let high = high.map_or(Bound::Unbounded, Bound::Excluded);
            keys.range::<[u8], _>((Bound::Included(low), high))
        });
        let places: Vec<_> = within.filter_map(|(_, place)| *place).collect();
        places.chunks(BATCH_ROWS).map(|places| Part::Places(places.to_vec())).collect()
    }

    /// Inserted rows.
    fn gather(&self, places: &[(usize, usize)], columns: &[usize]) -> Result<RecordBatch> {
        if columns.is_empty() {
            let options = RecordBatchOptions::new().with_row_count(Some(places.len()));
            let schema = Arc::new(Schema::empty());
            return Ok(RecordBatch::try_new_with_options(schema, Vec::new(), &options)?);
        }
        let mut numbers: Vec<usize> = places.iter().map(|(batch, _)| *batch).collect();
        numbers.sort_unstable();
        numbers.dedup();
        let batches = numbers.iter().map(|&batch| self.inserted[batch].project(columns));
        let batches = batches.collect::<std::result::Result<Vec<_>, _>>()?;
        let place = |&(batch, row): &(usize, usize)| {
            (numbers.partition_point(|&number| number < batch), row)
        };
        let places: Vec<_> = places.iter().map(place).collect();
        Ok(interleave_record_batch(&batches.iter().collect::<Vec<_>>(), &places)?)
    }

    /// The rows that are not hidden. Their columns `compared` are those that rows are compared by; `left` has the copies that
    /// are still to be hidden.
    fn without_hidden(
        &self,
        rows: &RecordBatch,
        compared: &[usize],
        left: &mut HashMap<Box<[u8]>, u64>,
    ) -> Result<RecordBatch> {
        let compared = self.columns.of_parts(compared.iter().map(|&column| rows.column(column)))?;
        let stays: BooleanArray = match &self.written {
            Written::Keys(keys) => {
                compared.iter().map(|key| Some(!keys.contains_key(key.as_ref()))).collect()
            }
            Written::Copies(_) => {
                let mut stays = |row: &[u8]| match left.get_mut(row) {
                    Some(copies) if *copies > 0 => {
                        *copies -= 1;
                        false
                    }
                    _ => true,
                };
                compared.iter().map(|row| Some(stays(row.as_ref()))).collect()
            }
        };
        Ok(filter_record_batch(rows, &stays)?)
    }
}

/// A part of the rows that a transaction sees.
enum Part {
    /// Rows from before.
    Before(RecordBatch),
    /// A batch of inserted rows, of which some may be deleted again.
    Inserted(usize),
    /// Inserted rows by their places.
    Places(Vec<(usize, usize)>),
}

#[cfg(test)]
mod tests {
    use arrow::array::{ArrayRef, AsArray, Int64Array, StringArray};
    use arrow::datatypes::Int64Type;

    use super::*;

    fn rows(rows: &[(i64, &str)]) -> RecordBatch {
        let keys: ArrayRef = Arc::new(Int64Array::from_iter_values(rows.iter().map(|row| row.0)));
        let values: ArrayRef =
            Arc::new(StringArray::from_iter_values(rows.iter().map(|row| row.1)));
        RecordBatch::try_from_iter([("k", keys), ("v", values)]).expect("two columns of one length")
    }

    fn read(
        primary_key: &[usize],
        before: &[(i64, &str)],
        changes: &[TableChange],
    ) -> Vec<(i64, String)> {
        let before = rows(before);
        let key = |key| Arc::new(KeyColumns::new(before.schema_ref(), key).expect("keys compare"));
        let key = (!primary_key.is_empty()).then(|| key(primary_key));
        let mut overlay =
            Overlay::new(key, before.schema_ref(), None).expect("rows can be compared");
        for seen in 1..=changes.len() {
            overlay.extend(&changes[..seen]).expect("rows can be compared");
        }
        let overlay = Arc::new(overlay);
        let seen: Result<Vec<_>> = overlay.apply(&[0, 1], None, std::iter::once(before)).collect();
        let seen = seen.expect("rows can be filtered");
        let pairs = |batch: &RecordBatch| {
            let keys = batch.column(0).as_primitive::<Int64Type>().clone();
            let values = batch.column(1).as_string::<i32>().clone();
            (0..batch.num_rows())
                .map(move |row| (keys.value(row), values.value(row).to_owned()))
                .collect::<Vec<_>>()
        };
        let mut seen: Vec<_> = seen.iter().flat_map(pairs).collect();
        seen.sort();
        seen
    }

    fn owned(rows: &[(i64, &str)]) -> Vec<(i64, String)> {
        rows.iter().map(|(key, value)| (*key, (*value).to_owned())).collect()
    }

    #[test]
    fn with_a_key_the_last_write_of_each_key_is_seen() {
        let writes = [
            TableChange::insertions(rows(&[(1, "new"), (4, "gone again"), (1, "newer")])),
            TableChange::deletions(rows(&[(2, "whatever"), (4, "")])),
            TableChange::insertions(rows(&[(5, "five")])),
        ];
        let seen = read(&[0], &[(1, "old"), (2, "old"), (3, "old")], &writes);
        assert_eq!(seen, owned(&[(1, "newer"), (3, "old"), (5, "five")]));
    }

    #[test]
    fn without_a_key_copies_are_counted() {
        let writes = [
            TableChange::deletions(rows(&[(1, "a"), (7, "absent")])),
            TableChange::insertions(rows(&[(1, "a"), (2, "b")])),
            TableChange::deletions(rows(&[(2, "b")])),
        ];
        let seen = read(&[], &[(1, "a"), (1, "a"), (2, "b")], &writes);
        assert_eq!(seen, owned(&[(1, "a"), (1, "a"), (2, "b")]));
    }

    #[test]
    fn negative_zero_is_the_key_zero() {
        let one = |key: f64| {
            let keys: ArrayRef = Arc::new(arrow::array::Float64Array::from(vec![key]));
            RecordBatch::try_from_iter([("k", keys)]).expect("one column")
        };
        let schema = one(0.0).schema();
        let key = Some(Arc::new(KeyColumns::new(&schema, &[0]).expect("keys compare")));
        let mut overlay = Overlay::new(key, &schema, None).expect("rows can be compared");
        overlay.extend(&[TableChange::deletions(one(-0.0))]).expect("rows can be compared");
        let mut seen = Arc::new(overlay).apply(&[0], None, std::iter::once(one(0.0)));
        assert!(seen.next().is_none());
    }
}
