//! `GET /v1/relations/{name}/changes`, as lines.

use std::collections::BTreeMap;
use std::io::{BufReader, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use alluvium::Engine;
use alluvium_server::Limits;
use serde_json::{Value, json};

use super::door::{Door, read_chunk, read_head};

/// The lines of a stream.
pub(crate) struct Lines {
    stream: BufReader<TcpStream>,
    text: Vec<u8>,
}

impl Lines {
    /// Begins to read changes; the status of the answer, if it is no stream, is the error.
    pub(crate) fn open(door: &Door, path: &str, accept: &str) -> Result<Self, u16> {
        Self::open_with(door, path, &[("Accept", accept)])
    }

    /// As [`Lines::open`], with these headers.
    pub(crate) fn open_with(
        door: &Door,
        path: &str,
        headers: &[(&str, &str)],
    ) -> Result<Self, u16> {
        let mut stream = door.raw();
        let head = door.head("GET", path, headers);
        stream.write_all(head.as_bytes()).expect("a head");
        let mut stream = BufReader::new(stream);
        match read_head(&mut stream).expect("a head") {
            (200, _) => Ok(Self { stream, text: Vec::new() }),
            (status, _) => Err(status),
        }
    }

    /// The next line; `None` at the end.
    pub(crate) fn next(&mut self) -> Option<String> {
        loop {
            if let Some(end) = self.text.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.text.drain(..=end).collect();
                return Some(String::from_utf8_lossy(&line[..end]).into_owned());
            }
            let chunk = read_chunk(&mut self.stream).filter(|chunk| !chunk.is_empty())?;
            self.text.extend(chunk);
        }
    }

    /// The next change.
    pub(crate) fn change(&mut self) -> Option<Value> {
        loop {
            let line = self.next()?;
            if !line.is_empty() {
                return Some(serde_json::from_str(&line).expect("JSON"));
            }
        }
    }
}

/// Applies a part of a change to rows and their counts.
pub(crate) fn apply(rows: &mut BTreeMap<String, i64>, change: &Value) {
    if change["snapshot"] == true && change["first"] == true {
        rows.clear();
    }
    let weights = change["weights"].as_array().expect("weights");
    for (row, weight) in change["rows"].as_array().expect("rows").iter().zip(weights) {
        let count = rows.entry(row.to_string()).or_default();
        *count += weight.as_i64().expect("a weight");
        if *count == 0 {
            rows.remove(&row.to_string());
        }
    }
}

const LINES: &str = "application/x-ndjson";

#[test]
fn rows_come_first_and_then_their_changes() {
    let door = Door::open();
    door.run("CREATE TABLE t (k BIGINT PRIMARY KEY, v BIGINT); INSERT INTO t VALUES (1, 10)");
    door.run("CREATE MATERIALIZED VIEW total AS SELECT SUM(v) AS s FROM t");
    let mut lines = Lines::open(&door, "/v1/relations/total/changes", LINES).expect("a stream");
    let first = json!({
        "epoch": 1, "snapshot": true, "first": true, "last": true, "weights": [1], "rows": [{ "s": 10 }],
    });
    assert_eq!(lines.change(), Some(first));
    door.run("INSERT INTO t VALUES (2, 5)");
    let change = lines.change().expect("a change");
    assert_eq!((change["epoch"].clone(), change["snapshot"].clone()), (json!(2), json!(false)));
    let mut rows = BTreeMap::from([("{\"s\":10}".to_owned(), 1)]);
    apply(&mut rows, &change);
    assert_eq!(rows, BTreeMap::from([("{\"s\":15}".to_owned(), 1)]));
    let mut empty = Lines::open(&door, "/v1/relations/t/changes?after=2", LINES).expect("a stream");
    // The stream ends with its relation.
    door.run("DROP MATERIALIZED VIEW total");
    assert_eq!(lines.change(), None);
    door.run("INSERT INTO t VALUES (3, 5)");
    let after = empty.change().expect("a change");
    assert_eq!(
        (after["epoch"].clone(), after["rows"].clone()),
        (json!(3), json!([{ "k": 3, "v": 5 }]))
    );
    drop((lines, empty));
    door.wait_for_clients(0);
}

#[test]
fn what_cannot_be_streamed_is_refused() {
    let door = Door::open();
    door.run("CREATE TABLE t (k BIGINT)");
    for (path, status) in [
        ("/v1/relations/none/changes", 404),
        ("/v1/relations/t/changes?after=x", 400),
        ("/v1/relations/t/changes?after=-1", 400),
        ("/v1/relations/t/changes?k=1", 400),
        ("/v1/relations/t/changes/more", 405),
    ] {
        assert_eq!(door.get(path).status, status, "{path}");
    }
    let wrong = door.ask("GET", "/v1/relations/t/changes", &[("Accept", "text/csv")], b"");
    assert_eq!(wrong.status, 406);
    let wrong = door.ask("GET", "/v1/relations/t/changes", &[("Last-Event-ID", "x")], b"");
    assert_eq!(wrong.status, 400);
}

#[test]
fn history_that_is_gone_is_410() {
    let engine = Engine::builder().workers(1).history(2).open_in_memory().expect("an engine");
    let door = Door::serve(engine, |server| server);
    door.run("CREATE TABLE t (k BIGINT); CREATE VIEW plain AS SELECT k FROM t");
    for k in 0..40 {
        door.run(&format!("INSERT INTO t VALUES ({k}); SELECT * FROM t"));
    }
    let ask = |relation: &str, epoch: &str| {
        let path = format!("/v1/relations/{relation}/changes");
        let answer = door.ask("GET", &path, &[("Last-Event-ID", epoch)], b"");
        assert_eq!((answer.status, answer.json()["sqlstate"].as_str()), (410, Some("55000")));
        answer.json()["oldest"].clone()
    };
    let oldest = ask("t", "1").as_u64().expect("an epoch");
    assert!((2..=40).contains(&oldest), "{oldest}");
    let path = format!("/v1/relations/t/changes?after={oldest}");
    assert!(Lines::open(&door, &path, LINES).is_ok());
    // A plain view keeps none, and no client has had what has not been.
    assert_eq!(ask("plain", "1"), Value::Null);
    ask("t", "1000");
}

#[test]
fn clients_resume_without_gap_or_duplicate_while_others_write() {
    let door = Door::open();
    door.run("CREATE TABLE t (k BIGINT PRIMARY KEY, v BIGINT)");
    door.run("CREATE MATERIALIZED VIEW groups AS SELECT v % 10 AS g, COUNT(*) AS n, SUM(k) AS s FROM t GROUP BY v % 10");
    const LAST: i64 = 400;
    let engine = door.engine.clone();
    let writer = std::thread::spawn(move || {
        let mut random = fastrand::Rng::with_seed(3);
        for k in 0..LAST {
            let v = random.i64(..1000);
            engine.execute(&format!("INSERT INTO t VALUES ({k}, {v})")).expect("a row");
            if k % 3 == 0 {
                let gone = random.i64(..=k);
                engine.execute(&format!("DELETE FROM t WHERE k = {gone}")).expect("a deletion");
            }
        }
        engine.execute(&format!("INSERT INTO t VALUES ({}, 0)", LAST * 1000)).expect("the last");
    });
    let (mut rows, mut epoch) = (BTreeMap::new(), None);
    let mut random = fastrand::Rng::with_seed(5);
    let mut resumed = 0;
    let is_over = |rows: &BTreeMap<String, i64>| {
        rows.keys().any(|row| {
            let row: Value = serde_json::from_str(row).expect("JSON");
            row["g"] == 0 && row["s"].as_i64().is_some_and(|sum| sum >= LAST * 1000)
        })
    };
    while !is_over(&rows) {
        let path = match epoch {
            None => "/v1/relations/groups/changes".to_owned(),
            Some(epoch) => format!("/v1/relations/groups/changes?after={epoch}"),
        };
        let mut lines = Lines::open(&door, &path, LINES).expect("a stream");
        for _ in 0..random.usize(1..20) {
            let change = lines.change().expect("a change");
            let found = change["epoch"].as_u64().expect("an epoch");
            assert_eq!(change["snapshot"] == true, epoch.is_none());
            assert!(epoch.is_none_or(|epoch| epoch < found), "{epoch:?} and then {found}");
            apply(&mut rows, &change);
            epoch = Some(found);
            if is_over(&rows) {
                break;
            }
        }
        resumed += 1;
    }
    writer.join().expect("a writer");
    assert!(resumed > 5);
    let now = door.get("/v1/relations/groups").json();
    let mut expected = BTreeMap::new();
    for row in now["rows"].as_array().expect("rows") {
        *expected.entry(row.to_string()).or_insert(0) += 1;
    }
    assert_eq!(rows, expected);
}

#[test]
fn a_subscriber_that_stalls_is_cut_off_and_holds_up_nobody() {
    let mut limits = Limits::default();
    limits.subscription_changes = 64;
    let door = Door::of(limits, None);
    door.run("CREATE TABLE t (k BIGINT, v VARCHAR)");
    let mut stalled = Lines::open(&door, "/v1/relations/t/changes", LINES).expect("a stream");
    stalled.change().expect("no rows");
    let begun = Instant::now();
    for k in 0..2_000 {
        door.engine
            .execute(&format!("INSERT INTO t VALUES ({k}, repeat('x', 10000))"))
            .expect("a row");
    }
    assert!(begun.elapsed() < Duration::from_secs(60));
    // It gets what was under way, and then why there is no more.
    let mut last = Value::Null;
    while let Some(change) = stalled.change() {
        last = change;
    }
    assert_eq!(
        (last["error"]["status"].clone(), last["error"]["sqlstate"].clone()),
        (json!(409), json!("55000"))
    );
    drop(stalled);
    door.wait_for_clients(0);
}

#[test]
fn large_snapshots_come_in_parts() {
    let door = Door::open();
    door.run("CREATE TABLE t (k BIGINT PRIMARY KEY, v VARCHAR); INSERT INTO t SELECT n, repeat('x', 100000) FROM generate_series(1, 100) AS s(n)");
    let mut lines = Lines::open(&door, "/v1/relations/t/changes", LINES).expect("a stream");
    let (mut rows, mut parts) = (BTreeMap::new(), 0);
    loop {
        let part = lines.change().expect("a part");
        assert_eq!(part["first"] == true, parts == 0);
        apply(&mut rows, &part);
        parts += 1;
        if part["last"] == true {
            break;
        }
    }
    assert!(parts > 3 && rows.len() == 100, "{parts} parts, {} rows", rows.len());
}

#[test]
fn hundreds_of_subscribers_have_no_threads() {
    let mut limits = Limits::default();
    limits.connections = 400;
    let door = Door::of(limits, None);
    door.run("CREATE TABLE t (k BIGINT)");
    let threads = || std::fs::read_dir("/proc/self/task").expect("threads").count();
    let subscribers = (0..300).map(|_| {
        let mut lines = Lines::open(&door, "/v1/relations/t/changes", LINES).expect("a stream");
        lines.change().expect("no rows");
        lines
    });
    let mut subscribers: Vec<_> = subscribers.collect();
    assert!(threads() < 250, "{} threads", threads());
    assert_eq!(door.running.clients(), 300);
    door.engine.execute("INSERT INTO t VALUES (7)").expect("a row");
    for lines in &mut subscribers {
        assert_eq!(lines.change().expect("a change")["rows"], json!([{ "k": 7 }]));
    }
    drop(subscribers);
    door.wait_for_clients(0);
}

#[test]
fn streams_end_when_the_server_stops() {
    let door = Door::open();
    door.run("CREATE TABLE t (k BIGINT)");
    let mut lines = Lines::open(&door, "/v1/relations/t/changes", LINES).expect("a stream");
    lines.change().expect("no rows");
    let begun = Instant::now();
    door.running.stop(Duration::from_secs(10));
    assert_eq!(lines.change(), None);
    assert!(begun.elapsed() < Duration::from_secs(5));
}
