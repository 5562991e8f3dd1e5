//! The options of a JSON file.

use alluvium::{Error, Result};

use crate::options::{Compression, Sample, compression, unknown};

/// The options of a JSON file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Options {
    /// `COMPRESSION`: how the file is compressed, if the file is not to say.
    pub compression: Option<Compression>,
    /// `SAMPLE`: how many objects are looked at to find columns.
    pub sample: Sample,
    /// `NEW_MEMBERS`: whether members that are no columns are told.
    pub tells_new_members: bool,
    /// The names of members that are no columns, because the file's folders have them.
    pub passed: Vec<String>,
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
            "SAMPLE" | "SAMPLE_SIZE" => self.sample = Sample::read(value)?,
            "NEW_MEMBERS" => {
                self.tells_new_members = match value.to_ascii_lowercase().as_str() {
                    "tell" => true,
                    "pass" => false,
                    _ => {
                        let message = format!("NEW_MEMBERS is tell or pass, not \"{value}\"");
                        return Err(Error::source(message));
                    }
                }
            }
            // Feldera's word for objects that are rows.
            "UPDATE_FORMAT" if value.eq_ignore_ascii_case("raw") => {}
            "UPDATE_FORMAT" => {
                return Err(Error::source(format!(
                    "UPDATE_FORMAT \"{value}\" is not supported yet; rows are \"raw\" objects"
                )));
            }
            _ => {
                return Err(unknown(
                    &name,
                    "JSON",
                    "COMPRESSION, SAMPLE, NEW_MEMBERS and UPDATE_FORMAT",
                ));
            }
        }
        Ok(())
    }
}
