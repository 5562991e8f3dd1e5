//! Journals that a process keeps for others.
//!
//! - this file: setting a server up, and one that runs;
//! - [`journals`]: the journals of a directory, and who writes to each; [`term`]: the file that says so;
//! - [`followers`]: the file that says what is kept for followers, and [`tail`]: what they are told;
//! - [`service`]: the calls, [`writer`]: those of a writer, [`replay`]: those of who reads, and [`follow`]: those of who follows.

mod follow;
mod followers;
mod journals;
mod replay;
mod service;
mod tail;
mod term;
mod writer;

use std::fmt::{self, Debug, Formatter};
use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use alluvium_storage::{Disk, FileJournalOptions, LocalDisk};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;
use tokio::sync::mpsc;
use tokio_rustls::TlsAcceptor;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::Server;

use self::journals::{Journals, Keeps};
use self::service::Service;
use crate::connection::stream::Stream;
use crate::connection::tls::Identity;
use crate::connection::{ANSWER, SILENCE, WINDOW};

/// The file that the process which uses the directory holds locked. No journal has such a name.
const LOCK: &str = ".lock";

/// How many connections may be between being accepted and being served.
const ACCEPTED: usize = 16;

/// The most bytes of a journal as long as it keeps records only for followers, by default.
const FOLLOWED_BYTES: u64 = 16 << 30;

/// How long what runs may take to end.
const LAST_STEPS: Duration = Duration::from_secs(10);

/// Why a server does not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NotStarted {
    /// The directory cannot be used.
    #[error("the directory of journals \"{}\" {what}", .directory.display())]
    #[non_exhaustive]
    Directory {
        /// The directory.
        directory: PathBuf,
        /// Why.
        what: String,
    },
    /// Other machines could write to journals.
    #[error(
        "{0} can be reached from other machines: set a certificate, its key, and the authority of the writers' certificates, or listen on a \
         loopback address, such as 127.0.0.1"
    )]
    Exposed(SocketAddr),
    /// The address cannot be listened on.
    #[error("cannot listen on {address}: {error}")]
    #[non_exhaustive]
    Listen {
        /// The address.
        address: SocketAddr,
        /// Why.
        error: io::Error,
    },
    /// There is no thread for it.
    #[error("cannot start a thread: {0}")]
    Thread(io::Error),
}

/// Where the files of each journal are.
pub trait Disks: Send + Sync + Debug {
    /// The files of the journal of this name, which is valid. A folder that is missing is made if `make` is set; `None` without.
    fn disk(&self, name: &str, make: bool) -> alluvium_storage::Result<Option<Arc<dyn Disk>>>;
}

/// A folder for each journal.
#[derive(Debug)]
struct Folders {
    directory: PathBuf,
    /// Held locked. The operating system releases it when the process ends, however it ends.
    _lock: File,
}

impl Folders {
    fn acquire(directory: PathBuf) -> Result<Folders, NotStarted> {
        let failed = |what: String| NotStarted::Directory { directory: directory.clone(), what };
        // Durable with those it is in, as it is made.
        LocalDisk::open(&directory).map_err(|error| failed(format!("cannot be used: {error}")))?;
        let mut lock = OpenOptions::new();
        let lock = lock.create(true).truncate(false).write(true).open(directory.join(LOCK));
        let lock = lock.map_err(|error| failed(format!("cannot be locked: {error}")))?;
        match lock.try_lock() {
            Ok(()) => Ok(Folders { directory, _lock: lock }),
            Err(TryLockError::WouldBlock) => Err(failed("is used by another process".to_owned())),
            Err(TryLockError::Error(error)) => Err(failed(format!("cannot be locked: {error}"))),
        }
    }
}

impl Disks for Folders {
    fn disk(&self, name: &str, make: bool) -> alluvium_storage::Result<Option<Arc<dyn Disk>>> {
        let folder = self.directory.join(name);
        match make || folder.is_dir() {
            true => Ok(Some(Arc::new(LocalDisk::open(folder)?))),
            false => Ok(None),
        }
    }
}

/// A server of journals, before it runs.
#[derive(Debug)]
pub struct JournalServer {
    address: SocketAddr,
    identity: Option<Identity>,
    options: FileJournalOptions,
    keeps: Keeps,
}

impl JournalServer {
    /// A server that listens on an address; the port 0 is a free one.
    pub fn new(address: SocketAddr) -> JournalServer {
        let options = FileJournalOptions::default();
        JournalServer { address, identity: None, options, keeps: Keeps::Followed(FOLLOWED_BYTES) }
    }

    /// Encrypts connections, and accepts only those of writers with a certificate of the authority. Without it the address has to be a
    /// loopback one.
    pub fn identity(mut self, identity: Identity) -> JournalServer {
        self.identity = Some(identity);
        self
    }

    /// The sizes of the journals' files and queues.
    pub fn options(mut self, options: FileJournalOptions) -> JournalServer {
        self.options = options;
        self
    }

    /// Deletes no records, also not those that their writer does not need any more: everything can be made again from them.
    pub fn keep_all(mut self) -> JournalServer {
        self.keeps = Keeps::All;
        self
    }

    /// How many bytes a journal may have while it keeps records that only followers need; by default 16 GiB. If it has more when its writer
    /// lets go of records, nothing more is kept for the follower that is farthest behind: it has to begin again.
    pub fn followed_bytes(mut self, bytes: u64) -> JournalServer {
        self.keeps = Keeps::Followed(bytes);
        self
    }

    /// Serves the journals of a directory, which is made if it is missing, and which no other server may use meanwhile.
    ///
    /// # Errors
    ///
    /// If the directory or the address cannot be used, or may not without certificates.
    pub fn start(self, directory: impl AsRef<Path>) -> Result<Running, NotStarted> {
        self.check_exposed()?;
        let folders = Folders::acquire(directory.as_ref().to_owned())?;
        self.start_on(Arc::new(folders))
    }

    /// Serves journals whose files are on these disks.
    ///
    /// # Errors
    ///
    /// As [`JournalServer::start`].
    pub fn start_on(self, disks: Arc<dyn Disks>) -> Result<Running, NotStarted> {
        self.check_exposed()?;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .thread_name("alluvium-journals")
            .enable_all()
            .build()
            .map_err(NotStarted::Thread)?;
        let failed = |error| NotStarted::Listen { address: self.address, error };
        let listener = runtime.block_on(TcpListener::bind(self.address)).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let journals = Arc::new(Journals::new(disks, self.options, self.keeps));
        let (accepted, connections) = mpsc::channel(ACCEPTED);
        let acceptor = self.identity.map(|identity| TlsAcceptor::from(identity.of_server()));
        runtime.spawn(accept(listener, acceptor, accepted));
        let server = Server::builder()
            .http2_keepalive_interval(Some(SILENCE))
            .http2_keepalive_timeout(Some(ANSWER))
            .initial_stream_window_size(WINDOW)
            .initial_connection_window_size(2 * WINDOW)
            .add_service(Service::new(journals.clone()));
        runtime.spawn(server.serve_with_incoming(ReceiverStream::new(connections)));
        Ok(Running { address, journals, runtime: Some(runtime) })
    }

    fn check_exposed(&self) -> Result<(), NotStarted> {
        match self.identity.is_some() || self.address.ip().to_canonical().is_loopback() {
            true => Ok(()),
            false => Err(NotStarted::Exposed(self.address)),
        }
    }
}

/// Accepts connections. One that takes its time does not keep others waiting.
async fn accept(
    listener: TcpListener,
    acceptor: Option<TlsAcceptor>,
    accepted: mpsc::Sender<io::Result<Stream>>,
) {
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            // Too many files are open: others may be closed soon.
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        let (acceptor, accepted) = (acceptor.clone(), accepted.clone());
        tokio::spawn(async move {
            let stream = tokio::time::timeout(ANSWER, encrypted(stream, acceptor)).await;
            if let Ok(Ok(stream)) = stream {
                // The server has ended otherwise.
                let _ = accepted.send(Ok(stream)).await;
            }
        });
    }
}

async fn encrypted(stream: TcpStream, acceptor: Option<TlsAcceptor>) -> io::Result<Stream> {
    stream.set_nodelay(true)?;
    match acceptor {
        None => Ok(Stream::Plain(stream)),
        Some(acceptor) => Ok(Stream::Encrypted(Box::new(acceptor.accept(stream).await?.into()))),
    }
}

/// A server that runs, until this is dropped. Then all that was acknowledged is where it was acknowledged to be; writers go on when another
/// server has taken its place.
pub struct Running {
    address: SocketAddr,
    journals: Arc<Journals>,
    runtime: Option<Runtime>,
}

impl Running {
    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Debug for Running {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_struct("Running").field("address", &self.address).finish_non_exhaustive()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.journals.end_following();
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_timeout(LAST_STEPS);
        }
        self.journals.end();
    }
}
