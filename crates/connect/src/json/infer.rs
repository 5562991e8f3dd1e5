//! Infers the columns of a JSON file.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

use alluvium::{Error, Inferred, Result};
use arrow::datatypes::{Field, Schema};
use arrow::error::ArrowError;
use arrow::json::reader::infer_json_schema_from_iterator;
use serde_json::Value;

use super::keys::keys;
use super::options::Options;
use super::records::Records;
use super::shape::Shape;
use crate::input::{self, SAMPLE, SAMPLE_BYTES, check_columns, failed};

/// The columns of the (first) file that a path names: all members of its first objects, in the order in which
/// they first occur. Those that are wrong are passed over.
pub fn infer(path: &Path, options: &[(String, String)]) -> Result<Inferred> {
    let read = Options::read(options)?;
    let path = &input::paths(path)?.remove(0);
    let failed = |error| failed("open", path, &error);
    let mut records =
        Records::new(input::open(path, read.compression, None).map_err(failed)?.bytes)
            .map_err(failed)?;
    let objects = records.read(SAMPLE, SAMPLE_BYTES, path).map_err(failed)?;
    let objects = objects.map(|(objects, _)| objects).unwrap_or_default();
    let texts = (0..objects.len()).map(|object| objects.text(object..object + 1));
    let mut names: Vec<String> = Vec::new();
    let mut known = HashSet::new();
    let mut name_bytes = 0;
    for text in texts.clone() {
        for key in keys(text) {
            if known.insert(key.clone()) {
                name_bytes += key.len();
                names.push(key);
                check_columns(path, names.len(), name_bytes)?;
            }
        }
    }
    let wrong = |error: &dyn std::fmt::Display| {
        Error::source(format!("cannot tell the columns of \"{}\": {error}", path.display()))
    };
    if names.is_empty() {
        return Err(wrong(&"there is no object with members in its first rows"));
    }
    let shapes = texts.filter_map(|text| serde_json::from_slice(text).ok());
    let shapes = shapes.map(|Shape(shape)| Ok::<Value, ArrowError>(shape));
    let schema = infer_json_schema_from_iterator(shapes).map_err(|error| wrong(&error))?;
    let field = |name: &String| schema.field_with_name(name).ok().cloned();
    let fields: Vec<Field> = names.iter().filter_map(field).collect();
    if fields.is_empty() {
        return Err(wrong(&"none of its first rows can be read"));
    }
    Ok(Inferred::new(Arc::new(Schema::new(fields)), options.to_vec()))
}
