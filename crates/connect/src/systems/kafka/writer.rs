//! Writing a topic, exactly once.

use std::time::Duration;

use alluvium::{Error, Live, Result};
use rdkafka::TopicPartitionList;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::{DeliveryResult, Message as _};
use rdkafka::producer::{BaseProducer, BaseRecord, NoCustomPartitioner, Producer, ProducerContext};
use rdkafka::topic_partition_list::Offset;

use super::admin;
use super::client::{Context, failed, insist, is_final};
use super::partitions::find;
use super::settings::Settings;
use crate::encode::Outgoing;
use crate::systems::waiting::{PATIENCE, check_live};

/// The topic with the marks of all writers, each under its name.
const PROGRESS: &str = "alluvium-progress";

/// How long the coordinator of transactions may take before it is asked again.
const ANSWER: Duration = Duration::from_secs(10);

/// How long to wait for deliveries before looking at them again.
const GLANCE: Duration = Duration::from_millis(1);

/// After how many messages deliveries are looked at.
const GLANCES: usize = 256;

/// Writes epochs to a topic, each in one transaction with a mark that names it.
///
/// The marks are in a topic of their own, `alluvium-progress`, which is made if it is not there, and keeps the last one of
/// each writer. Whoever reads committed messages sees all messages of an epoch or none.
pub struct Writer {
    settings: Settings,
    name: String,
    producer: BaseProducer<Context>,
    /// Whether a transaction has begun.
    is_open: bool,
    written: usize,
    last: Option<u64>,
    /// Whether an error came that waiting does not mend.
    is_refused: bool,
}

impl ProducerContext<NoCustomPartitioner> for Context {
    type DeliveryOpaque = ();

    /// A message that was not delivered makes its transaction fail, if it is of one, and is told there.
    fn delivery(&self, result: &DeliveryResult<'_>, (): ()) {
        match result {
            Ok(message) if message.topic() == PROGRESS => self.set_marked(message.offset()),
            Ok(_) => {}
            Err((error, _)) => self.set_undelivered(error),
        }
    }
}

impl Writer {
    /// Replaces the writer of this name, which cannot write from then on, and finds out which epoch was the last. Waits for
    /// brokers as long as it takes.
    ///
    /// # Errors
    /// If the topic is not there, brokers refuse us, or `live` is over.
    pub fn open(settings: &Settings, name: &str, live: Option<&Live>) -> Result<Self> {
        // The coordinator says that the last transaction is not over yet for some milliseconds after each.
        let usual = [("retry.backoff.ms", "5"), ("partitioner", "murmur2_random")];
        let fixed = [("transactional.id", name), ("enable.idempotence", "true")];
        let client = settings.client(&usual, &fixed);
        let producer: BaseProducer<Context> = client
            .create_with_context(Context::default())
            .map_err(|error| failed("write", settings, &error, None))?;
        let context = producer.context().as_ref();
        find(producer.client(), settings, live)?;
        insist("write", settings, (context, live), |timeout| {
            admin::make_compacted(&settings.client(&[], &[]), PROGRESS, timeout)
        })?;
        let mut writer = Self {
            settings: settings.clone(),
            name: name.to_owned(),
            producer,
            is_open: false,
            written: 0,
            last: None,
            is_refused: false,
        };
        // From here on no other writer of the name can commit: the mark that is read is the last one.
        writer.transact(live, |producer| producer.init_transactions(ANSWER))?;
        writer.last = writer.find_mark(live)?;
        Ok(writer)
    }

    /// The last epoch that the topic has; none if it has none of a writer of this name.
    pub fn last(&self) -> Option<u64> {
        self.last
    }

    /// Writes a message of the next epoch.
    ///
    /// # Errors
    /// If another writer has taken over, or a message cannot be written.
    pub fn write(&mut self, message: Outgoing<'_>) -> Result<()> {
        self.begin()?;
        let topic = self.settings.topic().to_owned();
        self.send(&topic, message)
    }

    /// Ends an epoch: its messages and its mark become visible at once, or none of them.
    ///
    /// # Errors
    /// If another writer has taken over, or something was not delivered. Then the topic has nothing of the epoch, and it can be
    /// written again from its first message.
    pub fn commit(&mut self, epoch: u64) -> Result<()> {
        self.begin()?;
        let (name, mark) = (self.name.clone(), format!("{{\"epoch\":{epoch}}}"));
        let mark = Outgoing { key: Some(name.as_bytes()), value: Some(mark.as_bytes()) };
        self.send(PROGRESS, mark)?;
        self.end(None)?;
        self.last = Some(epoch);
        Ok(())
    }

    /// Whether nothing can be written any more: another writer has taken over, or brokers refuse us.
    pub fn is_over(&self) -> bool {
        self.is_refused || self.producer.client().fatal_error().is_some()
    }

    /// Ends an epoch of which nothing is to be visible.
    ///
    /// # Errors
    /// If another writer has taken over.
    pub fn abort(&mut self) -> Result<()> {
        if !std::mem::take(&mut self.is_open) {
            return Ok(());
        }
        self.roll_back()
    }

    /// Aborts the transaction. That takes messages back which are not delivered yet, and waits until each of them has been
    /// looked at.
    fn roll_back(&self) -> Result<()> {
        self.transact(None, |producer| producer.abort_transaction(PATIENCE))
    }

    fn begin(&mut self) -> Result<()> {
        if self.is_open {
            return Ok(());
        }
        self.producer.begin_transaction().map_err(|error| self.failed(&error))?;
        self.is_open = true;
        Ok(())
    }

    /// Hands a message to the client, which delivers it.
    fn send(&mut self, topic: &str, message: Outgoing<'_>) -> Result<()> {
        let mut record = BaseRecord::<[u8], [u8]>::to(topic);
        (record.key, record.payload) = (message.key, message.value);
        loop {
            match self.producer.send(record) {
                Ok(()) => break,
                Err((KafkaError::MessageProduction(RDKafkaErrorCode::QueueFull), refused)) => {
                    record = refused;
                    self.producer.poll(GLANCE);
                }
                Err((error, _)) => {
                    self.is_refused |= is_final(&error);
                    let failed = self.failed(&error);
                    self.give_up();
                    return Err(failed);
                }
            }
        }
        self.written += 1;
        if self.written.is_multiple_of(GLANCES) {
            self.producer.poll(Duration::ZERO);
        }
        Ok(())
    }

    /// Commits the transaction, and waits until it is.
    fn end(&mut self, live: Option<&Live>) -> Result<()> {
        while self.producer.in_flight_count() > 0 {
            self.producer.poll(GLANCE);
            check_live(live)?;
        }
        let ended = self.transact(live, |producer| producer.commit_transaction(ANSWER));
        match ended {
            Ok(()) => self.is_open = false,
            Err(_) => self.give_up(),
        }
        ended
    }

    /// Leaves the transaction, of which an error is told already.
    fn give_up(&mut self) {
        self.is_open = false;
        let _ = self.roll_back();
    }

    /// Asks the coordinator of transactions until it answers.
    fn transact(
        &self,
        live: Option<&Live>,
        ask: impl Fn(&BaseProducer<Context>) -> std::result::Result<(), KafkaError>,
    ) -> Result<()> {
        loop {
            check_live(live)?;
            match ask(&self.producer) {
                Ok(()) => return Ok(()),
                Err(KafkaError::Transaction(error)) if error.is_retriable() => {
                    self.producer.poll(GLANCE);
                }
                Err(KafkaError::Flush(RDKafkaErrorCode::OperationTimedOut)) => {}
                Err(error) => return Err(self.failed(&error)),
            }
        }
    }

    /// The epoch of the last mark. A transaction of our own comes after it, so that everything up to there is decided once that
    /// is seen.
    fn find_mark(&mut self, live: Option<&Live>) -> Result<Option<u64>> {
        let (name, opening) = (self.name.clone(), format!("{}/open", self.name));
        self.begin()?;
        self.send(PROGRESS, Outgoing { key: Some(opening.as_bytes()), value: Some(b"{}") })?;
        self.end(live)?;
        let Some(end) = self.producer.context().marked() else {
            return Err(Error::source(format!("the topic \"{PROGRESS}\" took no mark")));
        };
        let usual = [("group.id", "alluvium")];
        let fixed = [
            ("auto.offset.reset", "earliest"),
            ("enable.auto.commit", "false"),
            ("isolation.level", "read_committed"),
        ];
        let failed = |error| failed("read the marks of", &self.settings, &error, None);
        let consumer: BaseConsumer<Context> = self
            .settings
            .client(&usual, &fixed)
            .create_with_context(Context::default())
            .map_err(failed)?;
        let mut all = TopicPartitionList::new();
        all.add_partition_offset(PROGRESS, 0, Offset::Beginning).map_err(failed)?;
        consumer.assign(&all).map_err(failed)?;
        let mut mark = None;
        loop {
            check_live(live)?;
            match consumer.poll(PATIENCE) {
                Some(Ok(message)) if message.offset() >= end => break,
                Some(Ok(message)) if message.key() == Some(name.as_bytes()) => {
                    mark = Some(message.payload().unwrap_or_default().to_vec());
                }
                Some(Err(error)) if is_final(&error) => return Err(failed(error)),
                _ => {}
            }
        }
        mark.map(|mark| epoch(&mark, &name)).transpose()
    }

    fn failed(&self, error: &KafkaError) -> Error {
        failed("write", &self.settings, error, self.producer.context().trouble().as_deref())
    }
}

/// The epoch that a mark names.
fn epoch(mark: &[u8], name: &str) -> Result<u64> {
    let read: Option<serde_json::Value> = serde_json::from_slice(mark).ok();
    read.and_then(|mark| mark.get("epoch")?.as_u64()).ok_or_else(|| {
        let mark = String::from_utf8_lossy(mark);
        Error::source(format!("the mark of \"{name}\" in the topic \"{PROGRESS}\" is none: {mark}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_names_an_epoch_and_nothing_else_is_one() {
        assert_eq!(epoch(b"{\"epoch\":18446744073709551615}", "n").unwrap(), u64::MAX);
        for other in ["", "7", "{}", "{\"epoch\":-1}", "{\"epoch\":\"7\"}"] {
            let error = epoch(other.as_bytes(), "n").unwrap_err().to_string();
            assert!(error.contains("the mark of \"n\""), "{error}");
        }
    }
}
