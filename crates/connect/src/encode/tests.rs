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
    let mut encoder = Encoder::new(&batch.schema(), envelope, key)?;
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
