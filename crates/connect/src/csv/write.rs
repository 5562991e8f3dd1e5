//! CSV as it is written: RFC 4180, so that NULL and an empty string differ.

use std::fmt::Write as _;
use std::io::{self, Write};

use alluvium::{Result, SinkRequest, SinkWriter};
use arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use arrow::datatypes::{DataType, FieldRef};
use arrow::error::ArrowError;
use arrow::json::writer::{EncoderOptions, NullableEncoder, make_encoder};
use arrow::util::display::{ArrayFormatter, FormatOptions};

use super::options::Options;
use crate::input::failed;
use crate::options::Compression;
use crate::target::Target;

const END: &[u8] = b"\r\n";

/// Writes rows to a file.
pub struct CsvWriter {
    target: Target,
    form: Form,
    record: Vec<u8>,
}

/// How fields look.
struct Form {
    delimiter: u8,
    quote: Option<u8>,
    null_value: String,
}

impl CsvWriter {
    pub fn create(request: &SinkRequest, options: &Options) -> Result<Self> {
        let path = &request.path;
        let compression = options.compression.unwrap_or(Compression::of(path));
        let target = Target::create(path, compression, request.visibility)
            .map_err(|error| failed("write", path, &error))?;
        let null_value = options.null_value.clone().unwrap_or_default();
        let form = Form { delimiter: options.delimiter, quote: options.quote, null_value };
        let mut writer = Self { target, form, record: Vec::new() };
        if options.headers.unwrap_or(true) {
            for (index, field) in request.schema.fields().iter().enumerate() {
                writer.form.delimit(&mut writer.record, index);
                let pushed = writer.form.push(&mut writer.record, field.name());
                pushed.map_err(|error| failed("write", path, &error))?;
            }
            writer.end()?;
        }
        Ok(writer)
    }

    fn end(&mut self) -> Result<()> {
        self.record.extend_from_slice(END);
        let written = self.target.write_all(&self.record);
        self.record.clear();
        written.map_err(|error| failed("write", self.target.path(), &error))
    }
}

impl SinkWriter for CsvWriter {
    fn write(&mut self, rows: &RecordBatch) -> Result<()> {
        let path = self.target.path().to_owned();
        let wrong = |error: ArrowError| failed("write", &path, &io::Error::other(error));
        let options = FormatOptions::default();
        let json = EncoderOptions::default().with_explicit_nulls(true);
        let schema = rows.schema();
        let columns = schema.fields().iter().zip(rows.columns());
        let columns = columns.map(|(field, column)| Text::new(field, column, &options, &json));
        let mut columns = columns.collect::<std::result::Result<Vec<_>, _>>().map_err(wrong)?;
        let mut text = String::new();
        for row in 0..rows.num_rows() {
            for (index, column) in columns.iter_mut().enumerate() {
                self.form.delimit(&mut self.record, index);
                if rows.column(index).is_null(row) {
                    self.record.extend_from_slice(self.form.null_value.as_bytes());
                } else {
                    text.clear();
                    column.put(row, &mut text).map_err(wrong)?;
                    let pushed = self.form.push(&mut self.record, &text);
                    pushed.map_err(|error| failed("write", &path, &error))?;
                }
            }
            self.end()?;
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        self.target.flush().map_err(|error| failed("write", self.target.path(), &error))
    }

    fn finish(self: Box<Self>) -> Result<()> {
        let path = self.target.path().to_owned();
        self.target.finish().map_err(|error| failed("write", &path, &error))
    }
}

/// The values of a column as text.
enum Text<'a> {
    Plain(ArrayFormatter<'a>),
    Bytes(&'a ArrayRef),
    Json(NullableEncoder<'a>),
}

impl<'a> Text<'a> {
    fn new(
        field: &'a FieldRef,
        column: &'a ArrayRef,
        options: &'a FormatOptions<'a>,
        json: &'a EncoderOptions,
    ) -> std::result::Result<Self, ArrowError> {
        Ok(match column.data_type() {
            DataType::Binary => Self::Bytes(column),
            kind if kind.is_nested() => Self::Json(make_encoder(field, column, json)?),
            _ => Self::Plain(ArrayFormatter::try_new(column, options)?),
        })
    }

    fn put(&mut self, row: usize, text: &mut String) -> std::result::Result<(), ArrowError> {
        let wrong = |_| ArrowError::CsvError("a value cannot be shown".to_owned());
        match self {
            Self::Plain(values) => write!(text, "{}", values.value(row)).map_err(wrong),
            Self::Bytes(values) => {
                text.push_str("\\x");
                let mut bytes = values.as_binary::<i32>().value(row).iter();
                bytes.try_for_each(|byte| write!(text, "{byte:02x}")).map_err(wrong)
            }
            Self::Json(values) => {
                let mut json = std::mem::take(text).into_bytes();
                values.encode(row, &mut json);
                *text = String::from_utf8(json)
                    .map_err(|_| ArrowError::CsvError("JSON that is not UTF-8".to_owned()))?;
                Ok(())
            }
        }
    }
}

impl Form {
    fn delimit(&self, record: &mut Vec<u8>, index: usize) {
        if index > 0 {
            record.push(self.delimiter);
        }
    }

    /// Adds a field, in quotes if it would be read back as something else without; fails if there are none.
    fn push(&self, record: &mut Vec<u8>, text: &str) -> io::Result<()> {
        let special = |byte: &u8| {
            *byte == self.delimiter || Some(*byte) == self.quote || matches!(byte, b'\r' | b'\n')
        };
        let plain =
            !text.is_empty() && text != self.null_value && !text.as_bytes().iter().any(special);
        if plain {
            record.extend_from_slice(text.as_bytes());
            return Ok(());
        }
        let Some(quote) = self.quote else {
            return Err(io::Error::other(format!("{text:?} needs quotes, and QUOTE is ''")));
        };
        record.push(quote);
        for &byte in text.as_bytes() {
            if byte == quote {
                record.push(quote);
            }
            record.push(byte);
        }
        record.push(quote);
        Ok(())
    }
}
