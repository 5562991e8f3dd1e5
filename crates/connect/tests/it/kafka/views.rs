//! Views that are written to topics: what readers of committed messages see adds up to the view, each epoch once.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use alluvium::Engine;
use alluvium_connect::kafka::{Limits, Reader};
use serde_json::Value;

use super::broker::{Broker, shared};
use crate::workspace::lines;

/// How long anything may take.
const LONG: Duration = Duration::from_secs(60);

const SUMS: &str = "SELECT name, COUNT(*) AS rows, SUM(n) AS total FROM t GROUP BY name";

/// A table, and two views of it: one writes its changes, and one upserts by key.
fn program(broker: &Broker, [changes, upserts]: [&str; 2]) -> String {
    let view = |name: &str, topic: &str, format: &str| {
        format!(
            "CREATE VIEW {name} WITH ('connectors' = '[{{
                 \"transport\": {{\"name\": \"kafka_output\", \"config\": {{
                     \"topic\": \"{topic}\", \"bootstrap.servers\": \"{}\"
                 }}}}, \"format\": {{\"name\": \"json\", \"config\": {{{format}}}}}
             }}]') AS {SUMS};",
            broker.settings(topic, &[]).brokers()
        )
    };
    format!(
        "CREATE TABLE t (id BIGINT PRIMARY KEY, name TEXT, n BIGINT); {} {}",
        view("changes", changes, ""),
        view("upserts", upserts, "\"update_format\": \"upsert\", \"key_columns\": [\"name\"]")
    )
}

fn engine(folder: &Path) -> Engine {
    let builder = alluvium_connect::formats(Engine::builder().workers(1));
    builder.state(&*format!("file:{}", folder.display())).open().unwrap()
}

/// The keys and values of all committed messages, in the order of their partitions and offsets.
fn messages(broker: &Broker, topic: &str) -> Vec<(String, Option<Value>)> {
    let mut reader = Reader::open(&broker.settings(topic, &[]), None, None).unwrap();
    let most = Limits { messages: usize::MAX, bytes: usize::MAX };
    let mut all = Vec::new();
    while let Some(messages) = reader.next(most, None).unwrap() {
        for message in messages.iter() {
            let key = String::from_utf8(message.key.unwrap_or_default().to_vec()).unwrap();
            all.push((key, message.value.map(|value| serde_json::from_slice(value).unwrap())));
        }
    }
    all
}

fn line(row: &Value) -> String {
    format!("{}|{}|{}", row["name"].as_str().unwrap(), row["rows"], row["total"])
}

/// The rows that changes add up to. No row changes twice in an epoch.
fn of_changes(broker: &Broker, topic: &str) -> Vec<String> {
    let (mut copies, mut seen) = (BTreeMap::<String, i64>::new(), BTreeMap::new());
    for (_, change) in messages(broker, topic) {
        let change = change.unwrap();
        let (row, weight) = (line(&change), change["weight"].as_i64().unwrap());
        let epoch = change["epoch"].as_u64().unwrap();
        assert_eq!(
            seen.insert((epoch, row.clone(), weight > 0), ()),
            None,
            "{change} is there twice"
        );
        *copies.entry(row).or_default() += weight;
    }
    assert!(copies.values().all(|copies| (0..=1).contains(copies)), "{copies:?}");
    copies.into_iter().filter(|(_, copies)| *copies > 0).map(|(row, _)| row).collect()
}

/// The rows that the last message of each key leaves.
fn of_upserts(broker: &Broker, topic: &str) -> Vec<String> {
    let mut rows: BTreeMap<String, String> = BTreeMap::new();
    for (key, row) in messages(broker, topic) {
        match row {
            Some(row) => rows.insert(key, line(&row)),
            None => rows.remove(&key),
        };
    }
    let mut rows: Vec<String> = rows.into_values().collect();
    rows.sort();
    rows
}

/// Waits until both topics have what the view is.
fn check(engine: &Engine, broker: &Broker, [changes, upserts]: [&str; 2]) {
    let (start, expected) = (Instant::now(), lines(&engine.query(SUMS).unwrap()));
    loop {
        let found = [of_changes(broker, changes), of_upserts(broker, upserts)];
        if found.iter().all(|found| *found == expected) {
            return;
        }
        assert!(start.elapsed() < LONG, "{found:?} instead of {expected:?}");
        sleep(Duration::from_millis(20));
    }
}

fn change(engine: &Engine, random: &mut fastrand::Rng) {
    for _ in 0..random.u8(1..6) {
        let (id, n) = (random.u8(..20), random.i8(..));
        let name = ["a", "b", "c"][random.usize(..3)];
        let sql = match random.u8(..3) {
            0 => format!("DELETE FROM t WHERE id = {id}"),
            _ => format!("INSERT OR REPLACE INTO t VALUES ({id}, '{name}', {n})"),
        };
        engine.execute(&sql).unwrap();
    }
}

#[test]
fn topics_are_what_a_view_is_however_often_the_engine_starts_again() {
    let (broker, folder) = (shared(), tempfile::tempdir().unwrap());
    let topics = [broker.topic(2), broker.topic(3)];
    let topics = [topics[0].as_str(), topics[1].as_str()];
    let mut random = fastrand::Rng::with_seed(17);
    let mut running = engine(folder.path());
    running.execute(&program(broker, topics)).unwrap();
    for round in 0..8 {
        change(&running, &mut random);
        if random.bool() {
            check(&running, broker, topics);
        }
        if round == 3 {
            running.checkpoint().unwrap();
        }
        if random.bool() {
            drop(running);
            running = engine(folder.path());
        }
    }
    check(&running, broker, topics);
    let shown = "SELECT relation, state, exactly_once FROM alluvium.outputs";
    let shown = lines(&running.query(shown).unwrap());
    assert_eq!(shown, ["changes|running|true", "upserts|running|true"]);
}

/// The process that the next test kills: it changes rows until then.
#[test]
fn an_engine_that_writes_until_it_is_killed() {
    let Ok(folder) = std::env::var("ALLUVIUM_KAFKA_VIEWS") else { return };
    let (running, start) = (engine(&PathBuf::from(folder)), Instant::now());
    let mut random = fastrand::Rng::new();
    while start.elapsed() < LONG {
        change(&running, &mut random);
        if random.u8(..20) == 0 {
            running.checkpoint().unwrap();
        }
    }
}

#[test]
fn nothing_is_written_twice_and_nothing_lost_though_the_process_is_killed() {
    let rounds = std::env::var("ALLUVIUM_KILLS").map_or(3, |rounds| rounds.parse().unwrap());
    let (broker, folder) = (shared(), tempfile::tempdir().unwrap());
    let topics = [broker.topic(2), broker.topic(3)];
    let topics = [topics[0].as_str(), topics[1].as_str()];
    let running = engine(folder.path());
    running.execute(&program(broker, topics)).unwrap();
    drop(running);
    let mut random = fastrand::Rng::with_seed(19);
    for _ in 0..rounds {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "kafka::views::an_engine_that_writes_until_it_is_killed"])
            .env("ALLUVIUM_KAFKA_VIEWS", folder.path())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        sleep(Duration::from_millis(random.u64(200..3_000)));
        child.kill().unwrap();
        child.wait().unwrap();
    }
    let running = engine(folder.path());
    check(&running, broker, topics);
}

#[test]
fn what_is_wrong_with_an_output_is_told_when_the_view_is_created() {
    let (broker, folder) = (shared(), tempfile::tempdir().unwrap());
    let topic = broker.topic(1);
    let running = engine(folder.path());
    let problem = |change: &dyn Fn(String) -> String| {
        let sql = change(program(broker, [&topic, &topic]));
        running.execute(&sql).unwrap_err().to_string()
    };
    let error = problem(&|sql| sql.replace("\"json\"", "\"xml\""));
    assert!(error.contains("written as json or avro"), "{error}");
    running.execute("DROP TABLE t").unwrap();
    // The first view writes to the topic, so that the second one may not.
    let error = problem(&|sql| sql);
    assert!(error.contains("already"), "{error}");
}
