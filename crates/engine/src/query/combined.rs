//! Small batches, put together.
//!
//! A cross join emits a batch for each row of one side and each batch of the other: over small tables, millions of batches
//! of few rows. Each column of each takes memory that its rows do not account for, and time.

use arrow::array::RecordBatch;
use arrow::compute::concat_batches;
use arrow::error::ArrowError;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::SendableRecordBatchStream;
use futures::{Stream, StreamExt, TryStreamExt, stream};

use crate::changes::bytes_of;

/// The most rows of batches that are put together.
const ROWS: usize = 1024;

/// The most bytes of their rows.
const BYTES: usize = 1 << 20;

/// The most batches that are put together.
const BATCHES: usize = 128;

/// The rows of a stream, in order, in as few batches as their sizes allow.
pub(super) fn combined(
    rows: SendableRecordBatchStream,
) -> impl Stream<Item = Result<RecordBatch>> + Send {
    let state = (rows.fuse(), Combined::default());
    stream::try_unfold(state, |(mut rows, mut combined)| async move {
        while let Some(batch) = rows.try_next().await? {
            if let Some(full) = combined.add(batch)? {
                return Ok(Some((full, (rows, combined))));
            }
        }
        let last = combined.finish()?;
        Ok::<_, DataFusionError>(last.map(|last| (last, (rows, combined))))
    })
}

/// Batches that wait for others to be put together with.
#[derive(Default)]
pub(super) struct Combined {
    waiting: Vec<RecordBatch>,
    rows: usize,
    bytes: usize,
}

impl Combined {
    /// Adds a batch. Returns those before it as one, or the batch alone, if they are too many to wait for more.
    pub(super) fn add(&mut self, batch: RecordBatch) -> Result<Option<RecordBatch>, ArrowError> {
        let (rows, bytes) = (batch.num_rows(), bytes_of(&batch));
        if self.waiting.is_empty() && (rows > ROWS || bytes > BYTES) {
            return Ok(Some(batch));
        }
        let is_full =
            self.rows + rows > ROWS || self.bytes + bytes > BYTES || self.waiting.len() == BATCHES;
        let full = if is_full { self.finish()? } else { None };
        self.rows += rows;
        self.bytes += bytes;
        self.waiting.push(batch);
        Ok(full)
    }

    /// The batches that wait, as one.
    pub(super) fn finish(&mut self) -> Result<Option<RecordBatch>, ArrowError> {
        let Self { mut waiting, .. } = std::mem::take(self);
        Ok(match waiting.len() {
            0 | 1 => waiting.pop(),
            _ => Some(concat_batches(&waiting[0].schema(), &waiting)?),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, AsArray, Int64Array, StringArray};
    use arrow::datatypes::Int64Type;

    use super::*;

    fn batch(numbers: std::ops::Range<i64>) -> RecordBatch {
        let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(numbers));
        RecordBatch::try_from_iter([("n", numbers)]).unwrap()
    }

    fn all(batches: impl IntoIterator<Item = RecordBatch>) -> Vec<RecordBatch> {
        let mut combined = Combined::default();
        let mut found: Vec<RecordBatch> =
            batches.into_iter().filter_map(|batch| combined.add(batch).unwrap()).collect();
        found.extend(combined.finish().unwrap());
        found
    }

    #[test]
    fn rows_keep_their_order_in_few_batches() {
        let found = all((0..5_000).map(|number| batch(3 * number..3 * number + 3)));
        assert!(found.len() <= 15_000 / 3 / BATCHES + 1, "{}", found.len());
        let rows =
            found.iter().flat_map(|rows| rows.column(0).as_primitive::<Int64Type>().values());
        assert!(rows.copied().eq(0..15_000));
        assert!(all([]).is_empty());
    }

    #[test]
    fn a_large_batch_stays_as_it_is() {
        let found = all([batch(0..3), batch(3..5_000), batch(5_000..5_001), batch(5_001..5_002)]);
        let rows: Vec<usize> = found.iter().map(RecordBatch::num_rows).collect();
        assert_eq!(rows, [3, 4_997, 2]);
        let text = "x".repeat(BYTES / 2);
        let long = || {
            let text: ArrayRef = Arc::new(StringArray::from_iter_values([&text]));
            RecordBatch::try_from_iter([("text", text)]).unwrap()
        };
        assert_eq!(all([long(), long(), long()]).len(), 3);
    }
}
