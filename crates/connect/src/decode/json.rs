//! Messages that are objects of JSON, in envelopes.

use std::path::Path;

use alluvium::SourceRequest;
use arrow::error::ArrowError;

use super::key::Key;
use super::messages::{Message, Messages};
use super::options::Envelope;
use super::rows::{Candidates, Operation};
use crate::json::{Batch, Decoder, Scanner, name};

/// The objects of rows.
pub(super) struct Objects {
    decoder: Decoder,
    envelope: Envelope,
    key: Key,
    /// Whether rows have columns of the key, and not only deletions.
    reads_key: bool,
    put: Operation,
    scanner: Scanner,
    /// An object that is put together.
    joined: Vec<u8>,
}

/// The objects of some messages.
#[derive(Default)]
struct Found {
    batch: Batch,
    of: Vec<(usize, Operation)>,
}

impl Objects {
    pub(super) fn new(
        request: &SourceRequest,
        envelope: Envelope,
        (key, reads_key): (Vec<String>, bool),
        put: Operation,
    ) -> Result<Self, ArrowError> {
        let decoder = Decoder::new(request, None)?;
        let (key, scanner, joined) = (Key::new(key), Scanner::default(), Vec::new());
        Ok(Self { decoder, envelope, key, reads_key, put, scanner, joined })
    }

    pub(super) fn decode(
        &mut self,
        messages: &Messages,
        topic: &Path,
    ) -> Result<Candidates, ArrowError> {
        let (mut found, mut refused) = (Found::default(), Vec::new());
        for (index, message) in messages.iter().enumerate() {
            let taken = match self.envelope {
                Envelope::Raw => self.take_raw(index, message, &mut found),
                Envelope::InsertDelete => self.take_insert_delete(index, message, &mut found),
                Envelope::Debezium => self.take_debezium(index, message, &mut found),
            };
            if let Err(problem) = taken {
                refused.push((index, problem));
            }
        }
        let Found { batch, of } = found;
        Ok(Candidates { of, portion: self.decoder.decode(batch, topic)?, refused })
    }

    fn take_raw(
        &mut self,
        index: usize,
        message: Message<'_>,
        to: &mut Found,
    ) -> Result<(), String> {
        match message.value {
            Some(value) => self.take(index, (value, message.key), self.put, to),
            None => self.delete_key(index, message.key, to),
        }
    }

    fn take_insert_delete(
        &mut self,
        index: usize,
        message: Message<'_>,
        to: &mut Found,
    ) -> Result<(), String> {
        const WRONG: &str = "the message is not {\"insert\": {…}} or {\"delete\": {…}}";
        let Some(value) = message.value else {
            return self.delete_key(index, message.key, to);
        };
        let text = value.trim_ascii();
        let members = self.scanner.members(text).ok_or(WRONG)?;
        let mut rows = [None; 2];
        for (at, member) in members.iter().enumerate() {
            let operation = match name(&text[member.name()]).as_deref() {
                Some("insert") => self.put,
                Some("delete") => Operation::Delete,
                _ => return Err(WRONG.to_owned()),
            };
            *rows.get_mut(at).ok_or(WRONG)? = Some((operation, text[member.value()].trim_ascii()));
        }
        if rows[0].is_none() {
            return Err(WRONG.to_owned());
        }
        for (operation, row) in rows.into_iter().flatten().filter(|(_, row)| *row != b"null") {
            self.take(index, (row, message.key), operation, to)?;
        }
        Ok(())
    }

    fn take_debezium(
        &mut self,
        index: usize,
        message: Message<'_>,
        to: &mut Found,
    ) -> Result<(), String> {
        // After a deletion comes a tombstone, for topics that keep the last message of a key.
        let Some(value) = message.value else { return Ok(()) };
        let change =
            self.change(value.trim_ascii()).ok_or("the message is no change of Debezium's")?;
        let is_keyed = self.put == Operation::Upsert;
        match (change.operation, change.before, change.after) {
            (b"\"c\"" | b"\"r\"", _, Some(after)) => {
                self.take(index, (after, message.key), self.put, to)
            }
            (b"\"u\"", before, Some(after)) => {
                match before {
                    Some(before) => {
                        self.take(index, (before, message.key), Operation::Delete, to)?;
                    }
                    None if is_keyed => {}
                    None => return Err(no_before("an update")),
                }
                self.take(index, (after, message.key), self.put, to)
            }
            (b"\"d\"", Some(before), _) => {
                self.take(index, (before, message.key), Operation::Delete, to)
            }
            (b"\"d\"", None, _) if is_keyed => self.delete_key(index, message.key, to),
            (b"\"d\"", None, _) => Err(no_before("a deletion")),
            (b"\"t\"", ..) => Err(TRUNCATED.to_owned()),
            // A message of the application's own.
            (b"\"m\"", ..) => Ok(()),
            (operation, ..) => Err(no_row(&String::from_utf8_lossy(operation))),
        }
    }

    /// The change that an object is, in `payload` or not.
    fn change<'a>(&mut self, text: &'a [u8]) -> Option<Change<'a>> {
        let change = Change::of(text, &mut self.scanner)?;
        match change.payload {
            Some(payload) => Change::of(payload, &mut self.scanner),
            None => Some(change),
        }
        .filter(|change| !change.operation.is_empty())
    }

    /// Takes in an object as a row, with columns of the key if it has some.
    fn take(
        &mut self,
        index: usize,
        (object, key): (&[u8], Option<&[u8]>),
        operation: Operation,
        to: &mut Found,
    ) -> Result<(), String> {
        if !self.reads_key {
            return to.add(index, object, operation);
        }
        let object = object.trim_ascii();
        let inside = object.strip_prefix(b"{").and_then(|object| object.strip_suffix(b"}"));
        let inside = inside.ok_or(NO_OBJECT)?;
        self.joined.clear();
        self.joined.push(b'{');
        self.joined.extend_from_slice(inside);
        if !inside.trim_ascii().is_empty() {
            self.joined.push(b',');
        }
        self.key.put(key, &mut self.joined)?;
        self.joined.push(b'}');
        to.add(index, &self.joined, operation)
    }

    /// Takes in a deletion of the row with a key.
    fn delete_key(
        &mut self,
        index: usize,
        key: Option<&[u8]>,
        to: &mut Found,
    ) -> Result<(), String> {
        if self.put != Operation::Upsert || self.key.is_empty() {
            return Err(NO_KEY.to_owned());
        }
        self.joined.clear();
        self.joined.push(b'{');
        self.key.put(key, &mut self.joined)?;
        self.joined.push(b'}');
        to.add(index, &self.joined, Operation::Delete)
    }
}

const NO_OBJECT: &str = "the message is not one JSON object";

/// The problem of a message that deletes its key, where there are none.
pub(super) const NO_KEY: &str = "the message deletes its key, and the table has no PRIMARY KEY";

/// The problem of a change that removes all rows.
pub(super) const TRUNCATED: &str = "the table was truncated upstream, which is not done here";

/// The problem of a change without the row of its operation.
pub(super) fn no_row(operation: &str) -> String {
    format!("the message has the \"op\" {operation}, and no row that goes with it")
}

/// The problem of a change without the row before it, where that is needed.
pub(super) fn no_before(what: &str) -> String {
    format!(
        "{what} has no \"before\", and the table has no PRIMARY KEY; give it one, or set REPLICA IDENTITY FULL upstream"
    )
}

impl Found {
    fn add(&mut self, message: usize, object: &[u8], operation: Operation) -> Result<(), String> {
        match self.batch.add(object, self.of.len() as u64) {
            Ok(()) => {
                self.of.push((message, operation));
                Ok(())
            }
            Err(None) => Err(NO_OBJECT.to_owned()),
            Err(Some(problem)) => Err(problem.to_owned()),
        }
    }
}

/// A change of Debezium's, as far as it is in an object.
struct Change<'a> {
    payload: Option<&'a [u8]>,
    /// As JSON; empty if there is none.
    operation: &'a [u8],
    before: Option<&'a [u8]>,
    after: Option<&'a [u8]>,
}

impl<'a> Change<'a> {
    fn of(text: &'a [u8], scanner: &mut Scanner) -> Option<Self> {
        let mut change = Self { payload: None, operation: &[], before: None, after: None };
        for member in scanner.members(text)? {
            let value = text[member.value()].trim_ascii();
            let value = Some(value).filter(|value| *value != b"null");
            match name(&text[member.name()]).as_deref() {
                Some("payload") => change.payload = value,
                Some("op") => change.operation = value.unwrap_or_default(),
                Some("before") => change.before = value,
                Some("after") => change.after = value,
                _ => {}
            }
        }
        Some(change)
    }
}
