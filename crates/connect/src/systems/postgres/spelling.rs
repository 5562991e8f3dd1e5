//! Values as Postgres writes them, and as they are read here.

use std::borrow::Cow;

use arrow::datatypes::DataType;

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
        (_, value) => json.push_str(&serde_json::Value::from(value).to_string()),
    }
}

/// An array of JSON as one of Postgres; `None` if it is none.
pub fn array_of_json(json: &str) -> Option<String> {
    let values: Vec<serde_json::Value> = serde_json::from_str(json).ok()?;
    let mut array = String::new();
    push_array(&mut array, &values);
    Some(array)
}

fn push_array(array: &mut String, values: &[serde_json::Value]) {
    array.push('{');
    for (at, value) in values.iter().enumerate() {
        if at > 0 {
            array.push(',');
        }
        match value {
            serde_json::Value::Null => array.push_str("NULL"),
            serde_json::Value::Array(values) => push_array(array, values),
            serde_json::Value::String(text) => push_quoted(array, text),
            other => push_quoted(array, &other.to_string()),
        }
    }
    array.push('}');
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

    #[test]
    fn json_is_arrays() {
        let array = array_of_json(r#"[1,null,"a \"b\" \\",[true,[]]]"#);
        assert_eq!(array.as_deref(), Some(r#"{"1",NULL,"a \"b\" \\",{"true",{}}}"#));
        assert_eq!(array_of_json("{}"), None);
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
        assert_eq!(json("{1,", DataType::Int32), "[1,");
        assert_eq!(json("{\"1", DataType::Int32), "{\"1");
    }
}
