//! CSV files as tables see them.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use alluvium::{Error, Source, SourceReader, SourceRequest};
use alluvium_connect::Csv;
use arrow::array::{Array, Int32Array, RecordBatch, UInt32Array, new_null_array};
use arrow::compute::{concat_batches, take};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};
use arrow::util::display::{ArrayFormatter, FormatOptions};
use tempfile::TempDir;

/// A file, and how it is to be read.
struct File {
    folder: TempDir,
    path: PathBuf,
    schema: SchemaRef,
    /// One row: what a column holds that the file does not have.
    defaults: RecordBatch,
    options: Vec<(String, String)>,
}

/// The outcome of reading: the rows with `|` between their values, and the refusals with their lines.
#[derive(Debug, PartialEq)]
struct Found {
    rows: Vec<String>,
    refused: Vec<(u64, String)>,
}

fn found<const N: usize, const M: usize>(rows: [&str; N], refused: [(u64, &str); M]) -> Found {
    Found {
        rows: rows.map(str::to_string).to_vec(),
        refused: refused.map(|(line, message)| (line, message.to_string())).to_vec(),
    }
}

/// `a INTEGER NOT NULL, b VARCHAR, c DOUBLE`.
fn abc() -> Vec<Field> {
    vec![
        Field::new("a", DataType::Int32, false),
        Field::new("b", DataType::Utf8, true),
        Field::new("c", DataType::Float64, true),
    ]
}

impl File {
    fn new(columns: Vec<Field>, content: impl AsRef<[u8]>) -> Self {
        Self::named("t.csv", columns, content)
    }

    fn named(name: &str, columns: Vec<Field>, content: impl AsRef<[u8]>) -> Self {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join(name);
        fs::write(&path, content).unwrap();
        let nulls = columns.iter().map(|field| new_null_array(field.data_type(), 1));
        let names = columns.iter().map(Field::name);
        let defaults = RecordBatch::try_from_iter_with_nullable(
            names.zip(nulls).map(|(name, nulls)| (name, nulls, true)),
        );
        let (schema, options) = (Arc::new(Schema::new(columns)), Vec::new());
        Self { folder, path, schema, defaults: defaults.unwrap(), options }
    }

    /// The default of the first column, an INTEGER.
    fn with_default(mut self, value: i32) -> Self {
        let mut columns = self.defaults.columns().to_vec();
        columns[0] = Arc::new(Int32Array::from(vec![value]));
        self.defaults = RecordBatch::try_new(self.defaults.schema(), columns).unwrap();
        self
    }

    fn with(mut self, option: &str, value: &str) -> Self {
        self.options.push((option.into(), value.into()));
        self
    }

    fn open(&self) -> Result<Box<dyn SourceReader>, Error> {
        let mut request = SourceRequest::new(&self.path, self.schema.clone());
        request.options.clone_from(&self.options);
        let defaults = self.defaults.columns();
        request.has_default = defaults.iter().map(|value| value.is_valid(0)).collect();
        request.batch_rows = 16 << 10;
        Csv.open(&request)
    }

    /// The rows with the columns that the file does not have, as an engine completes them.
    fn complete(&self, rows: &RecordBatch) -> RecordBatch {
        let types = |schema: &Schema, name: &str| {
            schema.field_with_name(name).map(|field| field.data_type().clone()).ok()
        };
        for field in rows.schema().fields() {
            let (name, found) = (field.name(), field.data_type().clone());
            assert_eq!(types(&self.schema, name), Some(found), "{name} was requested");
        }
        let first = UInt32Array::from(vec![0; rows.num_rows()]);
        let columns = self.schema.fields().iter().zip(self.defaults.columns());
        let columns = columns.map(|(field, default)| match rows.column_by_name(field.name()) {
            Some(column) => column.clone(),
            None => take(default, &first, None).unwrap(),
        });
        RecordBatch::try_new(self.schema.clone(), columns.collect()).unwrap()
    }

    /// Why the file cannot be read, with its folder left out.
    fn problem(&self) -> String {
        let problem = match self.open() {
            Err(error) => error,
            Ok(mut reader) => loop {
                match reader.next() {
                    Err(error) => break error,
                    Ok(portion) => assert!(portion.is_some(), "the file was read to its end"),
                }
            },
        };
        problem.to_string().replace(&format!("{}/", self.folder.path().display()), "")
    }

    fn read(&self) -> Found {
        let mut reader = self.open().unwrap();
        let mut batches = Vec::new();
        let mut refused = Vec::new();
        while let Some(portion) = reader.next().unwrap() {
            assert!(portion.absent.is_empty(), "every record has all fields");
            batches.push(self.complete(&portion.rows));
            for refusal in portion.refused {
                assert_eq!(refusal.file, self.path);
                refused.push((refusal.line, refusal.message));
            }
        }
        Found { rows: rows(&concat_batches(&self.schema, &batches).unwrap()), refused }
    }
}

fn rows(batch: &RecordBatch) -> Vec<String> {
    let options = FormatOptions::default().with_null("NULL");
    let columns: Vec<_> = batch
        .columns()
        .iter()
        .map(|column| ArrayFormatter::try_new(column, &options).unwrap())
        .collect();
    let cell = |column: &ArrayFormatter<'_>, row| column.value(row).to_string();
    (0..batch.num_rows())
        .map(|row| columns.iter().map(|column| cell(column, row)).collect::<Vec<_>>().join("|"))
        .collect()
}

#[test]
fn without_headers_fields_are_columns_in_order() {
    let file = File::new(abc(), "1,x,0.5\n2,y,-1e3\n");
    assert_eq!(file.read(), found(["1|x|0.5", "2|y|-1000.0"], []));
}

#[test]
fn headers_name_columns_in_any_order_and_case() {
    let file = File::new(abc(), "C,a,b\n0.5,1,x\n").with("headers", "true");
    assert_eq!(file.read(), found(["1|x|0.5"], []));
}

#[test]
fn a_column_without_default_that_the_file_does_not_have_is_left_out() {
    let file = File::new(abc(), "a,c\n1,0.5\n").with("headers", "true");
    assert_eq!(file.read(), found(["1|NULL|0.5"], []));
}

#[test]
fn a_not_null_column_with_a_default_may_be_left_out() {
    let file = File::new(abc(), "b\nx\ny\n").with("headers", "true").with_default(7);
    assert_eq!(file.read(), found(["7|x|NULL", "7|y|NULL"], []));
}

#[test]
fn headers_that_do_not_fit_the_table_are_an_error() {
    let problem = |header: &str| File::new(abc(), header).with("headers", "true").problem();
    assert_eq!(problem("a,d\n"), "t.csv:1: the table has no column \"d\"; it has a, b, c");
    assert_eq!(problem("a,b,A\n"), "t.csv:1: column \"A\" occurs twice");
    assert_eq!(problem("b,c\n"), "t.csv:1: column \"a\" is NOT NULL and the file does not have it");
    assert_eq!(problem(""), "t.csv:1: the file is empty: it has no header line");
}

#[test]
fn an_unquoted_empty_field_is_null_and_a_quoted_one_is_an_empty_string() {
    let file = File::new(abc(), "1,,\n2,\"\",\"\"\n");
    assert_eq!(file.read(), found(["1|NULL|NULL", "2||NULL"], []));
}

#[test]
fn a_null_value_stands_for_null_unless_it_is_quoted() {
    let file = File::new(abc(), "1,NA,NA\n2,\"NA\",\n3,,1\n").with("null_value", "NA");
    assert_eq!(file.read(), found(["1|NULL|NULL", "2|NA|NULL", "3||1.0"], []));
}

#[test]
fn a_malformed_row_is_refused_and_the_rest_goes_on() {
    let text =
        b"a,b,c\n1,x,0.5\none,x,y\n3,x\n4,x,0.5,\n,x,1\n6,\"\n\"x,1\n8,\xFF,1\n9,x,abc\n10,x,1\n";
    let file = File::new(abc(), text).with("headers", "true");
    let expected = found(
        ["1|x|0.5", "10|x|1.0"],
        [
            (3, "\"one\" is not an INTEGER (column a)"),
            (4, "there are 2 fields instead of 3"),
            (5, "there are 4 fields instead of 3"),
            (6, "there is no value (column a is NOT NULL)"),
            (7, "there is text after a closing quote"),
            (9, "the text is not UTF-8"),
            (10, "\"abc\" is not a DOUBLE (column c)"),
        ],
    );
    assert_eq!(file.read(), expected);
}

#[test]
fn every_scalar_type_is_read_from_its_sql_text() {
    let micros =
        |zone: Option<&str>| DataType::Timestamp(TimeUnit::Microsecond, zone.map(Into::into));
    let cases = [
        (DataType::Boolean, "true", "true"),
        (DataType::Int8, "-128", "-128"),
        (DataType::Int64, "9223372036854775807", "9223372036854775807"),
        (DataType::Float32, "1e-3", "0.001"),
        (DataType::Decimal128(6, 2), "1234.50", "1234.50"),
        (DataType::Date32, "2013-01-31", "2013-01-31"),
        (DataType::Time64(TimeUnit::Microsecond), "23:59:59.5", "23:59:59.500"),
        (micros(None), "2013-01-01T10:00:00Z", "2013-01-01T10:00:00"),
        (micros(None), "2013-01-01 10:00:00.25", "2013-01-01T10:00:00.250"),
        (micros(None), "2013-01-01", "2013-01-01T00:00:00"),
        (micros(Some("UTC")), "2013-01-01T12:00:00+02:00", "2013-01-01T10:00:00Z"),
        (DataType::Utf8View, "text", "text"),
        (DataType::Binary, "ab", "6162"),
    ];
    for (kind, text, value) in cases {
        let file = File::new(vec![Field::new("v", kind.clone(), true)], text);
        assert_eq!(file.read(), found([value], []), "{kind}");
    }
}

#[test]
fn what_is_not_of_its_type_is_named_as_sql_names_it() {
    let cases = [
        (DataType::Int16, "32768", "\"32768\" is not a SMALLINT (column v)"),
        (DataType::Int64, "1.5", "\"1.5\" is not a BIGINT (column v)"),
        (DataType::Boolean, "maybe", "\"maybe\" is not a BOOLEAN (column v)"),
        (DataType::Decimal128(4, 2), "123.4", "\"123.4\" is not a DECIMAL(4, 2) (column v)"),
        (DataType::Date32, "2013-02-30", "\"2013-02-30\" is not a DATE (column v)"),
    ];
    for (kind, text, message) in cases {
        let file = File::new(vec![Field::new("v", kind.clone(), true)], text);
        assert_eq!(file.read(), found([], [(1, message)]), "{kind}");
    }
}

#[test]
fn blank_lines_are_passed_over_unless_there_is_one_column() {
    let file = File::new(abc(), "\n1,x,1\n\n2,y,2\n\n");
    assert_eq!(file.read(), found(["1|x|1.0", "2|y|2.0"], []));
    let file = File::new(vec![Field::new("v", DataType::Int32, true)], "1\n\n2\n");
    assert_eq!(file.read(), found(["1", "NULL", "2"], []));
}

#[test]
fn gzip_is_known_by_its_content_and_may_come_in_pieces() {
    let compress = |text: &str| {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(text.as_bytes()).unwrap();
        encoder.finish().unwrap()
    };
    let pieces = [compress("1,x,1\n2,"), compress("y,2\n")].concat();
    let expected = found(["1|x|1.0", "2|y|2.0"], []);
    assert_eq!(File::named("t.csv", abc(), &pieces).read(), expected);
    assert_eq!(File::named("t.csv.gz", abc(), "1,x,1\n2,y,2\n").read(), expected);
    let cut = File::named("t.csv.gz", abc(), &pieces[..pieces.len() - 9]);
    assert!(cut.problem().starts_with("cannot read \"t.csv.gz\": "), "{}", cut.problem());
}

#[test]
fn a_large_file_comes_in_portions_with_the_right_lines() {
    let mut text = String::new();
    for line in 1..=100_000 {
        let a = if line % 40_000 == 0 { "x".to_string() } else { line.to_string() };
        text += &format!("{a},b,0\n");
    }
    let found = File::new(abc(), text).read();
    assert_eq!(found.rows.len(), 99_998);
    assert_eq!(found.rows[99_997], "100000|b|0.0");
    let lines: Vec<_> = found.refused.iter().map(|(line, _)| *line).collect();
    assert_eq!(lines, [40_000, 80_000]);
}

#[test]
fn a_missing_file_is_named_with_what_to_check() {
    let mut file = File::new(abc(), "");
    file.path = PathBuf::from("nowhere/t.csv");
    assert_eq!(
        file.problem(),
        "cannot open \"nowhere/t.csv\": No such file or directory (os error 2); a relative path \
         counts from the SQL file's folder, or from where the program runs"
    );
}

#[test]
fn unknown_options_are_refused_by_name() {
    assert_eq!(
        File::new(abc(), "").with("limit", "5").problem(),
        "no option \"LIMIT\" for CSV; there are HEADERS, NULL_VALUE, DELIMITER, QUOTE, ESCAPE, COMMENT, NEW_LINE, SKIP, PADDING, COLUMNS, DECIMAL_SEPARATOR, DATE_FORMAT, TIMESTAMP_FORMAT, SAMPLE and COMPRESSION"
    );
    assert_eq!(
        File::new(abc(), "").with("headers", "yes").problem(),
        "HEADERS is true or false, not \"yes\""
    );
}

#[test]
fn values_are_read_as_the_file_spells_them() {
    let columns = || {
        let field = |name, kind| Field::new(name, kind, true);
        let timestamp = DataType::Timestamp(TimeUnit::Microsecond, None);
        vec![field("n", DataType::Float64), field("d", DataType::Date32), field("t", timestamp)]
    };
    let text = "# made by hand\n\n1,5;29.02.2024;29/02/2024 10:30\n-;;NA\n1.5;2024-02-29;x\n2,5\n";
    let file = File::new(columns(), text)
        .with("skip", "2")
        .with("delimiter", ";")
        .with("decimal_separator", ",")
        .with("date_format", "%d.%m.%Y")
        .with("timestamp_format", "%d/%m/%Y %H:%M")
        .with("null_value", "[\"NA\", \"-\"]");
    let rows = ["1.5|2024-02-29|2024-02-29T10:30:00", "NULL|NULL|NULL"];
    let wrong = "\"1.5\" is not a DOUBLE (column n)";
    let narrow = "there are 1 fields instead of 3";
    assert_eq!(file.read(), found(rows, [(5, wrong), (6, narrow)]));
    let rows = ["1.5|2024-02-29|2024-02-29T10:30:00", "NULL|NULL|NULL", "2.5|NULL|NULL"];
    assert_eq!(file.with("padding", "true").read(), found(rows, [(5, wrong)]));
}

#[test]
fn csv_files_are_known_by_their_names() {
    let handled =
        ["a.csv", "b/c.CSV", "d.csv.gz", "e.tsv", "f.txt"].map(|path| Csv.handles(Path::new(path)));
    assert_eq!(handled, [true; 5]);
    assert!(!Csv.handles(Path::new("csv.parquet")));
}
