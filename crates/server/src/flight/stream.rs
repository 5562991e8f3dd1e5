//! The rows of a ticket, sent as the client reads them.

use std::pin::Pin;
use std::sync::Arc;

use alluvium::SqlState;
use arrow::array::RecordBatch;
use arrow_flight::FlightData;
use arrow_flight::encode::FlightDataEncoderBuilder;
use arrow_flight::error::FlightError;
use futures::{Stream, StreamExt, stream};
use tokio::sync::mpsc;
use tokio::time::timeout;
use tonic::{Code, Status};

use super::id::Id;
use super::query::{Batches, Query};
use super::session::{Session, Use};
use super::status;
use super::tickets::Handle;
use crate::cancel::Cancel;
use crate::client::Panicked;
use crate::http::rows_of;
use crate::traffic::{Outcome, Protocol, Running};

/// How many bytes of rows, as they are in memory, are one message.
const MESSAGE: usize = 1 << 20;
/// How many messages with rows are made before the client takes them.
const AHEAD: usize = 2;

/// Messages of Arrow.
pub(super) type Data = Pin<Box<dyn Stream<Item = Result<FlightData, Status>> + Send>>;

/// What is sent next.
enum Part {
    Rows(RecordBatch),
    Failed(Status),
    /// All rows are sent.
    End,
}

/// Begins to send the rows of a query, the columns first. The first statement has run when this returns, so that its errors are those of
/// the whole answer. Of the rows, few messages are made before the client takes them; a client that takes none for as long as a transaction may be idle
/// is cut off.
pub(super) async fn send(
    session: Arc<Session>,
    of: Use,
    mut query: Query,
    (id, handle): (Option<Id>, Handle),
) -> Result<Data, Status> {
    let columns = query.columns.clone();
    let ending = Ending { session: session.clone(), id, cancel: handle.cancel.clone(), _use: of };
    let mut statement = session.shared.traffic(Protocol::Flight).run();
    let first = query.next(&session).await;
    let first = first.inspect_err(|failed| statement.set(status::outcome(failed)))?;
    let (sender, parts) = mpsc::channel(AHEAD);
    tokio::spawn(async move {
        let sending = Sending { session, query, handle, sender, statement };
        sending.run(first).await;
        drop(ending);
    });
    let batches = stream::unfold(Some(parts), next);
    let encoded = FlightDataEncoderBuilder::new().with_schema(columns).build(batches);
    Ok(Box::pin(encoded.map(|data| data.map_err(Status::from))))
}

/// The next batch of those that come.
async fn next(
    parts: Option<mpsc::Receiver<Part>>,
) -> Option<(Result<RecordBatch, FlightError>, Option<mpsc::Receiver<Part>>)> {
    let mut parts = parts?;
    match parts.recv().await {
        Some(Part::Rows(rows)) => Some((Ok(rows), Some(parts))),
        Some(Part::Failed(status)) => Some((Err(status.into()), None)),
        Some(Part::End) => None,
        None => {
            let message = "the rows have ended before the last: the client has not read them for too long, or the server stops";
            let status = status::status(Code::Aborted, SqlState::CANCELED.as_str(), message);
            Some((Err(status.into()), None))
        }
    }
}

/// A stream of rows that is open. Dropping it ends what runs for it.
struct Ending {
    session: Arc<Session>,
    id: Option<Id>,
    cancel: Arc<Cancel>,
    _use: Use,
}

impl Drop for Ending {
    fn drop(&mut self) {
        self.cancel.request();
        if let Some(id) = self.id {
            self.session.tickets.remove(id);
        }
    }
}

/// What pulls rows and sends them.
struct Sending {
    session: Arc<Session>,
    query: Query,
    handle: Handle,
    sender: mpsc::Sender<Part>,
    /// Counts until all is sent.
    statement: Running,
}

/// Nobody takes what is sent.
struct Gone;

impl Sending {
    /// Sends all rows, and how they ended.
    async fn run(mut self, first: Option<Batches>) {
        let end = match self.all(first).await {
            Ok(Ok(())) => {
                self.statement.set(Outcome::Done);
                Part::End
            }
            Ok(Err(status)) => {
                self.statement.set(status::outcome(&status));
                Part::Failed(status)
            }
            Err(Gone) => return,
        };
        let _ = self.put(end).await;
    }

    async fn all(&mut self, mut batches: Option<Batches>) -> Result<Result<(), Status>, Gone> {
        while let Some(mut left) = batches {
            loop {
                let (batch, rest) = match self.pull(left).await? {
                    Ok(pulled) => pulled,
                    Err(status) => return Ok(Err(status)),
                };
                left = rest;
                let Some(batch) = batch else { break };
                if let Err(status) = self.session.check_let_in() {
                    return Ok(Err(status));
                }
                self.put_rows(&batch).await?;
            }
            batches = match self.query.next(&self.session).await {
                Ok(next) => next,
                Err(status) => return Ok(Err(status)),
            };
        }
        Ok(Ok(()))
    }

    /// Pulls a batch on a thread of the pool. It ends if the client is gone, or has cancelled it.
    async fn pull(
        &mut self,
        mut batches: Batches,
    ) -> Result<Result<(Option<RecordBatch>, Batches), Status>, Gone> {
        let cancel = self.handle.cancel.clone();
        if *self.handle.stop.borrow() {
            return Ok(Err(cancelled()));
        }
        cancel.begin();
        let watching = cancel.clone();
        let pool = &self.session.shared.pool;
        let mut call = pool.run(self.query.is_in_transaction(), move || {
            let batch = watching.watch(|| batches.next());
            (batch, batches)
        });
        let pulled = tokio::select! {
            biased;
            pulled = &mut call => pulled,
            () = self.sender.closed() => {
                cancel.request();
                // Its place in the pool is taken until it ends.
                let _ = call.await;
                cancel.end();
                return Err(Gone);
            }
        };
        cancel.end();
        let Ok((batch, rest)) = pulled else { return Ok(Err(status::panicked(Panicked))) };
        Ok(match batch.transpose() {
            Ok(batch) => Ok((batch, rest)),
            Err(error) => Err(status::of(&error)),
        })
    }

    /// Sends rows, in messages of about the same size.
    async fn put_rows(&mut self, batch: &RecordBatch) -> Result<(), Gone> {
        let (mut first, most) = (0, rows_of(batch, MESSAGE));
        while first < batch.num_rows() {
            let rows = most.min(batch.num_rows() - first);
            self.put(Part::Rows(batch.slice(first, rows))).await?;
            first += rows;
        }
        Ok(())
    }

    /// Sends a part once there is room for it.
    async fn put(&mut self, part: Part) -> Result<(), Gone> {
        let patience = self.session.shared.registry.limits().idle_in_transaction;
        let mut stopping = self.handle.stop.subscribe();
        let sent = async {
            match patience.is_zero() {
                true => self.sender.send(part).await.map_err(|_| Gone),
                false => match timeout(patience, self.sender.send(part)).await {
                    Ok(sent) => sent.map_err(|_| Gone),
                    Err(_) => Err(Gone),
                },
            }
        };
        tokio::select! {
            biased;
            sent = sent => sent,
            _ = stopping.wait_for(|stops| *stops) => Err(Gone),
        }
    }
}

fn cancelled() -> Status {
    status::status(Code::Cancelled, SqlState::CANCELED.as_str(), "the statement was cancelled")
}
