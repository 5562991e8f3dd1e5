//! A text as rows.

use std::sync::Arc;

use alluvium::Error;
use arrow::array::{ArrayRef, RecordBatch, StringArray};
use arrow::datatypes::SchemaRef;

/// The lines of a text, each a row of the one column of a schema.
pub(crate) fn lines(text: &str, schema: SchemaRef) -> Result<RecordBatch, Error> {
    let lines: ArrayRef = Arc::new(text.lines().map(Some).collect::<StringArray>());
    Ok(RecordBatch::try_new(schema, vec![lines])?)
}
