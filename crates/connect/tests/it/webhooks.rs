//! Views whose changes are posted to a server that fails now and then.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle, sleep};
use std::time::{Duration, Instant};

use alluvium::Engine;
use serde_json::Value;

use crate::workspace::lines;

/// A server that keeps what is posted to it.
struct Server {
    address: SocketAddr,
    state: Arc<Mutex<State>>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct State {
    /// The requests that were taken, in their order: headers and body.
    taken: Vec<(BTreeMap<String, String>, Value)>,
    /// What becomes of the next requests; they are taken if there is none.
    next: Vec<Fate>,
    is_over: bool,
}

/// What becomes of a request.
#[derive(Clone)]
enum Fate {
    Refused(&'static str),
    /// The connection ends before the request is taken.
    Lost,
    /// It ends before the answer comes.
    Unanswered,
}

impl Server {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (address, state) = (listener.local_addr().unwrap(), Arc::new(Mutex::default()));
        let shared = state.clone();
        let thread = thread::spawn(move || {
            for stream in listener.incoming() {
                if lock(&shared).is_over {
                    return;
                }
                // A client that goes away is none of ours.
                let _ = serve(&stream.unwrap(), &shared);
            }
        });
        Self { address, state, thread: Some(thread) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// The changes of all requests, each request once.
    fn changes(&self) -> Vec<Value> {
        let mut seen = BTreeSet::new();
        let state = self.state();
        let new = state.taken.iter().filter(|(headers, _)| seen.insert(&headers["webhook-id"]));
        new.flat_map(|(_, body)| body["changes"].as_array().unwrap().clone()).collect()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.state().is_over = true;
        // The thread waits for a client.
        let _ = TcpStream::connect(self.address);
        self.thread.take().unwrap().join().unwrap();
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

fn serve(mut stream: &TcpStream, state: &Mutex<State>) -> std::io::Result<()> {
    let (mut reader, mut headers) = (BufReader::new(stream), BTreeMap::new());
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 || line.trim().is_empty() {
            break;
        }
        if let Some((name, value)) = line.trim().split_once(": ") {
            headers.insert(name.to_ascii_lowercase(), value.to_owned());
        }
    }
    let Some(length) = headers.get("content-length") else { return Ok(()) };
    let mut body = vec![0; length.parse().unwrap()];
    reader.read_exact(&mut body)?;
    let fate = lock(state).next.pop();
    let status = match fate {
        Some(Fate::Lost) => return Ok(()),
        Some(Fate::Refused(status)) => status,
        Some(Fate::Unanswered) | None => {
            lock(state).taken.push((headers, serde_json::from_slice(&body).unwrap()));
            "200 OK"
        }
    };
    match fate {
        Some(Fate::Unanswered) => Ok(()),
        _ => write!(
            stream,
            "HTTP/1.1 {status}\r\nContent-Length: 4\r\nConnection: close\r\n\r\ntold"
        ),
    }
}

const SUMS: &str = "SELECT name, COUNT(*) AS rows, SUM(n) AS total FROM t GROUP BY name";

fn program(server: &Server, more: &str) -> String {
    format!(
        "CREATE TABLE t (id BIGINT PRIMARY KEY, name TEXT, n BIGINT);
         CREATE VIEW sums WITH (connector = 'webhook', 'url' = 'http://{}/changes?of=sums'{more}) AS {SUMS}",
        server.address
    )
}

fn engine(folder: &Path) -> Engine {
    let builder = alluvium_connect::formats(Engine::builder().workers(1)).secrets(folder);
    builder.state(&*format!("file:{}", folder.join("state").display())).open().unwrap()
}

fn wait_until(is_so: impl Fn() -> bool) {
    const LONG: Duration = Duration::from_secs(60);
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < LONG, "it takes too long");
        sleep(Duration::from_millis(5));
    }
}

fn line(row: &Value) -> String {
    format!("{}|{}|{}", row["name"].as_str().unwrap(), row["rows"], row["total"])
}

/// The rows that changes add up to.
fn sum(changes: &[Value]) -> Vec<String> {
    let mut copies = BTreeMap::<String, i64>::new();
    for change in changes {
        *copies.entry(line(change)).or_default() += change["weight"].as_i64().unwrap();
    }
    assert!(copies.values().all(|copies| (0..=1).contains(copies)), "{copies:?}");
    copies.into_iter().filter(|(_, copies)| *copies > 0).map(|(row, _)| row).collect()
}

fn change(engine: &Engine, random: &mut fastrand::Rng) {
    let (id, n) = (random.u8(..20), random.i8(..));
    let name = ["a", "b", "c"][random.usize(..3)];
    let sql = match random.u8(..3) {
        0 => format!("DELETE FROM t WHERE id = {id}"),
        _ => format!("INSERT OR REPLACE INTO t VALUES ({id}, '{name}', {n})"),
    };
    engine.execute(&sql).unwrap();
}

/// Requests are refused, lost and answered by nobody, and the engine starts again: each change is there once for a server that takes each
/// identifier once.
#[test]
fn each_identifier_taken_once_is_each_change_once() {
    let (server, folder) = (Server::start(), tempfile::tempdir().unwrap());
    let mut random = fastrand::Rng::with_seed(11);
    for start in 0..4 {
        let running = engine(folder.path());
        if start == 0 {
            running.execute(&program(&server, "")).unwrap();
        }
        for _ in 0..10 {
            change(&running, &mut random);
            let fates = [Fate::Refused("503 Service Unavailable"), Fate::Lost, Fate::Unanswered];
            if random.bool() {
                server.state().next.push(fates[random.usize(..3)].clone());
            }
        }
        if start == 1 {
            running.checkpoint().unwrap();
        }
        let expected = lines(&running.query(SUMS).unwrap());
        wait_until(|| sum(&server.changes()) == expected);
        let outputs = running.query("SELECT exactly_once FROM alluvium.outputs").unwrap();
        assert_eq!(lines(&outputs), ["false"]);
    }
}

#[test]
fn a_request_is_signed_and_says_who_asks_and_no_secret_is_shown() {
    const SECRET: &str = "xyzzy-4711";
    let (server, folder) = (Server::start(), tempfile::tempdir().unwrap());
    std::fs::write(folder.path().join("who"), format!("Bearer {SECRET}\n")).unwrap();
    std::fs::write(folder.path().join("signing"), "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
        .unwrap();
    let running = engine(folder.path());
    let secrets = ", 'authorization' = '${secret:who}', 'signing_secret' = '${secret:signing}',
        format = 'json', 'format.update_format' = 'upsert', 'format.key_columns' = '[\"name\"]'";
    running.execute(&program(&server, secrets)).unwrap();
    running.execute("INSERT INTO t VALUES (1, 'a', 5), (2, 'b', 1)").unwrap();
    running.execute("DELETE FROM t WHERE id = 2").unwrap();
    wait_until(|| server.changes().len() == 3);
    let changes: Vec<String> = server.changes().iter().map(Value::to_string).collect();
    let expected = [
        r#"{"key":{"name":"a"},"value":{"name":"a","rows":1,"total":5}}"#,
        r#"{"key":{"name":"b"},"value":{"name":"b","rows":1,"total":1}}"#,
        r#"{"key":{"name":"b"},"value":null}"#,
    ];
    assert_eq!(changes, expected);
    let (headers, body) = server.state().taken[0].clone();
    assert_eq!(headers["authorization"], format!("Bearer {SECRET}"));
    assert!(headers["webhook-signature"].starts_with("v1,"), "{headers:?}");
    assert!(headers["webhook-timestamp"].parse::<u64>().unwrap() > 1_700_000_000, "{headers:?}");
    assert_eq!(body["view"], "sums");
    server.state().next.push(Fate::Refused("401 Unauthorized"));
    running.execute("INSERT INTO t VALUES (3, 'c', 7)").unwrap();
    wait_until(|| server.changes().len() == 4);
    let shown = format!("{:?}", running.query("SELECT * FROM alluvium.outputs").unwrap());
    assert!(!shown.contains(SECRET) && !shown.contains("MfKQ9r8"), "{shown}");
}

#[test]
fn why_a_request_is_not_taken_is_shown_while_it_is_not() {
    let (server, other) = (Server::start(), Server::start());
    let folder = tempfile::tempdir().unwrap();
    let running = engine(folder.path());
    let error = || {
        let shown =
            running.query("SELECT state || ' ' || COALESCE(error, '') FROM alluvium.outputs");
        lines(&shown.unwrap()).join("")
    };
    running.execute(&program(&server, "")).unwrap();
    server.state().next = vec![Fate::Refused("410 Gone"); 100];
    running.execute("INSERT INTO t VALUES (1, 'a', 5)").unwrap();
    wait_until(|| error().contains("410 Gone: told"));
    assert!(error().starts_with("running"), "{}", error());
    let moved: &'static str =
        Box::leak(format!("302 Found\r\nLocation: http://{}/", other.address).into_boxed_str());
    server.state().next = vec![Fate::Refused(moved); 2];
    wait_until(|| error().contains("sends to another place"));
    wait_until(|| server.changes().len() == 1 && error() == "running ");
    assert_eq!(other.state().taken.len(), 0);
    // A view ends although its server does not answer.
    server.state().next = vec![Fate::Lost; 10_000];
    running.execute("INSERT INTO t VALUES (2, 'a', 5)").unwrap();
    running.execute("DROP VIEW sums").unwrap();
}

#[test]
fn options_that_are_not_to_be_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let running = engine(folder.path());
    running.execute("CREATE TABLE t (id BIGINT PRIMARY KEY, name TEXT, n BIGINT)").unwrap();
    for (options, problem) in [
        ("", "needs \"url\""),
        (", 'url' = 'file:///etc/passwd'", "not \"file:///etc/passwd\""),
        (", 'url' = 'http://ann:xyzzy@a/'", "has a user in it"),
        (", 'url' = 'http://a', 'colour' = 'red'", "no option \"colour\""),
        (", 'url' = 'http://a', 'authorization' = 'xyzzy'", "authorization"),
        (", 'url' = 'http://a', 'timeout_ms' = '0'", "timeout_ms"),
        (", 'url' = 'http://a', format = 'csv'", "as json, not as \"csv\""),
        (", 'url' = 'http://a', 'format.update_format' = 'upsert', format = 'json'", "need a key"),
    ] {
        let sql = format!("CREATE VIEW v WITH (connector = 'webhook'{options}) AS {SUMS}");
        let error = running.execute(&sql).unwrap_err().to_string();
        assert!(error.contains(problem) && !error.contains("xyzzy"), "{error}");
    }
}
