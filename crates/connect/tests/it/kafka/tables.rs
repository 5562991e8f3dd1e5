//! Tables that are read from topics, beside a recomputation from their messages.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use alluvium::{Engine, SourceState};
use alluvium_connect::kafka::{Limits, Reader};
use serde_json::Value;

use super::broker::{Broker, shared};
use crate::workspace::lines;

/// How long anything may take.
const LONG: Duration = Duration::from_secs(60);

/// The table of a topic, with a view of it.
fn program(broker: &Broker, topic: &str, key: &str, format: &str) -> String {
    format!(
        "CREATE TABLE t (id BIGINT{key}, name TEXT, n INT) WITH ('materialized' = 'true', 'connectors' = '[{{
             \"transport\": {{\"name\": \"kafka_input\", \"config\": {{
                 \"topic\": \"{topic}\", \"bootstrap.servers\": \"{}\", \"topic.metadata.refresh.interval.ms\": \"200\"
             }}}}, \"format\": {format}
         }}]');
         CREATE MATERIALIZED VIEW sums AS SELECT name, COUNT(*) AS rows, SUM(n) AS total FROM t GROUP BY name",
        broker.settings(topic, &[]).brokers()
    )
}

fn engine(folder: &Path) -> Engine {
    let builder = alluvium_connect::formats(Engine::builder().workers(1));
    builder.state(&*format!("file:{}", folder.display())).open().unwrap()
}

fn query(engine: &Engine, sql: &str) -> Vec<String> {
    lines(&engine.query(sql).unwrap())
}

/// Waits until all messages of a topic have been read.
fn wait(engine: &Engine, broker: &Broker, topic: &str) {
    let mut reader = Reader::open(&broker.settings(topic, &[]), None, None).unwrap();
    let most = Limits { messages: usize::MAX, bytes: usize::MAX };
    while reader.next(most, None).unwrap().is_some() {}
    let (start, end) = (Instant::now(), reader.position());
    loop {
        let source = &engine.progress().sources[0];
        if let SourceState::Failed { message } = &source.state {
            panic!("the source fails: {message}");
        }
        let position = source.position.as_ref().map(|position| position.bytes().to_vec());
        if position == Some(end.bytes()) {
            return;
        }
        assert!(start.elapsed() < LONG, "it is at {:?} of {end}", source.position);
        sleep(Duration::from_millis(5));
    }
}

/// The rows of the table and of the view that all committed messages of a topic leave, computed from them alone.
fn expected(broker: &Broker, topic: &str) -> (Vec<String>, Vec<String>) {
    let mut reader = Reader::open(&broker.settings(topic, &[]), None, None).unwrap();
    let most = Limits { messages: usize::MAX, bytes: usize::MAX };
    let mut rows: BTreeMap<i64, (String, i64)> = BTreeMap::new();
    while let Some(messages) = reader.next(most, None).unwrap() {
        for message in messages.iter() {
            let key: i64 = str::from_utf8(message.key.unwrap()).unwrap().parse().unwrap();
            let Some(value) = message.value else {
                rows.remove(&key);
                continue;
            };
            let value: Value = serde_json::from_slice(value).unwrap();
            let name = value["name"].as_str().unwrap().to_owned();
            rows.insert(key, (name, value["n"].as_i64().unwrap()));
        }
    }
    let mut sums: BTreeMap<&str, (u64, i64)> = BTreeMap::new();
    for (name, n) in rows.values() {
        let (count, total) = sums.entry(name).or_default();
        (*count, *total) = (*count + 1, *total + n);
    }
    let sums = sums.iter().map(|(name, (count, total))| format!("{name}|{count}|{total}"));
    let mut all = (
        rows.iter().map(|(id, (name, n))| format!("{id}|{name}|{n}")).collect::<Vec<_>>(),
        sums.collect::<Vec<_>>(),
    );
    all.0.sort();
    all.1.sort();
    all
}

fn check(engine: &Engine, broker: &Broker, topic: &str) {
    wait(engine, broker, topic);
    let (rows, sums) = expected(broker, topic);
    assert_eq!(query(engine, "SELECT * FROM t"), rows);
    assert_eq!(query(engine, "SELECT * FROM sums"), sums);
}

/// Random changes of rows by key; those of a key are in one partition. Some are in transactions that are aborted.
fn change(broker: &Broker, topic: &str, partitions: i32, random: &mut fastrand::Rng) {
    let partition = random.i32(0..partitions);
    let message = |random: &mut fastrand::Rng| {
        let id = random.i32(0..20) * 8 + partition;
        let (name, n) = (["a", "b", "c"][random.usize(..3)], random.i32(-9..99));
        match random.u8(..4) {
            0 => format!("{id}="),
            _ => format!("{id}={{\"id\": {id}, \"name\": \"{name}\", \"n\": {n}}}"),
        }
    };
    let messages: Vec<_> = (0..random.u8(1..40)).map(|_| message(random)).collect();
    let messages: Vec<_> = messages.iter().map(String::as_str).collect();
    match random.u8(..4) {
        0 => broker.transact(topic, partition, &messages, true),
        1 => broker.transact(topic, partition, &messages, false),
        _ => broker.write(topic, partition, &messages),
    }
}

#[test]
fn a_table_is_what_its_messages_leave_however_often_the_engine_starts_again() {
    let broker = shared();
    let (topic, folder) = (broker.topic(2), tempfile::tempdir().unwrap());
    let mut random = fastrand::Rng::with_seed(11);
    let mut running = engine(folder.path());
    running.execute(&program(broker, &topic, " PRIMARY KEY", "{\"name\": \"json\"}")).unwrap();
    running.start().unwrap();
    let mut partitions = 2;
    for round in 0..8 {
        (0..random.u8(1..5)).for_each(|_| change(broker, &topic, partitions, &mut random));
        if random.bool() {
            check(&running, broker, &topic);
        }
        match round {
            2 => {
                running.checkpoint().unwrap();
            }
            4 => {
                broker.grow(&topic, 4);
                partitions = 4;
            }
            _ => {}
        }
        drop(running);
        running = engine(folder.path());
        running.start().unwrap();
    }
    check(&running, broker, &topic);
}

/// The process that the next test kills: it reads until then.
#[test]
fn an_engine_that_reads_until_it_is_killed() {
    let Ok(folder) = std::env::var("ALLUVIUM_KAFKA_STATE") else { return };
    let running = engine(&PathBuf::from(folder));
    running.start().unwrap();
    sleep(LONG);
}

#[test]
fn nothing_is_lost_and_nothing_twice_though_the_process_is_killed() {
    let rounds = std::env::var("ALLUVIUM_KILLS").map_or(3, |rounds| rounds.parse().unwrap());
    let broker = shared();
    let (topic, folder) = (broker.topic(3), tempfile::tempdir().unwrap());
    let mut random = fastrand::Rng::with_seed(13);
    let running = engine(folder.path());
    running.execute(&program(broker, &topic, " PRIMARY KEY", "{\"name\": \"json\"}")).unwrap();
    drop(running);
    for _ in 0..rounds {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "kafka::tables::an_engine_that_reads_until_it_is_killed"])
            .env("ALLUVIUM_KAFKA_STATE", folder.path())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let end = Instant::now() + Duration::from_millis(random.u64(200..3_000));
        while Instant::now() < end {
            change(broker, &topic, 3, &mut random);
        }
        child.kill().unwrap();
        child.wait().unwrap();
    }
    let running = engine(folder.path());
    running.start().unwrap();
    check(&running, broker, &topic);
}

#[test]
fn changes_of_debezium_and_messages_that_are_wrong() {
    let broker = shared();
    let (topic, folder) = (broker.topic(1), tempfile::tempdir().unwrap());
    let running = engine(folder.path());
    let format = "{\"name\": \"json\", \"config\": {\"update_format\": \"debezium\"}}";
    running.execute(&program(broker, &topic, "", format)).unwrap();
    running.start().unwrap();
    broker.write(
        &topic,
        0,
        &[
            r#"{"op": "c", "after": {"id": 1, "name": "a", "n": 2}}"#,
            r#"{"op": "c", "after": {"id": 2, "name": "b", "n": 3}}"#,
            r#"{"op": "u", "before": {"id": 1, "name": "a", "n": 2}, "after": {"id": 1, "name": "a", "n": 9}}"#,
            r#"{"op": "c", "after": {"id": "x"}}"#,
            r#"{"op": "d", "before": {"id": 2, "name": "b", "n": 3}}"#,
        ],
    );
    wait(&running, broker, &topic);
    assert_eq!(query(&running, "SELECT * FROM t"), ["1|a|9"]);
    assert_eq!(query(&running, "SELECT * FROM sums"), ["a|1|9"]);
    let errors = query(&running, "SELECT \"row\" FROM alluvium.errors");
    assert_eq!(errors.len(), 1);
    let sources = query(&running, "SELECT name, path, state, lag_rows FROM alluvium.sources");
    let place = format!("kafka://{}/{topic}", broker.settings(&topic, &[]).brokers());
    assert_eq!(sources, [format!("kafka|{place}|running|0")]);
}

#[test]
fn what_is_wrong_with_a_connector_is_told_when_the_table_is_created() {
    let folder = tempfile::tempdir().unwrap();
    let running = engine(folder.path());
    let problem = |config: &str, format: &str| {
        let sql = format!(
            "CREATE TABLE t (id INT) WITH ('connectors' = '[{{\"transport\": {{\"name\": \"kafka_input\", \"config\": \
             {{{config}}}}}, \"format\": {format}}}]')"
        );
        running.execute(&sql).unwrap_err().to_string()
    };
    let json = "{\"name\": \"json\"}";
    for (config, format, expected) in [
        ("\"topic\": \"a\"", json, "needs \"bootstrap.servers\""),
        ("\"topic\": \"a\", \"colour\": \"red\"", json, "no option \"colour\""),
        ("\"topic\": \"a\", \"bootstrap.servers\": \"b:1\"", "{\"name\": \"xml\"}", "\"xml\""),
        ("\"topic\": \"a\", \"sasl.password\": \"p-7\"", json, "${secret:name}"),
    ] {
        let error = problem(config, format);
        assert!(error.contains(expected) && !error.contains("p-7"), "{error}");
    }
}

/// A topic forgets messages that no checkpoint is behind: rows that are recorded do not need them.
#[test]
fn rows_that_are_recorded_need_no_topic_any_more() {
    let (broker, folder) = (shared(), tempfile::tempdir().unwrap());
    let topic = broker.topic(1);
    let running = engine(folder.path());
    let brokers = broker.settings(&topic, &[]).brokers().to_owned();
    running
        .execute(&format!(
            "CREATE TABLE t (id BIGINT PRIMARY KEY, name TEXT, n INT) WITH (
                 connector = 'kafka', topic = '{topic}', 'bootstrap.servers' = '{brokers}', journal = 'rows', format = 'json')"
        ))
        .unwrap();
    running.start().unwrap();
    let row = |id| format!("{id}={{\"id\": {id}, \"name\": \"a\", \"n\": 1}}");
    broker.write(&topic, 0, &[&row(1), &row(2), &row(3)]);
    wait(&running, broker, &topic);
    drop(running);
    broker.delete_before(&topic, 0, 3);
    let running = engine(folder.path());
    running.start().unwrap();
    broker.write(&topic, 0, &[&row(4), "2="]);
    wait(&running, broker, &topic);
    assert_eq!(query(&running, "SELECT id FROM t"), ["1", "3", "4"]);
}

/// The program of the guide, on a topic with the messages of the guide.
#[test]
fn the_guide_has_a_program_that_runs() {
    let guide = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide/connect.md");
    let guide = std::fs::read_to_string(guide).unwrap();
    let program = guide.split("```sql\n").nth(1).unwrap().split("```").next().unwrap();
    let (broker, folder) = (shared(), tempfile::tempdir().unwrap());
    let topic = broker.topic(3);
    let address = broker.settings(&topic, &[]).brokers().to_owned();
    let program = program.replace("127.0.0.1:9092", &address);
    let program = program.replace("\"topic\": \"bid\"", &format!("\"topic\": \"{topic}\""));
    let row = |auction, price| format!("{auction}={{\"auction\": {auction}, \"price\": {price}}}");
    broker.write(&topic, 1, &[&row(1, 10), &row(1, 30), "no JSON"]);
    broker.write(&topic, 2, &[&row(2, 20)]);
    let running = engine(folder.path());
    running.execute(&program).unwrap();
    wait(&running, broker, &topic);
    assert_eq!(query(&running, "SELECT * FROM best"), ["1|2|30", "2|1|20"]);
    assert!(guide.contains("| 1       | 2    | 30    |\n| 2       | 1    | 20    |"));
    let errors = query(&running, "SELECT message FROM alluvium.errors");
    assert_eq!(errors, ["the message is not one JSON object"]);
}
