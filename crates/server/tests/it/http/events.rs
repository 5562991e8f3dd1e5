//! Changes as Server-Sent Events.

use std::io::{BufReader, Write};

use serde_json::{Value, json};

use super::changes::Lines;
use super::door::{Door, read_head};

/// An event: its identifier, its name, and its data.
type Event = (Option<String>, String, Value);

/// The next event.
fn event(lines: &mut Lines) -> Event {
    let (mut id, mut name, mut data) = (None, String::new(), String::new());
    loop {
        let line = lines.next().expect("a line");
        match line.split_once(':') {
            Some(("id", value)) => id = Some(value.trim().to_owned()),
            Some(("event", value)) => value.trim().clone_into(&mut name),
            Some(("data", value)) => data += value.trim_start(),
            _ if line.is_empty() && !data.is_empty() => break,
            _ => (),
        }
    }
    (id, name, serde_json::from_str(&data).expect("JSON"))
}

#[test]
fn events_have_their_epochs_as_identifiers() {
    let door = Door::open();
    door.run("CREATE TABLE t (k BIGINT); INSERT INTO t VALUES (1)");
    let path = "/v1/relations/t/changes";
    let mut lines = Lines::open(&door, path, "text/event-stream").expect("a stream");
    let (id, name, data) = event(&mut lines);
    assert_eq!((id.as_deref(), name.as_str()), (Some("1"), "snapshot"));
    assert_eq!(data["rows"], json!([{ "k": 1 }]));
    door.run("INSERT INTO t VALUES (2)");
    let (id, name, data) = event(&mut lines);
    assert_eq!((id.as_deref(), name.as_str()), (Some("2"), "change"));
    assert_eq!((data["rows"].clone(), data["weights"].clone()), (json!([{ "k": 2 }]), json!([1])));
}

#[test]
fn a_browser_resumes_after_its_last_event() {
    let door = Door::open();
    door.run("CREATE TABLE t (k BIGINT); INSERT INTO t VALUES (1)");
    door.run("INSERT INTO t VALUES (2)");
    let mut stream = door.raw();
    // Its address says where it began; the header counts.
    let head = door.head("GET", "/v1/relations/t/changes?after=0", &[("Last-Event-ID", "1")]);
    stream.write_all(head.as_bytes()).expect("a head");
    let mut stream = BufReader::new(stream);
    let (status, headers) = read_head(&mut stream).expect("a head");
    assert_eq!((status, headers["content-type"].as_str()), (200, "text/event-stream"));
    assert_eq!(headers["cache-control"], "no-store");
    let text = String::from_utf8(super::door::read_chunk(&mut stream).expect("an event"));
    let text = text.expect("text");
    assert!(
        text.contains("id: 2") && !text.contains("id: 1") && text.contains("event: change"),
        "{text}"
    );
}

#[test]
fn a_silent_stream_has_heartbeats() {
    let door = Door::open();
    door.run("CREATE TABLE t (k BIGINT)");
    let path = "/v1/relations/t/changes";
    let mut events = Lines::open(&door, path, "text/event-stream").expect("a stream");
    let mut lines = Lines::open(&door, path, "application/x-ndjson").expect("a stream");
    event(&mut events);
    lines.next().expect("no rows");
    let begun = std::time::Instant::now();
    assert_eq!(events.next().as_deref(), Some(":"));
    assert_eq!(lines.next().as_deref(), Some(""));
    assert!((10..25).contains(&begun.elapsed().as_secs()), "{:?}", begun.elapsed());
}
