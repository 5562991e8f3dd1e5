//! JSON as a tree that keeps the order of members, and paths in it.

use std::cell::{Cell, OnceCell};
use std::fmt;
use std::marker::PhantomData;

use datafusion_common::{Result, exec_datafusion_err, exec_err};
use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::Number;

/// A value of JSON.
#[derive(Clone, Debug)]
pub(super) enum Json {
    Null,
    Boolean(bool),
    Number(Number),
    /// An integer beyond 64 bits.
    Digits(String),
    Text(String),
    List(Vec<Json>),
    /// Members in the order of the text.
    Object(Vec<(String, Json)>),
}

impl Json {
    /// Reads a text.
    ///
    /// # Errors
    /// If it is not JSON, or nests too deeply.
    pub(super) fn read(text: &str) -> Result<Json> {
        let numbers = Numbers { text, met: Cell::new(0), tokens: OnceCell::new() };
        let mut from = serde_json::Deserializer::from_str(text);
        let value = Read { numbers: &numbers }.deserialize(&mut from);
        value
            .and_then(|value| from.end().map(|()| value))
            .map_err(|error| exec_datafusion_err!("\"{text}\" is not JSON: {error}"))
    }

    /// The value at a path.
    pub(super) fn at(&self, path: &[Step]) -> Option<&Json> {
        path.iter().try_fold(self, |value, step| match (value, step) {
            (Json::Object(members), Step::Member(name)) => {
                members.iter().find(|(member, _)| member == name).map(|(_, value)| value)
            }
            (Json::List(elements), Step::Element(place)) => {
                let place = match place {
                    0.. => usize::try_from(*place).ok()?,
                    _ => elements.len().checked_sub(usize::try_from(place.unsigned_abs()).ok()?)?,
                };
                elements.get(place)
            }
            _ => None,
        })
    }

    /// The name of its type.
    pub(super) fn type_name(&self) -> &'static str {
        match self {
            Json::Null => "NULL",
            Json::Boolean(_) => "BOOLEAN",
            Json::Number(number) if number.is_u64() => "UBIGINT",
            Json::Number(number) if number.is_i64() => "BIGINT",
            Json::Number(_) | Json::Digits(_) => "DOUBLE",
            Json::Text(_) => "VARCHAR",
            Json::List(_) => "ARRAY",
            Json::Object(_) => "OBJECT",
        }
    }
}

/// Writes a text as a JSON string.
pub(super) fn write_text(text: &str, to: &mut impl fmt::Write) -> fmt::Result {
    let quoted = serde_json::to_string(text).map_err(|_| fmt::Error)?;
    to.write_str(&quoted)
}

/// Without spaces, as DuckDB writes JSON.
impl fmt::Display for Json {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Json::Null => to.write_str("null"),
            Json::Boolean(value) => write!(to, "{value}"),
            Json::Number(number) => write!(to, "{number}"),
            Json::Digits(digits) => to.write_str(digits),
            Json::Text(text) => write_text(text, to),
            Json::List(elements) => {
                to.write_str("[")?;
                for (place, element) in elements.iter().enumerate() {
                    write!(to, "{}{element}", if place > 0 { "," } else { "" })?;
                }
                to.write_str("]")
            }
            Json::Object(members) => {
                to.write_str("{")?;
                for (place, (name, value)) in members.iter().enumerate() {
                    to.write_str(if place > 0 { "," } else { "" })?;
                    write_text(name, to)?;
                    write!(to, ":{value}")?;
                }
                to.write_str("}")
            }
        }
    }
}

/// The numbers of a text, which are read in its order.
struct Numbers<'a> {
    text: &'a str,
    /// How many were read.
    met: Cell<usize>,
    /// How they are written, once one was read that 64 bits do not hold.
    tokens: OnceCell<Vec<&'a str>>,
}

impl<'a> Numbers<'a> {
    /// Counts a number.
    fn meet(&self) -> usize {
        self.met.replace(self.met.get() + 1)
    }

    /// How a number is written.
    fn written(&self, place: usize) -> Option<&'a str> {
        self.tokens.get_or_init(|| tokens(self.text)).get(place).copied()
    }
}

/// The numbers outside of strings.
fn tokens(text: &str) -> Vec<&str> {
    let is_part =
        |byte: &u8| byte.is_ascii_digit() || matches!(byte, b'+' | b'-' | b'.' | b'e' | b'E');
    let (bytes, mut at, mut found) = (text.as_bytes(), 0, Vec::new());
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => {
                at += 1;
                while let Some(byte) = bytes.get(at).filter(|byte| **byte != b'"') {
                    at += if *byte == b'\\' { 2 } else { 1 };
                }
                at += 1;
            }
            b'-' | b'0'..=b'9' => {
                let length = bytes[at..].iter().take_while(|byte| is_part(byte)).count();
                found.push(&text[at..at + length]);
                at += length;
            }
            _ => at += 1,
        }
    }
    found
}

/// Reads a value.
#[derive(Clone, Copy)]
struct Read<'a> {
    numbers: &'a Numbers<'a>,
}

impl<'de> DeserializeSeed<'de> for Read<'_> {
    type Value = Json;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> std::result::Result<Json, D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Read<'_> {
    type Value = Json;

    fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("a value of JSON")
    }

    fn visit_unit<E>(self) -> std::result::Result<Json, E> {
        Ok(Json::Null)
    }

    fn visit_bool<E>(self, value: bool) -> std::result::Result<Json, E> {
        Ok(Json::Boolean(value))
    }

    fn visit_i64<E>(self, value: i64) -> std::result::Result<Json, E> {
        self.numbers.meet();
        Ok(Json::Number(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> std::result::Result<Json, E> {
        self.numbers.meet();
        Ok(Json::Number(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> std::result::Result<Json, E> {
        let written = self.numbers.written(self.numbers.meet());
        if let Some(digits) = written.filter(|number| !number.contains(['.', 'e', 'E'])) {
            return Ok(Json::Digits(digits.to_owned()));
        }
        Ok(Number::from_f64(value).map_or(Json::Null, Json::Number))
    }

    fn visit_str<E>(self, value: &str) -> std::result::Result<Json, E> {
        Ok(Json::Text(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut from: A) -> std::result::Result<Json, A::Error> {
        let mut elements = Vec::new();
        while let Some(element) = from.next_element_seed(self)? {
            elements.push(element);
        }
        Ok(Json::List(elements))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut from: A) -> std::result::Result<Json, A::Error> {
        let mut members = Vec::new();
        while let Some(member) = from.next_entry_seed(PhantomData, self)? {
            members.push(member);
        }
        Ok(Json::Object(members))
    }
}

/// A step of a path.
#[derive(Clone, Debug)]
pub(super) enum Step {
    Member(String),
    /// Counted from zero, and from -1 backwards.
    Element(i64),
}

/// Reads a path: `$.a[0]."b c"`, `/a/0`, or the name of a member.
pub(super) fn path(text: &str) -> Result<Vec<Step>> {
    if let Some(pointer) = text.strip_prefix('/') {
        let steps = pointer.split('/').map(|step| match step.parse() {
            Ok(place) => Step::Element(place),
            Err(_) => Step::Member(step.replace("~1", "/").replace("~0", "~")),
        });
        return Ok(steps.collect());
    }
    let Some(mut rest) = text.strip_prefix('$') else {
        return Ok(vec![Step::Member(text.to_owned())]);
    };
    let wrong = || exec_err!("\"{text}\" is not a path, such as $.a[0].b");
    let mut steps = Vec::new();
    while !rest.is_empty() {
        let step;
        (step, rest) = if let Some(quoted) = rest.strip_prefix(".\"") {
            let Some((name, rest)) = quoted.split_once('"') else { return wrong() };
            (Step::Member(name.to_owned()), rest)
        } else if let Some(name) = rest.strip_prefix('.') {
            let end = name.find(['.', '[']).unwrap_or(name.len());
            if end == 0 || name.starts_with('*') {
                return wrong();
            }
            (Step::Member(name[..end].to_owned()), &name[end..])
        } else if let Some(place) = rest.strip_prefix('[') {
            let Some((place, rest)) = place.split_once(']') else { return wrong() };
            let Ok(place) = place.trim_start_matches('#').parse() else { return wrong() };
            (Step::Element(place), rest)
        } else {
            return wrong();
        };
        steps.push(step);
    }
    Ok(steps)
}
