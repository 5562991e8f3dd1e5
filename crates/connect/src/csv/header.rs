//! Which field of a record belongs to which column of the table.

use std::path::Path;

use alluvium::{Error, Result, SourceRequest};
use arrow::datatypes::SchemaRef;

use super::record::Record;

/// For each column the field that gives its name, if any.
pub type Names = Vec<Option<usize>>;

/// For each column the field of `header` that is its name, if any.
///
/// A name counts as in SQL: as it stands, or else without regard to case. Fails if a field is not a
/// column's name, or occurs twice.
pub fn names(schema: &SchemaRef, header: &Record) -> std::result::Result<Names, String> {
    let mut fields = vec![None; schema.fields().len()];
    for index in 0..header.len() {
        let name = header.field(index).text.trim();
        let column = schema.index_of(name).ok().or_else(|| {
            schema.fields().iter().position(|field| field.name().eq_ignore_ascii_case(name))
        });
        let Some(column) = column else {
            let known: Vec<_> = schema.fields().iter().map(|field| field.name().as_str()).collect();
            let known = known.join(", ");
            return Err(format!("the table has no column \"{name}\"; it has {known}"));
        };
        if fields[column].replace(index).is_some() {
            return Err(format!("column \"{name}\" occurs twice"));
        }
    }
    Ok(fields)
}

/// Fails if a column that is NOT NULL and has no default is missing.
pub fn check(request: &SourceRequest, path: &Path, names: Names) -> Result<Names> {
    for (column, field) in names.iter().enumerate() {
        if field.is_none() && !request.may_leave_out(column) {
            let (path, name) = (path.display(), request.schema.field(column).name());
            return Err(Error::source(format!(
                "{path}:1: column \"{name}\" is NOT NULL and the file does not have it"
            )));
        }
    }
    Ok(names)
}
