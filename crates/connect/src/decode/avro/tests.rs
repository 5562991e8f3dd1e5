use std::sync::Arc;

use alluvium::Refusal;
use arrow::datatypes::{DataType, Schema};
use arrow::util::display::{ArrayFormatter, FormatOptions};
use serde_json::json;

use super::super::{Decoder, Format, Message, Messages, Operation, Shape};
use super::*;
use crate::systems::registry::stub::Stub;

const PERSON: &str = r#"{"type": "record", "name": "Person", "fields": [
    {"name": "id", "type": "long"}, {"name": "other", "type": {"type": "array", "items": "double"}},
    {"name": "name", "type": ["null", "string"]}]}"#;

/// The columns `id` and `name`, of which the first is NOT NULL, and the key if that is said.
fn shape(has_key: bool) -> Shape {
    let fields =
        vec![Field::new("id", DataType::Int64, false), Field::new("name", DataType::Utf8, true)];
    let key = if has_key { vec![0] } else { Vec::new() };
    Shape { schema: Arc::new(Schema::new(fields)), has_default: vec![false; 2], key }
}

fn format(options: &[(&str, &str)]) -> Format {
    let options = options.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    Format::read("avro", &options.collect::<Vec<_>>()).unwrap()
}

type Pair = (Option<Vec<u8>>, Option<Vec<u8>>);

/// The rows as text after a sign of their operations, and the refused messages.
fn decode(decoder: &mut Decoder, pairs: &[Pair]) -> (Vec<String>, Vec<String>) {
    let mut messages = Messages::default();
    for (offset, (key, value)) in (0..).zip(pairs) {
        let (key, value) = (key.as_deref(), value.as_deref());
        let message = Message { partition: 0, offset, timestamp: None, key, value };
        messages.push(message, std::iter::empty());
    }
    let decoded = decoder.decode(&messages, None).unwrap();
    let rows = &decoded.portion.rows;
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
    (rows, decoded.portion.refused.iter().map(Refusal::to_string).collect())
}

/// A number, as Avro has it.
fn long(value: i64) -> Vec<u8> {
    let mut left = ((value << 1) ^ (value >> 63)).cast_unsigned();
    let mut bytes = Vec::new();
    while left > 0x7F {
        bytes.push((left & 0x7F) as u8 | 0x80);
        left >>= 7;
    }
    bytes.push(left as u8);
    bytes
}

fn text(value: &str) -> Vec<u8> {
    [long(value.len() as i64), value.as_bytes().to_vec()].concat()
}

/// A person: the body of a message.
fn person(id: i64, name: Option<&str>) -> Vec<u8> {
    let name = name.map_or_else(|| long(0), |name| [long(1), text(name)].concat());
    [long(id), long(1), 1.5f64.to_le_bytes().to_vec(), long(0), name].concat()
}

fn framed(id: u32, body: &[u8]) -> Vec<u8> {
    [&[0], id.to_be_bytes().as_slice(), body].concat()
}

fn values(bodies: Vec<Vec<u8>>) -> Vec<Pair> {
    bodies.into_iter().map(|body| (None, Some(body))).collect()
}

#[test]
fn a_record_is_a_row() {
    let bare = format(&[("SCHEMA", PERSON), ("SKIP_SCHEMA_ID", "true")]);
    let mut decoder = Decoder::new("t", &shape(false), &bare).unwrap();
    let bodies = vec![person(1, Some("ann")), person(i64::MIN, None), person(i64::MAX, Some(""))];
    let expected = ["+1|ann".to_owned(), format!("+{}|NULL", i64::MIN), format!("+{}|", i64::MAX)];
    assert_eq!(decode(&mut decoder, &values(bodies.clone())), (expected.to_vec(), Vec::new()));
    let mut decoder = Decoder::new("t", &shape(true), &format(&[("SCHEMA", PERSON)])).unwrap();
    let framed = bodies.iter().map(|body| framed(7, body)).collect();
    assert_eq!(decode(&mut decoder, &values(framed)).0[0], "=1|ann");
    assert_eq!(decode(&mut decoder, &[]), (Vec::new(), Vec::new()));
}

#[test]
fn a_damaged_message_is_refused_and_reaches_no_further() {
    let bare = format(&[("SCHEMA", PERSON), ("SKIP_SCHEMA_ID", "true")]);
    let mut decoder = Decoder::new("t", &shape(false), &bare).unwrap();
    let whole = person(1, Some("ann"));
    let mut all = Vec::new();
    for cut in 0..whole.len() {
        all.push(whole[..cut].to_vec());
        all.push(person(cut as i64, Some("between")));
    }
    all.push([whole.clone(), vec![0]].concat());
    // After a row, the library takes this for the beginning of another message.
    all.push([whole.clone(), vec![0, 0xA5, 0x5A, 0xC3, 0x3C]].concat());
    // And what comes behind it for another row.
    all.push([whole.clone(), vec![0, 0xA5, 0x5A, 0xC3, 0x3C], person(7, None)].concat());
    all.push(person(99, Some("\0\u{5}last")));
    let (rows, refused) = decode(&mut decoder, &values(all));
    let mut expected: Vec<String> = (0..whole.len()).map(|id| format!("+{id}|between")).collect();
    expected.push("+99|\0\u{5}last".to_owned());
    assert_eq!(rows, expected);
    assert_eq!(refused.len(), whole.len() + 3, "{refused:?}");
    assert!(refused[0].starts_with("t/0:0: "), "{refused:?}");
}

/// What a message says of itself is not to be trusted: no length may take all memory, and nothing may panic.
#[test]
fn random_damage_is_refused_or_is_another_row() {
    let bare = format(&[("SCHEMA", PERSON), ("SKIP_SCHEMA_ID", "true")]);
    let mut decoder = Decoder::new("t", &shape(false), &bare).unwrap();
    let mut random = fastrand::Rng::with_seed(7);
    for _ in 0..200 {
        let mut pairs = Vec::new();
        for id in 0..20 {
            let mut body = person(id, Some("somebody"));
            for _ in 0..random.usize(1..4) {
                let at = random.usize(..body.len());
                body[at] = random.u8(..);
            }
            pairs.push((None, Some(body)));
            pairs.push((None, Some(person(1_000 + id, Some("whole")))));
        }
        let (rows, refused) = decode(&mut decoder, &pairs);
        assert_eq!(rows.len() + refused.len(), pairs.len());
        assert!(rows.iter().filter(|row| row.ends_with("|whole")).count() >= 20, "{rows:?}");
    }
}

#[test]
fn messages_of_several_schemas_keep_their_order() {
    let stub = Stub::start();
    let old = stub.add("t-value", PERSON);
    let new = stub.add(
        "t-value",
        r#"{"type": "record", "name": "Person", "fields": [
            {"name": "NAME", "type": {"type": "enum", "name": "Name", "symbols": ["bob", "eve"]}}, {"name": "id", "type": "int"}]}"#,
    );
    let other =
        stub.state().add("x", json!({ "schema": "message A {}", "schemaType": "PROTOBUF" }));
    let number = stub.add("y", "\"long\"");
    let wrong = stub.add("z", r#"{"type": "record", "name": "r", "fields": [{"name": "id", "type": {"type": "map", "values": "int"}}]}"#);
    let format = format(&[("REGISTRY_URLS", &stub.url())]);
    let mut decoder = Decoder::new("t", &shape(false), &format).unwrap();
    let bob = [long(0), long(2)].concat();
    let all = vec![
        framed(new, &bob),
        framed(old, &person(1, Some("ann"))),
        framed(other, b""),
        framed(new, &[long(1), long(3)].concat()),
        framed(9_999, &bob),
        framed(number, &long(4)),
        b"{}".to_vec(),
        framed(wrong, &long(0)),
    ];
    let (rows, refused) = decode(&mut decoder, &values(all));
    assert_eq!(rows, ["+2|bob", "+1|ann", "+3|eve"]);
    let expected = [
        ("t/0:2", "is one of PROTOBUF"),
        ("t/0:4", "there is no schema 9999"),
        ("t/0:5", "there is no value (column id is NOT NULL)"),
        ("t/0:6", "does not begin with the identifier of a schema"),
        ("t/0:7", "which cannot become a BIGINT"),
    ];
    assert_eq!(refused.len(), expected.len(), "{refused:?}");
    for (refused, (place, problem)) in refused.iter().zip(expected) {
        assert!(refused.starts_with(place) && refused.contains(problem), "{refused}");
    }
    // Each schema is asked for once, and one that is not there is asked for again.
    assert_eq!(stub.state().requests.len(), 5 + 4);
    let later = stub.state().add("late", json!({ "schema": PERSON.replace("Person", "Late") }));
    let (rows, _) = decode(&mut decoder, &values(vec![framed(later, &person(8, None))]));
    assert_eq!(rows, ["+8|NULL"]);
}

#[test]
fn a_tombstone_deletes_the_key_that_is_a_record_a_value_or_text() {
    let stub = Stub::start();
    let person_id = stub.add("t-value", PERSON);
    let record = stub.add(
        "t-key",
        r#"{"type": "record", "name": "k", "fields": [{"name": "id", "type": "long"}]}"#,
    );
    let value = stub.add("u-key", "\"long\"");
    let format = format(&[("REGISTRY_URLS", &stub.url())]);
    let all = [
        (Some(framed(record, &long(1))), Some(framed(person_id, &person(1, Some("ann"))))),
        (Some(framed(record, &long(1))), None),
        (None, Some(framed(person_id, &person(2, None)))),
        (Some(framed(value, &long(2))), None),
        (Some(b"3".to_vec()), None),
        (Some(b"x".to_vec()), None),
        (None, None),
    ];
    let mut decoder = Decoder::new("t", &shape(true), &format).unwrap();
    let (rows, refused) = decode(&mut decoder, &all);
    assert_eq!(rows, ["=1|ann", "-1|NULL", "=2|NULL", "-2|NULL", "-3|NULL"]);
    assert_eq!(refused.len(), 2, "{refused:?}");
    assert!(
        refused[0].contains("is not a BIGINT") && refused[1].contains("has no key"),
        "{refused:?}"
    );
    let mut decoder = Decoder::new("t", &shape(false), &format).unwrap();
    assert!(decode(&mut decoder, &all).1[0].contains("the table has no PRIMARY KEY"));
}

#[test]
fn columns_of_the_key_are_read_from_there() {
    let stub = Stub::start();
    let name = stub.add(
        "t-value",
        r#"{"type": "record", "name": "v", "fields": [{"name": "name", "type": "string"}]}"#,
    );
    let key = stub.add(
        "t-key",
        r#"{"type": "record", "name": "k", "fields": [{"name": "id", "type": "long"}]}"#,
    );
    let format = format(&[("REGISTRY_URLS", &stub.url()), ("KEY_COLUMNS", "id")]);
    let mut decoder = Decoder::new("t", &shape(false), &format).unwrap();
    let all = [
        (Some(framed(key, &long(5))), Some(framed(name, &text("ann")))),
        (None, Some(framed(name, &text("bob")))),
        (Some(b"6".to_vec()), Some(framed(name, &text("eve")))),
    ];
    let (rows, refused) = decode(&mut decoder, &all);
    assert_eq!(rows, ["+5|ann", "+6|eve"]);
    assert_eq!(refused, ["t/0:1: the message has no key"]);
}

#[test]
fn changes_of_debezium_are_rows_with_operations() {
    let stub = Stub::start();
    let id = stub.add(
        "t-value",
        r#"{"type": "record", "name": "Envelope", "fields": [
            {"name": "before", "type": ["null", {"type": "record", "name": "Value", "fields": [
                {"name": "id", "type": "long"}, {"name": "name", "type": ["null", "string"]}]}]},
            {"name": "after", "type": ["null", "Value"]},
            {"name": "source", "type": "string"},
            {"name": "op", "type": "string"}]}"#,
    );
    let row = |row: Option<(i64, &str)>| match row {
        Some((id, name)) => [long(1), long(id), long(1), text(name)].concat(),
        None => long(0),
    };
    let change = |op: &str, before, after| {
        let body = [row(before), row(after), text("s"), text(op)].concat();
        (Some(b"2".to_vec()), Some(framed(id, &body)))
    };
    let all = [
        change("r", None, Some((1, "a"))),
        change("u", Some((1, "a")), Some((1, "b"))),
        change("u", None, Some((2, "c"))),
        change("d", Some((1, "b")), None),
        change("d", None, None),
        (Some(b"2".to_vec()), None),
        change("m", None, None),
        change("t", None, None),
        change("x", None, None),
    ];
    let format = format(&[("REGISTRY_URLS", &stub.url()), ("UPDATE_FORMAT", "debezium")]);
    let mut decoder = Decoder::new("t", &shape(true), &format).unwrap();
    let (rows, refused) = decode(&mut decoder, &all);
    assert_eq!(rows, ["=1|a", "-1|a", "=1|b", "=2|c", "-1|b", "-2|NULL"]);
    assert_eq!(refused.len(), 2, "{refused:?}");
    let mut decoder = Decoder::new("t", &shape(false), &format).unwrap();
    let (rows, refused) = decode(&mut decoder, &all);
    assert_eq!(rows, ["+1|a", "-1|a", "+1|b", "-1|b"]);
    assert_eq!(refused.len(), 4, "{refused:?}");
}

#[test]
fn values_of_all_types_become_those_of_columns() {
    let fields = [
        ("a", r#""boolean""#, long(0), DataType::Boolean, "false"),
        ("b", r#""int""#, long(-5), DataType::Int64, "-5"),
        ("c", r#""float""#, 1.5f32.to_le_bytes().to_vec(), DataType::Float64, "1.5"),
        ("d", r#""bytes""#, text("\u{1}x"), DataType::Binary, "0178"),
        (
            "e",
            r#"{"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}"#,
            [long(2), vec![0xFF, 0x38]].concat(),
            DataType::Decimal128(12, 3),
            "-2.000",
        ),
        ("f", r#"{"type": "int", "logicalType": "date"}"#, long(1), DataType::Date32, "1970-01-02"),
        (
            "g",
            r#"{"type": "long", "logicalType": "timestamp-millis"}"#,
            long(1_500),
            DataType::Timestamp(arrow::datatypes::TimeUnit::Microsecond, None),
            "1970-01-01T00:00:01.500",
        ),
        (
            "h",
            r#"{"type": "string", "logicalType": "uuid"}"#,
            text("00112233-4455-6677-8899-aabbccddeeff"),
            DataType::Utf8,
            "00112233-4455-6677-8899-aabbccddeeff",
        ),
        (
            "i",
            r#"{"type": "array", "items": "int"}"#,
            [long(2), long(1), long(2), long(0)].concat(),
            DataType::Utf8,
            "[1,2]",
        ),
        (
            "j",
            r#"{"type": "map", "values": "int"}"#,
            [long(1), text("k"), long(1), long(0)].concat(),
            DataType::Utf8,
            r#"{"k":1}"#,
        ),
        ("k", r#"{"type": "fixed", "name": "F", "size": 2}"#, vec![1, 2], DataType::Binary, "0102"),
        ("l", r#""string""#, text("2026-01-02"), DataType::Date32, "2026-01-02"),
        ("m", r#""long""#, long(7), DataType::Utf8, "7"),
        (
            "n",
            r#"{"type": "long", "connect.name": "io.debezium.time.MicroTimestamp"}"#,
            long(1),
            DataType::Timestamp(arrow::datatypes::TimeUnit::Microsecond, None),
            "1970-01-01T00:00:00.000001",
        ),
    ];
    let of = |(name, kind, ..): &(&str, &str, Vec<u8>, DataType, &str)| {
        format!("{{\"name\": \"{name}\", \"type\": {kind}}}")
    };
    let members = fields.iter().map(of).collect::<Vec<_>>().join(", ");
    let schema = format!("{{\"type\": \"record\", \"name\": \"r\", \"fields\": [{members}]}}");
    let columns = fields.iter().map(|(name, _, _, kind, _)| Field::new(*name, kind.clone(), true));
    let shape = Shape {
        schema: Arc::new(Schema::new(columns.collect::<Vec<_>>())),
        has_default: vec![false; fields.len()],
        key: Vec::new(),
    };
    let bare = format(&[("SCHEMA", &schema), ("SKIP_SCHEMA_ID", "true")]);
    let body = fields.iter().flat_map(|(.., value, _, _)| value.clone()).collect();
    let (rows, refused) =
        decode(&mut Decoder::new("t", &shape, &bare).unwrap(), &values(vec![body]));
    assert_eq!(refused, [""; 0]);
    let expected: Vec<&str> = fields.iter().map(|(.., expected)| *expected).collect();
    assert_eq!(rows, [format!("+{}", expected.join("|"))]);
}

#[test]
fn options_are_read_and_others_refused() {
    let read = |options: &[(&str, &str)]| {
        let options = options.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        Format::read("avro", &options.collect::<Vec<_>>()).unwrap_err().to_string()
    };
    for (options, problem) in [
        (&[][..], "need REGISTRY_URLS"),
        (&[("SCHEMA", "{")], "SCHEMA: the schema is not one of Avro"),
        (&[("SCHEMA", "\"int\""), ("REGISTRY_URLS", "http://a")], "leave one out"),
        (&[("REGISTRY_URLS", "http://a"), ("SKIP_SCHEMA_ID", "true")], "name SCHEMA"),
        (&[("SCHEMA", "\"int\""), ("UPDATE_FORMAT", "insert_delete")], "raw or debezium"),
        (&[("SCHEMA", "\"int\""), ("COLOUR", "red")], "no option \"COLOUR\""),
    ] {
        let error = read(options);
        assert!(error.contains(problem), "{error}");
    }
}
