//! Results as tables.

use std::io::Write;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::error::ArrowError;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use arrow::util::pretty::pretty_format_batches;

use crate::console::escaped;

/// Writes rows as a table. Control characters are escaped, but for line ends in values.
pub(crate) fn write(
    to: &mut impl Write,
    schema: &SchemaRef,
    batches: &[RecordBatch],
    null: &str,
) -> Result<(), ArrowError> {
    let options = FormatOptions::default().with_null(null);
    let fields = schema.fields().iter();
    let fields = fields.map(|field| Field::new(escaped(field.name(), &[]), DataType::Utf8, true));
    let shown = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
    let mut rows = vec![RecordBatch::new_empty(shown.clone())];
    for batch in batches.iter().filter(|batch| batch.num_columns() > 0) {
        let columns = batch.columns().iter().map(|column| text(column, &options));
        rows.push(RecordBatch::try_new(shown.clone(), columns.collect::<Result<_, _>>()?)?);
    }
    Ok(writeln!(to, "{}", pretty_format_batches(&rows)?)?)
}

/// The values of a column as they are shown.
fn text(column: &ArrayRef, options: &FormatOptions<'_>) -> Result<ArrayRef, ArrowError> {
    let values = ArrayFormatter::try_new(column, options)?;
    let shown = (0..column.len()).map(|row| {
        let value = values.value(row).to_string();
        escaped(&value, &['\n']).into_owned()
    });
    Ok(Arc::new(StringArray::from_iter_values(shown)))
}
