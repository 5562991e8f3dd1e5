//! The options that all formats have when files are read, with DuckDB's names.

use alluvium::Result;
use arrow::datatypes::DataType;

use crate::options::{switch, types};

/// How the columns of files are found, and which are not in the files.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Options {
    /// `HIVE_PARTITIONING`: whether folders `key=value` are columns. If it is not said, they are if all files have the same
    /// keys, and into a table if it has such a column.
    pub keys: Option<bool>,
    /// `HIVE_TYPES`: the types of such columns.
    pub key_types: Vec<(String, DataType)>,
    /// `HIVE_TYPES_AUTOCAST`: whether the types of the others are found.
    pub detects_key_types: Option<bool>,
    /// `FILENAME`: the name of a column with the path of the file.
    pub file_name: Option<String>,
    /// `UNION_BY_NAME`: whether columns are those of all files, not of the first one.
    pub union_by_name: bool,
}

impl Options {
    /// The options of files among others, and those that are left, which are the format's.
    pub fn split(options: &[(String, String)]) -> Result<(Self, Vec<(String, String)>)> {
        let (mut this, mut others) = (Self::default(), Vec::new());
        for (name, value) in options {
            if !this.set(name, value)? {
                others.push((name.clone(), value.clone()));
            }
        }
        Ok((this, others))
    }

    /// Sets one option. Whether there is one of this name; fails if it has no such value.
    fn set(&mut self, name: &str, value: &str) -> Result<bool> {
        let name = name.to_ascii_uppercase();
        match name.as_str() {
            "HIVE_PARTITIONING" => self.keys = Some(switch(&name, value)?),
            "HIVE_TYPES" => self.key_types = types(&name, value)?,
            "HIVE_TYPES_AUTOCAST" => self.detects_key_types = Some(switch(&name, value)?),
            "FILENAME" => {
                self.file_name = match switch(&name, value) {
                    Ok(false) => None,
                    Ok(true) => Some("filename".to_owned()),
                    Err(_) => Some(value.to_owned()),
                }
            }
            "UNION_BY_NAME" => self.union_by_name = switch(&name, value)?,
            _ => return Ok(false),
        }
        Ok(true)
    }
}

/// Checks an option of files that are read; `of_format` checks others.
pub fn check(name: &str, value: &str, of_format: impl FnOnce() -> Result<()>) -> Result<()> {
    match Options::default().set(name, value)? {
        true => Ok(()),
        false => of_format(),
    }
}
