//! JSON as a tree that keeps the order of members, and paths in it.

use std::fmt;

use datafusion_common::{Result, exec_datafusion_err, exec_err};
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::Number;

/// A value of JSON.
#[derive(Clone, Debug)]
pub(super) enum Json {
    Null,
    Boolean(bool),
    Number(Number),
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
        serde_json::from_str(text)
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
            Json::Number(_) => "DOUBLE",
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

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(from: D) -> std::result::Result<Json, D::Error> {
        from.deserialize_any(Read)
    }
}

struct Read;

impl<'de> Visitor<'de> for Read {
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
        Ok(Json::Number(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> std::result::Result<Json, E> {
        Ok(Json::Number(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> std::result::Result<Json, E> {
        Ok(Number::from_f64(value).map_or(Json::Null, Json::Number))
    }

    fn visit_str<E>(self, value: &str) -> std::result::Result<Json, E> {
        Ok(Json::Text(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut from: A) -> std::result::Result<Json, A::Error> {
        let mut elements = Vec::new();
        while let Some(element) = from.next_element()? {
            elements.push(element);
        }
        Ok(Json::List(elements))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut from: A) -> std::result::Result<Json, A::Error> {
        let mut members = Vec::new();
        while let Some(member) = from.next_entry()? {
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
