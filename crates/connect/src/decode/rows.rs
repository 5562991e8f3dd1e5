//! Rows of messages, while they are decoded and afterwards.

use std::io;
use std::path::Path;

use alluvium::{Error, Portion, Result};
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;

/// What a row is there for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// The row is added.
    Insert,
    /// A row of the same values, or of the same key if the table has one, is removed.
    Delete,
    /// The row takes the place of the one of its key, if there is one.
    Upsert,
}

/// Rows of messages.
#[derive(Clone, Debug)]
pub struct Decoded {
    /// The rows, and the messages that were refused, each with its topic, partition and offset as its place.
    pub portion: Portion,
    /// The operation of each row.
    pub operations: Vec<Operation>,
    /// The message that each refusal is of.
    pub refused: Vec<usize>,
}

/// The columns of a table, and which messages have them.
#[derive(Clone, Debug)]
pub struct Shape {
    /// The columns wanted.
    pub schema: SchemaRef,
    /// For each of them whether it has a DEFAULT other than NULL.
    pub has_default: Vec<bool>,
    /// Those of the PRIMARY KEY, in order.
    pub key: Vec<usize>,
}

impl Shape {
    pub(super) fn is_key(&self, name: &str) -> bool {
        self.key.iter().any(|&column| self.schema.field(column).name() == name)
    }

    /// The columns of the keys of messages, and whether rows have them from there: those that are named, or else those of the key.
    ///
    /// Fails if a column is not there.
    pub(super) fn key_of_messages(
        &self,
        named: &[String],
        columns: &SchemaRef,
    ) -> Result<(Vec<String>, bool)> {
        let own = self.key.iter().map(|&at| self.schema.field(at).name().clone());
        let key = if named.is_empty() { own.collect() } else { named.to_vec() };
        match key.iter().find(|name| columns.index_of(name).is_err()) {
            Some(name) => Err(Error::source(format!(
                "KEY_COLUMNS names \"{name}\", which is not a column of the table"
            ))),
            None => Ok((key, !named.is_empty())),
        }
    }

    /// What adds a row to the table.
    pub(super) fn put(&self) -> Operation {
        if self.key.is_empty() { Operation::Insert } else { Operation::Upsert }
    }
}

/// Candidates for rows: those that were decoded, and those that were refused, by their numbers.
pub(super) struct Candidates {
    /// Of all candidates: the message each is of, and its operation.
    pub of: Vec<(usize, Operation)>,
    /// The rows that were decoded. The line of a refusal is the number of the candidate.
    pub portion: Portion,
    /// The messages that are refused otherwise, with their problems.
    pub refused: Vec<(usize, String)>,
}

/// Rows of the right types could not be put together.
pub(super) fn failed(topic: &Path, error: ArrowError) -> Error {
    crate::input::failed("decode", topic, &io::Error::other(error))
}
