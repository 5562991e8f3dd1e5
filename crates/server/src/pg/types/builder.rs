//! Arrays that are made of fields.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, BinaryBuilder, BinaryViewBuilder, BooleanBuilder, Date32Builder, Decimal128Builder,
    Float32Builder, Float64Builder, Int8Builder, Int16Builder, Int32Builder, Int64Builder,
    IntervalMonthDayNanoBuilder, LargeBinaryBuilder, LargeStringBuilder, StringBuilder,
    StringViewBuilder, Time64MicrosecondBuilder, TimestampMicrosecondBuilder, UInt8Builder,
    UInt16Builder, UInt32Builder, UInt64Builder,
};
use arrow::datatypes::{DataType, Field as ArrowField};

use super::arrays::list_builder::ListBuilder;
use super::field::Field;
use super::numbers::decimal::{Decimal, Digits};
use super::pg_type::{Scalar, item};
use super::plain::plain_type;
use super::rejected::{Rejected, Result, code};
use super::time::zone::Zone;

/// A column that grows by a value at a time.
///
/// The texts of an array are counted in 32 bits: the caller takes the array before it holds 2 GB of them.
pub(super) enum ColumnBuilder {
    Boolean(BooleanBuilder),
    Int8(Int8Builder),
    Int16(Int16Builder),
    Int32(Int32Builder),
    Int64(Int64Builder, Scalar),
    UInt8(UInt8Builder),
    UInt16(UInt16Builder),
    UInt32(UInt32Builder),
    UInt64(UInt64Builder),
    Float32(Float32Builder),
    Float64(Float64Builder),
    Decimal(Decimal128Builder, Digits),
    /// Of a precision and scale that have room for all.
    Numbers(Vec<Option<Decimal>>),
    Text(StringBuilder, Scalar),
    LargeText(LargeStringBuilder),
    TextView(StringViewBuilder),
    Bytes(BinaryBuilder),
    LargeBytes(LargeBinaryBuilder),
    BytesView(BinaryViewBuilder),
    Date(Date32Builder),
    Time(Time64MicrosecondBuilder),
    Timestamp(TimestampMicrosecondBuilder),
    Instant(TimestampMicrosecondBuilder, Zone),
    Interval(IntervalMonthDayNanoBuilder),
    List(Box<ListBuilder>),
}

/// The type in which the values of a column are collected. Where it is another one they are cast.
pub(super) fn builder_type(data_type: &DataType) -> DataType {
    match data_type {
        DataType::Int8 | DataType::UInt8 | DataType::UInt16 | DataType::UInt32 => data_type.clone(),
        // There is no reader of so many digits.
        DataType::Decimal256(..) => DataType::Utf8,
        DataType::Dictionary(_, values) => builder_type(values),
        DataType::RunEndEncoded(_, values) => builder_type(values.data_type()),
        other => match item(other) {
            Some(item) => {
                let of_items = builder_type(item.data_type());
                match other {
                    DataType::List(_) if of_items == *item.data_type() => other.clone(),
                    _ => DataType::List(Arc::new(ArrowField::new_list_field(of_items, true))),
                }
            }
            None => plain_type(other),
        },
    }
}

impl ColumnBuilder {
    /// A column of a type that [`builder_type`] gives. Texts without a time zone are instants of `zone`.
    ///
    /// # Errors
    ///
    /// If it is another type.
    pub(super) fn new(data_type: &DataType, zone: Zone) -> Result<Self> {
        Ok(match data_type {
            DataType::Boolean => Self::Boolean(BooleanBuilder::with_capacity(0)),
            DataType::Int8 => Self::Int8(Int8Builder::with_capacity(0)),
            DataType::Int16 => Self::Int16(Int16Builder::with_capacity(0)),
            DataType::Int32 => Self::Int32(Int32Builder::with_capacity(0)),
            DataType::Int64 => Self::Int64(Int64Builder::with_capacity(0), Scalar::Int8),
            DataType::UInt8 => Self::UInt8(UInt8Builder::with_capacity(0)),
            DataType::UInt16 => Self::UInt16(UInt16Builder::with_capacity(0)),
            DataType::UInt32 => Self::UInt32(UInt32Builder::with_capacity(0)),
            DataType::UInt64 => Self::UInt64(UInt64Builder::with_capacity(0)),
            DataType::Float32 => Self::Float32(Float32Builder::with_capacity(0)),
            DataType::Float64 => Self::Float64(Float64Builder::with_capacity(0)),
            DataType::Decimal128(precision, scale) => {
                let builder = Decimal128Builder::with_capacity(0).with_data_type(data_type.clone());
                Self::Decimal(builder, (*precision, *scale))
            }
            DataType::Utf8 => Self::Text(StringBuilder::with_capacity(0, 0), Scalar::Text),
            DataType::LargeUtf8 => Self::LargeText(LargeStringBuilder::with_capacity(0, 0)),
            DataType::Utf8View => Self::TextView(StringViewBuilder::with_capacity(0)),
            DataType::Binary => Self::Bytes(BinaryBuilder::with_capacity(0, 0)),
            DataType::LargeBinary => Self::LargeBytes(LargeBinaryBuilder::with_capacity(0, 0)),
            DataType::BinaryView => Self::BytesView(BinaryViewBuilder::with_capacity(0)),
            DataType::Date32 => Self::Date(Date32Builder::with_capacity(0)),
            DataType::Time64(_) => Self::Time(Time64MicrosecondBuilder::with_capacity(0)),
            DataType::Timestamp(_, of) => {
                let builder =
                    TimestampMicrosecondBuilder::with_capacity(0).with_data_type(data_type.clone());
                if of.is_some() { Self::Instant(builder, zone) } else { Self::Timestamp(builder) }
            }
            DataType::Interval(_) => Self::Interval(IntervalMonthDayNanoBuilder::with_capacity(0)),
            DataType::List(item) => {
                let items = Self::new(item.data_type(), zone)?;
                Self::List(Box::new(ListBuilder::new(items, Some(Arc::clone(item)))))
            }
            other => {
                let kind = alluvium::unstable::type_name(other);
                let message = format!("values of type {kind} cannot be read");
                return Err(Rejected::new(code::UNSUPPORTED, message));
            }
        })
    }

    /// A column of values of a type of Postgres.
    pub(super) fn of_scalar(scalar: Scalar, zone: Zone) -> Result<Self> {
        Ok(match scalar {
            Scalar::Numeric => Self::Numbers(Vec::new()),
            scalar => match Self::new(&scalar.data_type(), zone)? {
                Self::Int64(builder, _) => Self::Int64(builder, scalar),
                Self::Text(builder, _) => Self::Text(builder, scalar),
                other => other,
            },
        })
    }

    /// The type of its values, or of the innermost ones of its lists.
    pub(super) fn scalar(&self) -> Scalar {
        match self {
            Self::Boolean(_) => Scalar::Bool,
            Self::Int8(_) | Self::UInt8(_) | Self::Int16(_) => Scalar::Int2,
            Self::UInt16(_) | Self::Int32(_) => Scalar::Int4,
            Self::UInt32(_) => Scalar::Int8,
            Self::Int64(_, scalar) | Self::Text(_, scalar) => *scalar,
            Self::UInt64(_) | Self::Decimal(..) | Self::Numbers(_) => Scalar::Numeric,
            Self::Float32(_) => Scalar::Float4,
            Self::Float64(_) => Scalar::Float8,
            Self::LargeText(_) | Self::TextView(_) => Scalar::Text,
            Self::Bytes(_) | Self::LargeBytes(_) | Self::BytesView(_) => Scalar::Bytea,
            Self::Date(_) => Scalar::Date,
            Self::Time(_) => Scalar::Time,
            Self::Timestamp(_) => Scalar::Timestamp,
            Self::Instant(..) => Scalar::Timestamptz,
            Self::Interval(_) => Scalar::Interval,
            Self::List(lists) => lists.scalar(),
        }
    }

    /// Adds a value.
    ///
    /// # Errors
    ///
    /// If it is none of the column's type; then the column is to be dropped, as of a list some items may have been added.
    pub(super) fn append(&mut self, field: Field<'_>) -> Result<()> {
        match self {
            Self::Boolean(builder) => builder.append_value(field.boolean()?),
            Self::Int8(builder) => builder.append_value(field.integer(Scalar::Int2)?),
            Self::Int16(builder) => builder.append_value(field.integer(Scalar::Int2)?),
            Self::Int32(builder) => builder.append_value(field.integer(Scalar::Int4)?),
            Self::Int64(builder, scalar) => builder.append_value(field.integer(*scalar)?),
            Self::UInt8(builder) => builder.append_value(field.integer(Scalar::Int2)?),
            Self::UInt16(builder) => builder.append_value(field.integer(Scalar::Int4)?),
            Self::UInt32(builder) => builder.append_value(field.integer(Scalar::Int8)?),
            Self::UInt64(builder) => builder.append_value(field.integer(Scalar::Numeric)?),
            Self::Float32(builder) => builder.append_value(field.float4()?),
            Self::Float64(builder) => builder.append_value(field.float8()?),
            Self::Decimal(builder, digits) => {
                builder.append_value(field.decimal(Some(*digits))?.unscaled);
            }
            Self::Numbers(numbers) => numbers.push(Some(field.decimal(None)?)),
            Self::Text(builder, scalar) => builder.append_value(field.string(*scalar)?),
            Self::LargeText(builder) => builder.append_value(field.string(Scalar::Text)?),
            Self::TextView(builder) => builder.append_value(field.string(Scalar::Text)?),
            Self::Bytes(builder) => builder.append_value(field.blob()?),
            Self::LargeBytes(builder) => builder.append_value(field.blob()?),
            Self::BytesView(builder) => builder.append_value(field.blob()?),
            Self::Date(builder) => builder.append_value(field.date()?),
            Self::Time(builder) => builder.append_value(field.time()?),
            Self::Timestamp(builder) => builder.append_value(field.timestamp()?),
            Self::Instant(builder, zone) => builder.append_value(field.instant(*zone)?),
            Self::Interval(builder) => builder.append_value(field.interval()?),
            Self::List(lists) => lists.append(field)?,
        }
        Ok(())
    }

    /// Adds NULL.
    pub(super) fn append_null(&mut self) {
        match self {
            Self::Boolean(builder) => builder.append_null(),
            Self::Int8(builder) => builder.append_null(),
            Self::Int16(builder) => builder.append_null(),
            Self::Int32(builder) => builder.append_null(),
            Self::Int64(builder, _) => builder.append_null(),
            Self::UInt8(builder) => builder.append_null(),
            Self::UInt16(builder) => builder.append_null(),
            Self::UInt32(builder) => builder.append_null(),
            Self::UInt64(builder) => builder.append_null(),
            Self::Float32(builder) => builder.append_null(),
            Self::Float64(builder) => builder.append_null(),
            Self::Decimal(builder, _) => builder.append_null(),
            Self::Numbers(numbers) => numbers.push(None),
            Self::Text(builder, _) => builder.append_null(),
            Self::LargeText(builder) => builder.append_null(),
            Self::TextView(builder) => builder.append_null(),
            Self::Bytes(builder) => builder.append_null(),
            Self::LargeBytes(builder) => builder.append_null(),
            Self::BytesView(builder) => builder.append_null(),
            Self::Date(builder) => builder.append_null(),
            Self::Time(builder) => builder.append_null(),
            Self::Timestamp(builder) | Self::Instant(builder, _) => builder.append_null(),
            Self::Interval(builder) => builder.append_null(),
            Self::List(lists) => lists.append_null(),
        }
    }

    /// Takes the values.
    ///
    /// # Errors
    ///
    /// If numbers have no common type, or lists have more items than an array.
    pub(super) fn finish(&mut self) -> Result<ArrayRef> {
        Ok(match self {
            Self::Boolean(builder) => Arc::new(builder.finish()),
            Self::Int8(builder) => Arc::new(builder.finish()),
            Self::Int16(builder) => Arc::new(builder.finish()),
            Self::Int32(builder) => Arc::new(builder.finish()),
            Self::Int64(builder, _) => Arc::new(builder.finish()),
            Self::UInt8(builder) => Arc::new(builder.finish()),
            Self::UInt16(builder) => Arc::new(builder.finish()),
            Self::UInt32(builder) => Arc::new(builder.finish()),
            Self::UInt64(builder) => Arc::new(builder.finish()),
            Self::Float32(builder) => Arc::new(builder.finish()),
            Self::Float64(builder) => Arc::new(builder.finish()),
            Self::Decimal(builder, _) => Arc::new(builder.finish()),
            Self::Numbers(numbers) => common(&std::mem::take(numbers))?,
            Self::Text(builder, _) => Arc::new(builder.finish()),
            Self::LargeText(builder) => Arc::new(builder.finish()),
            Self::TextView(builder) => Arc::new(builder.finish()),
            Self::Bytes(builder) => Arc::new(builder.finish()),
            Self::LargeBytes(builder) => Arc::new(builder.finish()),
            Self::BytesView(builder) => Arc::new(builder.finish()),
            Self::Date(builder) => Arc::new(builder.finish()),
            Self::Time(builder) => Arc::new(builder.finish()),
            Self::Timestamp(builder) | Self::Instant(builder, _) => Arc::new(builder.finish()),
            Self::Interval(builder) => Arc::new(builder.finish()),
            Self::List(lists) => lists.finish()?,
        })
    }
}

/// Numbers as those of the smallest type that has them all.
fn common(numbers: &[Option<Decimal>]) -> Result<ArrayRef> {
    let scale = numbers.iter().flatten().map(|number| number.scale).max().unwrap_or(0);
    let mut precision = scale.max(1);
    let mut builder = Decimal128Builder::with_capacity(numbers.len());
    for number in numbers {
        let Some(number) = number else {
            builder.append_null();
            continue;
        };
        let Some(number) = number.with_scale(scale) else {
            let message = "the numbers of an array have more digits before and after the point than a DECIMAL has in all";
            return Err(Rejected::new(code::NUMBER_RANGE, message));
        };
        precision = precision.max(number.precision());
        builder.append_value(number.unscaled);
    }
    let array = builder.finish().with_precision_and_scale(precision, scale.cast_signed())?;
    Ok(Arc::new(array))
}
