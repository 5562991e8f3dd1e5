use arrow::datatypes::{DataType, Field, TimeUnit};
use arrow::util::display::{ArrayFormatter, FormatOptions};

use super::*;

/// The columns `id`, `name` and `n`, of which the first is NOT NULL, and the key if that is said.
fn shape(has_key: bool) -> Shape {
    let fields = vec![
        Field::new("id", DataType::Int64, false),
        Field::new("name", DataType::Utf8, true),
        Field::new("n", DataType::Int32, true),
    ];
    let key = if has_key { vec![0] } else { Vec::new() };
    Shape { schema: Arc::new(Schema::new(fields)), has_default: vec![false; 3], key }
}

fn format(name: &str, options: &[(&str, &str)]) -> Format {
    let options = options.iter().map(|(name, value)| (name.to_string(), value.to_string()));
    Format::read(name, &options.collect::<Vec<_>>()).unwrap()
}

fn json(update_format: &str) -> Format {
    format("json", &[("UPDATE_FORMAT", update_format)])
}

type Pair<'a> = (Option<&'a [u8]>, Option<&'a [u8]>);

/// Messages of partition 3, from offset 100 on.
fn messages(pairs: &[Pair<'_>]) -> Messages {
    let mut messages = Messages::default();
    for (offset, (key, value)) in (100..).zip(pairs) {
        let message =
            Message { partition: 3, offset, timestamp: Some(1_000), key: *key, value: *value };
        messages.push(message, std::iter::empty());
    }
    messages
}

fn values<'a>(values: &[&'a str]) -> Vec<Pair<'a>> {
    values.iter().map(|value| (None, Some(value.as_bytes()))).collect()
}

/// The rows as text after a sign of their operations, and the refused messages.
fn decode(shape: &Shape, format: &Format, pairs: &[Pair<'_>]) -> (Vec<String>, Vec<String>) {
    let mut decoder = Decoder::new("t", shape, format).unwrap();
    let decoded = decoder.decode(&messages(pairs), None).unwrap();
    let rows = &decoded.portion.rows;
    assert_eq!(rows.num_rows(), decoded.operations.len());
    let options = FormatOptions::default().with_null("NULL");
    let columns = rows.columns().iter();
    let columns: Vec<_> =
        columns.map(|column| ArrayFormatter::try_new(column, &options).unwrap()).collect();
    let row = |(row, operation): (usize, &Operation)| {
        let sign = match operation {
            Operation::Insert => "+",
            Operation::Delete => "-",
            Operation::Upsert => "=",
        };
        let cells: Vec<_> = columns.iter().map(|column| column.value(row).to_string()).collect();
        format!("{sign}{}", cells.join("|"))
    };
    let rows = decoded.operations.iter().enumerate().map(row).collect();
    (rows, decoded.portion.refused.iter().map(ToString::to_string).collect())
}

/// As [`decode`], where nothing is refused.
fn rows(shape: &Shape, format: &Format, pairs: &[Pair<'_>]) -> Vec<String> {
    let (rows, refused) = decode(shape, format, pairs);
    assert_eq!(refused, [""; 0]);
    rows
}

#[test]
fn a_raw_object_is_a_row() {
    let all = values(&[
        r#"{"id": 1, "name": "a", "n": 2}"#,
        r#" {"ID": 2, "name": {"x": [1]},
            "other": 1} "#,
        r#"{"id": -9223372036854775808, "n": 2147483647}"#,
    ]);
    let expected = ["+1|a|2", "+2|{\"x\": [1]}|NULL", "+-9223372036854775808|NULL|2147483647"];
    assert_eq!(rows(&shape(false), &json("raw"), &all), expected);
    assert_eq!(rows(&shape(true), &json("raw"), &all)[0], "=1|a|2");
}

#[test]
fn what_is_no_row_is_refused_with_its_place_and_reaches_no_further() {
    let deep = format!(r#"{{"id": {}1{}}}"#, "[".repeat(10_000), "]".repeat(10_000));
    let long = format!(r#"{{"id": 7, "name": "{}"}}"#, "x".repeat(1 << 20));
    let texts = [
        "",
        "{",
        "[{\"id\": 1}]",
        "{\"id\": 1} {\"id\": 2}",
        "{\"id\": 9223372036854775808}",
        "{\"id\": 1, \"n\": 2147483648}",
        "{\"name\": \"no id\"}",
        deep.as_str(),
        long.as_str(),
    ];
    let mut all = values(&texts);
    all.push((None, Some(b"{\"id\": 1, \"name\": \"\xFF\"}")));
    all.push((None, None));
    all.push((None, Some(b"{\"id\": 8}")));
    let (rows, refused) = decode(&shape(false), &json("raw"), &all);
    assert_eq!(rows.len(), 2);
    assert_eq!(rows[0].len(), (1 << 20) + "+7||NULL".len());
    assert_eq!(rows[1], "+8|NULL|NULL");
    let expected = [
        "t/3:100: the message is not one JSON object",
        "t/3:101: the message is not one JSON object",
        "t/3:102: the message is not one JSON object",
        "t/3:103: the message is not one JSON object",
        "t/3:104: ",
        "t/3:105: ",
        "t/3:106: there is no value (column id is NOT NULL)",
        "t/3:107: the JSON nests more than 128 levels deep",
        "t/3:109: ",
        "t/3:110: the message deletes its key, and the table has no PRIMARY KEY",
    ];
    assert_eq!(refused.len(), expected.len(), "{refused:?}");
    for (refused, expected) in refused.iter().zip(expected) {
        assert!(refused.starts_with(expected) && refused.len() > 10, "{refused}");
    }
}

#[test]
fn a_tombstone_deletes_its_key_and_needs_no_other_column() {
    let mut shape = shape(true);
    let mut fields: Vec<Field> =
        shape.schema.fields().iter().map(|field| field.as_ref().clone()).collect();
    fields[2] = Field::new("n", DataType::Int32, false);
    shape.schema = Arc::new(Schema::new(fields));
    let all: [Pair<'_>; 5] = [
        (Some(b"1"), Some(b"{\"id\": 1, \"n\": 5}")),
        (Some(b"1"), None),
        (Some(b"{\"id\": 2}"), None),
        (Some(b"3"), Some(b"{\"id\": 3}")),
        (None, None),
    ];
    let (rows, refused) = decode(&shape, &json("raw"), &all);
    assert_eq!(rows, ["=1|NULL|5", "-1|NULL|NULL", "-2|NULL|NULL"]);
    assert_eq!(
        refused,
        ["t/3:103: there is no value (column n is NOT NULL)", "t/3:104: the message has no key"]
    );
}

#[test]
fn columns_of_the_key_are_columns_where_that_is_asked_for() {
    let format = format("json", &[("KEY_COLUMNS", "id")]);
    let all: [Pair<'_>; 4] = [
        (Some(b"1"), Some(b"{\"name\": \"a\"}")),
        (Some(b"{\"id\": 2}"), Some(b" { } ")),
        (Some(b"3"), Some(b"{\"id\": 9}")),
        (Some(b"x"), Some(b"{\"name\": \"b\"}")),
    ];
    let (rows, refused) = decode(&shape(false), &format, &all);
    assert_eq!(rows, ["+1|a|NULL", "+2|NULL|NULL", "+3|NULL|NULL"]);
    assert_eq!(refused.len(), 1);
    assert!(refused[0].starts_with("t/3:103: "), "{refused:?}");
}

#[test]
fn insertions_and_deletions_have_their_objects() {
    let all = values(&[
        r#"{"insert": {"id": 1, "name": "a"}}"#,
        r#"{"delete": {"id": 1, "name": "a"}, "insert": {"id": 2}}"#,
        r#"{"insert": {"id": 3}, "delete": null}"#,
        r#"{"delete": {"id": 4}, "insert": {"id": "four"}}"#,
        r#"{"update": {"id": 5}}"#,
        r#"{}"#,
        r#"{"insert": 6}"#,
    ]);
    let (rows, refused) = decode(&shape(false), &json("insert_delete"), &all);
    assert_eq!(rows, ["+1|a|NULL", "-1|a|NULL", "+2|NULL|NULL", "+3|NULL|NULL"]);
    // Of a message with a part that is wrong, nothing is taken.
    let places: Vec<_> = refused.iter().map(|refused| &refused[..8]).collect();
    assert_eq!(places, ["t/3:103:", "t/3:104:", "t/3:105:", "t/3:106:"]);
}

#[test]
fn changes_of_debezium_become_operations_by_key_or_by_row() {
    let all = values(&[
        r#"{"op": "c", "before": null, "after": {"id": 1, "name": "a"}, "source": {"op": "x"}}"#,
        r#"{"schema": {"a": []}, "payload": {"op": "r", "after": {"id": 2}}}"#,
        r#"{"payload": {"op": "u", "before": {"id": 2}, "after": {"id": 3}}}"#,
        r#"{"op": "d", "before": {"id": 1, "name": "a"}, "after": null}"#,
        r#"{"op": "m", "message": {}}"#,
    ]);
    let expected = ["+1|a|NULL", "+2|NULL|NULL", "-2|NULL|NULL", "+3|NULL|NULL", "-1|a|NULL"];
    assert_eq!(rows(&shape(false), &json("debezium"), &all), expected);
    let expected = expected.map(|row| row.replace('+', "="));
    assert_eq!(rows(&shape(true), &json("debezium"), &all), expected);
    // What Postgres tells of a table whose replica identity is its key.
    let by_key: [Pair<'_>; 3] = [
        (Some(b"{\"id\": 1}"), Some(br#"{"op": "u", "before": null, "after": {"id": 1, "n": 5}}"#)),
        (Some(br#"{"schema": 1, "payload": {"id": 1}}"#), Some(br#"{"op": "d", "before": null}"#)),
        (Some(b"{\"id\": 1}"), None),
    ];
    assert_eq!(rows(&shape(true), &json("debezium"), &by_key), ["=1|NULL|5", "-1|NULL|NULL"]);
    let (rows, refused) = decode(&shape(false), &json("debezium"), &by_key);
    assert_eq!(rows, [""; 0]);
    assert!(refused.iter().all(|refused| refused.contains("PRIMARY KEY")), "{refused:?}");
}

#[test]
fn what_is_no_change_of_debezium_is_refused() {
    let all = values(&[
        "{}",
        "{\"payload\": 1}",
        "{\"payload\": {}}",
        "1",
        "{\"op\": \"c\"}",
        "{\"op\": \"x\", \"after\": {\"id\": 1}}",
        "{\"op\": \"t\"}",
        "{\"op\": \"c\", \"after\": [1]}",
    ]);
    let (rows, refused) = decode(&shape(true), &json("debezium"), &all);
    assert_eq!((rows.len(), refused.len()), (0, all.len()), "{refused:?}");
}

#[test]
fn a_record_of_csv_is_a_row() {
    let all =
        values(&["1,a,2", "2,\"two\nlines\",", "3,,\r\n", "", "4,x", "5,a,1\n6,b,2", "x,a,1"]);
    let (rows, refused) = decode(&shape(false), &format("csv", &[]), &all);
    assert_eq!(
        rows,
        ["+1|a|2", "+2|two\nlines|NULL", "+3||NULL"].map(|row| row.replace("+3||", "+3|NULL|"))
    );
    let expected = [
        "t/3:103: the message is empty",
        "t/3:104: there are 2 fields instead of 3",
        "t/3:105: the message has more than one record",
        "t/3:106: \"x\" is not a BIGINT (column id)",
    ];
    assert_eq!(refused, expected);
    let semicolons = format("csv", &[("DELIMITER", ";"), ("NULL_VALUE", "-")]);
    assert_eq!(rows_of(&semicolons, "1;-;2"), ["=1|NULL|2"]);
}

fn rows_of(format: &Format, value: &str) -> Vec<String> {
    rows(&shape(true), format, &values(&[value]))
}

#[test]
fn a_raw_value_is_a_row_of_one_column_and_metadata_are_others() {
    let millisecond = DataType::Timestamp(TimeUnit::Microsecond, None);
    let fields = |kind| {
        vec![
            Field::new("value", kind, true),
            Field::new("k", DataType::Utf8, true),
            Field::new("at", millisecond.clone(), true),
            Field::new("part", DataType::Int32, false),
            Field::new("place", DataType::Int64, false),
        ]
    };
    let shape = |kind| {
        let schema = Arc::new(Schema::new(fields(kind)));
        Shape { schema, has_default: vec![false; 5], key: Vec::new() }
    };
    let metadata = r#"{"k": "key", "at": "timestamp", "part": "partition", "place": "offset"}"#;
    let format = format("raw", &[("METADATA", metadata)]);
    let all: [Pair<'_>; 4] = [
        (Some(b"k"), Some(b"text")),
        (None, Some(b"")),
        (Some(b"\xFF"), Some(b"x")),
        (None, Some(b"\xFF")),
    ];
    let (rows, refused) = decode(&shape(DataType::Utf8), &format, &all);
    let time = "1970-01-01T00:00:01";
    assert_eq!(rows, [format!("+text|{time}|k|3|100"), format!("+|{time}|NULL|3|101")]);
    assert_eq!(
        refused,
        ["t/3:102: the key is not UTF-8 (column k)", "t/3:103: the message is not UTF-8"]
    );
    let (rows, _) = decode(&shape(DataType::Binary), &format, &all);
    assert_eq!(rows[2], format!("+ff|{time}|NULL|3|103"));
    let (rows, refused) =
        decode(&shape(DataType::Int32), &format, &[(None, Some(b"12")), (None, Some(b"x"))]);
    assert_eq!(rows, [format!("+12|{time}|NULL|3|100")]);
    assert_eq!(refused, ["t/3:101: \"x\" is not an INTEGER (column value)"]);
}

#[test]
fn headers_are_an_object() {
    let fields =
        vec![Field::new("id", DataType::Int64, false), Field::new("h", DataType::Utf8, true)];
    let shape =
        Shape { schema: Arc::new(Schema::new(fields)), has_default: vec![false; 2], key: vec![] };
    let mut messages = Messages::default();
    let value: Option<&[u8]> = Some(b"{\"id\": 1}");
    let message = Message { partition: 0, offset: 0, timestamp: None, key: None, value };
    let headers = [("trace", Some(&b"a\"b"[..])), ("raw", Some(&b"\xFF\x01"[..])), ("none", None)];
    messages.push(message, headers.into_iter());
    let format = format("json", &[("METADATA", "{\"h\": \"headers\"}")]);
    let decoded = Decoder::new("t", &shape, &format).unwrap().decode(&messages, None).unwrap();
    let headers = arrow::array::AsArray::as_string::<i32>(decoded.portion.rows.column(1)).value(0);
    let read: serde_json::Value = serde_json::from_str(headers).unwrap();
    assert_eq!(read, serde_json::json!({"trace": "a\"b", "raw": "\\xff01", "none": null}));
}

#[test]
fn columns_that_do_not_fit_the_format_are_told() {
    let problem = |shape: &Shape, format: &Format| match Decoder::new("t", shape, format) {
        Ok(_) => panic!("it fits"),
        Err(error) => error.to_string(),
    };
    let raw = problem(&shape(false), &format("raw", &[]));
    assert!(raw.contains("one column") && raw.contains("has 3"), "{raw}");
    let key = problem(&shape(false), &format("json", &[("KEY_COLUMNS", "nix")]));
    assert!(key.contains("\"nix\""), "{key}");
    let metadata = problem(&shape(false), &format("json", &[("METADATA", "{\"nix\": \"key\"}")]));
    assert!(metadata.contains("\"nix\""), "{metadata}");
}
