//! Messages of Avro, in envelopes.
//!
//! A message begins with the identifier of the [schema] that it was written by, which a registry knows, unless all are written
//! by one. Messages of one [`Writer`] become rows together, and all rows take the order of their messages in the end. The columns of
//! a row are those of the message's value, but for columns of its key.

mod assembly;
mod envelope;
mod fields;
mod schema;
mod schemas;
mod writer;

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::Arc;

use alluvium::{Error, Live, Portion, Result, SourceRequest};
use arrow::array::{ArrayRef, RecordBatch, StringArray};
use arrow::compute::concat_batches;
use arrow::datatypes::{Field, Schema};
use arrow::error::ArrowError;

use super::json::NO_KEY;
use super::messages::Messages;
use super::options::Envelope;
use super::raw::NO_VALUE;
use super::rows::{Candidates, Operation, failed};
use assembly::{Fitted, assemble};
use schemas::Schemas;
use writer::Writer;

pub use schemas::SchemaSource;

/// The rows of messages.
pub(super) struct Records {
    request: SourceRequest,
    schemas: Schemas,
    envelope: Envelope,
    /// The columns that messages are deleted by, and that rows have from the keys of messages if that is said.
    key: Vec<usize>,
    reads_key: bool,
    put: Operation,
    /// The writers of values and of keys, by the identifiers of their schemas.
    values: Writers,
    keys: Writers,
}

/// What decodes the messages of each schema, or why nothing does.
type Writers = HashMap<u32, std::result::Result<Writer, String>>;

/// The problems of messages, by their numbers.
type Problems = BTreeMap<usize, String>;

/// A part of each of some messages: their numbers, and the bytes.
type Parts<'a> = Vec<(usize, &'a [u8])>;

impl Records {
    pub(super) fn new(
        request: &SourceRequest,
        schemas: &SchemaSource,
        envelope: Envelope,
        (key, reads_key): (Vec<String>, bool),
        put: Operation,
    ) -> Result<Self> {
        if envelope == Envelope::InsertDelete {
            return Err(Error::source("UPDATE_FORMAT of messages of Avro is raw or debezium"));
        }
        let column = |name: &String| request.schema.index_of(name).ok();
        let key = key.iter().filter_map(column).collect();
        let request = request.clone();
        let (values, keys) = Default::default();
        let schemas = schemas.open()?;
        Ok(Self { request, schemas, envelope, key, reads_key, put, values, keys })
    }

    pub(super) fn decode(
        &mut self,
        messages: &Messages,
        topic: &Path,
        live: Option<&Live>,
    ) -> Result<Candidates> {
        let failed = |error| failed(topic, error);
        let mut problems = Problems::new();
        // The messages that delete their keys.
        let mut deleting = Vec::new();
        let mut values = Parts::new();
        for (index, message) in messages.iter().enumerate() {
            match message.value {
                Some(value) => values.push((index, value)),
                // After a deletion comes a tombstone, for topics that keep the last message of a key.
                None if self.envelope == Envelope::Debezium => {}
                None => deleting.push(index),
            }
        }
        let mut rows = Vec::new();
        for (id, parts) in self.by_schema(values, &mut problems) {
            let Some((batch, of)) = self.read_values(id, parts, &mut problems, live)? else {
                continue;
            };
            let fitted = self.fit_values(&batch, &of, topic, (&mut deleting, &mut problems));
            rows.extend(fitted.map_err(failed)?);
        }
        if !deleting.is_empty() && (self.put != Operation::Upsert || self.key.is_empty()) {
            let problem = if self.put == Operation::Upsert { NO_VALUE } else { NO_KEY };
            problems.extend(deleting.drain(..).map(|index| (index, problem.to_owned())));
        }
        let mut of: Vec<usize> = deleting.clone();
        if self.reads_key {
            of.extend(rows.iter().flat_map(|rows| rows.of.iter().map(|(index, _)| *index)));
            of.sort_unstable();
            of.dedup();
        }
        let keys = match of.is_empty() {
            true => Vec::new(),
            false => self.read_keys(messages, &of, topic, (&mut problems, live))?,
        };
        let (portion, of) =
            assemble(&self.request.schema, &rows, &keys, &deleting).map_err(failed)?;
        Ok(Candidates { of, portion, refused: problems.into_iter().collect() })
    }

    /// Parts of messages by the schemas that they were written by, without the identifiers of these.
    fn by_schema<'a>(&self, parts: Parts<'a>, problems: &mut Problems) -> BTreeMap<u32, Parts<'a>> {
        let mut groups = BTreeMap::<u32, Parts<'a>>::new();
        for (index, part) in parts {
            match self.schemas.split(part) {
                Some((id, body)) => groups.entry(id).or_default().push((index, body)),
                None => drop(problems.insert(index, NO_IDENTIFIER.to_owned())),
            }
        }
        groups
    }

    /// The rows of values of one schema, and the message that each is of.
    fn read_values(
        &mut self,
        id: u32,
        parts: Parts<'_>,
        problems: &mut Problems,
        live: Option<&Live>,
    ) -> Result<Option<(RecordBatch, Vec<usize>)>> {
        let Self { request, schemas, envelope, values, .. } = self;
        let is_wanted = |name: &str| match envelope {
            Envelope::Debezium => envelope::MEMBERS.contains(&name),
            _ => {
                request.schema.fields().iter().any(|field| field.name().eq_ignore_ascii_case(name))
            }
        };
        if !values.contains_key(&id)
            && let Some(writer) = schemas.writer(id, is_wanted, live)?
        {
            values.insert(id, writer);
        }
        Ok(read(id, values, parts, problems))
    }

    /// The rows of values that fit the table. Changes without rows are added to those that delete their keys.
    fn fit_values(
        &self,
        batch: &RecordBatch,
        of: &[usize],
        topic: &Path,
        (deleting, problems): (&mut Vec<usize>, &mut Problems),
    ) -> std::result::Result<Option<Fitted>, ArrowError> {
        let (batch, of) = match self.envelope {
            Envelope::Debezium => match envelope::open(batch, self.put) {
                Ok(changes) => {
                    deleting.extend(changes.keys.into_iter().map(|change| of[change]));
                    let refused = changes.refused.into_iter();
                    problems.extend(refused.map(|(change, problem)| (of[change], problem)));
                    let of =
                        changes.of.into_iter().map(|(change, operation)| (of[change], operation));
                    (changes.rows, of.collect())
                }
                Err(ArrowError::SchemaError(problem)) => {
                    problems.extend(of.iter().map(|&index| (index, problem.clone())));
                    return Ok(None);
                }
                Err(error) => return Err(error),
            },
            _ => (batch.clone(), of.iter().map(|&index| (index, self.put)).collect::<Vec<_>>()),
        };
        let of_key = |column: &usize| self.reads_key && self.key.contains(column);
        let columns = 0..self.request.schema.fields().len();
        let columns: Vec<usize> = columns.filter(|column| !of_key(column)).collect();
        self.fit(&batch, of, &columns, topic, problems)
    }

    /// The columns of the keys of some messages.
    fn read_keys(
        &mut self,
        messages: &Messages,
        of: &[usize],
        topic: &Path,
        (problems, live): (&mut Problems, Option<&Live>),
    ) -> Result<Vec<Fitted>> {
        let failed = |error| failed(topic, error);
        let (mut written, mut texts) = (Parts::new(), Parts::new());
        for &index in of {
            match messages.get(index).key {
                None => drop(problems.insert(index, "the message has no key".to_owned())),
                Some(key) if self.schemas.is_of_keys() && self.schemas.split(key).is_some() => {
                    written.push((index, key));
                }
                Some(key) => texts.push((index, key)),
            }
        }
        let mut keys = Vec::new();
        for (id, parts) in self.by_schema(written, problems) {
            if !self.keys.contains_key(&id)
                && let Some(writer) = self.schemas.writer(id, |_| true, live)?
            {
                self.keys.insert(id, writer);
            }
            let read = read(id, &mut self.keys, parts, problems);
            let Some((mut batch, of)) = read else { continue };
            let is_value = |writer: &Writer| writer.schema().is_value;
            if self.keys.get(&id).is_some_and(|writer| writer.as_ref().is_ok_and(is_value)) {
                match self.value(batch.column(0).clone()) {
                    Ok(value) => batch = value,
                    Err(problem) => {
                        problems.extend(of.into_iter().map(|index| (index, problem.clone())));
                        continue;
                    }
                }
            }
            keys.extend(self.fit_keys(&batch, of, topic, problems).map_err(failed)?);
        }
        let (of, texts): (Vec<usize>, Vec<&[u8]>) = texts.into_iter().unzip();
        let texts = texts.into_iter().map(|text| str::from_utf8(text).ok());
        let texts: ArrayRef = Arc::new(texts.collect::<StringArray>());
        match self.value(texts) {
            Ok(batch) => keys.extend(self.fit_keys(&batch, of, topic, problems).map_err(failed)?),
            Err(problem) => problems.extend(of.into_iter().map(|index| (index, problem.clone()))),
        }
        Ok(keys)
    }

    /// Keys that are values, as rows of the key's only column.
    fn value(&self, values: ArrayRef) -> std::result::Result<RecordBatch, String> {
        let [column] = self.key.as_slice() else {
            let names = self.key.iter().map(|&key| self.request.schema.field(key).name().as_str());
            let names = names.collect::<Vec<_>>().join(", ");
            return Err(format!("the key is not a record with the columns {names}"));
        };
        let name = self.request.schema.field(*column).name();
        let field = Field::new(name, values.data_type().clone(), true);
        RecordBatch::try_new(Arc::new(Schema::new(vec![field])), vec![values])
            .map_err(|error| error.to_string())
    }

    fn fit_keys(
        &self,
        batch: &RecordBatch,
        of: Vec<usize>,
        topic: &Path,
        problems: &mut Problems,
    ) -> std::result::Result<Option<Fitted>, ArrowError> {
        let of = of.into_iter().map(|index| (index, Operation::Delete)).collect();
        self.fit(batch, of, &self.key, topic, problems)
    }

    /// The rows that fit the columns, of which each is of a message.
    fn fit(
        &self,
        batch: &RecordBatch,
        mut of: Vec<(usize, Operation)>,
        columns: &[usize],
        topic: &Path,
        problems: &mut Problems,
    ) -> std::result::Result<Option<Fitted>, ArrowError> {
        let wanted = (&self.request, columns);
        if let Some(problem) = fields::problem(batch, wanted) {
            problems.extend(of.iter().map(|(index, _)| (*index, problem.clone())));
            return Ok(None);
        }
        let Portion { rows, refused, absent, .. } = fields::fit(batch, wanted, topic)?;
        if !refused.is_empty() {
            let mut is_row = vec![true; of.len()];
            for refusal in refused {
                let row = usize::try_from(refusal.line).unwrap_or(usize::MAX);
                is_row[row] = false;
                problems.entry(of[row].0).or_insert(refusal.message);
            }
            let mut is_row = is_row.into_iter();
            of.retain(|_| is_row.next() == Some(true));
        }
        Ok(Some(Fitted { rows, absent, of }))
    }
}

const NO_IDENTIFIER: &str = "the message does not begin with the identifier of a schema";

/// The rows of parts of messages of one schema, and the message that each is of.
fn read(
    id: u32,
    writers: &mut Writers,
    parts: Parts<'_>,
    problems: &mut Problems,
) -> Option<(RecordBatch, Vec<usize>)> {
    let all: Vec<usize> = parts.iter().map(|(index, _)| *index).collect();
    let decoded = match writers.get_mut(&id) {
        Some(Ok(writer)) => writer.decode(&parts),
        Some(Err(problem)) => Err(problem.clone()),
        None => Err(format!("there is no schema {id} in the registry")),
    };
    let rows = decoded.and_then(|rows| {
        let Some(first) = rows.batches.first() else { return Ok((None, rows.refused)) };
        let batch = match rows.batches.as_slice() {
            [only] => only.clone(),
            several => {
                concat_batches(&first.schema(), several).map_err(|error| error.to_string())?
            }
        };
        Ok((Some((batch, rows.of)), rows.refused))
    });
    match rows {
        Ok((rows, refused)) => {
            problems.extend(refused);
            rows
        }
        Err(problem) => {
            problems.extend(all.into_iter().map(|index| (index, problem.clone())));
            None
        }
    }
}

#[cfg(test)]
mod tests;
