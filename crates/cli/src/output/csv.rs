//! Results as CSV. Written here because NULL and the empty string have to differ.

use std::fmt::Write as _;
use std::io::Write;

use arrow::array::{Array, RecordBatch};
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
use arrow::util::display::{ArrayFormatter, FormatOptions};

const END: &str = "\r\n";

pub fn write(
    to: &mut impl Write,
    schema: &SchemaRef,
    batches: &[RecordBatch],
    null: &str,
) -> Result<(), ArrowError> {
    let mut record = String::new();
    for (index, field) in schema.fields().iter().enumerate() {
        delimit(&mut record, index);
        push(&mut record, field.name(), null);
    }
    record.push_str(END);
    to.write_all(record.as_bytes())?;
    write_records(to, batches, null)
}

/// Without the header line.
pub fn write_records(
    to: &mut impl Write,
    batches: &[RecordBatch],
    null: &str,
) -> Result<(), ArrowError> {
    let mut record = String::new();
    let options = FormatOptions::default();
    let mut text = String::new();
    for batch in batches {
        let columns = batch
            .columns()
            .iter()
            .map(|column| Ok((column, ArrayFormatter::try_new(column, &options)?)))
            .collect::<Result<Vec<_>, ArrowError>>()?;
        for row in 0..batch.num_rows() {
            record.clear();
            for (index, (column, formatter)) in columns.iter().enumerate() {
                delimit(&mut record, index);
                if column.is_null(row) {
                    record.push_str(null);
                } else {
                    text.clear();
                    write!(text, "{}", formatter.value(row))
                        .map_err(|error| ArrowError::CsvError(error.to_string()))?;
                    push(&mut record, &text, null);
                }
            }
            record.push_str(END);
            to.write_all(record.as_bytes())?;
        }
    }
    Ok(())
}

fn delimit(record: &mut String, index: usize) {
    if index > 0 {
        record.push(',');
    }
}

/// Adds a field, in quotes if it would be read back as something else without.
fn push(record: &mut String, text: &str, null: &str) {
    let special = |character| matches!(character, ',' | '"' | '\r' | '\n');
    if !text.is_empty() && text != null && !text.contains(special) {
        record.push_str(text);
        return;
    }
    record.push('"');
    for part in text.split_inclusive('"') {
        record.push_str(part);
        if part.ends_with('"') {
            record.push('"');
        }
    }
    record.push('"');
}
