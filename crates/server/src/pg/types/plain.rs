//! Arrays of the types that are written: Arrow has several for one of Postgres.

use std::sync::Arc;

use alluvium::unstable::texts;
use arrow::array::{Array, ArrayRef};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{DataType, Field, IntervalUnit, TimeUnit};

use super::catalog_type::Kind;
use super::pg_type::item;
use super::rejected::Result;

/// The same values in a type that is written.
///
/// # Errors
///
/// If that type does not have all values, as microseconds do not have all seconds.
pub(super) fn plain(array: &ArrayRef, kind: Kind) -> Result<ArrayRef> {
    let target = match kind {
        // OIDs have no sign.
        Kind::Oid | Kind::Vector => array.data_type().clone(),
        Kind::Plain => plain_type(array.data_type()),
    };
    if target == *array.data_type() {
        return Ok(Arc::clone(array));
    }
    read_as(array, &target)
}

/// The values as those of another type, as the engine's CAST makes them.
///
/// # Errors
///
/// If that type does not have all values.
pub(super) fn read_as(array: &ArrayRef, target: &DataType) -> Result<ArrayRef> {
    let read = match texts::are_read(array.data_type(), target) {
        true => texts::read(array, target, false)?,
        false => Arc::clone(array),
    };
    let options = CastOptions { safe: false, ..CastOptions::default() };
    Ok(cast_with_options(&read, target, &options)?)
}

/// The type in which values of a type are written. Structs and maps are written as texts.
pub(super) fn plain_type(data_type: &DataType) -> DataType {
    if let Some(item) = item(data_type) {
        let plain = plain_type(item.data_type());
        return match data_type {
            DataType::List(_) if plain == *item.data_type() => data_type.clone(),
            _ => DataType::List(Arc::new(Field::new_list_field(plain, true))),
        };
    }
    match data_type {
        DataType::Int8 | DataType::UInt8 => DataType::Int16,
        DataType::UInt16 => DataType::Int32,
        DataType::UInt32 => DataType::Int64,
        DataType::Float16 => DataType::Float32,
        DataType::Decimal32(precision, scale) | DataType::Decimal64(precision, scale) => {
            DataType::Decimal128(*precision, *scale)
        }
        DataType::FixedSizeBinary(_) => DataType::Binary,
        DataType::Date64 => DataType::Date32,
        DataType::Time32(_) | DataType::Time64(_) => DataType::Time64(TimeUnit::Microsecond),
        DataType::Timestamp(_, zone) => DataType::Timestamp(TimeUnit::Microsecond, zone.clone()),
        DataType::Interval(_) | DataType::Duration(_) => {
            DataType::Interval(IntervalUnit::MonthDayNano)
        }
        DataType::Struct(_) | DataType::Map(..) | DataType::Union(..) => DataType::Utf8,
        DataType::Dictionary(_, values) => plain_type(values),
        DataType::RunEndEncoded(_, values) => plain_type(values.data_type()),
        plain => plain.clone(),
    }
}
