//! Views that are written to topics as Avro, and tables that are read from there.

use std::path::Path;

use alluvium::Engine;

use super::broker::{Broker, shared};
use super::wait_until;
use crate::workspace::lines;

/// A registry, as tests of the library have it.
#[path = "../../../src/systems/registry/stub.rs"]
#[allow(dead_code, reason = "tests of the library use the rest")]
mod registry;

use registry::Stub;

const ROWS: &str = "SELECT id, name, price, at FROM";

fn engine(state: &Path, secrets: &Path) -> Engine {
    let builder = alluvium_connect::formats(Engine::builder().workers(1));
    builder.secrets(secrets).state(&*format!("file:{}", state.display())).open().unwrap()
}

/// A table, a view of it that is written to a topic, and a table of that topic.
fn program(broker: &Broker, registry: &Stub, topic: &str, [to, from, key]: [&str; 3]) -> String {
    let system = format!(
        "connector = 'kafka', 'topic' = '{topic}', 'bootstrap.servers' = '{}', 'format' = 'avro',
         'format.registry_urls' = '{}', 'format.registry_username' = 'ann',
         'format.registry_password' = '${{secret:registry}}'",
        broker.settings(topic, &[]).brokers(),
        registry.url()
    );
    format!(
        "CREATE TABLE t (id BIGINT PRIMARY KEY, name TEXT, price DECIMAL(20, 2), at TIMESTAMP);
         CREATE VIEW v WITH ({system}, 'format.update_format' = '{to}'{key}) AS SELECT * FROM t;
         CREATE TABLE copy (id BIGINT PRIMARY KEY, name TEXT, price DECIMAL(20, 2), at TIMESTAMP)
             WITH ({system}, 'format.update_format' = '{from}')"
    )
}

fn check(engine: &Engine) {
    let of = |relation| lines(&engine.query(&format!("{ROWS} {relation}")).unwrap());
    wait_until(|| of("copy") == of("t"));
}

/// Random changes go through a topic and come back, across a restart.
fn round(modes: [&str; 3]) {
    const SECRET: &str = "xyzzy-4711";
    let (broker, registry) = (shared(), Stub::start());
    let (state, secrets) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    std::fs::write(secrets.path().join("registry"), SECRET).unwrap();
    let topic = broker.topic(1);
    let mut random = fastrand::Rng::with_seed(3);
    for restart in 0..2 {
        let engine = engine(state.path(), secrets.path());
        if restart == 0 {
            engine.execute(&program(broker, &registry, &topic, modes)).unwrap();
        }
        for _ in 0..30 {
            let (id, price) = (random.u8(..10), random.i32(..));
            let sql = match random.u8(..3) {
                0 => format!("DELETE FROM t WHERE id = {id}"),
                1 => format!("INSERT OR REPLACE INTO t VALUES ({id}, NULL, NULL, NULL)"),
                _ => format!(
                    "INSERT OR REPLACE INTO t VALUES ({id}, 'n{price}', {price}.25, '2026-01-02 03:04:05.{:06}')",
                    random.u32(..1_000_000)
                ),
            };
            engine.execute(&sql).unwrap();
        }
        check(&engine);
        let errors = lines(&engine.query("SELECT message FROM alluvium.errors").unwrap());
        assert_eq!(errors, [""; 0]);
    }
    let state = registry.state();
    let all: Vec<_> = state.subjects.keys().cloned().collect();
    assert_eq!(all, [format!("{topic}-key"), format!("{topic}-value")]);
    let who = state.requests.iter().map(|(_, who)| who.as_deref());
    // "ann:xyzzy-4711"
    assert!(who.into_iter().all(|who| who == Some("Basic YW5uOnh5enp5LTQ3MTE=")));
}

#[test]
fn upserts_come_back_as_they_went() {
    round(["upsert", "raw", ", 'format.key_columns' = '[\"id\"]'"]);
}

#[test]
fn changes_of_debezium_come_back_as_they_went() {
    round(["debezium", "debezium", ", 'format.key_columns' = '[\"id\"]'"]);
}

#[test]
fn a_password_is_named_and_not_written() {
    let (broker, registry) = (shared(), Stub::start());
    let topic = broker.topic(1);
    let engine = alluvium_connect::formats(Engine::builder().workers(1)).open_in_memory().unwrap();
    let program = program(broker, &registry, &topic, ["upsert", "raw", ""]);
    let error = engine.execute(&program.replace("${secret:registry}", "xyzzy-4711")).unwrap_err();
    let error = error.to_string();
    assert!(error.contains("format.registry_password") && !error.contains("xyzzy"), "{error}");
}

/// Who may use a connection chooses neither its registry nor what is known of that, and a connection has one for all its formats.
#[test]
fn a_registry_belongs_to_the_connection() {
    let secrets = tempfile::tempdir().unwrap();
    std::fs::write(secrets.path().join("password"), "xyzzy-4711").unwrap();
    let builder = alluvium_connect::formats(Engine::builder().workers(1));
    let engine = builder.secrets(secrets.path()).open_in_memory().unwrap();
    let connection = |host: &str| {
        format!(
            "CREATE CONNECTION k TO KAFKA (brokers = '127.0.0.1:1', registry_urls = 'http://{host}',
                 registry_username = 'ann', registry_password = SECRET password)"
        )
    };
    engine.execute("CREATE SECRET password (hosts = '127.0.0.1:1')").unwrap();
    let error = engine.execute(&connection("10.0.0.1")).unwrap_err().to_string();
    assert!(error.contains("is not for the host \"10.0.0.1\""), "{error}");
    engine.execute(&connection("127.0.0.1:1")).unwrap();
    for (options, format) in [
        ("", "AVRO (registry_urls = 'http://10.0.0.1')"),
        ("", "AVRO (registry_ca = '/etc/passwd')"),
        (", registry_urls = 'http://10.0.0.1'", "AVRO"),
        (", registry_username = 'bob'", "JSON"),
    ] {
        let sql = format!(
            "CREATE TABLE t (id BIGINT) FROM KAFKA k (topic = 't'{options}) FORMAT {format}"
        );
        let error = engine.execute(&sql).unwrap_err().to_string();
        assert!(error.contains("belongs to the connection"), "{error}");
    }
    for (table, format) in [("a", "AVRO"), ("b", "JSON")] {
        let sql =
            format!("CREATE TABLE {table} (id BIGINT) FROM KAFKA k (topic = 't') FORMAT {format}");
        engine.execute(&sql).unwrap();
    }
    let error = engine.execute("DROP SECRET password").unwrap_err().to_string();
    assert!(error.contains("password"), "{error}");
}
