//! Columns whose value all rows of a file share: keys of its folders, and its name.

use std::path::Path;
use std::sync::Arc;

use alluvium::{Error, Portion, Result, SourcePosition, SourceReader, SourceRequest};
use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions, StringArray, UInt32Array};
use arrow::compute::take;
use arrow::datatypes::{Field, FieldRef, Schema, SchemaRef};
use arrow::error::ArrowError;

use super::OpenFile;
use super::keys::keys;
use super::options::Options;
use crate::fit::Fit;

/// A file to be opened.
pub struct File<'a> {
    pub path: &'a Path,
    /// The columns that it has itself, and the options of its format.
    pub request: &'a SourceRequest,
    /// The names of columns that it may have, and that are not read, because its folders give them.
    pub passed: Vec<String>,
}

/// The columns of a schema that all rows of a file share, by their places, with their values as texts.
pub fn shared(
    path: &Path,
    base: &Path,
    schema: &SchemaRef,
    options: &Options,
) -> Vec<(usize, Option<String>)> {
    let place = |name: &str| {
        let fold = |field: &FieldRef| field.name().eq_ignore_ascii_case(name);
        schema.index_of(name).ok().or_else(|| schema.fields().iter().position(fold))
    };
    let mut found: Vec<(usize, Option<String>)> = Vec::new();
    if let Some(column) = options.file_name.as_deref().and_then(place) {
        found.push((column, Some(shown(path, base))));
    }
    if options.keys != Some(false) {
        for key in keys(path, base) {
            let Some(column) = place(&key.name) else { continue };
            if found.iter().all(|(other, _)| *other != column) {
                found.push((column, key.value));
            }
        }
    }
    found
}

/// A path as the statement names it.
fn shown(path: &Path, base: &Path) -> String {
    path.strip_prefix(base).unwrap_or(path).display().to_string()
}

/// Texts as the values of a column. An empty one is NULL where it is no value; fails at the first that is none otherwise.
pub fn values(
    file: &Path,
    field: &Field,
    texts: impl IntoIterator<Item = Option<String>>,
) -> Result<ArrayRef> {
    let is_text = field.data_type().is_string();
    let texts = texts.into_iter().map(|text| text.filter(|text| is_text || !text.is_empty()));
    let given: ArrayRef = Arc::new(texts.collect::<StringArray>());
    let mut fit = Fit::new(file, given.len(), &|_| 0);
    let portion = fit.column(field, &given, None).and_then(|()| fit.finish());
    let portion = portion.map_err(|error| Error::source(error.to_string()))?;
    match portion.refused.first() {
        Some(refusal) => Err(Error::source(format!(
            "\"{}\": {}, which its folder says; HIVE_PARTITIONING 'false' leaves the names of folders out",
            file.display(),
            refusal.message
        ))),
        None => Ok(portion.rows.column(0).clone()),
    }
}

/// Reads a file, and adds the columns that all of its rows share.
pub struct SharedReader {
    reader: Box<dyn SourceReader>,
    /// Each with one value.
    columns: Vec<(FieldRef, ArrayRef)>,
}

impl SharedReader {
    pub fn open(
        path: &Path,
        request: &SourceRequest,
        options: &Options,
        open: &OpenFile,
    ) -> Result<Self> {
        let schema = &request.schema;
        let shared = shared(path, &request.base, schema, options);
        if shared.is_empty() {
            let reader = open(File { path, request, passed: Vec::new() })?;
            return Ok(Self { reader, columns: Vec::new() });
        }
        let mut columns = Vec::with_capacity(shared.len());
        for (column, text) in &shared {
            let field = &schema.fields()[*column];
            columns.push((field.clone(), values(path, field, [text.clone()])?));
        }
        let is_own = |column: &usize| shared.iter().all(|(other, _)| other != column);
        let own: Vec<usize> = (0..schema.fields().len()).filter(is_own).collect();
        let mut request = request.clone();
        request.has_default = own.iter().map(|&column| request.has_default[column]).collect();
        let fields: Vec<FieldRef> =
            own.iter().map(|&column| schema.fields()[column].clone()).collect();
        let passed = columns.iter().map(|(field, _)| field.name().clone()).collect();
        request.schema = Arc::new(Schema::new(fields));
        Ok(Self { reader: open(File { path, request: &request, passed })?, columns })
    }

    pub fn next(&mut self) -> Result<Option<Portion>> {
        let Some(mut portion) = self.reader.next()? else { return Ok(None) };
        if !self.columns.is_empty() {
            let rows = self.with_shared(&portion.rows);
            portion.rows = rows.map_err(|error| Error::source(error.to_string()))?;
        }
        Ok(Some(portion))
    }

    pub fn position(&self) -> Option<SourcePosition> {
        self.reader.position()
    }

    fn with_shared(&self, rows: &RecordBatch) -> std::result::Result<RecordBatch, ArrowError> {
        let (schema, count) = (rows.schema(), rows.num_rows());
        let first = UInt32Array::from(vec![0; count]);
        let mut fields: Vec<FieldRef> = schema.fields().iter().cloned().collect();
        let mut columns = rows.columns().to_vec();
        for (field, value) in &self.columns {
            fields.push(Arc::new(field.as_ref().clone().with_nullable(true)));
            columns.push(take(value, &first, None)?);
        }
        let options = RecordBatchOptions::new().with_row_count(Some(count));
        RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), columns, &options)
    }
}
