//! Where reading of a topic begins, and what becomes of messages that are gone.

use std::collections::BTreeMap;
use std::fmt;

use alluvium::{Error, Result};
use serde_json::Value;

/// Where reading begins that no position tells.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Start {
    /// At the first message that there is of each partition.
    #[default]
    Earliest,
    /// After the last one.
    Latest,
    /// At the first message of this time or later, in milliseconds since 1970.
    Timestamp(i64),
    /// At these offsets; partitions that are not named, at their first message.
    Offsets(BTreeMap<i32, i64>),
}

impl Start {
    /// `earliest`, `latest`, `{"timestamp": …}` with a time, or `{"offsets": …}` with a list, or an object by partition.
    pub fn read(value: &str) -> Result<Self> {
        match value.trim().to_ascii_lowercase().as_str() {
            "earliest" | "smallest" | "beginning" => return Ok(Self::Earliest),
            "latest" | "largest" | "end" => return Ok(Self::Latest),
            _ => {}
        }
        Self::read_object(value).ok_or_else(|| {
            Error::source(format!(
                "\"start_from\" is \"earliest\", \"latest\", {{\"timestamp\": MILLISECONDS}} or {{\"offsets\": [OFFSET, …]}}, \
                 not {value}"
            ))
        })
    }

    fn read_object(value: &str) -> Option<Self> {
        let object: Value = serde_json::from_str(value).ok()?;
        let object = object.as_object().filter(|object| object.len() == 1)?;
        if let Some(time) = object.get("timestamp") {
            return time.as_i64().filter(|time| *time >= 0).map(Self::Timestamp);
        }
        let offset = |value: &Value| value.as_i64().filter(|offset| *offset >= 0);
        let offsets = match object.get("offsets")? {
            Value::Array(offsets) => (0..)
                .zip(offsets)
                .map(|(partition, value)| Some((partition, offset(value)?)))
                .collect(),
            Value::Object(offsets) => {
                let entry = |(partition, value): (&String, &Value)| {
                    let partition = partition.parse().ok().filter(|partition| *partition >= 0);
                    Some((partition?, offset(value)?))
                };
                offsets.iter().map(entry).collect()
            }
            _ => None,
        };
        offsets.map(Self::Offsets)
    }
}

/// What happens where messages are gone that were to be read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnGap {
    /// Reading ends, and tells the gap.
    #[default]
    Fail,
    /// Reading goes on at the first message that there is; the gap is [told](super::Reader::gaps).
    Earliest,
}

impl OnGap {
    /// `fail` or `earliest`.
    pub fn read(value: &str) -> Result<Self> {
        match value.to_ascii_lowercase().as_str() {
            "fail" => Ok(Self::Fail),
            "earliest" => Ok(Self::Earliest),
            _ => Err(Error::source(format!(
                "\"on_gap\" is \"fail\" or \"earliest\", not \"{value}\""
            ))),
        }
    }
}

/// Messages that are gone.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Gap {
    /// The topic.
    pub topic: String,
    /// The partition.
    pub partition: i32,
    /// The offset that was to be read.
    pub wanted: i64,
    /// The offset of the first message that there is.
    pub first: i64,
}

impl fmt::Display for Gap {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { topic, partition, wanted, first } = self;
        write!(to, "the messages {wanted} to {} of \"{topic}/{partition}\" are gone", first - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_start_is_a_word_a_time_or_offsets() {
        let offsets = |offsets: &[(i32, i64)]| Start::Offsets(offsets.iter().copied().collect());
        for (value, expected) in [
            ("earliest", Start::Earliest),
            ("LATEST", Start::Latest),
            ("{\"timestamp\": 1700000000000}", Start::Timestamp(1_700_000_000_000)),
            ("{\"offsets\": [5, 0]}", offsets(&[(0, 5), (1, 0)])),
            ("{\"offsets\": {\"3\": 9}}", offsets(&[(3, 9)])),
        ] {
            assert_eq!(Start::read(value).unwrap(), expected, "{value}");
        }
        for value in [
            "",
            "first",
            "{}",
            "{\"timestamp\": -1}",
            "{\"timestamp\": \"now\"}",
            "{\"offsets\": [-1]}",
            "{\"offsets\": {\"x\": 1}}",
            "{\"offsets\": 3}",
            "{\"timestamp\": 1, \"offsets\": []}",
        ] {
            let error = Start::read(value).unwrap_err().to_string();
            assert!(error.contains("\"start_from\" is"), "{error}");
        }
    }
}
