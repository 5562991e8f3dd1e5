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

use crate::limits::Limits;
use crate::pg::listener::{listen_tcp, listen_unix};
use crate::shared::Shared;

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
        "{0} can be reached from other machines, where anybody could connect: listen on a loopback address, such as 127.0.0.1"
    )]
    Exposed(SocketAddr),
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
    file_access: FileAccess,
    limits: Limits,
}

impl Server {
    /// A server of an engine, with no door yet. Clients may not use files.
    pub fn new(engine: Engine) -> Self {
        Self {
            engine,
            addresses: Vec::new(),
            sockets: Vec::new(),
            file_access: FileAccess::Nothing,
            limits: Limits::default(),
        }
    }

    /// Serves Postgres's protocol on this address, which has to be one of loopback: everybody on this machine can connect. Port 0 is
    /// one that is free.
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

    /// Says which files statements of clients may read and write.
    #[must_use]
    pub fn file_access(mut self, access: FileAccess) -> Self {
        self.file_access = access;
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
        let exposed = self.addresses.iter().find(|address| !address.ip().is_loopback());
        if let Some(exposed) = exposed {
            return Err(Error::Exposed(*exposed));
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
        let shared = Arc::new(Shared::new(self.engine, self.file_access, self.limits));
        let (stops, stopping) = watch::channel(false);
        let entered = runtime.enter();
        let mut pg_addresses = Vec::new();
        for (listener, address) in tcp {
            let listener = tokio::net::TcpListener::from_std(listener).map_err(Error::Threads)?;
            runtime.spawn(listen_tcp(listener, shared.clone(), stopping.clone()));
            pg_addresses.push(address);
        }
        let mut sockets = Vec::new();
        for (listener, path) in unix {
            let listener = tokio::net::UnixListener::from_std(listener).map_err(Error::Threads)?;
            runtime.spawn(listen_unix(listener, shared.clone(), stopping.clone()));
            sockets.push(path);
        }
        drop(entered);
        Ok(Running { runtime: Some(runtime), shared, stops, pg_addresses, sockets })
    }
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
    sockets: Vec<PathBuf>,
}

impl Running {
    /// The addresses where Postgres's protocol is served.
    pub fn pg_addresses(&self) -> &[SocketAddr] {
        &self.pg_addresses
    }

    /// How many clients are connected.
    pub fn clients(&self) -> usize {
        self.shared.registry.count()
    }

    /// Takes no more connections, ends those that are idle, lets statements end for as long as `grace`, cancels those that are left, and
    /// returns when all clients are gone.
    pub fn stop(self, grace: Duration) {
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
