//! The changes of a view as rows: `epoch`, `weight`, and the view's columns.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch, UInt64Array};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};

use crate::error::{Error, Result};
use crate::subscription::Change;

const EPOCH: &str = "epoch";
const WEIGHT: &str = "weight";

/// The columns of the changes of a view. Fails if the view has columns of these names itself.
pub(crate) fn schema(view: &str, columns: &SchemaRef) -> Result<SchemaRef> {
    for name in [EPOCH, WEIGHT] {
        if columns.index_of(name).is_ok() {
            return Err(Error::sql(format!(
                "the changes of \"{view}\" have a column \"{name}\" of their own; name its column \"{name}\" otherwise"
            )));
        }
    }
    let own =
        [Field::new(EPOCH, DataType::UInt64, false), Field::new(WEIGHT, DataType::Int64, false)];
    let fields = own.into_iter().map(Arc::new).chain(columns.fields().iter().cloned());
    Ok(Arc::new(Schema::new(fields.collect::<Vec<_>>())))
}

/// A change, with the columns of [`schema`].
pub(super) fn rows(change: Change, schema: &SchemaRef) -> Result<RecordBatch> {
    let epochs: ArrayRef = Arc::new(UInt64Array::from(vec![change.epoch; change.rows.num_rows()]));
    let weights: ArrayRef = Arc::new(Int64Array::new(change.weights, None));
    let columns = [epochs, weights].into_iter().chain(change.rows.columns().iter().cloned());
    Ok(RecordBatch::try_new(schema.clone(), columns.collect())?)
}
