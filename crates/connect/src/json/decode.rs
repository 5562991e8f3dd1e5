//! JSON objects, decoded into typed arrays.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use alluvium::{Portion, Refusal, SourceRequest};
use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, new_empty_array};
use arrow::compute::concat;
use arrow::datatypes::{Field, Fields, SchemaRef};
use arrow::error::ArrowError;

use super::keys::keys;
use super::records::Batch;
use super::values::{Text, values};
use crate::fit::Fit;
use crate::parts::in_parts;

/// How many objects are sampled to see how names are spelt.
pub const SAMPLE: usize = 1024;

/// Makes rows of a table of objects.
pub struct Decoder {
    schema: SchemaRef,
    /// For each column whether it has a default other than NULL.
    has_default: Vec<bool>,
    /// The columns under the names that members have, any of which may be absent.
    members: Fields,
}

impl Decoder {
    /// For the columns that are requested, and members spelt as in the first objects of a file.
    pub fn new(request: &SourceRequest, first: &Batch) -> Result<Self, ArrowError> {
        // The columns without regard to case, and the first name that a member has for each; its own is preferred.
        let folded = |name: &str| name.to_ascii_lowercase();
        let columns = request.schema.fields().iter();
        let mut names: HashMap<String, Option<String>> =
            columns.map(|field| (folded(field.name()), None)).collect();
        let mut exact = HashSet::new();
        for object in 0..first.len().min(SAMPLE) {
            for key in keys(first.text(object..object + 1)) {
                let Some(name) = names.get_mut(&folded(&key)) else { continue };
                exact.insert(key.clone());
                name.get_or_insert(key);
            }
        }
        let member = |field: &Arc<Field>| {
            let other = names.get(&folded(field.name())).cloned().flatten();
            let name = other.filter(|_| !exact.contains(field.name()));
            let name = name.unwrap_or_else(|| field.name().clone());
            Field::new(name, field.data_type().clone(), true)
        };
        let members = request.schema.fields().iter().map(member).collect();
        values(&object(&members), std::iter::empty())?;
        Ok(Self {
            schema: request.schema.clone(),
            has_default: request.has_default.clone(),
            members,
        })
    }

    /// The rows of some objects, without those that do not fit.
    pub fn decode(&self, objects: &Batch, file: &Path) -> Result<Portion, ArrowError> {
        let mut good = Vec::with_capacity(objects.len());
        let mut parts = Vec::new();
        let mut bad = Vec::new();
        let mut decode =
            |range: Range<usize>| self.try_decode(objects.text(range.clone()), range.len());
        in_parts(0..objects.len(), &mut decode, &mut |range, decoded| match decoded {
            Ok(rows) => {
                good.extend(range);
                parts.push(rows);
            }
            Err(message) => {
                bad.push(Refusal::new(file, objects.line(range.start), message));
            }
        });
        let parts: Vec<&dyn Array> = parts.iter().map(|rows| rows.as_ref()).collect();
        let rows = match parts.is_empty() {
            true => new_empty_array(object(&self.members).data_type()),
            false => concat(&parts)?,
        };
        let rows = rows.as_struct();
        let line = |row: usize| objects.line(good[row]);
        let mut fit = Fit::new(file, good.len(), &line);
        for (index, field) in self.schema.fields().iter().enumerate() {
            let values = rows.column(index);
            // Without a default, a member that is absent is NULL.
            let absent =
                self.has_default[index].then(|| self.absent(index, values, objects, &good));
            fit.column(field, values, absent)?;
        }
        let mut portion = fit.finish()?;
        portion.refused.extend(bad);
        Ok(portion)
    }

    fn try_decode(&self, text: &[u8], count: usize) -> Result<ArrayRef, String> {
        let text = Text { text, values: count };
        values(&object(&self.members), std::iter::once(text)).map_err(|error| match error {
            ArrowError::JsonError(message)
            | ArrowError::ParseError(message)
            | ArrowError::CastError(message) => message,
            error => error.to_string(),
        })
    }

    /// The objects that do not have a column. NULL is a value.
    fn absent(
        &self,
        column: usize,
        values: &ArrayRef,
        objects: &Batch,
        rows: &[usize],
    ) -> BooleanArray {
        let name = self.members[column].name();
        let absent = |(row, &object): (usize, &usize)| {
            values.is_null(row) && !keys(objects.text(object..object + 1)).any(|key| key == *name)
        };
        rows.iter().enumerate().map(absent).map(Some).collect()
    }
}

/// An object with these members.
fn object(members: &Fields) -> Field {
    Field::new_struct("", members.clone(), false)
}
