//! A broker of our own, and clients beside ours.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use alluvium_connect::kafka::Settings;
use rdkafka::admin::{AdminClient, AdminOptions, NewPartitions, NewTopic, TopicReplication};
use rdkafka::client::DefaultClientContext;
use rdkafka::consumer::{BaseConsumer, Consumer as _};
use rdkafka::producer::{BaseProducer, BaseRecord, Producer as _};
use rdkafka::{ClientConfig, Offset, TopicPartitionList};
use tempfile::TempDir;

/// How long anything may take.
const LONG: Duration = Duration::from_secs(60);

/// A broker, which ends with its value, and with this process.
pub struct Broker {
    folder: TempDir,
    script: Child,
    address: String,
    process: String,
}

/// The broker of tests that do it no harm.
pub fn shared() -> &'static Broker {
    static BROKER: LazyLock<Broker> = LazyLock::new(Broker::start);
    &BROKER
}

impl Broker {
    pub fn start() -> Self {
        let folder = TempDir::with_prefix("kafka").unwrap();
        let (script, address, process) = run(folder.path(), None);
        Self { folder, script, address, process }
    }

    /// Kills the broker as a crash does.
    pub fn kill(&self) {
        let killed = Command::new("kill").args(["-9", &self.process]).status().unwrap();
        assert!(killed.success());
    }

    /// Starts the broker again, which was killed, at its address and with its topics.
    pub fn restart(&mut self) {
        self.end();
        let port = self.address.rsplit(':').next();
        (self.script, self.address, self.process) = run(self.folder.path(), port);
    }

    fn end(&mut self) {
        drop(self.script.stdin.take());
        self.script.wait().unwrap();
    }

    fn client(&self) -> ClientConfig {
        ClientConfig::from_iter([("bootstrap.servers".to_owned(), self.address.clone())])
    }

    fn admin(&self) -> AdminClient<DefaultClientContext> {
        self.client().create().unwrap()
    }

    /// A new topic with so many partitions: its name.
    pub fn topic(&self, partitions: i32) -> String {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let name = format!("topic-{}", NUMBER.fetch_add(1, Ordering::Relaxed));
        let topic = NewTopic::new(&name, partitions, TopicReplication::Fixed(1));
        let made = wait(self.admin().create_topics([&topic], &options())).unwrap();
        made.into_iter().for_each(|made| drop(made.unwrap()));
        name
    }

    /// Gives a topic more partitions.
    pub fn grow(&self, topic: &str, partitions: usize) {
        let partitions = NewPartitions::new(topic, partitions);
        let made = wait(self.admin().create_partitions([&partitions], &options())).unwrap();
        made.into_iter().for_each(|made| drop(made.unwrap()));
    }

    /// Deletes the messages of a partition before an offset.
    pub fn delete_before(&self, topic: &str, partition: i32, offset: i64) {
        let mut before = TopicPartitionList::new();
        before.add_partition_offset(topic, partition, Offset::Offset(offset)).unwrap();
        wait(self.admin().delete_records(&before, &options())).unwrap();
    }

    /// Writes messages to a partition, each `key=value`, `key` alone for one without a value, or a value alone.
    pub fn write(&self, topic: &str, partition: i32, messages: &[&str]) {
        let producer: BaseProducer = self.client().create().unwrap();
        send(&producer, topic, partition, messages);
        producer.flush(LONG).unwrap();
    }

    /// Writes messages in a transaction, which is committed or aborted.
    pub fn transact(&self, topic: &str, partition: i32, messages: &[&str], commits: bool) {
        let mut client = self.client();
        let producer: BaseProducer =
            client.set("transactional.id", format!("upstream of {topic}")).create().unwrap();
        producer.init_transactions(LONG).unwrap();
        producer.begin_transaction().unwrap();
        send(&producer, topic, partition, messages);
        producer.flush(LONG).unwrap();
        match commits {
            true => producer.commit_transaction(LONG).unwrap(),
            false => producer.abort_transaction(LONG).unwrap(),
        }
    }

    /// The offset that a group has committed for the first partition of a topic.
    pub fn committed(&self, group: &str, topic: &str) -> Option<i64> {
        let consumer: BaseConsumer = self.client().set("group.id", group).create().unwrap();
        let mut asked = TopicPartitionList::new();
        asked.add_partition(topic, 0);
        let committed = consumer.committed_offsets(asked, LONG).unwrap();
        match committed.elements()[0].offset() {
            Offset::Offset(offset) => Some(offset),
            _ => None,
        }
    }

    /// The settings of a topic, with these in addition.
    pub fn settings(&self, topic: &str, more: &[(&str, &str)]) -> Settings {
        let given = [("topic", topic), ("bootstrap.servers", self.address.as_str())];
        let given = given.iter().chain(more);
        let given = given.map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        Settings::read(&given.collect::<Vec<_>>()).unwrap()
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        self.end();
    }
}

/// Runs the script until the broker answers: the script, the address and the broker's process.
fn run(folder: &Path, port: Option<&str>) -> (Child, String, String) {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.ci/servers/kafka");
    let mut script = Command::new(script)
        .arg(folder)
        .args(port)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(script.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let (address, process) = line.trim().split_once(' ').expect("the broker starts");
    (script, address.to_owned(), process.to_owned())
}

fn send(producer: &BaseProducer, topic: &str, partition: i32, messages: &[&str]) {
    for message in messages {
        let (key, value) = match message.split_once('=') {
            Some((key, "")) => (Some(key), None),
            Some((key, value)) => (Some(key), Some(value)),
            None => (None, Some(*message)),
        };
        let mut record = BaseRecord::<str, str>::to(topic).partition(partition);
        (record.key, record.payload) = (key, value);
        producer.send(record).map_err(|(error, _)| error).unwrap();
    }
}

fn options() -> AdminOptions {
    AdminOptions::new().request_timeout(Some(LONG)).operation_timeout(Some(LONG))
}

/// The outcome of a future.
fn wait<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}
