//! Rows into a table.

use std::pin::Pin;

use arrow::array::RecordBatch;
use bytes::{Bytes, BytesMut};
use futures::SinkExt;
use tokio_postgres::CopyInSink;

use crate::error::Result;
use crate::link::Link;
use crate::values::{END, HEAD, Writer};

/// How many rows are encoded at once.
const ROWS: usize = 4_096;

/// A COPY of batches of Arrow into a table. All of its rows are one transaction, which [`finish`](CopyIn::finish) commits; dropped before, it leaves nothing.
pub struct CopyIn {
    sink: Pin<Box<CopyInSink<Bytes>>>,
    writer: Writer,
    out: BytesMut,
    link: Link,
}

impl CopyIn {
    pub(crate) fn new(sink: CopyInSink<Bytes>, writer: Writer, link: Link) -> Self {
        Self { sink: Box::pin(sink), writer, out: BytesMut::from(HEAD), link }
    }

    /// Sends rows. The columns are in the order of the table, or in the one that was given. Values of other types than the
    /// table's are cast to them.
    ///
    /// # Errors
    ///
    /// If the batch has other columns, or a value cannot be one of the column's type; or if the server has refused rows that
    /// were sent before. Then drop it.
    pub async fn send(&mut self, batch: &RecordBatch) -> Result<()> {
        for start in (0..batch.num_rows()).step_by(ROWS) {
            let rows = batch.slice(start, ROWS.min(batch.num_rows() - start));
            self.writer.write(&rows, &mut self.out)?;
            self.flush().await?;
        }
        Ok(())
    }

    /// Ends it, and returns how many rows the table has gained.
    ///
    /// # Errors
    ///
    /// If the server refuses a row; then the table has gained none.
    pub async fn finish(mut self) -> Result<u64> {
        self.out.extend_from_slice(END);
        self.flush().await?;
        self.sink.as_mut().finish().await.map_err(|error| self.link.explain(error))
    }

    async fn flush(&mut self) -> Result<()> {
        let data = self.out.split().freeze();
        self.sink.send(data).await.map_err(|error| self.link.explain(error))
    }
}
