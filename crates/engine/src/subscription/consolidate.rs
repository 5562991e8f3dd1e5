//! One change per epoch, with each row in it once.

use std::collections::HashMap;

use alluvium_trace::Epoch;
use arrow::array::{RecordBatch, UInt64Array};
use arrow::buffer::ScalarBuffer;
use arrow::compute::{concat_batches, take_record_batch};
use arrow::datatypes::SchemaRef;
use arrow::row::{RowConverter, SortField};

use super::Change;
use super::waiting::Delivery;
use crate::error::{Error, Result};
use crate::transaction::change::TableChange;

impl Delivery {
    /// The change it makes; `None` if the workers' parts cancel each other out.
    pub(super) fn consolidate(self, schema: &SchemaRef) -> Result<Option<Change>> {
        let Self { epoch, parts, first } = self;
        let mut parts = parts.into_iter().map(part).collect::<Result<Vec<Part>>>()?;
        let change = match parts.len() {
            0 => Change {
                epoch,
                rows: RecordBatch::new_empty(schema.clone()),
                weights: ScalarBuffer::default(),
            },
            // A worker's own part is consolidated already.
            1 => {
                let (rows, weights) = parts.remove(0);
                Change { epoch, rows, weights }
            }
            _ => merge(epoch, &parts, schema)?,
        };
        Ok((first || change.rows.num_rows() > 0).then_some(change))
    }
}

/// Rows and weights of one epoch.
type Part = (RecordBatch, ScalarBuffer<i64>);

/// The rows of a change that waited, and their weights.
fn part(change: TableChange) -> Result<Part> {
    let (rows, weights) = change.take()?;
    let weights = weights.unwrap_or_else(|| vec![1; rows.num_rows()].into());
    Ok((rows, weights))
}

/// The change that parts make together.
fn merge(epoch: Epoch, parts: &[Part], schema: &SchemaRef) -> Result<Change> {
    let rows = concat_batches(schema, parts.iter().map(|(rows, _)| rows))?;
    let weights = parts.iter().flat_map(|(_, weights)| weights.iter().copied());
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
    Ok(Change { epoch, rows: take_record_batch(&rows, &places)?, weights })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, AsArray, Int64Array};
    use arrow::datatypes::{DataType, Field, Int64Type, Schema};

    use super::*;

    fn delivery(parts: &[&[(i64, i64)]], first: bool) -> Option<Vec<(i64, i64)>> {
        let part = |rows: &&[(i64, i64)]| {
            let column: ArrayRef =
                Arc::new(Int64Array::from_iter_values(rows.iter().map(|row| row.0)));
            let batch = RecordBatch::try_from_iter([("n", column)]).expect("one column");
            let weights = rows.iter().map(|row| row.1).collect();
            TableChange::weighted(&batch, weights).expect("as many weights as rows")
        };
        let parts: Vec<_> = parts.iter().map(part).collect();
        let fields = parts.first().map(|_| Field::new("n", DataType::Int64, false));
        let schema = Arc::new(Schema::new(fields.into_iter().collect::<Vec<_>>()));
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
