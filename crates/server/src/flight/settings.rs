//! How a server is set up to serve Flight SQL.

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;

use tokio::sync::watch;

use super::listener::listen;
use super::service::Flight;
use crate::log;
use crate::server::Error;
use crate::shared::Shared;

/// How a server is set up to serve Flight SQL.
#[derive(Default)]
pub(crate) struct Settings {
    pub(crate) addresses: Vec<SocketAddr>,
}

/// Open doors, behind which nobody serves yet.
pub(crate) struct Doors {
    listeners: Vec<TcpListener>,
    addresses: Vec<SocketAddr>,
}

impl Settings {
    /// Opens the doors.
    pub(crate) fn open(self) -> Result<Doors, Error> {
        let (mut listeners, mut addresses) = (Vec::new(), Vec::new());
        for address in self.addresses {
            let listen = || {
                let listener = TcpListener::bind(address)?;
                listener.set_nonblocking(true)?;
                Ok((listener.local_addr()?, listener))
            };
            let (bound, listener) =
                listen().map_err(|error| Error::Listen { address: address.to_string(), error })?;
            addresses.push(bound);
            listeners.push(listener);
        }
        Ok(Doors { listeners, addresses })
    }
}

impl Doors {
    /// Serves Flight SQL until the server stops; inside of a runtime. Returns where.
    pub(crate) fn serve(
        self,
        shared: &Arc<Shared>,
        stops: &watch::Receiver<bool>,
    ) -> Result<Vec<SocketAddr>, Error> {
        if self.listeners.is_empty() {
            return Ok(Vec::new());
        }
        let flight = Arc::new(Flight::new(shared.clone()));
        tokio::spawn(flight.sessions.clone().look_after(stops.clone()));
        for listener in self.listeners {
            let listener = tokio::net::TcpListener::from_std(listener).map_err(Error::Threads)?;
            tokio::spawn(listen(listener, flight.clone(), stops.clone()));
        }
        self.addresses.iter().for_each(|address| log::listening("flight", address));
        Ok(self.addresses)
    }
}
