//! JSON values as arrays of a type.

use std::sync::Arc;

use alluvium::unstable::texts;
use arrow::array::{Array, ArrayRef, AsArray, StructArray, new_empty_array};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, FieldRef, Fields};
use arrow::error::ArrowError;
use arrow::json::ReaderBuilder;

/// A text of some JSON values.
#[derive(Clone, Copy)]
pub struct Text<'a> {
    pub text: &'a [u8],
    /// How many values there have to be.
    pub values: usize,
}

/// The values of some texts as those of a field, which may be NULL if the field may.
///
/// A number is no time, but arrow's reader makes texts of numbers everywhere or nowhere. So texts are read a second time if a number may
/// have become a date.
///
/// # Errors
///
/// If a text is something else, or a value is not of the type.
pub fn values<'a>(
    field: &Field,
    texts: impl Iterator<Item = Text<'a>> + Clone,
) -> Result<ArrayRef, ArrowError> {
    match field.data_type() {
        DataType::Struct(fields) if has_time(field) => {
            let all = read(&with_texts(field), true, texts.clone())?;
            if !has_dense_date(&all, field.data_type()) {
                return of_texts(&all, field);
            }
            let (times, others): (Vec<FieldRef>, Vec<FieldRef>) =
                fields.iter().cloned().partition(|field| has_time(field));
            let part = |fields: Vec<FieldRef>| {
                field.clone().with_data_type(DataType::Struct(fields.into()))
            };
            let times = as_texts(&part(times), false, texts.clone())?;
            let others = as_texts(&part(others), true, texts)?;
            joined(fields, times.as_struct(), others.as_struct())
        }
        // A number is no time, but a text.
        _ => as_texts(field, !has_time(field), texts),
    }
}

/// The values of a field whose DECIMAL, dates and times are read as texts first: arrow's reader does not round, misreads long
/// numbers, and takes numbers for times.
fn as_texts<'a>(
    field: &Field,
    scalars_are_texts: bool,
    texts: impl Iterator<Item = Text<'a>>,
) -> Result<ArrayRef, ArrowError> {
    of_texts(&read(&with_texts(field), scalars_are_texts, texts)?, field)
}

/// A field with VARCHAR in place of DECIMAL, dates and times.
fn with_texts(field: &Field) -> Field {
    field.clone().with_data_type(texts_for(field.data_type()))
}

/// Values of [`with_texts`] as those of the field itself.
fn of_texts(values: &ArrayRef, field: &Field) -> Result<ArrayRef, ArrowError> {
    match values.data_type() == field.data_type() {
        true => Ok(values.clone()),
        false => cast(&texts::read(values, field.data_type(), false)?, field.data_type()),
    }
}

/// Whether a text in place of a date or time of this type may have been a number: only a date without signs between its fields
/// looks like one.
fn has_dense_date(values: &ArrayRef, kind: &DataType) -> bool {
    const LENGTH: usize = 8;
    let is_dense = |text: &str| {
        let text = text.trim_ascii().as_bytes();
        text.len() == LENGTH && text.iter().all(u8::is_ascii_digit)
    };
    match kind {
        kind if kind.is_temporal() => values.as_string::<i32>().iter().flatten().any(is_dense),
        DataType::List(element) => {
            has_dense_date(values.as_list::<i32>().values(), element.data_type())
        }
        DataType::Map(entries, _) => {
            let values: ArrayRef = Arc::new(values.as_map().entries().clone());
            has_dense_date(&values, entries.data_type())
        }
        DataType::Struct(fields) => {
            let columns = values.as_struct().columns().iter().zip(fields);
            columns.into_iter().any(|(values, field)| has_dense_date(values, field.data_type()))
        }
        _ => false,
    }
}

fn read<'a>(
    field: &Field,
    scalars_are_texts: bool,
    texts: impl Iterator<Item = Text<'a>>,
) -> Result<ArrayRef, ArrowError> {
    let texts: Vec<Text<'a>> = texts.collect();
    let count: usize = texts.iter().map(|text| text.values).sum();
    // Room for one value more shows that a text has more than it should.
    let mut decoder = ReaderBuilder::new_with_field(Arc::new(field.clone()))
        .with_coerce_primitive(scalars_are_texts)
        .with_batch_size(count + 1)
        .build_decoder()?;
    let mut expected = 0;
    for Text { text, values } in texts {
        decoder.decode(text)?;
        expected += values;
        if decoder.has_partial_record() || decoder.len() != expected {
            return Err(ArrowError::JsonError("the text is not one JSON object".to_owned()));
        }
    }
    match decoder.flush()? {
        Some(rows) => Ok(rows.column(0).clone()),
        None => Ok(new_empty_array(field.data_type())),
    }
}

/// A struct of these fields, each of which is in one of two others.
fn joined(fields: &Fields, one: &StructArray, other: &StructArray) -> Result<ArrayRef, ArrowError> {
    let (mut of_one, mut of_other) = (one.columns().iter(), other.columns().iter());
    let mut next = |field: &FieldRef| {
        let is_of_one = one.fields().get(one.num_columns() - of_one.len()) == Some(field);
        if is_of_one { of_one.next() } else { of_other.next() }
    };
    let columns = fields.iter().filter_map(&mut next).cloned().collect();
    let (length, nulls) = (one.len(), one.nulls().cloned());
    let joined = StructArray::try_new_with_length(fields.clone(), columns, nulls, length)?;
    Ok(Arc::new(joined))
}

/// Whether a field has dates or times.
fn has_time(field: &Field) -> bool {
    match field.data_type() {
        kind if kind.is_temporal() => true,
        DataType::List(element) | DataType::Map(element, _) => has_time(element),
        DataType::Struct(fields) => fields.iter().any(|field| has_time(field)),
        _ => false,
    }
}

/// The type with VARCHAR in place of DECIMAL, dates and times.
fn texts_for(kind: &DataType) -> DataType {
    let of_field = |field: &FieldRef| {
        Arc::new(Field::clone(field).with_data_type(texts_for(field.data_type())))
    };
    match kind {
        DataType::Decimal128(..) => DataType::Utf8,
        kind if kind.is_temporal() => DataType::Utf8,
        DataType::List(element) => DataType::List(of_field(element)),
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(of_field).collect()),
        DataType::Map(entries, is_sorted) => DataType::Map(of_field(entries), *is_sorted),
        other => other.clone(),
    }
}
