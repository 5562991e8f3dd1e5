//! The formats of messages, and their options.

use alluvium::{Error, Result, TransportConnector};
use arrow::datatypes::{FieldRef, SchemaRef};

#[cfg(feature = "avro")]
use super::avro::SchemaSource;
use super::metadata::Metadata;
use crate::csv::Options as CsvOptions;
use crate::options::{texts, unknown};

/// The format of messages.
#[derive(Clone, Debug, PartialEq)]
pub enum Format {
    /// A record of Avro.
    #[cfg(feature = "avro")]
    Avro {
        /// As of JSON, without insertions and deletions.
        envelope: Envelope,
        /// As of JSON.
        key_columns: Vec<String>,
        /// Where its schemas are.
        schemas: SchemaSource,
        /// As of JSON.
        metadata: Vec<(String, Metadata)>,
    },
    /// An object of JSON.
    Json {
        /// What it has around the columns.
        envelope: Envelope,
        /// `KEY_COLUMNS`: the columns that are in the key of a message.
        key_columns: Vec<String>,
        /// `METADATA`: the columns that are none of the message itself.
        metadata: Vec<(String, Metadata)>,
    },
    /// A record of CSV.
    Csv {
        /// The dialect and the spelling of values.
        options: Box<CsvOptions>,
        /// As of JSON.
        metadata: Vec<(String, Metadata)>,
    },
    /// A value as it stands, of a table with one column beside those of metadata.
    Raw {
        /// As of JSON.
        metadata: Vec<(String, Metadata)>,
    },
}

/// What a message of JSON has around the columns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Envelope {
    /// Nothing: each is a row.
    #[default]
    Raw,
    /// `{"insert": {…}}`, `{"delete": {…}}`, or both.
    InsertDelete,
    /// Debezium's: `{"op": "u", "before": {…}, "after": {…}}`, in `{"payload": …}` or not.
    Debezium,
}

impl Format {
    /// Reads a format's name and its options, whose names may be in any case.
    pub fn read(name: &str, options: &[(String, String)]) -> Result<Self> {
        let mut metadata = Vec::new();
        let mut others = Vec::new();
        for (name, value) in options {
            match name.eq_ignore_ascii_case("METADATA") {
                true => metadata = Metadata::read(value)?,
                false => others.push((name.to_ascii_uppercase(), value.clone())),
            }
        }
        match name.to_ascii_lowercase().as_str() {
            #[cfg(feature = "avro")]
            "avro" => {
                let (schemas, others) = SchemaSource::read(others)?;
                let (mut envelope, mut key_columns) = (Envelope::default(), Vec::new());
                for (name, value) in &others {
                    match name.as_str() {
                        "UPDATE_FORMAT" => envelope = Envelope::read(value)?,
                        "KEY_COLUMNS" => key_columns = texts(value),
                        _ => {
                            let known = "UPDATE_FORMAT, KEY_COLUMNS, METADATA, SCHEMA, SKIP_SCHEMA_ID, REGISTRY_URLS, REGISTRY_USERNAME, \
                                         REGISTRY_PASSWORD, REGISTRY_AUTHORIZATION_TOKEN and REGISTRY_CA";
                            return Err(unknown(name, "messages of Avro", known));
                        }
                    }
                }
                if envelope == Envelope::InsertDelete {
                    return Err(Error::source(
                        "UPDATE_FORMAT of messages of Avro is raw or debezium",
                    ));
                }
                Ok(Self::Avro { envelope, key_columns, schemas, metadata })
            }
            #[cfg(not(feature = "avro"))]
            "avro" => Err(Error::source(
                "messages of Avro are read by a program that was built with the feature \"avro\"",
            )),
            "json" | "jsonl" => {
                let (mut envelope, mut key_columns) = (Envelope::default(), Vec::new());
                for (name, value) in &others {
                    match name.as_str() {
                        "UPDATE_FORMAT" => envelope = Envelope::read(value)?,
                        "KEY_COLUMNS" => key_columns = texts(value),
                        "ARRAY" if value.eq_ignore_ascii_case("false") => {}
                        _ => {
                            let known = "UPDATE_FORMAT, KEY_COLUMNS and METADATA";
                            return Err(unknown(name, "messages of JSON", known));
                        }
                    }
                }
                Ok(Self::Json { envelope, key_columns, metadata })
            }
            "csv" => Ok(Self::Csv { options: Box::new(CsvOptions::read(&others)?), metadata }),
            "raw" => match others.first() {
                None => Ok(Self::Raw { metadata }),
                Some((name, _)) => Err(unknown(name, "raw messages", "METADATA")),
            },
            _ => Err(Error::source(format!(
                "messages of the format \"{name}\" are not read; there are avro, json, csv and raw"
            ))),
        }
    }

    /// With the secrets of a connector as they are now.
    ///
    /// # Errors
    /// If one cannot be read.
    pub fn with_secrets(self, connector: &TransportConnector) -> Result<Self> {
        match self {
            #[cfg(feature = "avro")]
            Self::Avro { envelope, key_columns, schemas, metadata } => {
                let schemas = schemas.with_secrets(connector)?;
                Ok(Self::Avro { envelope, key_columns, schemas, metadata })
            }
            other => Ok(other),
        }
    }

    /// The columns that are metadata.
    pub(super) fn metadata_of(&self, schema: &SchemaRef) -> Result<Vec<(FieldRef, Metadata)>> {
        let metadata = match self {
            #[cfg(feature = "avro")]
            Self::Avro { metadata, .. } => metadata,
            Self::Json { metadata, .. } | Self::Csv { metadata, .. } | Self::Raw { metadata } => {
                metadata
            }
        };
        let column = |(name, what): &(String, Metadata)| match schema.index_of(name) {
            Ok(column) => Ok((schema.fields()[column].clone(), *what)),
            Err(_) => Err(Error::source(format!(
                "METADATA names \"{name}\", which is not a column of the table"
            ))),
        };
        metadata.iter().map(column).collect()
    }
}

impl Envelope {
    fn read(value: &str) -> Result<Self> {
        match value.to_ascii_lowercase().as_str() {
            "raw" => Ok(Self::Raw),
            "insert_delete" => Ok(Self::InsertDelete),
            "debezium" => Ok(Self::Debezium),
            _ => Err(Error::source(format!(
                "UPDATE_FORMAT is raw, insert_delete or debezium, not \"{value}\""
            ))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_read_and_others_refused() {
        let read = |name: &str, options: &[(&str, &str)]| {
            let options = options.iter().map(|(name, value)| (name.to_string(), value.to_string()));
            Format::read(name, &options.collect::<Vec<_>>()).map_err(|error| error.to_string())
        };
        let expected = Format::Json {
            envelope: Envelope::Debezium,
            key_columns: vec!["a".to_owned(), "b".to_owned()],
            metadata: vec![("at".to_owned(), Metadata::Timestamp)],
        };
        let options = [
            ("update_format", "DEBEZIUM"),
            ("key_columns", "[\"a\", \"b\"]"),
            ("Metadata", "{\"at\": \"timestamp\"}"),
        ];
        assert_eq!(read("JSON", &options), Ok(expected));
        for (name, option, problem) in [
            ("xml", ("METADATA", "{}"), "\"xml\" are not read"),
            ("json", ("UPDATE_FORMAT", "weighted"), "not \"weighted\""),
            ("json", ("ARRAY", "true"), "no option \"ARRAY\""),
            ("raw", ("DELIMITER", ";"), "no option \"DELIMITER\""),
            ("csv", ("COLOUR", ";"), "COLOUR"),
            ("raw", ("METADATA", "{\"at\": \"colour\"}"), "METADATA"),
        ] {
            let error = read(name, &[option]).unwrap_err();
            assert!(error.contains(problem), "{error}");
        }
    }
}
