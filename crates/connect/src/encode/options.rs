//! Which messages changes become, as options say.

use alluvium::{DeliveryRequest, Error, Result};

use super::Envelope;
use crate::options::{texts, unknown};

/// Which messages changes become.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// `UPDATE_FORMAT`.
    pub envelope: Envelope,
    /// `KEY_COLUMNS`: the columns of the messages' keys.
    pub key: Vec<String>,
}

impl Options {
    /// Reads the options of a format. Names are in upper case.
    ///
    /// # Errors
    /// If there is no such option, which is then told with the `others` that there are, or it has no such value.
    pub fn read(options: &[(String, String)], others: &str) -> Result<Self> {
        let (mut envelope, mut key) = (Envelope::Changes, Vec::new());
        for (name, value) in options {
            match (name.as_str(), value.to_ascii_lowercase().as_str()) {
                ("UPDATE_FORMAT", "changes") => envelope = Envelope::Changes,
                ("UPDATE_FORMAT", "upsert") => envelope = Envelope::Upsert,
                ("UPDATE_FORMAT", "debezium") => envelope = Envelope::Debezium,
                ("UPDATE_FORMAT", _) => {
                    return Err(Error::source(format!(
                        "\"update_format\" of messages is changes, upsert or debezium, not \"{value}\""
                    )));
                }
                ("KEY_COLUMNS", _) => key = texts(value),
                _ => {
                    let known = format!("update_format and key_columns{others}");
                    return Err(unknown(name, "messages", &known));
                }
            }
        }
        Ok(Self { envelope, key })
    }

    /// The columns of the messages' keys.
    ///
    /// # Errors
    /// If one is not there, or the envelope does not suit the view.
    pub fn key(&self, request: &DeliveryRequest) -> Result<Vec<usize>> {
        let key = self.key.iter().map(|name| {
            request.schema.index_of(name).map_err(|_| {
                let view = &request.relation;
                Error::source(format!("\"{view}\" has no column \"{name}\" to be a key"))
            })
        });
        let key = key.collect::<Result<Vec<usize>>>()?;
        self.envelope.check(&request.schema, &key)?;
        Ok(key)
    }
}
