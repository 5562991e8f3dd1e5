//! Connections that come, wait and go.

use std::io::{Read, Write};
use std::time::Duration;

use alluvium_server::Limits;
use tokio_postgres::NoTls;
use tokio_postgres::error::SqlState;

use super::served::{field, message, read_message, served, served_with, startup};

#[test]
fn clients_are_told_of_their_settings() {
    let served = served();
    let mut stream = served.raw();
    stream
        .write_all(&startup(&[("user", "someone"), ("application_name", "test")]))
        .expect("a startup");
    let mut parameters = Vec::new();
    loop {
        let (kind, body) = read_message(&mut stream);
        match kind {
            b'S' => {
                let text = String::from_utf8_lossy(&body).into_owned();
                let mut parts = text.split('\0').map(str::to_owned);
                parameters
                    .push((parts.next().unwrap_or_default(), parts.next().unwrap_or_default()));
            }
            b'Z' => break,
            _ => (),
        }
    }
    for (name, value) in
        [("application_name", "test"), ("server_encoding", "UTF8"), ("TimeZone", "UTC")]
    {
        assert!(
            parameters.contains(&(name.to_owned(), value.to_owned())),
            "{name}: {parameters:?}"
        );
    }
    stream.write_all(&message(b'Q', b"SET application_name = 'another'\0")).expect("a query");
    let kinds: Vec<_> = (0..3).map(|_| read_message(&mut stream)).collect();
    assert_eq!(kinds[1], (b'S', b"application_name\0another\0".to_vec()));
}

#[test]
fn more_connections_than_there_may_be_are_refused() {
    let mut limits = Limits::default();
    limits.connections = 3;
    let served = served_with(limits);
    served.clients.block_on(async {
        let mut kept = Vec::new();
        for _ in 0..3 {
            kept.push(served.connect().await);
        }
        let refused = served.config().connect(NoTls).await.err().expect("it is full");
        assert_eq!(refused.code(), Some(&SqlState::TOO_MANY_CONNECTIONS));
        drop(kept);
    });
    served.wait_for_clients(0);
    served.with_client(async |client| client.batch_execute("SELECT 1").await.expect("an answer"));
}

#[test]
fn a_client_that_does_not_log_in_is_cut_off() {
    let mut limits = Limits::default();
    limits.login_time = Duration::from_millis(200);
    let served = served_with(limits);
    let mut slow = served.raw();
    slow.write_all(&[0, 0]).expect("half a length");
    let mut answer = Vec::new();
    slow.read_to_end(&mut answer).expect("an answer");
    assert_eq!(answer[0], b'E');
    assert_eq!(field(&answer[5..], b'S').as_deref(), Some("FATAL"));
}

#[test]
fn thousands_of_connections_that_come_and_go_leave_nothing() {
    let served = served();
    for number in 0..2_000_usize {
        let mut stream = served.raw();
        match number % 3 {
            0 => (),
            1 => stream.write_all(&startup(&[("user", "someone")])).expect("a startup"),
            _ => stream.write_all(&[0, 0, 0]).expect("a part of a length"),
        }
    }
    served.wait_for_clients(0);
    served.with_client(async |client| client.batch_execute("SELECT 1").await.expect("an answer"));
}

#[test]
fn a_server_that_stops_tells_its_clients() {
    let served = served();
    let (mut idle, port) = (served.raw_logged_in(), served.address().port());
    served.running.stop(Duration::from_secs(5));
    let (kind, body) = read_message(&mut idle);
    assert_eq!((kind, field(&body, b'C').as_deref()), (b'E', Some("57P01")));
    assert!(std::net::TcpStream::connect(("127.0.0.1", port)).is_err());
}
