//! Files of which several threads decode parts at once: the rows are those that one thread reads, in the same order.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use alluvium::{Outcome, Source, SourceRequest};
use alluvium_connect::{Csv, Json, Parquet};
use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::util::display::{ArrayFormatter, FormatOptions};
use parquet::arrow::ArrowWriter;
use parquet::file::properties::WriterProperties;
use tempfile::TempDir;

use crate::workspace::Workspace;

fn columns(names: &[(&str, DataType)]) -> SchemaRef {
    let field = |(name, kind): &(&str, DataType)| Field::new(*name, kind.clone(), true);
    Arc::new(Schema::new(names.iter().map(field).collect::<Vec<_>>()))
}

/// The rows of a file, and the refused ones with their lines, read by so many threads.
fn read(
    source: &dyn Source,
    path: &Path,
    schema: &SchemaRef,
    options: &[(&str, &str)],
    threads: usize,
) -> (Vec<String>, Vec<String>) {
    let mut request = SourceRequest::new(path, schema.clone());
    request.batch_bytes = 1 << 16;
    request.batch_rows = 1000;
    request.threads = threads;
    let option = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    request.options = options.iter().map(option).collect();
    let mut reader = source.open(&request).unwrap();
    let (mut rows, mut refused, mut bytes) = (Vec::new(), Vec::new(), 0);
    while let Some(portion) = reader.next().unwrap() {
        let format = FormatOptions::default().with_null("NULL");
        let shown = portion.rows.columns().iter();
        let shown: Vec<_> =
            shown.map(|column| ArrayFormatter::try_new(column, &format).unwrap()).collect();
        assert!(portion.rows.num_rows() <= 1000);
        for row in 0..portion.rows.num_rows() {
            let cells = shown.iter().map(|column| column.value(row).to_string());
            rows.push(cells.collect::<Vec<_>>().join("|"));
        }
        refused.extend(
            portion.refused.iter().map(|refusal| format!("{}: {}", refusal.line, refusal.message)),
        );
        bytes += portion.bytes;
    }
    // Those of a byte order mark may have been read before.
    assert!(path.metadata().unwrap().len() - bytes <= 3);
    (rows, refused)
}

#[test]
fn csv_of_any_dialect_has_the_same_rows_whatever_stands_in_quotes() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("a.csv");
    let schema = columns(&[("a", DataType::Utf8), ("b", DataType::Utf8)]);
    let mut random = fastrand::Rng::with_seed(7);
    for (quote, escape, comment, line_end, headers) in [
        ("\"", "\"", "", "\\n", "false"),
        ("\"", "\\", "#", "\\n", "false"),
        ("'", "'", "#", "\\r", "false"),
        ("", "", "", "\\n", "true"),
    ] {
        let pieces = [
            "a",
            "bc",
            ",",
            ",",
            "\"",
            "\"x\n,\"\"y\"",
            ",'q\r'\r\n",
            "\\",
            "#",
            "\n",
            "\r\n",
            "\n",
            "\u{e9}",
        ];
        let mut text = if headers == "true" { "b,a\n".to_owned() } else { String::new() };
        while text.len() < 400_000 {
            text.push_str(pieces[random.usize(0..pieces.len())]);
        }
        std::fs::write(&path, &text).unwrap();
        let options = [
            ("DELIMITER", ","),
            ("QUOTE", quote),
            ("ESCAPE", escape),
            ("COMMENT", comment),
            ("NEW_LINE", line_end),
            ("HEADERS", headers),
        ];
        let one = read(&Csv, &path, &schema, &options, 1);
        assert!(one.0.len() > 100 && one.1.len() > 100, "{} {} {quote}", one.0.len(), one.1.len());
        for threads in [2, 5] {
            assert_eq!(read(&Csv, &path, &schema, &options, threads), one, "{quote} {escape}");
        }
    }
    // A first record that may be a header, and is none.
    std::fs::write(&path, "1,x\n".repeat(50_000)).unwrap();
    let one = read(&Csv, &path, &schema, &[], 1);
    assert_eq!(one.0.len(), 50_000);
    assert_eq!(read(&Csv, &path, &schema, &[], 3), one);
}

#[test]
fn lines_of_json_have_the_same_rows_and_tell_the_same_members() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("a.jsonl");
    let schema = columns(&[("a", DataType::Int64), ("t", DataType::Utf8)]);
    let mut random = fastrand::Rng::with_seed(7);
    let lines = [
        "{\"a\": 1, \"t\": \"x\\n\"}",
        "{\"a\": \"no\"}",
        "{\"t\": {\"}\": 1}}",
        "x",
        "",
        "{\"new\": 1}",
    ];
    let mut text = "\u{feff}".to_owned();
    while text.len() < 400_000 {
        text.push_str(lines[random.usize(0..lines.len())]);
        text.push_str(["\n", "\r\n"][random.usize(0..2)]);
    }
    text.push_str("{\"a\": 3, \"last\": 1}");
    std::fs::write(&path, &text).unwrap();
    let options = [("NEW_MEMBERS", "tell")];
    let one = read(&Json::LINES, &path, &schema, &options, 1);
    assert!(one.0.len() > 1000 && one.1.iter().any(|told| told.contains("\"last\"")));
    for threads in [2, 5] {
        assert_eq!(read(&Json::LINES, &path, &schema, &options, threads), one);
    }
}

#[test]
fn row_groups_of_parquet_have_the_same_rows() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("a.parquet");
    let numbers: ArrayRef = Arc::new((0..50_000).map(Some).collect::<Int64Array>());
    let texts = (0..50_000).map(|row| (row % 7 > 0).then(|| format!("text {row}")));
    let texts: ArrayRef = Arc::new(texts.collect::<StringArray>());
    let rows = RecordBatch::try_from_iter([("n", numbers), ("t", texts)]).unwrap();
    let groups = WriterProperties::builder().set_max_row_group_row_count(Some(3001)).build();
    let mut writer =
        ArrowWriter::try_new(File::create(&path).unwrap(), rows.schema(), Some(groups)).unwrap();
    writer.write(&rows).unwrap();
    writer.close().unwrap();
    let schema = Arc::new(Schema::new(vec![
        Field::new("t", DataType::Utf8, false),
        Field::new("n", DataType::Int64, true),
    ]));
    let one = read(&Parquet, &path, &schema, &[], 1);
    assert!(one.1[1].starts_with("8: there is no value"), "{:?}", one.1[1]);
    for threads in [2, 5] {
        assert_eq!(read(&Parquet, &path, &schema, &[], threads), one);
    }
}

#[test]
fn statements_read_large_files_in_order_whatever_workers_there_are() {
    let mut answers = Vec::new();
    for workers in [1, 4] {
        let mut workspace = Workspace::with(|builder| builder.workers(workers));
        let row = |row: u64| format!("{row},\"line\n{row}\"\n");
        workspace.file("a.csv", format!("n,t\n{}", (0..150_000).map(row).collect::<String>()));
        let mut last = -1;
        let Outcome::Rows(rows) = workspace.run("SELECT n FROM 'a.csv'") else { panic!("no rows") };
        for batch in rows.into_batches().unwrap() {
            for n in batch.column(0).as_any().downcast_ref::<Int64Array>().unwrap() {
                assert_eq!(n, Some(last + 1));
                last += 1;
            }
        }
        assert_eq!(last, 149_999);
        assert_eq!(workspace.query("SELECT n FROM 'a.csv' LIMIT 1"), ["0"]);
        workspace.run("CREATE TABLE made AS SELECT * FROM 'a.csv'");
        workspace.run("CREATE TABLE t (n INT, t TEXT)");
        assert_eq!(workspace.copied("COPY t FROM 'a.csv'"), (150_000, 0));
        for table in ["made", "t"] {
            let sum = format!("SELECT COUNT(*), SUM(n), MAX(t) FROM {table}");
            answers.push(workspace.query(&sum));
        }
        workspace
            .file("b.csv", format!("n,t\n{}x,\n1,y\n", (0..150_000).map(row).collect::<String>()));
        let refused = workspace.problem("COPY t FROM 'b.csv' (IGNORE_ERRORS false)");
        assert_eq!(refused, "b.csv:300002: \"x\" is not an INTEGER (column n)");
    }
    assert!(
        answers.iter().all(|answer| *answer == ["150000|11249925000|line\n99999"]),
        "{answers:?}"
    );
}
