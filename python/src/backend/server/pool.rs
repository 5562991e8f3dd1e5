//! A server, and connections to it that nobody uses.

use std::collections::HashMap;
use std::sync::Arc;

use alluvium_client::{Address, Client, Error, Parameter, Statement};
use parking_lot::Mutex;
use tokio::runtime::{Builder, Handle, Runtime};

use super::catalog::first_text;
use super::wait::{Stopped, wait};
use crate::failure::{Failure, Fallible};

/// How many connections wait to be used again.
const IDLE: usize = 8;

/// A server. Clones are the same.
#[derive(Clone)]
pub(crate) struct Server {
    shared: Arc<Shared>,
}

struct Shared {
    address: Address,
    idle: Mutex<Vec<Connection>>,
    /// Moves the bytes of connections; `None` once this is dropped.
    runtime: Option<Runtime>,
}

/// A connection, and what has been prepared over it.
pub(super) struct Connection {
    pub(super) client: Client,
    prepared: HashMap<String, Statement>,
}

impl Server {
    /// Connects to a server.
    pub(crate) fn connect(address: Address) -> Fallible<Self> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("alluvium-connections")
            .enable_all()
            .build()
            .map_err(|error| Failure::new("OperationalError", error.to_string()))?;
        let shared = Shared { address, idle: Mutex::default(), runtime: Some(runtime) };
        let server = Self { shared: Arc::new(shared) };
        let first = server.open()?;
        server.give_back(first);
        Ok(server)
    }

    pub(super) fn address(&self) -> &Address {
        &self.shared.address
    }

    pub(super) fn runtime(&self) -> Handle {
        // It is there until the last clone is dropped.
        match &self.shared.runtime {
            Some(runtime) => runtime.handle().clone(),
            None => Handle::current(),
        }
    }

    /// Waits for a call of a client.
    pub(super) fn wait<T>(
        &self,
        call: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Stopped> {
        wait(&self.runtime(), call)
    }

    /// A connection that nobody else uses.
    pub(super) fn take(&self) -> Fallible<Connection> {
        loop {
            match self.shared.idle.lock().pop() {
                Some(idle) if idle.client.is_closed() => {}
                Some(idle) => return Ok(idle),
                None => break,
            }
        }
        self.open()
    }

    /// A new connection.
    fn open(&self) -> Fallible<Connection> {
        let client = self.wait(Client::connect_to(&self.shared.address))?;
        Ok(Connection { client, prepared: HashMap::new() })
    }

    /// Keeps a connection that is as it was at first, to be used again.
    pub(super) fn give_back(&self, connection: Connection) {
        let mut idle = self.shared.idle.lock();
        if idle.len() < IDLE && !connection.client.is_closed() {
            idle.push(connection);
        }
    }

    /// Waits for calls with a connection that leave it as it was at first.
    pub(super) fn with<T>(
        &self,
        act: impl AsyncFnOnce(&Client) -> Result<T, Error>,
    ) -> Fallible<T> {
        let connection = self.take()?;
        let done = self.wait(act(&connection.client));
        if !matches!(done, Err(Stopped::Interrupted)) {
            self.give_back(connection);
        }
        Ok(done?)
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.idle.get_mut().clear();
        if let Some(runtime) = self.runtime.take() {
            // What it does for connections is over with them.
            runtime.shutdown_background();
        }
    }
}

impl Connection {
    /// A statement that is prepared once. What tells its kind apart from others of the same text is in `kind`.
    pub(super) async fn prepared(
        &mut self,
        sql: &str,
        kind: &str,
        parameters: &[Parameter],
    ) -> Result<Statement, Error> {
        let key = format!("{kind}\n{sql}");
        if let Some(statement) = self.prepared.get(&key) {
            return Ok(statement.clone());
        }
        let statement = self.client.prepare_typed(sql, parameters).await?;
        self.prepared.insert(key, statement.clone());
        Ok(statement)
    }

    /// Forgets what has been prepared.
    pub(super) fn forget(&mut self) {
        self.prepared.clear();
    }
}

/// The epoch of the last transaction of a connection that was committed.
pub(super) async fn committed(client: &Client) -> Result<Option<u64>, Error> {
    let rows = client.query("SELECT current_setting('alluvium.committed', true)", &[]).await?;
    let text = first_text(&rows.collect().await?);
    Ok(text.and_then(|text| text.parse().ok()))
}
