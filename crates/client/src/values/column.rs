//! A column that takes values from the server.

use std::str;
use std::sync::Arc;

use arrow::array::{
    ArrayRef, BinaryBuilder, BooleanBuilder, Date32Builder, Decimal128Builder, Decimal256Builder,
    Float32Builder, Float64Builder, Int16Builder, Int32Builder, Int64Builder,
    IntervalMonthDayNanoBuilder, StringBuilder, Time64MicrosecondBuilder,
    TimestampMicrosecondBuilder, UInt32Builder,
};
use arrow::datatypes::IntervalMonthDayNano;

use super::kind::{Kind, Scalar};
use super::lists::Lists;
use super::malformed::{fixed, malformed};
use super::{moment, numeric};
use crate::error::{Error, Result};

/// The values of a column that were read.
pub(super) enum Column {
    Bool(BooleanBuilder),
    Bytea(BinaryBuilder),
    Int2(Int16Builder),
    Int4(Int32Builder),
    Int8(Int64Builder),
    Oid(UInt32Builder),
    Float4(Float32Builder),
    Float8(Float64Builder),
    Numeric(Decimal128Builder, i8),
    LongNumeric(Decimal256Builder, i8),
    Text(StringBuilder),
    Date(Date32Builder),
    Time(Time64MicrosecondBuilder),
    /// Timestamps of either kind.
    Timestamp(TimestampMicrosecondBuilder),
    Interval(IntervalMonthDayNanoBuilder),
    List(Box<Lists>),
}

impl Column {
    /// A column of a kind, without values.
    pub(super) fn new(kind: Kind) -> Self {
        match kind.is_list {
            true => Self::List(Box::new(Lists::new(kind.scalar))),
            false => Self::of(kind.scalar),
        }
    }

    /// A column of single values, without any.
    pub(super) fn of(scalar: Scalar) -> Self {
        let data_type = scalar.data_type();
        match scalar {
            Scalar::Bool => Self::Bool(BooleanBuilder::new()),
            Scalar::Bytea => Self::Bytea(BinaryBuilder::new()),
            Scalar::Int2 => Self::Int2(Int16Builder::new()),
            Scalar::Int4 => Self::Int4(Int32Builder::new()),
            Scalar::Int8 => Self::Int8(Int64Builder::new()),
            Scalar::Oid => Self::Oid(UInt32Builder::new()),
            Scalar::Float4 => Self::Float4(Float32Builder::new()),
            Scalar::Float8 => Self::Float8(Float64Builder::new()),
            Scalar::Numeric(_, scale) => {
                Self::Numeric(Decimal128Builder::new().with_data_type(data_type), scale)
            }
            Scalar::LongNumeric(_, scale) => {
                Self::LongNumeric(Decimal256Builder::new().with_data_type(data_type), scale)
            }
            Scalar::Text => Self::Text(StringBuilder::new()),
            Scalar::Date => Self::Date(Date32Builder::new()),
            Scalar::Time => Self::Time(Time64MicrosecondBuilder::new()),
            Scalar::Timestamp | Scalar::Timestamptz => {
                Self::Timestamp(TimestampMicrosecondBuilder::new().with_data_type(data_type))
            }
            Scalar::Interval => Self::Interval(IntervalMonthDayNanoBuilder::new()),
        }
    }

    /// Adds a value in its binary form.
    ///
    /// # Errors
    ///
    /// If it is none of the column's type. The column may then have a part of it, and is dropped.
    pub(super) fn append(&mut self, bytes: &[u8]) -> Result<()> {
        match self {
            Self::Bool(builder) => builder.append_value(fixed::<1>(bytes)? != [0]),
            Self::Bytea(builder) => builder.append_value(bytes),
            Self::Int2(builder) => builder.append_value(i16::from_be_bytes(fixed(bytes)?)),
            Self::Int4(builder) => builder.append_value(i32::from_be_bytes(fixed(bytes)?)),
            Self::Int8(builder) => builder.append_value(i64::from_be_bytes(fixed(bytes)?)),
            Self::Oid(builder) => builder.append_value(u32::from_be_bytes(fixed(bytes)?)),
            Self::Float4(builder) => builder.append_value(f32::from_be_bytes(fixed(bytes)?)),
            Self::Float8(builder) => builder.append_value(f64::from_be_bytes(fixed(bytes)?)),
            Self::Numeric(builder, scale) => builder.append_value(numeric::read(bytes, *scale)?),
            Self::LongNumeric(builder, scale) => {
                builder.append_value(numeric::read(bytes, *scale)?);
            }
            Self::Text(builder) => builder.append_value(text(bytes)?),
            Self::Date(builder) => {
                builder.append_value(moment::date_from_2000(i32::from_be_bytes(fixed(bytes)?))?);
            }
            Self::Time(builder) => builder.append_value(i64::from_be_bytes(fixed(bytes)?)),
            Self::Timestamp(builder) => {
                let time = i64::from_be_bytes(fixed(bytes)?);
                builder.append_value(moment::timestamp_from_2000(time)?);
            }
            Self::Interval(builder) => builder.append_value(interval(bytes)?),
            Self::List(lists) => lists.append(bytes)?,
        }
        Ok(())
    }

    /// Adds NULL.
    pub(super) fn append_null(&mut self) {
        match self {
            Self::Bool(builder) => builder.append_null(),
            Self::Bytea(builder) => builder.append_null(),
            Self::Int2(builder) => builder.append_null(),
            Self::Int4(builder) => builder.append_null(),
            Self::Int8(builder) => builder.append_null(),
            Self::Oid(builder) => builder.append_null(),
            Self::Float4(builder) => builder.append_null(),
            Self::Float8(builder) => builder.append_null(),
            Self::Numeric(builder, _) => builder.append_null(),
            Self::LongNumeric(builder, _) => builder.append_null(),
            Self::Text(builder) => builder.append_null(),
            Self::Date(builder) => builder.append_null(),
            Self::Time(builder) => builder.append_null(),
            Self::Timestamp(builder) => builder.append_null(),
            Self::Interval(builder) => builder.append_null(),
            Self::List(lists) => lists.append_null(),
        }
    }

    /// Takes the values.
    ///
    /// # Errors
    ///
    /// If lists have more items than an array.
    pub(super) fn finish(&mut self) -> Result<ArrayRef> {
        Ok(match self {
            Self::Bool(builder) => Arc::new(builder.finish()),
            Self::Bytea(builder) => Arc::new(builder.finish()),
            Self::Int2(builder) => Arc::new(builder.finish()),
            Self::Int4(builder) => Arc::new(builder.finish()),
            Self::Int8(builder) => Arc::new(builder.finish()),
            Self::Oid(builder) => Arc::new(builder.finish()),
            Self::Float4(builder) => Arc::new(builder.finish()),
            Self::Float8(builder) => Arc::new(builder.finish()),
            Self::Numeric(builder, _) => Arc::new(builder.finish()),
            Self::LongNumeric(builder, _) => Arc::new(builder.finish()),
            Self::Text(builder) => Arc::new(builder.finish()),
            Self::Date(builder) => Arc::new(builder.finish()),
            Self::Time(builder) => Arc::new(builder.finish()),
            Self::Timestamp(builder) => Arc::new(builder.finish()),
            Self::Interval(builder) => Arc::new(builder.finish()),
            Self::List(lists) => lists.finish()?,
        })
    }
}

fn text(bytes: &[u8]) -> Result<&str> {
    str::from_utf8(bytes).map_err(|_| malformed())
}

/// Its microseconds, days and months.
fn interval(bytes: &[u8]) -> Result<IntervalMonthDayNano> {
    let (time, rest) = bytes.split_at_checked(8).ok_or_else(malformed)?;
    let (days, months) = rest.split_at_checked(4).ok_or_else(malformed)?;
    let nanoseconds = i64::from_be_bytes(fixed(time)?).checked_mul(1_000).ok_or_else(|| {
        Error::value("an INTERVAL of more than 292 years in hours and seconds cannot be read")
    })?;
    Ok(IntervalMonthDayNano {
        months: i32::from_be_bytes(fixed(months)?),
        days: i32::from_be_bytes(fixed(days)?),
        nanoseconds,
    })
}
