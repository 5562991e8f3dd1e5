//! Statements that run, and how they end early.

use std::sync::Arc;

use futures::lock::Mutex;
use tokio::io::AsyncReadExt;
use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::error::Result;
use crate::socket::{Endpoint, duplicate};
use crate::tls::connector_to;

/// A handle by which another task ends the statement that a connection runs. Between statements it has no effect.
#[derive(Clone)]
pub struct CancelToken {
    token: tokio_postgres::CancelToken,
    tls: MakeRustlsConnect,
    endpoint: Endpoint,
}

impl CancelToken {
    pub(crate) fn new(
        token: tokio_postgres::CancelToken,
        tls: MakeRustlsConnect,
        endpoint: Endpoint,
    ) -> Self {
        Self { token, tls, endpoint }
    }

    /// Has the server end the statement, by a request over a connection of its own, and waits until the server has seen to it: a statement that
    /// begins after this is not ended. The one that runs fails with an error that [is cancelled](crate::Error::is_cancelled), unless it was done before.
    ///
    /// # Errors
    ///
    /// If the server cannot be reached, or does not answer in time.
    pub async fn cancel(&self) -> Result<()> {
        let (socket, mut kept) = duplicate(self.endpoint.connect().await?)
            .map_err(|error| self.endpoint.unreached(&error))?;
        let tls = connector_to(&self.tls, &self.endpoint.host)?;
        let request = async {
            self.token.cancel_query_raw(socket, tls).await?;
            // The server closes the connection once the request has had its effect. What it says before is of TLS.
            let mut said = [0; 256];
            while matches!(kept.read(&mut said).await, Ok(1..)) {}
            Ok(())
        };
        self.endpoint.in_time(request).await
    }
}

/// Requests to end statements that were given up. The next statement waits until they have had their effect, so that none hits that one.
#[derive(Clone, Default)]
pub(crate) struct GivenUp(Arc<Mutex<Vec<JoinHandle<()>>>>);

impl GivenUp {
    /// Waits until all requests have had their effect.
    pub(crate) async fn settle(&self) {
        let mut requests = self.0.lock().await;
        while let Some(request) = requests.last_mut() {
            // One that could not be made changes nothing: the next statement waits for the one that runs.
            let _ = request.await;
            requests.pop();
        }
    }
}

/// A statement that runs. It is cancelled if this is dropped before it is [done](Running::done).
pub(crate) struct Running {
    token: Option<CancelToken>,
    given_up: GivenUp,
    runtime: Handle,
}

impl Running {
    /// A statement that begins.
    pub(crate) fn new(token: CancelToken, given_up: GivenUp, runtime: Handle) -> Self {
        Self { token: Some(token), given_up, runtime }
    }

    /// It is over.
    pub(crate) fn done(&mut self) {
        self.token = None;
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let Some(token) = self.token.take() else { return };
        let request = self.runtime.spawn(async move {
            // If the server cannot be reached, the connection is lost as well.
            let _ = token.cancel().await;
        });
        // Held by nobody but a statement that waits for such requests, of which this is a later one.
        if let Some(mut requests) = self.given_up.0.try_lock() {
            requests.push(request);
        }
    }
}
