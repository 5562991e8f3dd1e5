//! The changes of a view, as rows.

use std::sync::Arc;

use alluvium::Change;
use alluvium::arrow::array::{ArrayRef, Int64Array, RecordBatch, UInt64Array};
use alluvium::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use alluvium::arrow::error::ArrowError;

/// The columns of a view's changes: the epoch, the weight, and the view's own.
pub(crate) fn changes_schema(view: &SchemaRef) -> SchemaRef {
    let ours = [("epoch", DataType::UInt64), ("weight", DataType::Int64)];
    let ours = ours.into_iter().map(|(name, kind)| Arc::new(Field::new(name, kind, false)));
    Arc::new(Schema::new(ours.chain(view.fields().iter().cloned()).collect::<Vec<_>>()))
}

/// The changes of an epoch as rows of these columns.
pub(crate) fn change_rows(schema: &SchemaRef, change: &Change) -> Result<RecordBatch, ArrowError> {
    let epochs: ArrayRef = Arc::new(UInt64Array::from_value(change.epoch, change.rows.num_rows()));
    let weights: ArrayRef = Arc::new(Int64Array::new(change.weights.clone(), None));
    let columns = [epochs, weights].into_iter().chain(change.rows.columns().iter().cloned());
    RecordBatch::try_new(schema.clone(), columns.collect())
}
