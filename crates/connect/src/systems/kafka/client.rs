//! Clients: what they tell of brokers, and what their errors mean.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use alluvium::{Error, Live, Result};
use rdkafka::ClientContext;
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::consumer::ConsumerContext;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::statistics::Statistics;

use super::settings::Settings;
use crate::systems::waiting::{Backoff, check_live};

/// How long a broker may take for an answer before it is asked again: at first, and at most.
const ANSWER: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(5));

/// Keeps what a client tells.
#[derive(Default)]
pub struct Context {
    told: Mutex<Told>,
}

#[derive(Default)]
struct Told {
    /// The last trouble with a broker.
    trouble: Option<String>,
    /// The offset after the last message of each partition, as of the last answers of brokers.
    highs: HashMap<i32, i64>,
    /// The offset of the last mark of a writer.
    marked: Option<i64>,
    /// Why a message was not delivered.
    undelivered: Option<KafkaError>,
}

impl Context {
    /// The last trouble with a broker, since the last time all was well.
    pub fn trouble(&self) -> Option<String> {
        self.told().trouble.clone()
    }

    /// All is well.
    pub fn forget_trouble(&self) {
        self.told().trouble = None;
    }

    /// The offset after the last message of a partition.
    pub fn high(&self, partition: i32) -> Option<i64> {
        self.told().highs.get(&partition).copied()
    }

    /// The offset of the last mark of a writer.
    pub fn marked(&self) -> Option<i64> {
        self.told().marked
    }

    /// A mark was delivered.
    pub fn set_marked(&self, offset: i64) {
        self.told().marked = Some(offset);
    }

    /// Why a message was not delivered, if one was not since this was last asked.
    pub fn take_undelivered(&self) -> Option<KafkaError> {
        self.told().undelivered.take()
    }

    /// A message was not delivered.
    pub fn set_undelivered(&self, error: &KafkaError) {
        self.told().undelivered = Some(error.clone());
    }

    fn told(&self) -> MutexGuard<'_, Told> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ClientContext for Context {
    fn log(&self, _: RDKafkaLogLevel, _: &str, _: &str) {}

    fn stats(&self, statistics: Statistics) {
        let topics = statistics.topics.values();
        let partitions = topics.flat_map(|topic| topic.partitions.values());
        let known = partitions.filter(|partition| partition.hi_offset >= 0);
        let highs = known.map(|partition| (partition.partition, partition.hi_offset));
        self.told().highs.extend(highs);
    }

    fn error(&self, _: KafkaError, reason: &str) {
        self.told().trouble = Some(reason.to_owned());
    }
}

impl ConsumerContext for Context {}

/// Whether waiting does not mend an error.
pub fn is_final(error: &KafkaError) -> bool {
    use RDKafkaErrorCode as Code;
    if let KafkaError::MessageConsumptionFatal(_) | KafkaError::ClientConfig(..) = error {
        return true;
    }
    let code = error.rdkafka_error_code();
    let is_final = [
        Code::Authentication,
        Code::ClusterAuthorizationFailed,
        Code::Fatal,
        Code::Fenced,
        Code::IllegalSASLState,
        Code::InvalidConfig,
        Code::InvalidReplicationFactor,
        Code::InvalidTopic,
        Code::MessageSizeTooLarge,
        Code::NotImplemented,
        Code::PolicyViolation,
        Code::ProducerFenced,
        Code::SaslAuthenticationFailed,
        Code::SecurityDisabled,
        Code::TopicAuthorizationFailed,
        Code::TransactionalIdAuthorizationFailed,
        Code::UnsupportedFeature,
        Code::UnsupportedSASLMechanism,
        Code::UnsupportedVersion,
    ];
    code.is_some_and(|code| is_final.contains(&code))
}

/// The sentence of an error: what was done with which topic and brokers, why not, and what to do.
pub fn failed(verb: &str, settings: &Settings, error: &KafkaError, trouble: Option<&str>) -> Error {
    use RDKafkaErrorCode as Code;
    let code = error.rdkafka_error_code();
    let advice = match code {
        Some(Code::Authentication | Code::SaslAuthenticationFailed) => {
            "; check sasl.mechanism, sasl.username and sasl.password"
        }
        Some(Code::UnsupportedSASLMechanism | Code::IllegalSASLState) => {
            "; check security.protocol and sasl.mechanism"
        }
        Some(
            Code::TopicAuthorizationFailed
            | Code::GroupAuthorizationFailed
            | Code::ClusterAuthorizationFailed
            | Code::TransactionalIdAuthorizationFailed,
        ) => "; the user needs an ACL for it",
        Some(Code::UnknownTopicOrPartition | Code::UnknownTopic | Code::UnknownPartition) => {
            "; make the topic, or check its name"
        }
        Some(Code::Fenced | Code::ProducerFenced | Code::InvalidProducerEpoch) => {
            "; another writer of the same name has taken over, and this one must not write any more"
        }
        Some(Code::MessageSizeTooLarge) => {
            "; raise message.max.bytes here, and max.message.bytes of the topic"
        }
        _ => "",
    };
    let reason = match code {
        Some(code) => code.to_string(),
        // Its text has the value, which may be secret.
        None => match error {
            KafkaError::ClientConfig(_, reason, name, _) => format!("\"{name}\": {reason}"),
            error => error.to_string(),
        },
    };
    let trouble = trouble.map(|trouble| format!(" ({trouble})")).unwrap_or_default();
    let (topic, brokers) = (settings.topic(), settings.brokers());
    Error::source(format!(
        "cannot {verb} the topic \"{topic}\" on {brokers}: {reason}{trouble}{advice}"
    ))
}

/// Asks brokers until they answer, or an error comes that waiting does not mend. Whatever is not live is not waited for long.
pub fn insist<T>(
    verb: &str,
    settings: &Settings,
    (context, live): (&Context, Option<&Live>),
    mut ask: impl FnMut(Duration) -> std::result::Result<T, KafkaError>,
) -> Result<T> {
    let (mut backoff, mut answer) = (Backoff::default(), ANSWER.0);
    loop {
        check_live(live)?;
        match ask(answer) {
            Ok(answer) => {
                context.forget_trouble();
                return Ok(answer);
            }
            Err(error) if is_final(&error) || backoff.is_over(live) => {
                return Err(failed(verb, settings, &error, context.trouble().as_deref()));
            }
            Err(_) => backoff.wait(live)?,
        }
        answer = ANSWER.1.min(answer * 2);
    }
}
