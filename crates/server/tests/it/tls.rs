//! Encrypted connections.

use std::fs;
use std::io::{Read, Write};
use std::time::Duration;

use alluvium_server::{Limits, Tls};
use rustls::pki_types::ServerName;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_postgres::{Client, NoTls};

use super::secure::{Certificates, SSL_REQUEST, encrypted, login, with_roles};
use super::served::{Served, field, read_message, startup};

const ROLE: &str = "CREATE ROLE ada SUPERUSER LOGIN PASSWORD 'pencil'";

fn served(certificates: &Certificates) -> Served {
    with_roles(Limits::default(), Some(certificates.tls()), &[ROLE])
}

async fn client(certificates: &Certificates, served: &Served) -> Client {
    let stream = encrypted(certificates, served.address()).await;
    let (client, connection) =
        login("ada", "pencil").connect_raw(stream, NoTls).await.expect("a login");
    tokio::spawn(connection);
    client
}

/// The certificate that a new connection is given.
async fn presented(certificates: &Certificates, served: &Served) -> Vec<u8> {
    let stream = encrypted(certificates, served.address()).await;
    let chain = stream.get_ref().1.peer_certificates().expect("a certificate");
    chain[0].to_vec()
}

#[test]
fn a_client_that_asks_for_it_is_encrypted() {
    let certificates = Certificates::new();
    let served = served(&certificates);
    served.clients.block_on(async {
        let client = client(&certificates, &served).await;
        let text = "ä".repeat(1 << 19);
        let row = client.query_one("SELECT $1::VARCHAR", &[&text]).await.expect("a row");
        assert_eq!(row.get::<_, String>(0), text);
    });
    served.wait_for_clients(0);
}

#[test]
fn a_connection_may_be_encrypted_from_its_first_byte() {
    let certificates = Certificates::new();
    let served = served(&certificates);
    served.clients.block_on(async {
        let name = ServerName::try_from("localhost").expect("a name");
        let connect = async |protocol| {
            let stream = tokio::net::TcpStream::connect(served.address()).await.expect("a stream");
            certificates.connector(protocol).connect(name.clone(), stream).await
        };
        let stream = connect(Some("postgresql")).await.expect("a handshake");
        let (client, connection) =
            login("ada", "pencil").connect_raw(stream, NoTls).await.expect("a login");
        tokio::spawn(connection);
        client.batch_execute("SELECT 1").await.expect("an answer");
        // Of another protocol, and of none.
        assert!(connect(Some("http/1.1")).await.is_err());
        let mut unnamed = connect(None).await.expect("a handshake");
        unnamed.write_all(&startup(&[("user", "ada")])).await.expect("a startup");
        let mut answer = Vec::new();
        unnamed.read_to_end(&mut answer).await.expect("an answer");
        assert_eq!(field(&answer[5..], b'C').as_deref(), Some("08P01"));
    });
}

#[test]
fn a_server_without_a_certificate_refuses_to_encrypt() {
    let served = with_roles(Limits::default(), None, &[ROLE]);
    let mut stream = served.raw();
    stream.write_all(&SSL_REQUEST).expect("a request");
    let mut answer = [0];
    stream.read_exact(&mut answer).expect("an answer");
    assert_eq!(answer, *b"N");
}

#[test]
fn bytes_in_the_clear_after_the_request_end_the_connection() {
    let certificates = Certificates::new();
    let served = served(&certificates);
    let mut stream = served.raw();
    stream.write_all(&[&SSL_REQUEST[..], &startup(&[("user", "ada")])].concat()).expect("bytes");
    let (kind, body) = read_message(&mut stream);
    assert_eq!((kind, field(&body, b'C').as_deref()), (b'E', Some("08P01")));
    assert!(field(&body, b'M').is_some_and(|message| message.contains("in the clear")));
    assert_eq!(stream.read(&mut [0]).expect("the end"), 0);
}

#[test]
fn what_is_no_handshake_ends_the_connection_alone() {
    let certificates = Certificates::new();
    let mut limits = Limits::default();
    limits.login_time = Duration::from_millis(300);
    let served = with_roles(limits, Some(certificates.tls()), &[ROLE]);
    for bytes in [&b"GET / HTTP/1.1\r\n\r\n"[..], &[0x16, 3, 1, 0xff, 0xff], &[0x16], &[]] {
        let mut stream = served.raw();
        stream.write_all(&SSL_REQUEST).expect("a request");
        stream.read_exact(&mut [0]).expect("an answer");
        stream.write_all(bytes).expect("bytes");
        // An alert, or nothing.
        let mut rest = Vec::new();
        let _ = stream.read_to_end(&mut rest);
        assert!(rest.len() < 100, "{rest:?}");
    }
    served.clients.block_on(async {
        client(&certificates, &served).await.batch_execute("SELECT 1").await.expect("an answer");
    });
}

#[test]
fn a_connection_is_encrypted_once() {
    let certificates = Certificates::new();
    let served = served(&certificates);
    served.clients.block_on(async {
        let mut stream = encrypted(&certificates, served.address()).await;
        stream.write_all(&SSL_REQUEST).await.expect("a request");
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await.expect("an answer");
        assert_eq!(field(&answer[5..], b'C').as_deref(), Some("08P01"));
    });
}

#[test]
fn a_certificate_is_renewed_under_its_connections() {
    let certificates = Certificates::new();
    let served = served(&certificates);
    served.clients.block_on(async {
        let old = client(&certificates, &served).await;
        let before = presented(&certificates, &served).await;
        certificates.renew();
        assert_eq!(presented(&certificates, &served).await, before);
        served.running.reload().expect("a certificate");
        let after = presented(&certificates, &served).await;
        assert_ne!(after, before);
        old.batch_execute("SELECT 1").await.expect("an answer");
        client(&certificates, &served).await.batch_execute("SELECT 1").await.expect("an answer");

        // A bad one leaves the old one.
        fs::write(certificates.certificate(), "nothing").expect("a file");
        let error = served.running.reload().expect_err("a refusal").to_string();
        assert!(error.contains("has no certificate in PEM"), "{error}");
        assert_eq!(presented(&certificates, &served).await, after);
    });
}

#[test]
fn certificates_that_cannot_be_used_are_refused() {
    let certificates = Certificates::new();
    let refused = || match Tls::read(certificates.certificate(), certificates.key()) {
        Ok(_) => panic!("it cannot be used"),
        Err(error) => error.to_string(),
    };
    certificates.set_mode(0o644);
    assert!(refused().contains("others can read the private key"), "{}", refused());
    certificates.set_mode(0o600);
    let key = fs::read(certificates.key()).expect("the key");
    certificates.renew();
    fs::write(certificates.key(), key).expect("a file");
    assert!(refused().contains("cannot be used"), "{}", refused());
    fs::write(certificates.key(), "").expect("a file");
    assert!(refused().contains("has no unencrypted private key in PEM"), "{}", refused());
    fs::remove_file(certificates.certificate()).expect("a file");
    assert!(refused().contains("cannot read"), "{}", refused());
}

/// What psql says over an encrypted connection; `None` where it is not installed.
fn psql(served: &Served, options: &str, password: &str) -> Option<String> {
    let port = served.address().port();
    let place = format!("host=localhost hostaddr=127.0.0.1 port={port} user=ada dbname=alluvium");
    let output = std::process::Command::new("psql")
        .args(["-X", "-A", "-t", "-c", "SELECT 1 + 1", &format!("{place} {options}")])
        .env("PGPASSWORD", password)
        .output();
    let output = match output {
        Ok(output) => output,
        Err(_) => {
            assert!(std::env::var_os("ALLUVIUM_PSQL").is_none(), "psql is not installed");
            return None;
        }
    };
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    Some(text + &String::from_utf8_lossy(&output.stderr))
}

#[test]
fn psql_encrypts_verifies_and_binds_its_login_to_the_certificate() {
    let certificates = Certificates::new();
    let served = served(&certificates);
    let root = certificates.root();
    let verified = format!("sslmode=verify-full sslrootcert={}", root.display());
    for options in [
        "sslmode=disable",
        "sslmode=require channel_binding=disable",
        "sslmode=require channel_binding=require",
        &verified,
        &format!("{verified} ssl_min_protocol_version=TLSv1.2 ssl_max_protocol_version=TLSv1.2"),
        &format!("{verified} ssl_min_protocol_version=TLSv1.3 channel_binding=require"),
    ] {
        let Some(printed) = psql(&served, options, "pencil") else { return };
        assert_eq!(printed, "2\n", "{options}");
        let refused = psql(&served, options, "pen").unwrap_or_default();
        let expected = "password authentication failed for user \"ada\"";
        assert!(refused.contains(expected), "{options}: {refused}");
    }
    // Older versions are not spoken.
    let old = "sslmode=require ssl_min_protocol_version=TLSv1 ssl_max_protocol_version=TLSv1.1";
    assert_ne!(psql(&served, old, "pencil").as_deref(), Some("2\n"));
    // A certificate of another authority is none that is known.
    let other = Certificates::new();
    let options = format!("sslmode=verify-full sslrootcert={}", other.root().display());
    let refused = psql(&served, &options, "pencil").unwrap_or_default();
    assert!(refused.contains("SSL error"), "{refused}");
}
