//! A server of Flight SQL for a test, and clients of it.

use std::net::SocketAddr;
use std::sync::Arc;

use alluvium::Engine;
use alluvium_server::{Limits, Running, Server, Tls, password_verifier, with_catalog};
use arrow::array::{ArrayRef, AsArray, RecordBatch};
use arrow::datatypes::Int64Type;
use arrow_flight::FlightInfo;
use arrow_flight::error::FlightError;
use arrow_flight::sql::client::FlightSqlServiceClient;
use futures::TryStreamExt;
use tokio::runtime::{Builder, Runtime};
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Status};
use tonic_types::StatusExt;

pub(super) type Client = FlightSqlServiceClient<Channel>;

/// A server, its engine, and a runtime for clients.
pub(super) struct Door {
    pub(super) running: Running,
    pub(super) engine: Engine,
    clients: Runtime,
}

impl Door {
    pub(super) fn open() -> Self {
        Self::with(Limits::default(), None, "")
    }

    /// A server within these limits, with what these statements make.
    pub(super) fn with(limits: Limits, tls: Option<Tls>, sql: &str) -> Self {
        let builder = with_catalog(Engine::builder().workers(1));
        let builder = builder.password_verifier(password_verifier);
        let engine = builder.open_in_memory().expect("an engine");
        engine.execute(sql).expect("statements");
        let server = Server::new(engine.clone()).limits(limits).flight(([127, 0, 0, 1], 0).into());
        let server = match tls {
            Some(tls) => server.tls(tls),
            None => server,
        };
        let running = server.start().expect("a server");
        let clients = Builder::new_multi_thread().worker_threads(2).enable_all().build();
        Self { running, engine, clients: clients.expect("a runtime") }
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.running.flight_addresses()[0]
    }

    /// A client on a connection of its own, which has not logged in.
    pub(super) async fn client(&self) -> Client {
        let endpoint = Endpoint::from_shared(format!("http://{}", self.address()));
        let channel = endpoint.expect("an address").connect().await.expect("a connection");
        FlightSqlServiceClient::new(channel)
    }

    /// Runs a test with one client.
    pub(super) fn with_client<R>(&self, test: impl AsyncFnOnce(&mut Client) -> R) -> R {
        self.block_on(async { test(&mut self.client().await).await })
    }

    pub(super) fn block_on<R>(&self, test: impl Future<Output = R>) -> R {
        self.clients.block_on(test)
    }

    /// Waits until as many clients are known.
    pub(super) fn wait_for_clients(&self, count: usize) {
        for _ in 0..2_000 {
            if self.running.clients() == count {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        panic!("{} clients are connected, and {count} should be", self.running.clients());
    }
}

/// The rows that an answer tells of.
pub(super) async fn fetch(
    client: &mut Client,
    info: FlightInfo,
) -> Result<Vec<RecordBatch>, FlightError> {
    let mut all = Vec::new();
    for endpoint in info.endpoint {
        let ticket = endpoint.ticket.expect("a ticket");
        let rows = client.do_get(ticket).await?;
        all.extend(rows.try_collect::<Vec<_>>().await?);
    }
    Ok(all)
}

/// The rows of a query.
pub(super) async fn query(client: &mut Client, sql: &str) -> Result<Vec<RecordBatch>, FlightError> {
    let info = client.execute(sql.to_owned(), None).await?;
    fetch(client, info).await
}

/// The first column of all rows.
pub(super) fn numbers(batches: &[RecordBatch]) -> Vec<i64> {
    let columns = batches.iter().map(|batch| batch.column(0).as_primitive::<Int64Type>());
    columns.flat_map(|column| column.values().to_vec()).collect()
}

/// The numbers of a query.
pub(super) async fn numbers_of(client: &mut Client, sql: &str) -> Vec<i64> {
    numbers(&query(client, sql).await.expect("rows"))
}

/// The code and the SQLSTATE of an error.
pub(super) fn state(error: &FlightError) -> (Code, String) {
    let status = status(error);
    let info = status.get_details_error_info().expect("details");
    (status.code(), info.reason)
}

/// The status that an error is of.
pub(super) fn status(error: &FlightError) -> &Status {
    match error {
        FlightError::Tonic(status) => status,
        other => panic!("no status: {other}"),
    }
}

/// A batch of a column of numbers and a column of texts.
pub(super) fn batch(from: i64, rows: i64) -> RecordBatch {
    let numbers: ArrayRef = Arc::new(arrow::array::Int64Array::from_iter_values(from..from + rows));
    let texts = (from..from + rows).map(|number| format!("text {number}"));
    let texts: ArrayRef = Arc::new(arrow::array::StringArray::from_iter_values(texts));
    RecordBatch::try_from_iter([("a", numbers), ("b", texts)]).expect("rows")
}
