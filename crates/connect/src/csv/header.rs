//! Which field of a record belongs to which column of the table.

use std::collections::HashSet;
use std::path::Path;

use alluvium::{Error, Result, SourceRequest};
use arrow::datatypes::SchemaRef;

use super::record::Record;

/// For each column the field that gives its name, if any.
pub type Names = Vec<Option<usize>>;

/// The names of columns that a header has: a field without text has the name of its place, and the second `id` is `id_1`.
pub fn numbered(header: &Record) -> Vec<String> {
    let written = |index: usize| match header.field(index).text.trim() {
        "" => format!("column{index}"),
        name => name.to_owned(),
    };
    let all = 0..header.len();
    let mut taken: HashSet<String> =
        all.clone().map(|index| written(index).to_ascii_lowercase()).collect();
    let mut seen = HashSet::new();
    let mut name = |index: usize| {
        let name = written(index);
        if seen.insert(name.to_ascii_lowercase()) {
            return name;
        }
        let numbered = (1u64..).map(|number| format!("{name}_{number}"));
        let mut free = numbered.filter(|name| taken.insert(name.to_ascii_lowercase()));
        free.next().unwrap_or_else(|| name.clone())
    };
    all.map(&mut name).collect()
}

/// For each column the field of `header` that is its name, if any.
///
/// A name counts as in SQL: as it stands, or else without regard to case. Fails if a field is not a
/// column's name, or occurs twice and is no column's name when it is [`numbered`].
pub fn names(schema: &SchemaRef, header: &Record) -> std::result::Result<Names, String> {
    let mut fields = vec![None; schema.fields().len()];
    let find = |name: &str| {
        let fold =
            || schema.fields().iter().position(|field| field.name().eq_ignore_ascii_case(name));
        schema.index_of(name).ok().or_else(fold)
    };
    for (index, numbered) in numbered(header).iter().enumerate() {
        let name = header.field(index).text.trim();
        let Some(column) = find(numbered).or_else(|| find(name)) else {
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
