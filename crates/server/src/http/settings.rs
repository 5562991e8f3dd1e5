//! How a server is set up to serve HTTP.

use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;

use tokio::sync::watch;

use super::keys::Keys;
use super::origin::Origin;
use super::service::Http;
use super::token::Tokens;
use crate::log;
use crate::server::Error;
use crate::shared::Shared;

/// How a server is set up to serve HTTP.
#[derive(Default)]
pub(crate) struct Settings {
    pub(crate) addresses: Vec<SocketAddr>,
    pub(crate) token_file: Option<PathBuf>,
    pub(crate) names: Vec<String>,
    pub(crate) origins: Vec<Origin>,
}

/// Where HTTP is served, and for whom.
pub(crate) struct Served {
    pub(crate) addresses: Vec<SocketAddr>,
    pub(crate) token: String,
}

/// Open doors, behind which nobody serves yet.
pub(crate) struct Doors {
    listeners: Vec<TcpListener>,
    settings: Settings,
    tokens: Tokens,
}

impl Settings {
    /// Opens the doors, and writes the token.
    pub(crate) fn open(mut self) -> Result<Option<Doors>, Error> {
        if self.addresses.is_empty() {
            return Ok(None);
        }
        let mut listeners = Vec::new();
        for address in &mut self.addresses {
            let listen = || {
                let listener = TcpListener::bind(*address)?;
                listener.set_nonblocking(true)?;
                Ok((listener.local_addr()?, listener))
            };
            let (bound, listener) =
                listen().map_err(|error| Error::Listen { address: address.to_string(), error })?;
            *address = bound;
            listeners.push(listener);
        }
        let failed = |error| Error::Token { file: self.token_file.clone(), error };
        let tokens = Tokens::random().map_err(failed)?;
        if let Some(file) = &self.token_file {
            tokens.write(file).map_err(failed)?;
        }
        Ok(Some(Doors { listeners, settings: self, tokens }))
    }
}

impl Doors {
    /// Serves HTTP until the server stops; inside of a runtime.
    pub(crate) fn serve(
        self,
        shared: &Arc<Shared>,
        stops: &watch::Receiver<bool>,
    ) -> Result<Served, Error> {
        let Self { listeners, settings: Settings { addresses, names, origins, .. }, tokens } = self;
        let token = tokens.token().to_owned();
        // Cookies do not belong to ports: servers beside each other have cookies of other names.
        let port = addresses.first().map_or(0, SocketAddr::port);
        let http = Arc::new(Http {
            shared: shared.clone(),
            tokens,
            cookie: format!("alluvium-{port}"),
            names,
            origins,
            keys: Arc::new(Keys::default()),
            stops: stops.clone(),
        });
        for listener in listeners {
            let listener = tokio::net::TcpListener::from_std(listener).map_err(Error::Threads)?;
            tokio::spawn(super::listener::listen(listener, http.clone(), stops.clone()));
        }
        addresses.iter().for_each(|address| log::listening("http", address));
        Ok(Served { addresses, token })
    }
}
