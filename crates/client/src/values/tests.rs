//! Values that come back as they went, and bytes that are none.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, BinaryArray, BooleanArray, Date32Array, Decimal128Array, Float32Array, Float64Array,
    Int16Array, Int32Array, Int64Array, IntervalMonthDayNanoArray, ListArray, RecordBatch,
    StringArray, Time64MicrosecondArray, TimestampMicrosecondArray, UInt32Array,
};
use arrow::buffer::OffsetBuffer;
use arrow::datatypes::{Field, IntervalMonthDayNano};
use bytes::BytesMut;
use tokio_postgres::types::Type;

use super::column::Column;
use super::{Kind, Rows, Writer};

/// A type with a modifier, and an array of it.
fn arrays(random: &mut fastrand::Rng, count: usize) -> Vec<(Type, i32, ArrayRef)> {
    let mut values = |make: &mut dyn FnMut(&mut fastrand::Rng) -> i64| -> Vec<Option<i64>> {
        (0..count).map(|_| (random.u8(..) > 40).then(|| make(random))).collect()
    };
    let numbers = values(&mut |random| random.i64(..) >> random.u32(..64));
    let texts = numbers.iter().map(|number| number.map(|number| format!("ä{number}")));
    let texts: Vec<_> = texts.collect();
    let map = |of: fn(i64) -> i64| numbers.iter().map(move |number| number.map(of));
    let decimals = map(|number| number).map(|number| number.map(i128::from));
    let decimals = Decimal128Array::from_iter(decimals).with_precision_and_scale(30, 7);
    let interval = |number: i64| IntervalMonthDayNano {
        months: number as i32,
        days: (number >> 32) as i32,
        nanoseconds: number / 1_000 * 1_000,
    };
    vec![
        (Type::BOOL, -1, Arc::new(BooleanArray::from_iter(map(|n| n).map(|n| n.map(|n| n > 0))))),
        (Type::INT2, -1, Arc::new(Int16Array::from_iter(map(|n| n).map(|n| n.map(|n| n as i16))))),
        (Type::INT4, -1, Arc::new(Int32Array::from_iter(map(|n| n).map(|n| n.map(|n| n as i32))))),
        (Type::INT8, -1, Arc::new(Int64Array::from_iter(map(|n| n)))),
        (Type::OID, -1, Arc::new(UInt32Array::from_iter(map(|n| n).map(|n| n.map(|n| n as u32))))),
        (
            Type::FLOAT4,
            -1,
            Arc::new(Float32Array::from_iter(map(|n| n).map(|n| n.map(|n| n as f32)))),
        ),
        (
            Type::FLOAT8,
            -1,
            Arc::new(Float64Array::from_iter(map(|n| n).map(|n| n.map(|n| n as f64)))),
        ),
        (Type::NUMERIC, (30 << 16 | 7) + 4, Arc::new(decimals.expect("digits"))),
        (Type::TEXT, -1, Arc::new(StringArray::from_iter(texts.iter().map(Option::as_deref)))),
        (
            Type::BYTEA,
            -1,
            Arc::new(BinaryArray::from_iter(
                texts.iter().map(|text| text.as_ref().map(String::as_bytes)),
            )),
        ),
        (
            Type::DATE,
            -1,
            Arc::new(Date32Array::from_iter(map(|n| n % 4_000_000).map(|n| n.map(|n| n as i32)))),
        ),
        (
            Type::TIME,
            -1,
            Arc::new(Time64MicrosecondArray::from_iter(map(|n| n.rem_euclid(86_400_000_000)))),
        ),
        (Type::TIMESTAMP, -1, Arc::new(TimestampMicrosecondArray::from_iter(map(|n| n >> 3)))),
        (
            Type::INTERVAL,
            -1,
            Arc::new(IntervalMonthDayNanoArray::from_iter(map(|n| n).map(|n| n.map(interval)))),
        ),
    ]
}

/// The fields of a row of COPY, and what comes after it.
fn fields(bytes: &[u8]) -> (Vec<Option<&[u8]>>, &[u8]) {
    let count = i16::from_be_bytes([bytes[0], bytes[1]]);
    let mut rest = &bytes[2..];
    let fields = (0..count).map(|_| {
        let (length, after) = rest.split_first_chunk::<4>().expect("a length");
        match i32::from_be_bytes(*length) {
            -1 => {
                rest = after;
                None
            }
            length => {
                let (value, after) = after.split_at(length as usize);
                rest = after;
                Some(value)
            }
        }
    });
    (fields.collect(), rest)
}

/// What is read of what is written.
fn returned(columns: &[(String, Kind)], batch: &RecordBatch) -> RecordBatch {
    let mut out = BytesMut::new();
    Writer::new(columns.to_vec()).write(batch, &mut out).expect("rows");
    let mut rows = Rows::new(columns.to_vec());
    let mut rest = &out[..];
    while !rest.is_empty() {
        let (row, after) = fields(rest);
        for (column, value) in row.into_iter().enumerate() {
            rows.append(column, value).expect("a value");
        }
        rows.end_row();
        rest = after;
    }
    rows.take().expect("a batch")
}

#[test]
fn values_come_back_as_they_went() {
    let mut random = fastrand::Rng::with_seed(7);
    for _ in 0..50 {
        let arrays = arrays(&mut random, 100);
        let kinds = arrays.iter().enumerate().map(|(number, (of, modifier, _))| {
            (format!("c{number}"), Kind::of(of, *modifier, None).expect("a kind"))
        });
        let kinds: Vec<_> = kinds.collect();
        let columns = arrays.iter().enumerate();
        let columns = columns.map(|(number, (_, _, array))| (format!("c{number}"), array.clone()));
        let batch = RecordBatch::try_from_iter_with_nullable(
            columns.map(|(name, array)| (name, array, true)),
        )
        .expect("a batch");
        let batch = batch.slice(random.usize(..50), 50);
        assert_eq!(returned(&kinds, &batch).columns(), batch.columns());
    }
}

#[test]
fn lists_of_lists_come_back_as_they_went() {
    let kinds = vec![("l".to_owned(), Kind::of(&Type::INT8_ARRAY, -1, None).expect("a kind"))];
    let items: ArrayRef =
        Arc::new(Int64Array::from_iter((0..12).map(|number| (number % 5 != 0).then_some(number))));
    let list = |offsets: Vec<usize>, items: ArrayRef| -> ArrayRef {
        let field = Arc::new(Field::new_list_field(items.data_type().clone(), true));
        Arc::new(ListArray::new(field, OffsetBuffer::from_lengths(offsets), items, None))
    };
    let flat = list(vec![5, 0, 7], items.clone());
    let nested = list(vec![2, 0, 2], list(vec![3; 4], items.clone()));
    for lists in [flat, nested] {
        let batch = RecordBatch::try_from_iter([("l", lists)]).expect("a batch");
        assert_eq!(returned(&kinds, &batch).columns(), batch.columns());
    }
    // Inner lists of several lengths are no array.
    let ragged = list(vec![2], list(vec![5, 7], items));
    let batch = RecordBatch::try_from_iter([("l", ragged)]).expect("a batch");
    let error = Writer::new(kinds).write(&batch, &mut BytesMut::new()).expect_err("a value");
    assert!(error.to_string().contains("as long"), "{error}");
}

#[test]
fn bytes_that_are_no_value_are_errors() {
    let mut random = fastrand::Rng::with_seed(9);
    let kinds = [
        (Type::BOOL, -1),
        (Type::INT8, -1),
        (Type::NUMERIC, (30 << 16 | 7) + 4),
        (Type::NUMERIC, (60 << 16 | 20) + 4),
        (Type::TEXT, -1),
        (Type::DATE, -1),
        (Type::TIMESTAMPTZ, -1),
        (Type::INTERVAL, -1),
        (Type::INT8_ARRAY, -1),
        (Type::TEXT_ARRAY, -1),
        (Type::NUMERIC_ARRAY, (10 << 16 | 2) + 4),
        (Type::INT2_VECTOR, -1),
    ];
    for (of, modifier) in kinds {
        let kind = Kind::of(&of, modifier, None).expect("a kind");
        for _ in 0..20_000 {
            let mut bytes: Vec<u8> = (0..random.usize(..48)).map(|_| random.u8(..)).collect();
            // Numbers that are small are more often sensible.
            for byte in &mut bytes {
                if random.u8(..) < 190 {
                    *byte &= random.u8(..) & 3;
                }
            }
            let mut column = Column::new(kind);
            if column.append(&bytes).is_ok() {
                column.append_null();
                assert_eq!(column.finish().expect("an array").len(), 2);
            }
        }
    }
}
