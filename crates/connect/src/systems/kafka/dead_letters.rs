//! Messages that are refused, in a topic of their own.

use std::time::Duration;

use alluvium::{Live, Result};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::{Header, OwnedHeaders};
use rdkafka::producer::{BaseProducer, BaseRecord, Producer};

use super::client::{Context, failed};
use super::partitions::find;
use super::settings::Settings;
use crate::decode::Messages;
use crate::systems::waiting::check_live;

/// How long to wait for deliveries before looking at them again.
const GLANCE: Duration = Duration::from_millis(1);

/// Writes messages that are refused to another topic, each with its key, value and headers, and headers that say where it was and
/// why it is refused.
///
/// A message is there before rows of later ones are in the table. After a crash some may be there twice.
pub struct DeadLetters {
    /// Those of the topic that is written.
    settings: Settings,
    producer: BaseProducer<Context>,
}

impl DeadLetters {
    /// Waits for brokers as long as it takes, or a minute if it is not live.
    ///
    /// # Errors
    /// If the topic is not there, brokers refuse us, or `live` is over.
    pub fn open(settings: &Settings, topic: &str, live: Option<&Live>) -> Result<Self> {
        let settings = settings.of_topic(topic);
        let fixed = [("enable.idempotence", "true"), ("message.timeout.ms", "0")];
        let client = settings.client(&[("partitioner", "murmur2_random")], &fixed);
        let producer: BaseProducer<Context> = client
            .create_with_context(Context::default())
            .map_err(|error| failed("write", &settings, &error, None))?;
        find(producer.client(), &settings, live)?;
        Ok(Self { settings, producer })
    }

    /// Writes messages of a topic, each with its problem, and waits until all are there.
    ///
    /// # Errors
    /// If one is not taken, or `live` is over.
    pub fn write<'a>(
        &mut self,
        (topic, messages): (&str, &Messages),
        refused: impl Iterator<Item = (usize, &'a str)>,
        live: Option<&Live>,
    ) -> Result<()> {
        for (index, problem) in refused {
            let message = messages.get(index);
            let (partition, offset) = (message.partition.to_string(), message.offset.to_string());
            let mut headers = OwnedHeaders::new();
            for (key, value) in messages.headers(index) {
                headers = headers.insert(Header { key, value });
            }
            for (key, value) in [
                ("alluvium.error", problem),
                ("alluvium.topic", topic),
                ("alluvium.partition", &partition),
                ("alluvium.offset", &offset),
            ] {
                headers = headers.insert(Header { key, value: Some(value) });
            }
            let mut record = BaseRecord::to(self.settings.topic()).headers(headers);
            (record.key, record.payload) = (message.key, message.value);
            record.timestamp = message.timestamp;
            self.send(record, live)?;
        }
        while self.producer.in_flight_count() > 0 {
            self.producer.poll(GLANCE);
            check_live(live)?;
        }
        match self.producer.context().take_undelivered() {
            Some(error) => Err(self.failed(&error)),
            None => Ok(()),
        }
    }

    fn send(&self, mut record: BaseRecord<'_, [u8], [u8]>, live: Option<&Live>) -> Result<()> {
        loop {
            match self.producer.send(record) {
                Ok(()) => return Ok(()),
                Err((KafkaError::MessageProduction(RDKafkaErrorCode::QueueFull), refused)) => {
                    record = refused;
                    self.producer.poll(GLANCE);
                    check_live(live)?;
                }
                Err((error, _)) => return Err(self.failed(&error)),
            }
        }
    }

    fn failed(&self, error: &KafkaError) -> alluvium::Error {
        let trouble = self.producer.context().trouble();
        failed("write refused messages to", &self.settings, error, trouble.as_deref())
    }
}
