//! The values of options, as all formats read them.

use std::fmt;
use std::path::Path;

use alluvium::unstable::named_type;
use alluvium::{Error, Result};
use arrow::datatypes::DataType;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};

use crate::input;

/// How a file is compressed as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    None,
    Gzip,
}

impl Compression {
    /// The default for a file that is written, by its name.
    pub fn of(path: &Path) -> Self {
        match path.extension() {
            Some(extension) if extension.eq_ignore_ascii_case("gz") => Self::Gzip,
            _ => Self::None,
        }
    }
}

/// `COMPRESSION`: `gzip`, `none`, or `auto` to detect it.
pub fn compression(value: &str) -> Result<Option<Compression>> {
    match value.to_ascii_lowercase().as_str() {
        "auto" => Ok(None),
        "gzip" => Ok(Some(Compression::Gzip)),
        "none" => Ok(Some(Compression::None)),
        _ => Err(Error::source(format!("COMPRESSION is auto, gzip or none, not \"{value}\""))),
    }
}

/// An option that is on or off.
pub fn switch(name: &str, value: &str) -> Result<bool> {
    match value.to_ascii_lowercase().as_str() {
        "true" | "1" => Ok(true),
        "false" | "0" => Ok(false),
        _ => Err(Error::source(format!("{name} is true or false, not \"{value}\""))),
    }
}

/// `SAMPLE`: how much of a file is looked at to find its columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// How many rows at most.
    pub rows: usize,
    /// How many bytes of them at most, give or take one row.
    pub bytes: usize,
}

impl Default for Sample {
    fn default() -> Self {
        Self { rows: input::SAMPLE, bytes: input::SAMPLE_BYTES }
    }
}

impl Sample {
    /// A number of rows, or -1 for all there are.
    pub fn read(value: &str) -> Result<Self> {
        match value.parse::<i64>() {
            Ok(-1) => Ok(Self { rows: usize::MAX, bytes: usize::MAX }),
            Ok(rows @ 1..) => {
                Ok(Self { rows: usize::try_from(rows).unwrap_or(usize::MAX), bytes: usize::MAX })
            }
            _ => Err(Error::source(format!(
                "SAMPLE is a number of rows, or -1 for all, not \"{value}\""
            ))),
        }
    }
}

/// The texts of an option that may have several: a JSON array, or one text as it stands.
pub fn texts(value: &str) -> Vec<String> {
    match value.starts_with('[').then(|| serde_json::from_str(value)) {
        Some(Ok(texts)) => texts,
        _ => vec![value.to_owned()],
    }
}

/// An option of names and their types: `{"id": "BIGINT", "day": "DATE"}`.
pub fn types(option: &str, value: &str) -> Result<Vec<(String, DataType)>> {
    let Ok(Members(members)) = serde_json::from_str(value) else {
        return Err(Error::source(format!(
            "{option} is an object of names and types, such as {{\"id\": \"BIGINT\"}}, not \"{value}\""
        )));
    };
    let mut types: Vec<(String, DataType)> = Vec::with_capacity(members.len());
    for (name, of) in members {
        if types.iter().any(|(other, _)| *other == name) {
            return Err(Error::source(format!("{option} has \"{name}\" twice")));
        }
        let kind = named_type(&of).map_err(|error| {
            Error::source(format!("the type of \"{name}\" in {option}: {error}"))
        })?;
        types.push((name, kind));
    }
    match types.is_empty() {
        true => Err(Error::source(format!("{option} names no column"))),
        false => Ok(types),
    }
}

/// The members of a JSON object, whose values are texts, in their order.
struct Members(Vec<(String, String)>);

impl<'de> Deserialize<'de> for Members {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        struct InOrder;
        impl<'de> Visitor<'de> for InOrder {
            type Value = Members;

            fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
                to.write_str("an object of texts")
            }

            fn visit_map<A: MapAccess<'de>>(
                self,
                mut object: A,
            ) -> std::result::Result<Members, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = object.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(InOrder)
    }
}

/// An option that the format does not have.
pub fn unknown(name: &str, format: &str, known: &str) -> Error {
    Error::source(format!("no option \"{name}\" for {format}; there are {known}"))
}
