//! Rows of several schemas, put together.

use std::collections::HashMap;
use std::sync::Arc;

use alluvium::{Absent, Portion};
use arrow::array::{
    Array, ArrayRef, BooleanArray, RecordBatch, RecordBatchOptions, new_null_array,
};
use arrow::compute::interleave;
use arrow::datatypes::{Schema, SchemaRef};
use arrow::error::ArrowError;

use super::super::rows::Operation;

/// Rows of some columns of the table.
pub(super) struct Fitted {
    pub rows: RecordBatch,
    pub absent: Vec<Absent>,
    /// The message that each row is of, and its operation.
    pub of: Vec<(usize, Operation)>,
}

/// Where the parts of a row are: the number of a batch of values, or of keys, and of the row in it.
struct Place {
    message: usize,
    operation: Operation,
    value: Option<(usize, usize)>,
    key: Option<(usize, usize)>,
}

/// The rows of `values` in the order of their messages, with the columns that `keys` have from there, and rows of nothing but a
/// key for the messages that are `deleting` theirs. Also tells the message of each, and its operation.
pub(super) fn assemble(
    schema: &SchemaRef,
    values: &[Fitted],
    keys: &[Fitted],
    deleting: &[usize],
) -> Result<(Portion, Vec<(usize, Operation)>), ArrowError> {
    let places = places(values, keys, deleting);
    let is_first =
        |(row, place): (usize, &Place)| place.value == Some((0, row)) && place.key.is_none();
    // The usual case: no row moves.
    let is_one = values.len() == 1 && places.iter().enumerate().all(is_first);
    let (mut fields, mut columns, mut absent) = (Vec::new(), Vec::new(), Vec::new());
    for field in schema.fields() {
        // The batches that have the column, after a NULL for those that do not.
        let mut arrays: Vec<ArrayRef> = vec![new_null_array(field.data_type(), 1)];
        let mut number = |batch: &Fitted| match batch.rows.column_by_name(field.name()) {
            Some(column) => {
                arrays.push(column.clone());
                arrays.len() - 1
            }
            None => 0,
        };
        let of_keys: Vec<usize> = keys.iter().map(&mut number).collect();
        let of_values: Vec<usize> = values.iter().map(&mut number).collect();
        columns.push(match arrays.as_slice() {
            [_, only] if is_one => only.clone(),
            arrays => {
                let pick = |place: &Place| {
                    let key = place.key.map(|(batch, row)| (of_keys[batch], row));
                    let value = place.value.map(|(batch, row)| (of_values[batch], row));
                    let found = [key, value].into_iter().flatten().find(|(array, _)| *array > 0);
                    found.unwrap_or((0, 0))
                };
                let arrays: Vec<&dyn Array> = arrays.iter().map(|array| array.as_ref()).collect();
                interleave(&arrays, &places.iter().map(pick).collect::<Vec<_>>())?
            }
        });
        absent.extend(
            absent_of(field.name(), values, &places).map(|rows| Absent::new(fields.len(), rows)),
        );
        fields.push(field.as_ref().clone().with_nullable(true));
    }
    let options = RecordBatchOptions::new().with_row_count(Some(places.len()));
    let schema = Arc::new(Schema::new(fields));
    let mut portion = Portion::new(RecordBatch::try_new_with_options(schema, columns, &options)?);
    portion.absent = absent;
    Ok((portion, places.iter().map(|place| (place.message, place.operation)).collect()))
}

fn places(values: &[Fitted], keys: &[Fitted], deleting: &[usize]) -> Vec<Place> {
    let of_keys = keys.iter().enumerate().flat_map(|(batch, keys)| {
        keys.of.iter().enumerate().map(move |(row, (message, _))| (*message, (batch, row)))
    });
    let of_keys: HashMap<usize, (usize, usize)> = of_keys.collect();
    let mut places = Vec::new();
    for (batch, rows) in values.iter().enumerate() {
        for (row, &(message, operation)) in rows.of.iter().enumerate() {
            let (value, key) = (Some((batch, row)), of_keys.get(&message).copied());
            places.push(Place { message, operation, value, key });
        }
    }
    // A message whose key is not read is refused.
    let deleting = deleting.iter().filter_map(|message| Some((*message, *of_keys.get(message)?)));
    places.extend(deleting.map(|(message, key)| Place {
        message,
        operation: Operation::Delete,
        value: None,
        key: Some(key),
    }));
    // The rows of one message keep their order.
    places.sort_by_key(|place| place.message);
    places
}

/// The rows in which a column has no value, if there are any.
fn absent_of(name: &str, values: &[Fitted], places: &[Place]) -> Option<BooleanArray> {
    let of = |batch: &Fitted| {
        let column = batch.rows.schema().index_of(name).ok()?;
        batch.absent.iter().find(|absent| absent.column == column).map(|absent| absent.rows.clone())
    };
    let of: Vec<Option<BooleanArray>> = values.iter().map(of).collect();
    if of.iter().all(Option::is_none) {
        return None;
    }
    let is_absent = |place: &Place| {
        let absent = place.value.and_then(|(batch, row)| Some(of[batch].as_ref()?.value(row)));
        Some(absent.unwrap_or(false))
    };
    Some(places.iter().map(is_absent).collect())
}
