//! Keys of integers, dates and times: the same bytes as arrow-row's, encoded faster.
//!
//! ```text
//! column   1 for a value, 0 for NULL | the value, big-endian, its sign bit flipped
//! ```
//!
//! All keys have one length, so that they are written and read a column at a time.

use arrow::array::{Array, ArrayData, ArrayRef, make_array};
use arrow::buffer::{BooleanBuffer, Buffer, MutableBuffer, NullBuffer};
use arrow::datatypes::DataType;

use super::{CodecError, Encoded};

/// The columns of keys of one length.
#[derive(Clone, Debug)]
pub(super) struct FixedCodec {
    columns: Vec<Fixed>,
    length: usize,
}

#[derive(Clone, Debug)]
struct Fixed {
    data_type: DataType,
    width: usize,
    is_signed: bool,
}

impl FixedCodec {
    /// `None` if one of the types is of another kind, or there are no types.
    pub(super) fn new(types: &[DataType]) -> Option<Self> {
        let columns = types.iter().map(Fixed::new).collect::<Option<Vec<_>>>()?;
        let length = columns.iter().map(|column| 1 + column.width).sum();
        (length > 0).then_some(Self { columns, length })
    }

    /// The bytes of a key.
    pub(super) fn length(&self) -> usize {
        self.length
    }

    /// Appends the keys of `rows` rows of columns of these types.
    pub(super) fn encode(&self, columns: &[ArrayRef], rows: usize, out: &mut Encoded) {
        let start = out.bytes.len();
        out.bytes.resize(start + rows * self.length, 0);
        let mut at = 0;
        for (fixed, column) in self.columns.iter().zip(columns) {
            fixed.encode(column, &mut out.bytes[start..], self.length, at);
            at += 1 + fixed.width;
        }
        out.ends.extend((1..=rows).map(|row| start + row * self.length));
    }

    /// The columns of keys.
    pub(super) fn decode<'a>(
        &self,
        keys: impl IntoIterator<Item = &'a [u8]>,
    ) -> Result<Vec<ArrayRef>, CodecError> {
        let keys: Vec<&[u8]> = keys.into_iter().collect();
        if keys.iter().any(|key| key.len() != self.length) {
            return Err(CodecError::Corrupt("a key has another length than its columns"));
        }
        let mut at = 0;
        let column = |fixed: &Fixed| {
            let from = at;
            at += 1 + fixed.width;
            fixed.decode(&keys, from)
        };
        self.columns.iter().map(column).collect()
    }
}

/// The bytes of a number of fixed width; `None` for other types.
pub(super) fn width(data_type: &DataType) -> Option<usize> {
    Fixed::new(data_type).map(|fixed| fixed.width)
}

impl Fixed {
    fn new(data_type: &DataType) -> Option<Self> {
        let (width, is_signed) = match data_type {
            DataType::Int16 => (2, true),
            DataType::Int32 | DataType::Date32 | DataType::Time32(_) => (4, true),
            DataType::Int64
            | DataType::Date64
            | DataType::Time64(_)
            | DataType::Timestamp(_, _)
            | DataType::Duration(_) => (8, true),
            DataType::UInt16 => (2, false),
            DataType::UInt32 => (4, false),
            DataType::UInt64 => (8, false),
            _ => return None,
        };
        Some(Self { data_type: data_type.clone(), width, is_signed })
    }

    fn encode(&self, column: &ArrayRef, keys: &mut [u8], length: usize, at: usize) {
        match self.width {
            2 => self.encode_width::<2>(column, keys, length, at),
            4 => self.encode_width::<4>(column, keys, length, at),
            _ => self.encode_width::<8>(column, keys, length, at),
        }
    }

    fn encode_width<const WIDTH: usize>(
        &self,
        column: &ArrayRef,
        keys: &mut [u8],
        length: usize,
        at: usize,
    ) {
        let data = column.to_data();
        let (values, _) =
            data.buffers()[0].as_slice()[data.offset() * WIDTH..].as_chunks::<WIDTH>();
        let keys = keys.chunks_exact_mut(length).zip(values);
        let write = |key: &mut [u8], value: &[u8; WIDTH]| {
            key[at] = 1;
            key[at + 1..at + 1 + WIDTH].copy_from_slice(&self.turned(*value));
        };
        match column.nulls().filter(|nulls| nulls.null_count() > 0) {
            None => keys.for_each(|(key, value)| write(key, value)),
            Some(nulls) => {
                for ((key, value), is_valid) in keys.zip(nulls) {
                    if is_valid {
                        write(key, value);
                    }
                }
            }
        }
    }

    /// Little-endian bytes as big-endian ones that sort: the sign bit of signed numbers is flipped.
    #[inline]
    fn turned<const WIDTH: usize>(&self, mut value: [u8; WIDTH]) -> [u8; WIDTH] {
        value.reverse();
        if self.is_signed {
            value[0] ^= 0x80;
        }
        value
    }

    fn decode(&self, keys: &[&[u8]], at: usize) -> Result<ArrayRef, CodecError> {
        let values = match self.width {
            2 => self.decode_width::<2>(keys, at),
            4 => self.decode_width::<4>(keys, at),
            _ => self.decode_width::<8>(keys, at),
        };
        let nulls = keys.iter().any(|key| key[at] == 0).then(|| {
            NullBuffer::new(BooleanBuffer::collect_bool(keys.len(), |row| keys[row][at] != 0))
        });
        let data = ArrayData::builder(self.data_type.clone())
            .len(keys.len())
            .add_buffer(values)
            .nulls(nulls);
        Ok(make_array(data.build()?))
    }

    fn decode_width<const WIDTH: usize>(&self, keys: &[&[u8]], at: usize) -> Buffer {
        let mut values = MutableBuffer::from_len_zeroed(keys.len() * WIDTH);
        let (slots, _) = values.as_slice_mut().as_chunks_mut::<WIDTH>();
        for (slot, key) in slots.iter_mut().zip(keys) {
            if key[at] != 0 {
                let mut value = [0; WIDTH];
                value.copy_from_slice(&key[at + 1..at + 1 + WIDTH]);
                if self.is_signed {
                    value[0] ^= 0x80;
                }
                value.reverse();
                *slot = value;
            }
        }
        values.into()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{
        Date32Array, Int16Array, Int32Array, Int64Array, TimestampMicrosecondArray, UInt64Array,
    };
    use arrow_row::{RowConverter, SortField};

    use super::*;

    fn columns() -> Vec<ArrayRef> {
        vec![
            Arc::new(Int64Array::from(vec![Some(i64::MIN), None, Some(-1), Some(0), Some(258)])),
            Arc::new(UInt64Array::from(vec![Some(u64::MAX), Some(0), None, Some(1), Some(7)])),
            Arc::new(Int32Array::from(vec![5, -5, i32::MAX, i32::MIN, 0])),
            Arc::new(Int16Array::from(vec![None, Some(-3), Some(3), None, Some(300)])),
            Arc::new(Date32Array::from(vec![1, 2, 3, 4, -5])),
            Arc::new(TimestampMicrosecondArray::from(vec![None, None, None, Some(9), Some(-9)])),
        ]
    }

    /// Bytes on disk do not depend on the encoder.
    #[test]
    fn the_bytes_are_those_of_arrow_row() {
        for columns in [columns(), columns().iter().map(|column| column.slice(1, 3)).collect()] {
            let types: Vec<DataType> =
                columns.iter().map(|column| column.data_type().clone()).collect();
            let codec = FixedCodec::new(&types).expect("all types are of fixed width");
            let mut keys = Encoded::new();
            keys.push(b"before");
            codec.encode(&columns, columns[0].len(), &mut keys);
            let fields = types.into_iter().map(SortField::new).collect();
            let converter = RowConverter::new(fields).expect("arrow-row knows the types");
            let rows = converter.convert_columns(&columns).expect("the columns are of their types");
            let expected: Vec<&[u8]> = rows.iter().map(|row| row.data()).collect();
            assert_eq!(keys.iter().skip(1).collect::<Vec<_>>(), expected);
            let back = codec.decode(keys.iter().skip(1)).expect("the bytes are right");
            assert_eq!(back, columns);
        }
    }

    #[test]
    fn keys_of_another_length_are_an_error() {
        let codec = FixedCodec::new(&[DataType::Int32]).expect("its width is fixed");
        assert!(codec.decode([&b"\x01\x80\0\0\0"[..], b"\x01\x80"]).is_err());
    }

    #[test]
    fn other_types_are_left_to_others() {
        for other in [DataType::Utf8, DataType::Float64, DataType::Decimal128(5, 2)] {
            assert!(FixedCodec::new(&[DataType::Int64, other]).is_none());
        }
        assert!(FixedCodec::new(&[]).is_none());
    }
}
