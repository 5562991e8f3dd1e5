//! Texts of lists, structs and maps.

use std::fmt::Write;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, ListArray, MapArray, StringArray, StringBuilder, StructArray,
};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::DataType;
use arrow::error::ArrowError;

use super::is_nested;
use super::parts::{is_blank, is_null};
use crate::leaves;

/// The texts of values of a type that [`is_nested`].
///
/// # Errors
///
/// If a value inside of them has no text; with `or_null` it is NULL there.
pub(crate) fn write(values: &ArrayRef, or_null: bool) -> Result<StringArray, ArrowError> {
    match values.data_type() {
        DataType::List(_) => lists(values.as_list(), or_null),
        DataType::Struct(_) => structs(values.as_struct(), or_null),
        DataType::Map(..) => maps(values.as_map(), or_null),
        _ => plain(values, or_null),
    }
}

/// The texts of values inside of others.
fn inside(values: &ArrayRef, or_null: bool) -> Result<StringArray, ArrowError> {
    if is_nested(values.data_type()) {
        return write(values, or_null);
    }
    let texts = plain(values, or_null)?;
    if !texts.iter().flatten().any(needs_quotes) {
        return Ok(texts);
    }
    let mut quoted = StringBuilder::with_capacity(texts.len(), texts.values().len());
    for text in &texts {
        match text {
            Some(text) if needs_quotes(text) => {
                quote(text, &mut quoted)?;
                quoted.append_value("");
            }
            text => quoted.append_option(text),
        }
    }
    Ok(quoted.finish())
}

fn plain(values: &ArrayRef, or_null: bool) -> Result<StringArray, ArrowError> {
    let options = CastOptions { safe: or_null, ..CastOptions::default() };
    Ok(cast_with_options(values, &DataType::Utf8, &options)?.as_string().clone())
}

/// Whether a text without quotes would be read as something else.
fn needs_quotes(text: &str) -> bool {
    text.is_empty()
        || is_null(text)
        || text.starts_with(is_blank)
        || text.ends_with(is_blank)
        || text.contains(['"', '\'', '(', ')', ',', ':', '=', '[', '\\', ']', '{', '}'])
}

fn quote(text: &str, to: &mut impl Write) -> Result<(), ArrowError> {
    let written = (|| {
        to.write_char('\'')?;
        for character in text.chars() {
            if matches!(character, '\'' | '\\') {
                to.write_char('\\')?;
            }
            to.write_char(character)?;
        }
        to.write_char('\'')
    })();
    written.map_err(unwritten)
}

fn unwritten(error: std::fmt::Error) -> ArrowError {
    ArrowError::ExternalError(Box::new(error))
}

/// Rows in brackets, with the text that `part` writes for each place of their range.
fn rows(
    ranges: impl Iterator<Item = Option<std::ops::Range<usize>>>,
    [open, close]: [char; 2],
    part: impl Fn(usize, &mut StringBuilder) -> std::fmt::Result,
) -> Result<StringArray, ArrowError> {
    let mut texts = StringBuilder::new();
    for range in ranges {
        let Some(range) = range else {
            texts.append_null();
            continue;
        };
        let first = range.start;
        let written = (|| {
            texts.write_char(open)?;
            for place in range {
                if place > first {
                    texts.write_str(", ")?;
                }
                part(place, &mut texts)?;
            }
            texts.write_char(close)
        })();
        written.map_err(unwritten)?;
        texts.append_value("");
    }
    Ok(texts.finish())
}

fn text(texts: &StringArray, place: usize) -> &str {
    if texts.is_null(place) { "NULL" } else { texts.value(place) }
}

fn lists(lists: &ListArray, or_null: bool) -> Result<StringArray, ArrowError> {
    let (offsets, elements) = leaves::used(lists.offsets(), lists.values());
    let elements = inside(&elements, or_null)?;
    let ranges = (0..lists.len())
        .map(|row| lists.is_valid(row).then(|| offsets[row] as usize..offsets[row + 1] as usize));
    rows(ranges, ['[', ']'], |place, to| to.write_str(text(&elements, place)))
}

fn structs(structs: &StructArray, or_null: bool) -> Result<StringArray, ArrowError> {
    let mut columns = Vec::with_capacity(structs.num_columns());
    for (name, column) in structs.column_names().into_iter().zip(structs.columns()) {
        let mut quoted = String::new();
        quote(name, &mut quoted)?;
        columns.push((quoted, inside(column, or_null)?));
    }
    // A place counts the columns of one row after the other.
    let width = columns.len();
    let ranges =
        (0..structs.len()).map(|row| structs.is_valid(row).then(|| row * width..(row + 1) * width));
    rows(ranges, ['{', '}'], |place, to| {
        let (name, column) = &columns[place % width];
        write!(to, "{name}: {}", text(column, place / width))
    })
}

fn maps(maps: &MapArray, or_null: bool) -> Result<StringArray, ArrowError> {
    let entries: ArrayRef = Arc::new(maps.entries().clone());
    let (offsets, entries) = leaves::used(maps.offsets(), &entries);
    let entries = entries.as_struct();
    let (keys, values) = (inside(entries.column(0), or_null)?, inside(entries.column(1), or_null)?);
    let ranges = (0..maps.len())
        .map(|row| maps.is_valid(row).then(|| offsets[row] as usize..offsets[row + 1] as usize));
    rows(ranges, ['{', '}'], |place, to| {
        write!(to, "{}={}", text(&keys, place), text(&values, place))
    })
}

#[cfg(test)]
mod tests {
    use arrow::datatypes::{Field, Fields};

    use super::super::read;
    use super::*;

    fn list(element: DataType) -> DataType {
        DataType::new_list(element, true)
    }

    fn map(key: DataType, value: DataType) -> DataType {
        let fields = vec![Field::new("key", key, false), Field::new("value", value, true)];
        let entries = Field::new("entries", DataType::Struct(fields.into()), false);
        DataType::Map(Arc::new(entries), false)
    }

    fn written(text: &str, kind: &DataType) -> Option<String> {
        let texts = StringArray::from(vec![None, Some(text), None]);
        let values = read(&texts, kind, false).ok()?.slice(1, 1);
        Some(write(&values, false).ok()?.value(0).to_owned())
    }

    #[test]
    fn what_is_written_is_read_as_the_same() {
        let fields: Fields = vec![
            Field::new("a", DataType::Int32, true),
            Field::new("it's", list(DataType::Utf8), true),
        ]
        .into();
        let record = DataType::Struct(fields);
        let maps = map(DataType::Utf8, list(record.clone()));
        let cases = [
            (list(DataType::Int32), "[1, NULL, -2]"),
            (
                list(DataType::Utf8),
                r"[a b, NULL, 'NULL', '', ' c', 'it\'s', 'a\\b', 'x, y', '[', '\n']",
            ),
            (list(list(DataType::Int32)), "[[1], [], NULL]"),
            (record.clone(), r"{'a': 1, 'it\'s': ['x=y', z]}"),
            (record, r"{'a': NULL, 'it\'s': NULL}"),
            (maps, r"{a b=[{'a': 1, 'it\'s': []}, NULL], 'c:d'=NULL}"),
        ];
        for (kind, text) in &cases {
            let text = text.replace(r"\n", "\n");
            assert_eq!(written(&text, kind).as_deref(), Some(&*text));
        }
    }

    #[test]
    fn null_is_null_and_empty_is_empty() {
        let kind = map(DataType::Int64, DataType::Int64);
        let texts = StringArray::from(vec![Some("{}"), None, Some(" {1=2 , 3=NULL}")]);
        let written = read(&texts, &kind, false).and_then(|values| write(&values, false));
        let written = written.unwrap_or_else(|error| panic!("{error}"));
        let expected = StringArray::from(vec![Some("{}"), None, Some("{1=2, 3=NULL}")]);
        assert_eq!(written, expected);
    }
}
