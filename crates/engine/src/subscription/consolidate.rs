//! One change per epoch, with each row in it once: made once, for all subscribers.

use std::collections::HashMap;

use alluvium_trace::Epoch;
use arrow::array::{RecordBatch, UInt64Array};
use arrow::buffer::ScalarBuffer;
use arrow::compute::{concat_batches, take_record_batch};
use arrow::datatypes::SchemaRef;
use arrow::row::{RowConverter, SortField};

use super::Change;
use super::queue::Delivery;
use crate::changes::TableChange;
use crate::error::{Error, Result};

impl Delivery {
    /// The change it makes; `None` if the workers' parts cancel each other out. Subscribers that take it later find it
    /// consolidated, unless it is in a file.
    pub(super) fn change(&self, schema: &SchemaRef) -> Result<Option<Change>> {
        let loaded = self.load(schema)?;
        let (epoch, is_snapshot) = (self.epoch, self.is_snapshot);
        Ok(match loaded {
            Some((rows, weights)) => Some(Change { epoch, rows, weights, is_snapshot }),
            None => is_snapshot.then(|| Change::empty(epoch, schema)),
        })
    }

    /// Its rows, if there are any.
    fn load(&self, schema: &SchemaRef) -> Result<Option<Part>> {
        let mut parts = self.parts.lock();
        if let Some(whole) = &parts.whole {
            return Ok(Some(whole.clone()));
        }
        let is_in_memory = |change: &TableChange| change.rows().in_memory().is_some();
        let are_in_memory = parts.changes.iter().all(is_in_memory);
        let whole = match &parts.changes[..] {
            [] => return Ok(None),
            // Readers of a file do not wait for each other.
            [one] if !are_in_memory => {
                let one = one.clone();
                drop(parts);
                return part(one).map(Some);
            }
            [one] => part(one.clone())?,
            several => {
                let several = several.iter().cloned().map(part).collect::<Result<Vec<Part>>>()?;
                match parts.is_consolidated {
                    // They are pieces of one part, in a file.
                    true => concatenate(&several, schema)?,
                    false => merge(&several, schema)?,
                }
            }
        };
        let is_empty = whole.0.num_rows() == 0;
        if are_in_memory {
            parts.changes = match is_empty {
                true => Vec::new(),
                false => vec![TableChange::weighted(&whole.0, whole.1.clone())?],
            };
            parts.is_consolidated = true;
            parts.whole = (!is_empty).then(|| whole.clone());
        }
        Ok((!is_empty).then_some(whole))
    }
}

impl Change {
    /// That a relation with these columns has no rows.
    fn empty(epoch: Epoch, schema: &SchemaRef) -> Self {
        let rows = RecordBatch::new_empty(schema.clone());
        Self { epoch, rows, weights: ScalarBuffer::default(), is_snapshot: true }
    }

    /// All rows of a relation, whose parts have no row in common.
    pub(super) fn snapshot(epoch: Epoch, parts: &[Part], schema: &SchemaRef) -> Result<Self> {
        let (rows, weights) = match parts {
            [] => return Ok(Self::empty(epoch, schema)),
            [one] => one.clone(),
            parts => concatenate(parts, schema)?,
        };
        Ok(Self { epoch, rows, weights, is_snapshot: true })
    }
}

/// Rows and weights of one epoch.
pub(super) type Part = (RecordBatch, ScalarBuffer<i64>);

/// The rows of a change that waited, and their weights.
fn part(change: TableChange) -> Result<Part> {
    let (rows, weights) = change.take()?;
    let weights = weights.unwrap_or_else(|| vec![1; rows.num_rows()].into());
    Ok((rows, weights))
}

/// Parts that have no row in common.
fn concatenate(parts: &[Part], schema: &SchemaRef) -> Result<Part> {
    let rows = concat_batches(schema, parts.iter().map(|(rows, _)| rows))?;
    let weights = parts.iter().flat_map(|(_, weights)| weights.iter().copied()).collect();
    Ok((rows, weights))
}

/// The change that parts make together, with each row in it once.
fn merge(parts: &[Part], schema: &SchemaRef) -> Result<Part> {
    let (rows, weights) = concatenate(parts, schema)?;
    let fields = schema.fields().iter().map(|field| SortField::new(field.data_type().clone()));
    let converter = RowConverter::new(fields.collect())?;
    let encoded = converter.convert_columns(rows.columns())?;
    // For each distinct row, where it first occurs and its weight so far.
    let mut places: HashMap<&[u8], usize> = HashMap::with_capacity(rows.num_rows());
    let mut sums: Vec<(u64, i64)> = Vec::with_capacity(rows.num_rows());
    for (row, weight) in weights.iter().copied().enumerate() {
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
    Ok((take_record_batch(&rows, &places)?, weights))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, AsArray, Int64Array};
    use arrow::datatypes::{DataType, Field, Int64Type, Schema};
    use parking_lot::Mutex;

    use super::super::queue::Parts;
    use super::*;

    fn delivery(parts: &[&[(i64, i64)]], is_snapshot: bool) -> Option<Vec<(i64, i64)>> {
        let part = |rows: &&[(i64, i64)]| {
            let column: ArrayRef =
                Arc::new(Int64Array::from_iter_values(rows.iter().map(|row| row.0)));
            let batch = RecordBatch::try_from_iter([("n", column)]).expect("one column");
            let weights = rows.iter().map(|row| row.1).collect();
            TableChange::weighted(&batch, weights).expect("as many weights as rows")
        };
        let changes: Vec<_> = parts.iter().map(part).collect();
        let fields = changes.first().map(|_| Field::new("n", DataType::Int64, false));
        let schema = Arc::new(Schema::new(fields.into_iter().collect::<Vec<_>>()));
        let parts = Mutex::new(Parts::new(changes));
        let delivery = Delivery { epoch: 3, is_snapshot, parts };
        let change = || delivery.change(&schema).expect("rows can be compared");
        let (first, again) = (change(), change());
        assert_eq!(first.is_some(), again.is_some());
        let (change, again) = (first?, again?);
        assert_eq!((&change.rows, &change.weights), (&again.rows, &again.weights));
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
    fn a_snapshot_is_delivered_even_if_it_is_empty() {
        assert_eq!(delivery(&[], true), Some(Vec::new()));
    }
}
