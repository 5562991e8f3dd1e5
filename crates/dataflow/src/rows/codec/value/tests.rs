//! Every type, there and back, and its bytes.

use std::fmt::Write;
use std::sync::Arc;

use arrow::array::{
    Array, BooleanArray, Float64Array, Int64Array, ListArray, StringArray, StructArray,
};
use arrow::compute::{cast, concat};
use arrow::datatypes::{Field, Float64Type, IntervalUnit, TimeUnit, i256};
use proptest::prelude::*;

use super::*;
use crate::rows::codec::KeyCodec;

fn encode(columns: &[ArrayRef], rows: usize) -> (ValueCodec, Encoded) {
    let types: Vec<DataType> = columns.iter().map(|column| column.data_type().clone()).collect();
    let codec = ValueCodec::new(&types).unwrap();
    let mut out = Encoded::new();
    codec.encode(columns, rows, &mut out).unwrap();
    (codec, out)
}

/// One column of each type: two values, then NULL.
fn every_type() -> Vec<(&'static str, ArrayRef)> {
    use arrow::array::*;
    use arrow::datatypes::{IntervalDayTime, IntervalMonthDayNano};

    fn column<A: Array + 'static>(array: A) -> ArrayRef {
        let null = new_null_array(array.data_type(), 1);
        concat(&[&array, null.as_ref()]).unwrap()
    }
    let decimal128 = Decimal128Array::from(vec![-12345, 10_i128.pow(37)]);
    let decimal256 = Decimal256Array::from(vec![i256::MINUS_ONE, i256::from_i128(i128::MAX)]);
    let utc = TimestampMicrosecondArray::from(vec![1_700_000_000_000_000, -1]);
    let day_times = [IntervalDayTime::new(-1, 500), IntervalDayTime::new(0, 0)];
    let nanos = [IntervalMonthDayNano::new(1, -2, 3), IntervalMonthDayNano::new(0, 0, 0)];
    vec![
        ("Boolean", column(BooleanArray::from(vec![true, false]))),
        ("Int8", column(Int8Array::from(vec![-1, i8::MAX]))),
        ("Int16", column(Int16Array::from(vec![-2, i16::MAX]))),
        ("Int32", column(Int32Array::from(vec![-3, i32::MAX]))),
        ("Int64", column(Int64Array::from(vec![-4, i64::MAX]))),
        ("UInt8", column(UInt8Array::from(vec![1, u8::MAX]))),
        ("UInt16", column(UInt16Array::from(vec![2, u16::MAX]))),
        ("UInt32", column(UInt32Array::from(vec![3, u32::MAX]))),
        ("UInt64", column(UInt64Array::from(vec![4, u64::MAX]))),
        ("Float32", column(Float32Array::from(vec![1.5, -0.0]))),
        ("Float64", column(Float64Array::from(vec![-2.5, f64::NAN]))),
        ("Decimal128", column(decimal128.with_precision_and_scale(38, 2).unwrap())),
        ("Decimal256", column(decimal256.with_precision_and_scale(76, 0).unwrap())),
        ("Utf8", column(StringArray::from(vec!["", "Ωmega"]))),
        ("LargeUtf8", column(LargeStringArray::from(vec!["a", "bc"]))),
        ("Utf8View", column(StringViewArray::from(vec!["short", "longer than twelve bytes"]))),
        ("Binary", column(BinaryArray::from(vec![&b""[..], &b"\0\xff"[..]]))),
        ("LargeBinary", column(LargeBinaryArray::from(vec![&b"x"[..], &b"\0"[..]]))),
        ("BinaryView", column(BinaryViewArray::from(vec![&b"x"[..], &b"thirteen bytes"[..]]))),
        ("Date32", column(Date32Array::from(vec![0, -719_162]))),
        ("Date64", column(Date64Array::from(vec![0, 86_400_000]))),
        ("Time32(s)", column(Time32SecondArray::from(vec![0, 86_399]))),
        ("Time32(ms)", column(Time32MillisecondArray::from(vec![0, 86_399_999]))),
        ("Time64(µs)", column(Time64MicrosecondArray::from(vec![1, 86_399_999_999]))),
        ("Time64(ns)", column(Time64NanosecondArray::from(vec![1, 86_399_999_999_999]))),
        ("Timestamp(s)", column(TimestampSecondArray::from(vec![1, -1]))),
        ("Timestamp(ms)", column(TimestampMillisecondArray::from(vec![1, -1]))),
        ("Timestamp(µs, UTC)", column(utc.with_timezone("UTC"))),
        ("Timestamp(ns)", column(TimestampNanosecondArray::from(vec![1, i64::MIN]))),
        ("Interval(YearMonth)", column(IntervalYearMonthArray::from(vec![14, -1]))),
        ("Interval(DayTime)", column(IntervalDayTimeArray::from(day_times.to_vec()))),
        ("Interval(MonthDayNano)", column(IntervalMonthDayNanoArray::from(nanos.to_vec()))),
        ("Duration(s)", column(DurationSecondArray::from(vec![1, -1]))),
        ("Duration(ns)", column(DurationNanosecondArray::from(vec![1, -1]))),
        ("Null", Arc::new(NullArray::new(3))),
    ]
}

#[test]
fn every_type_comes_back_as_it_was() {
    let columns: Vec<ArrayRef> = every_type().into_iter().map(|(_, column)| column).collect();
    let (codec, rows) = encode(&columns, 3);
    let all: Vec<usize> = (0..columns.len()).collect();
    assert_eq!(codec.decode(rows.iter(), &all).unwrap(), columns);

    let keys = KeyCodec::new(codec.types()).unwrap();
    let mut encoded = Encoded::new();
    keys.encode(&columns, 3, &mut encoded).unwrap();
    let floats_kept = |column: &ArrayRef| *column.data_type() != DataType::Float32;
    for (back, column) in keys.decode(encoded.iter()).unwrap().iter().zip(&columns) {
        if floats_kept(column) {
            assert_eq!(back, column);
        }
    }
}

#[test]
fn the_bytes_of_every_type_stay_what_they_are() {
    let mut golden = String::new();
    for (name, column) in every_type() {
        let keys = KeyCodec::new(&[column.data_type().clone()]).unwrap();
        let mut key_rows = Encoded::new();
        keys.encode(std::slice::from_ref(&column), 3, &mut key_rows).unwrap();
        let (_, rows) = encode(&[column], 3);
        writeln!(golden, "{name}").unwrap();
        for (value, key) in rows.iter().zip(key_rows.iter()) {
            writeln!(golden, "  value {} key {}", hex(value), hex(key)).unwrap();
        }
    }
    assert!(golden == include_str!("../golden.txt"), "the bytes are now\n{golden}");
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").unwrap();
        text
    })
}

#[test]
fn columns_are_decoded_in_the_order_asked_for_and_may_repeat() {
    let columns: Vec<ArrayRef> = every_type().into_iter().map(|(_, column)| column).collect();
    let (codec, rows) = encode(&columns, 3);
    let asked = [17, 3, 13, 3, 34];
    let back = codec.decode(rows.iter().rev(), &asked).unwrap();
    for (column, number) in back.iter().zip(asked) {
        let reversed = arrow::array::UInt32Array::from(vec![2, 1, 0]);
        assert_eq!(column, &arrow::compute::take(&columns[number], &reversed, None).unwrap());
    }
}

#[test]
fn what_lies_under_a_null_tells_no_rows_apart() {
    let nulls = vec![false, true, false].into();
    let numbers = Int64Array::new(vec![1, 2, 3].into(), Some(nulls));
    let flags = BooleanArray::new(vec![true, false, false].into(), numbers.nulls().cloned());
    let (_, rows) = encode(&[Arc::new(numbers), Arc::new(flags)], 3);
    assert_eq!(rows.get(0), rows.get(2));
    assert_ne!(rows.get(0), rows.get(1));
}

#[test]
fn nested_columns_come_back_with_their_nulls() {
    let list = ListArray::from_iter_primitive::<Float64Type, _, _>([
        Some(vec![Some(-0.0), None]),
        None,
        Some(vec![]),
    ]);
    let names: ArrayRef = Arc::new(StringArray::from(vec![Some("a"), None, Some("b")]));
    let fields = vec![
        Arc::new(Field::new("list", list.data_type().clone(), true)),
        Arc::new(Field::new("name", DataType::Utf8, true)),
    ];
    let list: ArrayRef = Arc::new(list);
    let pair: ArrayRef =
        Arc::new(StructArray::new(fields.into(), vec![list.clone(), names.clone()], None));
    let columns = [names, list, pair];
    let (codec, rows) = encode(&columns, 3);
    assert_eq!(codec.decode(rows.iter(), &[0, 1, 2]).unwrap(), columns);
}

#[test]
fn rows_without_columns_have_no_bytes() {
    let (codec, rows) = encode(&[], 4);
    assert_eq!((rows.len(), rows.bytes().len()), (4, 0));
    assert!(codec.decode(rows.iter(), &[]).unwrap().is_empty());
}

#[test]
fn no_rows_are_no_rows() {
    let columns: Vec<ArrayRef> =
        every_type().into_iter().map(|(_, column)| column.slice(0, 0)).collect();
    let (codec, rows) = encode(&columns, 0);
    assert!(rows.is_empty());
    let all: Vec<usize> = (0..columns.len()).collect();
    assert_eq!(codec.decode(rows.iter(), &all).unwrap(), columns);
}

#[test]
fn corrupt_rows_are_errors() {
    let names: ArrayRef = Arc::new(StringArray::from(vec!["left"]));
    let (codec, rows) = encode(&[names.clone(), names], 1);
    let row = rows.get(0);
    assert!(codec.decode([&row[..3]], &[0]).is_err(), "too short for the ends");
    let mut far = row.to_vec();
    far[1] = 200;
    assert!(codec.decode([&far[..]], &[0]).is_err(), "an end behind the row");
    let mut text = row.to_vec();
    text[6] = 0xff;
    assert!(codec.decode([&text[..]], &[0]).is_err(), "not UTF-8");
}

#[test]
fn wrong_columns_are_refused_with_both_types() {
    let codec = ValueCodec::new(&[DataType::Int64]).unwrap();
    let names: ArrayRef = Arc::new(StringArray::from(vec!["x"]));
    let mut out = Encoded::new();
    let error = codec.encode(&[names], 1, &mut out).unwrap_err().to_string();
    assert!(error.contains("Utf8") && error.contains("Int64"), "{error}");
    assert!(codec.encode(&[], 1, &mut out).is_err());
    let run_ends = DataType::Dictionary(Box::new(DataType::Int8), Box::new(DataType::Utf8));
    assert!(matches!(ValueCodec::new(&[run_ends]), Err(CodecError::Unsupported(_))));
    let units = DataType::Interval(IntervalUnit::DayTime);
    assert!(ValueCodec::new(&[units, DataType::Duration(TimeUnit::Second)]).is_ok());
}

type Row = (Option<i64>, Option<String>, Option<bool>, Option<f64>, Option<String>);

fn columns(rows: &[Row]) -> Vec<ArrayRef> {
    let text = StringArray::from_iter(rows.iter().map(|row| row.4.as_deref()));
    vec![
        Arc::new(Int64Array::from_iter(rows.iter().map(|row| row.0))),
        Arc::new(StringArray::from_iter(rows.iter().map(|row| row.1.as_deref()))),
        Arc::new(BooleanArray::from_iter(rows.iter().map(|row| row.2))),
        Arc::new(Float64Array::from_iter(rows.iter().map(|row| row.3))),
        cast(&text, &DataType::Utf8View).unwrap(),
    ]
}

fn a_row() -> impl Strategy<Value = Row> {
    let text = || proptest::option::of("[a-b]{0,15}");
    let floats = proptest::option::of(prop_oneof![Just(0.0), Just(-0.0), any::<f64>()]);
    (proptest::option::of(-2..3_i64), text(), any::<Option<bool>>(), floats, text())
}

proptest! {
    #[test]
    fn bytes_are_equal_exactly_when_rows_are(rows in prop::collection::vec(a_row(), 1..40)) {
        let columns = columns(&rows);
        let (codec, encoded) = encode(&columns, rows.len());
        let back = codec.decode(encoded.iter(), &[0, 1, 2, 3, 4]).unwrap();
        prop_assert_eq!(&back, &columns);
        let bits = |row: &Row| {
            (row.0, row.1.clone(), row.2, row.3.map(f64::to_bits), row.4.clone())
        };
        for (i, a) in rows.iter().enumerate() {
            for (j, b) in rows.iter().enumerate() {
                prop_assert_eq!(encoded.get(i) == encoded.get(j), bits(a) == bits(b));
            }
        }
    }

    #[test]
    fn keys_sort_as_their_rows_do(rows in prop::collection::vec(a_row(), 1..40)) {
        let columns = columns(&rows);
        let types: Vec<_> = columns.iter().map(|column| column.data_type().clone()).collect();
        let mut keys = Encoded::new();
        KeyCodec::new(&types).unwrap().encode(&columns, rows.len(), &mut keys).unwrap();
        let compare = |a: &Row, b: &Row| {
            let float = |row: &Row| row.3.map(|x| if x == 0.0 { 0.0 } else { x });
            (a.0.cmp(&b.0))
                .then_with(|| a.1.cmp(&b.1))
                .then_with(|| a.2.cmp(&b.2))
                .then_with(|| match (float(a), float(b)) {
                    (Some(a), Some(b)) => a.total_cmp(&b),
                    (a, b) => a.is_some().cmp(&b.is_some()),
                })
                .then_with(|| a.4.cmp(&b.4))
        };
        for (i, a) in rows.iter().enumerate() {
            for (j, b) in rows.iter().enumerate() {
                prop_assert_eq!(keys.get(i).cmp(keys.get(j)), compare(a, b));
            }
        }
    }
}
