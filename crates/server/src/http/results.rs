//! The rows of a statement, encoded as they are pulled.

use alluvium::Result;
use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use bytes::Bytes;

use super::encoder::{Encoder, Format};
use super::problem::Problem;
use crate::traffic::Outcome;

/// How many bytes are encoded before they are sent.
const CHUNK: usize = 128 << 10;
/// How many bytes of rows, as they are in memory, are encoded in one step.
const STEP: usize = 256 << 10;

/// Rows that come batch by batch.
pub(super) type Batches = Box<dyn Iterator<Item = Result<RecordBatch>> + Send>;

/// The rows of a statement that are left.
pub(super) struct Results {
    batches: Batches,
    /// A batch that was not encoded whole, and the first of its rows that was not.
    begun: Option<(RecordBatch, usize)>,
    encoder: Encoder,
}

/// Encoded rows.
pub(super) struct Chunk {
    pub(super) bytes: Bytes,
    pub(super) end: End,
}

/// What comes after a chunk.
#[derive(Debug, PartialEq)]
pub(super) enum End {
    /// Others may follow.
    Open,
    /// It is the last.
    Finished,
    /// It is the last, and the answer is not whole: the connection is to be cut unless it says so.
    Broken { outcome: Outcome, says_so: bool },
}

/// Why rows have ended before the last.
struct Stopped {
    problem: Problem,
    /// Whether the bytes before it are whole rows.
    is_between_rows: bool,
}

impl Results {
    /// Rows with these columns, in this format.
    pub(super) fn new(
        format: Format,
        schema: &SchemaRef,
        batches: Batches,
    ) -> std::result::Result<Self, Problem> {
        Ok(Self { batches, begun: None, encoder: Encoder::new(format, schema)? })
    }

    /// The first chunk. An error before the first row is one of the whole answer.
    pub(super) fn first(&mut self) -> std::result::Result<Chunk, Problem> {
        let head = self.encoder.len();
        match self.fill() {
            Err(Stopped { problem, .. }) if self.encoder.len() == head => Err(problem),
            filled => Ok(self.chunk(filled)),
        }
    }

    /// The next chunk.
    pub(super) fn next(&mut self) -> Chunk {
        let filled = self.fill();
        self.chunk(filled)
    }

    fn chunk(&mut self, filled: std::result::Result<End, Stopped>) -> Chunk {
        let end = filled.unwrap_or_else(|Stopped { problem, is_between_rows }| {
            let says_so = is_between_rows && self.encoder.fail(&problem);
            End::Broken { outcome: problem.outcome(), says_so }
        });
        Chunk { bytes: self.encoder.take(), end }
    }

    /// Encodes rows until there are enough to be sent.
    fn fill(&mut self) -> std::result::Result<End, Stopped> {
        let unread = |error: &alluvium::Error| Stopped {
            problem: Problem::of_statement(error),
            is_between_rows: true,
        };
        let unwritten = |problem| Stopped { problem, is_between_rows: false };
        while self.encoder.len() < CHUNK {
            let (batch, first) = match self.begun.take() {
                Some(begun) => begun,
                None => match self.batches.next() {
                    Some(batch) => (batch.map_err(|error| unread(&error))?, 0),
                    None => {
                        self.encoder.finish().map_err(unwritten)?;
                        return Ok(End::Finished);
                    }
                },
            };
            let rows = rows_of(&batch, STEP).min(batch.num_rows() - first);
            self.encoder.write(&batch.slice(first, rows)).map_err(unwritten)?;
            if first + rows < batch.num_rows() {
                self.begun = Some((batch, first + rows));
            }
        }
        Ok(End::Open)
    }
}

/// How many rows of a batch have about this many bytes in memory; at least one.
pub(crate) fn rows_of(batch: &RecordBatch, bytes: usize) -> usize {
    let all = batch.get_array_memory_size().max(1);
    (bytes.saturating_mul(batch.num_rows()) / all).max(1)
}
