//! Which field of a record belongs to which column of the table.

use std::collections::HashSet;
use std::path::Path;

use alluvium::{Error, Result, SourceRequest};
use arrow::datatypes::SchemaRef;

use super::options::Options;
use super::record::Record;

/// For each column the field that gives its name, if any.
pub type Names = Vec<Option<usize>>;

/// The names that the fields of a record are.
pub fn written(header: &Record) -> Vec<String> {
    (0..header.len()).map(|index| header.field(index).text.trim().to_owned()).collect()
}

/// The names of columns that a header has: a field without text has the name of its place, and the second `id` is `id_1`.
pub fn numbered(written: &[String]) -> Vec<String> {
    let named = |(index, name): (usize, &String)| match name.as_str() {
        "" => format!("column{index}"),
        name => name.to_owned(),
    };
    let named: Vec<String> = written.iter().enumerate().map(named).collect();
    let mut taken: HashSet<String> = named.iter().map(|name| name.to_ascii_lowercase()).collect();
    let mut seen = HashSet::new();
    let mut name = |name: String| {
        if seen.insert(name.to_ascii_lowercase()) {
            return name;
        }
        let numbered = (1u64..).map(|number| format!("{name}_{number}"));
        let mut free = numbered.filter(|name| taken.insert(name.to_ascii_lowercase()));
        free.next().unwrap_or_else(|| name.clone())
    };
    named.into_iter().map(&mut name).collect()
}

/// For each column the field whose name is its own, if any, given the names that are written in a header.
///
/// A name counts as in SQL: as it stands, or else without regard to case. Fails if a field is not a
/// column's name nor `passed` over, or occurs twice and is no column's name when it is [`numbered`].
pub fn names(
    schema: &SchemaRef,
    written: &[String],
    passed: &[String],
) -> std::result::Result<Names, String> {
    let mut fields = vec![None; schema.fields().len()];
    let find = |name: &str| {
        let fold =
            || schema.fields().iter().position(|field| field.name().eq_ignore_ascii_case(name));
        schema.index_of(name).ok().or_else(fold)
    };
    for (index, (name, numbered)) in written.iter().zip(numbered(written)).enumerate() {
        if passed.iter().any(|passed| passed.eq_ignore_ascii_case(name)) {
            continue;
        }
        let Some(column) = find(&numbered).or_else(|| find(name)) else {
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

/// Where the columns of a table stand in the records of a file.
pub struct Layout {
    pub fields: Names,
    /// How many fields a record has.
    pub width: usize,
    /// Whether the first record is a header.
    pub has_header: bool,
}

impl Layout {
    /// The layout of a file whose first record, if it may be a header, has these names, or none for the reason given.
    pub fn new(
        schema: &SchemaRef,
        options: &Options,
        first: Option<std::result::Result<Vec<String>, String>>,
    ) -> std::result::Result<Self, String> {
        let count = schema.fields().len();
        let names_of = |written: &[String]| names(schema, written, &options.passed);
        if let Some(given) = &options.columns {
            let given: Vec<String> = given.iter().map(|(name, _)| name.clone()).collect();
            let are_given = |names: &[String]| {
                let mut both = names.iter().zip(&given);
                names.len() == given.len()
                    && both.all(|(one, other)| one.eq_ignore_ascii_case(other))
            };
            let has_header = match &first {
                Some(Ok(names)) => options.headers == Some(true) || are_given(names),
                Some(Err(problem)) if options.headers == Some(true) => return Err(problem.clone()),
                _ => false,
            };
            let fields = names_of(&given).map_err(|problem| format!("COLUMNS: {problem}"))?;
            return Ok(Self { fields, width: given.len(), has_header });
        }
        let found = |written: Vec<String>| Ok((names_of(&written)?, written.len()));
        match first.map(|written| written.and_then(found)) {
            Some(Ok((fields, width))) => Ok(Self { fields, width, has_header: true }),
            Some(Err(problem)) if options.headers == Some(true) => Err(problem),
            _ => {
                Ok(Self { fields: (0..count).map(Some).collect(), width: count, has_header: false })
            }
        }
    }
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
