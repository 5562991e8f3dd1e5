//! Infers the columns of a JSON file.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;

use alluvium::{Error, Inferred, Result};
use arrow::datatypes::{Field, Schema};
use serde::de::IgnoredAny;

use super::kind::Kind;
use super::options::Options;
use super::records::{Batch, Records, name};
use crate::input::{self, check_columns, failed};

/// The columns of the (first) file that a path names: all members of its first objects, in the order in which
/// they first occur. Those that are wrong are passed over.
pub fn infer(path: &Path, options: &[(String, String)], may_be_sequence: bool) -> Result<Inferred> {
    let read = Options::read(options)?;
    let path = &input::paths(path)?.remove(0);
    let failed = |error| failed("open", path, &error);
    let mut records = Records::new(
        input::open(path, read.compression, None).map_err(failed)?.bytes,
        may_be_sequence,
    )
    .map_err(failed)?;
    let objects = records.read(read.sample.rows, read.sample.bytes, path).map_err(failed)?;
    let objects = objects.map(|(objects, _)| objects).unwrap_or_default();
    let columns = Columns::of(&objects, path)?;
    let wrong = |problem: &str| {
        Error::source(format!("cannot tell the columns of \"{}\": {problem}", path.display()))
    };
    if columns.fields.is_empty() {
        return Err(wrong("there is no object with members in its first rows"));
    }
    if !columns.has_values {
        return Err(wrong("none of its first rows can be read"));
    }
    let fields = columns.fields.into_iter();
    let fields = fields.map(|(name, kind)| Field::new(name, kind.data_type(), true));
    let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
    let mut options = options.to_vec();
    if !options.iter().any(|(name, _)| name.eq_ignore_ascii_case("new_members")) {
        options.push(("NEW_MEMBERS".to_owned(), "tell".to_owned()));
    }
    Ok(Inferred::new(schema, options))
}

/// The members of some objects.
#[derive(Default)]
struct Columns {
    fields: Vec<(String, Kind)>,
    /// Whether an object could be read.
    has_values: bool,
    /// The columns by their names, and in lower case.
    exact: HashMap<String, usize>,
    folded: HashMap<String, usize>,
}

impl Columns {
    fn of(objects: &Batch, path: &Path) -> Result<Self> {
        let (mut columns, mut name_bytes) = (Self::default(), 0);
        for index in 0..objects.len() {
            let object = objects.text(index..index + 1);
            let is_json = serde_json::from_slice::<IgnoredAny>(object).is_ok();
            columns.has_values |= is_json && !objects.members(index).is_empty();
            let mut taken = HashSet::new();
            for member in objects.members(index) {
                let Some(name) = name(&object[member.name()]) else { continue };
                let column = columns.place(&name, &mut taken);
                if column == columns.fields.len() {
                    name_bytes += name.len();
                    check_columns(path, column + 1, name_bytes)?;
                    columns.add(&name);
                    taken.insert(column);
                }
                if is_json {
                    let kind = &mut columns.fields[column].1;
                    *kind = std::mem::take(kind).and(Kind::of(&object[member.value()]));
                }
            }
        }
        Ok(columns)
    }

    /// The column of a member: that of its name, or of one that differs in case, unless the same object has it already.
    fn place(&self, name: &str, taken: &mut HashSet<usize>) -> usize {
        if let Some(column) = self.exact.get(name) {
            taken.insert(*column);
            return *column;
        }
        let folded = self.folded.get(&name.to_ascii_lowercase());
        folded.copied().filter(|column| taken.insert(*column)).unwrap_or(self.fields.len())
    }

    fn add(&mut self, name: &str) {
        self.exact.insert(name.to_owned(), self.fields.len());
        self.folded.entry(name.to_ascii_lowercase()).or_insert(self.fields.len());
        self.fields.push((name.to_owned(), Kind::Null));
    }
}
