//! Results as JSON: NULL is `null`, and so are NaN and the infinities, which JSON cannot represent.

use std::io::Write;

use arrow::array::RecordBatch;
use arrow::error::ArrowError;
use arrow::json::WriterBuilder;
use arrow::json::writer::{JsonArray, JsonFormat, LineDelimited};

/// Writes one array with one object per row, and a newline.
pub(crate) fn write_array(to: &mut impl Write, batches: &[RecordBatch]) -> Result<(), ArrowError> {
    write::<JsonArray>(to, batches)?;
    Ok(writeln!(to)?)
}

/// Writes one object per line.
pub(crate) fn write_lines(to: &mut impl Write, batches: &[RecordBatch]) -> Result<(), ArrowError> {
    write::<LineDelimited>(to, batches)
}

fn write<F: JsonFormat>(to: &mut impl Write, batches: &[RecordBatch]) -> Result<(), ArrowError> {
    let mut writer = WriterBuilder::new().with_explicit_nulls(true).build::<_, F>(to);
    for batch in batches {
        writer.write(batch)?;
    }
    writer.finish()
}
