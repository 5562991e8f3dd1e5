//! The values of options, as all formats read them.

use std::path::Path;

use alluvium::{Error, Result};

/// How a file is compressed as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    None,
    Gzip,
}

impl Compression {
    /// The default for a file that is written, by its name.
    pub fn of(path: &Path) -> Self {
        match path.extension() {
            Some(extension) if extension.eq_ignore_ascii_case("gz") => Self::Gzip,
            _ => Self::None,
        }
    }
}

/// `COMPRESSION`: `gzip`, `none`, or `auto` to detect it.
pub fn compression(value: &str) -> Result<Option<Compression>> {
    match value.to_ascii_lowercase().as_str() {
        "auto" => Ok(None),
        "gzip" => Ok(Some(Compression::Gzip)),
        "none" => Ok(Some(Compression::None)),
        _ => Err(Error::source(format!("COMPRESSION is auto, gzip or none, not \"{value}\""))),
    }
}

/// An option that is on or off.
pub fn switch(name: &str, value: &str) -> Result<bool> {
    match value.to_ascii_lowercase().as_str() {
        "true" => Ok(true),
        "false" => Ok(false),
        _ => Err(Error::source(format!("{name} is true or false, not \"{value}\""))),
    }
}

/// An option that the format does not have.
pub fn unknown(name: &str, format: &str, known: &str) -> Error {
    Error::source(format!("no option \"{name}\" for {format}; there are {known}"))
}
