//! Reading a topic.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use alluvium::{Error, Live, Result};
use rdkafka::TopicPartitionList;
use rdkafka::consumer::{BaseConsumer, CommitMode, Consumer};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::{Headers, Message as _};
use rdkafka::topic_partition_list::Offset;

use super::client::{Context, failed, is_final};
use super::partitions::{Asking, look};
use super::position::Position;
use super::settings::Settings;
use super::start::Gap;
use crate::decode::{Message, Messages};
use crate::systems::waiting::{MOST, PATIENCE, check_live};

/// How long a broker may take to tell partitions while messages are read.
const GLANCE: Duration = Duration::from_secs(1);

/// The group of a client that commits no offsets, which has to have one all the same.
const NO_GROUP: &str = "alluvium";

/// How much a portion has at most.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// How many messages.
    pub messages: usize,
    /// How many bytes of keys and values, give or take one message.
    pub bytes: usize,
}

/// Reads the messages of all partitions of a topic.
pub struct Reader {
    settings: Settings,
    consumer: BaseConsumer<Context>,
    partitions: BTreeMap<i32, Partition>,
    /// Messages that came with those of a portion which they are not of.
    ahead: Messages,
    gaps: Vec<Gap>,
    /// When the topic is looked at for new partitions.
    next_look: Instant,
}

/// A partition that is read.
struct Partition {
    /// The offset after the last message that a portion has.
    next: i64,
    /// Whether the client has come to the end since.
    is_at_end: bool,
}

impl Reader {
    /// Begins at a position, or else where the settings say. Waits for brokers as long as it takes, or a minute if it is not live.
    ///
    /// # Errors
    /// If the topic is not there, messages of the position are gone and the settings do not say to go on, brokers refuse
    /// us, or `live` is over.
    pub fn open(
        settings: &Settings,
        start: Option<&Position>,
        live: Option<&Live>,
    ) -> Result<Self> {
        let consumer = connect(settings)?;
        let asking = Asking { consumer: &consumer, settings, live };
        let there = asking.partitions()?;
        let mut next = match start {
            Some(position) => asking.resume(&there, position)?,
            None => asking.begin(&there)?,
        };
        // Others are found as those that are new: the position stays what it is until something of them is read.
        next.retain(|partition, _| start.is_none_or(|start| start.next(*partition).is_some()));
        let next_look = Instant::now() + start.map_or(settings.look(), |_| Duration::ZERO);
        let gaps = asking.close_gaps(&mut next)?;
        let mut reader = Self {
            settings: settings.clone(),
            consumer,
            partitions: BTreeMap::new(),
            ahead: Messages::default(),
            gaps,
            next_look,
        };
        reader.add(&next)?;
        Ok(reader)
    }

    /// The position after the last portion.
    pub fn position(&self) -> Position {
        self.partitions.iter().map(|(partition, at)| (*partition, at.next)).collect()
    }

    /// How many messages each partition has after the position, as of the last answers of brokers, give or take the marks of
    /// transactions.
    pub fn lag(&self) -> BTreeMap<i32, u64> {
        let context = self.consumer.client().context();
        let lag = |(partition, at): (&i32, &Partition)| {
            let high = context.high(*partition).filter(|_| !at.is_at_end);
            (*partition, high.and_then(|high| u64::try_from(high - at.next).ok()).unwrap_or(0))
        };
        self.partitions.iter().map(lag).collect()
    }

    /// The last trouble with a broker, while it lasts.
    pub fn trouble(&self) -> Option<String> {
        self.consumer.client().context().trouble()
    }

    /// The messages that were gone, where the settings say to go on, since this was last asked.
    pub fn gaps(&mut self) -> Vec<Gap> {
        std::mem::take(&mut self.gaps)
    }

    /// The next messages, in the order of their partitions and offsets.
    ///
    /// If `live` is given, waits for the first, and for others as long as the first may linger. If not, those that are there
    /// are read, and then there are no more.
    ///
    /// # Errors
    /// As of [`open`](Self::open).
    pub fn next(&mut self, most: Limits, live: Option<&Live>) -> Result<Option<Messages>> {
        let mut messages = Messages::default();
        let is_more = |messages: &Messages| {
            messages.is_empty() || messages.len() < most.messages && messages.bytes() < most.bytes
        };
        self.take_ahead(&mut messages, |messages, _, _| is_more(messages));
        let linger = live.map(|live| live.linger);
        let mut deadline =
            linger.filter(|_| !messages.is_empty()).map(|linger| Instant::now() + linger);
        while is_more(&messages) {
            let now = Instant::now();
            let patience = match deadline {
                Some(deadline) if deadline <= now => break,
                Some(deadline) => PATIENCE.min(deadline - now),
                None => PATIENCE,
            };
            self.look_for_partitions(live, now)?;
            if self.poll(patience, live, &mut messages, |_, _| true)? {
                deadline = deadline.or(linger.map(|linger| Instant::now() + linger));
            } else {
                check_live(live)?;
            }
            if live.is_none() && self.partitions.values().all(|at| at.is_at_end) {
                break;
            }
        }
        if messages.is_empty() {
            return Ok(None);
        }
        self.consumer.client().context().forget_trouble();
        messages.sort();
        Ok(Some(messages))
    }

    /// The messages up to a position that a portion had at its end, which were read before from the position where this is:
    /// the same messages in the same order, if they are still there.
    ///
    /// # Errors
    /// As of [`open`](Self::open), and if the position is before this one, or the topic does not reach up to it.
    pub fn again(&mut self, end: &Position, live: Option<&Live>) -> Result<Messages> {
        let new = end.partitions().filter(|(at, _)| !self.partitions.contains_key(at));
        let new: BTreeMap<i32, i64> = new.map(|(partition, _)| (partition, 0)).collect();
        if !new.is_empty() {
            self.add_new(new, live)?;
        }
        let topic = self.settings.topic().to_owned();
        for (partition, end) in end.partitions() {
            let next = self.partitions[&partition].next;
            if next > end {
                return Err(Error::source(format!(
                    "\"{topic}/{partition}\" was read up to the message {next}, which is after {end}"
                )));
            }
        }
        let mut left: BTreeMap<i32, i64> = end.partitions().collect();
        // Partitions of which messages after the end have come.
        let passed = RefCell::new(BTreeSet::new());
        let belongs = |partition: i32, offset: i64| {
            let belongs = end.next(partition).is_some_and(|end| offset < end);
            if !belongs {
                passed.borrow_mut().insert(partition);
            }
            belongs
        };
        let (mut messages, mut heard) = (Messages::default(), Instant::now());
        self.take_ahead(&mut messages, |_, partition, offset| belongs(partition, offset));
        while let Some((&partition, &wanted)) = left.first_key_value() {
            let at = &self.partitions[&partition];
            if at.next >= wanted || passed.borrow().contains(&partition) {
                left.remove(&partition);
            } else if at.is_at_end {
                self.check_high(partition, wanted, live)?;
                left.remove(&partition);
            } else if self.poll(PATIENCE, live, &mut messages, belongs)? {
                heard = Instant::now();
            } else if live.is_none() && heard.elapsed() > MOST {
                let error = KafkaError::MessageConsumption(RDKafkaErrorCode::OperationTimedOut);
                let trouble = self.trouble();
                return Err(failed("read", &self.settings, &error, trouble.as_deref()));
            } else {
                check_live(live)?;
            }
        }
        for (partition, at) in &mut self.partitions {
            at.next = end.next(*partition).unwrap_or(at.next);
        }
        messages.sort();
        Ok(messages)
    }

    /// Tells the group, if the settings name one, how far reading has come, for tools that watch it.
    pub fn commit(&self, position: &Position) {
        if self.settings.group().is_none() {
            return;
        }
        let mut offsets = TopicPartitionList::new();
        for (partition, next) in position.partitions() {
            let offset = Offset::Offset(next);
            // An offset is never out of the range of what this can hold.
            let _ = offsets.add_partition_offset(self.settings.topic(), partition, offset);
        }
        // Reading does not depend on it.
        let _ = self.consumer.commit(&offsets, CommitMode::Async);
    }

    /// Takes in the next message, if it comes in time and `take` says so. Whether one came.
    fn poll(
        &mut self,
        patience: Duration,
        live: Option<&Live>,
        messages: &mut Messages,
        mut take: impl FnMut(i32, i64) -> bool,
    ) -> Result<bool> {
        let error = match self.consumer.poll(patience) {
            None => return Ok(false),
            Some(Ok(message)) => {
                let (partition, offset) = (message.partition(), message.offset());
                let Some(at) = self.partitions.get_mut(&partition) else { return Ok(false) };
                at.is_at_end = false;
                let arrived = Message {
                    partition,
                    offset,
                    timestamp: message.timestamp().to_millis(),
                    key: message.key(),
                    value: message.payload(),
                };
                let headers = message.headers().into_iter().flat_map(|headers| headers.iter());
                let headers = headers.map(|header| (header.key, header.value));
                if take(partition, offset) {
                    at.next = offset + 1;
                    messages.push(arrived, headers);
                } else {
                    self.ahead.push(arrived, headers);
                }
                return Ok(true);
            }
            Some(Err(error)) => error,
        };
        match error {
            KafkaError::PartitionEOF(partition) => {
                if let Some(at) = self.partitions.get_mut(&partition) {
                    at.is_at_end = true;
                }
                self.consumer.client().context().forget_trouble();
            }
            KafkaError::MessageConsumption(
                RDKafkaErrorCode::AutoOffsetReset | RDKafkaErrorCode::OffsetOutOfRange,
            ) => self.close_gaps(live)?,
            error if is_final(&error) => {
                let trouble = self.trouble();
                return Err(failed("read", &self.settings, &error, trouble.as_deref()));
            }
            // The client tries again by itself.
            _ => {}
        }
        Ok(false)
    }

    /// Takes messages in that came before they were asked for, as far as `take` says.
    fn take_ahead(
        &mut self,
        messages: &mut Messages,
        mut take: impl FnMut(&Messages, i32, i64) -> bool,
    ) {
        let ahead = std::mem::take(&mut self.ahead);
        for (index, message) in ahead.iter().enumerate() {
            let Some(at) = self.partitions.get_mut(&message.partition) else { continue };
            if take(messages, message.partition, message.offset) {
                at.next = message.offset + 1;
                messages.push(message, ahead.headers(index));
            } else {
                self.ahead.push(message, ahead.headers(index));
            }
        }
    }

    /// Goes on after messages that are gone, or fails. The client does not read on where it came upon a gap: another one does.
    fn close_gaps(&mut self, live: Option<&Live>) -> Result<()> {
        let asking = Asking { consumer: &self.consumer, settings: &self.settings, live };
        let mut next = self.position().partitions().collect();
        let gaps = asking.close_gaps(&mut next)?;
        if gaps.is_empty() {
            return Ok(());
        }
        self.gaps.extend(gaps);
        self.consumer = connect(&self.settings)?;
        self.partitions.clear();
        self.ahead = Messages::default();
        self.add(&next)
    }

    /// Reads partitions that are new, from their first message.
    fn look_for_partitions(&mut self, live: Option<&Live>, now: Instant) -> Result<()> {
        if now < self.next_look {
            return Ok(());
        }
        self.next_look = now + self.settings.look();
        let topic = self.settings.topic();
        // A broker that does not answer now is asked again later.
        let Ok(Some(there)) = look(self.consumer.client(), topic, GLANCE) else { return Ok(()) };
        let asking = Asking { consumer: &self.consumer, settings: &self.settings, live };
        let mut new = asking.resume(&there, &self.position())?;
        new.retain(|partition, _| !self.partitions.contains_key(partition));
        match new.is_empty() {
            true => Ok(()),
            false => self.add_new(new, live),
        }
    }

    /// Reads these partitions in addition, each from a place, which may be at messages that are gone.
    fn add_new(&mut self, mut new: BTreeMap<i32, i64>, live: Option<&Live>) -> Result<()> {
        let asking = Asking { consumer: &self.consumer, settings: &self.settings, live };
        let gaps = asking.close_gaps(&mut new)?;
        self.gaps.extend(gaps);
        self.add(&new)
    }

    /// Reads these partitions in addition. None is ever taken from a client: librdkafka aborts the process if one is taken away
    /// while it is still on its way out from before.
    fn add(&mut self, new: &BTreeMap<i32, i64>) -> Result<()> {
        let failed = |error| failed("read", &self.settings, &error, None);
        let mut added = TopicPartitionList::with_capacity(new.len());
        for (&partition, &next) in new {
            let offset = Offset::Offset(next);
            added.add_partition_offset(self.settings.topic(), partition, offset).map_err(failed)?;
        }
        self.consumer.incremental_assign(&added).map_err(failed)?;
        let new = new.iter().map(|(&at, &next)| (at, Partition { next, is_at_end: false }));
        self.partitions.extend(new);
        Ok(())
    }

    /// Fails if a partition that is at its end does not reach up to an offset.
    fn check_high(&self, partition: i32, wanted: i64, live: Option<&Live>) -> Result<()> {
        let asking = Asking { consumer: &self.consumer, settings: &self.settings, live };
        match asking.ends(partition)? {
            (_, high) if high < wanted => Err(Error::source(format!(
                "\"{}/{partition}\" was read up to the message {wanted}, and has messages up to {high} only",
                self.settings.topic()
            ))),
            _ => Ok(()),
        }
    }
}

/// A client that reads nothing yet.
fn connect(settings: &Settings) -> Result<BaseConsumer<Context>> {
    let usual = [("group.id", NO_GROUP), ("fetch.queue.backoff.ms", "10")];
    let fixed = [
        ("allow.auto.create.topics", "false"),
        ("auto.offset.reset", "error"),
        ("enable.auto.commit", "false"),
        ("enable.auto.offset.store", "false"),
        ("enable.partition.eof", "true"),
        ("isolation.level", "read_committed"),
        ("statistics.interval.ms", "1000"),
    ];
    let client = settings.client(&usual, &fixed);
    client
        .create_with_context(Context::default())
        .map_err(|error| failed("read", settings, &error, None))
}
