//! The rows of a statement, as messages.

use std::sync::Arc;

use alluvium::Rows;
use arrow::array::{ArrayRef, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use bytes::BytesMut;
use pgwire::messages::PgWireBackendMessage as Answer;
use pgwire::messages::data::{FieldDescription, RowDescription};

use super::failure::Failure;
use super::types::{Format, PgType, RowEncoder};

/// How many bytes of rows are encoded before they are sent.
pub(super) const CHUNK: usize = 128 << 10;

/// The rows of a statement that are left.
pub(super) struct Results {
    source: Source,
    encoder: RowEncoder,
    /// A batch that is not sent whole, and the first row of it that is not sent.
    begun: Option<(RecordBatch, usize)>,
    sent: u64,
}

enum Source {
    Rows(Rows),
    /// There are no more batches.
    Over,
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
    /// The answer to a query, in these formats.
    pub(super) fn of_rows(rows: Rows, formats: &[Format]) -> Result<Self, Failure> {
        let encoder = RowEncoder::new(rows.schema(), formats)?;
        Ok(Self { source: Source::Rows(rows), encoder, begun: None, sent: 0 })
    }

    /// A text, line by line, as Postgres has plans.
    pub(super) fn of_text(text: &str, formats: &[Format]) -> Result<Self, Failure> {
        let schema = plan_schema();
        let lines: ArrayRef = Arc::new(StringArray::from_iter_values(text.lines()));
        let encoder = RowEncoder::new(&schema, formats)?;
        let batch = RecordBatch::try_new(schema, vec![lines]).map_err(alluvium::Error::from)?;
        Ok(Self { source: Source::Over, encoder, begun: Some((batch, 0)), sent: 0 })
    }

    /// How many rows were encoded since this was asked for the last time.
    pub(super) fn take_sent(&mut self) -> u64 {
        std::mem::take(&mut self.sent)
    }

    /// Encodes rows, at most `most` of them, until there are enough to be sent.
    pub(super) fn pull(&mut self, most: u64, out: &mut BytesMut) -> Result<Pulled, Failure> {
        let mut left = usize::try_from(most).unwrap_or(usize::MAX);
        let full = out.len() + CHUNK;
        loop {
            let Some((batch, first)) = self.next()? else { return Ok(Pulled::Finished) };
            if left == 0 {
                self.begun = Some((batch, first));
                return Ok(Pulled::Suspended);
            }
            // In steps, as the bytes of a row are not known before.
            let step = 256.min(left).min(batch.num_rows() - first);
            self.encoder.encode(&batch, first..first + step, out)?;
            left -= step;
            self.sent += step as u64;
            if first + step < batch.num_rows() {
                self.begun = Some((batch, first + step));
            }
            if out.len() >= full {
                return Ok(Pulled::Chunk);
            }
        }
    }

    /// The next rows: a batch, and the first row of it that is left.
    fn next(&mut self) -> Result<Option<(RecordBatch, usize)>, Failure> {
        if let Some(begun) = self.begun.take() {
            return Ok(Some(begun));
        }
        loop {
            let Source::Rows(rows) = &mut self.source else { return Ok(None) };
            match rows.next().transpose()? {
                Some(batch) if batch.num_rows() == 0 => (),
                Some(batch) => return Ok(Some((batch, 0))),
                None => self.source = Source::Over,
            }
        }
    }
}

/// The column of a plan.
pub(super) fn plan_schema() -> SchemaRef {
    Arc::new(Schema::new(vec![Field::new("QUERY PLAN", DataType::Utf8, false)]))
}

/// The message that describes columns in these formats.
pub(super) fn description(schema: &Schema, formats: &[Format]) -> Answer {
    let fields = schema.fields().iter().enumerate().map(|(column, field)| {
        let of = PgType::of(field.data_type());
        let format = format_of(formats, column);
        FieldDescription::new(
            field.name().clone(),
            0,
            0,
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
