//! A registry for tests, on a port of its own, until it is dropped.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use serde_json::{Value, json};

pub struct Stub {
    address: SocketAddr,
    state: Arc<Mutex<State>>,
    thread: Option<JoinHandle<()>>,
}

/// What the registry has, and does.
#[derive(Default)]
pub struct State {
    /// The schemas by their identifiers, as answers have them.
    pub schemas: BTreeMap<u32, Value>,
    /// The identifiers of a subject's versions.
    pub subjects: BTreeMap<String, Vec<u32>>,
    /// Answers are these for so many requests: a status, headers and a body.
    pub answers: Vec<(String, String)>,
    /// The lines of all requests, and their `Authorization`.
    pub requests: Vec<(String, Option<String>)>,
    is_over: bool,
}

impl Stub {
    pub fn start() -> Self {
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

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// Adds a schema, and tells its identifier.
    pub fn add(&self, subject: &str, schema: &str) -> u32 {
        self.state().add(subject, json!({ "schema": schema }))
    }
}

impl Drop for Stub {
    fn drop(&mut self) {
        self.state().is_over = true;
        // The thread waits for a client.
        let _ = TcpStream::connect(self.address);
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }
}

impl State {
    pub fn add(&mut self, subject: &str, schema: Value) -> u32 {
        let known = self.schemas.iter().find(|(_, known)| known["schema"] == schema["schema"]);
        let id = match known {
            Some((id, _)) => *id,
            None => self.schemas.len() as u32 + 1,
        };
        self.schemas.entry(id).or_insert(schema);
        let versions = self.subjects.entry(subject.to_owned()).or_default();
        if !versions.contains(&id) {
            versions.push(id);
        }
        id
    }

    fn answer(&mut self, line: &str, body: &str) -> (String, String) {
        if !self.answers.is_empty() {
            return self.answers.remove(0);
        }
        let path: Vec<&str> =
            line.split(' ').nth(1).unwrap_or_default().split('/').skip(1).collect();
        let found = match path.as_slice() {
            ["schemas", "ids", id] => self.schemas.get(&id.parse().unwrap()).cloned(),
            ["subjects", subject, "versions"] => {
                let id = self.add(subject, serde_json::from_str(body).unwrap());
                Some(json!({ "id": id }))
            }
            ["subjects", subject, "versions", version] => {
                let at = version.parse::<usize>().unwrap() - 1;
                self.subjects.get(*subject).and_then(|ids| self.schemas.get(ids.get(at)?)).cloned()
            }
            _ => None,
        };
        match found {
            Some(found) => ("200 OK".to_owned(), found.to_string()),
            None => {
                let body = json!({ "error_code": 40403, "message": "Schema not found" });
                ("404 Not Found".to_owned(), body.to_string())
            }
        }
    }
}

fn serve(mut stream: &TcpStream, state: &Mutex<State>) -> std::io::Result<()> {
    let (mut reader, mut head) = (BufReader::new(stream), Vec::new());
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 || line.trim().is_empty() {
            break;
        }
        head.push(line.trim().to_owned());
    }
    let header = |name: &str| {
        head.iter()
            .filter_map(|line| line.split_once(": "))
            .find_map(|(known, value)| known.eq_ignore_ascii_case(name).then(|| value.to_owned()))
    };
    let length = header("content-length").map_or(0, |length| length.parse().unwrap());
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    let Some(line) = head.first() else { return Ok(()) };
    let (status, body) = {
        let mut state = lock(state);
        state.requests.push((line.clone(), header("authorization")));
        state.answer(line, &String::from_utf8_lossy(&body))
    };
    let length = body.len();
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    )
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}
