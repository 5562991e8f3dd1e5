//! The files that a query may read, and what is known of them before they are opened.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use alluvium::{Result, SourceFiles, SourceRequest};
use arrow::array::{RecordBatch, RecordBatchOptions};
use arrow::datatypes::Schema;

use super::all_paths;
use super::options::Options;
use super::shared::{shared, values};

/// The files that paths name, with the values that the rows of each share; `None` if there are none that all of them have.
pub fn list(given: &[PathBuf], request: &SourceRequest) -> Result<Option<SourceFiles>> {
    let (options, _) = Options::split(&request.options)?;
    let files = all_paths(given)?;
    let of = |path: &Path| shared(path, &request.base, &request.schema, &options);
    let mut all: Vec<_> = files.iter().map(|path| of(path)).collect();
    let columns: Vec<usize> =
        all.first().into_iter().flatten().map(|(column, _)| *column).collect();
    let has_columns = |shared: &Vec<(usize, Option<String>)>| {
        shared.iter().map(|(column, _)| column).eq(&columns)
    };
    if columns.is_empty() || !all.iter().all(has_columns) {
        return Ok(None);
    }
    let (mut fields, mut arrays) = (Vec::new(), Vec::new());
    for (index, column) in columns.into_iter().enumerate() {
        let field = request.schema.field(column).clone().with_nullable(true);
        let texts = all.iter_mut().map(|shared| shared[index].1.take());
        // What is no value fails when its file is opened.
        let Ok(values) = values(&request.path, &field, texts) else { return Ok(None) };
        fields.push(field);
        arrays.push(values);
    }
    let count = RecordBatchOptions::new().with_row_count(Some(files.len()));
    let rows = RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), arrays, &count);
    Ok(rows.ok().map(|rows| SourceFiles::new(files, rows)))
}
