//! Rows of COPY as messages.

use std::ops::Range;

use arrow::array::RecordBatch;
use arrow::datatypes::Schema;
use bytes::{BufMut, BytesMut};

use super::super::Format;
use super::super::catalog_type::Kind;
use super::super::column::Column;
use super::super::escape::expand;
use super::super::rejected::{Rejected, Result};
use super::super::row_encoder::{column_count, columns, end_message, plain_arrays};
use super::super::time::zone::Zone;
use super::binary::SIGNATURE;
use super::options::{CopyFormat, CopyOptions, Header};

/// The kind of a message of COPY.
const COPY_DATA: u8 = b'd';

/// Writes rows as messages `CopyData`, one for each.
pub(crate) struct CopyEncoder {
    options: CopyOptions,
    names: Vec<String>,
    kinds: Vec<Kind>,
    has_begun: bool,
}

impl CopyEncoder {
    /// An encoder of rows with these columns.
    ///
    /// # Errors
    ///
    /// If there are more columns than a row has.
    pub(crate) fn new(schema: &Schema, options: CopyOptions) -> Result<Self> {
        column_count(schema)?;
        let names = schema.fields().iter().map(|field| field.name().clone()).collect();
        Ok(Self { options, names, kinds: Kind::all(schema), has_begun: false })
    }

    /// Writes rows of a batch. If it fails, `out` has the rows before the one that failed.
    ///
    /// # Errors
    ///
    /// If a value is none that Postgres has, or a row is larger than a message.
    pub(crate) fn encode(
        &mut self,
        batch: &RecordBatch,
        rows: Range<usize>,
        out: &mut BytesMut,
    ) -> Result<()> {
        let count = rows.len();
        let arrays = plain_arrays(batch, rows, &self.kinds)?;
        let columns = columns(&arrays, &self.kinds, Zone::UTC)?;
        for row in 0..count {
            self.message(out, |encoder, out| encoder.put_row(&columns, row, out))?;
        }
        Ok(())
    }

    /// Writes the end of the data.
    ///
    /// # Errors
    ///
    /// If the names of columns are larger than a message.
    pub(crate) fn finish(&mut self, out: &mut BytesMut) -> Result<()> {
        match self.options.format {
            CopyFormat::Binary => self.message(out, |_, out| {
                out.put_i16(-1);
                Ok(())
            }),
            // The names, if there were no rows.
            CopyFormat::Text | CopyFormat::Csv => self.begin(out),
        }
    }

    /// Writes a message. In binary the first one begins with the signature, as clients expect.
    fn message(
        &mut self,
        out: &mut BytesMut,
        put: impl FnOnce(&Self, &mut BytesMut) -> Result<()>,
    ) -> Result<()> {
        self.begin(out)?;
        let start = out.len();
        out.put_u8(COPY_DATA);
        out.put_i32(0);
        let is_first = !self.has_begun;
        if is_first {
            out.put_slice(SIGNATURE);
            out.put_i64(0);
        }
        let done = put(self, out).and_then(|()| end_message(start + 1, out));
        match done {
            Ok(()) => self.has_begun = true,
            Err(_) => out.truncate(start),
        }
        done
    }

    /// Writes the names of the columns, once.
    fn begin(&mut self, out: &mut BytesMut) -> Result<()> {
        if self.has_begun || self.options.format == CopyFormat::Binary {
            return Ok(());
        }
        self.has_begun = true;
        if self.options.header == Header::Absent {
            return Ok(());
        }
        self.message(out, |encoder, out| {
            for (place, name) in encoder.names.iter().enumerate() {
                encoder.put_delimiter(place, out);
                let start = out.len();
                out.put_slice(name.as_bytes());
                encoder.escape(start, out);
            }
            out.put_u8(b'\n');
            Ok(())
        })
    }

    fn put_row(&self, columns: &[Column<'_>], row: usize, out: &mut BytesMut) -> Result<()> {
        let begin = out.len();
        let is_binary = self.options.format == CopyFormat::Binary;
        if is_binary {
            out.put_i16(columns.len() as i16);
        }
        for (place, column) in columns.iter().enumerate() {
            if is_binary {
                column.put_field(row, Format::Binary, out)?;
            } else {
                self.put_delimiter(place, out);
                self.put_value(column, row, out)?;
            }
            if out.len() - begin > i32::MAX as usize {
                return Err(Rejected::too_large());
            }
        }
        if !is_binary {
            out.put_u8(b'\n');
        }
        Ok(())
    }

    fn put_delimiter(&self, place: usize, out: &mut BytesMut) {
        if place > 0 {
            out.put_u8(self.options.delimiter);
        }
    }

    fn put_value(&self, column: &Column<'_>, row: usize, out: &mut BytesMut) -> Result<()> {
        if column.is_null(row) {
            out.put_slice(self.options.null.as_bytes());
            return Ok(());
        }
        let start = out.len();
        column.put_text(row, out)?;
        if !(column.is_plain_text() && self.is_usual()) {
            self.escape(start, out);
        }
        Ok(())
    }

    /// Whether no byte of the options is one of numbers and booleans.
    fn is_usual(&self) -> bool {
        let options = &self.options;
        matches!(options.delimiter, b'\t' | b',' | b';' | b'|')
            && options.quote == b'"'
            && matches!(options.null.as_str(), "" | "\\N")
    }

    /// Escapes or quotes the text from `start` on.
    fn escape(&self, start: usize, out: &mut BytesMut) {
        let &CopyOptions { delimiter, quote, escape, .. } = &self.options;
        if self.options.format == CopyFormat::Text {
            return expand(out, start, None, b'\\', |byte| match byte {
                0x08 => Some(b'b'),
                0x0b => Some(b'v'),
                0x0c => Some(b'f'),
                b'\n' => Some(b'n'),
                b'\r' => Some(b'r'),
                b'\t' => Some(b't'),
                b'\\' => Some(b'\\'),
                byte => (byte == delimiter).then_some(byte),
            });
        }
        let text = &out[start..];
        let is_special =
            |byte: &u8| matches!(byte, b'\n' | b'\r') || *byte == delimiter || *byte == quote;
        let is_end = text == b"\\." && self.names.len() == 1;
        if is_end || text == self.options.null.as_bytes() || text.iter().any(is_special) {
            expand(out, start, Some(quote), escape, |byte| {
                (byte == quote || byte == escape).then_some(byte)
            });
        }
    }
}
