//! Rows that clients send.

use std::panic::AssertUnwindSafe;
use std::time::Duration;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use arrow_flight::FlightData;
use arrow_flight::decode::{DecodedPayload, FlightDataDecoder};
use arrow_flight::sql::server::PeekableFlightDataStream;
use futures::future::Either;
use futures::{FutureExt, StreamExt, future};
use tokio::sync::mpsc;
use tokio::time::timeout;
use tonic::{Code, Status};

use super::sound;
use super::status;

/// How long a client may send nothing of rows that it has begun.
const PATIENCE: Duration = Duration::from_secs(30);
/// How many batches wait for the thread that takes them.
const WAITING: usize = 2;

/// Rows as they come from a client.
pub(super) struct Incoming {
    decoder: FlightDataDecoder,
}

impl Incoming {
    /// The rows of a request, of whose messages each may have so many bytes, also decompressed.
    pub(super) fn new(data: PeekableFlightDataStream, limit: usize) -> Self {
        // Some messages have a command and nothing else.
        let data = data.filter(|data| {
            future::ready(!data.as_ref().is_ok_and(|data| data.data_header.is_empty()))
        });
        let data = data.map(move |data| checked(data, limit).map_err(Into::into));
        Self { decoder: FlightDataDecoder::new(data) }
    }

    /// The columns; `None` if the client sends none.
    pub(super) async fn columns(&mut self) -> Result<Option<SchemaRef>, Status> {
        match self.decoded().await? {
            None => Ok(None),
            Some(DecodedPayload::Schema(columns)) => Ok(Some(columns)),
            Some(_) => Err(status::unreadable("the columns come first")),
        }
    }

    /// The next rows; `None` after the last.
    pub(super) async fn next(&mut self) -> Result<Option<RecordBatch>, Status> {
        loop {
            match self.decoded().await? {
                None => return Ok(None),
                Some(DecodedPayload::RecordBatch(rows)) => return Ok(Some(rows)),
                Some(DecodedPayload::None) => (),
                Some(DecodedPayload::Schema(_)) => {
                    return Err(status::unreadable("the columns come once"));
                }
            }
        }
    }

    async fn decoded(&mut self) -> Result<Option<DecodedPayload>, Status> {
        // What the library does not check before it slices.
        let next = AssertUnwindSafe(self.decoder.next()).catch_unwind();
        let next = timeout(PATIENCE, next).await.map_err(|_| {
            let seconds = PATIENCE.as_secs();
            let message = format!("nothing of the rows has come for {seconds} seconds");
            status::status(Code::DeadlineExceeded, "57014", message)
        })?;
        let next =
            next.map_err(|_| status::unreadable("a column has other bytes than its type"))?;
        match next {
            None => Ok(None),
            Some(Ok(decoded)) => Ok(Some(decoded.payload)),
            Some(Err(arrow_flight::error::FlightError::Tonic(status))) => Err(*status),
            Some(Err(error)) => Err(status::unreadable(error)),
        }
    }
}

fn checked(data: Result<FlightData, Status>, limit: usize) -> Result<FlightData, Status> {
    let data = data?;
    sound::check(&data, limit).map_err(status::unreadable)?;
    Ok(data)
}

/// What a client sends: rows, or how they have ended.
type Sent = Result<Option<RecordBatch>, Status>;

/// The rows that a client sends, on the thread that takes them.
pub(super) struct Received(mpsc::Receiver<Sent>);

impl Received {
    /// The next rows; waits for the client.
    ///
    /// # Errors
    /// If the client is gone, or has sent what is no rows.
    pub(super) fn next(&mut self) -> Sent {
        self.0.blocking_recv().unwrap_or_else(|| {
            let message = "the client is gone before its last rows";
            Err(status::status(Code::Cancelled, "57014", message))
        })
    }
}

/// Gives the rows that come to what takes them, while that runs.
pub(super) async fn feed<R>(incoming: Incoming, act: impl AsyncFnOnce(Received) -> R) -> R {
    let (sender, rows) = mpsc::channel(WAITING);
    let feeding = std::pin::pin!(forward(incoming, sender));
    let acting = std::pin::pin!(act(Received(rows)));
    match future::select(acting, feeding).await {
        Either::Left((done, _)) => done,
        Either::Right(((), acting)) => acting.await,
    }
}

async fn forward(mut incoming: Incoming, to: mpsc::Sender<Sent>) {
    loop {
        let next = incoming.next().await;
        let is_last = !matches!(next, Ok(Some(_)));
        // They are not taken any more if the statement has failed.
        if to.send(next).await.is_err() || is_last {
            return;
        }
    }
}
