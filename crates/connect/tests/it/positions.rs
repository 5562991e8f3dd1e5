//! Reading from a position gives the rows after it.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use alluvium::{FilePosition, Portion, Source, SourcePosition, SourceRequest};
use alluvium_connect::{Csv, Json, Parquet};
use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use arrow::compute::concat_batches;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use flate2::Compression;
use flate2::write::GzEncoder;
use parquet::arrow::ArrowWriter;
use parquet::file::properties::WriterProperties;

fn schema() -> SchemaRef {
    let fields = [Field::new("n", DataType::Int64, false), Field::new("t", DataType::Utf8, true)];
    Arc::new(Schema::new(fields.to_vec()))
}

/// The outcome of reading a source in portions of `batch_rows` rows: the rows and refusals of each, and where it ends.
struct Read {
    rows: RecordBatch,
    refused: Vec<(u64, String)>,
    end: SourcePosition,
}

fn read(
    source: &dyn Source,
    path: &Path,
    batch_rows: usize,
    start: Option<&SourcePosition>,
) -> Vec<Read> {
    let mut request = SourceRequest::new(path, schema());
    (request.batch_rows, request.batch_bytes) = (batch_rows, usize::MAX);
    request.start = start.cloned();
    let mut reader = source.open(&request).unwrap();
    let mut all = Vec::new();
    while let Some(Portion { rows, refused, .. }) = reader.next().unwrap() {
        let refused = refused.into_iter().map(|refusal| (refusal.line, refusal.message));
        let (refused, end) = (refused.collect(), reader.position().unwrap());
        all.push(Read { rows, refused, end });
    }
    all
}

fn rows(read: &[Read]) -> RecordBatch {
    concat_batches(&schema(), read.iter().map(|portion| &portion.rows)).unwrap()
}

fn refused(read: &[Read]) -> Vec<&(u64, String)> {
    read.iter().flat_map(|portion| &portion.refused).collect()
}

/// From each position on, the rest is read, and each portion again.
fn check(source: &dyn Source, path: &Path, count: usize, wrong: usize) {
    for batch_rows in [1, 2, 7, 1000] {
        let all = read(source, path, batch_rows, None);
        assert_eq!((rows(&all).num_rows(), refused(&all).len()), (count, wrong), "{path:?}");
        for (number, portion) in all.iter().enumerate() {
            let behind = &all[number + 1..];
            let rest = read(source, path, 3, Some(&portion.end));
            assert_eq!(rows(&rest), rows(behind), "{path:?} behind {:?}", portion.end);
            assert_eq!(refused(&rest), refused(behind), "{path:?} behind {:?}", portion.end);
            let Some(next) = behind.first() else { continue };
            let size = next.rows.num_rows() + next.refused.len();
            let again = &read(source, path, size, Some(&portion.end))[0];
            assert_eq!((&again.rows, &again.end), (&next.rows, &next.end), "{path:?}");
            assert_eq!(again.refused, next.refused);
        }
    }
}

fn write(folder: &Path, name: &str, text: &str) -> PathBuf {
    let path = folder.join(name);
    fs::write(&path, text).unwrap();
    path
}

fn gzip(folder: &Path, name: &str, text: &str) -> PathBuf {
    let path = folder.join(name);
    let mut gzip = GzEncoder::new(File::create(&path).unwrap(), Compression::default());
    gzip.write_all(text.as_bytes()).unwrap();
    gzip.finish().unwrap();
    path
}

#[test]
fn csv_is_read_on_from_every_position() {
    let folder = tempfile::tempdir().unwrap();
    let mut text = String::from("1,a\n2,\"b\nc\"\n\nx,d\n");
    (3..40).for_each(|n| text.push_str(&format!("{n},text {n}\r\n")));
    text.push_str("40,\"an \"\"end\"\"\n without\",end\n41,end");
    let (count, wrong) = (40, 2);
    check(&Csv, &write(folder.path(), "plain.csv", &text), count, wrong);
    check(&Csv, &gzip(folder.path(), "plain.csv.gz", &text), count, wrong);
    let header = format!("\u{FEFF}t,n\n{}", "last,1\nfirst,2\n".repeat(9));
    check(&Csv, &write(folder.path(), "header.csv", &header), 18, 0);
}

#[test]
fn json_is_read_on_from_every_position() {
    let folder = tempfile::tempdir().unwrap();
    let object = |n: i64| format!("{{\"N\": {n}, \"t\": \"a {{ ] \\\" {n}\"}}");
    let lines: String = (0..30).map(|n| object(n) + "\n\n").collect::<String>() + "{\"N\": x}\n[]";
    check(&Json::LINES, &write(folder.path(), "lines.jsonl", &lines), 30, 2);
    check(&Json::LINES, &gzip(folder.path(), "lines.jsonl.gz", &lines), 30, 2);
    let objects: Vec<String> = (0..30).map(object).collect();
    let line = format!("\u{FEFF}[{}]\n", objects.join(","));
    check(&Json::ARRAY, &write(folder.path(), "line.json", &line), 30, 0);
    let spread = format!("[\n{}\n\n]\n\n", objects.join("\n,").replace(", ", ",\n"));
    check(&Json::ARRAY, &write(folder.path(), "spread.json", &spread), 30, 0);
    check(&Json::ARRAY, &gzip(folder.path(), "spread.json.gz", &spread), 30, 0);
}

#[test]
fn parquet_is_read_on_from_every_position() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rows.parquet");
    let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(0..50));
    let texts: ArrayRef =
        Arc::new(StringArray::from_iter((0..50).map(|n| (n % 3 > 0).then(|| format!("text {n}")))));
    let rows = RecordBatch::try_new(schema(), vec![numbers, texts]).unwrap();
    let groups = WriterProperties::builder().set_max_row_group_row_count(Some(11)).build();
    let file = File::create(&path).unwrap();
    let mut writer = ArrowWriter::try_new(file, schema(), Some(groups)).unwrap();
    writer.write(&rows).unwrap();
    writer.close().unwrap();
    check(&Parquet, &path, 50, 0);
}

#[test]
fn several_files_are_read_on_from_every_position() {
    let folder = tempfile::tempdir().unwrap();
    for (name, from) in [("a.csv", 0), ("b.csv", 20), ("c.csv", 40)] {
        let text: String = (from..from + 11).map(|n| format!("{n},t\n")).collect();
        write(folder.path(), name, &text);
    }
    let pattern = folder.path().join("*.csv");
    check(&Csv, &pattern, 33, 0);
    // Files that come later are read, too.
    let end = read(&Csv, &pattern, 5, None).pop().unwrap().end;
    write(folder.path(), "d.csv", "7,t\n");
    assert_eq!(rows(&read(&Csv, &pattern, 5, Some(&end))).num_rows(), 1);
}

#[test]
fn a_file_that_was_read_and_is_gone_or_shorter_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let open = |path: &Path, start: &SourcePosition| {
        let mut request = SourceRequest::new(path, schema());
        request.start = Some(start.clone());
        Csv.open(&request).err().unwrap().to_string()
    };
    for name in ["a.csv", "b.csv"] {
        write(folder.path(), name, "1,x\n2,y\n");
    }
    let pattern = folder.path().join("*.csv");
    let end = read(&Csv, &pattern, 1, None).remove(2).end;
    let file = FilePosition::of(&end).unwrap().file;
    assert!(file.ends_with("b.csv"));
    write(folder.path(), "b.csv", "1\n");
    let error = open(&pattern, &end);
    assert!(error.contains("b.csv") && error.contains("shorter"), "{error}");
    fs::remove_file(&file).unwrap();
    let error = open(&pattern, &end);
    assert!(error.contains("b.csv\" is gone"), "{error}");
}
