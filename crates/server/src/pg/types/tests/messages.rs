//! Messages of rows.

use std::sync::Arc;

use alluvium::Value;
use arrow::array::{
    Array, ArrayRef, DictionaryArray, DurationSecondArray, FixedSizeBinaryArray, Float16Array,
    Int8Array, Int64Array, ListArray, NullArray, RecordBatch, StringArray, StringViewArray,
    StructArray, TimestampSecondArray, UInt8Array, UInt32Array, UInt64Array,
};
use arrow::datatypes::{DataType, Field, Int32Type, Int64Type, Schema};
use bytes::BytesMut;

use super::super::time::zone::Zone;
use super::super::{Format, PgType, RowEncoder, decode};
use super::encoded;

fn texts(array: ArrayRef) -> Vec<Option<String>> {
    let rows = encoded(&array, Format::Text, Zone::UTC).unwrap();
    rows.into_iter().map(|row| row.map(|text| String::from_utf8(text).unwrap())).collect()
}

fn one(array: ArrayRef) -> String {
    texts(array)[0].clone().unwrap()
}

#[test]
fn each_column_has_its_format() {
    let numbers: ArrayRef = Arc::new(Int64Array::from(vec![Some(7), None, Some(-1)]));
    let words: ArrayRef = Arc::new(StringArray::from(vec!["a", "", "ä"]));
    let batch =
        RecordBatch::try_from_iter_with_nullable([("n", numbers, true), ("w", words, true)])
            .unwrap();
    let schema = batch.schema();
    let mut encoder = RowEncoder::new(&schema, &[Format::Binary, Format::Text]).unwrap();
    let mut out = BytesMut::new();
    encoder.encode(&batch, 0..1, &mut out).unwrap();
    assert_eq!(&out[..], b"D\0\0\0\x17\0\x02\0\0\0\x08\0\0\0\0\0\0\0\x07\0\0\0\x01a");
    out.clear();
    encoder.encode(&batch, 1..3, &mut out).unwrap();
    assert_eq!(
        &out[..],
        b"D\0\0\0\x0e\0\x02\xff\xff\xff\xff\0\0\0\0D\0\0\0\x18\0\x02\0\0\0\x08\xff\xff\xff\xff\xff\xff\xff\xff\0\0\0\x02\xc3\xa4"
    );
    assert!(RowEncoder::new(&schema, &[Format::Text; 3]).is_err());
    assert!(encoder.encode(&batch, 2..4, &mut out).is_err());
}

#[test]
fn values_of_any_type_are_texts_where_they_are_described_so() {
    let schema = Schema::new(vec![Field::new("a", DataType::Utf8, true)]);
    let mut encoder = RowEncoder::new(&schema, &[Format::Binary]).unwrap();
    let numbers: ArrayRef = Arc::new(Int64Array::from(vec![-7]));
    let batch = RecordBatch::try_from_iter([("a", numbers)]).unwrap();
    let mut out = BytesMut::new();
    encoder.encode(&batch, 0..1, &mut out).unwrap();
    assert_eq!(&out[..], b"D\0\0\0\x0c\0\x01\0\0\0\x02-7");
}

#[test]
fn rows_that_are_too_large_are_refused_and_those_before_stay() {
    let words: ArrayRef = Arc::new(StringArray::from(vec!["a".to_owned(), "b".repeat(1 << 20)]));
    let batch = RecordBatch::try_from_iter([("w", words)]).unwrap();
    let mut encoder = RowEncoder::new(&batch.schema(), &[]).unwrap().with_most(1 << 20);
    let mut out = BytesMut::new();
    let error = encoder.encode(&batch, 0..2, &mut out).unwrap_err();
    assert_eq!((error.code(), &out[..]), ("54000", &b"D\0\0\0\x0b\0\x01\0\0\0\x01a"[..]));
    let mut encoder = RowEncoder::new(&batch.schema(), &[]).unwrap();
    encoder.encode(&batch, 0..2, &mut out).unwrap();
    assert_eq!(out.len(), 2 * 12 + 11 + (1 << 20));
    let many: Vec<Field> = (0..40_000).map(|_| Field::new("x", DataType::Int8, true)).collect();
    assert_eq!(
        RowEncoder::new(&Schema::new(many), &[]).err().map(|error| error.code()),
        Some("54000")
    );
}

#[test]
fn types_that_postgres_does_not_have_become_others() {
    assert_eq!(one(Arc::new(Int8Array::from(vec![-128]))), "-128");
    assert_eq!(one(Arc::new(UInt8Array::from(vec![255]))), "255");
    assert_eq!(one(Arc::new(UInt32Array::from(vec![u32::MAX]))), "4294967295");
    assert_eq!(one(Arc::new(UInt64Array::from(vec![u64::MAX]))), "18446744073709551615");
    let half: Float16Array = [Some(Default::default())].into_iter().collect();
    assert_eq!(one(Arc::new(half)), "0");
    assert_eq!(
        one(Arc::new(StringViewArray::from(vec!["a rather long text"]))),
        "a rather long text"
    );
    let dictionary: DictionaryArray<Int32Type> = ["b", "a", "b"].into_iter().collect();
    assert_eq!(texts(Arc::new(dictionary)), [Some("b".into()), Some("a".into()), Some("b".into())]);
    assert_eq!(one(Arc::new(TimestampSecondArray::from(vec![-1]))), "1969-12-31 23:59:59");
    assert_eq!(one(Arc::new(DurationSecondArray::from(vec![90]))), "00:01:30");
    let bytes = FixedSizeBinaryArray::try_from_iter([[1_u8, 2]].iter()).unwrap();
    assert_eq!(one(Arc::new(bytes)), "\\x0102");
    assert_eq!(texts(Arc::new(NullArray::new(2))), [None, None]);
    let far: ArrayRef = Arc::new(TimestampSecondArray::from(vec![i64::MAX]));
    assert!(encoded(&far, Format::Text, Zone::UTC).is_err());
}

#[test]
fn structs_are_texts_that_can_be_cast_back() {
    let fields: ArrayRef = Arc::new(Int64Array::from(vec![1]));
    let row = StructArray::try_from(vec![("a", fields)]).unwrap();
    let kind = row.data_type().clone();
    assert_eq!(PgType::of(&kind).oid(), 25);
    let text = one(Arc::new(row));
    let value = decode(0, Some(&kind), Format::Text, text.as_bytes()).unwrap();
    assert_eq!(value, Value::from(text.as_str()));
}

#[test]
fn lists_of_lists_are_arrays_if_they_are_as_long() {
    let nested = |rows: Vec<Vec<i64>>| {
        let lists = rows.into_iter().map(|row| Some(row.into_iter().map(Some)));
        let inner = ListArray::from_iter_primitive::<Int64Type, _, _>(lists);
        let field = Arc::new(Field::new_list_field(inner.data_type().clone(), true));
        let offsets = arrow::buffer::OffsetBuffer::from_lengths([inner.len()]);
        Arc::new(ListArray::new(field, offsets, Arc::new(inner), None)) as ArrayRef
    };
    let square = nested(vec![vec![1, 2], vec![3, 4]]);
    assert_eq!(one(square.clone()), "{{1,2},{3,4}}");
    let binary = encoded(&square, Format::Binary, Zone::UTC).unwrap()[0].clone().unwrap();
    let read = decode(1016, Some(square.data_type()), Format::Binary, &binary).unwrap();
    assert_eq!(&read.to_array().unwrap(), &square);
    let ragged = nested(vec![vec![1, 2], vec![]]);
    assert_eq!(one(ragged.clone()), "{{1,2},{}}");
    let read = decode(1016, Some(square.data_type()), Format::Text, b"{{1,2},{}}").unwrap();
    assert_eq!(&read.to_array().unwrap(), &ragged);
    let error = encoded(&ragged, Format::Binary, Zone::UTC).unwrap_err();
    assert_eq!(error.code(), "2202E");
    let empty = encoded(&nested(vec![vec![], vec![]]), Format::Binary, Zone::UTC).unwrap();
    assert_eq!(empty[0].as_ref().unwrap()[..4], [0; 4]);
}

#[test]
fn parameters_without_a_type_are_of_the_one_that_was_found() {
    let text = |found: Option<DataType>, text: &str| {
        decode(0, found.as_ref(), Format::Text, text.as_bytes()).unwrap()
    };
    assert_eq!(text(None, "7"), Value::from("7"));
    assert_eq!(text(Some(DataType::Int64), "7"), Value::from(7_i64));
    assert_eq!(
        text(Some(DataType::Decimal128(10, 2)), "1.239"),
        Value::decimal(1_239, 4, 3).unwrap()
    );
    assert_eq!(
        decode(23, Some(&DataType::Int64), Format::Binary, &[0, 0, 0, 7]),
        Ok(Value::from(7))
    );
    assert_eq!(decode(3802, None, Format::Binary, b"\x01{}"), Ok(Value::from("{}")));
    for (oid, bytes, code) in [
        (23, &[0_u8; 3][..], "22P03"),
        (25, b"\xff", "22021"),
        (25, b"a\0", "22021"),
        (600, b"", "0A000"),
    ] {
        let error = decode(oid, None, Format::Binary, bytes).unwrap_err();
        assert_eq!(error.code(), code, "{error}");
    }
}
