//! The options of a CSV file.

use alluvium::{Error, Result};

use crate::options::{Compression, compression, switch, unknown};

/// The options of a CSV file.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// `HEADERS`: whether the first line names the columns. If it is not said, a line that is read does if
    /// it says nothing but names of columns, and one is written.
    pub headers: Option<bool>,
    /// `NULL_VALUE`: the text that stands for NULL.
    pub null_value: Option<String>,
    /// `DELIMITER`: the character between fields.
    pub delimiter: u8,
    /// `QUOTE`: the character around fields; `None` for none.
    pub quote: Option<u8>,
    /// `COMPRESSION`: how the file is compressed, if the file is not to say.
    pub compression: Option<Compression>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            headers: None,
            null_value: None,
            delimiter: b',',
            quote: Some(b'"'),
            compression: None,
        }
    }
}

impl Options {
    /// Reads the options. The last of two that have one name counts.
    pub fn read(options: &[(String, String)]) -> Result<Self> {
        let mut this = Self::default();
        options.iter().try_for_each(|(name, value)| this.set(name, value))?;
        if this.quote == Some(this.delimiter) {
            return Err(Error::source("DELIMITER and QUOTE are the same"));
        }
        Ok(this)
    }

    /// Sets one option; fails if there is none of this name, or it has no such value.
    pub fn set(&mut self, name: &str, value: &str) -> Result<()> {
        let name = name.to_ascii_uppercase();
        match name.as_str() {
            "HEADERS" => self.headers = Some(switch(&name, value)?),
            "NULL_VALUE" => self.null_value = Some(value.to_owned()),
            "DELIMITER" => self.delimiter = character(&name, value)?,
            "QUOTE" if value.is_empty() => self.quote = None,
            "QUOTE" => self.quote = Some(character(&name, value)?),
            "COMPRESSION" => self.compression = compression(value)?,
            _ => {
                let known = "HEADERS, NULL_VALUE, DELIMITER, QUOTE and COMPRESSION";
                return Err(unknown(&name, "CSV", known));
            }
        }
        Ok(())
    }
}

fn character(name: &str, value: &str) -> Result<u8> {
    match value.as_bytes() {
        b"\\t" => Ok(b'\t'),
        &[byte] if byte.is_ascii() && !matches!(byte, b'\n' | b'\r' | 0) => Ok(byte),
        _ => Err(Error::source(format!("{name} is one ASCII character, not \"{value}\""))),
    }
}
