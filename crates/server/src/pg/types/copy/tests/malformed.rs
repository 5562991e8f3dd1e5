//! Malformed data, and those that are large.

use std::sync::Arc;

use arrow::array::{Array, AsArray};
use arrow::datatypes::{DataType, Field, Fields, Int32Type, Schema, UInt64Type};

use super::{CopyFormat, CopyOptions, Header, decoded, encoded, options, schema, with_header};

fn error(options: &CopyOptions, data: &str) -> (&'static str, String) {
    let columns = schema([("n", DataType::Int32), ("w", DataType::Utf8)]);
    let error = decoded(&columns, options, [data.as_bytes()]).unwrap_err();
    (error.code(), error.to_string())
}

#[test]
fn errors_have_their_line_and_column() {
    let text = options(CopyFormat::Text);
    let csv = options(CopyFormat::Csv);
    for (options, data, code, message) in [
        (
            &text,
            "1\ta\nx\tb\n",
            "22P02",
            "line 2, column \"n\": invalid input syntax for type integer: \"x\"",
        ),
        (&text, "1\n", "22P04", "line 1: missing data for column \"w\""),
        (&text, "1\ta\tb\n", "22P04", "line 1: extra data after last expected column"),
        (&text, "1\ta\r\n2\tb\n", "22P04", "line 2: literal newline found in data"),
        (&text, "1\ta\n2\tb\r\n", "22P04", "line 2: literal carriage return found in data"),
        (
            &csv,
            "1,\"a\nb\"\nx,\n",
            "22P02",
            "line 3, column \"n\": invalid input syntax for type integer: \"x\"",
        ),
        (&csv, "1,\"a\n", "22P04", "line 1: unterminated CSV quoted field"),
        (&csv, "1,a\n2,b\rc\n", "22P04", "line 2: unquoted carriage return found in data"),
        (
            &csv,
            "99999999999,a\n",
            "22003",
            "line 1, column \"n\": value \"99999999999\" is out of range for type integer",
        ),
        (
            &with_header(),
            "n,x\n",
            "22P04",
            "line 1: column name mismatch in header line field 2: got \"x\", expected \"w\"",
        ),
        (
            &with_header(),
            "n\n",
            "22P04",
            "line 1: wrong number of fields in header line: got 1, expected 2",
        ),
    ] {
        assert_eq!(error(options, data), (code, message.to_owned()), "{data:?}");
    }
    let binary = options(CopyFormat::Binary);
    assert_eq!(error(&binary, "PGCOPX").0, "22P04");
    assert_eq!(error(&binary, "").0, "22P04");
    let short = CopyOptions { most_bytes: 100, ..text };
    assert_eq!(error(&short, &"x".repeat(200)).0, "54000");
    let columns = Arc::new(Schema::new(vec![Field::new("n", DataType::Int32, false)]));
    let rejected = decoded(&columns, &options(CopyFormat::Text), [&b"\\N\n"[..]]).unwrap_err();
    assert_eq!(
        (rejected.code(), rejected.to_string().as_str()),
        ("23502", "line 1, column \"n\": a NOT NULL column cannot be NULL")
    );
    let rejected = decoded(&columns, &options(CopyFormat::Text), [&b"1\n\xff\n"[..]]).unwrap_err();
    assert_eq!(rejected.code(), "22P02");
}

#[test]
fn rows_end_in_several_ways() {
    let columns = schema([("n", DataType::Int32), ("w", DataType::Utf8)]);
    for (format, data) in [
        (CopyFormat::Text, "1\ta\n2\tb\n"),
        (CopyFormat::Text, "1\ta\r\n2\tb"),
        (CopyFormat::Text, "1\ta\r2\tb\r"),
        (CopyFormat::Text, "1\ta\n2\tb\n\\.\n3\tignored\n"),
        (CopyFormat::Text, "1\t\\x61\n2\t\\142\n"),
        (CopyFormat::Csv, "1,a\r\n\"2\",b\r\n"),
        (CopyFormat::Csv, "1,\"\"\"\"a\n2,b\n\\.\nnothing"),
        (CopyFormat::Csv, "1,a\n2,\"b\""),
    ] {
        let batch = decoded(&columns, &options(format), [data.as_bytes()]).unwrap();
        assert_eq!(batch.column(0).as_primitive::<Int32Type>().values(), &[1, 2], "{data:?}");
        let words = batch.column(1).as_string::<i32>();
        assert_eq!(
            (words.value(0).trim_start_matches('"'), words.value(1)),
            ("a", "b"),
            "{data:?}"
        );
    }
    let header = CopyOptions { header: Header::Present, ..options(CopyFormat::Text) };
    assert_eq!(decoded(&columns, &header, [&b"x\ty\tz\n"[..]]).unwrap().num_rows(), 0);
}

#[test]
fn nulls_of_csv_are_not_quoted() {
    let columns = schema([("w", DataType::Utf8)]);
    let batch = decoded(&columns, &options(CopyFormat::Csv), [&b"\n\"\"\nx\n"[..]]).unwrap();
    let words: Vec<Option<&str>> = batch.column(0).as_string::<i32>().iter().collect();
    assert_eq!(words, [None, Some(""), Some("x")]);
    assert_eq!(encoded(&batch, &options(CopyFormat::Csv)), b"\n\"\"\nx\n");
}

#[test]
fn types_without_a_reader_are_cast() {
    let pair = DataType::Struct(Fields::from(vec![Field::new("a", DataType::Int64, true)]));
    let columns = schema([
        ("u", DataType::UInt64),
        ("s", pair.clone()),
        ("d", DataType::Decimal256(50, 1)),
        ("l", DataType::LargeUtf8),
    ]);
    let data = "18446744073709551615\t{'a': 7}\t1.5\tx\n\\N\t\\N\t\\N\t\\N\n";
    let batch = decoded(&columns, &options(CopyFormat::Text), [data.as_bytes()]).unwrap();
    assert_eq!(batch.column(0).as_primitive::<UInt64Type>().value(0), u64::MAX);
    assert_eq!(batch.column(1).data_type(), &pair);
    assert_eq!(encoded(&batch, &options(CopyFormat::Text)), data.as_bytes());
    let wrong = "1\t{'a': 7}\t1\tx\n1\t{'a': x}\t1\tx\n";
    let error = decoded(&columns, &options(CopyFormat::Text), [wrong.as_bytes()]).unwrap_err();
    assert!(error.to_string().starts_with("line 2, column \"s\":"), "{error}");
}

#[test]
fn rows_may_be_long_and_wide() {
    let columns = schema([("n", DataType::Int32), ("w", DataType::Utf8)]);
    let long = "ä\"\\".repeat(1 << 18);
    for format in [CopyFormat::Text, CopyFormat::Csv, CopyFormat::Binary] {
        let words = arrow::array::StringArray::from(vec![long.as_str(); 20]);
        let numbers = arrow::array::Int32Array::from(vec![7; 20]);
        let batch = arrow::array::RecordBatch::try_new(
            columns.clone(),
            vec![Arc::new(numbers), Arc::new(words)],
        )
        .unwrap();
        let data = encoded(&batch, &options(format));
        assert_eq!(decoded(&columns, &options(format), data.chunks(10_007)).unwrap(), batch);
    }
    let fields: Vec<Field> =
        (0..10_000).map(|n| Field::new(format!("c{n}"), DataType::Int32, true)).collect();
    let wide = Arc::new(Schema::new(fields));
    let row: Vec<String> = (0..10_000).map(|n| n.to_string()).collect();
    let data = format!("{}\n", row.join(",")).repeat(150);
    let batch = decoded(&wide, &options(CopyFormat::Csv), data.as_bytes().chunks(65_536)).unwrap();
    assert_eq!((batch.num_rows(), batch.num_columns()), (150, 10_000));
    assert_eq!(batch.column(9_999).as_primitive::<Int32Type>().value(149), 9_999);
}

#[test]
fn options_that_are_the_same_are_refused() {
    let csv = options(CopyFormat::Csv);
    for wrong in [
        CopyOptions { quote: b',', ..csv.clone() },
        CopyOptions { delimiter: b'\n', ..csv.clone() },
        CopyOptions { null: "\"".into(), ..csv.clone() },
        CopyOptions { null: "a,b".into(), ..csv.clone() },
        CopyOptions { null: "\n".into(), ..csv.clone() },
        CopyOptions { delimiter: b'a', ..options(CopyFormat::Text) },
    ] {
        assert!(wrong.check().is_err(), "{wrong:?}");
    }
    for format in [CopyFormat::Text, CopyFormat::Csv, CopyFormat::Binary] {
        assert_eq!(options(format).check(), Ok(()));
    }
}
