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
mod rows;

use std::path::Path;
use std::sync::Arc;

use alluvium::{Live, Result, SourceRequest};
use arrow::datatypes::{FieldRef, Schema};

#[cfg(feature = "avro")]
pub use avro::SchemaSource;
pub use messages::{Message, Messages};
pub use metadata::Metadata;
pub use options::{Envelope, Format};
use rows::failed;
pub use rows::{Decoded, Operation, Shape};

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

#[cfg(test)]
mod tests;
