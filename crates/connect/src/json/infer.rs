//! Infers the columns of a JSON file.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;

use alluvium::{Error, Inferred, Result};
use arrow::datatypes::{DataType, Field, Schema};
use serde::de::IgnoredAny;

use super::kind::Kind;
use super::options::Options;
use super::records::{Batch, Records, name};
use crate::input::{self, check_columns, failed};

/// The columns of a file: all members of its first objects, in the order in which
/// they first occur. Those that are wrong are passed over.
pub fn infer(path: &Path, options: &[(String, String)], may_be_sequence: bool) -> Result<Inferred> {
    let read = Options::read(options)?;
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
    let remarks = columns.fields.iter().zip(&columns.found);
    let remarks = remarks.map(|((_, kind), found)| found.remark(kind)).collect();
    let fields = columns.fields.into_iter();
    let fields = fields.map(|(name, kind)| Field::new(name, kind.data_type(), true));
    let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
    let mut options = options.to_vec();
    if !options.iter().any(|(name, _)| name.eq_ignore_ascii_case("new_members")) {
        options.push(("NEW_MEMBERS".to_owned(), "tell".to_owned()));
    }
    let mut inferred = Inferred::new(schema, options);
    inferred.remarks = remarks;
    Ok(inferred)
}

/// The members of some objects.
#[derive(Default)]
struct Columns {
    fields: Vec<(String, Kind)>,
    /// How many values of which sort each has.
    found: Vec<Found>,
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
                    let value = &object[member.value()];
                    columns.found[column].see(value);
                    let kind = &mut columns.fields[column].1;
                    *kind = std::mem::take(kind).and(Kind::of(value));
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
        self.found.push(Found::default());
    }
}

/// How many values of each sort a column has: texts, numbers, booleans, lists, objects.
#[derive(Default)]
struct Found([usize; 5]);

impl Found {
    const NAMES: [(&str, &str); 5] = [
        ("text", "texts"),
        ("number", "numbers"),
        ("boolean", "booleans"),
        ("list", "lists"),
        ("object", "objects"),
    ];

    fn see(&mut self, value: &[u8]) {
        let sort = match value.trim_ascii_start().first() {
            Some(b'"') => 0,
            Some(b't' | b'f') => 2,
            Some(b'[') => 3,
            Some(b'{') => 4,
            Some(b'n') | None => return,
            Some(_) => 1,
        };
        self.0[sort] += 1;
    }

    /// Why the column is of texts, if its values are not.
    fn remark(&self, kind: &Kind) -> Option<String> {
        if kind.data_type() != DataType::Utf8 {
            return None;
        }
        let found = self.0.iter().zip(Self::NAMES).filter(|(count, _)| **count > 0);
        let counts = found.clone().map(|(count, (one, several))| match count {
            1 => format!("1 {one}"),
            count => format!("{count} {several}"),
        });
        let counts = counts.collect::<Vec<_>>().join(", ");
        match found.map(|(_, (name, _))| name).collect::<Vec<_>>()[..] {
            [] => Some("there is no value".to_owned()),
            ["text"] => None,
            ["number"] => Some("no type of numbers has all digits of each value".to_owned()),
            ["object"] if matches!(kind, Kind::Struct(_)) => {
                Some("its objects have no members".to_owned())
            }
            [_] => Some(format!("its {counts} have values of several types inside")),
            _ => Some(format!("there are values of several types: {counts}")),
        }
    }
}
