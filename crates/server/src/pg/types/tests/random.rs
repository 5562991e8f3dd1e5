//! Random values, and random bytes.

use std::iter::repeat_with;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, BinaryArray, BooleanArray, Date32Array, Decimal128Array, Float32Array,
    Float64Array, Int16Array, Int32Array, Int64Array, IntervalMonthDayNanoArray, ListArray,
    StringArray, Time64MicrosecondArray, TimestampMicrosecondArray,
};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::datatypes::{Field, IntervalMonthDayNano};
use fastrand::Rng;

use super::super::time::zone::Zone;
use super::super::{Format, PgType, decode};
use super::golden::values;
use super::{OIDS, encoded};

/// How many values of a type are written and read again.
const VALUES: usize = 1_500;
/// How many times random bytes are read.
const CASES: usize = 100_000;

/// A number of random length.
fn integer(random: &mut Rng) -> i64 {
    random.i64(..) >> random.u32(0..64)
}

fn word(random: &mut Rng) -> String {
    const CHARACTERS: [char; 17] =
        ['a', '"', '\\', '{', '}', ',', ' ', '\t', '\n', '\r', 'N', 'U', 'L', 'ä', '🙂', '\'', '0'];
    let length = random.usize(0..12);
    repeat_with(|| CHARACTERS[random.usize(0..17)]).take(length).collect()
}

/// A column with one NULL in eight rows.
fn column<A: FromIterator<Option<V>>, V>(random: &mut Rng, value: impl Fn(&mut Rng) -> V) -> A {
    (0..VALUES).map(|_| (random.u8(0..8) > 0).then(|| value(random))).collect()
}

/// A column of each type.
fn columns(random: &mut Rng) -> Vec<ArrayRef> {
    let times: TimestampMicrosecondArray =
        column(random, |random| integer(random).max(i64::MIN / 2));
    let decimals: Decimal128Array =
        column(random, |random| (random.i128(..) >> random.u32(0..128)) % 10_i128.pow(38));
    vec![
        Arc::new(column::<BooleanArray, _>(random, Rng::bool)),
        Arc::new(column::<Int16Array, _>(random, |random| random.i16(..))),
        Arc::new(column::<Int32Array, _>(random, |random| integer(random) as i32)),
        Arc::new(column::<Int64Array, _>(random, integer)),
        Arc::new(column::<Float32Array, _>(random, |random| f32::from_bits(random.u32(..)))),
        Arc::new(column::<Float64Array, _>(random, |random| f64::from_bits(random.u64(..)))),
        Arc::new(column::<StringArray, _>(random, word)),
        Arc::new(column::<BinaryArray, _>(random, |random| word(random).into_bytes())),
        Arc::new(column::<Date32Array, _>(random, |random| integer(random) as i32 / 2)),
        Arc::new(column::<Time64MicrosecondArray, _>(random, |random| {
            random.i64(0..86_400_000_000)
        })),
        Arc::new(times.clone()),
        Arc::new(times.with_timezone("UTC")),
        Arc::new(column::<IntervalMonthDayNanoArray, _>(random, |random| IntervalMonthDayNano {
            months: integer(random) as i32,
            days: integer(random) as i32,
            nanoseconds: integer(random) / 1_000 * 1_000,
        })),
        Arc::new(decimals.clone().with_precision_and_scale(38, 0).unwrap()),
        Arc::new(decimals.clone().with_precision_and_scale(38, 7).unwrap()),
        Arc::new(decimals.with_precision_and_scale(38, 38).unwrap()),
    ]
}

/// The values in lists of random lengths.
fn lists(random: &mut Rng, items: &ArrayRef) -> ArrayRef {
    let mut lengths = Vec::new();
    let mut left = items.len();
    while left > 0 {
        let length = random.usize(0..5).min(left);
        lengths.push(length);
        left -= length;
    }
    let validity: Vec<bool> = lengths.iter().map(|length| *length > 0 || random.bool()).collect();
    let field = Arc::new(Field::new_list_field(items.data_type().clone(), true));
    let offsets = OffsetBuffer::from_lengths(lengths);
    Arc::new(ListArray::new(field, offsets, items.clone(), Some(NullBuffer::from(validity))))
}

/// Writes values in one format, reads them, and compares them in the other format.
fn round_trip(array: &ArrayRef, zone: Zone) {
    let texts = encoded(array, Format::Text, zone).unwrap();
    let bytes = encoded(array, Format::Binary, zone).unwrap();
    let oid = PgType::of(array.data_type()).oid();
    for (text, bytes) in texts.iter().zip(&bytes) {
        let (Some(text), Some(bytes)) = (text, bytes) else {
            assert_eq!(text, bytes);
            continue;
        };
        let shown = String::from_utf8_lossy(text);
        let of_text = decode(oid, None, Format::Text, text).unwrap().to_array().unwrap();
        let of_bytes = decode(oid, None, Format::Binary, bytes).unwrap().to_array().unwrap();
        let binary = encoded(&of_text, Format::Binary, zone).unwrap();
        // There is one NaN in text.
        if !shown.contains("NaN") {
            assert_eq!(binary[0].as_ref(), Some(bytes), "{shown}");
        }
        let again = encoded(&of_bytes, Format::Text, zone).unwrap();
        assert_eq!(again[0].as_ref(), Some(text), "{shown}");
    }
}

#[test]
fn values_are_read_as_they_were_written() {
    let mut random = Rng::with_seed(1);
    for array in columns(&mut random) {
        round_trip(&array, Zone::UTC);
        round_trip(&lists(&mut random, &array), Zone::UTC);
        for row in (0..array.len()).filter(|row| array.is_valid(*row)).take(200) {
            let value = alluvium::Value::from_array(&array, row).unwrap();
            let shown = encoded(&array.slice(row, 1), Format::Text, Zone::UTC).unwrap();
            let read = decode(0, Some(array.data_type()), Format::Text, shown[0].as_ref().unwrap())
                .unwrap();
            let is_float = array.data_type().is_floating();
            assert!(
                is_float || PgType::of(array.data_type()).modifier() > 0 || read == value,
                "{read:?} {value:?}"
            );
        }
    }
    for zone in ["Europe/Berlin", "America/New_York", "Asia/Kolkata", "Africa/Monrovia", "GMT+7:35"]
    {
        let times: TimestampMicrosecondArray =
            column(&mut random, |random| integer(random).max(i64::MIN / 2));
        let times: ArrayRef = Arc::new(times.with_timezone("UTC"));
        round_trip(&times, Zone::parse(zone).unwrap());
    }
}

/// Bytes that are like a value, or like none.
fn mutated(random: &mut Rng, value: &[u8]) -> Vec<u8> {
    let mut bytes = match random.u8(0..4) {
        0 => {
            let length = random.usize(0..40);
            repeat_with(|| random.u8(..)).take(length).collect()
        }
        _ => value.to_vec(),
    };
    for _ in 0..random.usize(0..4) {
        let place = random.usize(0..=bytes.len());
        match random.u8(0..5) {
            0 if place < bytes.len() => bytes[place] = random.u8(..),
            1 if place < bytes.len() => bytes[place] ^= 1 << random.u8(0..8),
            2 => bytes.truncate(place),
            3 if place < bytes.len() => drop(bytes.remove(place)),
            _ => bytes.insert(place, b"09+-.:eE{}[]=\",\\xNPT \0\xff"[random.usize(0..23)]),
        }
    }
    bytes
}

#[test]
fn no_bytes_make_a_reader_panic() {
    let mut random = Rng::with_seed(2);
    let values = values();
    let mut refused = 0;
    for _ in 0..CASES {
        let value = &values[random.usize(0..values.len())];
        let format = if random.bool() { Format::Text } else { Format::Binary };
        let given = if format == Format::Text { value.text.as_bytes() } else { &value.bytes };
        let bytes = mutated(&mut random, given);
        let oid = match random.u8(0..4) {
            0 => OIDS[random.usize(0..OIDS.len())].1,
            _ => super::oid(value.kind),
        };
        match decode(oid, None, format, &bytes) {
            Ok(value) => drop(encoded(&value.to_array().unwrap(), format, Zone::UTC)),
            Err(error) => {
                refused += 1;
                assert_eq!(error.code().len(), 5);
            }
        }
    }
    assert!((CASES / 10..CASES * 9 / 10).contains(&refused), "{refused}");
}
