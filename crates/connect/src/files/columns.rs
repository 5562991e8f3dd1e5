//! The columns of files.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use alluvium::{Error, Inferred, Result};
use arrow::array::{Array, ArrayRef, StringArray};
use arrow::datatypes::{DataType, Field, FieldRef, Schema, TimeUnit};

use super::all_paths;
use super::keys::{Key, keys};
use super::options::Options;
use crate::fit::cast_texts;

/// Finds the columns of one file, given the options of its format.
type InferFile<'a> = &'a dyn Fn(&Path, &[(String, String)]) -> Result<Inferred>;

/// The columns of the first of the files that paths name, or of all of them if `UNION_BY_NAME` is said, and those that their
/// folders and names give.
pub fn infer(
    given: &[PathBuf],
    base: &Path,
    options: &[(String, String)],
    one: InferFile<'_>,
) -> Result<Inferred> {
    let (asked, of_format) = Options::split(options)?;
    let files = all_paths(given)?;
    let Some(first) = files.first() else { return Err(Error::source("no file is named")) };
    let mut inferred = match asked.union_by_name {
        true => united(&files, &of_format, one)?,
        false => one(first, &of_format)?,
    };
    let mut told = Vec::new();
    let own = inferred.schema.fields().iter().cloned().collect();
    let mut columns = Columns { fields: own, remarks: inferred.remarks, shared: Vec::new() };
    if let Some(name) = &asked.file_name {
        if columns.place(name).is_some() {
            return Err(Error::source(format!(
                "FILENAME gives a column \"{name}\", and \"{}\" has one: say another name, FILENAME 'source'",
                first.display()
            )));
        }
        columns.share(name, DataType::Utf8, "it is the path of the file");
        told.push(("FILENAME".to_owned(), name.clone()));
    }
    let folders: Vec<Vec<Key>> = files.iter().map(|path| keys(path, base)).collect();
    let of_folders = of_folders(&files, &folders, &asked)?;
    if asked.keys.is_some() || !of_folders.is_empty() || other_keys(&folders).is_some() {
        told.push(("HIVE_PARTITIONING".to_owned(), (!of_folders.is_empty()).to_string()));
    }
    for (name, kind) in of_folders {
        columns.share(&name, kind, "it is the key of a folder");
    }
    if asked.union_by_name {
        told.push(("UNION_BY_NAME".to_owned(), "true".to_owned()));
    }
    inferred.options.extend(told);
    inferred.schema = Arc::new(Schema::new(columns.fields));
    (inferred.remarks, inferred.shared) = (columns.remarks, columns.shared);
    Ok(inferred)
}

/// Columns, and which of them all rows of a file share.
struct Columns {
    fields: Vec<FieldRef>,
    remarks: Vec<Option<String>>,
    shared: Vec<usize>,
}

impl Columns {
    fn place(&self, name: &str) -> Option<usize> {
        self.fields.iter().position(|field| field.name().eq_ignore_ascii_case(name))
    }

    /// A column that all rows of a file share: in place of the file's own of this name, or after the others.
    fn share(&mut self, name: &str, kind: DataType, remark: &str) {
        let place = self.place(name).unwrap_or(self.fields.len());
        self.remarks.resize(self.fields.len(), None);
        let field = Arc::new(Field::new(name, kind, true));
        match place == self.fields.len() {
            true => {
                self.fields.push(field);
                self.remarks.push(Some(remark.to_owned()));
            }
            false => {
                let written = self.fields[place].name().clone();
                self.fields[place] = Arc::new(field.as_ref().clone().with_name(written));
                self.remarks[place] = Some(remark.to_owned());
            }
        }
        self.shared.push(place);
    }
}

/// The keys of folders that are columns, and their types. `all` has those of each file.
fn of_folders(
    files: &[PathBuf],
    all: &[Vec<Key>],
    asked: &Options,
) -> Result<Vec<(String, DataType)>> {
    if asked.keys == Some(false) {
        return Ok(Vec::new());
    }
    let Some(first) = all.first() else { return Ok(Vec::new()) };
    if let Some(other) = other_keys(all) {
        return match asked.keys.is_some() || !asked.key_types.is_empty() {
            true => Err(Error::source(format!(
                "the folders of \"{}\" and \"{}\" have other keys: name files with the same keys, or say HIVE_PARTITIONING \
                 'false'",
                files[0].display(),
                files[other].display()
            ))),
            false => Ok(Vec::new()),
        };
    }
    let given = |name: &str| {
        let found = asked.key_types.iter().find(|(other, _)| other.eq_ignore_ascii_case(name));
        found.map(|(_, kind)| kind.clone())
    };
    if let Some((name, _)) = asked
        .key_types
        .iter()
        .find(|(name, _)| first.iter().all(|key| !key.name.eq_ignore_ascii_case(name)))
    {
        let known = first.iter().map(|key| key.name.as_str()).collect::<Vec<_>>().join(", ");
        return Err(Error::source(format!(
            "HIVE_TYPES has \"{name}\", which is the key of no folder of \"{}\"; there are: {known}",
            files[0].display()
        )));
    }
    let detects = asked.detects_key_types != Some(false);
    let kind = |(index, key): (usize, &Key)| {
        let texts = || all.iter().map(|keys| keys[index].value.as_deref());
        let kind = given(&key.name).unwrap_or_else(|| match detects {
            true => detected(texts()),
            false => DataType::Utf8,
        });
        (key.name.clone(), kind)
    };
    Ok(first.iter().enumerate().map(kind).collect())
}

fn names(keys: &[Key]) -> impl Iterator<Item = String> {
    keys.iter().map(|key| key.name.to_ascii_lowercase())
}

/// A file whose folders have other keys than those of the first.
fn other_keys(all: &[Vec<Key>]) -> Option<usize> {
    let first = all.first()?;
    all.iter().position(|other| !names(other).eq(names(first)))
}

/// The type of the values of a key: BIGINT, DATE or TIMESTAMP if all are, or else VARCHAR.
fn detected<'a>(texts: impl Iterator<Item = Option<&'a str>>) -> DataType {
    let texts: ArrayRef =
        Arc::new(texts.map(|text| text.filter(|text| !text.is_empty())).collect::<StringArray>());
    if texts.null_count() == texts.len() {
        return DataType::Utf8;
    }
    let kinds =
        [DataType::Int64, DataType::Date32, DataType::Timestamp(TimeUnit::Microsecond, None)];
    let is = |kind: &DataType| {
        cast_texts(&texts, kind).is_ok_and(|values| values.null_count() == texts.null_count())
    };
    kinds.into_iter().find(is).unwrap_or(DataType::Utf8)
}

/// The columns of all files, in the order in which they first occur, of types that hold the values of each.
fn united(files: &[PathBuf], options: &[(String, String)], one: InferFile<'_>) -> Result<Inferred> {
    let mut fields: Vec<Field> = Vec::new();
    let mut remarks: Vec<Option<String>> = Vec::new();
    let mut places: HashMap<String, usize> = HashMap::new();
    let mut read_with: Option<Vec<(String, String)>> = None;
    let mut is_alike = true;
    for path in files {
        let found = one(path, options)?;
        is_alike &= read_with.as_ref().is_none_or(|known| *known == found.options);
        read_with.get_or_insert(found.options);
        for (column, field) in found.schema.fields().iter().enumerate() {
            let remark = found.remarks.get(column).cloned().flatten();
            match places.get(&field.name().to_ascii_lowercase()) {
                Some(&place) => {
                    let known = &mut fields[place];
                    let kind = both(known.data_type(), field.data_type());
                    if kind == DataType::Utf8 && *known.data_type() != *field.data_type() {
                        remarks[place] =
                            Some(format!("it is of several types, in \"{}\" too", path.display()));
                    }
                    *known = known.clone().with_data_type(kind);
                }
                None => {
                    places.insert(field.name().to_ascii_lowercase(), fields.len());
                    fields.push(field.as_ref().clone().with_nullable(true));
                    remarks.push(remark);
                }
            }
        }
    }
    // What was detected of one file need not hold for others.
    let read_with = read_with.filter(|_| is_alike).unwrap_or_else(|| options.to_vec());
    let mut united = Inferred::new(Arc::new(Schema::new(fields)), read_with);
    united.remarks = remarks;
    Ok(united)
}

/// A type for the values of two.
fn both(one: &DataType, other: &DataType) -> DataType {
    use DataType::{Date32, Decimal128, Float64, Int64, Timestamp, UInt64, Utf8};
    match (one, other) {
        (one, other) if one == other => one.clone(),
        (Decimal128(_, one), Decimal128(_, other)) if one == other => Decimal128(38, *one),
        (one, other) if one.is_integer() && other.is_integer() => {
            match [one, other].contains(&&UInt64) {
                true => Decimal128(20, 0),
                false => Int64,
            }
        }
        (one, other)
            if (one.is_integer() || one.is_floating())
                && (other.is_integer() || other.is_floating()) =>
        {
            Float64
        }
        (Date32, Timestamp(unit, zone)) | (Timestamp(unit, zone), Date32) => {
            Timestamp(*unit, zone.clone())
        }
        _ => Utf8,
    }
}
