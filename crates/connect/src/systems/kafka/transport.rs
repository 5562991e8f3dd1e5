//! Topics as what tables are read from.

use alluvium::{
    Live, Portion, Refusal, Result, SourcePosition, SourceReader, System, Transport,
    TransportConnector, TransportRequest,
};
use arrow::array::BooleanArray;

use super::dead_letters::DeadLetters;
use super::position::Position;
use super::reader::{Limits, Reader};
use super::settings::Settings;
use crate::decode::{Decoder, Format, Messages, Operation, Shape};

/// The format of messages, if none is named.
const FORMAT: &str = "json";

/// Kafka: tables are read from topics, and the changes of views are written to them.
///
/// A row that is inserted into a table with a primary key takes the place of the one with its key. A position has the offset of
/// each partition, and what was read is read again from the topic: it has to keep messages until a checkpoint comes after them, unless rows
/// are recorded as well.
#[derive(Clone, Copy, Debug, Default)]
pub struct Kafka;

impl System for Kafka {
    fn name(&self) -> &str {
        "kafka"
    }

    fn check(&self, option: &str, value: &str) -> Result<()> {
        Settings::check(option, value)
    }

    fn is_secret(&self, option: &str) -> bool {
        Settings::is_secret(option)
    }

    fn canonical<'a>(&self, option: &'a str) -> &'a str {
        Settings::canonical(option)
    }

    fn is_of_connection(&self, option: &str) -> bool {
        Settings::is_of_connection(option)
    }

    fn is_file(&self, option: &str) -> bool {
        Settings::is_file(option)
    }

    /// Those of the first brokers, which name the others, and of a registry of schemas. They are trusted.
    fn hosts(&self, connector: &TransportConnector) -> Option<Vec<String>> {
        let brokers = connector.option("bootstrap.servers").unwrap_or_default().split(',');
        let host = |broker: &str| {
            let broker = broker.trim();
            broker.split_once("://").map_or(broker, |(_, host)| host).to_owned()
        };
        #[allow(unused_mut, reason = "registries are a feature")]
        let mut hosts: Vec<String> = brokers.map(host).collect();
        #[cfg(feature = "avro")]
        for option in ["registry_urls", "format.registry_urls"] {
            let urls = connector.option(option).unwrap_or_default();
            hosts.extend(crate::systems::registry::Settings::hosts(urls));
        }
        Some(hosts)
    }
}

impl Transport for Kafka {
    fn place(&self, connector: &TransportConnector) -> Result<String> {
        format(connector)?;
        place(connector)
    }

    fn open(&self, request: &TransportRequest) -> Result<Box<dyn SourceReader>> {
        let settings = settings(&request.connector)?;
        let shape = Shape {
            schema: request.schema.clone(),
            has_default: request.has_default.clone(),
            key: request.key.clone(),
        };
        let format = format(&request.connector)?.with_secrets(&request.connector)?;
        let decoder = Decoder::new(settings.topic(), &shape, &format)?;
        let position = match &request.start {
            Some(start) => Some(Position::read(start.bytes())?),
            None => None,
        };
        let most = Limits { messages: request.batch_rows, bytes: request.batch_bytes };
        let live = request.live.clone();
        Ok(Box::new(Input {
            settings,
            decoder,
            most,
            live,
            position,
            reader: None,
            dead_letters: None,
        }))
    }
}

/// The topic that a connector names, without what is secret.
pub(super) fn place(connector: &TransportConnector) -> Result<String> {
    let shown = connector.options.iter().filter(|(name, _)| !Settings::is_secret(name));
    let settings = Settings::read(&shown.cloned().collect::<Vec<_>>())?;
    Ok(format!("kafka://{}/{}", settings.brokers(), settings.topic()))
}

/// The options of a connector, with its secrets as they are now.
pub(super) fn settings(connector: &TransportConnector) -> Result<Settings> {
    let option = |(name, value): &(String, String)| {
        let secret = match Settings::is_secret(name) {
            true => connector.secret(name)?,
            false => None,
        };
        let value = secret.map_or_else(|| value.clone(), |secret| secret.reveal().to_owned());
        Ok((name.clone(), value))
    };
    Settings::read(&connector.options.iter().map(option).collect::<Result<Vec<_>>>()?)
}

fn format(connector: &TransportConnector) -> Result<Format> {
    Format::read(connector.format.as_deref().unwrap_or(FORMAT), &format_options(connector))
}

/// The options of a connector's format, with those of a registry that its connection has for all formats.
pub(super) fn format_options(connector: &TransportConnector) -> Vec<(String, String)> {
    let options = connector.format_options.clone();
    #[cfg(feature = "avro")]
    if connector.format.as_deref() == Some("avro") {
        let all = connector.options.iter();
        let all = all.filter(|(name, _)| crate::systems::registry::Settings::is_option(name));
        let all = all.map(|(name, value)| (name.to_ascii_uppercase(), value.clone()));
        // The last of two that have one name counts.
        return all.chain(options).collect();
    }
    options
}

/// Reads the rows of a topic.
struct Input {
    settings: Settings,
    decoder: Decoder,
    most: Limits,
    live: Option<Live>,
    /// Where the next portion begins, if that is known.
    position: Option<Position>,
    /// Opened when the first portion is asked for, as brokers may take long to answer.
    reader: Option<Reader>,
    /// Opened when the first message is refused.
    dead_letters: Option<DeadLetters>,
}

impl Input {
    fn reader(&mut self) -> Result<&mut Reader> {
        let reader = match self.reader.take() {
            Some(reader) => reader,
            None => Reader::open(&self.settings, self.position.as_ref(), self.live.as_ref())?,
        };
        Ok(self.reader.insert(reader))
    }

    /// The rows of the next messages of the reader, and which of these are refused.
    fn portion(&mut self, messages: &Messages) -> Result<(Portion, Vec<usize>)> {
        let reader = self.reader()?;
        let (position, gaps) = (reader.position(), reader.gaps());
        self.position = Some(position);
        let decoded = self.decoder.decode(messages, self.live.as_ref())?;
        let mut portion = decoded.portion;
        let deletes = |operation: &Operation| *operation == Operation::Delete;
        if decoded.operations.iter().any(deletes) {
            let deleted = decoded.operations.iter().map(|operation| Some(deletes(operation)));
            portion.deleted = Some(deleted.collect::<BooleanArray>());
        }
        let gap = |gap: super::start::Gap| {
            let place = format!("{}/{}:{}", gap.topic, gap.partition, gap.wanted);
            Refusal::new(place, 0, gap.to_string())
        };
        portion.refused.extend(gaps.into_iter().map(gap));
        Ok((portion, decoded.refused))
    }

    /// Writes refused messages to their topic, if one is named.
    fn lay_aside(
        &mut self,
        messages: &Messages,
        portion: &Portion,
        refused: &[usize],
    ) -> Result<()> {
        let Some(topic) = self.settings.dead_letter().filter(|_| !refused.is_empty()) else {
            return Ok(());
        };
        let live = self.live.as_ref();
        let letters = match self.dead_letters.take() {
            Some(letters) => letters,
            None => DeadLetters::open(&self.settings, topic, live)?,
        };
        let problems = portion.refused.iter().map(|refusal| refusal.message.as_str());
        let refused = refused.iter().copied().zip(problems);
        self.dead_letters.insert(letters).write((self.settings.topic(), messages), refused, live)
    }
}

impl SourceReader for Input {
    fn next(&mut self) -> Result<Option<Portion>> {
        let (most, live) = (self.most, self.live.clone());
        // The portion before this one has become part of the table.
        let done = self.position.clone();
        let reader = self.reader()?;
        if let Some(done) = done {
            reader.commit(&done);
        }
        match reader.next(most, live.as_ref())? {
            Some(messages) => {
                let (portion, refused) = self.portion(&messages)?;
                self.lay_aside(&messages, &portion, &refused)?;
                Ok(Some(portion))
            }
            None => Ok(None),
        }
    }

    fn position(&self) -> Option<SourcePosition> {
        let position = self.position.as_ref()?;
        Some(SourcePosition::new(position.bytes(), position.to_string()))
    }

    fn next_to(&mut self, end: &SourcePosition) -> Result<Option<Portion>> {
        let (end, live) = (Position::read(end.bytes())?, self.live.clone());
        let messages = self.reader()?.again(&end, live.as_ref())?;
        // What was refused was laid aside when it was first read.
        self.portion(&messages).map(|(portion, _)| Some(portion))
    }

    fn replays(&self) -> bool {
        !self.settings.records_rows()
    }

    fn unread(&self) -> Option<u64> {
        Some(self.reader.as_ref()?.lag().into_values().sum())
    }
}
