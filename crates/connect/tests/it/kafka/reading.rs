//! Reading topics.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use alluvium::Live;
use alluvium_connect::decode::Messages;
use alluvium_connect::kafka::{Limits, Position, Reader, Settings};

use super::broker::{Broker, shared};

const ALL: Limits = Limits { messages: usize::MAX, bytes: usize::MAX };

/// Messages as `partition:offset key=value`.
fn texts(messages: &Messages) -> Vec<String> {
    let text =
        |bytes: Option<&[u8]>| String::from_utf8_lossy(bytes.unwrap_or(b"NULL")).into_owned();
    let messages = messages.iter().map(|message| {
        let (key, value) = (text(message.key), text(message.value));
        format!("{}:{} {key}={value}", message.partition, message.offset)
    });
    messages.collect()
}

/// All messages that are there from a position on, and the position after them.
fn read(settings: &Settings, start: Option<&Position>) -> (Vec<String>, Position) {
    let mut reader = Reader::open(settings, start, None).unwrap();
    let mut all = Vec::new();
    while let Some(messages) = reader.next(ALL, None).unwrap() {
        all.extend(texts(&messages));
    }
    (all, reader.position())
}

fn problem(settings: &Settings, start: Option<&Position>) -> String {
    match Reader::open(settings, start, None) {
        Ok(_) => panic!("it opens"),
        Err(error) => error.to_string(),
    }
}

/// Reading that lasts, with portions of what comes within a moment, until it is said to be over.
fn live() -> (Live, Arc<AtomicBool>) {
    let is_over = Arc::new(AtomicBool::new(false));
    let asked = is_over.clone();
    (Live::new(Duration::from_millis(20), false, move || asked.load(Ordering::Relaxed)), is_over)
}

/// So many messages of a reader that waits for them.
fn wait_for(reader: &mut Reader, count: usize, live: &Live) -> Vec<String> {
    let mut all = Vec::new();
    while all.len() < count {
        all.extend(texts(&reader.next(ALL, Some(live)).unwrap().unwrap()));
    }
    all
}

#[test]
fn messages_of_all_partitions_are_read_with_keys_and_tombstones() {
    let broker = shared();
    let topic = broker.topic(3);
    broker.write(&topic, 0, &["a=1", "b="]);
    broker.write(&topic, 2, &["alone"]);
    let settings = broker.settings(&topic, &[]);
    let (all, end) = read(&settings, None);
    assert_eq!(all, ["0:0 a=1", "0:1 b=NULL", "2:0 NULL=alone"]);
    assert_eq!(end.to_string(), "0:2 1:0 2:1");
    assert_eq!(read(&settings, Some(&end)).0, [""; 0]);
    broker.write(&topic, 1, &["c=2"]);
    assert_eq!(read(&settings, Some(&end)).0, ["1:0 c=2"]);
}

#[test]
fn portions_are_read_again_as_they_were() {
    let broker = shared();
    let topic = broker.topic(4);
    for round in 0..5 {
        for partition in 0..4 {
            let messages: Vec<_> = (0..13).map(|n| format!("k{n}={round}")).collect();
            let messages: Vec<_> = messages.iter().map(String::as_str).collect();
            broker.transact(&topic, partition, &messages, (round + partition) % 3 != 0);
        }
    }
    let settings = broker.settings(&topic, &[]);
    let mut reader = Reader::open(&settings, None, None).unwrap();
    let mut portions = vec![(Vec::new(), reader.position())];
    for size in (1..).map(|n: usize| 1 + n * 7 % 11) {
        let most = Limits { messages: size, bytes: usize::MAX };
        let Some(messages) = reader.next(most, None).unwrap() else { break };
        portions.push((texts(&messages), reader.position()));
    }
    let count: usize = portions.iter().map(|(messages, _)| messages.len()).sum();
    assert_eq!(
        count,
        13 * (0..5).flat_map(|a| (0..4).map(move |b| a + b)).filter(|n| n % 3 != 0).count()
    );
    // From the start, and from anywhere in between, one after the other, and several at once.
    for (first, step) in [(0, 1), (5, 1), (3, 2), (0, portions.len() - 1)] {
        let start = Position::read(&portions[first].1.bytes()).unwrap();
        let mut reader = Reader::open(&settings, Some(&start), None).unwrap();
        let mut at = first;
        while at + step < portions.len() {
            let end = &portions[at + step].1;
            let mut expected: Vec<_> = portions[at + 1..=at + step]
                .iter()
                .flat_map(|(messages, _)| messages.clone())
                .collect();
            let again = texts(&reader.again(end, None).unwrap());
            let key = |text: &String| {
                let (partition, rest) = text.split_once(':').unwrap();
                let offset: i64 = rest.split(' ').next().unwrap().parse().unwrap();
                (partition.to_owned(), offset)
            };
            expected.sort_by_key(key);
            assert_eq!(again, expected, "{first} {step} {at}");
            assert_eq!(reader.position(), *end);
            at += step;
        }
        // And on from there, as if nothing had been.
        let (rest, _) = read(&settings, Some(&portions[at].1));
        let mut on = Vec::new();
        while let Some(messages) = reader.next(ALL, None).unwrap() {
            on.extend(texts(&messages));
        }
        assert_eq!(on, rest);
    }
}

#[test]
fn of_transactions_only_those_that_are_committed_are_read() {
    let broker = shared();
    let topic = broker.topic(1);
    broker.transact(&topic, 0, &["good"], true);
    broker.transact(&topic, 0, &["bad", "worse"], false);
    broker.transact(&topic, 0, &["better"], true);
    let (all, end) = read(&broker.settings(&topic, &[]), None);
    // The marks of transactions have offsets, too.
    assert_eq!(all, ["0:0 NULL=good", "0:5 NULL=better"]);
    assert_eq!(end.to_string(), "0:6");
}

#[test]
fn reading_begins_where_it_is_told() {
    let broker = shared();
    let topic = broker.topic(2);
    broker.write(&topic, 0, &["0", "1", "2"]);
    broker.write(&topic, 1, &["0"]);
    let from = |start: &str| read(&broker.settings(&topic, &[("start_from", start)]), None);
    assert_eq!(from("earliest").0.len(), 4);
    let (none, end) = from("latest");
    assert_eq!((none.len(), end.to_string()), (0, "0:3 1:1".to_owned()));
    assert_eq!(from("{\"offsets\": [2, 1]}").0, ["0:2 NULL=2"]);
    assert_eq!(from("{\"offsets\": {\"0\": 1}}").0, ["0:1 NULL=1", "0:2 NULL=2", "1:0 NULL=0"]);
    assert_eq!(from("{\"timestamp\": 0}").0.len(), 4);
    assert_eq!(from("{\"timestamp\": 99999999999999}").1, end);
    let beyond = broker.settings(&topic, &[("start_from", "{\"offsets\": [0, 0, 0]}")]);
    assert!(problem(&beyond, None).contains("names the partition 2"));
}

#[test]
fn partitions_that_are_new_are_found_while_reading() {
    let broker = shared();
    let topic = broker.topic(1);
    let settings = broker.settings(
        &topic,
        &[("topic.metadata.refresh.interval.ms", "100"), ("start_from", "latest")],
    );
    broker.write(&topic, 0, &["before"]);
    let (live, _over) = live();
    let mut reader = Reader::open(&settings, None, Some(&live)).unwrap();
    let start = reader.position();
    broker.write(&topic, 0, &["old"]);
    assert_eq!(wait_for(&mut reader, 1, &live), ["0:1 NULL=old"]);
    broker.grow(&topic, 3);
    // All of a new partition came after reading began.
    broker.write(&topic, 2, &["new"]);
    assert_eq!(wait_for(&mut reader, 1, &live), ["2:0 NULL=new"]);
    let end = reader.position();
    assert_eq!(end.next(2), Some(1));
    let mut reader = Reader::open(&settings, Some(&start), None).unwrap();
    assert_eq!(texts(&reader.again(&end, None).unwrap()), ["0:1 NULL=old", "2:0 NULL=new"]);
}

#[test]
fn messages_that_are_gone_end_reading_or_are_told() {
    let broker = shared();
    let topic = broker.topic(1);
    broker.write(&topic, 0, &["0", "1", "2", "3"]);
    let strict = broker.settings(&topic, &[]);
    let mut reader = Reader::open(&strict, None, None).unwrap();
    let most = Limits { messages: 1, bytes: usize::MAX };
    assert_eq!(texts(&reader.next(most, None).unwrap().unwrap()), ["0:0 NULL=0"]);
    let position = reader.position();
    broker.delete_before(&topic, 0, 3);
    let problem = problem(&strict, Some(&position));
    assert!(
        problem.contains(&format!("the messages 1 to 2 of \"{topic}/0\" are gone"))
            && problem.contains("\"on_gap\""),
        "{problem}"
    );
    let lenient = broker.settings(&topic, &[("on_gap", "earliest")]);
    let mut reader = Reader::open(&lenient, Some(&position), None).unwrap();
    let gaps: Vec<_> = reader.gaps().iter().map(ToString::to_string).collect();
    assert_eq!(gaps, [format!("the messages 1 to 2 of \"{topic}/0\" are gone")]);
    assert_eq!(texts(&reader.next(ALL, None).unwrap().unwrap()), ["0:3 NULL=3"]);
}

#[test]
fn a_position_that_the_topic_does_not_reach_is_refused() {
    let broker = shared();
    let topic = broker.topic(1);
    broker.write(&topic, 0, &["0"]);
    let settings = broker.settings(&topic, &[("on_gap", "earliest")]);
    let beyond = Position::from_iter([(0, 5)]);
    let error = problem(&settings, Some(&beyond));
    assert!(error.contains("has messages up to 1 only"), "{error}");
    let more = Position::from_iter([(0, 0), (1, 0)]);
    let error = problem(&settings, Some(&more));
    assert!(error.contains("has 1 partitions, and partition 1 was read"), "{error}");
    let mut reader = Reader::open(&settings, None, None).unwrap();
    let error = reader.again(&beyond, None).unwrap_err().to_string();
    assert!(error.contains("has messages up to 1 only"), "{error}");
}

#[test]
fn a_topic_that_is_not_there_is_told_with_its_brokers() {
    let settings = shared().settings("nowhere", &[]);
    let error = problem(&settings, None);
    let expected = format!("cannot find the topic \"nowhere\" on {}: ", settings.brokers());
    assert!(error.starts_with(&expected) && error.contains("make the topic"), "{error}");
}

#[test]
fn waiting_ends_when_nobody_needs_the_messages() {
    let broker = shared();
    let topic = broker.topic(1);
    let nobody = [("bootstrap.servers", "127.0.0.1:1")];
    for settings in [broker.settings(&topic, &[]), broker.settings(&topic, &nobody)] {
        let (live, over) = live();
        let reading = thread::spawn(move || {
            let mut reader = Reader::open(&settings, None, Some(&live))?;
            reader.next(ALL, Some(&live)).map(|_| ())
        });
        over.store(true, Ordering::Relaxed);
        let error = reading.join().unwrap().unwrap_err().to_string();
        assert!(error.contains("nobody needs"), "{error}");
    }
}

#[test]
fn the_group_knows_how_far_reading_has_come() {
    let broker = shared();
    let topic = broker.topic(1);
    broker.write(&topic, 0, &["0", "1"]);
    let settings = broker.settings(&topic, &[("group.id", "watched")]);
    let mut reader = Reader::open(&settings, None, None).unwrap();
    reader.next(ALL, None).unwrap();
    reader.commit(&reader.position());
    while broker.committed("watched", &topic) != Some(2) {
        reader.next(ALL, None).unwrap();
    }
}

#[test]
fn reading_goes_on_after_a_broker_was_killed() {
    let mut broker = Broker::start();
    let topic = broker.topic(2);
    broker.write(&topic, 0, &["a", "b"]);
    let settings = broker.settings(&topic, &[("reconnect.backoff.max.ms", "500")]);
    let (live, _over) = live();
    let mut reader = Reader::open(&settings, None, Some(&live)).unwrap();
    let start = reader.position();
    assert_eq!(wait_for(&mut reader, 2, &live), ["0:0 NULL=a", "0:1 NULL=b"]);
    broker.kill();
    let reading = thread::spawn(move || {
        let messages = wait_for(&mut reader, 2, &live);
        (messages, reader.position())
    });
    broker.restart();
    broker.write(&topic, 0, &["c"]);
    broker.write(&topic, 1, &["d"]);
    let (mut messages, end) = reading.join().unwrap();
    messages.sort();
    assert_eq!(messages, ["0:2 NULL=c", "1:0 NULL=d"]);
    let mut reader = Reader::open(&settings, Some(&start), None).unwrap();
    assert_eq!(reader.again(&end, None).unwrap().len(), 4);
}
