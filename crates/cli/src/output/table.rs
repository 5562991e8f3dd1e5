//! Results as tables.

use std::io::Write;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::error::ArrowError;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use arrow::util::pretty::pretty_format_batches;

use crate::console::escaped;

/// Rows that are written as a table while they come. Control characters are escaped, but for line ends in values; long names and
/// values are cut, and those of columns that have a width to that.
///
/// The first rows say how wide the columns are. After them a column becomes wider with the first batch that has a longer
/// value.
pub(super) struct Table {
    schema: SchemaRef,
    null: String,
    widths: Vec<usize>,
    /// The line under the rows, once there is one.
    border: Option<String>,
}

impl Table {
    pub(super) fn new(schema: SchemaRef, null: &str, widths: &[usize]) -> Self {
        Self { schema, null: null.to_owned(), widths: widths.to_vec(), border: None }
    }

    /// Writes the next rows; the first call also writes the header.
    pub(super) fn write(
        &mut self,
        to: &mut impl Write,
        batches: &[RecordBatch],
    ) -> Result<(), ArrowError> {
        let headers: Vec<String> = match &self.border {
            None => {
                let fields = self.schema.fields().iter().enumerate();
                fields.map(|(column, field)| header(field.name(), self.width(column))).collect()
            }
            // In their place, what makes columns as wide as they are.
            Some(border) => border
                .split('+')
                .filter(|line| !line.is_empty())
                .map(|line| line[..line.len().saturating_sub(2)].to_owned())
                .collect(),
        };
        let fields = headers.into_iter().map(|header| Field::new(header, DataType::Utf8, true));
        let shown = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        let options = FormatOptions::default().with_null(&self.null);
        let mut rows = vec![RecordBatch::new_empty(shown.clone())];
        for batch in batches.iter().filter(|batch| batch.num_columns() > 0) {
            let columns = batch.columns().iter().enumerate();
            let columns =
                columns.map(|(number, column)| text(column, self.width(number), &options));
            rows.push(RecordBatch::try_new(shown.clone(), columns.collect::<Result<_, _>>()?)?);
        }
        let text = pretty_format_batches(&rows)?.to_string();
        let (above, border) = text.rsplit_once('\n').unwrap_or(("", &text));
        let above = match self.border.replace(border.to_owned()) {
            None => above,
            // Without the lines of the header.
            Some(_) => above.splitn(4, '\n').nth(3).unwrap_or(""),
        };
        match above {
            "" => Ok(()),
            above => Ok(writeln!(to, "{above}")?),
        }
    }

    /// Writes the line under the rows.
    pub(super) fn finish(mut self, to: &mut impl Write) -> Result<(), ArrowError> {
        if self.border.is_none() {
            self.write(to, &[])?;
        }
        Ok(writeln!(to, "{}", self.border.as_deref().unwrap_or_default())?)
    }

    fn width(&self, column: usize) -> Option<usize> {
        self.widths.get(column).copied().filter(|width| *width > 0)
    }
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
