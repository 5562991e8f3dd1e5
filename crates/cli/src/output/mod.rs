//! Results as text, in one of the formats that `--format` names.

mod json;
mod table;

use std::convert::Infallible;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::slice;

use alluvium_connect::CsvText;
use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;

use crate::console::{LINES, escaped};

/// The format of results.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Format {
    /// A table drawn with lines.
    Table,
    /// RFC 4180 with a header line; NULL is an empty field, an empty string is `""`.
    Csv,
    /// One array of objects per result.
    Json,
    /// One object per line.
    Jsonl,
}

/// How many rows say how wide the columns of a table are.
const FIRST_ROWS: usize = 1000;

/// The output for results.
pub(crate) struct Output<W> {
    to: To<W>,
    format: Format,
    /// The text for NULL in tables and CSV, if not the default of the format.
    null: Option<String>,
    /// How many characters of the columns of tables are shown: 0 for as many as usual, as for columns after the last.
    widths: Vec<usize>,
}

/// Where results go: to a file if there is one.
struct To<W> {
    own: W,
    file: Option<BufWriter<File>>,
}

impl<W: Write> Write for To<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.file {
            Some(file) => file.write(bytes),
            None => self.own.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.file {
            Some(file) => file.flush(),
            None => self.own.flush(),
        }
    }
}

impl<W: Write> Output<W> {
    pub(crate) fn new(to: W, format: Format, null: Option<String>) -> Self {
        Self { to: To { own: to, file: None }, format, null, widths: Vec::new() }
    }

    /// Sends subsequent results to a file, or back to where they went first.
    pub(crate) fn set_file(&mut self, file: Option<File>) {
        self.to.file = file.map(BufWriter::new);
    }

    /// Shows so many characters of the columns of tables from now on, from left to right.
    pub(crate) fn set_widths(&mut self, widths: Vec<usize>) {
        self.widths = widths;
    }

    /// Writes the rows of a query as they come, and flushes them.
    pub(crate) fn rows<E>(
        &mut self,
        schema: &SchemaRef,
        batches: impl IntoIterator<Item = Result<RecordBatch, E>>,
    ) -> Result<(), Unwritten<E>> {
        let csv = self.csv();
        let (to, null) = (&mut self.to, self.null.as_deref());
        let mut batches = batches.into_iter().map(|rows| rows.map_err(Unwritten::Read));
        match self.format {
            Format::Table => {
                let mut table =
                    table::Table::new(schema.clone(), null.unwrap_or("NULL"), &self.widths);
                let mut first = Vec::new();
                let mut count = 0;
                while count < FIRST_ROWS
                    && let Some(rows) = batches.next().transpose()?
                {
                    count += rows.num_rows();
                    first.push(rows);
                }
                table.write(to, &first)?;
                drop(first);
                for rows in batches {
                    table.write(to, &[rows?])?;
                }
                table.finish(to)?;
            }
            Format::Csv => {
                csv.write_header(schema, to)?;
                for rows in batches {
                    csv.write_rows(&rows?, to)?;
                }
            }
            Format::Json => {
                let mut json = json::array(&mut *to);
                for rows in batches {
                    json.write(&rows?)?;
                }
                json.finish()?;
                writeln!(to)?;
            }
            Format::Jsonl => {
                let mut json = json::lines(&mut *to);
                for rows in batches {
                    json.write(&rows?)?;
                }
                json.finish()?;
            }
        }
        Ok(self.to.flush()?)
    }

    /// Writes rows that are there, and flushes them.
    fn all(&mut self, schema: &SchemaRef, batches: &[RecordBatch]) -> io::Result<()> {
        let batches = batches.iter().map(|rows| Ok::<_, Infallible>(rows.clone()));
        self.rows(schema, batches).map_err(|unwritten| match unwritten {
            Unwritten::Read(never) => match never {},
            Unwritten::Write(error) => error,
        })
    }

    /// Writes a part of a result; the first part includes the header.
    pub(crate) fn part(
        &mut self,
        schema: &SchemaRef,
        rows: &RecordBatch,
        first: bool,
    ) -> io::Result<()> {
        if self.format == Format::Csv && !first {
            self.csv().write_rows(rows, &mut self.to)?;
            return self.to.flush();
        }
        self.all(schema, slice::from_ref(rows))
    }

    fn csv(&self) -> CsvText {
        CsvText::with_null(self.null.as_deref().unwrap_or(""))
    }

    /// Writes rows under a name, which only tables show.
    pub(crate) fn named(
        &mut self,
        name: &str,
        schema: &SchemaRef,
        batches: &[RecordBatch],
    ) -> io::Result<()> {
        if self.format == Format::Table {
            writeln!(self.to, "{}", escaped(name, &[]))?;
        }
        self.all(schema, batches)
    }

    /// Sets the format of subsequent results.
    pub(crate) fn set_format(&mut self, format: Format) {
        self.format = format;
    }

    /// Writes text, such as a plan, and a newline.
    pub(crate) fn text(&mut self, text: &str) -> io::Result<()> {
        writeln!(self.to, "{}", escaped(text.trim_end(), LINES))?;
        self.to.flush()
    }
}

/// Why rows are not written.
#[derive(Debug)]
pub(crate) enum Unwritten<E> {
    /// They cannot be read.
    Read(E),
    Write(io::Error),
}

impl<E> From<io::Error> for Unwritten<E> {
    fn from(error: io::Error) -> Self {
        Self::Write(error)
    }
}

impl<E> From<ArrowError> for Unwritten<E> {
    fn from(error: ArrowError) -> Self {
        Self::Write(match error {
            ArrowError::IoError(_, error) => error,
            other => io::Error::other(other),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{Float64Array, Int32Array, StringArray, TimestampMicrosecondArray};

    use super::*;

    fn written(format: Format, null: Option<&str>) -> String {
        let text = [Some("plain"), Some(""), None, Some("a \"b\",\nc")];
        let batch = RecordBatch::try_from_iter([
            ("n", Arc::new(Int32Array::from(vec![Some(1), None, Some(-3), Some(4)])) as _),
            ("text, quoted", Arc::new(StringArray::from(text.to_vec())) as _),
            ("x", Arc::new(Float64Array::from(vec![0.5, f64::NAN, 3.0, -0.0])) as _),
            ("at", Arc::new(TimestampMicrosecondArray::from(vec![0, 1, 2_000_000, 3])) as _),
        ])
        .unwrap();
        let mut bytes = Vec::new();
        let mut output = Output::new(&mut bytes, format, null.map(str::to_string));
        output.all(&batch.schema(), &[batch.slice(0, 1), batch.slice(1, 3)]).unwrap();
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn csv_tells_null_from_an_empty_string() {
        let expected = "n,\"text, quoted\",x,at\r\n\
            1,plain,0.5,1970-01-01 00:00:00\r\n\
            ,\"\",NaN,1970-01-01 00:00:00.000001\r\n\
            -3,,3.0,1970-01-01 00:00:02\r\n\
            4,\"a \"\"b\"\",\nc\",-0.0,1970-01-01 00:00:00.000003\r\n";
        assert_eq!(written(Format::Csv, None), expected);
    }

    #[test]
    fn csv_quotes_text_that_looks_like_null() {
        let text = written(Format::Csv, Some("plain"));
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines[1], "1,\"plain\",0.5,1970-01-01 00:00:00");
        assert_eq!(lines[3], "-3,plain,3.0,1970-01-01 00:00:02");
    }

    #[test]
    fn json_is_one_array_with_every_column_in_every_object() {
        let rows: serde_json::Value = serde_json::from_str(&written(Format::Json, None)).unwrap();
        let expected = serde_json::json!([
            {"n": 1, "text, quoted": "plain", "x": 0.5, "at": "1970-01-01T00:00:00"},
            {"n": null, "text, quoted": "", "x": null, "at": "1970-01-01T00:00:00.000001"},
            {"n": -3, "text, quoted": null, "x": 3.0, "at": "1970-01-01T00:00:02"},
            {"n": 4, "text, quoted": "a \"b\",\nc", "x": -0.0, "at": "1970-01-01T00:00:00.000003"},
        ]);
        assert_eq!(rows, expected);
    }

    #[test]
    fn jsonl_is_one_object_a_line() {
        let text = written(Format::Jsonl, None);
        let first = r#"{"n":1,"text, quoted":"plain","x":0.5,"at":"1970-01-01T00:00:00"}"#;
        assert_eq!(text.lines().next(), Some(first));
        assert_eq!(text.lines().count(), 4);
    }

    #[test]
    fn tables_escape_control_characters_of_values_and_columns() {
        let text = StringArray::from(vec![Some("a\x1B]0;b\x07\tc"), None]);
        let batch = RecordBatch::try_from_iter([("x\x1B[2J", Arc::new(text) as _)]).unwrap();
        let mut bytes = Vec::new();
        let mut output = Output::new(&mut bytes, Format::Table, None);
        output.named("v\r", &batch.schema(), &[batch]).unwrap();
        let lines = "v\\r
+------------------+
| x\\x1B[2J         |
+------------------+
| a\\x1B]0;b\\x07\\tc |
| NULL             |
+------------------+
";
        assert_eq!(String::from_utf8(bytes).unwrap(), lines);
    }

    #[test]
    fn tables_are_written_as_rows_come_and_get_wider_where_they_must() {
        let batch = |texts: Vec<&str>| {
            let text = Arc::new(StringArray::from(texts)) as _;
            RecordBatch::try_from_iter([("text", text)]).unwrap()
        };
        let first = batch(vec!["first"; FIRST_ROWS]);
        let rows =
            [first.clone(), batch(vec!["a", "b\nc"]), batch(vec!["wider"]), batch(vec!["widest"])];
        let mut bytes = Vec::new();
        let mut output = Output::new(&mut bytes, Format::Table, None);
        output.rows(&first.schema(), rows.map(Ok::<_, Infallible>)).unwrap();
        let text = String::from_utf8(bytes).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[..4], ["+-------+", "| text  |", "+-------+", "| first |"]);
        assert_eq!(
            lines[FIRST_ROWS + 3..],
            ["| a     |", "| b     |", "| c     |", "| wider |", "| widest |", "+--------+"]
        );
    }

    #[test]
    fn rows_before_an_error_are_written() {
        let batch = RecordBatch::try_from_iter([("a", Arc::new(Int32Array::from(vec![1])) as _)]);
        let batch = batch.unwrap();
        for (format, expected) in [
            (Format::Table, ""),
            (Format::Csv, "a\r\n1\r\n"),
            (Format::Json, "[{\"a\":1}"),
            (Format::Jsonl, "{\"a\":1}\n"),
        ] {
            let mut bytes = Vec::new();
            let mut output = Output::new(&mut bytes, format, None);
            let written = output.rows(&batch.schema(), [Ok(batch.clone()), Err("broken")]);
            assert!(matches!(written, Err(Unwritten::Read("broken"))), "{format:?}");
            assert_eq!(String::from_utf8(bytes).unwrap(), expected);
        }
    }

    #[test]
    fn a_result_without_rows_still_has_its_columns() {
        let schema = RecordBatch::try_from_iter([("a", Arc::new(Int32Array::from(vec![0])) as _)])
            .unwrap()
            .schema();
        let empty = |format| {
            let mut bytes = Vec::new();
            Output::new(&mut bytes, format, None).all(&schema, &[]).unwrap();
            String::from_utf8(bytes).unwrap()
        };
        assert_eq!(empty(Format::Table), "+---+\n| a |\n+---+\n+---+\n");
        assert_eq!(empty(Format::Csv), "a\r\n");
        assert_eq!(empty(Format::Json), "[]\n");
        assert_eq!(empty(Format::Jsonl), "");
    }
}
