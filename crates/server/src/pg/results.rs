//! The rows of a statement, as messages.

use std::ops::Range;
use std::sync::Arc;

use alluvium::Rows;
use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use bytes::BytesMut;
use pgwire::messages::PgWireBackendMessage as Answer;
use pgwire::messages::data::{FieldDescription, RowDescription};

use super::arrow_statement::{self, ArrowEncoder};
use super::failure::Failure;
use super::types::{Format, PgType, RowEncoder};
use crate::lines::lines;

/// How many bytes of rows are encoded before they are sent.
pub(super) const CHUNK: usize = 128 << 10;
/// How many rows are encoded in one step: the bytes of a row are not known before.
pub(super) const STEP: usize = 256;

/// How rows are sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Formats {
    /// A field for each column, in these formats: one may stand for all, none is text.
    Fields(Vec<Format>),
    /// As [Arrow](arrow_statement).
    Arrow,
}

impl Formats {
    /// All columns as text.
    pub(super) const TEXT: Self = Self::Fields(Vec::new());
}

/// Writes rows as messages.
pub(super) enum Encoder {
    Fields(RowEncoder),
    Arrow(ArrowEncoder),
}

impl Encoder {
    /// An encoder of rows with these columns.
    pub(super) fn new(columns: &SchemaRef, formats: &Formats) -> Result<Self, Failure> {
        Ok(match formats {
            Formats::Fields(formats) => Self::Fields(RowEncoder::new(columns, formats)?),
            Formats::Arrow => Self::Arrow(ArrowEncoder::new(columns.clone())),
        })
    }

    /// Writes what stands before the rows.
    pub(super) fn begin(&mut self, out: &mut BytesMut) -> Result<(), Failure> {
        match self {
            Self::Fields(_) => Ok(()),
            Self::Arrow(encoder) => encoder.begin(out),
        }
    }

    /// Writes rows of a batch.
    pub(super) fn encode(
        &mut self,
        batch: &RecordBatch,
        rows: Range<usize>,
        out: &mut BytesMut,
    ) -> Result<(), Failure> {
        match self {
            Self::Fields(encoder) => Ok(encoder.encode(batch, rows, out)?),
            Self::Arrow(encoder) => encoder.encode(&batch.slice(rows.start, rows.len()), out),
        }
    }

    /// How many rows of a batch it encodes in one step.
    fn step(&self, batch: &RecordBatch) -> usize {
        match self {
            Self::Fields(_) => STEP,
            Self::Arrow(_) => arrow_statement::rows_of_message(batch),
        }
    }
}

/// Rows that are left, in pieces.
pub(super) struct Pieces {
    /// `None` after the last batch.
    rows: Option<Rows>,
    /// A batch that was not given whole, and the first row of it that was not.
    begun: Option<(RecordBatch, usize)>,
}

impl Pieces {
    /// The answer to a query.
    pub(super) fn of_rows(rows: Rows) -> Self {
        Self { rows: Some(rows), begun: None }
    }

    fn of_batch(batch: RecordBatch) -> Self {
        let begun = (batch.num_rows() > 0).then_some((batch, 0));
        Self { rows: None, begun }
    }

    /// The next rows, at most `most` of them and a step, which are rows of a batch; `None` after the last.
    pub(super) fn next(
        &mut self,
        most: usize,
        step: impl FnOnce(&RecordBatch) -> usize,
    ) -> Result<Option<(RecordBatch, Range<usize>)>, Failure> {
        let Some((batch, first)) = self.batch()? else { return Ok(None) };
        let end = batch.num_rows().min(first.saturating_add(step(&batch).min(most)));
        if end < batch.num_rows() {
            self.begun = Some((batch.clone(), end));
        }
        Ok(Some((batch, first..end)))
    }

    /// The next batch that has rows, and the first of these that is left.
    fn batch(&mut self) -> Result<Option<(RecordBatch, usize)>, Failure> {
        if let Some(begun) = self.begun.take() {
            return Ok(Some(begun));
        }
        while let Some(rows) = &mut self.rows {
            match rows.next().transpose()? {
                Some(batch) if batch.num_rows() == 0 => {}
                Some(batch) => return Ok(Some((batch, 0))),
                None => self.rows = None,
            }
        }
        Ok(None)
    }
}

/// The rows of a statement that are left.
pub(super) struct Results {
    rows: Pieces,
    encoder: Encoder,
    sent: u64,
}

/// Where pulling rows has stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pulled {
    /// So that what is encoded can be sent.
    Chunk,
    /// After as many rows as were asked for; there may be more.
    Suspended,
    /// After the last row.
    Finished,
}

impl Results {
    /// The answer to a query, whose columns are described so, in these formats.
    pub(super) fn of_rows(
        rows: Rows,
        columns: &SchemaRef,
        formats: &Formats,
    ) -> Result<Self, Failure> {
        let encoder = Encoder::new(columns, formats)?;
        Ok(Self { rows: Pieces::of_rows(rows), encoder, sent: 0 })
    }

    /// A text, line by line, as Postgres has plans.
    pub(super) fn of_text(text: &str, formats: &Formats) -> Result<Self, Failure> {
        let schema = plan_schema();
        let encoder = Encoder::new(&schema, formats)?;
        Ok(Self { rows: Pieces::of_batch(lines(text, schema)?), encoder, sent: 0 })
    }

    /// How many rows were encoded since this was asked for the last time.
    pub(super) fn take_sent(&mut self) -> u64 {
        std::mem::take(&mut self.sent)
    }

    /// Encodes rows, at most `most` of them, until there are enough to be sent.
    pub(super) fn pull(&mut self, most: u64, out: &mut BytesMut) -> Result<Pulled, Failure> {
        let mut left = usize::try_from(most).unwrap_or(usize::MAX);
        let full = out.len() + CHUNK;
        let Self { rows, encoder, .. } = self;
        encoder.begin(out)?;
        while out.len() < full {
            let next = rows.next(left, |batch| encoder.step(batch))?;
            let Some((batch, rows)) = next else { return Ok(Pulled::Finished) };
            if rows.is_empty() {
                return Ok(Pulled::Suspended);
            }
            left -= rows.len();
            self.sent += rows.len() as u64;
            encoder.encode(&batch, rows, out)?;
        }
        Ok(Pulled::Chunk)
    }
}

/// The column of a plan.
pub(super) fn plan_schema() -> SchemaRef {
    Arc::new(Schema::new(vec![Field::new("QUERY PLAN", DataType::Utf8, false)]))
}

/// The message that describes columns in these formats.
pub(super) fn description(schema: &Schema, formats: &Formats) -> Answer {
    let formats = match formats {
        Formats::Fields(formats) => formats,
        Formats::Arrow => {
            return description(
                &arrow_statement::described(),
                &Formats::Fields(vec![Format::Binary]),
            );
        }
    };
    let fields = schema.fields().iter().enumerate().map(|(column, field)| {
        let of = PgType::of_field(field);
        let format = format_of(formats, column);
        FieldDescription::new(
            field.name().clone(),
            0,
            of.number(),
            of.oid(),
            of.length(),
            of.modifier(),
            format.code(),
        )
    });
    Answer::RowDescription(RowDescription::new(fields.collect()))
}

/// The format of a column: one may stand for all, none is text.
pub(super) fn format_of(formats: &[Format], column: usize) -> Format {
    match formats {
        [] => Format::Text,
        [one] => *one,
        several => several.get(column).copied().unwrap_or(Format::Text),
    }
}
