//! What `COPY` may say about a CSV file.

use alluvium::{Error, Result};

/// The options of one `COPY`.
#[derive(Debug, Default, PartialEq)]
pub struct Options {
    /// `HEADERS`: whether the first line names the columns; false if not said.
    pub headers: bool,
    /// `NULL_VALUE`: the text that stands for NULL.
    pub null_value: Option<String>,
}

impl Options {
    /// Reads the options; names count without regard to case. The last of two that have one name counts.
    pub fn read(options: &[(String, String)]) -> Result<Self> {
        let mut this = Self::default();
        for (name, value) in options {
            match name.to_ascii_lowercase().as_str() {
                "headers" => this.headers = switch(name, value)?,
                "null_value" => this.null_value = Some(value.clone()),
                _ => {
                    return Err(Error::source(format!(
                        "no option \"{name}\" for CSV; there are HEADERS and NULL_VALUE"
                    )));
                }
            }
        }
        Ok(this)
    }
}

fn switch(name: &str, value: &str) -> Result<bool> {
    match value.to_ascii_lowercase().as_str() {
        "true" => Ok(true),
        "false" => Ok(false),
        _ => Err(Error::source(format!(
            "{} is true or false, not \"{value}\"",
            name.to_ascii_uppercase()
        ))),
    }
}
