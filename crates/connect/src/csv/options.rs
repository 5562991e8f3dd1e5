//! The options of a CSV file.

use std::path::Path;
use std::sync::Arc;

use alluvium::{Error, Result};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};

use super::dialect::{Dialect, LineEnd};
use super::spelling::Spelling;
use crate::input::ends_with;
use crate::options::{Compression, Sample, compression, switch, texts, types, unknown};

/// The names of the options that there are.
const KNOWN: &str = "HEADERS, NULL_VALUE, DELIMITER, QUOTE, ESCAPE, COMMENT, NEW_LINE, SKIP, PADDING, COLUMNS, \
                     DECIMAL_SEPARATOR, DATE_FORMAT, TIMESTAMP_FORMAT, SAMPLE and COMPRESSION";

/// The options of a CSV file. Those of its dialect that are not given are detected.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Options {
    /// `HEADERS`: whether the first line names the columns. If it is not said, a line that is read into a table does if
    /// it has nothing but names of columns, and one is written.
    pub headers: Option<bool>,
    /// `NULL_VALUE`: the texts that stand for NULL.
    pub null_values: Option<Vec<String>>,
    /// The dialect, as far as it is given.
    pub given: Given,
    /// `SKIP`: how many lines come before the header or the first record.
    pub skip: u64,
    /// `PADDING`: whether fields that a record lacks at its end are NULL.
    pub padding: bool,
    /// `COLUMNS`: the names of the fields of each record, in order, and their types.
    pub columns: Option<Vec<(String, DataType)>>,
    /// How numbers, dates and times are written.
    pub spelling: Spelling,
    /// The names of fields of a header that are no columns, because the file's folders have them.
    pub passed: Vec<String>,
    /// `SAMPLE`: how many records are looked at to find types.
    pub sample: Sample,
    /// `COMPRESSION`: how the file is compressed, if the file is not to say.
    pub compression: Option<Compression>,
}

/// What is given of a dialect.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Given {
    /// `DELIMITER`: the character between fields.
    pub delimiter: Option<u8>,
    /// `QUOTE`: the character around fields; that there is none is given, too.
    pub quote: Option<Option<u8>>,
    /// `ESCAPE`: the character before one that is text; none if it is the quote, which is doubled then.
    pub escape: Option<Option<u8>>,
    /// `COMMENT`: the character that begins a line that is no record.
    pub comment: Option<Option<u8>>,
    /// `NEW_LINE`: the end of a line.
    pub line_end: Option<LineEnd>,
}

impl Given {
    /// Whether all of it is given.
    pub fn is_whole(&self) -> bool {
        let Self { delimiter, quote, escape, comment, line_end } = self;
        delimiter.is_some()
            && quote.is_some()
            && escape.is_some()
            && comment.is_some()
            && line_end.is_some()
    }

    /// The dialect with these characters, and others as `usual` has them.
    pub fn or(&self, usual: Dialect) -> Dialect {
        let quote = self.quote.unwrap_or(usual.quote);
        Dialect {
            delimiter: self.delimiter.unwrap_or(usual.delimiter),
            quote,
            // A quote that is its own escape is doubled.
            escape: self.escape.unwrap_or(usual.escape).filter(|escape| Some(*escape) != quote),
            comment: self.comment.unwrap_or(usual.comment),
            line_end: self.line_end.unwrap_or(usual.line_end),
        }
    }
}

/// The dialect that the name of a file says.
pub fn usual(path: &Path) -> Dialect {
    let delimiter = match path {
        path if ends_with(path, &[".tsv", ".tab"]) => b'\t',
        path if ends_with(path, &[".psv"]) => b'|',
        _ => b',',
    };
    Dialect { delimiter, ..Dialect::default() }
}

impl Options {
    /// Reads the options. The last of two that have one name counts.
    pub fn read(options: &[(String, String)]) -> Result<Self> {
        let mut this = Self::default();
        options.iter().try_for_each(|(name, value)| this.set(name, value))?;
        let Dialect { delimiter, quote, escape, .. } = this.given.or(Dialect::default());
        if quote == Some(delimiter) && this.given.delimiter.is_some() {
            return Err(Error::source("DELIMITER and QUOTE are the same"));
        }
        if escape == Some(delimiter) && this.given.delimiter.is_some() {
            return Err(Error::source("DELIMITER and ESCAPE are the same"));
        }
        Ok(this)
    }

    /// Sets one option; fails if there is none of this name, or it has no such value.
    pub fn set(&mut self, name: &str, value: &str) -> Result<()> {
        let written = name.to_ascii_uppercase();
        let name = duckdb_name(&written).unwrap_or(&written);
        let optional = |value: &str| match value {
            "" => Ok(None),
            value => character(name, value).map(Some),
        };
        match name {
            "HEADERS" => self.headers = Some(switch(name, value)?),
            "NULL_VALUE" => self.null_values = Some(texts(value)),
            "DELIMITER" => self.given.delimiter = Some(character(name, value)?),
            "QUOTE" => self.given.quote = Some(optional(value)?),
            "ESCAPE" => self.given.escape = Some(optional(value)?),
            "COMMENT" => self.given.comment = Some(optional(value)?),
            "NEW_LINE" => self.given.line_end = Some(line_end(value)?),
            "SKIP" => {
                self.skip = value.parse().map_err(|_| {
                    Error::source(format!("SKIP is a number of lines, not \"{value}\""))
                })?;
            }
            "PADDING" => self.padding = switch(name, value)?,
            "COLUMNS" => self.columns = Some(types(name, value)?),
            "DECIMAL_SEPARATOR" => self.spelling.set_decimal_separator(value)?,
            "DATE_FORMAT" => self.spelling.set_date_format(value)?,
            "TIMESTAMP_FORMAT" => self.spelling.set_timestamp_format(value)?,
            "SAMPLE" => self.sample = Sample::read(value)?,
            "COMPRESSION" => self.compression = compression(value)?,
            // What is not given is detected in any case.
            "AUTO_DETECT" if switch(name, value)? => {}
            _ => return Err(unknown(name, "CSV", KNOWN)),
        }
        Ok(())
    }

    /// The columns that are given.
    pub fn schema(&self) -> Option<SchemaRef> {
        let field = |(name, kind): &(String, DataType)| Field::new(name, kind.clone(), true);
        let columns = self.columns.as_ref()?;
        Some(Arc::new(Schema::new(columns.iter().map(field).collect::<Vec<_>>())))
    }

    /// The texts that stand for NULL: the empty one if none is given.
    pub fn null_values(&self) -> Vec<String> {
        self.null_values.clone().unwrap_or_else(|| vec![String::new()])
    }
}

/// The name of an option that DuckDB calls by another one.
fn duckdb_name(name: &str) -> Option<&'static str> {
    Some(match name {
        "HEADER" => "HEADERS",
        "DELIM" | "SEP" => "DELIMITER",
        "NULL" | "NULLSTR" => "NULL_VALUE",
        "NULL_PADDING" => "PADDING",
        "DATEFORMAT" => "DATE_FORMAT",
        "TIMESTAMPFORMAT" => "TIMESTAMP_FORMAT",
        "SAMPLE_SIZE" => "SAMPLE",
        _ => return None,
    })
}

fn line_end(value: &str) -> Result<LineEnd> {
    match value {
        "\\n" | "\n" | "\\r\\n" | "\r\n" => Ok(LineEnd::Feed),
        "\\r" | "\r" => Ok(LineEnd::Return),
        _ => Err(Error::source(format!("NEW_LINE is \\n, \\r\\n or \\r, not \"{value}\""))),
    }
}

fn character(name: &str, value: &str) -> Result<u8> {
    let hexadecimal =
        value.strip_prefix("\\x").and_then(|digits| u8::from_str_radix(digits, 16).ok());
    match value.as_bytes() {
        b"\\t" => Ok(b'\t'),
        &[byte] if may_be(byte) => Ok(byte),
        _ => hexadecimal.filter(|byte| may_be(*byte)).ok_or_else(|| {
            Error::source(format!("{name} is one ASCII character, not \"{value}\""))
        }),
    }
}

fn may_be(byte: u8) -> bool {
    byte.is_ascii() && !matches!(byte, b'\n' | b'\r' | 0)
}
