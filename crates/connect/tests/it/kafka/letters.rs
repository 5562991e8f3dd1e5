//! Messages that are refused, in a topic of their own.

use std::path::Path;

use alluvium::{Engine, SourceState};
use alluvium_connect::kafka::{Limits, Reader};

use super::broker::{Broker, shared};
use super::wait_until;
use crate::workspace::lines;

/// The table of a topic, with a topic for what is refused.
fn program(broker: &Broker, topic: &str, letters: &str) -> String {
    format!(
        "CREATE TABLE t (id BIGINT, n INT) WITH (
             'materialized' = 'true', connector = 'kafka', 'topic' = '{topic}', 'dead_letter' = '{letters}',
             'bootstrap.servers' = '{}', 'format' = 'json'
         )",
        broker.settings(topic, &[]).brokers()
    )
}

fn engine(folder: &Path) -> Engine {
    let builder = alluvium_connect::formats(Engine::builder().workers(1));
    builder.state(&*format!("file:{}", folder.display())).open().unwrap()
}

/// All messages of a topic: key, value and headers.
fn messages(broker: &Broker, topic: &str) -> Vec<String> {
    let mut reader = Reader::open(&broker.settings(topic, &[]), None, None).unwrap();
    let most = Limits { messages: usize::MAX, bytes: usize::MAX };
    let text =
        |bytes: Option<&[u8]>| String::from_utf8_lossy(bytes.unwrap_or(b"NULL")).into_owned();
    let mut all = Vec::new();
    while let Some(messages) = reader.next(most, None).unwrap() {
        for (index, message) in messages.iter().enumerate() {
            let headers = messages.headers(index);
            let headers = headers.map(|(name, value)| format!(" {name}={}", text(value)));
            let (key, value) = (text(message.key), text(message.value));
            all.push(format!("{key}={value}{}", headers.collect::<String>()));
        }
    }
    all
}

#[test]
fn a_refused_message_is_laid_aside_once_with_its_place_and_reason() {
    let (broker, folder) = (shared(), tempfile::tempdir().unwrap());
    let (topic, letters) = (broker.topic(1), broker.topic(1));
    let rows = |engine: &Engine| lines(&engine.query("SELECT id, n FROM t").unwrap());
    broker.write(&topic, 0, &["{\"id\": 1, \"n\": 1}", "a={\"id\": \"x\"}", "b=", "{\"id\": 2}"]);
    let expected = [
        format!(
            "a={{\"id\": \"x\"}} alluvium.error=whilst decoding field 'id': failed to parse \"x\" as Int64 alluvium.topic={topic} alluvium.partition=0 \
             alluvium.offset=1"
        ),
        format!(
            "b=NULL alluvium.error=the message deletes its key, and the table has no PRIMARY KEY alluvium.topic={topic} \
             alluvium.partition=0 alluvium.offset=2"
        ),
    ];
    {
        let engine = engine(folder.path());
        engine.execute(&program(broker, &topic, &letters)).unwrap();
        wait_until(|| rows(&engine).len() == 2);
        assert_eq!(messages(broker, &letters), expected);
        assert_eq!(lines(&engine.query("SELECT message FROM alluvium.errors").unwrap()).len(), 2);
    }
    // What is read again is not laid aside again.
    let engine = engine(folder.path());
    assert_eq!(rows(&engine), ["1|1", "2|NULL"]);
    broker.write(&topic, 0, &["[]", "{\"id\": 3, \"n\": 3}"]);
    wait_until(|| rows(&engine).len() == 3);
    let all = messages(broker, &letters);
    assert_eq!((&all[..2], all.len()), (&expected[..], 3));
    assert!(
        all[2].contains("NULL=[] alluvium.error=the message is not one JSON object"),
        "{all:?}"
    );
}

#[test]
fn a_topic_for_refused_messages_that_is_not_there_is_told() {
    let (broker, folder) = (shared(), tempfile::tempdir().unwrap());
    let (topic, engine) = (broker.topic(1), engine(folder.path()));
    engine.execute(&program(broker, &topic, "nowhere")).unwrap();
    engine.execute("START").unwrap();
    broker.write(&topic, 0, &["{}", "no"]);
    let failure = || match &engine.progress().sources[0].state {
        SourceState::Failed { message } => Some(message.clone()),
        _ => None,
    };
    wait_until(|| failure().is_some());
    let message = failure().unwrap();
    assert!(message.contains("refused messages") || message.contains("\"nowhere\""), "{message}");
}
