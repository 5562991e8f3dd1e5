//! Columns that are not of a message's value, but tell of the message.

use std::sync::Arc;

use alluvium::{Error, Result};
use arrow::array::{
    ArrayRef, BinaryArray, Int32Array, Int64Array, StringArray, TimestampMillisecondArray,
};
use arrow::compute::cast;
use arrow::datatypes::{DataType, FieldRef};
use arrow::error::ArrowError;
use serde_json::{Map, Value};

use super::messages::Messages;

/// What a column tells of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Metadata {
    /// The key, as text or bytes.
    Key,
    /// The headers, as an object of JSON.
    Headers,
    /// When it was made.
    Timestamp,
    /// The topic it is in.
    Topic,
    /// The partition it is in.
    Partition,
    /// Its place in the partition.
    Offset,
}

impl Metadata {
    /// An object of JSON: what each column tells.
    pub(super) fn read(value: &str) -> Result<Vec<(String, Self)>> {
        let wrong = || {
            Error::source(format!(
                "METADATA is an object with a column and one of key, headers, timestamp, topic, partition and offset, such as \
                 {{\"at\": \"timestamp\"}}, not {value}"
            ))
        };
        let columns: Map<String, Value> = serde_json::from_str(value).map_err(|_| wrong())?;
        let column = |(name, what): (String, Value)| {
            let what = match what.as_str().unwrap_or_default().to_ascii_lowercase().as_str() {
                "key" => Self::Key,
                "headers" => Self::Headers,
                "timestamp" => Self::Timestamp,
                "topic" => Self::Topic,
                "partition" => Self::Partition,
                "offset" => Self::Offset,
                _ => return Err(wrong()),
            };
            Ok((name, what))
        };
        columns.into_iter().map(column).collect()
    }

    /// Why a message has no such value in a column, if it has none.
    pub(super) fn problem(
        self,
        field: &FieldRef,
        messages: &Messages,
        message: usize,
    ) -> Option<String> {
        let name = field.name();
        let found = messages.get(message);
        let is_missing = match self {
            Self::Key => found.key.is_none(),
            Self::Timestamp => found.timestamp.is_none(),
            _ => false,
        };
        let key = found.key.unwrap_or_default();
        if self == Self::Key && *field.data_type() == DataType::Utf8 && str::from_utf8(key).is_err()
        {
            return Some(format!("the key is not UTF-8 (column {name})"));
        }
        (is_missing && !field.is_nullable())
            .then(|| format!("there is no value (column {name} is NOT NULL)"))
    }

    /// The values of a column for some messages.
    pub(super) fn column(
        self,
        field: &FieldRef,
        topic: &str,
        messages: &Messages,
        of: &[usize],
    ) -> std::result::Result<ArrayRef, ArrowError> {
        let all = of.iter().map(|&message| messages.get(message));
        let values: ArrayRef = match self {
            Self::Key => Arc::new(all.map(|message| message.key).collect::<BinaryArray>()),
            Self::Headers => {
                let texts = of.iter().map(|&message| Some(headers(messages, message)));
                Arc::new(texts.collect::<StringArray>())
            }
            Self::Timestamp => {
                let times = all.map(|message| message.timestamp);
                Arc::new(times.collect::<TimestampMillisecondArray>())
            }
            Self::Topic => Arc::new(all.map(|_| Some(topic)).collect::<StringArray>()),
            Self::Partition => {
                Arc::new(all.map(|message| message.partition).collect::<Int32Array>())
            }
            Self::Offset => Arc::new(all.map(|message| message.offset).collect::<Int64Array>()),
        };
        cast(&values, field.data_type())
    }
}

/// The headers of a message as JSON; what is not UTF-8 is `\x` and hexadecimal digits.
fn headers(messages: &Messages, message: usize) -> String {
    let text = |bytes: &[u8]| match str::from_utf8(bytes) {
        Ok(text) => text.to_owned(),
        Err(_) => {
            let digits = bytes.iter().map(|byte| format!("{byte:02x}"));
            format!("\\x{}", digits.collect::<String>())
        }
    };
    let headers = messages.headers(message);
    let headers = headers.map(|(name, value)| {
        (name.to_owned(), value.map_or(Value::Null, |value| Value::String(text(value))))
    });
    Value::Object(headers.collect()).to_string()
}
