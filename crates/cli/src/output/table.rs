//! Results as tables.

use std::io::Write;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::error::ArrowError;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use arrow::util::pretty::pretty_format_batches;

use crate::console::escaped;

/// Writes rows as a table. Control characters are escaped, but for line ends in values; long names and values are cut.
pub(crate) fn write(
    to: &mut impl Write,
    schema: &SchemaRef,
    batches: &[RecordBatch],
    null: &str,
) -> Result<(), ArrowError> {
    let options = FormatOptions::default().with_null(null);
    let fields = schema.fields().iter();
    let fields = fields.map(|field| Field::new(header(field.name()), DataType::Utf8, true));
    let shown = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
    let mut rows = vec![RecordBatch::new_empty(shown.clone())];
    for batch in batches.iter().filter(|batch| batch.num_columns() > 0) {
        let columns = batch.columns().iter().map(|column| text(column, &options));
        rows.push(RecordBatch::try_new(shown.clone(), columns.collect::<Result<_, _>>()?)?);
    }
    Ok(writeln!(to, "{}", pretty_format_batches(&rows)?)?)
}

/// The most characters of a column's name that are shown. A column without an alias is called as its expression is written.
const LONGEST_NAME: usize = 100;

/// The most characters of a value that are shown: a table is for eyes, and lines of any width take long to lay out.
const LONGEST_VALUE: usize = 10_000;

/// The name of a column as it is shown.
fn header(name: &str) -> String {
    cut(name, LONGEST_NAME, &[])
}

/// The first `longest` characters, escaped but for those in `kept`.
fn cut(text: &str, longest: usize, kept: &[char]) -> String {
    match text.char_indices().nth(longest) {
        Some((end, _)) => format!("{}…", escaped(&text[..end], kept)),
        None => escaped(text, kept).into_owned(),
    }
}

/// The values of a column as they are shown.
fn text(column: &ArrayRef, options: &FormatOptions<'_>) -> Result<ArrayRef, ArrowError> {
    let values = ArrayFormatter::try_new(column, options)?;
    let shown = (0..column.len()).map(|row| {
        let value = values.value(row).to_string();
        cut(&value, LONGEST_VALUE, &['\n'])
    });
    Ok(Arc::new(StringArray::from_iter_values(shown)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_and_values_are_cut() {
        assert_eq!(header("a\tb"), "a\\tb");
        assert_eq!(header(&"ä".repeat(100)), "ä".repeat(100));
        assert_eq!(header(&"ä".repeat(1_000_000)), format!("{}…", "ä".repeat(100)));
        let lines = format!("a\n{}", "b".repeat(LONGEST_VALUE));
        assert_eq!(cut(&lines, LONGEST_VALUE, &['\n']), format!("{}…", &lines[..LONGEST_VALUE]));
    }
}
