//! Statements that run, and how they end early.

use std::sync::Arc;

use futures::lock::Mutex;
use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::error::Result;

/// A handle by which another task ends the statement that a connection runs, or the next one if that begins while the server reads the
/// request. Between statements it has no effect.
#[derive(Clone)]
pub struct CancelToken {
    token: tokio_postgres::CancelToken,
    tls: MakeRustlsConnect,
}

impl CancelToken {
    pub(crate) fn new(token: tokio_postgres::CancelToken, tls: MakeRustlsConnect) -> Self {
        Self { token, tls }
    }

    /// Asks the server to end the statement, over a connection of its own. The statement then fails with an error that
    /// [is cancelled](crate::Error::is_cancelled), unless it was done before.
    ///
    /// # Errors
    ///
    /// If the server cannot be reached.
    pub async fn cancel(&self) -> Result<()> {
        Ok(self.token.cancel_query(self.tls.clone()).await?)
    }
}

/// Requests to end statements that were given up. The next statement waits until they are sent, so that none hits that one.
#[derive(Clone, Default)]
pub(crate) struct GivenUp(Arc<Mutex<Vec<JoinHandle<()>>>>);

impl GivenUp {
    /// Waits until all requests are sent. Returns whether there were any.
    pub(crate) async fn settle(&self) -> bool {
        let mut requests = self.0.lock().await;
        let were_any = !requests.is_empty();
        while let Some(request) = requests.last_mut() {
            // One that could not be sent changes nothing: the next statement waits for the one that runs.
            let _ = request.await;
            requests.pop();
        }
        were_any
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
