//! The options of a topic.

use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;
use std::time::Duration;

use alluvium::{Error, Result};
use rdkafka::ClientConfig;
use rdkafka::error::KafkaError;

use super::start::{OnGap, Start};
use crate::systems::addresses::is_of_link;
#[cfg(feature = "avro")]
use crate::systems::registry;

/// Options of the client that may be given, beside our own. Others would change what is read and written, or load code.
const CLIENT: &[&str] = &[
    "acks",
    "batch.num.messages",
    "batch.size",
    "bootstrap.servers",
    "broker.address.family",
    "broker.address.ttl",
    "check.crcs",
    "client.dns.lookup",
    "client.id",
    "client.rack",
    "compression.level",
    "compression.type",
    "connections.max.idle.ms",
    "enable.ssl.certificate.verification",
    "fetch.error.backoff.ms",
    "fetch.max.bytes",
    "fetch.message.max.bytes",
    "fetch.min.bytes",
    "fetch.queue.backoff.ms",
    "fetch.wait.max.ms",
    "group.id",
    "linger.ms",
    "max.in.flight",
    "max.partition.fetch.bytes",
    "message.max.bytes",
    "message.timeout.ms",
    "partitioner",
    "queue.buffering.max.kbytes",
    "queue.buffering.max.messages",
    "queued.max.messages.kbytes",
    "queued.min.messages",
    "receive.message.max.bytes",
    "reconnect.backoff.max.ms",
    "reconnect.backoff.ms",
    "request.timeout.ms",
    "retries",
    "retry.backoff.max.ms",
    "retry.backoff.ms",
    "sasl.mechanism",
    "sasl.mechanisms",
    "sasl.oauthbearer.config",
    "sasl.password",
    "sasl.username",
    "security.protocol",
    "socket.connection.setup.timeout.ms",
    "socket.keepalive.enable",
    "socket.nagle.disable",
    "socket.timeout.ms",
    "ssl.ca.location",
    "ssl.ca.pem",
    "ssl.certificate.location",
    "ssl.certificate.pem",
    "ssl.cipher.suites",
    "ssl.crl.location",
    "ssl.endpoint.identification.algorithm",
    "ssl.key.location",
    "ssl.key.password",
    "ssl.key.pem",
    "topic.metadata.refresh.interval.ms",
    "transaction.timeout.ms",
];

/// Options whose values are shown to nobody.
const SECRETS: &[&str] =
    &["sasl.oauthbearer.config", "sasl.password", "ssl.key.password", "ssl.key.pem"];

/// The options of the client that have the paths of files.
const FILES: &[&str] =
    &["ssl.ca.location", "ssl.certificate.location", "ssl.crl.location", "ssl.key.location"];

/// How the options begin that say how brokers are reached, and as whom.
const CONNECTION: &[&str] = &[
    "bootstrap.",
    "broker.",
    "client.",
    "connections.",
    "enable.ssl.",
    "reconnect.",
    "sasl.",
    "security.",
    "socket.",
    "ssl.",
];

/// Short names of options.
const SHORT: &[(&str, &str)] = &[
    ("brokers", "bootstrap.servers"),
    ("password", "sasl.password"),
    ("security", "security.protocol"),
    ("start", "start_from"),
    ("user", "sasl.username"),
];

/// How often a topic is looked at for partitions that are new, if it is not said.
const LOOK: Duration = Duration::from_secs(10);

/// The options of a topic.
#[derive(Clone, Default, PartialEq)]
pub struct Settings {
    topic: String,
    start: Start,
    on_gap: OnGap,
    /// Whether rows are recorded as well as positions.
    records_rows: bool,
    /// The topic of messages that are refused.
    dead_letter: Option<String>,
    client: BTreeMap<String, String>,
}

impl Settings {
    /// Reads all options of a topic. The last of two that have one name counts.
    ///
    /// # Errors
    /// If there is no such option, it has no such value, or one is missing that has to be there.
    pub fn read(options: &[(String, String)]) -> Result<Self> {
        let mut this = Self::default();
        options.iter().try_for_each(|(name, value)| this.set(name, value))?;
        let missing = |name: &str, what: &str| {
            Err(Error::source(format!("a topic of Kafka needs \"{name}\": {what}")))
        };
        if this.topic.is_empty() {
            return missing("topic", "its name");
        }
        if this.brokers().is_empty() {
            return missing("bootstrap.servers", "the address of a broker, such as 127.0.0.1:9092");
        }
        if this.dead_letter.as_ref() == Some(&this.topic) {
            return Err(Error::source(
                "\"dead_letter\" is another topic than the one that is read, which would never end",
            ));
        }
        Ok(this)
    }

    /// Fails if there is no such option, or it has no such value.
    pub fn check(name: &str, value: &str) -> Result<()> {
        Self::default().set(name, value)
    }

    /// Whether the value of an option is shown to nobody.
    pub fn is_secret(name: &str) -> bool {
        #[cfg(feature = "avro")]
        if registry::Settings::is_secret(of_format(name)) {
            return true;
        }
        SECRETS.contains(&name)
    }

    /// The name of an option that may have a short one.
    pub fn canonical(name: &str) -> &str {
        SHORT.iter().find(|(short, _)| *short == name).map_or(name, |(_, canonical)| canonical)
    }

    /// Whether an option says how brokers are reached, and as whom.
    pub fn is_of_connection(name: &str) -> bool {
        CONNECTION.iter().any(|begin| name.starts_with(begin)) || is_of_registry(name)
    }

    /// Whether an option is the path of a file.
    pub fn is_file(name: &str) -> bool {
        #[cfg(feature = "avro")]
        if registry::Settings::is_file(of_format(name)) {
            return true;
        }
        FILES.contains(&name)
    }

    fn set(&mut self, name: &str, value: &str) -> Result<()> {
        let name = name.to_ascii_lowercase();
        match name.as_str() {
            "topic" => self.topic = topic(value)?,
            "start_from" | "auto.offset.reset" => self.start = Start::read(value)?,
            "on_gap" => self.on_gap = OnGap::read(value)?,
            "dead_letter" => self.dead_letter = Some(topic(value)?),
            "journal" => {
                self.records_rows = match value.to_ascii_lowercase().as_str() {
                    "positions" => false,
                    "rows" => true,
                    _ => {
                        let message =
                            format!("\"journal\" is \"positions\" or \"rows\", not \"{value}\"");
                        return Err(Error::source(message));
                    }
                };
            }
            _ if CLIENT.contains(&name.as_str()) => {
                if name == "bootstrap.servers" {
                    check_brokers(value)?;
                }
                let client = ClientConfig::from_iter([(name.clone(), value.to_owned())]);
                client.create_native_config().map_err(|error| wrong(&name, value, &error))?;
                self.client.insert(name, value.to_owned());
            }
            // Messages of Avro need it.
            #[cfg(feature = "avro")]
            name if is_of_registry(name) => registry::Settings::check(of_format(name), value)?,
            _ => {
                return Err(Error::source(format!(
                    "a topic of Kafka has no option \"{name}\"; there are topic, start_from, on_gap, journal, dead_letter, and of the client \
                     bootstrap.servers, group.id, security.protocol, sasl.*, ssl.* and those of buffers and times"
                )));
            }
        }
        Ok(())
    }

    /// The name of the topic.
    pub fn topic(&self) -> &str {
        &self.topic
    }

    /// The topic that messages which are refused are written to, if one is named.
    pub fn dead_letter(&self) -> Option<&str> {
        self.dead_letter.as_deref()
    }

    /// Those of another topic of the same brokers.
    pub(super) fn of_topic(&self, topic: &str) -> Self {
        let client = self.client.clone();
        Self { topic: topic.to_owned(), client, ..Self::default() }
    }

    /// Where reading begins.
    pub fn start(&self) -> &Start {
        &self.start
    }

    /// What happens where messages are gone.
    pub fn on_gap(&self) -> OnGap {
        self.on_gap
    }

    /// Whether an engine with a state directory records rows as well as positions.
    pub fn records_rows(&self) -> bool {
        self.records_rows
    }

    /// The addresses of brokers to begin with.
    pub fn brokers(&self) -> &str {
        self.client.get("bootstrap.servers").map_or("", String::as_str)
    }

    /// The paths of files that the client reads: certificates and keys.
    pub fn files(&self) -> impl Iterator<Item = &str> {
        FILES.iter().filter_map(|name| self.client.get(*name)).map(String::as_str)
    }

    /// The group that offsets are committed to, if one is named.
    pub(super) fn group(&self) -> Option<&str> {
        self.client.get("group.id").map(String::as_str)
    }

    /// How often the topic is looked at for partitions that are new.
    pub(super) fn look(&self) -> Duration {
        let given = self.client.get("topic.metadata.refresh.interval.ms");
        let given = given.and_then(|given| given.parse().ok());
        given.map_or(LOOK, Duration::from_millis)
    }

    /// The options of a client: those that were given, or else these.
    pub(super) fn client(&self, usual: &[(&str, &str)], fixed: &[(&str, &str)]) -> ClientConfig {
        let mut client = ClientConfig::new();
        let given = self.client.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        for (name, value) in usual.iter().copied().chain(given).chain(fixed.iter().copied()) {
            client.set(name, value);
        }
        client
    }
}

impl fmt::Debug for Settings {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { topic, start, on_gap, records_rows, dead_letter, client } = self;
        let shown = |(name, value)| match SECRETS.contains(&str_of(name)) {
            true => (name, "…"),
            false => (name, str_of(value)),
        };
        let client: BTreeMap<&String, &str> = client.iter().map(shown).collect();
        to.debug_struct("Settings")
            .field("topic", topic)
            .field("start", start)
            .field("on_gap", on_gap)
            .field("records_rows", records_rows)
            .field("dead_letter", dead_letter)
            .field("client", &client)
            .finish()
    }
}

fn str_of(text: &String) -> &str {
    text
}

/// A name that a topic can have.
fn topic(name: &str) -> Result<String> {
    let may_have = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    let is_name = !name.is_empty() && name.len() <= 249 && name != "." && name != "..";
    match is_name && name.bytes().all(may_have) {
        true => Ok(name.to_owned()),
        false => Err(Error::source(format!(
            "\"{name}\" is not the name of a topic, which has up to 249 letters, digits, dots, underscores and hyphens"
        ))),
    }
}

/// The name of an option without what stands before those of a format.
#[cfg(feature = "avro")]
fn of_format(name: &str) -> &str {
    name.strip_prefix("format.").unwrap_or(name)
}

/// Whether an option is one of a registry of schemas: of the format, or of the connection for all formats.
#[cfg(feature = "avro")]
fn is_of_registry(name: &str) -> bool {
    registry::Settings::is_option(of_format(name))
}

#[cfg(not(feature = "avro"))]
fn is_of_registry(_: &str) -> bool {
    false
}

/// Fails if an address is one that nothing connects to.
fn check_brokers(value: &str) -> Result<()> {
    let host = |broker: &str| {
        let broker = broker.rsplit_once("://").map_or(broker, |(_, broker)| broker).trim();
        let host = broker.rsplit_once(':').map_or(broker, |(host, _)| host);
        host.trim_matches(['[', ']']).parse::<IpAddr>().ok()
    };
    match value.split(',').filter_map(host).find(|address| is_of_link(*address)) {
        Some(address) => Err(Error::source(format!(
            "{address} is an address of this link only, to which nothing connects"
        ))),
        None => Ok(()),
    }
}

/// The error of an option of the client, without its value if that is secret.
fn wrong(name: &str, value: &str, error: &KafkaError) -> Error {
    let reason = match error {
        KafkaError::ClientConfig(_, reason, ..) if !SECRETS.contains(&name) => reason.as_str(),
        _ => "",
    };
    let reason = if reason.is_empty() { String::new() } else { format!(": {reason}") };
    match SECRETS.contains(&name) {
        true => Error::source(format!("\"{name}\" of a topic of Kafka has no such value")),
        false => {
            Error::source(format!("\"{name}\" of a topic of Kafka cannot be \"{value}\"{reason}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(options: &[(&str, &str)]) -> Vec<(String, String)> {
        options.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn a_topic_and_a_broker_are_needed() {
        let problem =
            |given: &[(&str, &str)]| Settings::read(&options(given)).unwrap_err().to_string();
        assert!(problem(&[("bootstrap.servers", "a:1")]).contains("needs \"topic\""));
        assert!(problem(&[("topic", "t")]).contains("needs \"bootstrap.servers\""));
        assert!(problem(&[("topic", "a/b")]).contains("\"a/b\" is not the name of a topic"));
        assert!(problem(&[("colour", "red")]).contains("no option \"colour\""));
        assert!(problem(&[("socket.timeout.ms", "soon")]).contains("cannot be \"soon\""));
        assert!(problem(&[("on_gap", "panic")]).contains("\"on_gap\" is \"fail\""));
        let given = [("topic", "t"), ("bootstrap.servers", "a:1"), ("dead_letter", "t")];
        assert!(problem(&given).contains("another topic"));
        assert!(problem(&[("journal", "none")]).contains("\"positions\" or \"rows\""));
        let given = [("TOPIC", "t"), ("bootstrap.servers", "a:1"), ("start_from", "latest")];
        let settings = Settings::read(&options(&given)).unwrap();
        assert_eq!((settings.topic(), settings.start()), ("t", &Start::Latest));
    }

    #[test]
    fn what_would_change_what_is_read_or_load_code_is_no_option() {
        for name in [
            "isolation.level",
            "enable.auto.commit",
            "plugin.library.paths",
            "ssl.engine.location",
            "transactional.id",
            "debug",
        ] {
            let error = Settings::check(name, "true").unwrap_err().to_string();
            assert!(error.contains("has no option"), "{name}: {error}");
        }
    }

    #[test]
    fn an_address_of_the_link_is_no_broker() {
        for brokers in ["169.254.169.254:80", "a:9092, 169.254.1.1", "PLAINTEXT://[fe80::1]:9092"] {
            let error = Settings::check("bootstrap.servers", brokers).unwrap_err().to_string();
            assert!(error.contains("an address of this link only"), "{error}");
        }
        for brokers in ["127.0.0.1:9092", "a:9092,b:9092", "[::1]:9092"] {
            Settings::check("bootstrap.servers", brokers).unwrap();
        }
    }

    #[test]
    fn how_brokers_are_reached_is_of_connections() {
        for name in SECRETS.iter().chain(FILES).chain(&["bootstrap.servers", "sasl.username"]) {
            assert!(Settings::is_of_connection(name), "{name}");
        }
        for name in ["topic", "start_from", "on_gap", "journal", "group.id", "fetch.max.bytes"] {
            assert!(!Settings::is_of_connection(name), "{name}");
        }
        for (short, name) in SHORT {
            assert_eq!(Settings::canonical(short), *name);
            assert_eq!(Settings::canonical(name), *name);
            assert!(!CLIENT.contains(short));
        }
    }

    #[test]
    fn secrets_are_shown_to_nobody() {
        const SECRET: &str = "xyzzy-4711";
        let mut given =
            vec![("topic", "t"), ("bootstrap.servers", "a:1"), ("sasl.username", "ann")];
        given.extend(SECRETS.iter().map(|name| (*name, SECRET)));
        let settings = Settings::read(&options(&given)).unwrap();
        let shown = format!("{settings:?}");
        assert!(shown.contains("ann") && !shown.contains(SECRET), "{shown}");
        for name in SECRETS {
            let refused = wrong(name, SECRET, &KafkaError::Canceled).to_string();
            assert!(refused.contains(name) && !refused.contains(SECRET), "{refused}");
        }
    }
}
