//! JSON objects, decoded into typed arrays.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use alluvium::{Portion, Refusal, SourceRequest};
use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, new_empty_array};
use arrow::compute::concat;
use arrow::datatypes::{DataType, Field, FieldRef, Fields, SchemaRef};
use arrow::error::ArrowError;

use super::names::{Meaning, Names};
use super::new_members::NewMembers;
use super::records::{Batch, Edit, name};
use super::values::{Text, values};
use crate::fit::Fit;
use crate::parts::in_parts;

/// Makes rows of a table of objects.
pub struct Decoder {
    schema: SchemaRef,
    /// For each column whether it has a default other than NULL.
    has_default: Vec<bool>,
    /// The columns, any of which may be absent.
    members: Fields,
    /// Their names as JSON.
    quoted: Vec<Arc<[u8]>>,
    names: Names,
    new_members: Option<NewMembers>,
    /// The names of other members that are not told.
    passed: Vec<String>,
}

impl Decoder {
    /// For the columns that are requested. Members that are none are told but those that are `passed` over, or not if
    /// there is no list of these.
    pub fn new(request: &SourceRequest, passed: Option<&[String]>) -> Result<Self, ArrowError> {
        let fields = request.schema.fields();
        let member = |field: &FieldRef| field.as_ref().clone().with_nullable(true);
        let members = fields.iter().map(member).collect();
        let quoted = |field: &FieldRef| Ok(serde_json::to_vec(field.name())?.into());
        let quoted: serde_json::Result<_> = fields.iter().map(quoted).collect();
        let quoted = quoted.map_err(|error| ArrowError::JsonError(error.to_string()))?;
        values(&object(&members), std::iter::empty())?;
        Ok(Self {
            schema: request.schema.clone(),
            has_default: request.has_default.clone(),
            members,
            quoted,
            names: Names::new(fields),
            new_members: passed.map(|_| NewMembers::default()),
            passed: passed.unwrap_or_default().to_vec(),
        })
    }

    /// Whether members that are no columns are told.
    pub fn tells_new_members(&self) -> bool {
        self.new_members.is_some()
    }

    /// The members that were no columns since this was last asked.
    pub fn take_new_members(&mut self) -> Option<NewMembers> {
        self.new_members.as_mut().map(std::mem::take)
    }

    /// The rows of some objects, without those that do not fit.
    pub fn decode(&mut self, mut objects: Batch, file: &Path) -> Result<Portion, ArrowError> {
        let has = self.prepare(&mut objects);
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
            // Without a default, a member that is absent is NULL; null is a value.
            let absent = self.has_default[index].then(|| {
                let is_absent = |object: &usize| Some(!has[index][*object]);
                good.iter().map(is_absent).collect::<BooleanArray>()
            });
            fit.column(field, values, absent)?;
        }
        let mut portion = fit.finish()?;
        portion.refused.extend(bad);
        Ok(portion)
    }

    /// Spells the names of members as those of their columns, and puts the text of a value into quotes where a column of texts
    /// has an object or an array. For each column with a default: which objects have it.
    fn prepare(&mut self, objects: &mut Batch) -> Vec<Vec<bool>> {
        let has = |has_default: &bool| vec![false; if *has_default { objects.len() } else { 0 }];
        let mut has: Vec<Vec<bool>> = self.has_default.iter().map(has).collect();
        let mut edits = Vec::new();
        for index in 0..objects.len() {
            let start = objects.start(index);
            let object = objects.text(index..index + 1);
            for (place, member) in objects.members(index).iter().enumerate() {
                let written = &object[member.name()];
                let column = match self.names.meaning(place, written) {
                    Meaning::Column(column) => column,
                    Meaning::Folded(column) if !self.has_exact(objects, index, column) => {
                        let text = self.quoted[column].clone();
                        edits.push(Edit { place: shifted(member.name(), start), text });
                        column
                    }
                    Meaning::Folded(_) => continue,
                    Meaning::Other => {
                        self.see_other(written, objects.line(index));
                        continue;
                    }
                };
                if let Some(has) = has[column].get_mut(index) {
                    *has = true;
                }
                let value = &object[member.value()];
                if *self.members[column].data_type() == DataType::Utf8
                    && matches!(value.trim_ascii_start().first(), Some(b'{' | b'['))
                    && let Ok(text) = str::from_utf8(value)
                    // What is no JSON is refused.
                    && serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok()
                    && let Ok(text) = serde_json::to_vec(text.trim())
                {
                    edits.push(Edit { place: shifted(member.value(), start), text: text.into() });
                }
            }
        }
        objects.edit(&edits);
        has
    }

    /// Whether an object has a member of a column's very name.
    fn has_exact(&self, objects: &Batch, index: usize, column: usize) -> bool {
        let object = objects.text(index..index + 1);
        let mut members = objects.members(index).iter();
        members.any(|member| object[member.name()] == *self.quoted[column])
    }

    fn see_other(&mut self, written: &[u8], line: u64) {
        let Some(new_members) = &mut self.new_members else { return };
        let Some(name) = name(written) else { return };
        if self.passed.iter().any(|passed| passed.eq_ignore_ascii_case(&name)) {
            return;
        }
        new_members.see(&name, line);
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
}

fn shifted(range: Range<usize>, by: usize) -> Range<usize> {
    range.start + by..range.end + by
}

/// An object with these members.
fn object(members: &Fields) -> Field {
    Field::new_struct("", members.clone(), false)
}
