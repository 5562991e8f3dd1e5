//! Changes as messages of a WebSocket.

use std::io::{BufReader, Read, Write};
use std::net::TcpStream;

use serde_json::{Value, json};

use super::door::{Door, read_head};

const UPGRADE: [(&str, &str); 4] = [
    ("Connection", "Upgrade"),
    ("Upgrade", "websocket"),
    ("Sec-WebSocket-Version", "13"),
    ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="),
];

fn open(door: &Door, path: &str, more: &[(&str, &str)]) -> (u16, BufReader<TcpStream>) {
    let mut stream = door.raw();
    let headers: Vec<_> = UPGRADE.iter().chain(more).copied().collect();
    stream.write_all(door.head("GET", path, &headers).as_bytes()).expect("a head");
    let mut stream = BufReader::new(stream);
    let (status, _) = read_head(&mut stream).expect("a head");
    (status, stream)
}

/// The next frame: its kind and its content.
fn frame(stream: &mut BufReader<TcpStream>) -> (u8, Vec<u8>) {
    let mut head = [0; 2];
    stream.read_exact(&mut head).expect("a frame");
    let length = match head[1] & 0x7f {
        126 => {
            let mut length = [0; 2];
            stream.read_exact(&mut length).expect("a length");
            usize::from(u16::from_be_bytes(length))
        }
        short => usize::from(short),
    };
    let mut content = vec![0; length];
    stream.read_exact(&mut content).expect("a frame");
    (head[0] & 0x0f, content)
}

/// The next message of text.
fn message(stream: &mut BufReader<TcpStream>) -> Value {
    loop {
        let (kind, content) = frame(stream);
        if kind == 1 {
            return serde_json::from_slice(&content).expect("JSON");
        }
        assert_eq!(kind, 9, "a ping");
    }
}

#[test]
fn changes_are_messages() {
    let door = Door::open();
    door.run("CREATE TABLE t (k BIGINT); INSERT INTO t VALUES (1)");
    let (status, mut stream) = open(&door, "/v1/relations/t/changes", &[]);
    assert_eq!(status, 101);
    assert_eq!(message(&mut stream)["rows"], json!([{ "k": 1 }]));
    door.run("INSERT INTO t VALUES (2)");
    assert_eq!(message(&mut stream)["epoch"], 2);
    door.wait_for_clients(1);
    // A close, masked as clients have to.
    stream.get_mut().write_all(&[0x88, 0x80, 0, 0, 0, 0]).expect("a close");
    door.wait_for_clients(0);
}

#[test]
fn pages_of_others_open_no_websocket() {
    let door = Door::open();
    door.run("CREATE TABLE t (k BIGINT)");
    let path = "/v1/relations/t/changes";
    assert_eq!(open(&door, path, &[("Origin", "http://evil.example")]).0, 403);
    assert_eq!(open(&door, path, &[("Origin", "http://localhost")]).0, 101);
    assert_eq!(open(&door, "/v1/relations/none/changes", &[]).0, 404);
    assert_eq!(open(&door, path, &[("Sec-WebSocket-Key", "another")]).0 / 100, 1);
    let refused = door.ask("GET", path, &[("Upgrade", "h2c")], b"");
    assert_eq!(refused.status, 426);
}

#[test]
fn a_websocket_resumes_and_large_frames_of_clients_end_it() {
    let door = Door::open();
    door.run("CREATE TABLE t (k BIGINT); INSERT INTO t VALUES (1)");
    door.run("INSERT INTO t VALUES (2)");
    let (_, mut stream) = open(&door, "/v1/relations/t/changes?after=1", &[]);
    assert_eq!(message(&mut stream)["epoch"], 2);
    // A frame that says that it has 2^62 bytes.
    stream
        .get_mut()
        .write_all(&[0x82, 0xff, 0x40, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0])
        .expect("a frame");
    door.wait_for_clients(0);
}

#[test]
fn a_websocket_ends_when_the_server_stops() {
    let door = Door::open();
    door.run("CREATE TABLE t (k BIGINT)");
    let (_, mut stream) = open(&door, "/v1/relations/t/changes", &[]);
    message(&mut stream);
    door.running.stop(std::time::Duration::from_secs(5));
    let mut kind = 9;
    while kind == 9 {
        kind = frame(&mut stream).0;
    }
    assert_eq!(kind, 8, "a close");
}
