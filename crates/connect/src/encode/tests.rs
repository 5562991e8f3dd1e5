use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, StringArray};

use super::*;

/// Rows of `id` and `name`.
fn rows(rows: &[(i64, Option<&str>)]) -> RecordBatch {
    let ids: ArrayRef = Arc::new(rows.iter().map(|(id, _)| Some(*id)).collect::<Int64Array>());
    let names: ArrayRef = Arc::new(rows.iter().map(|(_, name)| *name).collect::<StringArray>());
    RecordBatch::try_from_iter_with_nullable([("id", ids, false), ("name", names, true)]).unwrap()
}

/// The messages of epoch 7, `key=value`.
fn messages(
    envelope: Envelope,
    key: &[usize],
    changes: &[(i64, Option<&str>, i64)],
) -> Result<Vec<String>> {
    let batch = rows(&changes.iter().map(|(id, name, _)| (*id, *name)).collect::<Vec<_>>());
    let weights: Vec<i64> = changes.iter().map(|(.., weight)| *weight).collect();
    let mut all = Vec::new();
    let mut put = |message: Outgoing<'_>| {
        let text =
            |bytes: Option<&[u8]>| bytes.map(|bytes| String::from_utf8(bytes.to_vec()).unwrap());
        let (key, value) = (text(message.key), text(message.value));
        all.push(format!("{}={}", key.unwrap_or_default(), value.unwrap_or_default()));
        Ok(())
    };
    let mut encoder = Encoder::new(&batch.schema(), envelope, key, Spelling::Json)?;
    encoder.write(7, &batch, &weights, &mut put)?;
    encoder.finish(7, &mut put)?;
    Ok(all)
}

const CHANGES: [(i64, Option<&str>, i64); 5] = [
    (1, Some("a\n\"b\""), 1),
    (2, Some("old"), -1),
    (2, None, 1),
    (3, Some("gone"), -1),
    (4, Some("new"), 1),
];

#[test]
fn changes_have_their_epoch_and_weight() {
    let expected = [
        r#"={"epoch":7,"weight":2,"id":1,"name":"a"}"#,
        r#"={"epoch":7,"weight":-1,"id":1,"name":null}"#,
    ];
    let changes = [(1, Some("a"), 2), (1, None, -1)];
    assert_eq!(messages(Envelope::Changes, &[], &changes).unwrap(), expected);
    let keyed = messages(Envelope::Changes, &[0], &changes).unwrap();
    assert!(keyed.iter().all(|message| message.starts_with("{\"id\":1}={")), "{keyed:?}");
}

#[test]
fn an_upsert_is_the_row_that_a_key_has_after_an_epoch() {
    let expected = [
        r#"{"id":1}={"id":1,"name":"a\n\"b\""}"#,
        r#"{"id":2}={"id":2,"name":null}"#,
        r#"{"id":3}="#,
        r#"{"id":4}={"id":4,"name":"new"}"#,
    ];
    assert_eq!(messages(Envelope::Upsert, &[0], &CHANGES).unwrap(), expected);
    let mut reversed = CHANGES;
    reversed.reverse();
    assert_eq!(messages(Envelope::Upsert, &[0], &reversed).unwrap(), expected);
}

#[test]
fn a_change_of_debezium_has_the_row_before_and_after() {
    let keyed = [
        r#"{"id":2}={"before":{"id":2,"name":"old"},"after":{"id":2,"name":null},"op":"u","source":{"epoch":7}}"#,
        r#"{"id":3}={"before":{"id":3,"name":"gone"},"after":null,"op":"d","source":{"epoch":7}}"#,
        r#"{"id":3}="#,
        r#"{"id":4}={"before":null,"after":{"id":4,"name":"new"},"op":"c","source":{"epoch":7}}"#,
    ];
    assert_eq!(messages(Envelope::Debezium, &[0], &CHANGES[1..]).unwrap(), keyed);
    let twice = messages(Envelope::Debezium, &[], &[(4, None, 2), (5, None, -1)]).unwrap();
    let inserted = r#"={"before":null,"after":{"id":4,"name":null},"op":"c","source":{"epoch":7}}"#;
    let deleted = r#"={"before":{"id":5,"name":null},"after":null,"op":"d","source":{"epoch":7}}"#;
    assert_eq!(twice, [inserted, inserted, deleted]);
}

#[test]
fn rows_that_share_a_key_are_told() {
    for changes in [&[(1, Some("a"), 2)][..], &[(1, Some("a"), 1), (1, Some("b"), 1)]] {
        let error = messages(Envelope::Upsert, &[0], changes).unwrap_err().to_string();
        assert!(error.contains("several rows have the key {\"id\":1}"), "{error}");
    }
    let error = messages(Envelope::Upsert, &[], &[]).unwrap_err().to_string();
    assert!(error.contains("upserts need a key"), "{error}");
}

/// The messages of epoch 7, as a decoder reads them again: rows after a sign of their operations.
#[cfg(feature = "avro")]
mod avro {
    use alluvium::Live;
    use arrow::array::Decimal128Array;
    use arrow::datatypes::{DataType, Field, Schema, TimeUnit};
    use arrow::util::display::{ArrayFormatter, FormatOptions};

    use super::*;
    use crate::decode::{Decoder, Format, Message, Messages, Shape};
    use crate::systems::registry::stub::Stub;
    use crate::systems::registry::{Registry, Settings};

    fn registry(stub: &Stub) -> Registry {
        let options = vec![("REGISTRY_URLS".to_owned(), stub.url())];
        Registry::new(Settings::read(options).unwrap().0).unwrap()
    }

    fn encoder(
        stub: &Stub,
        schema: &SchemaRef,
        (envelope, key): (Envelope, &[usize]),
    ) -> Result<Encoder> {
        let avro = Avro::new(("t", &registry(stub)), (schema, key), envelope, None)?;
        Encoder::new(schema, envelope, key, Spelling::Avro(Box::new(avro)))
    }

    fn written(mut encoder: Encoder, batch: &RecordBatch, weights: &[i64]) -> Messages {
        let mut messages = Messages::default();
        let mut put = |Outgoing { key, value }: Outgoing<'_>| {
            let offset = messages.len() as i64;
            let message = Message { partition: 0, offset, timestamp: None, key, value };
            messages.push(message, std::iter::empty());
            Ok(())
        };
        encoder.write(7, batch, weights, &mut put).unwrap();
        encoder.finish(7, &mut put).unwrap();
        messages
    }

    fn read(stub: &Stub, shape: &Shape, update_format: &str, messages: &Messages) -> Vec<String> {
        let url = stub.url();
        let options = [("REGISTRY_URLS", url.as_str()), ("UPDATE_FORMAT", update_format)];
        let options = options.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let format = Format::read("avro", &options).unwrap();
        let decoded = Decoder::new("t", shape, &format).unwrap().decode(messages, None).unwrap();
        assert!(decoded.portion.refused.is_empty(), "{:?}", decoded.portion.refused);
        let options = FormatOptions::default().with_null("NULL");
        let columns = decoded.portion.rows.columns();
        let columns = columns.iter().map(|column| ArrayFormatter::try_new(column, &options));
        let columns: Vec<_> = columns.collect::<std::result::Result<_, _>>().unwrap();
        let row = |(row, operation): (usize, &_)| {
            let cells = columns.iter().map(|column| column.value(row).to_string());
            format!("{operation:?} {}", cells.collect::<Vec<_>>().join("|"))
        };
        decoded.operations.iter().enumerate().map(row).collect()
    }

    fn shape(schema: SchemaRef, key: &[usize]) -> Shape {
        Shape { has_default: vec![false; schema.fields().len()], schema, key: key.to_vec() }
    }

    #[test]
    fn what_is_written_is_read_again() {
        let batch = rows(&CHANGES.map(|(id, name, _)| (id, name)));
        let weights = CHANGES.map(|(.., weight)| weight);
        let stub = Stub::start();
        let keyed = shape(batch.schema(), &[0]);
        let upserts = encoder(&stub, &batch.schema(), (Envelope::Upsert, &[0])).unwrap();
        let upserts = read(&stub, &keyed, "raw", &written(upserts, &batch, &weights));
        let expected = ["Upsert 1|a\n\"b\"", "Upsert 2|NULL", "Delete 3|NULL", "Upsert 4|new"];
        assert_eq!(upserts, expected);
        let stub = Stub::start();
        let changes = encoder(&stub, &batch.schema(), (Envelope::Debezium, &[0])).unwrap();
        let changes = read(&stub, &keyed, "debezium", &written(changes, &batch, &weights));
        let expected =
            ["Upsert 1|a\n\"b\"", "Delete 2|old", "Upsert 2|NULL", "Delete 3|gone", "Upsert 4|new"];
        assert_eq!(changes, expected);
        let subjects: Vec<String> = stub.state().subjects.keys().cloned().collect();
        assert_eq!(subjects, ["t-key", "t-value"]);
    }

    #[test]
    fn a_change_has_its_epoch_and_weight() {
        let stub = Stub::start();
        let batch = rows(&[(1, Some("a")), (1, None)]);
        let changes = encoder(&stub, &batch.schema(), (Envelope::Changes, &[])).unwrap();
        let messages = written(changes, &batch, &[2, -1]);
        let mut fields =
            ["epoch", "weight"].map(|name| Field::new(name, DataType::Int64, false)).to_vec();
        fields.extend(batch.schema().fields().iter().map(|field| field.as_ref().clone()));
        let shape = shape(Arc::new(Schema::new(fields)), &[]);
        let expected = ["Insert 7|2|1|a", "Insert 7|-1|1|NULL"];
        assert_eq!(read(&stub, &shape, "raw", &messages), expected);
    }

    #[test]
    fn types_that_avro_does_not_have_are_written_as_others() {
        use arrow::array::{IntervalMonthDayNanoArray, Time64NanosecondArray, UInt64Array};
        use arrow::datatypes::IntervalMonthDayNano;
        let batch = |time: i64| {
            let columns: [(&str, ArrayRef); 4] = [
                ("u", Arc::new(UInt64Array::from(vec![Some(u64::MAX), None]))),
                (
                    "i",
                    Arc::new(IntervalMonthDayNanoArray::from(vec![
                        Some(IntervalMonthDayNano::new(14, 3, 5_000_000_000)),
                        None,
                    ])),
                ),
                ("t", Arc::new(Time64NanosecondArray::from(vec![Some(time), None]))),
                (
                    "d",
                    Arc::new(
                        Decimal128Array::from(vec![Some(-1), Some(i128::pow(10, 38) - 1)])
                            .with_precision_and_scale(38, 4)
                            .unwrap(),
                    ),
                ),
            ];
            let columns = columns.map(|(name, column)| (name, column, true));
            RecordBatch::try_from_iter_with_nullable(columns).unwrap()
        };
        let rows = batch(1_000_001_000);
        let stub = Stub::start();
        let mut changes = encoder(&stub, &rows.schema(), (Envelope::Debezium, &[])).unwrap();
        let error = changes.write(7, &batch(1), &[1, 1], &mut |_| Ok(())).unwrap_err();
        assert!(error.to_string().contains("has nanoseconds"), "{error}");
        let messages = written(changes, &rows, &[1, 1]);
        let columns = [
            ("u", DataType::UInt64),
            ("i", DataType::Utf8),
            ("t", DataType::Time64(TimeUnit::Nanosecond)),
            ("d", DataType::Decimal128(38, 4)),
        ];
        let columns = columns.map(|(name, kind)| Field::new(name, kind, true));
        let shape = shape(Arc::new(Schema::new(columns.to_vec())), &[]);
        let read = read(&stub, &shape, "debezium", &messages);
        assert_eq!(
            read,
            [
                "Insert 18446744073709551615|14 mons 3 days 5.000000000 secs|00:00:01.000001|-0.0001",
                "Insert NULL|NULL|NULL|9999999999999999999999999999999999.9999",
            ]
        );
    }

    #[test]
    fn a_registry_that_does_not_take_a_schema_is_told_with_its_reason() {
        let stub = Stub::start();
        let batch = rows(&[]);
        let told = r#"{"error_code": 409, "message": "Schema being registered is incompatible"}"#;
        stub.state().answers = vec![("409 Conflict".to_owned(), told.to_owned())];
        let refused = encoder(&stub, &batch.schema(), (Envelope::Changes, &[]));
        let error = refused.map(drop).unwrap_err().to_string();
        assert!(error.contains("is incompatible"), "{error}");
        let columns = Arc::new(Schema::new(vec![Field::new("a b", DataType::Int64, true)]));
        let refused = encoder(&stub, &columns, (Envelope::Changes, &[]));
        let error = refused.map(drop).unwrap_err().to_string();
        assert!(error.contains("\"a b\" is no name in Avro"), "{error}");
        let over = Live::new(std::time::Duration::ZERO, true, || true);
        let gone =
            Settings::read(vec![("REGISTRY_URLS".to_owned(), "http://127.0.0.1:1".to_owned())]);
        let gone = Registry::new(gone.unwrap().0).unwrap();
        let columns = (&batch.schema(), [].as_slice());
        let waited = Avro::new(("t", &gone), columns, Envelope::Changes, Some(&over));
        assert!(waited.map(drop).unwrap_err().to_string().contains("nobody needs"));
    }
}
