//! TLS: what is checked of a server's certificate.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use alluvium_client::Client;
use alluvium_server::{Server, Tls};
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use tempfile::TempDir;

use super::served::{Served, served_by};

/// Writes the certificate of an authority to `root.pem`, and one for this host, with its key, that the authority has signed.
fn certificates(folder: &Path, host: &str) -> Tls {
    let key = KeyPair::generate().expect("a key");
    let mut parameters = CertificateParams::new(Vec::new()).expect("parameters");
    parameters.distinguished_name.push(DnType::CommonName, "an authority");
    parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let root = parameters.self_signed(&key).expect("a certificate");
    fs::write(folder.join("root.pem"), root.pem()).expect("a file");
    let authority = Issuer::new(parameters, key);
    let key = KeyPair::generate().expect("a key");
    let parameters = CertificateParams::new(vec![host.to_owned()]).expect("parameters");
    let signed = parameters.signed_by(&key, &authority).expect("a certificate");
    let [certificate, private] = ["server.pem", "server.key"].map(|name| folder.join(name));
    fs::write(&certificate, signed.pem()).expect("a file");
    fs::write(&private, key.serialize_pem()).expect("a file");
    fs::set_permissions(&private, fs::Permissions::from_mode(0o600)).expect("permissions");
    Tls::read(certificate, private).expect("a certificate")
}

fn served(tls: Option<Tls>) -> Served {
    served_by(|server: Server| match tls {
        Some(tls) => server.tls(tls),
        None => server,
    })
}

#[test]
fn certificates_are_checked_as_the_mode_says() {
    let (folder, other) = (TempDir::new().expect("a folder"), TempDir::new().expect("a folder"));
    let _ = certificates(other.path(), "localhost");
    for (host, works) in
        [("localhost", [true, true, true, true]), ("elsewhere", [true, true, true, false])]
    {
        let served = served(Some(certificates(folder.path(), host)));
        let connect = async |parameters: &str| {
            let url = format!("postgresql://a@localhost:{}/?{parameters}", served.port());
            match Client::connect(&url).await {
                Ok(client) => {
                    let long = client.query("SELECT repeat('x', 1000000) AS x", &[]).await;
                    long.expect("rows").collect().await.expect("a row");
                    let token = client.cancel_token();
                    token.cancel().await.expect("a request");
                    Ok(())
                }
                Err(error) => Err(error),
            }
        };
        served.run(async {
            let root = folder.path().join("root.pem");
            let root = root.display();
            let modes = [
                "sslmode=prefer".to_owned(),
                "sslmode=require".to_owned(),
                format!("sslmode=verify-ca&sslrootcert={root}"),
                format!("sslmode=verify-full&sslrootcert={root}"),
            ];
            for (mode, works) in modes.iter().zip(works) {
                let connected = connect(mode).await;
                assert_eq!(connected.is_ok(), works, "{mode} at {host}: {connected:?}");
            }
            let root = other.path().join("root.pem");
            for mode in ["require", "verify-ca", "verify-full"] {
                let mode = format!("sslmode={mode}&sslrootcert={}", root.display());
                let error = connect(&mode).await.expect_err("another authority");
                assert!(error.to_string().contains("ertificate"), "{error}");
            }
            let missing = connect("sslmode=verify-ca&sslrootcert=/nowhere.pem").await;
            assert!(missing.expect_err("no file").to_string().contains("/nowhere.pem"));
        });
    }
}

#[test]
fn a_server_without_a_certificate_is_refused_by_who_requires_one() {
    let served = served(None);
    served.run(async {
        let url =
            |mode: &str| format!("postgresql://a@localhost:{}/?sslmode={mode}", served.port());
        assert!(Client::connect(&url("require")).await.is_err());
        assert!(Client::connect(&url("prefer")).await.is_ok());
        assert!(Client::connect(&url("disable")).await.is_ok());
    });
}
