//! Results as tables.

use std::io::Write;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::error::ArrowError;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use arrow::util::pretty::pretty_format_batches;

use crate::console::escaped;

/// Writes rows as a table. Control characters are escaped, but for line ends in values; long names and values are cut, and those
/// of columns that have a width to that.
pub(crate) fn write(
    to: &mut impl Write,
    schema: &SchemaRef,
    batches: &[RecordBatch],
    (null, widths): (&str, &[usize]),
) -> Result<(), ArrowError> {
    let options = FormatOptions::default().with_null(null);
    let width = |column: usize| widths.get(column).copied().filter(|width| *width > 0);
    let fields = schema.fields().iter().enumerate().map(|(column, field)| {
        Field::new(header(field.name(), width(column)), DataType::Utf8, true)
    });
    let shown = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
    let mut rows = vec![RecordBatch::new_empty(shown.clone())];
    for batch in batches.iter().filter(|batch| batch.num_columns() > 0) {
        let columns = batch.columns().iter().enumerate();
        let columns = columns.map(|(number, column)| text(column, width(number), &options));
        rows.push(RecordBatch::try_new(shown.clone(), columns.collect::<Result<_, _>>()?)?);
    }
    Ok(writeln!(to, "{}", pretty_format_batches(&rows)?)?)
}

/// The most characters of a column's name that are shown. A column without an alias is called as its expression is written.
const LONGEST_NAME: usize = 100;

/// The most characters of a value that are shown: a table is for eyes, and lines of any width take long to lay out.
const LONGEST_VALUE: usize = 10_000;

/// The name of a column as it is shown.
fn header(name: &str, width: Option<usize>) -> String {
    cut(name, width.unwrap_or(LONGEST_NAME), &[])
}

/// The first `longest` characters, escaped but for those in `kept`.
fn cut(text: &str, longest: usize, kept: &[char]) -> String {
    match text.char_indices().nth(longest) {
        Some((end, _)) => format!("{}…", escaped(&text[..end], kept)),
        None => escaped(text, kept).into_owned(),
    }
}

/// The values of a column as they are shown.
fn text(
    column: &ArrayRef,
    width: Option<usize>,
    options: &FormatOptions<'_>,
) -> Result<ArrayRef, ArrowError> {
    let longest = width.unwrap_or(LONGEST_VALUE);
    let values = ArrayFormatter::try_new(column, options)?;
    let shown = (0..column.len()).map(|row| {
        let value = values.value(row).to_string();
        cut(&value, longest, &['\n'])
    });
    Ok(Arc::new(StringArray::from_iter_values(shown)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_and_values_are_cut() {
        assert_eq!(header("a\tb", None), "a\\tb");
        assert_eq!(header(&"ä".repeat(100), None), "ä".repeat(100));
        assert_eq!(header("abc", Some(2)), "ab…");
        assert_eq!(header(&"ä".repeat(1_000_000), None), format!("{}…", "ä".repeat(100)));
        let lines = format!("a\n{}", "b".repeat(LONGEST_VALUE));
        assert_eq!(cut(&lines, LONGEST_VALUE, &['\n']), format!("{}…", &lines[..LONGEST_VALUE]));
    }
}
