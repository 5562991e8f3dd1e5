//! Results as tables.

use std::io::Write;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
use arrow::util::display::FormatOptions;
use arrow::util::pretty::pretty_format_batches_with_options;

pub(crate) fn write(
    to: &mut impl Write,
    schema: &SchemaRef,
    batches: &[RecordBatch],
    null: &str,
) -> Result<(), ArrowError> {
    let options = FormatOptions::default().with_null(null);
    let table = if batches.is_empty() {
        let no_rows = [RecordBatch::new_empty(schema.clone())];
        pretty_format_batches_with_options(&no_rows, &options)?.to_string()
    } else {
        pretty_format_batches_with_options(batches, &options)?.to_string()
    };
    Ok(writeln!(to, "{table}")?)
}
