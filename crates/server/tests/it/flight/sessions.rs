//! Logins, sessions, and what roles may.

use std::time::Duration;

use arrow_flight::Action;
use arrow_flight::sql::EndTransaction;
use futures::TryStreamExt;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tonic::Code;
use tonic::transport::Endpoint;

use super::client::{Client, Door, numbers_of, query, state};
use crate::secure::{Certificates, quick};

const ROLES: &str = "CREATE TABLE t (a BIGINT PRIMARY KEY); INSERT INTO t VALUES (1);
    CREATE ROLE root SUPERUSER LOGIN PASSWORD 'top'; CREATE ROLE ada LOGIN PASSWORD 'a:b ü';
    GRANT SELECT ON t TO ada";

async fn logged_in(door: &Door, user: &str, password: &str) -> Client {
    let mut client = door.client().await;
    client.handshake(user, password).await.expect("a login");
    client
}

#[test]
fn a_role_logs_in_by_its_password() {
    let door = Door::with(quick(), None, ROLES);
    door.block_on(async {
        let mut ada = logged_in(&door, "ada", "a:b ü").await;
        assert_eq!(numbers_of(&mut ada, "SELECT a FROM t").await, [1]);
        let denied = ada.execute_update("DELETE FROM t".to_owned(), None).await;
        assert_eq!(
            state(&denied.expect_err("no right")),
            (Code::PermissionDenied, "42501".to_owned())
        );
        for (user, password) in [("ada", "x"), ("ada", ""), ("nobody", "a:b ü"), ("", "")] {
            let mut client = door.client().await;
            let error = client.handshake(user, password).await.expect_err(user).to_string();
            assert!(error.contains("of no role"), "{error}");
            assert_eq!(state(&query(&mut client, "SELECT 1").await.expect_err(user)).1, "28000");
        }
        // The token shows the session over another connection, and no other token does.
        let token = ada.token().expect("a token").clone();
        let mut other = door.client().await;
        other.set_token(token.clone());
        assert_eq!(numbers_of(&mut other, "SELECT a FROM t").await, [1]);
        for wrong in
            ["", "x", "1.", &token[..token.len() - 1], &format!("{token}0"), "99999999999.a"]
        {
            other.set_token(wrong.to_owned());
            assert_eq!(
                state(&query(&mut other, "SELECT 1").await.expect_err(wrong)).0,
                Code::Unauthenticated
            );
        }
    });
}

#[test]
fn who_is_revoked_reads_no_more() {
    let door = Door::with(quick(), None, ROLES);
    door.block_on(async {
        let mut ada = logged_in(&door, "ada", "a:b ü").await;
        let sql = "SELECT i FROM generate_series(1, 50000000) AS s (i)";
        let info = ada.execute(sql.to_owned(), None).await.expect("a query");
        let ticket = info.endpoint[0].ticket.clone().expect("a ticket");
        let mut rows = ada.do_get(ticket).await.expect("rows");
        assert!(rows.try_next().await.expect("a batch").is_some());
        door.engine.execute("ALTER ROLE ada PASSWORD 'other'").expect("a role");
        let left = rows.try_collect::<Vec<_>>().await.expect_err("it ends");
        assert_eq!(state(&left), (Code::Unauthenticated, "28000".to_owned()));
        assert_eq!(
            state(&query(&mut ada, "SELECT 1").await.expect_err("revoked")).0,
            Code::Unauthenticated
        );
        assert!(door.client().await.handshake("ada", "other").await.is_ok());
    });
}

#[test]
fn a_session_ends_when_its_client_says_so_or_is_idle() {
    let mut limits = quick();
    limits.idle_in_transaction = Duration::from_millis(200);
    let door = Door::with(limits, None, "CREATE TABLE t (a BIGINT PRIMARY KEY)");
    door.block_on(async {
        let mut client = logged_in(&door, "anybody", "").await;
        let id = client.begin_transaction().await.expect("a transaction");
        let insert = "INSERT INTO t VALUES (1)".to_owned();
        client.execute_update(insert, Some(id.clone())).await.expect("a row");
        tokio::time::sleep(Duration::from_millis(1_500)).await;
        let error =
            client.end_transaction(id, EndTransaction::Commit).await.expect_err("it has ended");
        assert_eq!(state(&error).0, Code::Unauthenticated);
        assert!(
            door.engine
                .query("SELECT * FROM t")
                .expect("rows")
                .iter()
                .all(|rows| rows.num_rows() == 0)
        );

        let mut client = logged_in(&door, "anybody", "").await;
        let close = Action { r#type: "CloseSession".to_owned(), body: Default::default() };
        client.do_action(close).await.expect("an answer");
        assert_eq!(
            state(&query(&mut client, "SELECT 1").await.expect_err("closed")).0,
            Code::Unauthenticated
        );
    });
}

#[test]
fn sessions_are_clients_and_limited_as_such() {
    let mut limits = quick();
    limits.connections = 2;
    let door = Door::with(limits, None, "");
    door.block_on(async {
        let mut first = door.client().await;
        let mut second = door.client().await;
        assert!(
            query(&mut first, "SELECT 1").await.is_ok()
                && query(&mut second, "SELECT 1").await.is_ok()
        );
        let mut third = door.client().await;
        assert_eq!(
            state(&query(&mut third, "SELECT 1").await.expect_err("one too many")).1,
            "53300"
        );
    });
    door.wait_for_clients(0);
}

#[test]
fn settings_are_options_of_the_session() {
    let door = Door::open();
    door.with_client(async |client| {
        // A setting, and a name that is none; as Flight encodes them.
        let option = |name: &str, value: &str| {
            let value = [&[0x0a, value.len() as u8], value.as_bytes()].concat();
            let entry =
                [&[0x0a, name.len() as u8], name.as_bytes(), &[0x12, value.len() as u8], &value]
                    .concat();
            [&[0x0a, entry.len() as u8], &entry[..]].concat()
        };
        let body = [option("application_name", "my reports"), option("nothing", "x")].concat();
        let set = Action { r#type: "SetSessionOptions".to_owned(), body: body.into() };
        let answer = client.do_action(set).await.expect("an answer");
        let answer = answer.try_collect::<Vec<_>>().await.expect("an answer");
        assert!(answer[0].body.windows(7).any(|name| name == b"nothing"));
        let shown = query(client, "SHOW application_name").await.expect("a setting");
        let shown =
            arrow::util::pretty::pretty_format_batches(&shown).expect("a table").to_string();
        assert!(shown.contains("my reports"), "{shown}");
        let get = Action { r#type: "GetSessionOptions".to_owned(), body: Default::default() };
        let answer = client.do_action(get).await.expect("an answer");
        let answer = answer.try_collect::<Vec<_>>().await.expect("an answer");
        assert!(answer[0].body.windows(10).any(|value| value == b"my reports"));
        let other = Action { r#type: "Explode".to_owned(), body: Default::default() };
        assert_eq!(
            state(&client.do_action(other).await.expect_err("no action")).0,
            Code::Unimplemented
        );
    });
}

#[test]
fn connections_are_encrypted_where_clients_begin_so() {
    let certificates = Certificates::new();
    let door = Door::with(quick(), Some(certificates.tls()), ROLES);
    door.block_on(async {
        let connect = async |protocol: Option<&str>| {
            let stream = tokio::net::TcpStream::connect(door.address()).await.expect("a stream");
            let name = rustls::pki_types::ServerName::try_from("localhost").expect("a name");
            certificates.connector(protocol).connect(name, stream).await
        };
        assert!(connect(Some("http/1.1")).await.is_err());
        let stream = std::sync::Mutex::new(Some(connect(Some("h2")).await.expect("a handshake")));
        let connector = tower::service_fn(move |_| {
            let stream = stream.lock().expect("a stream").take();
            async move {
                stream
                    .map(hyper_util::rt::TokioIo::new)
                    .ok_or_else(|| std::io::Error::other("once"))
            }
        });
        let endpoint = Endpoint::from_static("http://localhost");
        let channel = endpoint.connect_with_connector(connector).await.expect("a connection");
        let mut client = Client::new(channel);
        client.handshake("ada", "a:b ü").await.expect("a login");
        assert_eq!(numbers_of(&mut client, "SELECT a FROM t").await, [1]);
        // What is no client of gRPC gets no answer that a page could read.
        let mut stream = tokio::net::TcpStream::connect(door.address()).await.expect("a stream");
        stream.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").await.expect("a request");
        let mut answer = Vec::new();
        let _ =
            tokio::time::timeout(Duration::from_secs(20), stream.read_to_end(&mut answer)).await;
        assert!(!answer.starts_with(b"HTTP/1.1 200"));
    });
}
