//! Deltas between processes.
//!
//! A header of six little-endian `u64` (the number of rows, the bytes of each of the three parts
//! that follow, whether there is one time for all rows, whether there are weights), then, each
//! padded to eight bytes: the columns (name, type, whether NULL is allowed), the rows as
//! [`ValueCodec`] encodes them after their ends, the times as timely encodes vectors; then the
//! weights. Metadata of the schema is dropped.
//!
//! Both ends run the same program, so there is no version, and bytes that do not fit are a broken
//! invariant rather than an error.

use std::io::Write;
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Schema};
use timely::ExchangeData;
use timely::bytes::arc::Bytes;
use timely::dataflow::channels::ContainerBytes;

use super::{Delta, Times, batch};
use crate::rows::codec::{Encoded, ValueCodec};

const WORD: usize = size_of::<u64>();
const HEADER: usize = 6 * WORD;

impl<T: ExchangeData + Clone> ContainerBytes for Delta<T> {
    fn from_bytes(mut bytes: Bytes) -> Self {
        let header = bytes.extract_to(HEADER);
        let [rows, schema_length, rows_length, times_length, one_time, has_weights] =
            [0, 1, 2, 3, 4, 5].map(|part| word(&header, part) as usize);
        let schema = Arc::new(read_schema(&bytes.extract_to(schema_length)));
        let encoded = bytes.extract_to(rows_length);
        let times = Vec::from_bytes(bytes.extract_to(times_length));

        let (ends, values) = encoded.split_at(rows * WORD);
        let starts = (0..rows).map(|row| if row == 0 { 0 } else { word(ends, row - 1) as usize });
        let values = starts.zip(0..).map(|(start, row)| &values[start..word(ends, row) as usize]);
        let columns: Vec<usize> = (0..schema.fields().len()).collect();
        let columns = codec(&schema).decode(values, &columns).expect("an encoded delta");
        let times = match one_time {
            0 => Times::Each(times.into()),
            _ => Times::Same(times.into_iter().next().expect("the one time of a delta")),
        };
        let weights = (has_weights == 1)
            .then(|| (0..rows).map(|row| word(&bytes, row) as i64).collect::<Vec<_>>().into());
        Self::new(batch(schema, columns, rows), times, weights)
    }

    fn length_in_bytes(&self) -> usize {
        encode(self).len()
    }

    fn into_bytes<W: Write>(&self, writer: &mut W) {
        writer.write_all(&encode(self)).expect("room for the length announced");
    }
}

fn encode<T: ExchangeData + Clone>(delta: &Delta<T>) -> Vec<u8> {
    let schema = delta.rows.schema();
    let mut rows = Encoded::new();
    codec(&schema)
        .encode(delta.rows.columns(), delta.len(), &mut rows)
        .expect("rows of the codec's own types, each below 4 GiB");
    let (times, one_time) = match &delta.times {
        Times::Same(time) => (vec![time.clone()], 1),
        Times::Each(times) => (times.to_vec(), 0),
    };

    let mut out = vec![0; HEADER];
    write_schema(&schema, &mut out);
    pad(&mut out);
    let rows_at = out.len();
    let mut end = 0;
    for row in rows.iter() {
        end += row.len() as u64;
        out.extend_from_slice(&end.to_le_bytes());
    }
    out.extend_from_slice(rows.bytes());
    pad(&mut out);
    let times_at = out.len();
    times.into_bytes(&mut out);
    pad(&mut out);
    let weights_at = out.len();
    for weight in delta.weights.iter().flat_map(|weights| weights.iter()) {
        out.extend_from_slice(&weight.to_le_bytes());
    }

    let header = [
        delta.len(),
        rows_at - HEADER,
        times_at - rows_at,
        weights_at - times_at,
        one_time,
        usize::from(delta.weights.is_some()),
    ];
    for (slot, value) in out.chunks_exact_mut(WORD).zip(header) {
        slot.copy_from_slice(&(value as u64).to_le_bytes());
    }
    out
}

fn codec(schema: &Schema) -> ValueCodec {
    let types: Vec<DataType> =
        schema.fields().iter().map(|field| field.data_type().clone()).collect();
    ValueCodec::new(&types).expect("columns that travel between processes have encodable types")
}

fn write_schema(schema: &Schema, out: &mut Vec<u8>) {
    out.extend_from_slice(&(schema.fields().len() as u64).to_le_bytes());
    for field in schema.fields() {
        for text in [field.name().as_str(), &field.data_type().to_string()] {
            out.extend_from_slice(&(text.len() as u64).to_le_bytes());
            out.extend_from_slice(text.as_bytes());
        }
        out.push(field.is_nullable().into());
    }
}

fn read_schema(mut bytes: &[u8]) -> Schema {
    let fields = (0..take_word(&mut bytes)).map(|_| {
        let name = take_text(&mut bytes).to_owned();
        let data_type = take_text(&mut bytes).parse().expect("the name of a type");
        let (nullable, rest) = bytes.split_first().expect("whether NULL is allowed");
        bytes = rest;
        Field::new(name, data_type, *nullable == 1)
    });
    Schema::new(fields.collect::<Vec<_>>())
}

fn take_text<'a>(bytes: &mut &'a [u8]) -> &'a str {
    let length = take_word(bytes) as usize;
    let (text, rest) = bytes.split_at(length);
    *bytes = rest;
    std::str::from_utf8(text).expect("a name")
}

fn take_word(bytes: &mut &[u8]) -> u64 {
    let value = word(bytes, 0);
    *bytes = &bytes[WORD..];
    value
}

/// The `number`-th `u64` of `bytes`.
fn word(bytes: &[u8], number: usize) -> u64 {
    let word = bytes[number * WORD..(number + 1) * WORD].try_into();
    u64::from_le_bytes(word.expect("a word has eight bytes"))
}

fn pad(bytes: &mut Vec<u8>) {
    bytes.resize(bytes.len().next_multiple_of(WORD), 0);
}

#[cfg(test)]
mod tests {
    use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray, new_null_array};
    use arrow::datatypes::{IntervalUnit, TimeUnit};
    use timely::bytes::arc::BytesMut;

    use super::*;

    fn travelled(delta: &Delta<u64>) -> Delta<u64> {
        let mut bytes = Vec::new();
        delta.into_bytes(&mut bytes);
        assert_eq!(bytes.len(), delta.length_in_bytes());
        assert_eq!(bytes.len() % WORD, 0);
        Delta::from_bytes(BytesMut::from(bytes).freeze())
    }

    #[test]
    fn a_delta_arrives_as_it_left() {
        let rows = RecordBatch::try_from_iter_with_nullable([
            ("number", Arc::new(Int64Array::from(vec![1, 2, 3])) as ArrayRef, false),
            ("name", Arc::new(StringArray::from(vec![Some("x"), None, Some("")])), true),
        ])
        .unwrap();
        let weighted = Delta::new(
            rows.clone(),
            Times::Each([7, 7, 9].into()),
            Some(vec![1, -3, i64::MAX].into()),
        );
        let plain = Delta::insertions(rows, 4);
        for delta in [&weighted, &plain, &plain.slice(3, 0), &plain.project(&[]), &Delta::default()]
        {
            let arrived = travelled(delta);
            assert_eq!(arrived.rows, delta.rows);
            assert_eq!(arrived.times, delta.times);
            assert_eq!(arrived.weights, delta.weights);
        }
    }

    #[test]
    fn every_type_is_known_at_the_other_end() {
        let units =
            [TimeUnit::Second, TimeUnit::Millisecond, TimeUnit::Microsecond, TimeUnit::Nanosecond];
        let mut types: Vec<DataType> = units.map(|unit| DataType::Timestamp(unit, None)).to_vec();
        types.extend(units.map(|unit| DataType::Timestamp(unit, Some("Europe/Rome".into()))));
        types.extend(units.map(DataType::Duration));
        types.extend([
            DataType::Null,
            DataType::Boolean,
            DataType::UInt16,
            DataType::Float32,
            DataType::Decimal128(38, -3),
            DataType::Decimal256(76, 10),
            DataType::LargeUtf8,
            DataType::Utf8View,
            DataType::BinaryView,
            DataType::LargeBinary,
            DataType::Date32,
            DataType::Date64,
            DataType::Time32(TimeUnit::Millisecond),
            DataType::Time64(TimeUnit::Nanosecond),
            DataType::Interval(IntervalUnit::YearMonth),
            DataType::Interval(IntervalUnit::DayTime),
            DataType::Interval(IntervalUnit::MonthDayNano),
            DataType::new_list(DataType::Int64, true),
        ]);
        let fields: Vec<Field> =
            types.iter().map(|data_type| Field::new("x", data_type.clone(), true)).collect();
        let columns = types.iter().map(|data_type| new_null_array(data_type, 2)).collect();
        let rows = RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).unwrap();
        assert_eq!(travelled(&Delta::insertions(rows.clone(), 1)).rows, rows);
    }
}
