//! The options of a JSON file.

use alluvium::{Error, Result};

use crate::options::{Compression, compression, unknown};

/// The options of a JSON file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Options {
    /// `COMPRESSION`: how the file is compressed, if the file is not to say.
    pub compression: Option<Compression>,
}

impl Options {
    /// Reads the options. The last of two that have one name counts.
    pub fn read(options: &[(String, String)]) -> Result<Self> {
        let mut this = Self::default();
        options.iter().try_for_each(|(name, value)| this.set(name, value))?;
        Ok(this)
    }

    /// Sets one option; fails if there is none of this name, or it has no such value.
    pub fn set(&mut self, name: &str, value: &str) -> Result<()> {
        let name = name.to_ascii_uppercase();
        match name.as_str() {
            "COMPRESSION" => self.compression = compression(value)?,
            // Feldera's word for objects that are rows.
            "UPDATE_FORMAT" if value.eq_ignore_ascii_case("raw") => {}
            "UPDATE_FORMAT" => {
                return Err(Error::source(format!(
                    "UPDATE_FORMAT \"{value}\" is not supported yet; rows are \"raw\" objects"
                )));
            }
            _ => return Err(unknown(&name, "JSON", "COMPRESSION and UPDATE_FORMAT")),
        }
        Ok(())
    }
}
