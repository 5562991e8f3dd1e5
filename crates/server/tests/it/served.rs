//! A server for a test, and clients of it.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use alluvium::Engine;
use alluvium_server::{Limits, Running, Server, with_catalog};
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinHandle;
use tokio_postgres::{Client, Config, NoTls};

/// How long a client waits for an answer that should come at once.
const PATIENCE: Duration = Duration::from_secs(60);

/// A server, and a runtime for clients.
pub(crate) struct Served {
    pub(crate) running: Running,
    pub(crate) clients: Runtime,
}

/// Serves a new engine in memory.
pub(crate) fn served() -> Served {
    served_with(Limits::default())
}

/// Serves a new engine in memory within these limits.
pub(crate) fn served_with(limits: Limits) -> Served {
    let builder = with_catalog(Engine::builder().workers(1));
    let engine = builder.open_in_memory().expect("an engine");
    let server = Server::new(engine).limits(limits).pg(([127, 0, 0, 1], 0).into());
    let running = server.start().expect("a server");
    let clients = Builder::new_multi_thread().worker_threads(1).enable_all().build();
    Served { running, clients: clients.expect("a runtime") }
}

impl Served {
    /// Where it listens.
    pub(crate) fn address(&self) -> SocketAddr {
        self.running.pg_addresses()[0]
    }

    /// The settings of a client.
    pub(crate) fn config(&self) -> Config {
        let mut config = Config::new();
        config.host("127.0.0.1").port(self.address().port()).user("someone");
        config
    }

    /// A client, and the task that has its connection.
    pub(crate) async fn connect(&self) -> (Client, JoinHandle<()>) {
        let (client, connection) = self.config().connect(NoTls).await.expect("a connection");
        let task = tokio::spawn(async move {
            // Tests that cut connections see that on their own side.
            let _ = connection.await;
        });
        (client, task)
    }

    /// Runs a test with one client.
    pub(crate) fn with_client<R>(&self, test: impl AsyncFnOnce(&mut Client) -> R) -> R {
        self.clients.block_on(async {
            let (mut client, task) = self.connect().await;
            let done = test(&mut client).await;
            drop(client);
            let _ = task.await;
            done
        })
    }

    /// A connection on which a test writes bytes itself.
    pub(crate) fn raw(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address()).expect("a connection");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        stream
    }

    /// A connection on which a test writes bytes itself, after the login.
    pub(crate) fn raw_logged_in(&self) -> TcpStream {
        let mut stream = self.raw();
        stream.write_all(&startup(&[("user", "someone")])).expect("a startup message");
        read_until_ready(&mut stream);
        stream
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

/// A startup message of version 3.0.
pub(crate) fn startup(parameters: &[(&str, &str)]) -> Vec<u8> {
    let mut body = vec![0, 3, 0, 0];
    for (name, value) in parameters {
        body.extend(name.bytes().chain([0]).chain(value.bytes()).chain([0]));
    }
    body.push(0);
    let mut message = (body.len() as u32 + 4).to_be_bytes().to_vec();
    message.extend(body);
    message
}

/// A message of a kind.
pub(crate) fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    let mut message = vec![kind];
    message.extend((body.len() as u32 + 4).to_be_bytes());
    message.extend(body);
    message
}

/// Reads one message: its kind and its body.
pub(crate) fn read_message(stream: &mut TcpStream) -> (u8, Vec<u8>) {
    let mut head = [0; 5];
    stream.read_exact(&mut head).expect("a message");
    let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]);
    let mut body = vec![0; length as usize - 4];
    stream.read_exact(&mut body).expect("the body of a message");
    (head[0], body)
}

/// Reads messages until the server is ready for the next, and returns them.
pub(crate) fn read_until_ready(stream: &mut TcpStream) -> Vec<(u8, Vec<u8>)> {
    let mut messages = Vec::new();
    loop {
        let message = read_message(stream);
        let is_last = message.0 == b'Z';
        messages.push(message);
        if is_last {
            return messages;
        }
    }
}

/// A field of an error.
pub(crate) fn field(body: &[u8], kind: u8) -> Option<String> {
    let mut fields = body.split(|byte| *byte == 0).filter(|field| !field.is_empty());
    let found = fields.find(|field| field[0] == kind)?;
    Some(String::from_utf8_lossy(&found[1..]).into_owned())
}
