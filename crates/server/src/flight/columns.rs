//! The columns of tables that are created for rows of Arrow.

use std::sync::Arc;

use alluvium::Error;
use alluvium::unstable::type_name;
use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::{
    DECIMAL128_MAX_PRECISION, DataType, Field, Fields, IntervalUnit, Time64NanosecondType,
    TimeUnit, TimestampNanosecondType,
};

use super::parameters::plain_type;

/// The type of SQL that has all values of a type of Arrow.
///
/// # Errors
/// If there is none.
pub(super) fn definition(data_type: &DataType) -> Result<String, String> {
    Ok(type_name(&of(data_type)?))
}

/// The type that columns have whose values are of a type of Arrow.
fn of(data_type: &DataType) -> Result<DataType, String> {
    use DataType as T;
    let field =
        |field: &Field| Ok::<_, String>(Field::new(field.name(), of(field.data_type())?, true));
    Ok(match plain_type(data_type) {
        T::Null => T::Utf8,
        T::Float16 => T::Float32,
        T::Date64 => T::Date32,
        T::Time32(_) | T::Time64(_) => T::Time64(TimeUnit::Microsecond),
        T::Timestamp(_, zone) => T::Timestamp(TimeUnit::Microsecond, zone.map(|_| "UTC".into())),
        T::Decimal32(precision, scale) | T::Decimal64(precision, scale) => {
            T::Decimal128(precision, scale)
        }
        T::Decimal256(precision, scale) if precision <= DECIMAL128_MAX_PRECISION => {
            T::Decimal128(precision, scale)
        }
        T::Interval(_) => T::Interval(IntervalUnit::MonthDayNano),
        T::List(item) | T::LargeList(item) | T::FixedSizeList(item, _) => {
            T::List(Arc::new(field(&item)?))
        }
        T::Struct(fields) => {
            let fields = fields.iter().map(|inner| field(inner));
            T::Struct(fields.collect::<Result<Fields, _>>()?)
        }
        refused @ (T::Decimal256(..)
        | T::Duration(_)
        | T::Map(..)
        | T::Union(..)
        | T::ListView(_)
        | T::LargeListView(_)) => {
            return Err(format!("no type of SQL has the values of {refused}: send another one"));
        }
        other => other,
    })
}

/// Fails for moments between two microseconds, which no column can have.
pub(super) fn exact(rows: &RecordBatch) -> Result<(), Error> {
    for (field, column) in rows.schema_ref().fields().iter().zip(rows.columns()) {
        let nanoseconds = match column.data_type() {
            DataType::Timestamp(TimeUnit::Nanosecond, _) => {
                column.as_primitive::<TimestampNanosecondType>().values()
            }
            DataType::Time64(TimeUnit::Nanosecond) => {
                column.as_primitive::<Time64NanosecondType>().values()
            }
            _ => continue,
        };
        let is_between = |(row, value): (usize, &i64)| value % 1_000 != 0 && column.is_valid(row);
        if nanoseconds.iter().enumerate().any(is_between) {
            return Err(Error::data(format!(
                "the column \"{}\" has nanoseconds, and columns have microseconds: round them first",
                field.name()
            )));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_of_arrow_have_types_of_sql() {
        let dictionary = DataType::Dictionary(Box::new(DataType::Int8), Box::new(DataType::Utf8));
        for (data_type, name) in [
            (DataType::Int64, "BIGINT"),
            (dictionary, "VARCHAR"),
            (DataType::Decimal32(5, 2), "DECIMAL(5,2)"),
            (DataType::Timestamp(TimeUnit::Nanosecond, None), "TIMESTAMP"),
            (
                DataType::Timestamp(TimeUnit::Second, Some("Asia/Tokyo".into())),
                "TIMESTAMP WITH TIME ZONE",
            ),
            (DataType::new_list(DataType::LargeUtf8, false), "VARCHAR[]"),
        ] {
            let defined = definition(&data_type).map(|name| name.replace(", ", ","));
            assert_eq!(defined.as_deref(), Ok(name));
        }
        assert!(definition(&DataType::Duration(TimeUnit::Second)).is_err());
        assert!(definition(&DataType::Decimal256(76, 0)).is_err());
    }
}
