//! Texts as values of other types: DECIMAL, dates and times, and lists, structs and maps of any type; and texts of these lists,
//! structs and maps.
//!
//! Casts and readers of files share this, so that a text is the same value wherever it stands. Other types are left to Arrow.

use std::sync::Arc;

use alluvium_dataflow::messages::wording::type_name;
use arrow::array::{Array, ArrayRef, ArrowPrimitiveType, AsArray, PrimitiveArray, StringArray};
use arrow::compute::cast;
use arrow::datatypes::{
    DataType, Date32Type, Time64NanosecondType, TimeUnit, TimestampMicrosecondType,
};
use arrow::error::ArrowError;
use datafusion_common::ScalarValue;

use crate::microseconds::in_microseconds;
use crate::{decimal, leaves, nested_text, time_text};

/// How much of a text a message shows.
const SHOWN: usize = 40;

/// Whether values of type `target` are read here where those of type `source` are texts, or are the texts of nested ones.
pub fn are_read(source: &DataType, target: &DataType) -> bool {
    leaves::any(source, target, &|source, target| read_as(source, target).is_some())
}

/// The type of values of type `source` with what is read here in place of the texts: it has `target`'s types, but times in
/// the units of columns.
pub fn read_type(source: &DataType, target: &DataType) -> DataType {
    leaves::map_type(source, target, &|source, target| {
        read_as(source, target).unwrap_or_else(|| source.clone())
    })
}

/// The values, with what is read here in place of the texts, in the types of [`read_type`].
///
/// # Errors
///
/// If one of these texts is no such value; with `or_null` it becomes NULL.
pub fn read(values: &ArrayRef, target: &DataType, or_null: bool) -> Result<ArrayRef, ArrowError> {
    leaves::map(values, target, &|values, target| {
        let Some(kind) = read_as(values.data_type(), target) else {
            return Ok(Arc::clone(values));
        };
        if nested_text::is_nested(values.data_type()) {
            return Ok(Arc::new(nested_text::write(values, or_null)?));
        }
        let texts = cast(values, &DataType::Utf8)?;
        let texts = texts.as_string::<i32>();
        match kind {
            DataType::Decimal128(precision, scale) => {
                decimal::all(texts, precision, scale, or_null)
            }
            kind if nested_text::is_nested(&kind) => nested_text::read(texts, &kind, or_null),
            DataType::Date32 => of_each::<Date32Type>(texts, &kind, time_text::date, or_null),
            DataType::Time64(_) => {
                let time = |text: &str| Some(time_text::time_of_day(text)? * 1_000);
                of_each::<Time64NanosecondType>(texts, &kind, time, or_null)
            }
            DataType::Timestamp(_, None) => {
                of_each::<TimestampMicrosecondType>(texts, &kind, time_text::timestamp, or_null)
            }
            _ => of_each::<TimestampMicrosecondType>(texts, &kind, time_text::instant, or_null),
        }
    })
}

/// A value as one of another type, which a text is read as.
///
/// # Errors
///
/// If that type has no such value.
pub fn cast_value(
    value: &ScalarValue,
    target: &DataType,
) -> datafusion_common::Result<ScalarValue> {
    match are_read(&value.data_type(), target) {
        true => {
            let read = read(&value.to_array()?, target, false)?;
            ScalarValue::try_from_array(&read, 0)?.cast_to(target)
        }
        false => value.cast_to(target),
    }
}

/// The type that a text is read as here in place of `target`, or that of the texts of nested values; `None` of all else.
fn read_as(source: &DataType, target: &DataType) -> Option<DataType> {
    if nested_text::is_nested(source) {
        return target.is_string().then_some(DataType::Utf8);
    }
    if !source.is_string() {
        return None;
    }
    match target {
        DataType::Decimal128(..) | DataType::Date32 => Some(target.clone()),
        DataType::Time32(_) | DataType::Time64(_) => Some(DataType::Time64(TimeUnit::Nanosecond)),
        DataType::Timestamp(_, zone) => {
            Some(DataType::Timestamp(TimeUnit::Microsecond, zone.clone()))
        }
        target if nested_text::is_nested(target) => Some(in_microseconds(target)),
        _ => None,
    }
}

fn of_each<T: ArrowPrimitiveType>(
    texts: &StringArray,
    kind: &DataType,
    value: impl Fn(&str) -> Option<T::Native>,
    or_null: bool,
) -> Result<ArrayRef, ArrowError> {
    let values: PrimitiveArray<T> = texts.iter().map(|text| value(text?)).collect();
    if !or_null && values.null_count() > texts.null_count() {
        let wrong = (0..texts.len()).find(|&row| texts.is_valid(row) && values.is_null(row));
        return Err(unread(wrong.map_or("", |row| texts.value(row)), kind));
    }
    Ok(Arc::new(values.with_data_type(kind.clone())))
}

/// The error of Arrow's casts, which is translated like theirs.
pub(crate) fn unread(text: &str, kind: &DataType) -> ArrowError {
    let text = match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    };
    match kind {
        DataType::Timestamp(..) => {
            ArrowError::ParseError(format!("Error parsing timestamp from '{text}': no timestamp"))
        }
        kind if nested_text::is_nested(kind) => {
            let kind = type_name(kind);
            ArrowError::CastError(format!("Cannot cast string '{text}' to value of {kind} type"))
        }
        kind => {
            ArrowError::CastError(format!("Cannot cast string '{text}' to value of {kind} type"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_time_is_null_or_an_error() {
        let texts: ArrayRef =
            Arc::new(StringArray::from(vec![Some("2024-01-02 03:04"), None, Some("soon")]));
        let target = DataType::Timestamp(TimeUnit::Nanosecond, None);
        let times = read(&texts, &target, true).map(|times| (times.null_count(), times.len()));
        assert_eq!(times.ok(), Some((2, 3)));
        let error = read(&texts, &target, false).map_err(|error| error.to_string());
        assert!(error.is_err_and(|error| error.contains("'soon'")));
    }

    #[test]
    fn texts_in_lists_are_read() {
        let list = |item: DataType| DataType::new_list(item, true);
        assert!(are_read(&list(DataType::Utf8), &list(DataType::Date32)));
        assert!(!are_read(&list(DataType::Utf8), &list(DataType::Int32)));
        let read = read_type(&list(DataType::Utf8), &list(DataType::Time32(TimeUnit::Second)));
        assert_eq!(read, list(DataType::Time64(TimeUnit::Nanosecond)));
    }
}
