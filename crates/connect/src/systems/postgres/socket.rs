//! Sockets, encrypted or not.

use std::io::{self, Read, Write};
use std::net::{IpAddr, TcpStream, ToSocketAddrs as _};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use postgres_protocol::message::frontend;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use socket2::{SockRef, TcpKeepalive};

use super::failure::{Failure, Result};
use super::settings::{Encryption, Settings};
use crate::systems::addresses::is_of_link;

/// How long a server may take to take a connection.
const CONNECT: Duration = Duration::from_secs(5);

/// How long anything that is written may take.
const WRITE: Duration = Duration::from_secs(30);

/// How long a connection is silent until the machine at its other end is asked whether it is there.
const ALIVE: Duration = Duration::from_secs(30);

/// A connection's socket.
pub enum Socket {
    Plain(TcpStream),
    Encrypted(Box<StreamOwned<ClientConnection, TcpStream>>),
}

impl Socket {
    /// Connects to the server.
    pub fn connect(settings: &Settings) -> Result<Self> {
        let (host, port) = (settings.host(), settings.port());
        let addresses = (host, port).to_socket_addrs()?;
        let mut failed = io::Error::other(format!("\"{host}\" has no address"));
        for address in addresses {
            if is_of_link(address.ip()) {
                return Err(Failure::last(format!(
                    "\"{host}\" is {}, which is an address of the link alone; name another host",
                    address.ip()
                )));
            }
            match TcpStream::connect_timeout(&address, CONNECT) {
                Ok(stream) => return Self::encrypted(stream, settings),
                Err(error) => failed = error,
            }
        }
        Err(failed.into())
    }

    fn encrypted(mut stream: TcpStream, settings: &Settings) -> Result<Self> {
        stream.set_nodelay(true)?;
        let probes = TcpKeepalive::new().with_time(ALIVE).with_interval(ALIVE / 3).with_retries(3);
        SockRef::from(&stream).set_tcp_keepalive(&probes)?;
        stream.set_write_timeout(Some(WRITE))?;
        let Encryption::Verified(roots) = settings.encryption() else {
            return Ok(Self::Plain(stream));
        };
        let config = Arc::new(config(&roots)?);
        stream.set_read_timeout(Some(WRITE))?;
        let mut request = BytesMut::new();
        frontend::ssl_request(&mut request);
        stream.write_all(&request)?;
        let mut answer = [0];
        stream.read_exact(&mut answer)?;
        if answer != *b"S" {
            let host = settings.host();
            return Err(Failure::last(format!(
                "\"{host}\" does not take encrypted connections; set \"ssl\" there, or \"sslmode\" to disable"
            )));
        }
        let name = ServerName::try_from(settings.host().to_owned());
        let name =
            name.map_err(|error| Failure::last(format!("\"{}\": {error}", settings.host())))?;
        let session = ClientConnection::new(config, name);
        let mut session = session.map_err(Failure::last)?;
        while session.is_handshaking() {
            session.complete_io(&mut stream).map_err(|error| {
                match error.get_ref().is_some_and(|inner| inner.is::<rustls::Error>()) {
                    true => Failure::last(format!(
                        "the connection to \"{}\" cannot be encrypted: {error}",
                        settings.host()
                    )),
                    false => error.into(),
                }
            })?;
        }
        Ok(Self::Encrypted(Box::new(StreamOwned::new(session, stream))))
    }

    /// Whether nobody reads on the way: it is encrypted, or does not leave the machine.
    pub fn is_private(&self) -> io::Result<bool> {
        match self {
            Self::Plain(stream) => Ok(stays_here(stream.peer_addr()?.ip())),
            Self::Encrypted(_) => Ok(true),
        }
    }

    /// Reads what has come. `None` if nothing does in time, which is not 0.
    pub fn read(&mut self, to: &mut [u8], patience: Duration) -> io::Result<Option<usize>> {
        let read = match self {
            Self::Plain(stream) => {
                stream.set_read_timeout(Some(patience))?;
                stream.read(to)
            }
            Self::Encrypted(stream) => {
                stream.sock.set_read_timeout(Some(patience))?;
                stream.read(to)
            }
        };
        match read {
            Ok(0) => Err(io::Error::other("the server has closed the connection")),
            Ok(count) => Ok(Some(count)),
            Err(error) => match error.kind() {
                io::ErrorKind::WouldBlock
                | io::ErrorKind::TimedOut
                | io::ErrorKind::Interrupted => Ok(None),
                _ => Err(error),
            },
        }
    }

    pub fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Plain(stream) => stream.write_all(bytes),
            Self::Encrypted(stream) => {
                stream.write_all(bytes)?;
                stream.flush()
            }
        }
    }
}

/// Whether what is sent to an address does not leave the machine.
fn stays_here(address: IpAddr) -> bool {
    address.to_canonical().is_loopback()
}

fn config(roots: &Path) -> Result<ClientConfig> {
    let wrong = |error: &dyn std::fmt::Display| {
        Failure::last(format!("\"sslrootcert\" = {}: {error}", roots.display()))
    };
    let mut store = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(roots).map_err(|error| wrong(&error))? {
        let certificate = certificate.map_err(|error| wrong(&error))?;
        store.add(certificate).map_err(|error| wrong(&error))?;
    }
    if store.is_empty() {
        return Err(wrong(&"it has no certificate"));
    }
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let builder = builder.with_safe_default_protocol_versions().map_err(Failure::last)?;
    Ok(builder.with_root_certificates(store).with_no_client_auth())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sent_to_loopback_does_not_leave_the_machine() {
        for (address, stays) in [
            ("127.0.0.1", true),
            ("::1", true),
            ("::ffff:127.0.0.1", true),
            ("192.0.2.1", false),
            ("::ffff:192.0.2.1", false),
        ] {
            assert_eq!(stays_here(address.parse().unwrap()), stays, "{address}");
        }
    }
}
