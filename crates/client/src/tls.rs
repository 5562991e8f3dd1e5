//! TLS: what is checked of a server's certificate.

use std::path::Path;
use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme,
};
use tokio_postgres::tls::MakeTlsConnect;
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::address::Verification;
use crate::error::{Error, Result};
use crate::socket::Socket;

/// What makes one connection over TLS.
pub(crate) type Connector = <MakeRustlsConnect as MakeTlsConnect<Socket>>::TlsConnect;

/// What makes connections over TLS that check so much.
pub(crate) fn connector(verification: &Verification) -> Result<MakeRustlsConnect> {
    let provider = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(|error| Error::Unreached(error.to_string()))?;
    let builder = match verification {
        Verification::Full(file) => builder.with_root_certificates(roots(file)?),
        Verification::Issuer(file) => {
            let roots = Arc::new(roots(file)?);
            let issuer = WebPkiServerVerifier::builder_with_provider(roots, provider.clone())
                .build()
                .map_err(|error| wrong(file, &error))?;
            let verifier = AnyName { issuer: Some(issuer), provider };
            builder.dangerous().with_custom_certificate_verifier(Arc::new(verifier))
        }
        Verification::Nothing => {
            let verifier = AnyName { issuer: None, provider };
            builder.dangerous().with_custom_certificate_verifier(Arc::new(verifier))
        }
    };
    Ok(MakeRustlsConnect::new(builder.with_no_client_auth()))
}

/// The same for a connection to a host.
pub(crate) fn connector_to(tls: &MakeRustlsConnect, host: &str) -> Result<Connector> {
    let made = MakeTlsConnect::<Socket>::make_tls_connect(&mut tls.clone(), host);
    made.map_err(|error| Error::Unreached(error.to_string()))
}

/// The certificates of a file.
fn roots(file: &Path) -> Result<RootCertStore> {
    let mut roots = RootCertStore::empty();
    let found = CertificateDer::pem_file_iter(file).map_err(|error| wrong(file, &error))?;
    for certificate in found {
        let certificate = certificate.map_err(|error| wrong(file, &error))?;
        roots.add(certificate).map_err(|error| wrong(file, &error))?;
    }
    match roots.is_empty() {
        true => {
            Err(Error::Address(format!("sslrootcert={}: it has no certificate", file.display())))
        }
        false => Ok(roots),
    }
}

fn wrong(file: &Path, error: &dyn std::fmt::Display) -> Error {
    Error::Address(format!("sslrootcert={}: {error}", file.display()))
}

/// Checks who signed a certificate, but not the host that it names, as `verify-ca` does.
#[derive(Debug)]
struct AnyName {
    /// `None` takes any certificate, as `require` does without `sslrootcert`: against who listens, not against who intervenes.
    issuer: Option<Arc<WebPkiServerVerifier>>,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for AnyName {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        others: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let Some(issuer) = &self.issuer else { return Ok(ServerCertVerified::assertion()) };
        match issuer.verify_server_cert(certificate, others, name, ocsp, now) {
            // The name is what is checked last.
            Err(rustls::Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) => Ok(ServerCertVerified::assertion()),
            checked => checked,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let schemes = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signature, schemes)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let schemes = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, schemes)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
