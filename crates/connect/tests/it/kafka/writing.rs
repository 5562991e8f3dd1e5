//! Writing topics.

use alluvium_connect::encode::Outgoing;
use alluvium_connect::kafka::{Limits, Reader, Writer};

use super::broker::{Broker, shared};

/// The values of all messages that whoever reads committed ones sees, sorted.
fn values(broker: &Broker, topic: &str) -> Vec<String> {
    let mut reader = Reader::open(&broker.settings(topic, &[]), None, None).unwrap();
    let all = Limits { messages: usize::MAX, bytes: usize::MAX };
    let mut values = Vec::new();
    while let Some(messages) = reader.next(all, None).unwrap() {
        let texts = messages
            .iter()
            .map(|message| String::from_utf8(message.value.unwrap_or(b"NULL").to_vec()).unwrap());
        values.extend(texts);
    }
    values.sort();
    values
}

fn open(broker: &Broker, topic: &str) -> Writer {
    Writer::open(&broker.settings(topic, &[]), &format!("writer of {topic}"), None).unwrap()
}

fn write(writer: &mut Writer, value: &str) {
    let key = value.split('.').next_back().map(str::as_bytes);
    writer.write(Outgoing { key, value: Some(value.as_bytes()) }).unwrap();
}

#[test]
fn an_epoch_is_there_with_its_mark_or_not_at_all() {
    let broker = shared();
    let topic = broker.topic(3);
    let mut writer = open(broker, &topic);
    assert_eq!(writer.last(), None);
    write(&mut writer, "1.a");
    write(&mut writer, "1.b");
    writer.write(Outgoing { key: Some(b"gone"), value: None }).unwrap();
    assert_eq!(values(broker, &topic), [""; 0]);
    writer.commit(1).unwrap();
    assert_eq!((values(broker, &topic).len(), writer.last()), (3, Some(1)));
    // Nothing was written of it.
    writer.commit(2).unwrap();
    write(&mut writer, "3.a");
    writer.abort().unwrap();
    write(&mut writer, "4.a");
    writer.commit(4).unwrap();
    write(&mut writer, "5.a");
    drop(writer);
    let mut writer = open(broker, &topic);
    assert_eq!(writer.last(), Some(4));
    write(&mut writer, "5.again");
    writer.commit(5).unwrap();
    assert_eq!(values(broker, &topic), ["1.a", "1.b", "4.a", "5.again", "NULL"]);
}

#[test]
fn a_writer_that_was_replaced_cannot_write() {
    let broker = shared();
    let topic = broker.topic(1);
    let mut zombie = open(broker, &topic);
    write(&mut zombie, "1.zombie");
    let mut writer = open(broker, &topic);
    assert_eq!(writer.last(), None);
    let error = zombie.commit(1).unwrap_err().to_string();
    assert!(error.contains("another writer of the same name has taken over"), "{error}");
    let again = zombie.write(Outgoing { key: None, value: Some(b"2.zombie") });
    assert!(again.is_err() || zombie.commit(2).is_err());
    write(&mut writer, "1.a");
    writer.commit(1).unwrap();
    assert_eq!(values(broker, &topic), ["1.a"]);
    // Another name is another writer.
    let mut other = Writer::open(&broker.settings(&topic, &[]), "other", None).unwrap();
    assert_eq!(other.last(), None);
    write(&mut other, "9.other");
    other.commit(9).unwrap();
    write(&mut writer, "2.a");
    writer.commit(2).unwrap();
    assert_eq!(values(broker, &topic), ["1.a", "2.a", "9.other"]);
}

#[test]
fn a_message_that_is_too_large_leaves_nothing_of_its_epoch() {
    let broker = shared();
    let topic = broker.topic(1);
    let mut writer = open(broker, &topic);
    write(&mut writer, "1.a");
    let large = vec![b'x'; 2 << 20];
    let error = writer.write(Outgoing { key: None, value: Some(&large) }).unwrap_err().to_string();
    assert!(error.contains("message.max.bytes") && error.contains(&topic), "{error}");
    write(&mut writer, "1.b");
    writer.commit(1).unwrap();
    assert_eq!(values(broker, &topic), ["1.b"]);
}

/// A process that is killed leaves its transaction open: so does a writer that is forgotten at any moment.
#[test]
fn epochs_are_written_exactly_once_by_writers_that_end_at_any_moment() {
    let rounds = std::env::var("ALLUVIUM_KILLS").map_or(6, |rounds| rounds.parse().unwrap());
    let broker = shared();
    let topic = broker.topic(2);
    let mut random = fastrand::Rng::with_seed(7);
    let mut expected = Vec::new();
    let mut next = 1;
    for _ in 0..rounds {
        let mut writer = open(broker, &topic);
        // The last commit may have been made without its writer learning of it.
        assert_eq!(writer.last().unwrap_or(0), next - 1);
        let end = random.usize(0..12);
        for step in 0.. {
            let message = step % 4;
            if step == end {
                std::mem::forget(writer);
                break;
            }
            if message < 3 {
                write(&mut writer, &format!("{next}.{message}"));
            } else {
                writer.commit(next).unwrap();
                expected.extend((0..3).map(|message| format!("{next}.{message}")));
                next += 1;
            }
        }
    }
    let writer = open(broker, &topic);
    assert_eq!(writer.last().unwrap_or(0), next - 1);
    expected.sort();
    assert_eq!(values(broker, &topic), expected);
}

#[test]
fn an_epoch_is_written_once_though_its_broker_is_killed() {
    let mut broker = Broker::start();
    let topic = broker.topic(1);
    let mut writer = open(&broker, &topic);
    write(&mut writer, "1.a");
    writer.commit(1).unwrap();
    write(&mut writer, "2.a");
    broker.kill();
    broker.restart();
    // The transaction goes on, or it is lost and can be written again.
    let committed = writer.commit(2);
    drop(writer);
    let mut writer = open(&broker, &topic);
    match writer.last() {
        Some(1) => {
            write(&mut writer, "2.a");
            writer.commit(2).unwrap();
        }
        last => assert_eq!(last, Some(2), "{committed:?}"),
    }
    assert_eq!(values(&broker, &topic), ["1.a", "2.a"]);
}
