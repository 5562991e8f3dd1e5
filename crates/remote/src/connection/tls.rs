//! Who may connect: whoever has a certificate of the same authority. The cryptography is that of ring, named at each use: the default provider of
//! the process stays the program's.

use std::fmt::{self, Debug, Formatter};
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{ClientConfig, RootCertStore, ServerConfig, version};

/// Certificates and keys are smaller.
const MOST_BYTES: u64 = 1 << 20;

/// The protocol inside of a connection.
const PROTOCOL: &[u8] = b"h2";

/// Why certificates cannot be used. No message has anything of a key.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Unusable {
    /// A file cannot be read.
    #[error("cannot read {}: {error}", .file.display())]
    #[non_exhaustive]
    Read {
        /// The file.
        file: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// A file does not have what it should.
    #[error("{} has no {expected} in PEM", .file.display())]
    #[non_exhaustive]
    Missing {
        /// The file.
        file: PathBuf,
        /// What it should have.
        expected: &'static str,
    },
    /// Others can read the key.
    #[error(
        "others can read the private key {}: chmod it to 0600, or to 0640 if root owns it", .0.display()
    )]
    Exposed(PathBuf),
    /// They are not of each other.
    #[error("the certificate {} with its key and authority cannot be used: {error}", .certificate.display())]
    #[non_exhaustive]
    Rejected {
        /// The file of the certificate.
        certificate: PathBuf,
        /// Why.
        error: String,
    },
}

/// The certificate of one side, its key, and the authority that the other side's certificate is of. Each side shows its own, and TLS 1.3 is
/// spoken.
#[derive(Clone)]
pub struct Identity {
    server: Arc<ServerConfig>,
    client: Arc<ClientConfig>,
}

impl Identity {
    /// Reads files in PEM: a chain of certificates, the own first; its private key, which only its owner may read, or root own and its group
    /// read; and the certificates of authorities.
    ///
    /// # Errors
    ///
    /// If a file cannot be read, or if they are not of each other.
    pub fn read(certificate: &Path, key: &Path, authority: &Path) -> Result<Identity, Unusable> {
        let chain = certificates(certificate)?;
        check_access(key)?;
        let missing = |expected| Unusable::Missing { file: key.to_owned(), expected };
        let private = PrivateKeyDer::from_pem_slice(&contents(key)?)
            .map_err(|_| missing("unencrypted private key"))?;
        let rejected =
            |error: String| Unusable::Rejected { certificate: certificate.to_owned(), error };
        let mut roots = RootCertStore::empty();
        for root in certificates(authority)? {
            roots.add(root).map_err(|error| rejected(error.to_string()))?;
        }
        configs(chain, private, roots).map_err(rejected)
    }

    pub(crate) fn of_server(&self) -> Arc<ServerConfig> {
        self.server.clone()
    }

    pub(crate) fn of_client(&self) -> Arc<ClientConfig> {
        self.client.clone()
    }
}

/// Without anything of a key.
impl Debug for Identity {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("Identity")
    }
}

fn configs(
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
    roots: RootCertStore,
) -> Result<Identity, String> {
    let said = |error: rustls::Error| error.to_string();
    let (provider, roots) = (Arc::new(ring::default_provider()), Arc::new(roots));
    let verifier = WebPkiClientVerifier::builder_with_provider(roots.clone(), provider.clone());
    let verifier = verifier.build().map_err(|error| error.to_string())?;
    let mut server = ServerConfig::builder_with_provider(provider.clone())
        .with_protocol_versions(&[&version::TLS13])
        .map_err(said)?
        .with_client_cert_verifier(verifier)
        .with_single_cert(chain.clone(), key.clone_key())
        .map_err(said)?;
    let mut client = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&version::TLS13])
        .map_err(said)?
        .with_root_certificates(roots)
        .with_client_auth_cert(chain, key)
        .map_err(said)?;
    server.alpn_protocols = vec![PROTOCOL.to_vec()];
    client.alpn_protocols = vec![PROTOCOL.to_vec()];
    Ok(Identity { server: Arc::new(server), client: Arc::new(client) })
}

fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, Unusable> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&contents(file)?).collect();
    match found {
        Ok(found) if !found.is_empty() => Ok(found),
        _ => Err(Unusable::Missing { file: file.to_owned(), expected: "certificate" }),
    }
}

fn contents(file: &Path) -> Result<Vec<u8>, Unusable> {
    let read = || {
        let mut text = Vec::new();
        File::open(file)?.take(MOST_BYTES).read_to_end(&mut text)?;
        Ok(text)
    };
    read().map_err(|error| Unusable::Read { file: file.to_owned(), error })
}

/// Fails if others than the owner can read a key; root's may be read by its group.
#[cfg(unix)]
fn check_access(key: &Path) -> Result<(), Unusable> {
    use std::os::unix::fs::MetadataExt;

    let metadata =
        fs::metadata(key).map_err(|error| Unusable::Read { file: key.to_owned(), error })?;
    let others = if metadata.uid() == 0 { 0o037 } else { 0o077 };
    match metadata.mode() & others {
        0 => Ok(()),
        _ => Err(Unusable::Exposed(key.to_owned())),
    }
}
