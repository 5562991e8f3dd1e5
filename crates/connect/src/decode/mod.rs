//! Messages, decoded into rows with operations.
//!
//! A [`Decoder`] takes [`Messages`] and makes [`Decoded`] rows of them, typed, a batch at a time. [`json`] finds the objects of
//! rows in their envelopes, with members of the [`key`]; they become rows as those of JSON files do. [`csv`] and [`raw`] are
//! for messages of one record, and of one value. [`finish`] puts rows of all formats together: with [`metadata`], without
//! messages that are wrong in any part, and with the place of each of those.
//!
//! - A message is taken as a whole or refused as a whole, for its first problem.
//! - A table with a PRIMARY KEY gets upserts and deletions by key, of which columns that are not of the key are of no
//!   matter. Any other gets insertions and deletions of whole rows.

#[cfg(feature = "avro")]
mod avro;
mod csv;
mod finish;
mod json;
mod key;
mod messages;
mod metadata;
mod options;
mod raw;

use std::io;
use std::path::Path;
use std::sync::Arc;

use alluvium::{Error, Live, Portion, Result, SourceRequest};
use arrow::datatypes::{FieldRef, Schema, SchemaRef};
use arrow::error::ArrowError;

#[cfg(feature = "avro")]
pub use avro::SchemaSource;
pub use messages::{Message, Messages};
pub use metadata::Metadata;
pub use options::{Envelope, Format};

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
    fn is_key(&self, name: &str) -> bool {
        self.key.iter().any(|&column| self.schema.field(column).name() == name)
    }

    /// The columns of the keys of messages, and whether rows have them from there: those that are named, or else those of the key.
    ///
    /// Fails if a column is not there.
    fn key_of_messages(
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
    fn put(&self) -> Operation {
        if self.key.is_empty() { Operation::Insert } else { Operation::Upsert }
    }
}

/// Makes rows of messages.
pub struct Decoder {
    topic: String,
    shape: Shape,
    /// The columns that are metadata.
    metadata: Vec<(FieldRef, Metadata)>,
    reader: Reader,
}

enum Reader {
    #[cfg(feature = "avro")]
    Avro(Box<avro::Records>),
    Json(json::Objects),
    Csv(csv::Lines),
    Raw(raw::Values),
}

/// Candidates for rows: those that were decoded, and those that were refused, by their numbers.
struct Candidates {
    /// Of all candidates: the message each is of, and its operation.
    of: Vec<(usize, Operation)>,
    /// The rows that were decoded. The line of a refusal is the number of the candidate.
    portion: Portion,
    /// The messages that are refused otherwise, with their problems.
    refused: Vec<(usize, String)>,
}

impl Decoder {
    /// For the messages of a topic.
    ///
    /// # Errors
    /// If the columns do not fit the format.
    pub fn new(topic: &str, shape: &Shape, format: &Format) -> Result<Self> {
        let failed = |error| failed(Path::new(topic), error);
        let metadata = format.metadata_of(&shape.schema)?;
        let is_metadata = |name: &str| metadata.iter().any(|(field, _)| field.name() == name);
        // Whether a deletion has values in columns that are not of the key is looked at with its operation known.
        let field = |field: &FieldRef| match shape.key.is_empty() || shape.is_key(field.name()) {
            true => field.clone(),
            false => Arc::new(field.as_ref().clone().with_nullable(true)),
        };
        let columns = shape.schema.fields().iter().zip(&shape.has_default);
        let columns = columns.filter(|(field, _)| !is_metadata(field.name()));
        let (fields, has_default): (Vec<_>, Vec<_>) =
            columns.map(|(column, has_default)| (field(column), has_default)).unzip();
        let mut request = SourceRequest::new(topic, Arc::new(Schema::new(fields)));
        request.has_default = has_default;
        let reader = match format {
            #[cfg(feature = "avro")]
            Format::Avro { envelope, key_columns, schemas, .. } => {
                let key = shape.key_of_messages(key_columns, &request.schema)?;
                let records = avro::Records::new(&request, schemas, *envelope, key, shape.put())?;
                Reader::Avro(Box::new(records))
            }
            Format::Json { envelope, key_columns, .. } => {
                let key = shape.key_of_messages(key_columns, &request.schema)?;
                let objects = json::Objects::new(&request, *envelope, key, shape.put());
                Reader::Json(objects.map_err(failed)?)
            }
            Format::Csv { options, .. } => {
                Reader::Csv(csv::Lines::new(&request, options, shape.put())?)
            }
            Format::Raw { .. } => Reader::Raw(raw::Values::new(&request, shape.put())?),
        };
        Ok(Self { topic: topic.to_owned(), shape: shape.clone(), metadata, reader })
    }

    /// The rows of some messages, in their order.
    ///
    /// Waits for a registry of schemas as long as it takes, or a minute if it is not live.
    ///
    /// # Errors
    /// If rows of the right types cannot be put together, a registry refuses us, or `live` is over. Whatever is wrong with a message is
    /// no error: it is refused.
    pub fn decode(&mut self, messages: &Messages, live: Option<&Live>) -> Result<Decoded> {
        let topic = Path::new(&self.topic);
        let failed = |error| failed(topic, error);
        let candidates = match &mut self.reader {
            #[cfg(feature = "avro")]
            Reader::Avro(records) => records.decode(messages, topic, live)?,
            Reader::Json(objects) => objects.decode(messages, topic).map_err(failed)?,
            Reader::Csv(lines) => lines.decode(messages, topic).map_err(failed)?,
            Reader::Raw(values) => values.decode(messages, topic).map_err(failed)?,
        };
        let of = (self.topic.as_str(), &self.shape, self.metadata.as_slice());
        finish::finish(candidates, messages, of).map_err(failed)
    }
}

fn failed(topic: &Path, error: ArrowError) -> Error {
    crate::input::failed("decode", topic, &io::Error::other(error))
}

#[cfg(test)]
mod tests;
