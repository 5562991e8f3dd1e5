//! Changes of a view, encoded into messages.
//!
//! An [`Encoder`] takes the changes of one epoch after the other, rows with weights, and hands on [`Outgoing`] messages of JSON. A view
//! whose rows have a key can have one message a key and epoch: it is known at the end of the epoch what became of each key, so
//! the encoder holds the rows of one epoch until then. Equal epochs have equal messages in equal order.

mod rows;

use std::collections::BTreeMap;

use alluvium::{Error, Result};
use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;

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

/// Makes messages of changes.
pub struct Encoder {
    envelope: Envelope,
    schema: SchemaRef,
    /// The columns of the key.
    key: Vec<usize>,
    /// What becomes of each key in the current epoch, by its text.
    keys: BTreeMap<Vec<u8>, Row>,
    /// A message under construction.
    message: Vec<u8>,
}

/// The row of a key before and after an epoch, as JSON.
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
    pub fn new(schema: &SchemaRef, envelope: Envelope, key: &[usize]) -> Result<Self> {
        if envelope == Envelope::Upsert && key.is_empty() {
            let message = "upserts need a key: name the columns by which rows are replaced";
            return Err(Error::source(message));
        }
        if envelope == Envelope::Changes {
            for name in ["epoch", "weight"] {
                if schema.index_of(name).is_ok() {
                    return Err(Error::source(format!(
                        "changes have a column \"{name}\" of their own; name the view's column otherwise"
                    )));
                }
            }
        }
        Ok(Self {
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
        let values = Lines::of(rows)?;
        let keys = match self.key.is_empty() {
            true => None,
            false => Some(Lines::of(&rows.project(&self.key)?)?),
        };
        for (row, &weight) in weights.iter().enumerate() {
            let (key, value) = (keys.as_ref().map(|keys| keys.line(row)), values.line(row));
            match (self.envelope, key) {
                (Envelope::Changes, key) => {
                    self.message.clear();
                    let head = format!("{{\"epoch\":{epoch},\"weight\":{weight}");
                    self.message.extend_from_slice(head.as_bytes());
                    let inside = value.strip_prefix(b"{").unwrap_or(value);
                    if inside != b"}" {
                        self.message.push(b',');
                    }
                    self.message.extend_from_slice(inside);
                    put(Outgoing { key, value: Some(&self.message) })?;
                }
                (_, Some(key)) => self.keep(key, value, weight)?,
                (_, None) => {
                    let row = match weight {
                        0.. => (None, Some(value)),
                        _ => (Some(value), None),
                    };
                    debezium(&mut self.message, epoch, row);
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
                debezium(&mut self.message, epoch, (before.as_deref(), after.as_deref()));
                put(Outgoing { key, value: Some(&self.message) })?;
                if after.is_some() {
                    continue;
                }
            }
            put(Outgoing { key, value: after.as_deref() })?;
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
        let (columns, key) = (columns.collect::<Vec<_>>().join(", "), String::from_utf8_lossy(key));
        Error::source(format!(
            "several rows have the key {key}; the columns {columns} do not tell rows apart, so they are no key to write by"
        ))
    }
}

/// A change of Debezium's.
fn debezium(to: &mut Vec<u8>, epoch: u64, (before, after): (Option<&[u8]>, Option<&[u8]>)) {
    let operation = match (before, after) {
        (None, _) => "c",
        (_, None) => "d",
        _ => "u",
    };
    to.clear();
    to.extend_from_slice(b"{\"before\":");
    to.extend_from_slice(before.unwrap_or(b"null"));
    to.extend_from_slice(b",\"after\":");
    to.extend_from_slice(after.unwrap_or(b"null"));
    let rest = format!(",\"op\":\"{operation}\",\"source\":{{\"epoch\":{epoch}}}}}");
    to.extend_from_slice(rest.as_bytes());
}

#[cfg(test)]
mod tests;
