//! Sockets of a server.

use std::cmp::max;
use std::fmt::Display;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use socket2::{SockRef, TcpKeepalive};
use tokio::net::{TcpStream, UnixStream, lookup_host};
use tokio::time::timeout;
use tokio_postgres::Config;
use tokio_postgres::config::Host;
use tokio_util::either::Either;

use crate::error::{Error, Result};

/// The port of a server whose address has none.
const PORT: u16 = 5432;

/// A connection to a server, over which nothing has been said.
pub(crate) type Socket = Either<TcpStream, UnixStream>;

/// One of the places where a server is reached.
#[derive(Clone)]
pub(crate) struct Endpoint {
    place: Place,
    /// The name that a certificate has to have.
    pub(crate) host: String,
    config: Arc<Config>,
}

#[derive(Clone)]
enum Place {
    Tcp(SocketAddr),
    Unix(PathBuf),
}

impl Endpoint {
    /// The places that an address names, in the order in which they are tried. A name that is not found is an error in the place of those that it has.
    pub(crate) async fn all(config: &Config) -> Vec<Result<Self>> {
        let (hosts, addresses, ports) =
            (config.get_hosts(), config.get_hostaddrs(), config.get_ports());
        let config = Arc::new(config.clone());
        let mut all = Vec::new();
        for number in 0..max(hosts.len(), addresses.len()) {
            let port = ports.get(number).or(ports.first()).copied().unwrap_or(PORT);
            let of =
                |place, host: &str| Self { place, host: host.to_owned(), config: config.clone() };
            match (hosts.get(number), addresses.get(number)) {
                (Some(Host::Unix(folder)), None) => {
                    let path = folder.join(format!(".s.PGSQL.{port}"));
                    all.push(Ok(of(Place::Unix(path), "")));
                }
                (host, Some(address)) => {
                    let name = match host {
                        Some(Host::Tcp(name)) => name.clone(),
                        _ => address.to_string(),
                    };
                    all.push(Ok(of(Place::Tcp((*address, port).into()), &name)));
                }
                (Some(Host::Tcp(name)), None) => match lookup_host((&**name, port)).await {
                    Ok(found) => all.extend(found.map(|found| Ok(of(Place::Tcp(found), name)))),
                    Err(error) => all.push(Err(unreached(name, &error))),
                },
                (None, None) => {}
            }
        }
        all
    }

    /// Connects there.
    pub(crate) async fn connect(&self) -> Result<Socket> {
        self.in_time(async { self.open().await.map_err(|error| self.unreached(&error)) }).await
    }

    /// Waits for a call for as long as a server may take to accept a connection.
    pub(crate) async fn in_time<T>(&self, call: impl Future<Output = Result<T>>) -> Result<T> {
        match self.config.get_connect_timeout() {
            None => call.await,
            Some(most) => timeout(*most, call)
                .await
                .unwrap_or_else(|_| Err(self.unreached(&io::ErrorKind::TimedOut.into()))),
        }
    }

    /// The server cannot be reached there.
    pub(crate) fn unreached(&self, error: &io::Error) -> Error {
        match &self.place {
            Place::Tcp(address) => unreached(address, error),
            Place::Unix(path) => unreached(path.display(), error),
        }
    }

    async fn open(&self) -> io::Result<Socket> {
        let address = match &self.place {
            Place::Unix(path) => return Ok(Either::Right(UnixStream::connect(path).await?)),
            Place::Tcp(address) => address,
        };
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let socket = SockRef::from(&stream);
        socket.set_tcp_user_timeout(self.config.get_tcp_user_timeout().copied())?;
        if self.config.get_keepalives() {
            let probes = TcpKeepalive::new().with_time(self.config.get_keepalives_idle());
            let probes = self
                .config
                .get_keepalives_interval()
                .into_iter()
                .fold(probes, TcpKeepalive::with_interval);
            let probes = self
                .config
                .get_keepalives_retries()
                .into_iter()
                .fold(probes, TcpKeepalive::with_retries);
            socket.set_tcp_keepalive(&probes)?;
        }
        Ok(Either::Left(stream))
    }
}

/// A second handle of the same connection.
pub(crate) fn duplicate(socket: Socket) -> io::Result<(Socket, Socket)> {
    Ok(match socket {
        Either::Left(stream) => {
            let stream = stream.into_std()?;
            let other = TcpStream::from_std(stream.try_clone()?)?;
            (Either::Left(TcpStream::from_std(stream)?), Either::Left(other))
        }
        Either::Right(stream) => {
            let stream = stream.into_std()?;
            let other = UnixStream::from_std(stream.try_clone()?)?;
            (Either::Right(UnixStream::from_std(stream)?), Either::Right(other))
        }
    })
}

/// The server of this name or address cannot be reached.
fn unreached(server: impl Display, error: &io::Error) -> Error {
    Error::Unreached(format!("cannot connect to the server at {server}: {error}"))
}
