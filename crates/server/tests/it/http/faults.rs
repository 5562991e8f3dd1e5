//! Clients that are broken, slow, or gone.

use std::io::{BufReader, Read, Write};
use std::net::Shutdown;
use std::time::{Duration, Instant};

use alluvium_server::Limits;
use serde_json::json;

use super::door::{Answer, Door, read_answer, read_head};

fn still_serves(door: &Door) {
    assert_eq!(door.run("SELECT 1 AS a")["rows"], json!([{ "a": 1 }]));
}

#[test]
fn noise_ends_connections_and_nothing_else() {
    let door = Door::open();
    let mut random = fastrand::Rng::with_seed(11);
    for round in 0..300 {
        let mut bytes: Vec<u8> = (0..random.usize(1..400)).map(|_| random.u8(..)).collect();
        match round % 4 {
            0 => {
                bytes.splice(0..0, *b"POST /v1/sql HTTP/1.1\r\nHost: localhost\r\n").for_each(drop)
            }
            1 => {
                let head = door.head(
                    "POST",
                    "/v1/sql",
                    &[("Content-Type", "application/json"), ("Transfer-Encoding", "chunked")],
                );
                bytes.splice(0..0, head.into_bytes()).for_each(drop);
            }
            2 => {
                let length = bytes.len().to_string();
                let head = door.head(
                    "POST",
                    "/v1/sql",
                    &[("Content-Type", "application/json"), ("Content-Length", &length)],
                );
                bytes.splice(0..0, head.into_bytes()).for_each(drop);
            }
            _ => (),
        }
        let mut stream = door.raw();
        let _ = stream.write_all(&bytes);
        let _ = stream.shutdown(Shutdown::Write);
        let _ = stream.read_to_end(&mut Vec::new());
    }
    door.wait_for_clients(0);
    still_serves(&door);
}

#[test]
fn connections_may_vanish_at_every_byte() {
    let door = Door::open();
    door.run("CREATE TABLE t (k BIGINT)");
    let body = "{\"k\": 1}\n";
    let headers = [
        ("Content-Type", "application/x-ndjson"),
        ("Content-Length", "9"),
        ("Idempotency-Key", "one"),
    ];
    let all = door.head("POST", "/v1/relations/t", &headers) + body;
    for length in 0..all.len() {
        let mut stream = door.raw();
        stream.write_all(&all.as_bytes()[..length]).expect("a part");
    }
    door.wait_for_clients(0);
    // Connections that have said nothing are noticed a moment later, and are as many as there may be.
    let patient = |ask: &dyn Fn() -> Answer| loop {
        let answer = ask();
        if answer.status != 503 {
            return answer;
        }
    };
    let rows = || {
        let answer = patient(&|| door.sql("SELECT COUNT(*) AS n FROM t"));
        answer.json()["rows"][0]["n"].clone()
    };
    assert_eq!(rows(), 0);
    for _ in 0..20 {
        let mut stream = door.raw();
        stream.write_all(all.as_bytes()).expect("all of it");
    }
    door.wait_for_clients(0);
    // One that is ended may take a moment to see it.
    let last = loop {
        let answer = patient(&|| door.insert("/v1/relations/t", body, Some("one")));
        if answer.status != 409 {
            break answer;
        }
    };
    assert_eq!(last.status, 200, "{}", last.text());
    assert_eq!(rows(), 1);
}

#[test]
fn heads_are_limited_in_bytes_and_in_time() {
    let door = Door::open();
    let mut stream = door.raw();
    let long = door.head("GET", "/v1/relations", &[("X", &"x".repeat(300 << 10))]);
    let _ = stream.write_all(long.as_bytes());
    let (status, _) = read_head(&mut BufReader::new(stream)).expect("an answer");
    assert_eq!(status, 431);
    let many: Vec<_> = (0..200).map(|_| ("X", "y")).collect();
    let mut stream = door.raw();
    let _ = stream.write_all(door.head("GET", "/v1/relations", &many).as_bytes());
    let (status, _) = read_head(&mut BufReader::new(stream)).expect("an answer");
    assert_eq!(status, 431);
    let mut slow = door.raw();
    let begun = Instant::now();
    slow.write_all(b"GET / HTTP/1.1\r\nHost: lo").expect("half a head");
    let mut answer = Vec::new();
    let _ = slow.read_to_end(&mut answer);
    assert!((8..20).contains(&begun.elapsed().as_secs()), "{:?}", begun.elapsed());
}

#[test]
fn a_length_of_2_gb_is_refused_at_once() {
    let door = Door::open();
    door.run("CREATE TABLE t (k BIGINT)");
    for (path, media_type) in
        [("/v1/sql", "application/json"), ("/v1/relations/t", "application/x-ndjson")]
    {
        let mut stream = door.raw();
        let headers = [("Content-Type", media_type), ("Content-Length", "2147483648")];
        stream.write_all(door.head("POST", path, &headers).as_bytes()).expect("a head");
        let answer = read_answer(&mut BufReader::new(stream));
        assert_eq!(
            (answer.status, answer.json()["sqlstate"].as_str()),
            (413, Some("54000")),
            "{path}"
        );
    }
    let mut stream = door.raw();
    let headers =
        [("Content-Type", "application/json"), ("Content-Length", "99999999999999999999999")];
    stream.write_all(door.head("POST", "/v1/sql", &headers).as_bytes()).expect("a head");
    assert_eq!(read_answer(&mut BufReader::new(stream)).status, 400);
    still_serves(&door);
}

#[test]
fn a_chunked_body_without_end_is_cut_off() {
    let mut limits = Limits::default();
    limits.message_bytes = 1 << 20;
    let door = Door::of(limits, None);
    let mut stream = door.raw();
    let headers = [("Content-Type", "application/json"), ("Transfer-Encoding", "chunked")];
    stream.write_all(door.head("POST", "/v1/sql", &headers).as_bytes()).expect("a head");
    let chunk = [b"10000\r\n".as_slice(), &[b' '; 0x10000], b"\r\n"].concat();
    for _ in 0..64 {
        if stream.write_all(&chunk).is_err() {
            break;
        }
    }
    let answer = read_head(&mut BufReader::new(stream)).map(|(status, _)| status);
    // The answer may be lost where more is sent after the connection has ended.
    assert!(answer.is_none_or(|status| status == 413), "{answer:?}");
    door.wait_for_clients(0);
    still_serves(&door);
}

#[test]
fn a_client_that_never_reads_takes_no_memory() {
    let door = Door::open();
    let mut stream = door.raw();
    let body = json!({ "sql": "SELECT n, repeat('x', 1000) AS x FROM generate_series(1, 1000000) AS s(n)" }).to_string();
    let length = body.len().to_string();
    let headers = [("Content-Type", "application/json"), ("Content-Length", &length)];
    let resident = || {
        let text = std::fs::read_to_string("/proc/self/statm").expect("a file");
        text.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok()).expect("pages") * 4096
    };
    let before = resident();
    stream
        .write_all((door.head("POST", "/v1/sql", &headers) + &body).as_bytes())
        .expect("a request");
    std::thread::sleep(Duration::from_secs(3));
    let more = resident().saturating_sub(before);
    // The answer has a gigabyte.
    assert!(more < 300 << 20, "{more} bytes");
    door.wait_for_clients(1);
    drop(stream);
    door.wait_for_clients(0);
}

#[test]
fn a_statement_ends_with_its_client() {
    let mut limits = Limits::default();
    limits.statements = 1;
    let door = Door::of(limits, None);
    let mut stream = door.raw();
    let body = json!({ "sql": "SELECT COUNT(*) FROM generate_series(1, 100000000000) AS s(n) WHERE n % 7 = 3" }).to_string();
    let length = body.len().to_string();
    let headers = [("Content-Type", "application/json"), ("Content-Length", &length)];
    stream
        .write_all((door.head("POST", "/v1/sql", &headers) + &body).as_bytes())
        .expect("a request");
    std::thread::sleep(Duration::from_millis(300));
    door.wait_for_clients(1);
    drop(stream);
    door.wait_for_clients(0);
    // Its thread, the only one, is free.
    still_serves(&door);
}

#[test]
fn connections_are_limited() {
    let mut limits = Limits::default();
    limits.connections = 2;
    limits.reserved = 0;
    limits.strangers_of_address = 4;
    let door = Door::of(limits, None);
    let open = |count: usize, head: &str| {
        let open = (0..count).map(|_| {
            let mut stream = door.raw();
            stream.write_all(head.as_bytes()).expect("a head");
            stream
        });
        open.collect::<Vec<_>>()
    };
    let clients = open(2, &door.head("GET", "/healthz", &[]));
    drop(clients);
    let kept: Vec<_> = open(2, &door.head("GET", "/v1/relations", &[]))
        .into_iter()
        .map(|stream| {
            let mut stream = BufReader::new(stream);
            assert_eq!(read_answer(&mut stream).status, 200);
            stream
        })
        .collect();
    let third = door.get("/v1/relations");
    assert_eq!((third.status, third.json()["sqlstate"].as_str()), (503, Some("53300")));
    drop(kept);
    door.wait_for_clients(0);
    let silent = open(4, "");
    std::thread::sleep(Duration::from_millis(200));
    assert_eq!(door.get("/healthz").status, 503);
    drop(silent);
    std::thread::sleep(Duration::from_millis(200));
    still_serves(&door);
}

#[test]
fn requests_follow_each_other_on_one_connection() {
    let door = Door::open();
    let mut stream = BufReader::new(door.raw());
    let body = json!({ "sql": "SELECT 1 AS a" }).to_string();
    let length = body.len().to_string();
    let headers = [("Content-Type", "application/json"), ("Content-Length", &length)];
    let one = door.head("POST", "/v1/sql", &headers) + &body;
    stream.get_mut().write_all(one.repeat(5).as_bytes()).expect("requests");
    for _ in 0..5 {
        assert_eq!(read_answer(&mut stream).json()["rows"], json!([{ "a": 1 }]));
    }
    door.wait_for_clients(1);
}
