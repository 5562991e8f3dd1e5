//! What the statements of a connection share.

use std::sync::{Arc, OnceLock};

use tokio::runtime::Handle;
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::error::{Error, Refusal};
use crate::running::GivenUp;
use crate::socket::Endpoint;

/// What the statements of a connection share.
#[derive(Clone)]
pub(crate) struct Link {
    /// What the server has said when it ended the connection.
    pub(crate) end: Arc<OnceLock<Refusal>>,
    pub(crate) tls: MakeRustlsConnect,
    /// Where the server was reached.
    pub(crate) endpoint: Endpoint,
    pub(crate) given_up: GivenUp,
    pub(crate) runtime: Handle,
}

impl Link {
    /// An error of the driver, with what the server has said if it ended the connection.
    pub(crate) fn explain(&self, error: tokio_postgres::Error) -> Error {
        match (error.is_closed(), self.end.get()) {
            (true, Some(refusal)) => Error::Server(Box::new(refusal.clone())),
            _ => error.into(),
        }
    }
}
