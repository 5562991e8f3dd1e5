//! A table as a transaction that has written to it reads it.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, PrimitiveArray, RecordBatch};
use arrow::compute::filter_record_batch;
use arrow::datatypes::{DataType, Float32Type, Float64Type};
use arrow::row::{RowConverter, Rows, SortField};

use super::change::TableChange;
use crate::error::Result;

/// A transaction's changes to one table, to be applied to the rows the table held before.
pub(crate) struct Overlay {
    /// The columns that rows are compared by: the primary key, or all.
    columns: Vec<usize>,
    converter: RowConverter,
    hidden: Hidden,
    /// Rows the transaction adds.
    added: Vec<RecordBatch>,
}

/// The rows that the transaction hides.
enum Hidden {
    /// All rows with one of these keys.
    Keys(HashSet<Box<[u8]>>),
    /// As many copies of each of these rows as the number says.
    Copies(HashMap<Box<[u8]>, u64>),
}

impl Overlay {
    /// The changes in the order they were made; there is at least one, and none has a weight for each row.
    pub(super) fn new(primary_key: &[usize], changes: &[TableChange]) -> Result<Self> {
        let schema = changes[0].load()?.0.schema();
        let all: Vec<usize> = (0..schema.fields().len()).collect();
        let columns = if primary_key.is_empty() { all } else { primary_key.to_vec() };
        let fields =
            columns.iter().map(|&column| SortField::new(schema.field(column).data_type().clone()));
        let converter = RowConverter::new(fields.collect())?;
        let hidden = match primary_key {
            [] => Hidden::Copies(HashMap::new()),
            _ => Hidden::Keys(HashSet::new()),
        };
        let mut overlay = Self { columns, converter, hidden, added: Vec::new() };
        match overlay.hidden {
            Hidden::Keys(_) => overlay.replace(changes)?,
            Hidden::Copies(_) => overlay.add_and_subtract(changes)?,
        }
        Ok(overlay)
    }

    /// The rows of the table as the transaction sees them, given those from before, in batches.
    pub(crate) fn apply(mut self, before: Vec<RecordBatch>) -> Result<Vec<RecordBatch>> {
        let mut seen = Vec::with_capacity(before.len() + self.added.len());
        for rows in before {
            seen.push(self.without_hidden(rows)?);
        }
        let added = std::mem::take(&mut self.added);
        if let Hidden::Copies(_) = self.hidden {
            for rows in added {
                seen.push(self.without_hidden(rows)?);
            }
        } else {
            seen.extend(added);
        }
        seen.retain(|rows| rows.num_rows() > 0);
        Ok(seen)
    }

    /// Of each key, the last write counts.
    fn replace(&mut self, changes: &[TableChange]) -> Result<()> {
        for change in changes.iter().rev() {
            let (rows, _) = change.load()?;
            let keys = self.compared(&rows)?;
            let Hidden::Keys(hidden) = &mut self.hidden else { return Ok(()) };
            let mut last: Vec<bool> = (0..keys.num_rows())
                .rev()
                .map(|row| hidden.insert(keys.row(row).as_ref().into()))
                .collect();
            last.reverse();
            if change.inserts() {
                self.added.push(filter_record_batch(&rows, &BooleanArray::from(last))?);
            }
        }
        Ok(())
    }

    /// Deletions hide copies of a row, of those from before and of those added.
    fn add_and_subtract(&mut self, changes: &[TableChange]) -> Result<()> {
        for change in changes {
            let (rows, _) = change.load()?;
            if change.inserts() {
                self.added.push(rows);
                continue;
            }
            let rows = self.compared(&rows)?;
            let Hidden::Copies(hidden) = &mut self.hidden else { return Ok(()) };
            for row in &rows {
                *hidden.entry(row.as_ref().into()).or_default() += 1;
            }
        }
        Ok(())
    }

    fn without_hidden(&mut self, rows: RecordBatch) -> Result<RecordBatch> {
        let compared = self.compared(&rows)?;
        let stays: BooleanArray = match &mut self.hidden {
            Hidden::Keys(hidden) => {
                compared.iter().map(|key| Some(!hidden.contains(key.as_ref()))).collect()
            }
            Hidden::Copies(hidden) => {
                let mut stays = |row: &[u8]| match hidden.get_mut(row) {
                    Some(copies) if *copies > 0 => {
                        *copies -= 1;
                        false
                    }
                    _ => true,
                };
                compared.iter().map(|row| Some(stays(row.as_ref()))).collect()
            }
        };
        Ok(filter_record_batch(&rows, &stays)?)
    }

    fn compared(&self, rows: &RecordBatch) -> Result<Rows> {
        let columns = self.columns.iter().map(|&column| match self.hidden {
            Hidden::Keys(_) => canonical(rows.column(column)),
            Hidden::Copies(_) => rows.column(column).clone(),
        });
        Ok(self.converter.convert_columns(&columns.collect::<Vec<_>>())?)
    }
}

/// Floats as keys: -0.0 is 0.0, and all NaN are one.
fn canonical(column: &ArrayRef) -> ArrayRef {
    match column.data_type() {
        DataType::Float32 => {
            let keys: PrimitiveArray<Float32Type> = column
                .as_primitive::<Float32Type>()
                .unary(|x| if x.is_nan() { f32::NAN } else { x + 0.0 });
            Arc::new(keys)
        }
        DataType::Float64 => {
            let keys: PrimitiveArray<Float64Type> = column
                .as_primitive::<Float64Type>()
                .unary(|x| if x.is_nan() { f64::NAN } else { x + 0.0 });
            Arc::new(keys)
        }
        _ => column.clone(),
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::{Int64Array, StringArray};
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
        let overlay = Overlay::new(primary_key, changes).expect("rows can be compared");
        let seen = overlay.apply(vec![rows(before)]).expect("rows can be filtered");
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
        let overlay =
            Overlay::new(&[0], &[TableChange::deletions(one(-0.0))]).expect("rows can be compared");
        assert!(overlay.apply(vec![one(0.0)]).expect("rows can be filtered").is_empty());
    }
}
