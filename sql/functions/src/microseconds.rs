//! The units of timestamps.

use std::sync::Arc;

use arrow::datatypes::{DataType, FieldRef, TimeUnit};

/// The type with microseconds where it has nanoseconds.
pub fn in_microseconds(kind: &DataType) -> DataType {
    let field = |field: &FieldRef| {
        let kind = in_microseconds(field.data_type());
        Arc::new(field.as_ref().clone().with_data_type(kind))
    };
    match kind {
        DataType::Timestamp(TimeUnit::Nanosecond, zone) => {
            DataType::Timestamp(TimeUnit::Microsecond, zone.clone())
        }
        DataType::Duration(TimeUnit::Nanosecond) => DataType::Duration(TimeUnit::Microsecond),
        DataType::List(item) => DataType::List(field(item)),
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(field).collect()),
        DataType::Map(entries, sorted) => DataType::Map(field(entries), *sorted),
        kind => kind.clone(),
    }
}

/// Nanoseconds of one unit of a timestamp.
pub fn nanoseconds(unit: TimeUnit) -> i64 {
    match unit {
        TimeUnit::Second => 1_000_000_000,
        TimeUnit::Millisecond => 1_000_000,
        TimeUnit::Microsecond => 1_000,
        TimeUnit::Nanosecond => 1,
    }
}
