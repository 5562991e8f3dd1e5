//! A server for a test, and clients of it.

use std::time::Duration;

use alluvium::Engine;
use alluvium_client::Client;
use alluvium_server::{Running, Server, with_catalog};
use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;

/// How long a test waits for what should come at once.
const PATIENCE: Duration = Duration::from_secs(60);

/// A server, its engine, and a runtime for clients.
pub(crate) struct Served {
    pub(crate) engine: Engine,
    pub(crate) running: Running,
    clients: Runtime,
}

/// Serves a new engine in memory.
pub(crate) fn served() -> Served {
    served_by(|server| server)
}

/// Serves a new engine in memory, with changes to the server.
pub(crate) fn served_by(change: impl FnOnce(Server) -> Server) -> Served {
    let builder = with_catalog(Engine::builder().workers(1).history_time(Duration::from_secs(600)));
    let engine = builder.open_in_memory().expect("an engine");
    let server = change(Server::new(engine.clone()).pg(([127, 0, 0, 1], 0).into()));
    let running = server.start().expect("a server");
    Served { engine, running, clients: runtime() }
}

/// A runtime for clients.
pub(crate) fn runtime() -> Runtime {
    let clients = Builder::new_multi_thread().worker_threads(1).enable_all().build();
    clients.expect("a runtime")
}

impl Served {
    /// The port that it listens on.
    pub(crate) fn port(&self) -> u16 {
        self.running.pg_addresses()[0].port()
    }

    /// Its address.
    pub(crate) fn url(&self) -> String {
        format!("postgresql://someone@127.0.0.1:{}/alluvium", self.port())
    }

    /// Runs a test.
    pub(crate) fn run<R>(&self, test: impl Future<Output = R>) -> R {
        self.clients.block_on(async { timeout(PATIENCE, test).await.expect("it ends in time") })
    }

    /// Runs a test with a client.
    pub(crate) fn with_client<R>(&self, test: impl AsyncFnOnce(&mut Client) -> R) -> R {
        self.run(async { test(&mut self.client().await).await })
    }

    /// A client.
    pub(crate) async fn client(&self) -> Client {
        Client::connect(&self.url()).await.expect("a connection")
    }

    /// Waits until as many clients are connected.
    pub(crate) async fn wait_for_clients(&self, count: usize) {
        while self.running.clients() != count {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}
