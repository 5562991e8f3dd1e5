//! The rows of a statement, as messages.

use std::ops::Range;
use std::sync::Arc;

use alluvium::Rows;
use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use bytes::BytesMut;
use pgwire::messages::PgWireBackendMessage as Answer;
use pgwire::messages::data::{FieldDescription, RowDescription};

use super::failure::Failure;
use super::types::{Format, PgType, RowEncoder};
use crate::lines::lines;

/// How many bytes of rows are encoded before they are sent.
pub(super) const CHUNK: usize = 128 << 10;
/// How many rows are encoded in one step: the bytes of a row are not known before.
pub(super) const STEP: usize = 256;

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

    /// The next rows, at most `most` of them, which are rows of a batch; `None` after the last.
    pub(super) fn next(
        &mut self,
        most: usize,
    ) -> Result<Option<(RecordBatch, Range<usize>)>, Failure> {
        let Some((batch, first)) = self.batch()? else { return Ok(None) };
        let end = batch.num_rows().min(first + STEP.min(most));
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
    encoder: RowEncoder,
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
        columns: &Schema,
        formats: &[Format],
    ) -> Result<Self, Failure> {
        let encoder = RowEncoder::new(columns, formats)?;
        Ok(Self { rows: Pieces::of_rows(rows), encoder, sent: 0 })
    }

    /// A text, line by line, as Postgres has plans.
    pub(super) fn of_text(text: &str, formats: &[Format]) -> Result<Self, Failure> {
        let schema = plan_schema();
        let encoder = RowEncoder::new(&schema, formats)?;
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
        while out.len() < full {
            let Some((batch, rows)) = self.rows.next(left)? else { return Ok(Pulled::Finished) };
            if rows.is_empty() {
                return Ok(Pulled::Suspended);
            }
            left -= rows.len();
            self.sent += rows.len() as u64;
            self.encoder.encode(&batch, rows, out)?;
        }
        Ok(Pulled::Chunk)
    }
}

/// The column of a plan.
pub(super) fn plan_schema() -> SchemaRef {
    Arc::new(Schema::new(vec![Field::new("QUERY PLAN", DataType::Utf8, false)]))
}

/// The message that describes columns in these formats.
pub(super) fn description(schema: &Schema, formats: &[Format]) -> Answer {
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
