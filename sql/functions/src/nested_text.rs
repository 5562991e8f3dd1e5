//! Texts as lists, structs and maps, in the form that DuckDB writes and reads.
//!
//! ```text
//! list    [1, 2]  [NULL, 'a, b', "c"]  [[1], [2, 3]]
//! struct  {'a': 1, b: x}  (1, x)   fields that are left out are NULL
//! map     {k=1, 'l'=2}
//! ```
//!
//! Special characters lose their meaning in quotes of both kinds, as does the character after a backslash in them. `NULL` without
//! quotes is NULL. Blanks around a value do not belong to it.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, ListArray, MapArray, StringArray, StringBuilder, StructArray};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{DataType, FieldRef, Fields};
use arrow::error::ArrowError;

use crate::texts;

/// Whether values of this type are read here.
pub(crate) fn is_nested(kind: &DataType) -> bool {
    matches!(kind, DataType::List(_) | DataType::Struct(_) | DataType::Map(..))
}

/// The values of a type that [`is_nested`].
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

/// Texts of values, each NULL, quoted or plain, as those of one type.
struct Column<'a> {
    kind: &'a DataType,
    texts: StringBuilder,
}

impl<'a> Column<'a> {
    fn new(kind: &'a DataType) -> Self {
        Self { kind, texts: StringBuilder::new() }
    }

    fn push(&mut self, text: Option<&str>) {
        match text {
            // Its parts are unquoted when they are read.
            Some(text) if is_nested(self.kind) && !is_null(text) => self.texts.append_value(text),
            text => self.texts.append_option(text.and_then(unquoted)),
        }
    }

    fn read(mut self, or_null: bool) -> Result<ArrayRef, ArrowError> {
        read(&self.texts.finish(), self.kind, or_null)
    }
}

/// The texts of elements, without the brackets around them; `false` for a text of another form.
fn split<'a>(text: &'a str, open: u8, close: u8, parts: &mut Vec<&'a str>) -> bool {
    parts.clear();
    let inner = text.trim_ascii().as_bytes();
    let Some((first, inner)) = inner.split_first() else { return false };
    let Some((last, _)) = inner.split_last() else { return false };
    if *first != open || *last != close {
        return false;
    }
    let text = text.trim_ascii();
    let mut rest = &text[1..text.len() - 1];
    if rest.trim_ascii().is_empty() {
        return true;
    }
    loop {
        match until(rest, b',') {
            Some(Some(end)) => {
                parts.push(rest[..end].trim_ascii());
                rest = &rest[end + 1..];
            }
            Some(None) => {
                parts.push(rest.trim_ascii());
                return true;
            }
            None => return false,
        }
    }
}

/// Where a byte is that neither quotes nor brackets enclose, if there is one; `None` where these are not closed.
fn until(text: &str, wanted: u8) -> Option<Option<usize>> {
    let (mut open, mut quote, mut is_escaped) = (Vec::new(), None, false);
    for (at, &byte) in text.as_bytes().iter().enumerate() {
        match (quote, byte) {
            _ if is_escaped => is_escaped = false,
            (Some(_), b'\\') => is_escaped = true,
            (Some(quoted), byte) if quoted == byte => quote = None,
            (Some(_), _) => {}
            (None, b'\'' | b'"') => quote = Some(byte),
            (None, byte) if byte == wanted && open.is_empty() => return Some(Some(at)),
            (None, b'[') => open.push(b']'),
            (None, b'{') => open.push(b'}'),
            (None, b'(') => open.push(b')'),
            (None, b']' | b'}' | b')') if open.pop() != Some(byte) => return None,
            _ => {}
        }
    }
    (open.is_empty() && quote.is_none()).then_some(None)
}

fn is_null(text: &str) -> bool {
    text.eq_ignore_ascii_case("null")
}

/// The text without its quotes; `None` for NULL.
fn unquoted(text: &str) -> Option<Cow<'_, str>> {
    if is_null(text) {
        return None;
    }
    if !text.contains(['\'', '"']) {
        return Some(Cow::Borrowed(text));
    }
    let (mut plain, mut quote) = (String::with_capacity(text.len()), None);
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        match (quote, character) {
            (Some(_), '\\') => plain.extend(characters.next()),
            (Some(quoted), character) if quoted == character => quote = None,
            (None, '\'' | '"') => quote = Some(character),
            _ => plain.push(character),
        }
    }
    Some(Cow::Owned(plain))
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

    fn finish(self) -> (OffsetBuffer<i32>, Option<NullBuffer>) {
        (OffsetBuffer::from_lengths(self.lengths), Some(NullBuffer::from(self.valid)))
    }
}

fn lists(
    texts: &StringArray,
    kind: &DataType,
    element: &FieldRef,
    or_null: bool,
) -> Result<ArrayRef, ArrowError> {
    let mut elements = Column::new(element.data_type());
    let (mut rows, mut parts) = (Rows::new(texts.len()), Vec::new());
    for text in texts {
        match text {
            Some(text) if split(text, b'[', b']', &mut parts) => {
                parts.iter().for_each(|part| elements.push(Some(part)));
                rows.push(Some(parts.len()));
            }
            Some(text) if !or_null => return Err(texts::unread(text, kind)),
            _ => rows.push(None),
        }
    }
    let (offsets, nulls) = rows.finish();
    let elements = elements.read(or_null)?;
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
    let (mut parts, mut values) = (Vec::new(), vec![None; fields.len()]);
    for text in texts {
        values.fill(None);
        let is_read = match text {
            Some(text) => {
                let is_read = by_place(text, &mut parts, &mut values)
                    || by_name(text, fields, &mut parts, &mut values);
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
    if !split(text, b'(', b')', parts) || parts.len() > values.len() {
        return false;
    }
    values.iter_mut().zip(parts.iter()).for_each(|(value, part)| *value = Some(*part));
    true
}

/// `{'a': 1}`: whether it is one, with fields of the type only, and each at most once.
fn by_name<'a>(
    text: &'a str,
    fields: &Fields,
    parts: &mut Vec<&'a str>,
    values: &mut [Option<&'a str>],
) -> bool {
    split(text, b'{', b'}', parts)
        && parts.iter().all(|part| {
            let Some((name, value)) = pair(part, b':') else { return false };
            let Some(name) = unquoted(name) else { return false };
            let place = fields.iter().position(|field| *field.name() == *name);
            let place = place.and_then(|place| values.get_mut(place));
            place.is_some_and(|place| place.replace(value).is_none())
        })
}

/// The texts before and after a sign.
fn pair(text: &str, sign: u8) -> Option<(&str, &str)> {
    let at = until(text, sign)??;
    Some((text[..at].trim_ascii(), text[at + 1..].trim_ascii()))
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
    let mut columns: Vec<_> = fields.iter().map(|field| Column::new(field.data_type())).collect();
    let (mut rows, mut parts, mut pairs) = (Rows::new(texts.len()), Vec::new(), Vec::new());
    for text in texts {
        pairs.clear();
        match text {
            Some(text)
                if split(text, b'{', b'}', &mut parts) && are_entries(&parts, &mut pairs) =>
            {
                for &(key, value) in &pairs {
                    columns.iter_mut().zip([key, value]).for_each(|(to, text)| to.push(Some(text)));
                }
                rows.push(Some(pairs.len()));
            }
            Some(text) if !or_null => return Err(texts::unread(text, kind)),
            _ => rows.push(None),
        }
    }
    let columns = columns.into_iter().map(|column| column.read(or_null));
    let columns = columns.collect::<Result<Vec<_>, _>>()?;
    let (offsets, nulls) = rows.finish();
    let length = columns.first().map_or(0, |keys| keys.len());
    let columns = StructArray::try_new_with_length(fields.clone(), columns, None, length)?;
    Ok(Arc::new(MapArray::try_new(Arc::clone(entries), offsets, columns, nulls, false)?))
}

/// Whether these are entries of a map, whose keys differ and are not NULL.
fn are_entries<'a>(parts: &[&'a str], pairs: &mut Vec<(&'a str, &'a str)>) -> bool {
    let mut keys = BTreeSet::new();
    parts.iter().all(|part| {
        let Some(entry) = pair(part, b'=') else { return false };
        pairs.push(entry);
        unquoted(entry.0).is_some_and(|key| keys.insert(key))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(text: &str) -> Option<Vec<Option<Cow<'_, str>>>> {
        let mut parts = Vec::new();
        let is_list = split(text, b'[', b']', &mut parts);
        is_list.then(|| parts.into_iter().map(unquoted).collect())
    }

    #[test]
    fn quotes_and_brackets_keep_commas() {
        let texts = |texts: &[&'static str]| {
            Some(texts.iter().map(|text| Some(Cow::Borrowed(*text))).collect::<Vec<_>>())
        };
        assert_eq!(parts(" [ a b ,'c, d', \"e\" ] "), texts(&["a b", "c, d", "e"]));
        assert_eq!(parts("[a (b, c), {x, y}, [z]]"), texts(&["a (b, c)", "{x, y}", "[z]"]));
        assert_eq!(parts(r"[a\n, 'it\'s', '  ']"), texts(&[r"a\n", "it's", "  "]));
        assert_eq!(parts("[, a, ]"), texts(&["", "a", ""]));
        assert_eq!(parts("[]"), texts(&[]));
        assert_eq!(parts("[null, 'NULL']"), Some(vec![None, Some(Cow::Borrowed("NULL"))]));
        for text in ["", "a", "[a", "a]", "[", "[it's]", "[a (b]", "[a], b]", "{a}"] {
            assert_eq!(parts(text), None, "{text}");
        }
    }
}
