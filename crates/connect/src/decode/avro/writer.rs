//! Messages that were written by one schema.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use arrow::array::RecordBatch;
use arrow_avro::reader::{Decoder, ReaderBuilder};
use arrow_avro::schema::{
    AvroSchema, CONFLUENT_MAGIC, Fingerprint, FingerprintAlgorithm, SchemaStore,
};

use super::schema::Record;

/// The identifier of the schema to the library: one with which few messages end.
const ID: u32 = 0xA55A_C33C;

/// What the library wants before a message.
const PREFIX: [u8; 5] = {
    let [a, b, c, d] = ID.to_be_bytes();
    [CONFLUENT_MAGIC[0], a, b, c, d]
};

/// The most rows of a batch: as many as there are messages.
const ALL: usize = u32::MAX as usize;

/// Decodes messages that were written by one schema.
pub(super) struct Writer {
    schema: Record,
    /// The fields that are decoded.
    wanted: Vec<usize>,
    decoder: Decoder,
}

/// The messages of a writer, decoded.
#[derive(Default)]
pub(super) struct Rows {
    /// The rows, in batches of the same columns.
    pub batches: Vec<RecordBatch>,
    /// Which message each row is of.
    pub of: Vec<usize>,
    /// The messages that are refused, with their problems.
    pub refused: BTreeMap<usize, String>,
}

impl Writer {
    /// Decodes those fields only that `is_wanted` says, if it says any.
    pub(super) fn new(schema: Record, is_wanted: impl Fn(&str) -> bool) -> Result<Self, String> {
        let fields = schema.fields.iter().enumerate();
        let mut wanted: Vec<usize> =
            fields.filter(|(_, name)| is_wanted(name)).map(|(field, _)| field).collect();
        let all: Vec<usize> = (0..schema.fields.len()).collect();
        if wanted.is_empty() {
            wanted.clone_from(&all);
        }
        // A field that is wanted may name a type that is defined in one that is not.
        let decoder = match decoder(&schema.text, &wanted, ALL) {
            Err(_) if wanted != all => {
                wanted = all;
                decoder(&schema.text, &wanted, ALL)?
            }
            built => built?,
        };
        Ok(Self { schema, wanted, decoder })
    }

    /// The schema.
    pub(super) fn schema(&self) -> &Record {
        &self.schema
    }

    /// Decodes messages, each with its number, of which some may be damaged: they are refused.
    ///
    /// Some damage is found when a message is taken in, and some when all are rows: then it is looked for by halves.
    pub(super) fn decode(&mut self, messages: &[(usize, &[u8])]) -> Result<Rows, String> {
        let mut rows = Rows::default();
        let mut left = vec![messages];
        while let Some(part) = left.pop() {
            match self.decode_part(part) {
                Ok(batch) => {
                    rows.batches.extend(batch);
                    rows.of.extend(part.iter().map(|(index, _)| *index));
                }
                Err((damaged, problem)) => {
                    // The decoder may have a part of a row.
                    self.decoder = decoder(&self.schema.text, &self.wanted, ALL)?;
                    let damaged = damaged.or((part.len() == 1).then_some(0));
                    let (before, after) = match damaged {
                        Some(at) => {
                            rows.refused.insert(part[at].0, problem);
                            (&part[..at], &part[at + 1..])
                        }
                        None => part.split_at(part.len() / 2),
                    };
                    left.extend([after, before].into_iter().filter(|part| !part.is_empty()));
                }
            }
        }
        Ok(rows)
    }

    /// Decodes messages. Fails for one, if it is known which.
    fn decode_part(
        &mut self,
        messages: &[(usize, &[u8])],
    ) -> Result<Option<RecordBatch>, (Option<usize>, String)> {
        for (at, (_, message)) in messages.iter().enumerate() {
            self.take(message).map_err(|problem| (Some(at), problem))?;
        }
        let decoder = &mut self.decoder;
        let batch = catch_unwind(AssertUnwindSafe(|| decoder.flush()));
        let batch = batch.map_err(|_| (None, DAMAGED.to_owned()))?;
        let batch = batch.map_err(|error| (None, error.to_string()))?;
        let rows = batch.as_ref().map_or(0, RecordBatch::num_rows);
        match rows == messages.len() {
            true => Ok(batch),
            false => Err((None, DAMAGED.to_owned())),
        }
    }

    /// Takes in a message.
    fn take(&mut self, message: &[u8]) -> Result<(), String> {
        // After a row the library looks for the prefix of another one. One that is in the message may be its own.
        if message.windows(PREFIX.len()).any(|part| part == PREFIX) {
            let mut only = decoder(&self.schema.text, &self.wanted, 1)?;
            put(&mut only, message)?;
        }
        put(&mut self.decoder, message)
    }
}

const DAMAGED: &str = "the message is damaged";

/// Decodes a message that is one row, or fails.
fn put(decoder: &mut Decoder, message: &[u8]) -> Result<(), String> {
    // The library is young, and trusts some of what a message says of itself.
    let taken = catch_unwind(AssertUnwindSafe(|| {
        decoder.decode(&PREFIX)?;
        decoder.decode(message)
    }));
    match taken.map_err(|_| DAMAGED.to_owned())?.map_err(|error| error.to_string())? {
        0 => Err("the message ends within the row".to_owned()),
        taken if taken < message.len() => {
            Err("the message is not one row of its schema".to_owned())
        }
        _ => Ok(()),
    }
}

fn decoder(schema: &str, wanted: &[usize], rows: usize) -> Result<Decoder, String> {
    let build = || {
        let mut store = SchemaStore::new_with_type(FingerprintAlgorithm::Id);
        store.set(Fingerprint::Id(ID), AvroSchema::new(schema.to_owned()))?;
        let builder = ReaderBuilder::new().with_writer_schema_store(store).with_batch_size(rows);
        builder.with_projection(wanted.to_vec()).build_decoder()
    };
    let built = catch_unwind(AssertUnwindSafe(build));
    built
        .map_err(|_| "the schema is not one of Avro".to_owned())?
        .map_err(|error| error.to_string())
}
