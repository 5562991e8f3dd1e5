//! The partitions of a topic: which there are, and where reading of each begins.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use alluvium::{Error, Live, Result};
use rdkafka::TopicPartitionList;
use rdkafka::client::Client;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::topic_partition_list::Offset;

use super::client::{Context, failed, insist};
use super::position::Position;
use super::settings::Settings;
use super::start::{Gap, OnGap, Start};
use crate::systems::waiting::pause;

/// How many times a topic that is not there is looked for, and how long to wait in between: a new one takes a while until
/// all brokers know it.
const LOOKS: usize = 20;
const BETWEEN: Duration = Duration::from_millis(250);

/// The partitions of a topic. Fails if there is no such topic.
pub fn find(
    client: &Client<Context>,
    settings: &Settings,
    live: Option<&Live>,
) -> Result<Vec<i32>> {
    let told = (client.context().as_ref(), live);
    for _ in 0..LOOKS {
        let found =
            insist("find", settings, told, |timeout| look(client, settings.topic(), timeout))?;
        if let Some(partitions) = found {
            return Ok(partitions);
        }
        pause(BETWEEN, live)?;
    }
    let error = KafkaError::MetadataFetch(RDKafkaErrorCode::UnknownTopicOrPartition);
    Err(failed("find", settings, &error, None))
}

/// The partitions that a broker knows; none if it does not know the topic.
pub fn look(
    client: &Client<Context>,
    topic: &str,
    timeout: Duration,
) -> std::result::Result<Option<Vec<i32>>, KafkaError> {
    use RDKafkaErrorCode as Code;
    let metadata = client.fetch_metadata(Some(topic), timeout)?;
    let Some(topic) = metadata.topics().iter().find(|found| found.name() == topic) else {
        return Ok(None);
    };
    match topic.error().map(Code::from) {
        None if topic.partitions().is_empty() => Ok(None),
        None => {
            let partitions = topic.partitions().iter().map(|partition| partition.id());
            Ok(Some(partitions.collect::<BTreeSet<_>>().into_iter().collect()))
        }
        Some(Code::UnknownTopicOrPartition | Code::UnknownTopic) => Ok(None),
        Some(code) => Err(KafkaError::MetadataFetch(code)),
    }
}

/// Asks the brokers of a topic.
pub struct Asking<'a> {
    pub consumer: &'a BaseConsumer<Context>,
    pub settings: &'a Settings,
    pub live: Option<&'a Live>,
}

impl Asking<'_> {
    /// The partitions that there are. Fails if there is no such topic.
    pub fn partitions(&self) -> Result<Vec<i32>> {
        find(self.consumer.client(), self.settings, self.live)
    }

    /// Where the messages of a partition begin, and the offset after the last one.
    pub fn ends(&self, partition: i32) -> Result<(i64, i64)> {
        let told = (self.consumer.client().context().as_ref(), self.live);
        insist("read", self.settings, told, |timeout| {
            self.consumer.fetch_watermarks(self.settings.topic(), partition, timeout)
        })
    }

    /// Where reading of each partition begins that no position tells.
    pub fn begin(&self, partitions: &[i32]) -> Result<BTreeMap<i32, i64>> {
        if let Start::Timestamp(time) = self.settings.start() {
            return self.at(*time, partitions);
        }
        let mut wanted = BTreeMap::new();
        for &partition in partitions {
            let (low, high) = self.ends(partition)?;
            let next = match self.settings.start() {
                Start::Latest => high,
                Start::Offsets(offsets) => offsets.get(&partition).copied().unwrap_or(low),
                Start::Earliest | Start::Timestamp(_) => low,
            };
            wanted.insert(partition, next);
        }
        if let Start::Offsets(offsets) = self.settings.start()
            && let Some(missing) = offsets.keys().find(|&partition| !wanted.contains_key(partition))
        {
            let topic = self.settings.topic();
            return Err(Error::source(format!(
                "\"start_from\" names the partition {missing} of the topic \"{topic}\", which has {}",
                partitions.len()
            )));
        }
        Ok(wanted)
    }

    /// The first message of a time or later in each partition, or its end.
    fn at(&self, time: i64, partitions: &[i32]) -> Result<BTreeMap<i32, i64>> {
        let topic = self.settings.topic();
        let told = (self.consumer.client().context().as_ref(), self.live);
        let found = insist("read", self.settings, told, |timeout| {
            let mut times = TopicPartitionList::with_capacity(partitions.len());
            for &partition in partitions {
                times.add_partition_offset(topic, partition, Offset::Offset(time))?;
            }
            let found = self.consumer.offsets_for_times(times, timeout)?;
            found.elements().iter().try_for_each(|element| element.error())?;
            Ok(found.to_topic_map())
        })?;
        let mut next = BTreeMap::new();
        for &partition in partitions {
            let offset = match found.get(&(topic.to_owned(), partition)) {
                Some(Offset::Offset(offset)) => *offset,
                _ => self.ends(partition)?.1,
            };
            next.insert(partition, offset);
        }
        Ok(next)
    }

    /// Where reading of each partition resumes after a position, which may be at messages that are gone.
    pub fn resume(&self, partitions: &[i32], position: &Position) -> Result<BTreeMap<i32, i64>> {
        let topic = self.settings.topic();
        if let Some((missing, _)) =
            position.partitions().find(|(partition, _)| !partitions.contains(partition))
        {
            return Err(Error::source(format!(
                "the topic \"{topic}\" has {} partitions, and partition {missing} was read before: it was made again; \
                 make the table again, too",
                partitions.len()
            )));
        }
        Ok(partitions.iter().map(|&at| (at, position.next(at).unwrap_or(0))).collect())
    }

    /// Moves places to the first message that there is where messages are gone, or fails if that is not asked for.
    pub fn close_gaps(&self, next: &mut BTreeMap<i32, i64>) -> Result<Vec<Gap>> {
        let mut gaps = Vec::new();
        for (&partition, wanted) in next {
            let (low, high) = self.ends(partition)?;
            let topic = self.settings.topic().to_owned();
            if *wanted > high {
                return Err(Error::source(format!(
                    "\"{topic}/{partition}\" was read up to the message {wanted}, and has messages up to {high} only: the \
                     topic was made again, or its broker lost messages; make the table again"
                )));
            }
            if *wanted < low {
                let gap = Gap { topic, partition, wanted: *wanted, first: low };
                if self.settings.on_gap() == OnGap::Fail {
                    return Err(Error::source(format!(
                        "{gap}: the broker has {low} and later; set \"on_gap\" to \"earliest\" to read on there, and let the \
                         topic keep messages for longer than reading may stop"
                    )));
                }
                *wanted = low;
                gaps.push(gap);
            }
        }
        Ok(gaps)
    }
}
