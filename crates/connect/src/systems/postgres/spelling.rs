//! Values as Postgres writes them, and as they are read here.

use std::borrow::Cow;

use arrow::array::{Array as _, AsArray as _, ListArray, StringArray};
use arrow::datatypes::DataType;
use arrow::error::ArrowError;

use crate::csv::texts;

/// A line of COPY, in its fields; `None` is NULL.
pub fn fields(line: &str) -> impl Iterator<Item = Option<Cow<'_, str>>> {
    let line = line.strip_suffix('\n').unwrap_or(line);
    line.split('\t').map(|field| match field {
        "\\N" => None,
        field if field.contains('\\') => Some(Cow::Owned(unescaped(field))),
        field => Some(Cow::Borrowed(field)),
    })
}

fn unescaped(field: &str) -> String {
    let (mut text, mut rest) = (String::with_capacity(field.len()), field.chars());
    while let Some(character) = rest.next() {
        text.push(match character {
            '\\' => match rest.next() {
                Some('b') => '\u{8}',
                Some('f') => '\u{c}',
                Some('n') => '\n',
                Some('r') => '\r',
                Some('t') => '\t',
                Some('v') => '\u{b}',
                Some(other) => other,
                None => '\\',
            },
            other => other,
        });
    }
    text
}

/// A value as columns of a type read it: an array is JSON there.
pub fn usual<'a>(text: &'a str, kind: &DataType) -> Cow<'a, str> {
    match kind {
        DataType::List(element) => match json_of_array(text, element.data_type()) {
            Some(json) => Cow::Owned(json),
            None => Cow::Borrowed(text),
        },
        _ => Cow::Borrowed(text),
    }
}

/// An array of Postgres, `{1,NULL,"a b"}`, as JSON.
fn json_of_array(text: &str, element: &DataType) -> Option<String> {
    // Bounds other than the usual ones come first: `[0:1]={1,2}`.
    let mut rest = match text.strip_prefix('[') {
        Some(bounds) => bounds.split_once('=')?.1,
        None => text,
    };
    let mut innermost = element;
    while let DataType::List(element) = innermost {
        innermost = element.data_type();
    }
    let mut json = String::with_capacity(rest.len() + 8);
    while let Some(first) = rest.chars().next() {
        match first {
            '{' | '}' | ',' => {
                json.push(match first {
                    '{' => '[',
                    '}' => ']',
                    other => other,
                });
                rest = &rest[1..];
            }
            '"' => {
                let (value, after) = quoted(&rest[1..])?;
                push(&mut json, &value, innermost);
                rest = after;
            }
            _ => {
                let (value, after) = rest.split_at(rest.find([',', '}'])?);
                match value {
                    "NULL" => json.push_str("null"),
                    value => push(&mut json, value, innermost),
                }
                rest = after;
            }
        }
    }
    Some(json)
}

/// The value before the next quote, and what comes after that.
fn quoted(text: &str) -> Option<(String, &str)> {
    let (mut value, mut rest) = (String::new(), text.char_indices());
    loop {
        match rest.next()? {
            (at, '"') => return Some((value, &text[at + 1..])),
            (_, '\\') => value.push(rest.next()?.1),
            (_, other) => value.push(other),
        }
    }
}

/// Adds a value of an array: a number or a truth value as it is, if JSON has it, and a text in quotes otherwise.
fn push(json: &mut String, value: &str, kind: &DataType) {
    let is_number = || !value.contains(|one: char| !one.is_ascii_digit() && !"+-.eE".contains(one));
    match (kind, value) {
        (DataType::Boolean, "t") => json.push_str("true"),
        (DataType::Boolean, "f") => json.push_str("false"),
        (kind, value) if kind.is_numeric() && is_number() => json.push_str(value),
        // JSON has the digits of bytes alone.
        (DataType::Binary, value) => {
            let digits = value.strip_prefix("\\x").unwrap_or(value);
            json.push_str(&serde_json::Value::from(digits).to_string());
        }
        (_, value) => json.push_str(&serde_json::Value::from(value).to_string()),
    }
}

/// Lists as Postgres writes arrays, each element as it stands in a column of its own.
///
/// # Errors
/// If an element cannot be shown.
pub fn arrays(lists: &ListArray) -> Result<StringArray, ArrowError> {
    let (elements, is_flat) = match lists.values().as_list_opt::<i32>() {
        Some(lists) => (arrays(lists)?, false),
        None => {
            let DataType::List(field) = lists.data_type() else {
                return Err(ArrowError::CastError("a list has another type".to_owned()));
            };
            (texts(field, lists.values())?, true)
        }
    };
    let array = |(list, ends): (usize, &[i32])| {
        let range = ends[0] as usize..ends[1] as usize;
        lists.is_valid(list).then(|| {
            let mut array = String::from("{");
            for element in range.clone() {
                if element > range.start {
                    array.push(',');
                }
                match elements.is_valid(element).then(|| elements.value(element)) {
                    None => array.push_str("NULL"),
                    Some(text) if is_flat => push_quoted(&mut array, text),
                    Some(inner) => array.push_str(inner),
                }
            }
            array.push('}');
            array
        })
    };
    Ok(lists.value_offsets().windows(2).enumerate().map(array).collect())
}

fn push_quoted(array: &mut String, text: &str) {
    array.push('"');
    for character in text.chars() {
        if matches!(character, '"' | '\\') {
            array.push('\\');
        }
        array.push(character);
    }
    array.push('"');
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, BinaryArray, Decimal128Array, Float64Array, Int32Array};
    use arrow::buffer::OffsetBuffer;
    use arrow::datatypes::Field;

    use super::*;

    fn list(element: DataType) -> DataType {
        DataType::List(Arc::new(Field::new("item", element, true)))
    }

    #[test]
    fn fields_of_copy_are_texts_or_null() {
        let found: Vec<_> = fields("1\t\\N\ta\\tb\\\\\t\n").collect();
        let found: Vec<_> = found.iter().map(|field| field.as_deref()).collect();
        assert_eq!(found, [Some("1"), None, Some("a\tb\\"), Some("")]);
    }

    fn written(elements: ArrayRef, ends: &[i32]) -> ListArray {
        let field = Arc::new(Field::new("item", elements.data_type().clone(), true));
        ListArray::new(field, OffsetBuffer::new(ends.to_vec().into()), elements, None)
    }

    #[test]
    fn lists_are_arrays_whose_elements_are_as_in_columns() {
        let texts: ArrayRef =
            Arc::new(StringArray::from(vec![Some("1"), None, Some("a \"b\" \\")]));
        let floats = Arc::new(Float64Array::from(vec![f64::NAN, f64::INFINITY, -0.5]));
        let bytes = Arc::new(BinaryArray::from_vec(vec![&b"\x00\xff"[..], b""]));
        let decimals = Decimal128Array::from(vec![12_345_678_901_234_567_890_123_i128])
            .with_precision_and_scale(38, 5)
            .unwrap();
        let nested = written(texts.clone(), &[0, 1, 1]);
        let cases: [(ArrayRef, i32, &str); 5] = [
            (texts, 3, r#"{"1",NULL,"a \"b\" \\"}"#),
            (floats, 3, r#"{"NaN","inf","-0.5"}"#),
            (bytes, 2, r#"{"\\x00ff","\\x"}"#),
            (Arc::new(decimals), 1, r#"{"123456789012345678.90123"}"#),
            (Arc::new(nested), 2, r#"{{"1"},{}}"#),
        ];
        for (elements, end, expected) in cases {
            assert_eq!(arrays(&written(elements, &[0, end])).unwrap().value(0), expected);
        }
        let numbers = Arc::new(Int32Array::from(vec![7, 8, 9]));
        let several = arrays(&written(numbers, &[1, 1, 3])).unwrap();
        assert_eq!(several, StringArray::from(vec!["{}", r#"{"8","9"}"#]));
    }

    #[test]
    fn arrays_are_json() {
        let json = |text, element| usual(text, &list(element)).into_owned();
        assert_eq!(json("{1,NULL,-3}", DataType::Int32), "[1,null,-3]");
        assert_eq!(json("{t,f}", DataType::Boolean), "[true,false]");
        assert_eq!(json("{}", DataType::Utf8), "[]");
        assert_eq!(
            json("{a,\"b \\\"c, \\\\}\",\"NULL\"}", DataType::Utf8),
            r#"["a","b \"c, \\}","NULL"]"#
        );
        assert_eq!(json("{{1,2},{3,4}}", list(DataType::Int64)), "[[1,2],[3,4]]");
        assert_eq!(json("[0:1]={1.5,NaN}", DataType::Float64), r#"[1.5,"NaN"]"#);
        assert_eq!(json(r#"{"\\x00ff",NULL}"#, DataType::Binary), r#"["00ff",null]"#);
        assert_eq!(json("{1,", DataType::Int32), "[1,");
        assert_eq!(json("{\"1", DataType::Int32), "{\"1");
    }
}
