//! The rows of a statement.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use arrow::array::RecordBatch;
use arrow::compute::concat_batches;
use arrow::datatypes::{Schema, SchemaRef};
use futures::{Stream, StreamExt, TryStreamExt};
use tokio_postgres::{Row, RowStream};

use crate::error::Result;
use crate::link::Link;
use crate::running::Running;
use crate::values::{Rows, read_stream};

/// The rows of a statement, as batches of Arrow, as they come: of up to 8,192 rows, or of about 1 MiB. The server computes no more than
/// this client takes, but for what is on the way.
///
/// Dropped before its end, it cancels the statement.
pub struct Batches {
    /// `None` once all have come.
    stream: Option<Pin<Box<RowStream>>>,
    form: Form,
    /// The first batch, if its columns had to be seen.
    first: Option<RecordBatch>,
    schema: SchemaRef,
    rows_affected: Option<u64>,
    running: Running,
    link: Link,
}

/// How rows come.
pub(crate) enum Form {
    /// With a field for each column.
    Fields(Rows),
    /// As streams of Arrow, some in each; the first has the columns.
    Arrow,
}

impl Batches {
    /// The rows of a statement that has begun.
    pub(crate) async fn begin(
        stream: RowStream,
        form: Form,
        running: Running,
        link: Link,
    ) -> Result<Self> {
        let known = match &form {
            Form::Fields(rows) => rows.schema().cloned(),
            Form::Arrow => None,
        };
        let mut batches = Self {
            stream: Some(Box::pin(stream)),
            form,
            first: None,
            schema: known.clone().unwrap_or_else(|| Schema::empty().into()),
            rows_affected: None,
            running,
            link,
        };
        if known.is_none() {
            let first = match (batches.next().await.transpose()?, &mut batches.form) {
                (Some(first), _) => first,
                (None, Form::Fields(rows)) => rows.take()?,
                // A statement without rows.
                (None, Form::Arrow) => return Ok(batches),
            };
            batches.schema = first.schema();
            batches.first = Some(first);
        }
        Ok(batches)
    }

    /// The columns; none of a statement that returns no rows.
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

impl Form {
    /// Takes a row; returns a batch if there is one.
    fn add(&mut self, row: &Row) -> Result<Option<RecordBatch>> {
        match self {
            Self::Arrow => Ok(Some(read_stream(row.try_get(0)?)?)),
            Self::Fields(rows) => {
                rows.add(row)?;
                rows.is_full().then(|| rows.take()).transpose()
            }
        }
    }

    /// The rows that are left after the last one was taken.
    fn rest(&mut self) -> Result<Option<RecordBatch>> {
        match self {
            Self::Fields(rows) if rows.len() > 0 => rows.take().map(Some),
            _ => Ok(None),
        }
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
                Some(Ok(row)) => match this.form.add(&row) {
                    Err(error) => {
                        // The statement goes on, so it is cancelled.
                        this.stream = None;
                        return Poll::Ready(Some(Err(error)));
                    }
                    Ok(Some(batch)) => return Poll::Ready(Some(Ok(batch))),
                    Ok(None) => {}
                },
                Some(Err(error)) => {
                    this.end();
                    if let Form::Fields(rows) = &mut this.form {
                        rows.clear();
                    }
                    return Poll::Ready(Some(Err(this.link.explain(error))));
                }
                None => {
                    this.rows_affected = stream.rows_affected();
                    this.end();
                    if let Some(rest) = this.form.rest().transpose() {
                        return Poll::Ready(Some(rest));
                    }
                }
            }
        }
        Poll::Ready(None)
    }
}
