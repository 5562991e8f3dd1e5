//! A server of HTTP for a test, and a client that writes and reads its own bytes.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::time::Duration;

use alluvium::Engine;
use alluvium_server::{Limits, Running, Server, with_catalog};
use serde_json::{Value, json};

/// How long a client waits for an answer that should come at once.
const PATIENCE: Duration = Duration::from_secs(60);

/// A server, and its engine.
pub(crate) struct Door {
    pub(crate) engine: Engine,
    pub(crate) running: Running,
}

/// An answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// By names in small letters.
    pub(crate) headers: HashMap<String, String>,
    pub(crate) body: Vec<u8>,
    /// Whether the body has come to its end.
    pub(crate) is_whole: bool,
}

impl Door {
    /// Serves a new engine in memory.
    pub(crate) fn open() -> Self {
        Self::of(Limits::default(), None)
    }

    /// Serves an engine within these limits, with its state in this directory.
    pub(crate) fn of(limits: Limits, state: Option<&Path>) -> Self {
        let builder = Engine::builder().workers(1).history_time(PATIENCE);
        let builder = with_catalog(alluvium_connect::formats(builder));
        let engine = match state {
            Some(state) => builder.state(format!("file:{}", state.display())).open(),
            None => builder.open_in_memory(),
        };
        let engine = engine.expect("an engine");
        Self::serve(engine, |server| server.limits(limits))
    }

    /// Serves an engine by a server that is set up like this.
    pub(crate) fn serve(engine: Engine, set_up: impl FnOnce(Server) -> Server) -> Self {
        let server = set_up(Server::new(engine.clone()).http(([127, 0, 0, 1], 0).into()));
        Self { engine, running: server.start().expect("a server") }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.running.http_addresses()[0]
    }

    pub(crate) fn token(&self) -> &str {
        self.running.http_token().expect("a token")
    }

    /// A connection on which a test writes bytes itself.
    pub(crate) fn raw(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address()).expect("a connection");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        stream.set_write_timeout(Some(PATIENCE)).expect("a timeout");
        stream
    }

    /// The head of a request by a client that knows the token, unless it shows something else.
    pub(crate) fn head(&self, method: &str, path: &str, headers: &[(&str, &str)]) -> String {
        let mut head = format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\n");
        if headers.iter().all(|(name, _)| !["Authorization", "Cookie"].contains(name)) {
            head += &format!("Authorization: Bearer {}\r\n", self.token());
        }
        for (name, value) in headers {
            head += &format!("{name}: {value}\r\n");
        }
        head + "\r\n"
    }

    /// Sends a request on a connection of its own.
    pub(crate) fn ask(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Answer {
        let length = body.len().to_string();
        let mut all = vec![("Connection", "close"), ("Content-Length", &length)];
        all.extend(headers);
        let mut stream = self.raw();
        stream.write_all(self.head(method, path, &all).as_bytes()).expect("a head");
        // It may be answered before it is read.
        let _ = stream.write_all(body);
        read_answer(&mut BufReader::new(stream))
    }

    pub(crate) fn get(&self, path: &str) -> Answer {
        self.ask("GET", path, &[], b"")
    }

    /// Runs a statement.
    pub(crate) fn sql(&self, sql: &str) -> Answer {
        self.post(&json!({ "sql": sql }))
    }

    pub(crate) fn post(&self, body: &Value) -> Answer {
        let headers = [("Content-Type", "application/json")];
        self.ask("POST", "/v1/sql", &headers, body.to_string().as_bytes())
    }

    /// Runs statements that have to succeed.
    pub(crate) fn run(&self, sql: &str) -> Value {
        let answer = self.sql(sql);
        assert_eq!(answer.status, 200, "{sql}: {}", answer.text());
        answer.json()
    }

    /// Inserts rows, one a line.
    pub(crate) fn insert(&self, path: &str, lines: &str, key: Option<&str>) -> Answer {
        let mut headers = vec![("Content-Type", "application/x-ndjson")];
        headers.extend(key.map(|key| ("Idempotency-Key", key)));
        self.ask("POST", path, &headers, lines.as_bytes())
    }

    /// Waits until as many clients are connected.
    pub(crate) fn wait_for_clients(&self, count: usize) {
        for _ in 0..6_000 {
            if self.running.clients() == count {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        panic!("{} clients are connected, and {count} should be", self.running.clients());
    }
}

impl Answer {
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|_| panic!("no JSON: {}", self.text()))
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", String::as_str)
    }
}

/// Reads an answer until its end, or the connection's.
pub(crate) fn read_answer(from: &mut impl BufRead) -> Answer {
    let (status, headers) = read_head(from).expect("the head of an answer");
    let (mut body, mut is_whole) = (Vec::new(), true);
    match headers.get("content-length").map(|length| length.parse::<u64>().expect("a length")) {
        Some(length) => {
            from.take(length).read_to_end(&mut body).expect("a body");
            is_whole = body.len() as u64 == length;
        }
        None if headers.get("transfer-encoding").is_some_and(|coding| coding == "chunked") => {
            loop {
                match read_chunk(from) {
                    Some(chunk) if chunk.is_empty() => break,
                    Some(chunk) => body.extend(chunk),
                    None => {
                        is_whole = false;
                        break;
                    }
                }
            }
        }
        None => {
            from.read_to_end(&mut body).expect("a body");
        }
    }
    Answer { status, headers, body, is_whole }
}

/// Reads the first line and the headers; `None` if the connection ends before.
pub(crate) fn read_head(from: &mut impl BufRead) -> Option<(u16, HashMap<String, String>)> {
    let mut line = String::new();
    from.read_line(&mut line).ok().filter(|length| *length > 0)?;
    let status = line.split(' ').nth(1)?.parse().ok()?;
    let mut headers = HashMap::new();
    loop {
        let mut line = String::new();
        from.read_line(&mut line).ok().filter(|length| *length > 0)?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
    }
    Some((status, headers))
}

/// Reads a chunk of a body; an empty one is the last. `None` if the connection ends before.
pub(crate) fn read_chunk(from: &mut impl BufRead) -> Option<Vec<u8>> {
    let mut line = String::new();
    from.read_line(&mut line).ok().filter(|length| *length > 0)?;
    let length = usize::from_str_radix(line.trim(), 16).ok()?;
    let mut chunk = vec![0; length + 2];
    from.read_exact(&mut chunk).ok()?;
    chunk.truncate(length);
    Some(chunk)
}
