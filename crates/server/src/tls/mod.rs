//! Encrypted connections.
//!
//! [`Tls`] is a [`certificate`] that is presented to clients and read again from its files on request. [`stream`] is a connection that may
//! be encrypted, also one of which [some bytes](ahead) have been read before. The cryptography is that of ring, named at each use: the default provider of the process stays the program's.

mod ahead;
mod certificate;
mod stream;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::RwLock;
use pgwire::api::auth::sasl::scram::ScramServerAuth;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

pub(crate) use ahead::Ahead;
use certificate::Certificate;
pub use certificate::Unusable;
pub(crate) use stream::Stream;

/// The certificate and the key that a server presents to its clients, from files in PEM. TLS 1.2 and 1.3 are spoken.
pub struct Tls {
    certificate: PathBuf,
    key: PathBuf,
    current: RwLock<Arc<Certificate>>,
}

/// The protocol that is spoken inside of an encrypted connection. Clients that name another one are refused, those that name none are not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Inside {
    /// Postgres's.
    Postgres,
    /// HTTP/1.1.
    Http,
    /// HTTP/2, with gRPC.
    #[cfg(feature = "flight")]
    Flight,
}

/// An encrypted connection, with what its login has to know of it.
pub(crate) struct Accepted<S> {
    pub(crate) stream: TlsStream<S>,
    /// Checks passwords, bound to the certificate that this connection was given.
    pub(crate) scram: ScramServerAuth,
}

impl Tls {
    /// Reads a chain of certificates, the server's own first, and its private key. As in Postgres only their owner may have access to
    /// the key's file, or root own it, and its group read it.
    ///
    /// # Errors
    /// If a file cannot be read, or if the key is not that of the certificate.
    pub fn read(
        certificate: impl Into<PathBuf>,
        key: impl Into<PathBuf>,
    ) -> Result<Self, Unusable> {
        let (certificate, key) = (certificate.into(), key.into());
        let current = RwLock::new(Arc::new(Certificate::read(&certificate, &key)?));
        Ok(Self { certificate, key, current })
    }

    /// Reads the files again. Connections that are open keep the certificate that they were given.
    ///
    /// # Errors
    /// As of [`Tls::read`]; new connections get the certificate of before then.
    pub fn reload(&self) -> Result<(), Unusable> {
        let read = Arc::new(Certificate::read(&self.certificate, &self.key)?);
        *self.current.write() = read;
        Ok(())
    }

    /// The file of the certificate.
    pub fn certificate(&self) -> &Path {
        &self.certificate
    }

    /// The file of the key.
    pub fn key(&self) -> &Path {
        &self.key
    }

    /// Encrypts a connection whose client has begun to. It takes as long as the client lets it.
    pub(crate) async fn accept<S: AsyncRead + AsyncWrite + Unpin>(
        &self,
        stream: S,
        inside: Inside,
    ) -> io::Result<Accepted<S>> {
        let current = self.current.read().clone();
        let config = match inside {
            Inside::Postgres => &current.postgres,
            Inside::Http => &current.http,
            #[cfg(feature = "flight")]
            Inside::Flight => &current.flight,
        };
        let stream = TlsAcceptor::from(config.clone()).accept(stream).await?;
        Ok(Accepted { stream, scram: current.scram.clone() })
    }
}
