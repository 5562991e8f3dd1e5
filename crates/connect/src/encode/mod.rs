//! Changes of a view, encoded into messages.
//!
//! An [`Encoder`] takes the changes of one epoch after the other, rows with weights, and hands on [`Outgoing`] messages of JSON or Avro. A view
//! whose rows have a key can have one message a key and epoch: it is known at the end of the epoch what became of each key, so
//! the encoder holds the rows of one epoch until then. Equal epochs have equal messages in equal order.

#[cfg(feature = "avro")]
mod avro;
mod json;
mod options;
mod rows;

use std::collections::BTreeMap;

use alluvium::{Error, Result};
use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;

#[cfg(feature = "avro")]
pub use avro::Avro;
pub use options::Options;
use rows::Lines;

/// A message to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outgoing<'a> {
    /// The key; messages of one key are in one partition.
    pub key: Option<&'a [u8]>,
    /// The value; a message without one deletes the key.
    pub value: Option<&'a [u8]>,
}

/// What messages are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Envelope {
    /// Each change: the row's columns after `epoch` and `weight`.
    Changes,
    /// The row that a key has after an epoch, or a tombstone if it has none.
    Upsert,
    /// A change of Debezium's: `{"op": "u", "before": {…}, "after": {…}}`, and a tombstone after a deletion. Without a key, an update is a
    /// deletion and an insertion.
    Debezium,
}

impl Envelope {
    /// Fails if it needs a key and there is none, or has a name that a column has.
    pub fn check(self, schema: &SchemaRef, key: &[usize]) -> Result<()> {
        if self == Self::Upsert && key.is_empty() {
            let message = "upserts need a key: name the columns by which rows are replaced";
            return Err(Error::source(message));
        }
        if self == Self::Changes {
            for name in ["epoch", "weight"] {
                if schema.index_of(name).is_ok() {
                    return Err(Error::source(format!(
                        "changes have a column \"{name}\" of their own; name the view's column otherwise"
                    )));
                }
            }
        }
        Ok(())
    }
}

/// How rows and changes are spelt.
pub enum Spelling {
    /// As records of Avro.
    #[cfg(feature = "avro")]
    Avro(Box<Avro>),
    /// As objects of JSON.
    Json,
}

/// A change, with rows as they are spelt.
enum Change<'a> {
    /// A row that is added so many times, or taken away.
    Weighted { epoch: u64, weight: i64, row: &'a [u8] },
    /// One of Debezium's.
    Debezium {
        epoch: u64,
        before: Option<&'a [u8]>,
        after: Option<&'a [u8]>,
        operation: &'static str,
    },
}

/// Makes messages of changes.
pub struct Encoder {
    spelling: Spelling,
    envelope: Envelope,
    schema: SchemaRef,
    /// The columns of the key.
    key: Vec<usize>,
    /// What becomes of each key in the current epoch, by its text.
    keys: BTreeMap<Vec<u8>, Row>,
    /// A message under construction.
    message: Vec<u8>,
}

/// The row of a key before and after an epoch, as it is spelt.
#[derive(Default)]
struct Row {
    before: Option<Vec<u8>>,
    after: Option<Vec<u8>>,
}

impl Encoder {
    /// For rows of these columns, some of which may be a key.
    ///
    /// # Errors
    /// If the envelope needs a key and there is none, or has a name that a column has.
    pub fn new(
        schema: &SchemaRef,
        envelope: Envelope,
        key: &[usize],
        spelling: Spelling,
    ) -> Result<Self> {
        envelope.check(schema, key)?;
        Ok(Self {
            spelling,
            envelope,
            schema: schema.clone(),
            key: key.to_vec(),
            keys: BTreeMap::new(),
            message: Vec::new(),
        })
    }

    /// Takes changes of an epoch in: how many times each row is added, or taken away if that is less than 0.
    ///
    /// # Errors
    /// If two rows have one key, a value has no JSON, or a message is not taken.
    pub fn write(
        &mut self,
        epoch: u64,
        rows: &RecordBatch,
        weights: &[i64],
        put: &mut dyn FnMut(Outgoing<'_>) -> Result<()>,
    ) -> Result<()> {
        let values = self.spelling.rows(rows)?;
        let keys = match self.key.is_empty() {
            true => None,
            false => Some(self.spelling.keys(&rows.project(&self.key)?)?),
        };
        for (row, &weight) in weights.iter().enumerate() {
            let (key, value) = (keys.as_ref().map(|keys| keys.line(row)), values.line(row));
            match (self.envelope, key) {
                (Envelope::Changes, key) => {
                    let change = Change::Weighted { epoch, weight, row: value };
                    self.spelling.change(change, &mut self.message);
                    put(Outgoing { key, value: Some(&self.message) })?;
                }
                (_, Some(key)) => self.keep(key, value, weight)?,
                (_, None) => {
                    let row = match weight {
                        0.. => (None, Some(value)),
                        _ => (Some(value), None),
                    };
                    self.spelling.change(debezium(epoch, row), &mut self.message);
                    for _ in 0..weight.unsigned_abs() {
                        put(Outgoing { key: None, value: Some(&self.message) })?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Ends an epoch: hands on what became of its keys, in their order.
    ///
    /// # Errors
    /// If a message is not taken.
    pub fn finish(
        &mut self,
        epoch: u64,
        put: &mut dyn FnMut(Outgoing<'_>) -> Result<()>,
    ) -> Result<()> {
        for (key, row) in std::mem::take(&mut self.keys) {
            let Row { before, after } = &row;
            let key = Some(key.as_slice());
            if before == after {
                continue;
            }
            if self.envelope == Envelope::Debezium {
                let change = debezium(epoch, (before.as_deref(), after.as_deref()));
                self.spelling.change(change, &mut self.message);
                put(Outgoing { key, value: Some(&self.message) })?;
                if after.is_some() {
                    continue;
                }
            }
            let row = after.as_deref().map(|row| self.spelling.row(row, &mut self.message));
            put(Outgoing { key, value: row })?;
        }
        Ok(())
    }

    /// Forgets the changes of an epoch that did not end.
    pub fn clear(&mut self) {
        self.keys.clear();
    }

    fn keep(&mut self, key: &[u8], value: &[u8], weight: i64) -> Result<()> {
        let row = match self.keys.get_mut(key) {
            Some(row) => row,
            None => self.keys.entry(key.to_vec()).or_default(),
        };
        let place = match weight {
            1 => &mut row.after,
            -1 => &mut row.before,
            _ => return Err(self.not_unique(key)),
        };
        match place.replace(value.to_vec()) {
            None => Ok(()),
            Some(_) => Err(self.not_unique(key)),
        }
    }

    fn not_unique(&self, key: &[u8]) -> Error {
        let columns = self.key.iter().map(|&column| self.schema.field(column).name().as_str());
        let columns = columns.collect::<Vec<_>>().join(", ");
        let key = match self.spelling {
            Spelling::Json => format!("the key {}", String::from_utf8_lossy(key)),
            #[cfg(feature = "avro")]
            Spelling::Avro(_) => "one key".to_owned(),
        };
        Error::source(format!(
            "several rows have {key}; the columns {columns} do not tell rows apart, so they are no key to write by"
        ))
    }
}

impl Spelling {
    fn rows(&self, rows: &RecordBatch) -> Result<Lines> {
        match self {
            #[cfg(feature = "avro")]
            Self::Avro(avro) => avro.rows(rows),
            Self::Json => Lines::of(rows),
        }
    }

    fn keys(&self, keys: &RecordBatch) -> Result<Lines> {
        match self {
            #[cfg(feature = "avro")]
            Self::Avro(avro) => avro.keys(keys),
            Self::Json => Lines::of(keys),
        }
    }

    /// A message that is a row.
    fn row<'a>(&self, row: &'a [u8], to: &'a mut Vec<u8>) -> &'a [u8] {
        match self {
            #[cfg(feature = "avro")]
            Self::Avro(avro) => avro.row(row, to),
            Self::Json => {
                to.clear();
                row
            }
        }
    }

    /// A message that is a change.
    fn change(&self, change: Change<'_>, to: &mut Vec<u8>) {
        match self {
            #[cfg(feature = "avro")]
            Self::Avro(avro) => avro.change(change, to),
            Self::Json => json::change(change, to),
        }
    }
}

/// What became of a row in an epoch, as Debezium has it.
fn debezium<'a>(epoch: u64, (before, after): (Option<&'a [u8]>, Option<&'a [u8]>)) -> Change<'a> {
    let operation = match (before, after) {
        (None, _) => "c",
        (_, None) => "d",
        _ => "u",
    };
    Change::Debezium { epoch, before, after, operation }
}

#[cfg(test)]
mod tests;
