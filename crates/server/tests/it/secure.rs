//! A server with certificates and roles, and clients of it that encrypt.

use std::fs;
use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use alluvium::Engine;
use alluvium_server::{Limits, Server, Tls, with_catalog};
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_postgres::config::SslMode;
use tokio_postgres::{Client, Config, NoTls};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::served::{Served, read_message};

/// The request to encrypt a connection.
pub(crate) const SSL_REQUEST: [u8; 8] = [0, 0, 0, 8, 4, 0xd2, 0x16, 0x2f];

/// An authority, and the files of a certificate that it has signed.
pub(crate) struct Certificates {
    folder: TempDir,
    authority: Issuer<'static, KeyPair>,
    root: CertificateDer<'static>,
}

impl Certificates {
    /// A certificate for `localhost`.
    pub(crate) fn new() -> Self {
        let key = KeyPair::generate().expect("a key");
        let mut parameters = CertificateParams::new(Vec::new()).expect("parameters");
        parameters.distinguished_name.push(DnType::CommonName, "an authority");
        parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let root = parameters.self_signed(&key).expect("a certificate");
        let folder = TempDir::new().expect("a folder");
        fs::write(folder.path().join("root.pem"), root.pem()).expect("a file");
        let authority = Issuer::new(parameters, key);
        let certificates = Self { folder, authority, root: root.der().clone() };
        certificates.renew();
        certificates
    }

    /// Writes another certificate and key in place of those that there are.
    pub(crate) fn renew(&self) {
        let key = KeyPair::generate().expect("a key");
        let mut parameters =
            CertificateParams::new(vec!["localhost".to_owned()]).expect("parameters");
        parameters.distinguished_name.push(DnType::CommonName, "localhost");
        let signed = parameters.signed_by(&key, &self.authority).expect("a certificate");
        fs::write(self.certificate(), signed.pem()).expect("a file");
        fs::write(self.key(), key.serialize_pem()).expect("a file");
        self.set_mode(0o600);
    }

    /// Sets who may use the key.
    pub(crate) fn set_mode(&self, mode: u32) {
        fs::set_permissions(self.key(), fs::Permissions::from_mode(mode)).expect("permissions");
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.folder.path().join("root.pem")
    }

    pub(crate) fn certificate(&self) -> PathBuf {
        self.folder.path().join("server.pem")
    }

    pub(crate) fn key(&self) -> PathBuf {
        self.folder.path().join("server.key")
    }

    pub(crate) fn tls(&self) -> Tls {
        Tls::read(self.certificate(), self.key()).expect("a certificate")
    }

    /// A client that trusts the authority, and names this protocol.
    pub(crate) fn connector(&self, protocol: Option<&str>) -> TlsConnector {
        let mut roots = RootCertStore::empty();
        roots.add(self.root.clone()).expect("a root");
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = protocol.map(|name| name.as_bytes().to_vec()).into_iter().collect();
        Arc::new(config).into()
    }
}

/// A server with these limits, and roles by these statements.
pub(crate) fn with_roles(limits: Limits, tls: Option<Tls>, roles: &[&str]) -> Served {
    with_roles_and(limits, tls, roles, None)
}

/// As [`with_roles`], at a socket too.
pub(crate) fn with_roles_and(
    limits: Limits,
    tls: Option<Tls>,
    roles: &[&str],
    socket: Option<&Path>,
) -> Served {
    let builder = with_catalog(Engine::builder().workers(1));
    let engine = builder.open_in_memory().expect("an engine");
    for sql in roles {
        engine.execute(sql).expect(sql);
    }
    let mut server = Server::new(engine).limits(limits).pg(([127, 0, 0, 1], 0).into());
    server = tls.into_iter().fold(server, Server::tls);
    server = socket.into_iter().fold(server, Server::pg_socket);
    let running = server.start().expect("a server");
    let clients =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    Served { running, clients: clients.expect("a runtime") }
}

/// Limits under which a wrong password is answered soon.
pub(crate) fn quick() -> Limits {
    let mut limits = Limits::default();
    limits.login_delay = Duration::from_millis(1);
    limits
}

/// The settings of a client over a connection that is there.
pub(crate) fn login(user: &str, password: &str) -> Config {
    let mut config = Config::new();
    config.user(user).password(password).dbname("alluvium").ssl_mode(SslMode::Disable);
    config
}

/// Connects in the clear, and logs in.
pub(crate) async fn log_in(
    address: SocketAddr,
    user: &str,
    password: &str,
) -> Result<Client, tokio_postgres::Error> {
    let stream = tokio::net::TcpStream::connect(address).await.expect("a connection");
    let (client, connection) = login(user, password).connect_raw(stream, NoTls).await?;
    tokio::spawn(connection);
    Ok(client)
}

/// Asks for encryption, and encrypts.
pub(crate) async fn encrypted(
    certificates: &Certificates,
    address: SocketAddr,
) -> TlsStream<tokio::net::TcpStream> {
    let mut stream = tokio::net::TcpStream::connect(address).await.expect("a connection");
    stream.write_all(&SSL_REQUEST).await.expect("a request");
    assert_eq!(stream.read_u8().await.expect("an answer"), b'S');
    let name = ServerName::try_from("localhost").expect("a name");
    certificates.connector(None).connect(name, stream).await.expect("a handshake")
}

/// Begins a login over a connection in the clear: what the server asks for.
pub(crate) fn begin(stream: &mut TcpStream, user: &str) -> (u8, Vec<u8>) {
    stream.write_all(&super::served::startup(&[("user", user)])).expect("a startup");
    read_message(stream)
}
