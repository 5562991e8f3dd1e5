//! Where the schemas of messages are.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use alluvium::{Error, Live, Result, TransportConnector};

use super::schema::Record;
use super::writer::Writer;
use crate::options::switch;
use crate::systems::registry::{self, Registry};
use crate::systems::waiting::pause;

/// How often a registry is asked for a schema that it does not have, and how long to wait in between.
const TRIES: usize = 4;
const BETWEEN: Duration = Duration::from_millis(250);

/// After how long it is asked again.
const FORGOTTEN: Duration = Duration::from_secs(10);

/// Where the schemas of messages are, as options say.
#[derive(Clone, Debug, PartialEq)]
pub enum SchemaSource {
    /// `REGISTRY_URLS` and others: a registry knows the schema of each message, which begins with its identifier.
    Registry(registry::Settings),
    /// `SCHEMA`: all messages are of one.
    One {
        /// The schema.
        schema: String,
        /// `SKIP_SCHEMA_ID`: whether messages begin with no identifier.
        is_bare: bool,
    },
}

/// The schemas of messages.
pub(super) enum Schemas {
    /// A registry knows the one of each message.
    Registry {
        registry: Registry,
        /// Identifiers that it did not have, and when it was asked.
        missing: HashMap<u32, Instant>,
    },
    /// All messages are of this one, and may begin with an identifier.
    One { schema: String, is_bare: bool },
}

impl SchemaSource {
    /// The source that options name, and the other options. Names are in upper case. Secrets are not read.
    pub fn read(options: Vec<(String, String)>) -> Result<(Self, Vec<(String, String)>)> {
        let (registry, options) = registry::Settings::read(options)?;
        let (mut schema, mut is_bare, mut others) = (None, None, Vec::new());
        for (name, value) in options {
            match name.as_str() {
                "SCHEMA" => schema = Some(value),
                "SKIP_SCHEMA_ID" => is_bare = Some(switch(&name, &value)?),
                _ => others.push((name, value)),
            }
        }
        match (registry.is_named(), schema, is_bare) {
            (true, None, None | Some(false)) => Ok((Self::Registry(registry), others)),
            (true, Some(_), _) => Err(Error::source(
                "SCHEMA and REGISTRY_URLS are two ways to find schemas: leave one out",
            )),
            (true, None, Some(true)) => Err(Error::source(
                "messages without identifiers have no schemas in a registry: name SCHEMA",
            )),
            (false, Some(schema), is_bare) => {
                Record::read(&schema, [])
                    .and_then(|record| Writer::new(record, |_| true))
                    .map_err(|problem| Error::source(format!("SCHEMA: {problem}")))?;
                Ok((Self::One { schema, is_bare: is_bare.unwrap_or(false) }, others))
            }
            (false, None, _) => Err(Error::source(
                "messages of Avro need REGISTRY_URLS, the addresses of a registry of their schemas, or SCHEMA",
            )),
        }
    }

    /// With the secrets of a connector as they are now.
    ///
    /// # Errors
    /// If one cannot be read.
    pub fn with_secrets(self, connector: &TransportConnector) -> Result<Self> {
        match self {
            Self::Registry(settings) => Ok(Self::Registry(settings.with_secrets(connector)?)),
            one @ Self::One { .. } => Ok(one),
        }
    }

    pub(super) fn open(&self) -> Result<Schemas> {
        match self.clone() {
            Self::Registry(settings) => Ok(Schemas::Registry {
                registry: Registry::new(settings)?,
                missing: HashMap::new(),
            }),
            Self::One { schema, is_bare } => Ok(Schemas::One { schema, is_bare }),
        }
    }
}

impl Schemas {
    /// The number of the schema of a part of a message, and what comes after the identifier.
    pub(super) fn split<'a>(&self, part: &'a [u8]) -> Option<(u32, &'a [u8])> {
        match self {
            Self::Registry { .. } => identifier(part),
            Self::One { is_bare: true, .. } => Some((0, part)),
            Self::One { is_bare: false, .. } => identifier(part).map(|(_, body)| (0, body)),
        }
    }

    /// Whether keys are written by schemas as well.
    pub(super) fn is_of_keys(&self) -> bool {
        matches!(self, Self::Registry { .. })
    }

    /// What decodes the messages of a schema, or why nothing can; `None` if the registry does not have it for now.
    pub(super) fn writer(
        &mut self,
        id: u32,
        is_wanted: impl Fn(&str) -> bool,
        live: Option<&Live>,
    ) -> Result<Option<std::result::Result<Writer, String>>> {
        let (text, others) = match self {
            Self::One { schema, .. } => (schema.clone(), Vec::new()),
            Self::Registry { registry, missing } => {
                let Some(schema) = find(registry, missing, id, live)? else { return Ok(None) };
                if let Some(kind) = schema.kind.filter(|kind| kind != "AVRO") {
                    return Ok(Some(Err(format!("the schema {id} is one of {kind}, not of Avro"))));
                }
                let mut others = Vec::new();
                collect(registry, schema.references, &mut others, live)?;
                (schema.text, others)
            }
        };
        let of_schema = |problem| format!("the schema {id} is not read: {problem}");
        let record = Record::read(&text, others);
        let writer = record.and_then(|record| Writer::new(record, is_wanted));
        Ok(Some(writer.map_err(of_schema)))
    }
}

/// The schema of an identifier. One that is not there is asked for again: it may be new, and a server of several not know it yet.
fn find(
    registry: &Registry,
    missing: &mut HashMap<u32, Instant>,
    id: u32,
    live: Option<&Live>,
) -> Result<Option<registry::Schema>> {
    missing.retain(|_, since| since.elapsed() < FORGOTTEN);
    if missing.contains_key(&id) {
        return Ok(None);
    }
    for _ in 0..TRIES {
        if let Some(schema) = registry.schema(id, live)? {
            return Ok(Some(schema));
        }
        pause(BETWEEN, live)?;
    }
    missing.insert(id, Instant::now());
    Ok(None)
}

/// The schemas that one refers to, and those that they refer to, with their names.
fn collect(
    registry: &Registry,
    references: Vec<registry::Reference>,
    to: &mut Vec<(String, String)>,
    live: Option<&Live>,
) -> Result<()> {
    let mut left = references;
    while let Some(reference) = left.pop() {
        if to.iter().any(|(name, _)| *name == reference.name) {
            continue;
        }
        if let Some(schema) = registry.version(&reference, live)? {
            left.extend(schema.references);
            to.push((reference.name, schema.text));
        }
    }
    Ok(())
}

/// The identifier that a part of a message begins with, and what comes after it.
fn identifier(part: &[u8]) -> Option<(u32, &[u8])> {
    let (head, body) = part.split_first_chunk::<5>()?;
    let [0, id @ ..] = head else { return None };
    Some((u32::from_be_bytes(*id), body))
}
