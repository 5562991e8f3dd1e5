//! A certificate, read from files.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pgwire::api::auth::sasl::scram::ScramServerAuth;
use rustls::crypto::ring;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, version};

/// Certificates and keys are smaller.
const MOST_BYTES: u64 = 1 << 20;

/// Why a certificate cannot be used. No message has anything of a key.
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
    /// The certificate and the key are not usable, or not of each other.
    #[error("the certificate {} with the key {} cannot be used: {error}", .certificate.display(), .key.display())]
    #[non_exhaustive]
    Rejected {
        /// The file of the certificate.
        certificate: PathBuf,
        /// The file of the key.
        key: PathBuf,
        /// Why.
        error: rustls::Error,
    },
}

/// A certificate, ready for connections.
pub(super) struct Certificate {
    pub(super) postgres: Arc<ServerConfig>,
    pub(super) http: Arc<ServerConfig>,
    #[cfg(feature = "flight")]
    pub(super) flight: Arc<ServerConfig>,
    /// Checks passwords. It has the hash of the certificate for clients that bind their login to it, unless the certificate's signature
    /// has no hash for that.
    pub(super) scram: ScramServerAuth,
}

impl Certificate {
    pub(super) fn read(certificate: &Path, key: &Path) -> Result<Self, Unusable> {
        let text = contents(certificate)?;
        let missing = |file: &Path, expected| Unusable::Missing { file: file.to_owned(), expected };
        let chain: Result<Vec<_>, pem::Error> = CertificateDer::pem_slice_iter(&text).collect();
        let chain = chain.map_err(|_| missing(certificate, "certificate"))?;
        if chain.is_empty() {
            return Err(missing(certificate, "certificate"));
        }
        check_access(key)?;
        let private = PrivateKeyDer::from_pem_slice(&contents(key)?)
            .map_err(|_| missing(key, "unencrypted private key"))?;
        let config = config(chain, private).map_err(|error| Unusable::Rejected {
            certificate: certificate.to_owned(),
            key: key.to_owned(),
            error,
        })?;
        let with_protocol = |name: &[u8]| {
            let mut config = config.clone();
            config.alpn_protocols = vec![name.to_vec()];
            Arc::new(config)
        };
        let mut scram = ScramServerAuth::new();
        // Without it logins are not bound to the certificate.
        let _ = scram.configure_certificate(&text);
        Ok(Self {
            postgres: with_protocol(b"postgresql"),
            http: with_protocol(b"http/1.1"),
            #[cfg(feature = "flight")]
            flight: with_protocol(b"h2"),
            scram,
        })
    }
}

fn config(
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
) -> Result<ServerConfig, rustls::Error> {
    ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_protocol_versions(&[&version::TLS13, &version::TLS12])?
        .with_no_client_auth()
        .with_single_cert(chain, key)
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
fn check_access(key: &Path) -> Result<(), Unusable> {
    let metadata =
        fs::metadata(key).map_err(|error| Unusable::Read { file: key.to_owned(), error })?;
    let others = if metadata.uid() == 0 { 0o037 } else { 0o077 };
    match metadata.mode() & others {
        0 => Ok(()),
        _ => Err(Unusable::Exposed(key.to_owned())),
    }
}
