//! The changes of a relation, as rows or as data that have no end.

use std::future::poll_fn;
use std::ops::Range;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use alluvium::unstable::ChangedRows;
use alluvium::{Error, Outcome, Statement, Subscription};
use arrow::array::RecordBatch;
use bytes::BytesMut;
use pgwire::messages::PgWireBackendMessage as Answer;
use pgwire::messages::copy::{CopyDone, CopyOutResponse};
use tokio::io::{AsyncRead, AsyncWrite};

use super::completion::complete;
use super::connection::{Connection, elapsed, stops};
use super::failure::{Ended, Failure};
use super::results::{CHUNK, Encoder, Formats, STEP, description};
use super::types::Format;
use super::types::copy::{CopyEncoder, CopyOptions};
use super::wire::Broken;
use crate::traffic::Protocol;

/// How often changes are asked for progress, which wakes nobody.
const LOOK: Duration = Duration::from_secs(1);

/// How changes are sent.
pub(super) enum ChangeEncoder {
    /// As the rows of a result.
    Rows(Encoder),
    /// As the data of COPY.
    Copy(Box<CopyEncoder>),
}

impl ChangeEncoder {
    fn encode(
        &mut self,
        rows: &RecordBatch,
        part: Range<usize>,
        out: &mut BytesMut,
    ) -> Result<(), Failure> {
        match self {
            Self::Rows(encoder) => encoder.encode(rows, part, out),
            Self::Copy(encoder) => Ok(encoder.encode(rows, part, out)?),
        }
    }
}

/// Waits until progress should be asked for; forever if it is not told.
pub(super) async fn look(has_progress: bool) {
    elapsed(has_progress.then_some(LOOK)).await;
}

impl<S: AsyncRead + AsyncWrite + Unpin> Connection<S> {
    /// Sends the rows of a relation and then its changes as rows, until the client cancels or goes, the relation is dropped or the server
    /// stops. The columns are described before if the client has not asked for that.
    pub(super) async fn follow(
        &mut self,
        subscription: Subscription,
        formats: Formats,
        is_described: bool,
    ) -> Result<(), Ended> {
        let changes = ChangedRows::new(subscription);
        let mut encoder = Encoder::new(changes.schema(), &formats)?;
        if is_described {
            self.wire.put(description(changes.schema(), &formats))?;
        }
        encoder.begin(self.wire.output())?;
        let sent = self.send_all(changes, &mut ChangeEncoder::Rows(encoder)).await?;
        self.wire.put(complete("SUBSCRIBE", Some(sent)))?;
        Ok(())
    }

    /// As [`Connection::follow`], by `COPY (SUBSCRIBE …) TO STDOUT`.
    pub(super) async fn copy_changes(
        &mut self,
        statement: Statement,
        options: CopyOptions,
        format: Format,
        sql: Arc<str>,
    ) -> Result<(), Ended> {
        // It takes as long as the client wishes.
        self.command = "SUBSCRIBE";
        let outcome = self
            .call(move |session| session.run(&statement).map_err(|error| Failure::of(&error, &sql)))
            .await??;
        let Outcome::Subscribed(subscription) = outcome else {
            return Err(Failure::new("0A000", "COPY (SUBSCRIBE …) copies changes").into());
        };
        let changes = ChangedRows::new(subscription);
        let columns = changes.schema().fields().len();
        let encoder = CopyEncoder::new(changes.schema(), options).map_err(Failure::from)?;
        let response =
            CopyOutResponse::new(format.code() as i8, columns as i16, vec![format.code(); columns]);
        self.wire.put(Answer::CopyOutResponse(response))?;
        let mut encoder = ChangeEncoder::Copy(Box::new(encoder));
        let sent = self.send_all(changes, &mut encoder).await?;
        if let ChangeEncoder::Copy(mut encoder) = encoder {
            encoder.finish(self.wire.output()).map_err(Failure::from)?;
        }
        self.wire.put(Answer::CopyDone(CopyDone::new()))?;
        self.wire.put(complete("COPY", Some(sent)))?;
        Ok(())
    }

    /// Sends changes until there will be no more. Returns how many rows they were.
    async fn send_all(
        &mut self,
        mut changes: ChangedRows,
        encoder: &mut ChangeEncoder,
    ) -> Result<u64, Ended> {
        let _counted = self.shared.traffic(Protocol::Postgres).subscribe();
        // The client learns that it has begun, even if there is no row.
        self.wire.flush().await?;
        let cancel = self.client.cancel().clone();
        let mut sent = 0;
        // The first rows may be many: they are read on a thread of the pool.
        let (mut next, mut changes) = self
            .call(move |_| {
                let first = changes.poll_next(None);
                (first, changes)
            })
            .await?;
        loop {
            match next {
                Poll::Ready(Ok(Some(rows))) => {
                    self.send_changes(encoder, &rows).await?;
                    sent += rows.num_rows() as u64;
                }
                Poll::Ready(Ok(None)) => return Ok(sent),
                Poll::Ready(Err(error)) => return Err(error.into()),
                Poll::Pending => {}
            }
            let has_progress = changes.has_progress();
            next = tokio::select! {
                next = poll_fn(|context| changes.poll_next(Some(context.waker())).map(Poll::Ready)) => next,
                () = look(has_progress) => Poll::Pending,
                () = cancel.requested() => return Err(Error::Interrupted.into()),
                () = self.wire.gone() => return Err(Broken::gone().into()),
                failure = stops(&mut self.stops) => return Err(failure.into()),
            };
        }
    }

    /// Sends rows, a part at a time.
    pub(super) async fn send_changes(
        &mut self,
        encoder: &mut ChangeEncoder,
        rows: &RecordBatch,
    ) -> Result<(), Ended> {
        let mut first = 0;
        while first < rows.num_rows() {
            let end = rows.num_rows().min(first + STEP);
            encoder.encode(rows, first..end, self.wire.output())?;
            first = end;
            if self.wire.unsent() >= CHUNK {
                self.wire.flush().await?;
            }
        }
        Ok(self.wire.flush().await?)
    }
}
