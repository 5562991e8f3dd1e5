//! Typed arrays of JSON objects.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use alluvium::{Portion, Refusal, SourceRequest};
use arrow::array::{Array, ArrayRef, BooleanArray, RecordBatch, Scalar};
use arrow::compute::concat_batches;
use arrow::compute::kernels::zip::zip;
use arrow::datatypes::{Field, Schema, SchemaRef};
use arrow::error::ArrowError;
use arrow::json::ReaderBuilder;

use super::keys::keys;
use super::records::Batch;
use crate::fit::Fit;

/// How many objects are looked at to see how names are spelt.
const SAMPLE: usize = 1024;

/// Makes rows of a table of objects.
pub struct Decoder {
    schema: SchemaRef,
    defaults: RecordBatch,
    /// The columns under the names that members have, any of which may be absent.
    members: SchemaRef,
}

impl Decoder {
    /// For the columns that are requested, and members spelt as in the first objects of a file.
    pub fn new(request: &SourceRequest, first: &Batch) -> Result<Self, ArrowError> {
        let mut names: Vec<String> = Vec::new();
        for object in 0..first.len().min(SAMPLE) {
            for key in keys(first.text(object..object + 1)) {
                if !names.contains(&key) {
                    names.push(key);
                }
            }
        }
        let member = |field: &Arc<Field>| {
            let same = |name: &&String| name.eq_ignore_ascii_case(field.name());
            let name = match names.contains(field.name()) {
                true => field.name(),
                false => names.iter().find(same).unwrap_or(field.name()),
            };
            Field::new(name, field.data_type().clone(), true)
        };
        let members = request.schema.fields().iter().map(member).collect::<Vec<_>>();
        let members = Arc::new(Schema::new(members));
        ReaderBuilder::new(members.clone()).build_decoder()?;
        Ok(Self { schema: request.schema.clone(), defaults: request.defaults.clone(), members })
    }

    /// The rows of some objects, without those that do not fit.
    pub fn decode(&self, objects: &Batch, file: &Path) -> Result<Portion, ArrowError> {
        let mut good = Vec::with_capacity(objects.len());
        let mut parts = Vec::new();
        let mut bad = Vec::new();
        self.decode_range(objects, 0..objects.len(), &mut |range, decoded| match decoded {
            Ok(rows) => {
                good.extend(range);
                parts.push(rows);
            }
            Err(message) => bad.push(Refusal {
                file: file.to_owned(),
                line: objects.line(range.start),
                message,
            }),
        });
        let rows = match parts.as_slice() {
            [rows] => rows.clone(),
            parts => concat_batches(&self.members, parts)?,
        };
        let line = |row: usize| objects.line(good[row]);
        let mut fit = Fit::new(file, good.len(), &line);
        let mut columns: Vec<ArrayRef> = Vec::with_capacity(self.schema.fields().len());
        for (index, field) in self.schema.fields().iter().enumerate() {
            let default = self.defaults.column(index);
            let values = match default.is_null(0) {
                true => rows.column(index).clone(),
                false => {
                    let absent = self.absent(index, rows.column(index), objects, &good);
                    let default = Scalar::new(default.clone());
                    let values = zip(&absent, &default, rows.column(index))?;
                    fit.defaulted(index, absent);
                    values
                }
            };
            columns.push(fit.column(field, &values)?);
        }
        let mut portion = fit.finish(&self.schema, columns)?;
        portion.refused.extend(bad);
        Ok(portion)
    }

    /// Decodes objects at once or, if one is wrong, in halves, down to the ones that are.
    fn decode_range(
        &self,
        objects: &Batch,
        range: Range<usize>,
        take: &mut impl FnMut(Range<usize>, Result<RecordBatch, String>),
    ) {
        match self.try_decode(objects.text(range.clone()), range.len()) {
            Ok(rows) => take(range, Ok(rows)),
            Err(_) if range.len() > 1 => {
                let middle = range.start + range.len() / 2;
                self.decode_range(objects, range.start..middle, take);
                self.decode_range(objects, middle..range.end, take);
            }
            Err(error) => take(range, Err(error)),
        }
    }

    fn try_decode(&self, text: &[u8], count: usize) -> Result<RecordBatch, String> {
        let said = |error: ArrowError| match error {
            ArrowError::JsonError(message) | ArrowError::ParseError(message) => message,
            error => error.to_string(),
        };
        if count == 0 {
            return Ok(RecordBatch::new_empty(self.members.clone()));
        }
        let decoder = ReaderBuilder::new(self.members.clone()).with_batch_size(count + 1);
        let mut decoder = decoder.build_decoder().map_err(said)?;
        decoder.decode(text).map_err(said)?;
        if decoder.has_partial_record() || decoder.len() != count {
            return Err("the text is not one JSON object".to_owned());
        }
        match decoder.flush().map_err(said)? {
            Some(rows) => Ok(rows),
            None => Err("the text is not one JSON object".to_owned()),
        }
    }

    /// The objects that do not have a column. NULL is a value.
    fn absent(
        &self,
        column: usize,
        values: &ArrayRef,
        objects: &Batch,
        rows: &[usize],
    ) -> BooleanArray {
        let name = self.members.field(column).name();
        let absent = |(row, &object): (usize, &usize)| {
            values.is_null(row) && !keys(objects.text(object..object + 1)).contains(name)
        };
        rows.iter().enumerate().map(absent).map(Some).collect()
    }
}
