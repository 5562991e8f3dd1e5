//! Files of anything: whatever bytes there are, a reader does not panic, and every row is read or counted.

use std::fs;
use std::io::Write;
use std::sync::Arc;

use alluvium::{Error, Source, SourceRequest};
use alluvium_connect::{Csv, Json, Parquet};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};
use flate2::Compression;
use flate2::write::GzEncoder;
use tempfile::TempDir;

use crate::workspace::Workspace;

/// A generator of numbers that are the same in every run (splitmix64).
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }
}

fn schema() -> SchemaRef {
    Arc::new(Schema::new(vec![
        Field::new("a", DataType::Int32, false),
        Field::new("b", DataType::Utf8, true),
        Field::new("c", DataType::Timestamp(TimeUnit::Microsecond, None), true),
    ]))
}

/// How many rows were read and how many refused, or why it cannot be read.
fn read(source: &dyn Source, bytes: &[u8], batch_rows: usize) -> Result<(usize, usize), Error> {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("file");
    fs::write(&path, bytes).unwrap();
    // It may fail here, but it must not panic either.
    let _ = source.infer(&path, &[]);
    let mut request = SourceRequest::new(path, schema());
    request.batch_rows = batch_rows;
    let mut reader = source.open(&request)?;
    let (mut rows, mut refused) = (0, 0);
    while let Some(portion) = reader.next()? {
        rows += portion.rows.num_rows();
        refused += portion.refused.len();
    }
    Ok((rows, refused))
}

#[test]
fn random_bytes_are_rows_refusals_or_an_error() {
    let mut numbers = Numbers(1);
    let pieces: &[&[u8]] = &[
        b"1",
        b",",
        b"\"",
        b"\n",
        b"\r\n",
        b"{",
        b"}",
        b"[",
        b"]",
        b":",
        b"\"a\"",
        b"\"b\":",
        b"{\"a\": 1}",
        b" ",
        b"\\",
        b"\\u12",
        b"null",
        b"-",
        b"\xEF\xBB\xBF",
        b"\xC3\xA9",
        b"\xFF",
        b"\0",
        b"\x1F\x8B",
        b"2013-01-01",
        b"PAR1",
        b"e9",
    ];
    for _ in 0..3_000 {
        let mut bytes = Vec::new();
        for _ in 0..numbers.below(40) {
            bytes.extend_from_slice(numbers.pick(pieces));
        }
        let batch_rows = 1 + numbers.below(4);
        for source in [&Csv as &dyn Source, &Json::ARRAY, &Json::LINES, &Parquet] {
            // Any outcome but a panic is right.
            let _ = read(source, &bytes, batch_rows);
        }
    }
}

#[test]
fn every_line_of_ragged_csv_is_read_or_counted() {
    let mut numbers = Numbers(2);
    for round in 0..300 {
        let lines = numbers.below(60);
        let mut text: Vec<u8> = Vec::new();
        for _ in 0..lines {
            let fields: &[&[u8]] = &[
                b"1",
                b"x",
                b"",
                b"2013-01-01",
                b"\"q,\"\"q\"",
                b"\xFF",
                b"\"\"",
                b"99999999999",
                b"\"open\"x",
            ];
            // Never blank, and never a header.
            text.extend_from_slice(numbers.pick(&[&b"7"[..], b"-7", b"x7"]));
            for _ in 0..numbers.below(4) {
                text.push(b',');
                text.extend_from_slice(numbers.pick(fields));
            }
            text.extend_from_slice(numbers.pick(&[&b"\n"[..], b"\r\n"]));
        }
        let (rows, refused) = read(&Csv, &text, 1 + numbers.below(7)).unwrap();
        assert_eq!(rows + refused, lines, "round {round}: {}", String::from_utf8_lossy(&text));
    }
}

#[test]
fn every_line_of_json_is_read_or_counted() {
    let mut numbers = Numbers(3);
    let values: &[&str] = &[
        "1",
        "\"x\"",
        "null",
        "{}",
        "[1, {\"a\": 2}]",
        "1e400",
        "99999999999",
        "\"2013-01-01\"",
        "\"\\ud800\"",
        "tru",
        "\"}",
    ];
    for round in 0..300 {
        let lines = numbers.below(40);
        let mut text = String::new();
        for _ in 0..lines {
            let members = (0..numbers.below(4)).map(|_| {
                format!("\"{}\": {}", numbers.pick(&["a", "b", "c", "d"]), numbers.pick(values))
            });
            let members = members.collect::<Vec<_>>().join(numbers.pick(&[", ", ",", ", ", ""]));
            text += &format!("{{{members}{}\n", numbers.pick(&["}", "}", "}", "", "}}", "} {}"]));
        }
        let (rows, refused) = read(&Json::LINES, text.as_bytes(), 1 + numbers.below(7)).unwrap();
        assert_eq!(rows + refused, lines, "round {round}: {text}");
    }
}

#[test]
fn what_is_refused_does_not_depend_on_how_rows_are_batched() {
    let mut numbers = Numbers(4);
    let line = |numbers: &mut Numbers| {
        numbers.pick(&[
            "{\"a\": 1}\n",
            "{\"a\": \"x\"}\n",
            "{}\n",
            "{\"a\": 1, \"c\": \"?\"}\n",
            "{\n",
        ])
    };
    for _ in 0..30 {
        let text: String = (0..100).map(|_| line(&mut numbers)).collect();
        let whole = read(&Json::LINES, text.as_bytes(), 1000).unwrap();
        assert_eq!(read(&Json::LINES, text.as_bytes(), 3).unwrap(), whole);
        assert_eq!(whole.0 + whole.1, 100);
    }
}

#[test]
fn gzip_that_is_cut_off_or_changed_is_an_error() {
    let text = "1,x,2013-01-01\n".repeat(5_000);
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(text.as_bytes()).unwrap();
    let whole = encoder.finish().unwrap();
    assert_eq!(read(&Csv, &whole, 1000).unwrap(), (5_000, 0));
    for length in (2..whole.len()).step_by(7) {
        assert!(read(&Csv, &whole[..length], 1000).is_err(), "{length} of {}", whole.len());
    }
    let mut changed = whole.clone();
    let checksum = changed.len() - 8;
    changed[checksum] ^= 1;
    assert!(read(&Csv, &changed, 1000).is_err());
}

#[test]
fn parquet_that_is_damaged_is_an_error_or_other_rows() {
    let mut workspace = Workspace::new();
    let rows: Vec<String> =
        (0..500).map(|row| format!("({row}, 'row {row}', TIMESTAMP '2013-01-01')")).collect();
    workspace.run("CREATE TABLE t (a INT, b VARCHAR, c TIMESTAMP)");
    workspace.run(&format!("INSERT INTO t VALUES {}", rows.join(", ")));
    workspace.run("COPY t TO 't.parquet'");
    let whole = fs::read(workspace.path("t.parquet")).unwrap();
    assert_eq!(read(&Parquet, &whole, 100).unwrap(), (500, 0));
    let mut numbers = Numbers(5);
    std::panic::set_hook(Box::new(|_| {}));
    for _ in 0..1_000 {
        let mut bytes = whole.clone();
        match numbers.below(3) {
            0 => bytes.truncate(numbers.below(bytes.len())),
            _ => {
                for _ in 0..=numbers.below(8) {
                    let at = numbers.below(bytes.len());
                    bytes[at] = numbers.next() as u8;
                }
            }
        }
        // The format has no checksums that must be there: changed values may go unnoticed.
        let _ = read(&Parquet, &bytes, 100);
    }
}

#[test]
fn a_file_of_too_many_columns_is_refused_before_it_is_sampled() {
    let mut workspace = Workspace::new();
    let columns = |count: usize, column: &str| -> String {
        (0..count).map(|number| column.replace('#', &number.to_string())).collect()
    };
    let files = |count| {
        [
            ("t.csv", columns(count, "c#,") + "d\n"),
            ("t.jsonl", format!("{{{}\"d\":1}}", columns(count, "\"c#\":#,"))),
            ("t.json", format!("[{{{}\"d\":1}}]", columns(count, "\"c#\":#,"))),
        ]
    };
    for (name, content) in files(100_000) {
        workspace.file(name, content);
        for statement in
            [format!("CREATE TABLE t FROM '{name}'"), format!("SELECT * FROM '{name}'")]
        {
            let problem = workspace.problem(&statement);
            assert!(problem.contains("has more than 4096 columns"), "{problem}");
        }
    }
    for (name, content) in files(1_000) {
        workspace.file(name, content);
        workspace.run(&format!("SELECT COUNT(*) FROM '{name}'"));
    }
}

#[test]
fn a_file_whose_columns_have_names_of_megabytes_is_refused() {
    let mut workspace = Workspace::new();
    let long = "9".repeat(3 << 20);
    let (csv, nested) = (format!("a,{long}\n1,2\n"), format!("{{\"a\": [{{\"{long}\": 1}}]}}"));
    let files = [("t.csv", csv), ("t.jsonl", format!("{{\"{long}\": 1}}")), ("t.json", nested)];
    for (name, content) in files {
        workspace.file(name, content);
        for statement in
            [format!("CREATE TABLE t FROM '{name}'"), format!("SELECT * FROM '{name}'")]
        {
            let problem = workspace.problem(&statement);
            assert!(problem.contains("1048576 bytes together"), "{name}: {problem}");
        }
    }
    // Neither data in place of names, nor a name that no column has.
    workspace.file("t.csv", format!("{long},2\n"));
    workspace.run("CREATE TABLE t FROM 't.csv' (HEADERS false)");
    workspace.file("t.jsonl", format!("{{\"column1\": 1, \"{long}\": 1}}"));
    workspace.run("COPY t (column1) FROM 't.jsonl'");
    assert_eq!(workspace.query("SELECT COUNT(*) FROM t"), ["2"]);
}

#[test]
fn a_json_file_none_of_whose_rows_can_be_read_is_refused() {
    let mut workspace = Workspace::new();
    workspace.file("t.jsonl", "{\"a\": tru}");
    let problem = workspace.problem("CREATE TABLE t FROM 't.jsonl'");
    assert!(problem.contains("none of its first rows can be read"), "{problem}");
}
