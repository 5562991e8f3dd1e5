//! Who is let in.

use std::io::{BufReader, Write};
use std::time::{Duration, Instant};

use alluvium::Engine;
use alluvium_server::Server;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::super::secure::Certificates;
use super::changes::Lines;
use super::door::{Answer, Door, read_answer};

/// Sends these lines as the head of a request without a body.
fn raw(door: &Door, lines: &[&str]) -> Answer {
    let mut stream = door.raw();
    let head = lines.join("\r\n") + "\r\nConnection: close\r\n\r\n";
    stream.write_all(head.as_bytes()).expect("a head");
    read_answer(&mut BufReader::new(stream))
}

const LIST: &str = "GET /v1/relations HTTP/1.1";

#[test]
fn requests_show_the_token() {
    let door = Door::open();
    let token = format!("Authorization: Bearer {}", door.token());
    assert_eq!(raw(&door, &[LIST, "Host: localhost", &token]).status, 200);
    let other = format!("Authorization: Bearer {}", "0".repeat(64));
    let longer = format!("{token}0");
    let basic = format!("Authorization: Basic {}", door.token());
    let query = format!("GET /v1/relations?token={} HTTP/1.1", door.token());
    for lines in [
        &[LIST, "Host: localhost"][..],
        &[LIST, "Host: localhost", "Authorization: Bearer"],
        &[LIST, "Host: localhost", &other],
        &[LIST, "Host: localhost", &longer],
        &[LIST, "Host: localhost", &basic],
        &[LIST, "Host: localhost", "Cookie: alluvium-0=x"],
        &[&query, "Host: localhost"],
        &["GET /openapi.json HTTP/1.1", "Host: localhost"],
        &["GET /nothing HTTP/1.1", "Host: localhost"],
        &["GET //healthz HTTP/1.1", "Host: localhost"],
    ] {
        let answer = raw(&door, lines);
        assert_eq!(answer.status, 401, "{lines:?}");
        assert_eq!(answer.header("www-authenticate"), "Bearer");
        assert!(!answer.text().contains(door.token()));
    }
    for path in ["/healthz", "/readyz"] {
        let answer = raw(&door, &[&format!("GET {path} HTTP/1.1"), "Host: localhost"]);
        assert_eq!(answer.status, 200, "{path}");
    }
    door.wait_for_clients(0);
}

#[test]
fn requests_for_other_hosts_and_from_other_pages_are_refused() {
    let door = Door::open();
    let token = format!("Authorization: Bearer {}", door.token());
    let port = door.address().port();
    let hosts = [
        ("Host: evil.example", 421),
        ("Host: localhost.evil.example", 421),
        ("Host: 127.0.0.1.evil.example", 421),
        ("Host: 0.0.0.0", 421),
        ("Host: 10.0.0.1", 421),
        ("Host: evil@localhost", 400),
        ("Host: localhost\r\nHost: localhost", 400),
        ("Host:", 400),
        ("X: y", 400),
        ("Host: LOCALHOST:1", 200),
        ("Host: 127.0.0.1", 200),
        ("Host: [::1]:80", 200),
    ];
    for (host, status) in hosts {
        assert_eq!(raw(&door, &[LIST, host, &token]).status, status, "{host}");
    }
    let own = format!("http://127.0.0.1:{port}");
    let host = format!("Host: 127.0.0.1:{port}");
    for (origin, status) in [
        (own.as_str(), 200),
        ("http://evil.example", 403),
        ("null", 403),
        ("http://127.0.0.1", 403),
        ("http://localhost:1", 403),
        ("", 403),
    ] {
        let origin = format!("Origin: {origin}");
        let answer = raw(&door, &[LIST, &host, &token, &origin]);
        assert_eq!(answer.status, status, "{origin}");
        assert_eq!(answer.header("access-control-allow-origin"), "");
    }
    // Neither are pages asked before (CORS), nor is what they can send without being asked read.
    assert_eq!(raw(&door, &["OPTIONS /v1/sql HTTP/1.1", &host, &token]).status, 405);
    let body = br#"{"sql": "CREATE TABLE t (k BIGINT)"}"#;
    for media_type in ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data"] {
        let answer = door.ask("POST", "/v1/sql", &[("Content-Type", media_type)], body);
        assert_eq!(answer.status, 415, "{media_type}");
    }
    let evil = "GET http://evil.example/v1/relations HTTP/1.1";
    assert_eq!(raw(&door, &[evil, "Host: localhost", &token]).status, 421);
}

#[test]
fn pages_of_configured_origins_are_answered_by_a_token() {
    let engine = Engine::builder().workers(1).open_in_memory().expect("an engine");
    let origin = "https://app.example";
    let door = Door::serve(engine, |server| server.http_origin(origin.parse().expect("an origin")));
    let token = format!("Authorization: Bearer {}", door.token());
    let (host, from) = ("Host: localhost", format!("Origin: {origin}"));
    let asks = "Access-Control-Request-Method: POST";
    let headers = "Access-Control-Request-Headers: authorization,content-type";
    // What a browser asks before, without a token.
    let answer = raw(&door, &["OPTIONS /v1/sql HTTP/1.1", host, &from, asks, headers]);
    assert_eq!(answer.status, 200);
    assert_eq!(answer.header("access-control-allow-origin"), origin);
    assert!(answer.header("access-control-allow-methods").contains("POST"));
    assert!(answer.header("access-control-allow-headers").contains("authorization"));
    assert_eq!(answer.header("access-control-allow-credentials"), "");
    let answer =
        raw(&door, &["OPTIONS /v1/sql HTTP/1.1", host, "Origin: https://evil.example", asks]);
    assert_eq!(answer.header("access-control-allow-origin"), "");
    let answer = raw(&door, &[LIST, host, &from, &token]);
    assert_eq!((answer.status, answer.header("access-control-allow-origin")), (200, origin));
    // An error is shown to the page as well.
    let answer = raw(&door, &[LIST, host, &from]);
    assert_eq!((answer.status, answer.header("access-control-allow-origin")), (401, origin));
    let answer = raw(&door, &[LIST, host, "Origin: https://evil.example", &token]);
    assert_eq!((answer.status, answer.header("access-control-allow-origin")), (403, ""));
    // A cookie is for the server's own pages.
    let login = format!("GET /login?token={} HTTP/1.1", door.token());
    let cookie = raw(&door, &[&login, host]).header("set-cookie").to_owned();
    let cookie = format!("Cookie: {}", cookie.split(';').next().expect("a cookie"));
    assert_eq!(raw(&door, &[LIST, host, &cookie]).status, 200);
    assert_eq!(raw(&door, &[LIST, host, &from, &cookie]).status, 401);
}

#[test]
fn a_browser_logs_in_by_a_link() {
    let door = Door::open();
    let login = format!("GET /login?token={} HTTP/1.1", door.token());
    let answer = raw(&door, &[&login, "Host: localhost"]);
    assert_eq!(answer.status, 200);
    let cookie = answer.header("set-cookie").to_owned();
    for part in ["HttpOnly", "SameSite=Strict", "Path=/"] {
        assert!(cookie.contains(part), "{cookie}");
    }
    assert!(!cookie.contains(door.token()));
    let cookie = format!("Cookie: {}", cookie.split(';').next().expect("a cookie"));
    assert_eq!(raw(&door, &[LIST, "Host: localhost", &cookie]).status, 200);
    assert_eq!(
        raw(&door, &[LIST, "Host: localhost", &cookie, "Origin: http://evil.example"]).status,
        403
    );
    assert_eq!(raw(&door, &[LIST, "Host: evil.example", &cookie]).status, 421);
    assert_eq!(raw(&door, &[LIST, "Host: localhost", &format!("{cookie}x")]).status, 401);
    for login in ["/login", "/login?token=", "/login?token=x", "/login?token=%00"] {
        let login = format!("GET {login} HTTP/1.1");
        assert_eq!(raw(&door, &[&login, "Host: localhost"]).status, 401, "{login}");
    }
}

#[test]
fn the_token_is_in_a_file_of_its_owner() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("token");
    let engine = Engine::builder().workers(1).open_in_memory().expect("an engine");
    let running =
        Server::new(engine).http(([127, 0, 0, 1], 0).into()).http_token_file(&path).start();
    let running = running.expect("a server");
    let mode = std::fs::metadata(&path).expect("a file").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let written = std::fs::read_to_string(&path).expect("a file");
    assert_eq!(Some(written.trim()), running.http_token());
    let engine = Engine::builder().workers(1).open_in_memory().expect("an engine");
    let nowhere = Server::new(engine).http(([127, 0, 0, 1], 0).into());
    let nowhere = nowhere.http_token_file(folder.path().join("none/token")).start();
    let error = nowhere.err().expect("no file").to_string();
    assert!(error.contains("none/token") && !error.contains(written.trim()), "{error}");
    let engine = Engine::builder().workers(1).open_in_memory().expect("an engine");
    assert!(Server::new(engine).http(([0, 0, 0, 0], 0).into()).start().is_err());
}

#[test]
fn a_configured_name_is_a_host() {
    let engine = Engine::builder().workers(1).open_in_memory().expect("an engine");
    let door = Door::serve(engine, |server| server.http_name("db.example"));
    assert_eq!(raw(&door, &["GET /healthz HTTP/1.1", "Host: DB.example:80"]).status, 200);
    assert_eq!(raw(&door, &["GET /healthz HTTP/1.1", "Host: other.example"]).status, 421);
}

#[test]
fn the_token_shows_nothing_once_there_are_roles() {
    let door = Door::open();
    door.run("CREATE TABLE t (k BIGINT)");
    let path = "/v1/relations/t/changes";
    let mut lines = Lines::open(&door, path, "application/x-ndjson").expect("a stream");
    lines.next().expect("no rows");
    door.run("CREATE ROLE ada LOGIN SUPERUSER PASSWORD 'secret'");
    assert_eq!(door.get("/v1/relations").status, 401);
    assert_eq!(door.get("/healthz").status, 200);
    // Streams end, too.
    let begun = Instant::now();
    let last = std::iter::from_fn(|| lines.next()).filter(|line| !line.is_empty()).last();
    assert!(last.is_some_and(|line| line.contains("\"status\":401")));
    assert!(begun.elapsed() < Duration::from_secs(20));
}

#[test]
fn connections_may_be_encrypted() {
    let certificates = Certificates::new();
    let engine = Engine::builder().workers(1).open_in_memory().expect("an engine");
    let door = Door::serve(engine, |server| server.tls(certificates.tls()));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(async {
        let stream = tokio::net::TcpStream::connect(door.address()).await.expect("a connection");
        let name = ServerName::try_from("localhost").expect("a name");
        let connector = certificates.connector(Some("http/1.1"));
        let mut stream = connector.connect(name, stream).await.expect("an encrypted connection");
        let login = format!("/login?token={}", door.token());
        let head = door.head("GET", &login, &[("Connection", "close")]);
        stream.write_all(head.as_bytes()).await.expect("a head");
        let mut answer = String::new();
        // The end of the connection need not be announced.
        let _ = stream.read_to_string(&mut answer).await;
        assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
        assert!(answer.contains("; Secure"), "{answer}");
    });
    // From this machine it may be in the clear as well.
    assert_eq!(door.get("/healthz").status, 200);
}

#[test]
fn pages_of_other_origins_embed_nothing_and_log_nobody_in() {
    let door = Door::open();
    assert_eq!(door.get("/v1/relations").header("cross-origin-resource-policy"), "same-origin");
    let login = format!("/login?token={}", door.token());
    for (site, status) in
        [("cross-site", 403), ("same-site", 403), ("same-origin", 200), ("none", 200)]
    {
        assert_eq!(
            door.ask("GET", &login, &[("Sec-Fetch-Site", site)], b"").status,
            status,
            "{site}"
        );
    }
}
