//! FETCH from a cursor over SUBSCRIBE: changes as they come, for as long as the client wishes to wait. No thread waits with it.

use std::future::poll_fn;
use std::task::Poll;
use std::time::Instant;

use alluvium::Error;
use alluvium::unstable::{Fetching, SessionParts, StatementKind, StatementTree};
use arrow::array::RecordBatch;
use tokio::io::{AsyncRead, AsyncWrite};

use super::completion::complete;
use super::connection::{Connection, elapsed, stops};
use super::failure::{Ended, Failure};
use super::results::{Encoder, Formats, description};
use super::subscription::{ChangeEncoder, look};
use super::wire::Broken;
use crate::traffic::Protocol;

/// What has come of a wait for changes.
enum Waited {
    Next(alluvium::Result<Option<RecordBatch>>),
    /// The client does not wish to wait any longer.
    Over,
    /// Progress may be there.
    Look,
    Failed(Ended),
}

impl<S: AsyncRead + AsyncWrite + Unpin> Connection<S> {
    /// Begins a FETCH of changes; `None` if the statement is another one.
    pub(super) fn begin_fetch(
        &mut self,
        statement: &StatementTree,
        sql: &str,
    ) -> Result<Option<Fetching>, Ended> {
        if !matches!(statement.kind, StatementKind::Fetch { .. }) {
            return Ok(None);
        }
        let begun = self.client.session()?.begin_fetch(statement);
        Ok(begun.map_err(|error| Failure::of(&error, sql))?)
    }

    /// Sends changes as they come, at most `most` rows: until the timeout, or without one those that are there once there is any. What is not
    /// sent stays with the cursor.
    pub(super) async fn fetch(
        &mut self,
        fetching: Fetching,
        formats: &Formats,
        is_described: bool,
        most: u64,
    ) -> Result<(), Ended> {
        // It takes as long as the client wishes.
        self.command = "SUBSCRIBE";
        let _counted = self.shared.traffic(Protocol::Postgres).subscribe();
        let most = fetching.most.min(most);
        let mut encoder = Encoder::new(&fetching.schema, formats)?;
        if is_described {
            self.wire.put(description(&fetching.schema, formats))?;
        }
        encoder.begin(self.wire.output())?;
        let mut encoder = ChangeEncoder::Rows(encoder);
        let ends = fetching.timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        let mut sent = 0;
        // The first rows may be many: they are read on a thread of the pool.
        let first = fetching.clone();
        let mut next = self.call(move |session| session.poll_fetch(&first, most, None)).await?;
        loop {
            match next {
                Poll::Ready(Ok(Some(rows))) => {
                    sent += rows.num_rows() as u64;
                    self.send_changes(&mut encoder, &rows).await?;
                }
                Poll::Ready(Ok(None)) => break,
                Poll::Ready(Err(error)) => return Err(error.into()),
                Poll::Pending if fetching.timeout.is_none() && sent > 0 => break,
                Poll::Pending => match self.wait(&fetching, most - sent, ends).await {
                    Waited::Next(waited) => {
                        next = Poll::Ready(waited);
                        continue;
                    }
                    Waited::Over => break,
                    Waited::Look => {}
                    Waited::Failed(ended) => return Err(ended),
                },
            }
            let is_late = ends.is_some_and(|ends| sent > 0 && Instant::now() >= ends);
            if sent >= most || is_late {
                break;
            }
            next = self.client.session()?.poll_fetch(&fetching, most - sent, None);
        }
        self.wire.put(complete("FETCH", Some(sent)))?;
        Ok(())
    }

    /// Waits for changes, at most until `ends`.
    async fn wait(&mut self, fetching: &Fetching, most: u64, ends: Option<Instant>) -> Waited {
        if let Err(broken) = self.wire.flush().await {
            return Waited::Failed(broken.into());
        }
        let cancel = self.client.cancel().clone();
        let Self { client, wire, stops: stopping, .. } = self;
        let session = match client.session() {
            Ok(session) => session,
            Err(panicked) => return Waited::Failed(panicked.into()),
        };
        let left =
            |end: Option<Instant>| end.map(|end| end.saturating_duration_since(Instant::now()));
        tokio::select! {
            biased;
            () = cancel.requested() => Waited::Failed(Error::Interrupted.into()),
            next = poll_fn(|context| session.poll_fetch(fetching, most, Some(context.waker()))) => Waited::Next(next),
            () = elapsed(left(ends)) => Waited::Over,
            () = elapsed(left(fetching.statement_ends)) => Waited::Failed(Error::TimedOut.into()),
            () = look(fetching.has_progress) => Waited::Look,
            () = wire.gone() => Waited::Failed(Broken::gone().into()),
            failure = stops(stopping) => Waited::Failed(failure.into()),
        }
    }
}
