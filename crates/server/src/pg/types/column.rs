//! A column of a batch whose values are written.

use arrow::array::{
    Array, ArrayRef, AsArray, BinaryArray, BinaryViewArray, LargeBinaryArray, LargeStringArray,
    StringArray, StringViewArray,
};
use arrow::buffer::{BooleanBuffer, NullBuffer};
use arrow::datatypes::{
    DataType, Date32Type, Decimal128Type, Decimal256Type, Float32Type, Float64Type, Int16Type,
    Int32Type, Int64Type, IntervalMonthDayNano, IntervalMonthDayNanoType, Time64MicrosecondType,
    TimestampMicrosecondType, UInt32Type, UInt64Type, i256,
};
use bytes::{BufMut, BytesMut};

use super::arrays::list::Lists;
use super::bytea;
use super::format::Format;
use super::numbers::numeric::Magnitude;
use super::numbers::{number, numeric};
use super::rejected::{Rejected, Result, code};
use super::time::zone::Zone;
use super::time::{interval, moment};

/// A column, as the type of array that it is: it is looked up once for a batch.
pub(super) struct Column<'a> {
    nulls: Option<&'a NullBuffer>,
    pub(super) values: Values<'a>,
}

/// The values of a column.
pub(super) enum Values<'a> {
    Null,
    Boolean(&'a BooleanBuffer),
    Int2(&'a [i16]),
    Int4(&'a [i32]),
    Int8(&'a [i64]),
    Oid(&'a [u32]),
    Unsigned(&'a [u64]),
    Float4(&'a [f32]),
    Float8(&'a [f64]),
    Decimal(&'a [i128], i8),
    LongDecimal(&'a [i256], i8),
    Text(&'a StringArray),
    LargeText(&'a LargeStringArray),
    TextView(&'a StringViewArray),
    Bytes(&'a BinaryArray),
    LargeBytes(&'a LargeBinaryArray),
    BytesView(&'a BinaryViewArray),
    Date(&'a [i32]),
    Time(&'a [i64]),
    Timestamp(&'a [i64]),
    Instant(&'a [i64], Zone),
    Interval(&'a [IntervalMonthDayNano]),
    List(Box<Lists<'a>>),
    Vector(Box<Lists<'a>>),
}

impl<'a> Column<'a> {
    /// The column of an array that [`plain`](super::plain::plain) has made.
    ///
    /// # Errors
    ///
    /// If values of its type cannot be written.
    pub(super) fn of(array: &'a ArrayRef, zone: Zone) -> Result<Self> {
        let values = match array.data_type() {
            DataType::Null => Values::Null,
            DataType::Boolean => Values::Boolean(array.as_boolean().values()),
            DataType::Int16 => Values::Int2(array.as_primitive::<Int16Type>().values()),
            DataType::Int32 => Values::Int4(array.as_primitive::<Int32Type>().values()),
            DataType::Int64 => Values::Int8(array.as_primitive::<Int64Type>().values()),
            DataType::UInt64 => Values::Unsigned(array.as_primitive::<UInt64Type>().values()),
            DataType::UInt32 => Values::Oid(array.as_primitive::<UInt32Type>().values()),
            DataType::Float32 => Values::Float4(array.as_primitive::<Float32Type>().values()),
            DataType::Float64 => Values::Float8(array.as_primitive::<Float64Type>().values()),
            DataType::Decimal128(_, scale) => {
                Values::Decimal(array.as_primitive::<Decimal128Type>().values(), *scale)
            }
            DataType::Decimal256(_, scale) => {
                Values::LongDecimal(array.as_primitive::<Decimal256Type>().values(), *scale)
            }
            DataType::Utf8 => Values::Text(array.as_string()),
            DataType::LargeUtf8 => Values::LargeText(array.as_string()),
            DataType::Utf8View => Values::TextView(array.as_string_view()),
            DataType::Binary => Values::Bytes(array.as_binary()),
            DataType::LargeBinary => Values::LargeBytes(array.as_binary()),
            DataType::BinaryView => Values::BytesView(array.as_binary_view()),
            DataType::Date32 => Values::Date(array.as_primitive::<Date32Type>().values()),
            DataType::Time64(_) => {
                Values::Time(array.as_primitive::<Time64MicrosecondType>().values())
            }
            DataType::Timestamp(_, of) => {
                let times = array.as_primitive::<TimestampMicrosecondType>().values();
                if of.is_some() { Values::Instant(times, zone) } else { Values::Timestamp(times) }
            }
            DataType::Interval(_) => {
                Values::Interval(array.as_primitive::<IntervalMonthDayNanoType>().values())
            }
            DataType::List(_) => Values::List(Box::new(Lists::of(array.as_list(), zone)?)),
            other => {
                let kind = alluvium::unstable::type_name(other);
                let message = format!("values of type {kind} cannot be sent: CAST them to TEXT");
                return Err(Rejected::new(code::UNSUPPORTED, message));
            }
        };
        Ok(Self { nulls: array.nulls(), values })
    }

    /// The column of an array of lists that are vectors.
    ///
    /// # Errors
    ///
    /// As [`Column::of`].
    pub(super) fn vector(array: &'a ArrayRef, zone: Zone) -> Result<Self> {
        let Self { nulls, values } = Self::of(array, zone)?;
        let values = match values {
            Values::List(lists) => Values::Vector(lists),
            other => other,
        };
        Ok(Self { nulls, values })
    }

    /// Whether a row is NULL.
    pub(super) fn is_null(&self, row: usize) -> bool {
        matches!(self.values, Values::Null) || self.nulls.is_some_and(|nulls| nulls.is_null(row))
    }

    /// Whether its texts can have bytes that mean something to those who read several in a line.
    pub(super) fn is_plain_text(&self) -> bool {
        use Values::{
            Boolean, Decimal, Float4, Float8, Int2, Int4, Int8, LongDecimal, Oid, Unsigned,
        };
        matches!(
            self.values,
            Boolean(_)
                | Int2(_)
                | Int4(_)
                | Int8(_)
                | Oid(_)
                | Unsigned(_)
                | Float4(_)
                | Float8(_)
                | Decimal(..)
                | LongDecimal(..)
        )
    }

    /// Writes the length and the value of a row, which may be NULL.
    pub(super) fn put_field(&self, row: usize, format: Format, out: &mut BytesMut) -> Result<()> {
        if self.is_null(row) {
            out.put_i32(-1);
            return Ok(());
        }
        if format == Format::Binary {
            match &self.values {
                Values::Boolean(values) => return put_fixed([u8::from(values.value(row))], out),
                Values::Int2(values) => return put_fixed(values[row].to_be_bytes(), out),
                Values::Int4(values) => return put_fixed(values[row].to_be_bytes(), out),
                Values::Int8(values) => return put_fixed(values[row].to_be_bytes(), out),
                Values::Oid(values) => return put_fixed(values[row].to_be_bytes(), out),
                Values::Float4(values) => return put_fixed(values[row].to_be_bytes(), out),
                Values::Float8(values) => return put_fixed(values[row].to_be_bytes(), out),
                Values::Date(values) => {
                    return put_fixed(moment::date_from_1970(values[row])?.to_be_bytes(), out);
                }
                Values::Time(values) => return put_fixed(values[row].to_be_bytes(), out),
                Values::Timestamp(values) | Values::Instant(values, _) => {
                    return put_fixed(moment::timestamp_from_1970(values[row])?.to_be_bytes(), out);
                }
                _ => (),
            }
        }
        let start = out.len();
        out.put_i32(0);
        match format {
            Format::Text => self.put_text(row, out)?,
            Format::Binary => self.put_binary(row, out)?,
        }
        let length = i32::try_from(out.len() - start - 4).map_err(|_| Rejected::too_large())?;
        out[start..start + 4].copy_from_slice(&length.to_be_bytes());
        Ok(())
    }

    /// Writes the text of a row that is not NULL.
    pub(super) fn put_text(&self, row: usize, out: &mut BytesMut) -> Result<()> {
        match &self.values {
            Values::Null => (),
            Values::Boolean(values) => out.put_u8(if values.value(row) { b't' } else { b'f' }),
            Values::Int2(values) => number::put_integer(i64::from(values[row]), out),
            Values::Int4(values) => number::put_integer(i64::from(values[row]), out),
            Values::Int8(values) => number::put_integer(values[row], out),
            Values::Oid(values) => number::put_integer(i64::from(values[row]), out),
            Values::Unsigned(values) => number::put_unsigned(values[row], out),
            Values::Float4(values) => number::put_float4(values[row], out),
            Values::Float8(values) => number::put_float8(values[row], out),
            Values::Decimal(values, scale) => {
                numeric::put_text(Magnitude::of(values[row]), *scale, out);
            }
            Values::LongDecimal(values, scale) => {
                numeric::put_text(Magnitude::of_long(values[row]), *scale, out);
            }
            Values::Text(values) => out.put_slice(values.value(row).as_bytes()),
            Values::LargeText(values) => put_large(values.value(row).as_bytes(), out)?,
            Values::TextView(values) => put_large(values.value(row).as_bytes(), out)?,
            Values::Bytes(values) => bytea::put(values.value(row), out)?,
            Values::LargeBytes(values) => bytea::put(values.value(row), out)?,
            Values::BytesView(values) => bytea::put(values.value(row), out)?,
            Values::Date(values) => moment::put_date(values[row], out),
            Values::Time(values) => moment::put_time(values[row], out)?,
            Values::Timestamp(values) => moment::put_timestamp(values[row], out),
            Values::Instant(values, zone) => moment::put_instant(values[row], *zone, out),
            Values::Interval(values) => interval::put_text(values[row], out),
            Values::List(lists) => lists.put_text(row, out)?,
            Values::Vector(lists) => lists.put_vector_text(row, out)?,
        }
        Ok(())
    }

    /// Writes the bytes of a row that is not NULL, of a type whose values differ in size.
    fn put_binary(&self, row: usize, out: &mut BytesMut) -> Result<()> {
        match &self.values {
            // Values of fixed size are written together with their length, by `put_field`.
            Values::Null
            | Values::Boolean(_)
            | Values::Int2(_)
            | Values::Int4(_)
            | Values::Int8(_)
            | Values::Oid(_)
            | Values::Float4(_)
            | Values::Float8(_)
            | Values::Date(_)
            | Values::Time(_)
            | Values::Timestamp(_)
            | Values::Instant(..) => (),
            Values::Unsigned(values) => {
                numeric::put_binary(Magnitude::of(i128::from(values[row])), 0, out);
            }
            Values::Decimal(values, scale) => {
                numeric::put_binary(Magnitude::of(values[row]), *scale, out);
            }
            Values::LongDecimal(values, scale) => {
                numeric::put_binary(Magnitude::of_long(values[row]), *scale, out);
            }
            Values::Text(values) => out.put_slice(values.value(row).as_bytes()),
            Values::LargeText(values) => put_large(values.value(row).as_bytes(), out)?,
            Values::TextView(values) => put_large(values.value(row).as_bytes(), out)?,
            Values::Bytes(values) => out.put_slice(values.value(row)),
            Values::LargeBytes(values) => put_large(values.value(row), out)?,
            Values::BytesView(values) => put_large(values.value(row), out)?,
            Values::Interval(values) => interval::put_binary(values[row], out),
            Values::List(lists) => lists.put_binary(row, out)?,
            Values::Vector(lists) => lists.put_vector_binary(row, out)?,
        }
        Ok(())
    }
}

/// Writes the length of bytes, and the bytes.
fn put_fixed<const N: usize>(bytes: [u8; N], out: &mut BytesMut) -> Result<()> {
    let mut field = [0; 12];
    field[..4].copy_from_slice(&(N as i32).to_be_bytes());
    field[4..4 + N].copy_from_slice(&bytes);
    out.extend_from_slice(&field[..4 + N]);
    Ok(())
}

/// Writes bytes that may be more than a message has; those are not even copied.
fn put_large(bytes: &[u8], out: &mut BytesMut) -> Result<()> {
    if i32::try_from(bytes.len()).is_err() {
        return Err(Rejected::too_large());
    }
    out.put_slice(bytes);
    Ok(())
}
