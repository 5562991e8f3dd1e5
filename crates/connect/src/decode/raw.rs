//! Messages that are values as they stand.

use std::path::Path;
use std::sync::Arc;

use alluvium::{Error, Result, SourceRequest};
use arrow::array::{ArrayRef, BinaryBuilder, StringBuilder};
use arrow::datatypes::{DataType, FieldRef};
use arrow::error::ArrowError;

use super::messages::Messages;
use super::rows::{Candidates, Operation};
use crate::fit::Fit;

/// The values of one column.
pub(super) struct Values {
    field: FieldRef,
    put: Operation,
}

impl Values {
    pub(super) fn new(request: &SourceRequest, put: Operation) -> Result<Self> {
        match request.schema.fields().as_ref() {
            [field] => Ok(Self { field: field.clone(), put }),
            fields => Err(Error::source(format!(
                "raw messages are for a table with one column beside those of METADATA, and this one has {}",
                fields.len()
            ))),
        }
    }

    pub(super) fn decode(
        &mut self,
        messages: &Messages,
        topic: &Path,
    ) -> std::result::Result<Candidates, ArrowError> {
        let (mut of, mut refused) = (Vec::with_capacity(messages.len()), Vec::new());
        let is_bytes = *self.field.data_type() == DataType::Binary;
        let (mut texts, mut bytes) = (StringBuilder::new(), BinaryBuilder::new());
        for (index, message) in messages.iter().enumerate() {
            let Some(value) = message.value else {
                refused.push((index, NO_VALUE.to_owned()));
                continue;
            };
            match (is_bytes, str::from_utf8(value)) {
                (true, _) => bytes.append_value(value),
                (false, Ok(text)) => texts.append_value(text),
                (false, Err(_)) => {
                    refused.push((index, "the message is not UTF-8".to_owned()));
                    continue;
                }
            }
            of.push((index, self.put));
        }
        let values: ArrayRef =
            if is_bytes { Arc::new(bytes.finish()) } else { Arc::new(texts.finish()) };
        let line = |row: usize| row as u64;
        let mut fit = Fit::new(topic, of.len(), &line);
        fit.column(&self.field, &values, None)?;
        Ok(Candidates { of, portion: fit.finish()?, refused })
    }
}

/// The problem of a tombstone in a format that has no keys.
pub(super) const NO_VALUE: &str =
    "the message has no value; one without a value deletes its key in messages of JSON";
