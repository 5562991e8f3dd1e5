//! Columns of Python's values.
//!
//! [`array`] takes a type and gives each kind of it to one file: [`numbers`] and [`decimals`], [`times`], [`texts`], [`nested`]. They read
//! single values, and [`cells`] goes over a column with such a reader, unwraps what is of other libraries, and has texts [`parsed`].
//! [`infer`] finds types, and [`exact`] tells values that need no cast.

mod cells;
mod containers;
mod decimals;
mod exact;
mod infer;
mod kinds;
mod nested;
mod numbers;
mod parameter;
mod parsed;
mod texts;
mod times;

use std::sync::Arc;

use alluvium::arrow::array::{ArrayRef, BooleanArray, NullArray, new_empty_array};
use alluvium::arrow::compute::cast;
use alluvium::arrow::datatypes::{
    DataType, Date32Type, Date64Type, Decimal128Type, DurationMicrosecondType,
    DurationMillisecondType, DurationNanosecondType, DurationSecondType, Field, Float16Type,
    Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, IntervalMonthDayNanoType,
    IntervalUnit, Time32MillisecondType, Time32SecondType, Time64MicrosecondType,
    Time64NanosecondType, TimeUnit, TimestampMicrosecondType, TimestampMillisecondType,
    TimestampNanosecondType, TimestampSecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use pyo3::prelude::*;
use pyo3::types::PyBool;

use self::cells::{collect, primitives};
use super::fault::{Fault, Unfit};
use super::sql_type;

pub(crate) use exact::exact;
pub(crate) use parameter::parameter;

/// The column of these values, of the type of the field. Errors count rows from `first`, which is the number of the first value.
///
/// NULLs are not held against a field that allows none: its table does that. They are against fields within a nested type.
///
/// # Errors
///
/// Raises `DataError` if a value does not fit, and what code of a value's class raises.
pub(crate) fn array(
    values: &[Bound<'_, PyAny>],
    field: &Field,
    first: usize,
) -> PyResult<ArrayRef> {
    let Some(value) = values.first() else { return Ok(new_empty_array(field.data_type())) };
    build(values, field.data_type())
        .map_err(|fault| fault.of_column(value.py(), field.name(), first))
}

/// The column of these values, of this type.
fn build(values: &[Bound<'_, PyAny>], to: &DataType) -> Result<ArrayRef, Fault> {
    if values.is_empty() {
        return Ok(new_empty_array(to));
    }
    match to {
        DataType::Null => {
            collect(values, to, |_| Err::<(), _>(Unfit::Unknown))?.without_texts(values, to)?;
            Ok(Arc::new(NullArray::new(values.len())))
        }
        DataType::Boolean => booleans(values, to),
        DataType::Int8 => primitives::<Int8Type>(values, to, numbers::integer),
        DataType::Int16 => primitives::<Int16Type>(values, to, numbers::integer),
        DataType::Int32 => primitives::<Int32Type>(values, to, numbers::integer),
        DataType::Int64 => primitives::<Int64Type>(values, to, numbers::integer),
        DataType::UInt8 => primitives::<UInt8Type>(values, to, numbers::integer),
        DataType::UInt16 => primitives::<UInt16Type>(values, to, numbers::integer),
        DataType::UInt32 => primitives::<UInt32Type>(values, to, numbers::integer),
        DataType::UInt64 => primitives::<UInt64Type>(values, to, numbers::integer),
        DataType::Float16 => primitives::<Float16Type>(values, to, numbers::half),
        DataType::Float32 => primitives::<Float32Type>(values, to, numbers::single),
        DataType::Float64 => primitives::<Float64Type>(values, to, numbers::double),
        DataType::Decimal128(precision, scale) => {
            primitives::<Decimal128Type>(values, to, |value| {
                decimals::decimal(value, *precision, *scale)
            })
        }
        DataType::Date32 => primitives::<Date32Type>(values, to, times::date),
        DataType::Date64 => primitives::<Date64Type>(values, to, times::date_milliseconds),
        DataType::Time32(_) | DataType::Time64(_) => build_times(values, to),
        DataType::Timestamp(unit, zone) => build_timestamps(values, to, *unit, zone.is_some()),
        DataType::Duration(unit) => build_durations(values, to, *unit),
        DataType::Interval(IntervalUnit::MonthDayNano) => {
            primitives::<IntervalMonthDayNanoType>(values, to, times::interval)
        }
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => texts::texts(values, to),
        DataType::Binary
        | DataType::LargeBinary
        | DataType::BinaryView
        | DataType::FixedSizeBinary(_) => texts::bytes(values, to),
        DataType::List(item) => nested::lists::<i32>(values, item, to),
        DataType::LargeList(item) => nested::lists::<i64>(values, item, to),
        DataType::FixedSizeList(item, size) => nested::fixed_lists(values, item, *size, to),
        DataType::Struct(fields) => nested::structs(values, fields, to),
        DataType::Map(entries, sorted) => nested::maps(values, entries, *sorted, to),
        DataType::Dictionary(_, of) => Ok(cast(&build(values, of)?, to)?),
        other => {
            let message = format!("no {} can be made of Python's values", sql_type(other));
            Err(Fault::Column(message))
        }
    }
}

fn booleans(values: &[Bound<'_, PyAny>], to: &DataType) -> Result<ArrayRef, Fault> {
    let boolean = |value: &Bound<'_, PyAny>| match value.cast_exact::<PyBool>() {
        Ok(value) => Ok(value.is_true()),
        Err(_) => Err(Unfit::Unknown),
    };
    let booleans: BooleanArray = collect(values, to, boolean)?.booleans(values, to)?;
    Ok(Arc::new(booleans))
}

fn build_times(values: &[Bound<'_, PyAny>], to: &DataType) -> Result<ArrayRef, Fault> {
    match to {
        DataType::Time32(TimeUnit::Second) => {
            primitives::<Time32SecondType>(values, to, |value| times::time(value, 1))
        }
        DataType::Time32(_) => {
            primitives::<Time32MillisecondType>(values, to, |value| times::time(value, 1_000))
        }
        DataType::Time64(TimeUnit::Nanosecond) => {
            primitives::<Time64NanosecondType>(values, to, |value| {
                times::time(value, 1_000_000_000)
            })
        }
        _ => primitives::<Time64MicrosecondType>(values, to, |value| times::time(value, 1_000_000)),
    }
}

fn build_timestamps(
    values: &[Bound<'_, PyAny>],
    to: &DataType,
    unit: TimeUnit,
    zoned: bool,
) -> Result<ArrayRef, Fault> {
    let read = |value: &Bound<'_, PyAny>| times::timestamp(value, unit, zoned);
    match unit {
        TimeUnit::Second => primitives::<TimestampSecondType>(values, to, read),
        TimeUnit::Millisecond => primitives::<TimestampMillisecondType>(values, to, read),
        TimeUnit::Microsecond => primitives::<TimestampMicrosecondType>(values, to, read),
        TimeUnit::Nanosecond => primitives::<TimestampNanosecondType>(values, to, read),
    }
}

fn build_durations(
    values: &[Bound<'_, PyAny>],
    to: &DataType,
    unit: TimeUnit,
) -> Result<ArrayRef, Fault> {
    let read = |value: &Bound<'_, PyAny>| times::duration(value, unit);
    match unit {
        TimeUnit::Second => primitives::<DurationSecondType>(values, to, read),
        TimeUnit::Millisecond => primitives::<DurationMillisecondType>(values, to, read),
        TimeUnit::Microsecond => primitives::<DurationMicrosecondType>(values, to, read),
        TimeUnit::Nanosecond => primitives::<DurationNanosecondType>(values, to, read),
    }
}
