//! A connection, and the task that moves its bytes.

use std::iter;
use std::sync::{Arc, OnceLock};

use tokio::runtime::Handle;
use tokio::task::AbortHandle;
use tokio_postgres::types::ToSql;
use tokio_postgres::{RowStream, Statement};

use crate::address::Address;
use crate::error::{Error, Refusal, Result};
use crate::link::Link;
use crate::session::Session;
use crate::tls::connector;
use crate::transaction::Transaction;

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
        let runtime =
            Handle::try_current().map_err(|error| Error::Connection(error.to_string()))?;
        let (inner, mut connection) = address.config.connect(tls.clone()).await?;
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
        let link = Link { end, tls, given_up: Default::default(), runtime };
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

    /// Runs a statement whose rows are read as they are.
    pub(crate) async fn rows(&self, statement: &Statement) -> Result<RowStream> {
        let rows = self.inner.query_raw(statement, iter::empty::<&dyn ToSql>()).await;
        rows.map_err(|error| self.link.explain(error))
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
