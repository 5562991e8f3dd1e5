//! `POST /v1/relations/{table}`.

use std::io::Write;
use std::sync::Arc;

use alluvium_server::Limits;
use arrow::array::{ArrayRef, Int32Array, RecordBatch, StringArray};
use arrow::ipc::writer::StreamWriter;
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::json;

use super::door::{Answer, Door};

const PATH: &str = "/v1/relations/t";

fn door() -> Door {
    let door = Door::open();
    door.run("CREATE TABLE t (k BIGINT PRIMARY KEY, v VARCHAR DEFAULT 'none', at TIMESTAMP)");
    door
}

fn send(door: &Door, media_type: &str, more: &[(&str, &str)], body: &[u8]) -> Answer {
    let headers: Vec<_> = [("Content-Type", media_type)].iter().chain(more).copied().collect();
    door.ask("POST", PATH, &headers, body)
}

fn count(door: &Door) -> i64 {
    door.run("SELECT COUNT(*) AS n FROM t")["rows"][0]["n"].as_i64().expect("a number")
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).expect("bytes");
    encoder.finish().expect("bytes")
}

#[test]
fn lines_and_csv_are_rows() {
    let door = door();
    let lines = "{\"k\": 1, \"v\": \"ä\", \"at\": \"2024-01-31 12:00:00\"}\n{\"k\": 2}\n\n{\"v\": null, \"k\": 3}";
    let done = door.insert(PATH, lines, None);
    assert_eq!(done.json(), json!({ "rows": 3, "epoch": 1, "replayed": false }));
    let csv = send(&door, "text/csv", &[], b"v,k\r\n\"x,y\",4\r\n,5\r\n");
    assert_eq!(csv.json(), json!({ "rows": 2, "epoch": 2, "replayed": false }));
    let bare = send(&door, "text/csv; header=absent", &[], b"6,six,2024-01-31 00:00:00\n");
    assert_eq!(bare.status, 200, "{}", bare.text());
    let rows = door.run("SELECT k, v FROM t ORDER BY k")["rows"].clone();
    let values: Vec<_> =
        rows.as_array().expect("rows").iter().map(|row| row["v"].clone()).collect();
    assert_eq!(
        values,
        [json!("ä"), json!("none"), json!(null), json!("x,y"), json!(null), json!("six")]
    );
    let none = door.insert(PATH, "", None);
    assert_eq!((none.status, none.json()["rows"].clone()), (200, json!(0)), "{}", none.text());
}

#[test]
fn arrow_and_parquet_are_rows() {
    let door = door();
    let keys: ArrayRef = Arc::new(Int32Array::from(vec![1, 2]));
    let texts: ArrayRef = Arc::new(StringArray::from(vec![Some("a"), None]));
    let rows = RecordBatch::try_from_iter([("v", texts), ("k", keys)]).expect("rows");
    let mut stream = StreamWriter::try_new(Vec::new(), &rows.schema()).expect("a stream");
    stream.write(&rows).expect("rows");
    let bytes = stream.into_inner().expect("bytes");
    let media_type = "application/vnd.apache.arrow.stream";
    let done = send(&door, media_type, &[], &bytes);
    assert_eq!((done.status, done.json()["rows"].clone()), (200, json!(2)), "{}", done.text());
    assert_eq!(send(&door, media_type, &[], &bytes).status, 409);
    let short = send(&door, media_type, &[], &bytes[..bytes.len() / 2]);
    assert_eq!(short.status, 400, "{}", short.text());
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("rows.parquet");
    let sql = format!(
        "COPY (SELECT n AS k, 'p' AS v FROM generate_series(10, 20) AS s(n)) TO '{}'",
        file.display()
    );
    door.engine.execute(&sql).expect("a file");
    let bytes = std::fs::read(&file).expect("a file");
    let done = send(&door, "application/vnd.apache.parquet", &[], &bytes);
    assert_eq!(done.json()["rows"], 11, "{}", done.text());
    assert_eq!(count(&door), 13);
    let noise = send(&door, "application/vnd.apache.parquet", &[], &bytes[..20]);
    assert_eq!(noise.status / 100, 4, "{}", noise.text());
    assert!(
        !noise.text().contains(std::env::temp_dir().to_str().expect("a path")),
        "{}",
        noise.text()
    );
}

#[test]
fn a_body_with_a_row_that_does_not_fit_inserts_nothing() {
    let door = door();
    let lines = "{\"k\": 1}\n{\"k\": \"x\"}\n[2]\n{\"v\": \"no key\"}\n";
    let answer = door.insert(PATH, lines, None);
    let problem = answer.json();
    assert_eq!((answer.status, problem["refused"].clone()), (422, json!(3)), "{}", answer.text());
    assert_eq!(problem["errors"][0]["line"], 2);
    assert_eq!(count(&door), 0);
    assert_eq!(door.insert(PATH, "{\"k\": 1}\n{\"k\": 1}\n", None).status, 409);
    assert_eq!(count(&door), 0);
    for (media_type, status) in
        [("application/json", 415), ("text/plain", 415), ("", 415), ("multipart/form-data", 415)]
    {
        assert_eq!(send(&door, media_type, &[], b"{}").status, status, "{media_type}");
    }
    let gz = [("Content-Encoding", "br")];
    assert_eq!(send(&door, "text/csv", &gz, b"k\n1\n").status, 415);
}

#[test]
fn bodies_may_be_compressed_and_bombs_are_refused() {
    let mut limits = Limits::default();
    limits.message_bytes = 1 << 20;
    let door = Door::of(limits, None);
    door.run("CREATE TABLE t (k BIGINT, v VARCHAR)");
    let gz = [("Content-Encoding", "gzip")];
    let done = send(&door, "application/x-ndjson", &gz, &gzip(b"{\"k\": 1}\n"));
    assert_eq!(done.json()["rows"], 1);
    let bomb = gzip(&b"{\"k\": 1}\n".repeat(1 << 20));
    assert!(bomb.len() < 1 << 20);
    assert_eq!(send(&door, "application/x-ndjson", &gz, &bomb).status, 413);
    // What is not said to be compressed is not decompressed.
    assert_eq!(send(&door, "text/csv", &[], &bomb).status / 100, 4);
    assert_eq!(send(&door, "text/csv", &gz, b"k\n1\n").status, 400);
    assert_eq!(send(&door, "text/csv", &gz, &gzip(b"k\n1\n")[..15]).status, 400);
    let large = "x".repeat(2 << 20);
    assert_eq!(send(&door, "text/csv", &[], large.as_bytes()).status, 413);
    assert_eq!(count(&door), 1);
}

#[test]
fn a_key_has_its_effect_once() {
    let door = door();
    let first = door.insert(PATH, "{\"k\": 1}\n", Some("one"));
    assert_eq!(first.json(), json!({ "rows": 1, "epoch": 1, "replayed": false }));
    let again = door.insert(PATH, "{\"k\": 1}\n", Some("one"));
    assert_eq!(again.json(), json!({ "rows": null, "epoch": 1, "replayed": true }));
    let again = door.insert("/v1/relations/public.t", "{\"k\": 1}\n", Some("one"));
    assert_eq!(again.json()["replayed"], true, "it is the same table");
    // A key belongs to a table, and one that failed is free.
    door.run("CREATE TABLE u (k BIGINT)");
    let other = door.insert("/v1/relations/u", "{\"k\": 1}\n", Some("one"));
    assert_eq!(other.json()["replayed"], false);
    assert_eq!(door.insert(PATH, "{\"k\": 1}\n", Some("two")).status, 409);
    assert_eq!(door.insert(PATH, "{\"k\": 2}\n", Some("two")).json()["replayed"], false);
    assert_eq!(door.insert(PATH, "{\"k\": 3}\n", Some("")).status, 400);
    let long = "x".repeat(256);
    assert_eq!(door.insert(PATH, "{\"k\": 3}\n", Some(&long)).status, 400);
    assert_eq!(count(&door), 2);
}

#[test]
fn a_key_that_many_send_at_once_has_its_effect_once() {
    let door = Door::open();
    door.run("CREATE TABLE t (k BIGINT)");
    let lines = "{\"k\": 1}\n".repeat(1_000);
    std::thread::scope(|scope| {
        let send = || loop {
            let answer = door.insert(PATH, &lines, Some("at once"));
            match answer.status {
                200 => return answer.json()["replayed"] == false,
                status => assert_eq!(status, 409, "{}", answer.text()),
            }
        };
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(send)).collect();
        let first = threads.into_iter().map(|thread| thread.join());
        let first: Vec<bool> = first.map(|done| done.expect("an answer")).collect();
        assert_eq!(first.iter().filter(|first| **first).count(), 1);
    });
    assert_eq!(count(&door), 1_000);
}

#[test]
fn a_key_outlives_the_server() {
    let folder = tempfile::tempdir().expect("a folder");
    let epoch = {
        let door = Door::of(Limits::default(), Some(folder.path()));
        door.run("CREATE TABLE t (k BIGINT)");
        door.insert(PATH, "{\"k\": 1}\n", Some("kept")).json()["epoch"].clone()
    };
    let door = Door::of(Limits::default(), Some(folder.path()));
    let again = door.insert(PATH, "{\"k\": 1}\n", Some("kept"));
    assert_eq!(again.json(), json!({ "rows": null, "epoch": epoch, "replayed": true }));
    assert_eq!(count(&door), 1);
}

#[test]
fn a_row_of_a_megabyte_is_a_row() {
    let door = door();
    let line = format!("{{\"k\": 1, \"v\": \"{}\"}}\n", "x".repeat(1_000_000));
    assert_eq!(door.insert(PATH, &line, None).json()["rows"], 1);
    let rows = door.run("SELECT length(v) AS n FROM t");
    assert_eq!(rows["rows"][0]["n"], 1_000_000);
}
