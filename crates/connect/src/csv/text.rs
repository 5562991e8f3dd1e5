//! Rows as CSV text: RFC 4180, so that NULL and an empty string differ.

use std::fmt::Write as _;
use std::io::{self, Write};

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
#[cfg(feature = "postgres")]
use arrow::array::{StringArray, StringBuilder};
use arrow::datatypes::{DataType, FieldRef, Schema};
use arrow::error::ArrowError;
use arrow::json::writer::{EncoderOptions, NullableEncoder, make_encoder};
use arrow::util::display::{ArrayFormatter, FormatOptions};

const END: &[u8] = b"\r\n";

/// Formats rows as CSV records. Lines end with CR LF.
///
/// A field stands in quotes only if it would be read back as something else without them: if it is empty, equals the
/// text for NULL, or contains a delimiter, a quote or the end of a line. Values are written so that they can be read back:
/// timestamps as SQL writes them, bytes as `\x` and hexadecimal digits, lists, structs and maps as JSON.
pub struct CsvText {
    pub(super) delimiter: u8,
    pub(super) quote: Option<u8>,
    /// The character before a quote and before itself; `None` if a quote is doubled.
    pub(super) escape: Option<u8>,
    pub(super) null_value: String,
}

impl CsvText {
    /// Records with commas, double quotes, and `null_value` for NULL.
    pub fn with_null(null_value: &str) -> Self {
        Self { delimiter: b',', quote: Some(b'"'), escape: None, null_value: null_value.to_owned() }
    }

    /// Writes the header line.
    pub fn write_header(&self, schema: &Schema, to: &mut impl Write) -> io::Result<()> {
        let mut record = Vec::new();
        for (index, field) in schema.fields().iter().enumerate() {
            self.delimit(&mut record, index);
            self.push(&mut record, field.name())?;
        }
        record.extend_from_slice(END);
        to.write_all(&record)
    }

    /// Writes a record for each row.
    pub fn write_rows(&self, rows: &RecordBatch, to: &mut impl Write) -> io::Result<()> {
        let options = FormatOptions::default();
        let json = EncoderOptions::default().with_explicit_nulls(true);
        let schema = rows.schema();
        let columns = schema.fields().iter().zip(rows.columns());
        let columns = columns.map(|(field, column)| Text::of(field, column, &options, &json));
        let columns = columns.collect::<Result<Vec<_>, ArrowError>>();
        let mut columns = columns.map_err(io::Error::other)?;
        // Unlike `is_null`, this knows the NULLs of a column without a type.
        let nulls: Vec<_> = rows.columns().iter().map(Array::logical_nulls).collect();
        let (mut record, mut text) = (Vec::new(), String::new());
        for row in 0..rows.num_rows() {
            record.clear();
            for (index, column) in columns.iter_mut().enumerate() {
                self.delimit(&mut record, index);
                if nulls[index].as_ref().is_some_and(|nulls| nulls.is_null(row)) {
                    record.extend_from_slice(self.null_value.as_bytes());
                } else {
                    text.clear();
                    column.put(row, &mut text).map_err(io::Error::other)?;
                    self.push(&mut record, &text)?;
                }
            }
            record.extend_from_slice(END);
            to.write_all(&record)?;
        }
        Ok(())
    }

    fn delimit(&self, record: &mut Vec<u8>, index: usize) {
        if index > 0 {
            record.push(self.delimiter);
        }
    }

    /// Adds a field, in quotes if it needs them; fails if it does and there are none.
    fn push(&self, record: &mut Vec<u8>, text: &str) -> io::Result<()> {
        let special = |byte: &u8| {
            let special = [Some(self.delimiter), self.quote, self.escape];
            special.contains(&Some(*byte)) || matches!(byte, b'\r' | b'\n')
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
            if byte == quote || Some(byte) == self.escape {
                record.push(self.escape.unwrap_or(quote));
            }
            record.push(byte);
        }
        record.push(quote);
        Ok(())
    }
}

/// The values of a column as records have them, before they stand in quotes.
#[cfg(feature = "postgres")]
pub(crate) fn texts(field: &FieldRef, column: &ArrayRef) -> Result<StringArray, ArrowError> {
    let options = FormatOptions::default();
    let json = EncoderOptions::default().with_explicit_nulls(true);
    let mut values = Text::of(field, column, &options, &json)?;
    let nulls = column.logical_nulls();
    let (mut texts, mut text) = (StringBuilder::new(), String::new());
    for row in 0..column.len() {
        if nulls.as_ref().is_some_and(|nulls| nulls.is_null(row)) {
            texts.append_null();
        } else {
            text.clear();
            values.put(row, &mut text)?;
            texts.append_value(&text);
        }
    }
    Ok(texts.finish())
}

/// The values of a column as text.
enum Text<'a> {
    Plain(ArrayFormatter<'a>),
    Timestamp(ArrayFormatter<'a>),
    Bytes(&'a ArrayRef),
    Json(NullableEncoder<'a>),
}

impl<'a> Text<'a> {
    fn of(
        field: &'a FieldRef,
        column: &'a ArrayRef,
        options: &'a FormatOptions<'a>,
        json: &'a EncoderOptions,
    ) -> Result<Self, ArrowError> {
        Ok(match column.data_type() {
            DataType::Binary => Self::Bytes(column),
            DataType::Timestamp(..) => Self::Timestamp(ArrayFormatter::try_new(column, options)?),
            kind if kind.is_nested() => Self::Json(make_encoder(field, column, json)?),
            _ => Self::Plain(ArrayFormatter::try_new(column, options)?),
        })
    }

    fn put(&mut self, row: usize, text: &mut String) -> Result<(), ArrowError> {
        let wrong = |_| ArrowError::CsvError("a value cannot be shown".to_owned());
        match self {
            Self::Plain(values) => write!(text, "{}", values.value(row)).map_err(wrong),
            Self::Timestamp(values) => {
                write!(text, "{}", values.value(row)).map_err(wrong)?;
                if let Some(at) = text.find('T') {
                    text.replace_range(at..=at, " ");
                }
                Ok(())
            }
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
