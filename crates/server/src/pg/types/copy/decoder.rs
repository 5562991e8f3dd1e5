//! Data of COPY as batches.

use std::collections::VecDeque;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;

use super::super::field::Field;
use super::super::rejected::{Result, shown};
use super::batch::BatchBuilder;
use super::binary::Binary;
use super::csv::Csv;
use super::fields::{Fields, Notation, Raw};
use super::lines::Lines;
use super::options::{CopyFormat, CopyOptions, Header, malformed, too_long};
use super::text::Text;

/// The line that ends the data of text and CSV.
const END: &[u8] = b"\\.";
/// The room that is kept for the begin of a row.
const IDLE: usize = 64 << 10;

/// Reads data that come in pieces, which may begin and end anywhere. It keeps the begin of a row, and the rows of a batch.
pub(crate) struct CopyDecoder {
    notation: Notations,
    delimiter: u8,
    header: Header,
    most_bytes: usize,
    batch: BatchBuilder,
    full: VecDeque<RecordBatch>,
    /// The begin of a row.
    pending: Vec<u8>,
    /// A value without its escapes.
    space: Vec<u8>,
    /// The line of the next row, or in binary its number, counted from one.
    line: u64,
    /// Whether the line that ends the data was read.
    is_over: bool,
}

enum Notations {
    Text(Lines, Text),
    Csv(Lines, Csv),
    Binary(Binary),
}

impl CopyDecoder {
    /// A decoder of rows with these columns, which have their order.
    ///
    /// # Errors
    ///
    /// If a type cannot be read.
    pub(crate) fn new(schema: SchemaRef, options: &CopyOptions) -> Result<Self> {
        let null = options.null.clone().into_bytes();
        // A column of a batch has at most 2 GB of text.
        let most_bytes = options.most_bytes.min(1 << 30);
        let notation = match options.format {
            CopyFormat::Text => Notations::Text(Lines::new(options), Text { null }),
            CopyFormat::Csv => {
                let csv = Csv { null, quote: options.quote, escape: options.escape };
                Notations::Csv(Lines::new(options), csv)
            }
            CopyFormat::Binary => Notations::Binary(Binary::new(most_bytes)),
        };
        Ok(Self {
            notation,
            delimiter: options.delimiter,
            header: options.header,
            most_bytes,
            batch: BatchBuilder::new(schema)?,
            full: VecDeque::new(),
            pending: Vec::new(),
            space: Vec::new(),
            line: 1,
            is_over: false,
        })
    }

    /// Reads a piece of the data. Batches that it fills are to be taken before the next piece.
    ///
    /// # Errors
    ///
    /// If a row is malformed or a value is none of its column's type: then nothing more can be read.
    pub(crate) fn push(&mut self, piece: &[u8]) -> Result<()> {
        self.read(piece, false)
    }

    /// Ends the data.
    ///
    /// # Errors
    ///
    /// As [`CopyDecoder::push`], and if a row has only begun.
    pub(crate) fn finish(&mut self) -> Result<()> {
        self.read(&[], true)?;
        if let Notations::Binary(binary) = &self.notation {
            binary.end(&self.pending)?;
        }
        self.full.extend(self.batch.take()?);
        Ok(())
    }

    /// Takes a batch that is full, or the last one.
    pub(crate) fn take(&mut self) -> Option<RecordBatch> {
        self.full.pop_front()
    }

    fn read(&mut self, piece: &[u8], is_last: bool) -> Result<()> {
        let mut pending = std::mem::take(&mut self.pending);
        pending.extend_from_slice(piece);
        let mut read = 0;
        while !self.is_over {
            let Some(bytes) = self.row(&pending[read..], is_last)? else { break };
            read += bytes;
            if self.batch.is_full() {
                self.full.extend(self.batch.take()?);
            }
        }
        if self.is_over {
            pending.clear();
        } else {
            pending.drain(..read);
        }
        if pending.len() > self.most_bytes {
            return Err(too_long(self.most_bytes, self.line));
        }
        if pending.is_empty() && pending.capacity() > IDLE {
            pending = Vec::new();
        }
        self.pending = pending;
        Ok(())
    }

    /// Reads a row and returns its bytes; `None` if it is incomplete.
    fn row(&mut self, data: &[u8], is_last: bool) -> Result<Option<usize>> {
        let (lines, notation): (_, &dyn Notation) = match &mut self.notation {
            Notations::Text(lines, text) => (lines, text),
            Notations::Csv(lines, csv) => (lines, csv),
            Notations::Binary(binary) => {
                let before = self.batch.rows();
                let bytes = binary.next(data, self.line, &mut self.batch)?;
                self.line += (self.batch.rows() - before) as u64;
                return Ok(bytes);
            }
        };
        let line = lines.next(data, is_last).map_err(|rejected| rejected.at(self.line, None))?;
        let Some(found) = line else { return Ok(None) };
        if found.length > self.most_bytes {
            return Err(too_long(self.most_bytes, self.line));
        }
        let row = &data[..found.length];
        if row == END {
            self.is_over = true;
            return Ok(Some(found.whole));
        }
        let line = self.line;
        self.line += found.lines;
        let mut fields = Fields::new(row, self.delimiter);
        let space = &mut self.space;
        if self.header != Header::Absent {
            if self.header == Header::Checked {
                check_header(&mut fields, notation, space, &self.batch)?;
            }
            self.header = Header::Absent;
            return Ok(Some(found.whole));
        }
        while fields.rest.is_some() && !(row.is_empty() && self.batch.names().len() == 0) {
            let raw =
                notation.field(&mut fields, space).map_err(|rejected| rejected.at(line, None))?;
            let field = match raw {
                Raw::Null => None,
                Raw::Same(bytes) => Some(Field::text(bytes)),
                Raw::Unescaped => Some(Field::text(space)),
            };
            self.batch.append(line, field)?;
        }
        self.batch.end_row(line)?;
        Ok(Some(found.whole))
    }
}

/// Compares the names of a header with those of the columns.
fn check_header(
    fields: &mut Fields<'_>,
    notation: &dyn Notation,
    space: &mut Vec<u8>,
    batch: &BatchBuilder,
) -> Result<()> {
    for (place, name) in batch.names().enumerate() {
        if fields.rest.is_none() {
            let message = format!(
                "wrong number of fields in header line: got {place}, expected {}",
                batch.names().len()
            );
            return Err(malformed(message).at(1, None));
        }
        let given = match notation.field(fields, space)? {
            Raw::Null => &[],
            Raw::Same(bytes) => bytes,
            Raw::Unescaped => space.as_slice(),
        };
        if given != name.as_bytes() {
            let message = format!(
                "column name mismatch in header line field {}: got \"{}\", expected \"{name}\"",
                place + 1,
                shown(given)
            );
            return Err(malformed(message).at(1, None));
        }
    }
    match fields.rest {
        Some(_) => Err(malformed("wrong number of fields in header line: too many").at(1, None)),
        None => Ok(()),
    }
}
