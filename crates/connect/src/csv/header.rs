//! Which field of a record belongs to which column of the table.

use alluvium::{Error, Result, SourceRequest};
use arrow::array::Array;

use super::record::Record;

/// For each column that is requested the field that `header` gives its name to, if any.
///
/// A name counts as in SQL: as it stands, or else without regard to case. Fails if a name is not a
/// column's, occurs twice, or is missing for a column that is NOT NULL and has no default.
pub fn find(request: &SourceRequest, header: &Record) -> Result<Vec<Option<usize>>> {
    let SourceRequest { schema, defaults, path, .. } = request;
    let wrong = |problem: String| Error::source(format!("{}:1: {problem}", path.display()));
    let mut fields = vec![None; schema.fields().len()];
    for index in 0..header.len() {
        let name = header.field(index).text.trim();
        let column = schema.index_of(name).ok().or_else(|| {
            schema.fields().iter().position(|field| field.name().eq_ignore_ascii_case(name))
        });
        let Some(column) = column else {
            let known: Vec<_> = schema.fields().iter().map(|field| field.name().as_str()).collect();
            let known = known.join(", ");
            return Err(wrong(format!("the table has no column \"{name}\"; it has {known}")));
        };
        if fields[column].replace(index).is_some() {
            return Err(wrong(format!("column \"{name}\" occurs twice")));
        }
    }
    for ((column, field), default) in schema.fields().iter().zip(&fields).zip(defaults.columns()) {
        if field.is_none() && !column.is_nullable() && default.is_null(0) {
            let name = column.name();
            return Err(wrong(format!(
                "column \"{name}\" is NOT NULL and the file does not have it"
            )));
        }
    }
    Ok(fields)
}
