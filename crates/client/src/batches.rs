//! The rows of a statement.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use arrow::array::RecordBatch;
use arrow::compute::concat_batches;
use arrow::datatypes::{Schema, SchemaRef};
use futures::{Stream, StreamExt, TryStreamExt};
use tokio_postgres::RowStream;

use crate::error::Result;
use crate::link::Link;
use crate::running::Running;
use crate::values::Rows;

/// The rows of a statement, as batches of Arrow, as they come: of up to 8,192 rows, or of 1 MiB. The server computes no more than
/// this client takes, but for what is on the way.
///
/// All columns are nullable. Dropped before its end, it cancels the statement.
pub struct Batches {
    /// `None` once all have come.
    stream: Option<Pin<Box<RowStream>>>,
    rows: Rows,
    /// The first batch, if its columns had to be seen.
    first: Option<RecordBatch>,
    schema: SchemaRef,
    rows_affected: Option<u64>,
    running: Running,
    link: Link,
}

impl Batches {
    /// The rows of a statement that has begun.
    pub(crate) async fn begin(
        stream: RowStream,
        rows: Rows,
        running: Running,
        link: Link,
    ) -> Result<Self> {
        let known = rows.schema().cloned();
        let mut batches = Self {
            stream: Some(Box::pin(stream)),
            rows,
            first: None,
            schema: known.clone().unwrap_or_else(|| Schema::empty().into()),
            rows_affected: None,
            running,
            link,
        };
        if known.is_none() {
            let first = match batches.next().await {
                Some(first) => first?,
                None => batches.rows.take()?,
            };
            batches.schema = first.schema();
            batches.first = Some(first);
        }
        Ok(batches)
    }

    /// The columns.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// How many rows the statement has returned or changed, once the last batch was taken.
    pub fn rows_affected(&self) -> Option<u64> {
        self.rows_affected
    }

    /// All rows that are left, as one batch.
    ///
    /// # Errors
    ///
    /// If the statement fails meanwhile, or a column has more than 2 GiB of text.
    pub async fn collect(mut self) -> Result<RecordBatch> {
        let batches: Vec<RecordBatch> = (&mut self).try_collect().await?;
        Ok(concat_batches(&self.schema, &batches)?)
    }

    /// No more rows come.
    fn end(&mut self) {
        self.stream = None;
        self.running.done();
    }
}

impl Stream for Batches {
    type Item = Result<RecordBatch>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        if let Some(first) = this.first.take().filter(|first| first.num_rows() > 0) {
            return Poll::Ready(Some(Ok(first)));
        }
        while let Some(stream) = &mut this.stream {
            match ready!(stream.as_mut().poll_next(context)) {
                Some(Ok(row)) => {
                    if let Err(error) = this.rows.add(&row, 0) {
                        // The statement goes on, so it is cancelled.
                        this.stream = None;
                        return Poll::Ready(Some(Err(error)));
                    }
                    if this.rows.is_full() {
                        return Poll::Ready(Some(this.rows.take()));
                    }
                }
                Some(Err(error)) => {
                    this.end();
                    this.rows.clear();
                    return Poll::Ready(Some(Err(this.link.explain(error))));
                }
                None => {
                    this.rows_affected = stream.rows_affected();
                    this.end();
                    if this.rows.len() > 0 {
                        return Poll::Ready(Some(this.rows.take()));
                    }
                }
            }
        }
        Poll::Ready(None)
    }
}
