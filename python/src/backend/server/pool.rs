//! A server, and connections to it that nobody uses.

use std::sync::Arc;

use alluvium_client::{Address, Client, Error};
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
    idle: Mutex<Vec<Client>>,
    driver: Arc<Driver>,
}

/// Moves the bytes of connections.
struct Driver {
    /// `None` once this is dropped.
    runtime: Option<Runtime>,
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
        let server = Self::over(address, Arc::new(Driver { runtime: Some(runtime) }));
        let first = server.open()?;
        server.give_back(first);
        Ok(server)
    }

    fn over(address: Address, driver: Arc<Driver>) -> Self {
        Self { shared: Arc::new(Shared { address, idle: Mutex::default(), driver }) }
    }

    /// The same server, over connections of their own whose reads do not wait.
    pub(super) fn stale(&self) -> Self {
        let address = self.shared.address.clone().setting("alluvium.stale_reads", "on");
        Self::over(address, self.shared.driver.clone())
    }

    pub(super) fn address(&self) -> &Address {
        &self.shared.address
    }

    pub(super) fn runtime(&self) -> Handle {
        // It is there until the last clone is dropped.
        match &self.shared.driver.runtime {
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
    pub(super) fn take(&self) -> Fallible<Client> {
        loop {
            match self.shared.idle.lock().pop() {
                Some(idle) if idle.is_closed() => {}
                Some(idle) => return Ok(idle),
                None => break,
            }
        }
        self.open()
    }

    /// A new connection.
    pub(super) fn open(&self) -> Fallible<Client> {
        Ok(self.wait(Client::connect_to(&self.shared.address))?)
    }

    /// Keeps a connection that is as it was at first, to be used again.
    pub(super) fn give_back(&self, client: Client) {
        let mut idle = self.shared.idle.lock();
        if idle.len() < IDLE && !client.is_closed() {
            idle.push(client);
        }
    }

    /// A connection with an open transaction.
    pub(super) fn begin(&self) -> Fallible<Client> {
        let mut client = self.take()?;
        let mut begun = self.wait(client.execute_batch("BEGIN"));
        if matches!(&begun, Err(Stopped::Failed(error)) if error.is_lost()) {
            client = self.open()?;
            begun = self.wait(client.execute_batch("BEGIN"));
        }
        begun?;
        Ok(client)
    }

    /// Waits for calls with a connection that leave it as it was at first. One that has been idle may be lost, without having been told of: then
    /// the calls are made again with another, so they only read.
    pub(super) fn with<T>(&self, act: impl AsyncFn(&Client) -> Result<T, Error>) -> Fallible<T> {
        let mut is_again = false;
        loop {
            let client = if is_again { self.open()? } else { self.take()? };
            match self.wait(act(&client)) {
                Err(Stopped::Failed(error)) if error.is_lost() && !is_again => is_again = true,
                done => {
                    if !matches!(done, Err(Stopped::Interrupted)) {
                        self.give_back(client);
                    }
                    return Ok(done?);
                }
            }
        }
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            // What it does for connections is over with them.
            runtime.shutdown_background();
        }
    }
}

/// The epoch of the last transaction of a connection that was committed.
pub(super) async fn committed(client: &Client) -> Result<Option<u64>, Error> {
    let rows = client.query("SELECT current_setting('alluvium.committed', true)", &[]).await?;
    let text = first_text(&rows.collect().await?);
    Ok(text.and_then(|text| text.parse().ok()))
}
