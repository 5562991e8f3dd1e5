//! One change per epoch, with each row in it once.

use std::collections::HashMap;

use arrow::array::{RecordBatch, UInt64Array};
use arrow::buffer::ScalarBuffer;
use arrow::compute::{concat_batches, take_record_batch};
use arrow::datatypes::SchemaRef;
use arrow::row::{RowConverter, SortField};

use super::Change;
use super::feed::Delivery;
use crate::error::{Error, Result};

impl Delivery {
    /// The change it makes; `None` if the workers' parts cancel each other out.
    pub(super) fn consolidate(mut self, schema: &SchemaRef) -> Result<Option<Change>> {
        let epoch = self.epoch;
        let change = match self.parts.len() {
            0 => Change {
                epoch,
                rows: RecordBatch::new_empty(schema.clone()),
                weights: ScalarBuffer::default(),
            },
            // A worker's own part is consolidated already.
            1 => {
                let (rows, weights) = self.parts.remove(0);
                Change { epoch, rows, weights }
            }
            _ => self.merge(schema)?,
        };
        Ok((self.first || change.rows.num_rows() > 0).then_some(change))
    }

    fn merge(&self, schema: &SchemaRef) -> Result<Change> {
        let rows = concat_batches(schema, self.parts.iter().map(|(rows, _)| rows))?;
        let weights = self.parts.iter().flat_map(|(_, weights)| weights.iter().copied());
        let fields = schema.fields().iter().map(|field| SortField::new(field.data_type().clone()));
        let converter = RowConverter::new(fields.collect())?;
        let encoded = converter.convert_columns(rows.columns())?;
        // For each distinct row, where it first occurs and its weight so far.
        let mut places: HashMap<&[u8], usize> = HashMap::with_capacity(rows.num_rows());
        let mut sums: Vec<(u64, i64)> = Vec::with_capacity(rows.num_rows());
        for (row, weight) in weights.enumerate() {
            let place = *places.entry(encoded.row(row).data()).or_insert(sums.len());
            if place == sums.len() {
                sums.push((row as u64, 0));
            }
            let sum = &mut sums[place].1;
            *sum = sum
                .checked_add(weight)
                .ok_or_else(|| Error::data("the number of copies of a row is too large"))?;
        }
        sums.retain(|(_, weight)| *weight != 0);
        let places = UInt64Array::from_iter_values(sums.iter().map(|(place, _)| *place));
        let weights = sums.iter().map(|(_, weight)| *weight).collect();
        Ok(Change { epoch: self.epoch, rows: take_record_batch(&rows, &places)?, weights })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, AsArray, Int64Array};
    use arrow::datatypes::Int64Type;

    use super::*;

    fn delivery(parts: &[&[(i64, i64)]], first: bool) -> Option<Vec<(i64, i64)>> {
        let part = |rows: &&[(i64, i64)]| {
            let column: ArrayRef =
                Arc::new(Int64Array::from_iter_values(rows.iter().map(|row| row.0)));
            let batch = RecordBatch::try_from_iter([("n", column)]).expect("one column");
            (batch, rows.iter().map(|row| row.1).collect())
        };
        let parts: Vec<_> = parts.iter().map(part).collect();
        let schema = parts.first().map(|(rows, _)| rows.schema());
        let schema = schema.unwrap_or_else(|| Arc::new(arrow::datatypes::Schema::empty()));
        let change = Delivery { epoch: 3, parts, first }
            .consolidate(&schema)
            .expect("rows can be compared")?;
        let rows = change
            .rows
            .columns()
            .first()
            .map(|column| column.as_primitive::<Int64Type>().values().to_vec());
        Some(rows.unwrap_or_default().into_iter().zip(change.weights.iter().copied()).collect())
    }

    #[test]
    fn the_same_row_of_two_workers_is_one_row() {
        assert_eq!(delivery(&[&[(1, 1), (2, -1)], &[(1, 2)]], false), Some(vec![(1, 3), (2, -1)]));
    }

    #[test]
    fn parts_that_cancel_out_are_no_change() {
        assert_eq!(delivery(&[&[(1, 1)], &[(1, -1)]], false), None);
    }

    #[test]
    fn the_first_change_is_delivered_even_if_it_is_empty() {
        assert_eq!(delivery(&[], true), Some(Vec::new()));
    }
}
