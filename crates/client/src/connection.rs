//! A connection, and the task that moves its bytes.

use std::sync::{Arc, OnceLock};

use tokio::runtime::Handle;
use tokio::task::AbortHandle;
use tokio_postgres::RowStream;
use tokio_postgres::tls::TlsConnect;
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::address::Address;
use crate::error::{Error, Refusal, Result};
use crate::link::Link;
use crate::session::Session;
use crate::socket::{Endpoint, Socket};
use crate::tls::{Connector, connector, connector_to};
use crate::transaction::Transaction;
use crate::values::Encoded;

/// A connection to a server. The task that moves its bytes ends with it.
pub(crate) struct Connection {
    inner: tokio_postgres::Client,
    link: Link,
    driver: AbortHandle,
}

impl Connection {
    /// Connects to a server, and logs in.
    pub(crate) async fn open(address: &Address) -> Result<Self> {
        let tls = connector(&address.verification)?;
        let runtime = Handle::try_current().map_err(|error| Error::Unreached(error.to_string()))?;
        let (endpoint, inner, mut connection) = connect(address, &tls).await?;
        let end = Arc::<OnceLock<Refusal>>::default();
        let told = Arc::clone(&end);
        let driver = runtime.spawn(async move {
            // Statements learn of the end when the connection is dropped, and find the reason then.
            if let Err(error) = (&mut connection).await
                && let Some(refusal) = error.as_db_error()
            {
                let _ = told.set(refusal.into());
            }
        });
        let link = Link { end, tls, endpoint, given_up: Default::default(), runtime };
        Ok(Self { inner, link, driver: driver.abort_handle() })
    }

    /// Ends it at once, whatever runs. When it is dropped, it ends once its statements have.
    pub(crate) fn end(&self) {
        self.driver.abort();
    }

    /// Begins a transaction.
    pub(crate) async fn transaction(&mut self) -> Result<Transaction<'_>> {
        self.session().settle().await;
        let inner = self.inner.transaction().await;
        let inner = inner.map_err(|error| self.link.explain(error))?;
        Ok(Transaction::new(inner, &self.link))
    }

    /// Runs a statement, whose rows come as streams of Arrow.
    pub(crate) async fn rows(&self, sql: &str) -> Result<RowStream> {
        self.session().stream(sql, Encoded::NONE).await
    }

    /// An error of the driver, with what the server has said if it ended the connection.
    pub(crate) fn explain(&self, error: tokio_postgres::Error) -> Error {
        self.link.explain(error)
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.inner.is_closed()
    }

    pub(crate) fn session(&self) -> Session<'_> {
        Session { client: &self.inner, link: &self.link }
    }
}

/// The connection of the driver, over a socket that may be encrypted.
type Driven = tokio_postgres::Connection<Socket, <Connector as TlsConnect<Socket>>::Stream>;

/// Connects to the first place of an address where that succeeds.
async fn connect(
    address: &Address,
    tls: &MakeRustlsConnect,
) -> Result<(Endpoint, tokio_postgres::Client, Driven)> {
    let mut failed = Error::Address("the address of the server names no host".to_owned());
    for endpoint in Endpoint::all(&address.config).await {
        let connected = match endpoint {
            Ok(endpoint) => connect_at(endpoint, address, tls).await,
            Err(error) => Err(error),
        };
        match connected {
            Ok(connected) => return Ok(connected),
            Err(error) => failed = error,
        }
    }
    Err(failed)
}

async fn connect_at(
    endpoint: Endpoint,
    address: &Address,
    tls: &MakeRustlsConnect,
) -> Result<(Endpoint, tokio_postgres::Client, Driven)> {
    let socket = endpoint.connect().await?;
    let tls = connector_to(tls, &endpoint.host)?;
    let login = async { Ok(address.config.connect_raw(socket, tls).await?) };
    let (client, connection) = endpoint.in_time(login).await?;
    Ok((endpoint, client, connection))
}
