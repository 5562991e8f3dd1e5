//! A column whose values are written.

use std::ops::Range;

use arrow::array::{Array, ArrayRef, AsArray, BinaryArray, ListArray, StringArray};
use arrow::buffer::{BooleanBuffer, NullBuffer};
use arrow::datatypes::{
    DataType, Date32Type, Decimal128Type, Decimal256Type, Float32Type, Float64Type, Int16Type,
    Int32Type, Int64Type, IntervalMonthDayNano, IntervalMonthDayNanoType, Time64MicrosecondType,
    TimestampMicrosecondType, UInt32Type, i256,
};
use bytes::{BufMut, BytesMut};

use super::kind::{Kind, Scalar};
use super::lists::MOST_DIMENSIONS;
use super::{moment, numeric};
use crate::error::{Error, Result};

/// A column, as the type of array that it is: it is looked up once for a batch.
pub(super) struct Written<'a> {
    nulls: Option<&'a NullBuffer>,
    values: Values<'a>,
}

enum Values<'a> {
    Bool(&'a BooleanBuffer),
    Bytea(&'a BinaryArray),
    Int2(&'a [i16]),
    Int4(&'a [i32]),
    Int8(&'a [i64]),
    Oid(&'a [u32]),
    Float4(&'a [f32]),
    Float8(&'a [f64]),
    Numeric(&'a [i128], i8),
    LongNumeric(&'a [i256], i8),
    Text(&'a StringArray),
    Date(&'a [i32]),
    Time(&'a [i64]),
    Timestamp(&'a [i64]),
    Interval(&'a [IntervalMonthDayNano]),
    /// The lists of each dimension, the outermost first, and their elements with the OID of these.
    Lists(Vec<&'a ListArray>, Box<Written<'a>>, u32),
}

impl<'a> Written<'a> {
    /// The column of an array that has the type of its kind.
    pub(super) fn of(array: &'a ArrayRef, kind: Kind) -> Self {
        let nulls = array.nulls();
        if !kind.is_list {
            return Self { nulls, values: Values::of(array, kind.scalar) };
        }
        let mut lists = vec![array.as_list::<i32>()];
        let mut items = lists[0].values();
        while let DataType::List(_) = items.data_type() {
            let inner = items.as_list::<i32>();
            lists.push(inner);
            items = inner.values();
        }
        let elements = Self { nulls: items.nulls(), values: Values::of(items, kind.scalar) };
        Self { nulls, values: Values::Lists(lists, Box::new(elements), kind.scalar.oid()) }
    }

    fn is_null(&self, row: usize) -> bool {
        self.nulls.is_some_and(|nulls| nulls.is_null(row))
    }

    /// Writes the length of a value and the value, which may be NULL.
    pub(super) fn put_field(&self, row: usize, out: &mut BytesMut) -> Result<()> {
        if self.is_null(row) {
            out.put_i32(-1);
            return Ok(());
        }
        let start = out.len();
        out.put_i32(0);
        self.put_value(row, out)?;
        let length = i32::try_from(out.len() - start - 4)
            .map_err(|_| Error::value("a value is larger than a message"))?;
        out[start..start + 4].copy_from_slice(&length.to_be_bytes());
        Ok(())
    }

    fn put_value(&self, row: usize, out: &mut BytesMut) -> Result<()> {
        let too_early = || Error::value("a date or a timestamp is earlier than the first there is");
        match &self.values {
            Values::Bool(values) => out.put_u8(values.value(row).into()),
            Values::Bytea(values) => out.put_slice(values.value(row)),
            Values::Int2(values) => out.put_i16(values[row]),
            Values::Int4(values) => out.put_i32(values[row]),
            Values::Int8(values) | Values::Time(values) => out.put_i64(values[row]),
            Values::Oid(values) => out.put_u32(values[row]),
            Values::Float4(values) => out.put_f32(values[row]),
            Values::Float8(values) => out.put_f64(values[row]),
            Values::Numeric(values, scale) => numeric::write(values[row], *scale, out),
            Values::LongNumeric(values, scale) => numeric::write(values[row], *scale, out),
            Values::Text(values) => out.put_slice(values.value(row).as_bytes()),
            Values::Date(values) => {
                out.put_i32(moment::date_from_1970(values[row]).ok_or_else(too_early)?);
            }
            Values::Timestamp(values) => {
                out.put_i64(moment::timestamp_from_1970(values[row]).ok_or_else(too_early)?);
            }
            Values::Interval(values) => {
                let IntervalMonthDayNano { months, days, nanoseconds } = values[row];
                if nanoseconds % 1_000 != 0 {
                    return Err(Error::value("an interval cannot have parts of a microsecond"));
                }
                out.put_i64(nanoseconds / 1_000);
                out.put_i32(days);
                out.put_i32(months);
            }
            Values::Lists(lists, elements, oid) => put_list(lists, elements, *oid, row, out)?,
        }
        Ok(())
    }
}

impl<'a> Values<'a> {
    fn of(array: &'a ArrayRef, scalar: Scalar) -> Self {
        match scalar {
            Scalar::Bool => Self::Bool(array.as_boolean().values()),
            Scalar::Bytea => Self::Bytea(array.as_binary()),
            Scalar::Int2 => Self::Int2(array.as_primitive::<Int16Type>().values()),
            Scalar::Int4 => Self::Int4(array.as_primitive::<Int32Type>().values()),
            Scalar::Int8 => Self::Int8(array.as_primitive::<Int64Type>().values()),
            Scalar::Oid => Self::Oid(array.as_primitive::<UInt32Type>().values()),
            Scalar::Float4 => Self::Float4(array.as_primitive::<Float32Type>().values()),
            Scalar::Float8 => Self::Float8(array.as_primitive::<Float64Type>().values()),
            Scalar::Numeric(_, scale) => {
                Self::Numeric(array.as_primitive::<Decimal128Type>().values(), scale)
            }
            Scalar::LongNumeric(_, scale) => {
                Self::LongNumeric(array.as_primitive::<Decimal256Type>().values(), scale)
            }
            Scalar::Text => Self::Text(array.as_string()),
            Scalar::Date => Self::Date(array.as_primitive::<Date32Type>().values()),
            Scalar::Time => Self::Time(array.as_primitive::<Time64MicrosecondType>().values()),
            Scalar::Timestamp | Scalar::Timestamptz => {
                Self::Timestamp(array.as_primitive::<TimestampMicrosecondType>().values())
            }
            Scalar::Interval => {
                Self::Interval(array.as_primitive::<IntervalMonthDayNanoType>().values())
            }
        }
    }
}

/// Writes a list as an array. Its inner lists have to be all as long.
fn put_list(
    lists: &[&ListArray],
    elements: &Written<'_>,
    oid: u32,
    row: usize,
    out: &mut BytesMut,
) -> Result<()> {
    let mut lengths = [0_i32; MOST_DIMENSIONS];
    let Some(lengths) = lengths.get_mut(..lists.len()) else {
        return Err(Error::value("an array has at most six dimensions"));
    };
    let mut rows: Range<usize> = row..row + 1;
    for (lists, length) in lists.iter().zip(lengths.iter_mut()) {
        if rows.is_empty() {
            break;
        }
        *length = lists.value_length(rows.start);
        let differs = |row: usize| lists.is_null(row) || lists.value_length(row) != *length;
        if rows.clone().any(differs) {
            return Err(Error::value("the inner lists of a value are not all as long"));
        }
        // Offsets are not negative.
        let offsets = lists.value_offsets();
        rows = offsets[rows.start] as usize..offsets[rows.end] as usize;
    }
    // An array without elements has no dimensions.
    let lengths = if rows.is_empty() { &[] } else { &*lengths };
    out.put_i32(lengths.len() as i32);
    out.put_i32(rows.clone().any(|row| elements.is_null(row)).into());
    out.put_u32(oid);
    for length in lengths {
        out.put_i32(*length);
        out.put_i32(1);
    }
    rows.into_iter().try_for_each(|row| elements.put_field(row, out))
}
