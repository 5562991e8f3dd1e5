//! A server: an engine, its doors, and its clients.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use alluvium::{Engine, FileAccess};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::watch;

#[cfg(feature = "flight")]
use crate::flight;
use crate::http::{self, Origin};
use crate::limits::Limits;
use crate::log;
use crate::pg::listener::{listen_tcp, listen_unix};
use crate::shared::Shared;
use crate::tls::{Tls, Unusable};

/// How often a server that stops looks for clients that are left.
const LOOK: Duration = Duration::from_millis(10);

/// Why a server cannot be started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An address cannot be listened on.
    #[error("cannot listen on {address}: {error}")]
    #[non_exhaustive]
    Listen {
        /// The address or path.
        address: String,
        /// Why.
        error: io::Error,
    },
    /// An address can be reached from other machines, and nothing would keep others out.
    #[error(
        "{address} can be reached from other machines, where {risk}: {remedy}, listen on a loopback address, such as 127.0.0.1, or say that the server may be insecure"
    )]
    #[non_exhaustive]
    Exposed {
        /// The address.
        address: SocketAddr,
        /// What could happen.
        risk: &'static str,
        /// What would prevent it.
        remedy: &'static str,
    },
    /// The system has no random numbers, on which logins depend.
    #[error("the system has no random numbers: {0}")]
    Random(String),
    /// The token for clients of HTTP cannot be made or written.
    #[error("cannot make the token for clients of HTTP{}: {error}", in_file(file.as_deref()))]
    #[non_exhaustive]
    Token {
        /// The file that it would be in.
        file: Option<PathBuf>,
        /// Why.
        error: io::Error,
    },
    /// The threads of the server cannot be started.
    #[error("cannot start the threads of the server: {0}")]
    Threads(io::Error),
}

/// A server that is set up, and not started yet.
///
/// ```no_run
/// let engine = alluvium::Engine::builder().open_in_memory()?;
/// let server = alluvium_server::Server::new(engine).pg(([127, 0, 0, 1], 5432).into()).start()?;
/// println!("psql -h 127.0.0.1 -p {}", server.pg_addresses()[0].port());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Server {
    engine: Engine,
    addresses: Vec<SocketAddr>,
    sockets: Vec<PathBuf>,
    http: http::Settings,
    #[cfg(feature = "flight")]
    flight: flight::Settings,
    file_access: FileAccess,
    limits: Limits,
    tls: Option<Tls>,
    is_insecure: bool,
}

impl Server {
    /// A server of an engine, with no door yet. Clients may not use files.
    pub fn new(engine: Engine) -> Self {
        Self {
            engine,
            addresses: Vec::new(),
            sockets: Vec::new(),
            http: http::Settings::default(),
            #[cfg(feature = "flight")]
            flight: flight::Settings::default(),
            file_access: FileAccess::Nothing,
            limits: Limits::default(),
            tls: None,
            is_insecure: false,
        }
    }

    /// Serves Postgres's protocol on this address. As long as there are no roles, everybody on this machine can connect, and may do
    /// everything; then clients log in as a role, with its password. An address that other machines reach needs roles and [`Server::tls`].
    /// Port 0 is one that is free.
    #[must_use]
    pub fn pg(mut self, address: SocketAddr) -> Self {
        self.addresses.push(address);
        self
    }

    /// Serves Postgres's protocol on a socket of this machine, at this path, for processes of the same user. A socket that was left
    /// there is replaced.
    #[must_use]
    pub fn pg_socket(mut self, path: impl Into<PathBuf>) -> Self {
        self.sockets.push(path.into());
        self
    }

    /// Serves HTTP on this address, to clients that know the token of [`Running::http_token`]. Port 0 is one that is free.
    ///
    /// Bodies with rows are read by the formats of the engine's [sources](alluvium::Source), which `alluvium_connect::formats` registers.
    #[must_use]
    pub fn http(mut self, address: SocketAddr) -> Self {
        self.http.addresses.push(address);
        self
    }

    /// Writes the token for clients of HTTP to this file, which its owner alone can read, in place of what is there.
    #[must_use]
    pub fn http_token_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.http.token_file = Some(path.into());
        self
    }

    /// Answers requests of HTTP for a host of this name too, and not for `localhost`, `127.0.0.1` and `[::1]` alone.
    #[must_use]
    pub fn http_name(mut self, name: impl Into<String>) -> Self {
        self.http.names.push(name.into());
        self
    }

    /// Answers requests of HTTP from pages of this origin too, and not from the server's own alone. Such pages show who they are by a token:
    /// cookies do not count.
    #[must_use]
    pub fn http_origin(mut self, origin: Origin) -> Self {
        self.http.origins.push(origin);
        self
    }

    /// Serves Flight SQL on this address, to the clients that [`Server::pg`] would let in. Port 0 is one that is free.
    #[cfg(feature = "flight")]
    #[must_use]
    pub fn flight(mut self, address: SocketAddr) -> Self {
        self.flight.addresses.push(address);
        self
    }

    /// Says which files statements of clients may read and write.
    #[must_use]
    pub fn file_access(mut self, access: FileAccess) -> Self {
        self.file_access = access;
        self
    }

    /// Encrypts connections over TCP, for clients that wish it; those from other machines have to.
    #[must_use]
    pub fn tls(mut self, tls: Tls) -> Self {
        self.tls = Some(tls);
        self
    }

    /// Lets other machines connect in the clear and, as long as there are no roles, do everything. Each start logs it.
    #[must_use]
    pub fn insecure(mut self) -> Self {
        self.is_insecure = true;
        self
    }

    /// Says what clients may take.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Opens its doors and serves clients on threads of its own.
    pub fn start(self) -> Result<Running, Error> {
        let addresses = self.addresses.iter().chain(&self.http.addresses);
        #[cfg(feature = "flight")]
        let addresses = addresses.chain(&self.flight.addresses);
        let exposed: Vec<SocketAddr> =
            addresses.filter(|address| is_exposed(address)).copied().collect();
        if !self.is_insecure {
            exposed.iter().try_for_each(|address| self.check_safe(*address))?;
        }
        let listen = |address: &SocketAddr| {
            let listener = TcpListener::bind(address)?;
            listener.set_nonblocking(true)?;
            let address = listener.local_addr()?;
            Ok((listener, address))
        };
        let mut tcp = Vec::new();
        for address in &self.addresses {
            let listening = listen(address)
                .map_err(|error| Error::Listen { address: address.to_string(), error });
            tcp.push(listening?);
        }
        let http = self.http.open()?;
        #[cfg(feature = "flight")]
        let flight = self.flight.open()?;
        let mut unix = Vec::new();
        for path in self.sockets {
            let listening = listen_at(&path)
                .map_err(|error| Error::Listen { address: path.display().to_string(), error });
            unix.push((listening?, path));
        }
        let runtime = Builder::new_multi_thread()
            .thread_name("alluvium-server")
            // Statements of open transactions are limited by their connections.
            .max_blocking_threads(self.limits.statements + self.limits.connections)
            .enable_all()
            .build()
            .map_err(Error::Threads)?;
        let tls = self.tls.map(Arc::new);
        let shared = Shared::new(self.engine, self.file_access, self.limits, tls, self.is_insecure)
            .map_err(|error| Error::Random(error.to_string()))?;
        let shared = Arc::new(shared);
        exposed.iter().filter(|_| shared.is_insecure).for_each(log::insecure);
        let (stops, stopping) = watch::channel(false);
        let entered = runtime.enter();
        let mut pg_addresses = Vec::new();
        for (listener, address) in tcp {
            let listener = tokio::net::TcpListener::from_std(listener).map_err(Error::Threads)?;
            runtime.spawn(listen_tcp(listener, shared.clone(), stopping.clone()));
            log::listening("pg", address);
            pg_addresses.push(address);
        }
        let mut sockets = Vec::new();
        for (listener, path) in unix {
            let listener = tokio::net::UnixListener::from_std(listener).map_err(Error::Threads)?;
            runtime.spawn(listen_unix(listener, shared.clone(), stopping.clone()));
            log::listening("pg", path.display());
            sockets.push(path);
        }
        let http = http.map(|http| http.serve(&shared, &stopping)).transpose()?;
        #[cfg(feature = "flight")]
        let flight_addresses = flight.serve(&shared, &stopping)?;
        drop(entered);
        Ok(Running {
            runtime: Some(runtime),
            shared,
            stops,
            pg_addresses,
            http,
            #[cfg(feature = "flight")]
            flight_addresses,
            sockets,
        })
    }

    /// Fails unless clients of an address that other machines reach are known, and nobody reads what passes.
    fn check_safe(&self, address: SocketAddr) -> Result<(), Error> {
        let (risk, remedy) = match (self.engine.roles().is_empty(), &self.tls) {
            (true, Some(_)) => ("anybody could connect", "create roles first"),
            (true, None) => ("anybody could connect", "create roles and name a certificate"),
            (false, None) => ("others could read what passes", "name a certificate"),
            (false, Some(_)) => return Ok(()),
        };
        Err(Error::Exposed { address, risk, remedy })
    }
}

/// Where a token would be.
fn in_file(file: Option<&Path>) -> String {
    file.map_or_else(String::new, |file| format!(" in {}", file.display()))
}

/// Whether other machines reach an address.
fn is_exposed(address: &SocketAddr) -> bool {
    !address.ip().to_canonical().is_loopback()
}

/// Listens at a path, in place of a server that has left its socket there.
fn listen_at(path: &Path) -> io::Result<UnixListener> {
    let listener = match UnixListener::bind(path) {
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
            if std::os::unix::net::UnixStream::connect(path).is_ok() {
                return Err(io::Error::new(error.kind(), "another server listens there"));
            }
            std::fs::remove_file(path)?;
            UnixListener::bind(path)?
        }
        bound => bound?,
    };
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// A server that serves clients. Dropping it ends their connections at once.
pub struct Running {
    /// `None` once it has stopped.
    runtime: Option<Runtime>,
    shared: Arc<Shared>,
    stops: watch::Sender<bool>,
    pg_addresses: Vec<SocketAddr>,
    http: Option<http::Served>,
    #[cfg(feature = "flight")]
    flight_addresses: Vec<SocketAddr>,
    sockets: Vec<PathBuf>,
}

impl Running {
    /// The addresses where Postgres's protocol is served.
    pub fn pg_addresses(&self) -> &[SocketAddr] {
        &self.pg_addresses
    }

    /// The addresses where HTTP is served.
    pub fn http_addresses(&self) -> &[SocketAddr] {
        self.http.as_ref().map_or(&[], |http| &http.addresses)
    }

    /// The addresses where Flight SQL is served.
    #[cfg(feature = "flight")]
    pub fn flight_addresses(&self) -> &[SocketAddr] {
        &self.flight_addresses
    }

    /// The token that clients of HTTP have to know: they send it as `Authorization: Bearer`, and a browser opens `/login?token=` with it.
    /// `None` if HTTP is not served.
    pub fn http_token(&self) -> Option<&str> {
        self.http.as_ref().map(|http| http.token.as_str())
    }

    /// How many clients are connected.
    pub fn clients(&self) -> usize {
        self.shared.registry.count()
    }

    /// Reads the certificate again, if there is one, for connections that come then; the others keep theirs.
    ///
    /// # Errors
    /// If it cannot be used. Then the old one stays.
    pub fn reload(&self) -> Result<(), Unusable> {
        let Some(tls) = &self.shared.tls else { return Ok(()) };
        let read = tls.reload();
        match &read {
            Ok(()) => log::certificate_read(tls.certificate()),
            Err(error) => log::certificate_refused(error),
        }
        read
    }

    /// Takes no more connections, ends those that are idle, lets statements end for as long as `grace`, cancels those that are left, and
    /// returns when all clients are gone.
    pub fn stop(self, grace: Duration) {
        log::stopping(self.clients());
        self.stops.send_replace(true);
        let end = Instant::now() + grace;
        while self.clients() > 0 && Instant::now() < end {
            thread::sleep(LOOK);
        }
        // Those that do not end are cut off with the runtime.
        let end = Instant::now() + Duration::from_secs(1).min(grace);
        self.shared.registry.cancel_all();
        while self.clients() > 0 && Instant::now() < end {
            thread::sleep(LOOK);
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stops.send_replace(true);
        self.shared.registry.cancel_all();
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_timeout(Duration::from_secs(5));
        }
        for socket in &self.sockets {
            // If it is gone already, so much the better.
            let _ = std::fs::remove_file(socket);
        }
    }
}
