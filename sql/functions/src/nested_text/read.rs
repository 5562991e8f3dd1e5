//! Values of texts.
//!
//! The texts of all rows are split into columns of the texts inside of them, which are read as the types that a level of the
//! type has. So values of the innermost types are read by the casts of texts, a column at a time.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, ListArray, MapArray, StringArray, StringBuilder,
    StructArray,
};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::compute::{CastOptions, cast_with_options, filter};
use arrow::datatypes::{DataType, FieldRef, Fields, Float32Type, Float64Type};
use arrow::error::ArrowError;
use arrow_row::{Row, RowConverter, SortField};

use super::parts::{elements, pairs, value};
use crate::{leaves, texts};

/// The values of a type that [`is_nested`](super::is_nested).
///
/// # Errors
///
/// If one of the texts is no such value; with `or_null` it becomes NULL, and so does one inside of it.
pub(crate) fn read(
    texts: &StringArray,
    kind: &DataType,
    or_null: bool,
) -> Result<ArrayRef, ArrowError> {
    match kind {
        DataType::List(element) => lists(texts, kind, element, or_null),
        DataType::Struct(fields) => structs(texts, kind, fields, or_null),
        DataType::Map(entries, _) => maps(texts, kind, entries, or_null),
        kind => {
            let texts: ArrayRef = Arc::new(texts.clone());
            if texts::are_read(&DataType::Utf8, kind) {
                return texts::read(&texts, kind, or_null);
            }
            let options = CastOptions { safe: or_null, ..CastOptions::default() };
            cast_with_options(&texts, kind, &options)
        }
    }
}

/// Parts of texts, which are values of one type.
struct Column<'a> {
    kind: &'a DataType,
    texts: StringBuilder,
}

impl<'a> Column<'a> {
    fn new(kind: &'a DataType) -> Self {
        Self { kind, texts: StringBuilder::new() }
    }

    fn push(&mut self, part: Option<&str>) {
        self.texts.append_option(part.and_then(value));
    }

    fn read(mut self, or_null: bool) -> Result<ArrayRef, ArrowError> {
        read(&self.texts.finish(), self.kind, or_null)
    }
}

/// Which rows have a value, and how many elements each one has.
struct Rows {
    valid: Vec<bool>,
    lengths: Vec<usize>,
}

impl Rows {
    fn new(rows: usize) -> Self {
        Self { valid: Vec::with_capacity(rows), lengths: Vec::with_capacity(rows) }
    }

    fn push(&mut self, elements: Option<usize>) {
        self.valid.push(elements.is_some());
        self.lengths.push(elements.unwrap_or(0));
    }

    /// The rows, as maps, that have a key which is NULL, or one twice.
    fn unkeyed(&self, keys: &ArrayRef) -> Result<Vec<usize>, ArrowError> {
        let converter = RowConverter::new(vec![SortField::new(keys.data_type().clone())])?;
        let values = converter.convert_columns(&[with_one_zero(keys)?])?;
        let (mut wrong, mut start, mut sorted) = (Vec::new(), 0, Vec::<Row<'_>>::new());
        for (row, &length) in self.lengths.iter().enumerate() {
            let places = start..start + length;
            start = places.end;
            sorted.clear();
            sorted.extend(places.clone().map(|place| values.row(place)));
            sorted.sort_unstable();
            let is_twice = sorted.windows(2).any(|pair| pair[0] == pair[1]);
            if is_twice || places.clone().any(|place| keys.is_null(place)) {
                wrong.push(row);
            }
        }
        Ok(wrong)
    }

    /// Makes rows NULL, in order: which of all elements stay.
    fn clear(&mut self, wrong: &[usize]) -> BooleanArray {
        let mut kept = Vec::with_capacity(self.lengths.iter().sum());
        let mut wrong = wrong.iter().peekable();
        for (row, length) in self.lengths.iter_mut().enumerate() {
            let stays = wrong.next_if(|wrong| **wrong == row).is_none();
            kept.extend(std::iter::repeat_n(stays, *length));
            if !stays {
                (*length, self.valid[row]) = (0, false);
            }
        }
        kept.into()
    }

    fn finish(self) -> (OffsetBuffer<i32>, Option<NullBuffer>) {
        (OffsetBuffer::from_lengths(self.lengths), Some(NullBuffer::from(self.valid)))
    }
}

/// The values with 0.0 in place of -0.0, which is equal.
fn with_one_zero(values: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    leaves::map(values, &values.data_type().clone(), &|values, _| {
        Ok(match values.data_type() {
            DataType::Float32 => {
                Arc::new(values.as_primitive::<Float32Type>().unary::<_, Float32Type>(|x| x + 0.0))
            }
            DataType::Float64 => {
                Arc::new(values.as_primitive::<Float64Type>().unary::<_, Float64Type>(|x| x + 0.0))
            }
            _ => Arc::clone(values),
        })
    })
}

fn lists(
    texts: &StringArray,
    kind: &DataType,
    element: &FieldRef,
    or_null: bool,
) -> Result<ArrayRef, ArrowError> {
    let mut column = Column::new(element.data_type());
    let (mut rows, mut parts) = (Rows::new(texts.len()), Vec::new());
    for text in texts {
        match text {
            Some(text) if elements(text, *b"[]", &mut parts).is_some() => {
                parts.iter().for_each(|part| column.push(Some(part)));
                rows.push(Some(parts.len()));
            }
            Some(text) if !or_null => return Err(texts::unread(text, kind)),
            _ => rows.push(None),
        }
    }
    let (offsets, nulls) = rows.finish();
    let elements = column.read(or_null)?;
    Ok(Arc::new(ListArray::try_new(Arc::clone(element), offsets, elements, nulls)?))
}

fn structs(
    texts: &StringArray,
    kind: &DataType,
    fields: &Fields,
    or_null: bool,
) -> Result<ArrayRef, ArrowError> {
    let mut columns: Vec<_> = fields.iter().map(|field| Column::new(field.data_type())).collect();
    let mut valid = Vec::with_capacity(texts.len());
    let (mut parts, mut named) = (Vec::new(), Vec::new());
    let mut values = vec![None; fields.len()];
    for text in texts {
        values.fill(None);
        let is_read = match text {
            Some(text) => {
                let is_read = by_place(text, &mut parts, &mut values)
                    || by_name(text, fields, &mut named, &mut values);
                if !is_read && !or_null {
                    return Err(texts::unread(text, kind));
                }
                is_read
            }
            None => false,
        };
        valid.push(is_read);
        for (column, value) in columns.iter_mut().zip(&values) {
            column.push(value.filter(|_| is_read));
        }
    }
    let columns = columns.into_iter().map(|column| column.read(or_null));
    let columns = columns.collect::<Result<Vec<_>, _>>()?;
    let nulls = Some(NullBuffer::from(valid));
    Ok(Arc::new(StructArray::try_new_with_length(fields.clone(), columns, nulls, texts.len())?))
}

/// `(1, x)`: whether it is one, with no more values than there are fields.
fn by_place<'a>(text: &'a str, parts: &mut Vec<&'a str>, values: &mut [Option<&'a str>]) -> bool {
    if elements(text, *b"()", parts).is_none() {
        return false;
    }
    // Nothing after the last comma is no value.
    parts.pop_if(|last| last.is_empty());
    values.iter_mut().zip(parts.iter()).for_each(|(value, part)| *value = Some(*part));
    parts.len() <= values.len()
}

/// `{'a': 1}`: whether it is one, with fields of the type only, and each at most once.
fn by_name<'a>(
    text: &'a str,
    fields: &Fields,
    named: &mut Vec<(&'a str, &'a str)>,
    values: &mut [Option<&'a str>],
) -> bool {
    pairs(text, b':', named).is_some()
        && named.iter().all(|&(name, part)| {
            let Some(name) = value(name) else { return false };
            let place = fields.iter().position(|field| *field.name() == *name);
            let place = place.and_then(|place| values.get_mut(place));
            place.is_some_and(|place| place.replace(part).is_none())
        })
}

fn maps(
    texts: &StringArray,
    kind: &DataType,
    entries: &FieldRef,
    or_null: bool,
) -> Result<ArrayRef, ArrowError> {
    let DataType::Struct(fields) = entries.data_type() else {
        return Err(texts::unread("", kind));
    };
    let [key, of_key] = &fields[..] else { return Err(texts::unread("", kind)) };
    let (mut keys, mut values) = (Column::new(key.data_type()), Column::new(of_key.data_type()));
    let (mut rows, mut parts) = (Rows::new(texts.len()), Vec::new());
    for text in texts {
        match text {
            Some(text) if pairs(text, b'=', &mut parts).is_some() => {
                for &(key, of_key) in &parts {
                    keys.push(Some(key));
                    values.push(Some(of_key));
                }
                rows.push(Some(parts.len()));
            }
            Some(text) if !or_null => return Err(texts::unread(text, kind)),
            _ => rows.push(None),
        }
    }
    let mut columns = vec![keys.read(or_null)?, values.read(or_null)?];
    let wrong = rows.unkeyed(&columns[0])?;
    if let Some(&row) = wrong.first() {
        if !or_null {
            return Err(texts::unread(texts.value(row), kind));
        }
        let kept = rows.clear(&wrong);
        for column in &mut columns {
            *column = filter(column, &kept)?;
        }
    }
    let length = columns[0].len();
    let (offsets, nulls) = rows.finish();
    let columns = StructArray::try_new_with_length(fields.clone(), columns, None, length)?;
    Ok(Arc::new(MapArray::try_new(Arc::clone(entries), offsets, columns, nulls, false)?))
}

#[cfg(test)]
mod tests {
    use arrow::datatypes::{Field, Int64Type};

    use super::*;

    fn map(key: DataType, value: DataType) -> DataType {
        let fields = vec![Field::new("key", key, false), Field::new("value", value, true)];
        let entries = Field::new("entries", DataType::Struct(fields.into()), false);
        DataType::Map(Arc::new(entries), false)
    }

    #[test]
    fn maps_with_a_key_that_is_none_are_null() {
        let kind = map(DataType::Int64, DataType::Int64);
        let texts = ["{1=1, 2=2}", "{1=1, x=2}", "{3=x}", "{1=1, 01=2}", "{NULL=1}", "{}", "{4=4}"];
        let texts = StringArray::from(texts.to_vec());
        let maps = read(&texts, &kind, true).unwrap_or_else(|error| panic!("{error}"));
        let valid = (0..maps.len()).map(|row| maps.is_valid(row)).collect::<Vec<_>>();
        assert_eq!(valid, [true, false, true, false, false, true, true]);
        let maps = maps.as_map();
        assert_eq!(maps.keys().as_primitive::<Int64Type>().values(), &[1, 2, 3, 4]);
        assert_eq!(maps.value_offsets(), [0, 2, 2, 3, 3, 3, 3, 4]);
        for row in [1, 2, 3, 4] {
            assert!(read(&texts.slice(row, 1), &kind, false).is_err(), "{row}");
        }
    }

    #[test]
    fn keys_that_are_equal_are_one() {
        let texts = StringArray::from(vec!["{0.0=1, -0.0=2}"]);
        assert!(read(&texts, &map(DataType::Float64, DataType::Int64), false).is_err());
        let texts = StringArray::from(vec!["{[1, 0]=1, [1 ,0]=2}"]);
        let list = DataType::new_list(DataType::Int64, true);
        assert!(read(&texts, &map(list, DataType::Int64), false).is_err());
    }

    #[test]
    fn a_text_of_megabytes_is_read() {
        let list = DataType::new_list(DataType::new_list(DataType::Int64, true), true);
        let text = format!("[{}[2]]", "[1, NULL], ".repeat(100_000));
        let lists = read(&StringArray::from(vec![text]), &list, false);
        let elements = lists.map(|lists| lists.as_list::<i32>().values().len());
        assert_eq!(elements.ok(), Some(100_001));
        let deep = StringArray::from(vec!["[".repeat(1_000_000)]);
        assert!(read(&deep, &list, false).is_err_and(|error| error.to_string().len() < 200));
    }
}
