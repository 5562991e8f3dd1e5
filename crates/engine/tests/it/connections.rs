//! Secrets and connections as objects of SQL, over the broker in memory of the tests of transports.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::fs;
use std::path::Path;

use alluvium::{Engine, FileAccess, Outcome};

use crate::support::{lines, settled};
use crate::transports::{Broker, Message, wait};

const CONNECTION: &str =
    "CREATE SECRET broker_password (stored = 'stored_password', hosts = 'a:9092');
    CREATE CONNECTION prod TO BROKER (broker = 'a:9092', password = SECRET broker_password)";

const TABLE: &str = "CREATE TABLE t (k BIGINT PRIMARY KEY, v TEXT NOT NULL) FROM BROKER prod (topic = 'a') FORMAT JSON";

fn open(folder: &Path, broker: &Broker) -> Engine {
    let builder = Engine::builder().transport(broker.clone()).secrets(folder.join("secrets"));
    builder.state(&*format!("file:{}", folder.join("state").display())).open().unwrap()
}

/// Stores a secret.
fn store(folder: &Path) {
    fs::create_dir(folder.join("secrets")).unwrap();
    fs::write(folder.join("secrets").join("stored_password"), "hush\n").unwrap();
}

fn send(broker: &Broker, key: i64) {
    broker.send(Message { key, value: Some("v".to_owned()), deletes: false });
}

/// All files below a folder.
fn files(folder: &Path) -> Vec<Vec<u8>> {
    let mut folders = vec![folder.to_owned()];
    let mut files = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => folders.push(path),
                false => files.push(fs::read(path).unwrap()),
            }
        }
    }
    files
}

/// A secret is a reference wherever a statement, a system relation or a file could show it.
#[test]
fn a_table_is_read_by_a_connection_across_restarts() {
    let (broker, folder) = (Broker::new(true), tempfile::tempdir().unwrap());
    store(folder.path());
    let mut engine = open(folder.path(), &broker);
    engine.execute(CONNECTION).unwrap();
    engine.execute(TABLE).unwrap();
    engine.start().unwrap();
    for key in 0..3 {
        send(&broker, key);
        wait(&engine, &broker);
        if key == 1 {
            engine.checkpoint().unwrap();
        }
        drop(engine);
        engine = open(folder.path(), &broker);
        engine.start().unwrap();
    }
    assert_eq!(settled(&engine, "SELECT k FROM t"), ["0", "1", "2"]);
    let place = settled(&engine, "SELECT path FROM alluvium.sources");
    assert_eq!(place, ["broker://a:9092/a"]);
    assert_eq!(
        settled(&engine, "SELECT * FROM alluvium.secrets"),
        ["broker_password stored_password [a:9092]"]
    );
    assert_eq!(
        settled(&engine, "SELECT * FROM alluvium.connections"),
        ["prod broker broker = 'a:9092', password = '${secret:broker_password}'"]
    );
    drop(engine);
    let files = files(&folder.path().join("state"));
    assert!(files.iter().all(|bytes| !bytes.windows(4).any(|text| text == b"hush")));
}

#[test]
fn wrong_connections_are_refused_with_the_place() {
    let folder = tempfile::tempdir().unwrap();
    let engine = open(folder.path(), &Broker::new(true));
    engine.execute(CONNECTION).unwrap();
    engine.execute("CREATE SECRET any").unwrap();
    for (sql, expected) in [
        (
            "CREATE CONNECTION c TO BROKER (host = 'a', password = 'hush')",
            "but named: ${secret:name}",
        ),
        (
            "CREATE CONNECTION c TO BROKER (host = 'a', topic = 'a')",
            "\"topic\" is none of a connection",
        ),
        ("CREATE CONNECTION c TO BROKER (hosts = 'a')", "a broker has no option \"hosts\""),
        ("CREATE CONNECTION c TO BROKER (host = SECRET any)", "\"host\" is no secret"),
        (
            "CREATE CONNECTION c TO KAFKA (host = 'a')",
            "no connections to \"kafka\" here, only to \"broker\"",
        ),
        (
            "CREATE CONNECTION c TO BROKER (host = 'evil:9092', password = SECRET broker_password)",
            "\"broker_password\" is not for the host \"evil:9092\"",
        ),
        (
            "CREATE CONNECTION c TO BROKER (host = 'a:9092', broker = 'evil:9092', password = SECRET broker_password)",
            "\"host\" is given twice",
        ),
        ("CREATE CONNECTION prod TO BROKER (host = 'a')", "there is already a connection \"prod\""),
        ("CREATE SECRET any", "there is already a secret \"any\""),
        ("CREATE SECRET other AS 'hush'", "a secret is not written in a statement"),
        ("CREATE SECRET other (stored = '../hush')", "cannot be called \"../hush\""),
        ("CREATE SECRET other (host = 'a')", "a secret has no option \"host\""),
        (
            "CREATE TABLE t (k BIGINT) FROM BROKER none (topic = 'a')",
            "there is no connection \"none\"",
        ),
        ("CREATE TABLE t (k BIGINT) FROM BROKER prod ()", "a broker needs a \"topic\""),
        (
            "CREATE TABLE t (k BIGINT) FROM BROKER prod (topic = 'a', host = 'b')",
            "\"host\" belongs to the connection",
        ),
        (
            "CREATE TABLE t (k BIGINT) FROM BROKER prod (topic = 'a', password = SECRET any)",
            "\"password\" belongs to the connection",
        ),
        ("CREATE TABLE t (k BIGINT) FROM FILE prod (path = 'a.csv')", "files have no connection"),
        (
            "CREATE TABLE t (k BIGINT) WITH (connector = 'broker', topic = 'a', host = 'b', password = '${secret:broker_password}')",
            "\"broker_password\" is not for the host \"b\"",
        ),
        ("DROP SECRET broker_password", "\"broker_password\" is used by \"prod\""),
        ("DROP SECRET none", "there is no secret \"none\""),
        ("DROP CONNECTION none", "there is no connection \"none\""),
    ] {
        let error = engine.execute(sql).unwrap_err();
        assert!(error.to_string().contains(expected), "{sql}: {error}");
        assert!(error.position().is_some(), "{sql}: {error}");
    }
    assert_eq!(settled(&engine, "SELECT name FROM alluvium.connections"), ["prod"]);
}

#[test]
fn a_connection_goes_with_what_it_feeds_or_not_at_all() {
    let (broker, folder) = (Broker::new(true), tempfile::tempdir().unwrap());
    let mut engine = open(folder.path(), &broker);
    engine.execute(CONNECTION).unwrap();
    engine.execute(TABLE).unwrap();
    engine.execute("CREATE VIEW v AS SELECT k FROM t").unwrap();
    let error = engine.execute("DROP CONNECTION prod").unwrap_err().to_string();
    assert!(error.contains("\"prod\" is used by \"t\""), "{error}");
    drop(engine);
    engine = open(folder.path(), &broker);
    engine.execute("DROP CONNECTION prod CASCADE; DROP SECRET broker_password").unwrap();
    engine
        .execute("DROP CONNECTION IF EXISTS prod; DROP SECRET IF EXISTS broker_password")
        .unwrap();
    for has_checkpoint in [false, true] {
        if has_checkpoint {
            engine.checkpoint().unwrap();
        }
        drop(engine);
        engine = open(folder.path(), &broker);
        for relation in ["tables", "relations", "connections", "secrets"] {
            let left = settled(
                &engine,
                &format!(
                    "SELECT name FROM alluvium.{relation} WHERE name IN ('t', 'v', 'prod', 'broker_password')"
                ),
            );
            assert!(left.is_empty(), "{left:?}");
        }
    }
}

/// A role may have a table read by a connection that it may use, and say what is read; not from where.
#[test]
fn roles_use_connections_and_secrets_that_were_granted() {
    let (broker, folder) = (Broker::new(true), tempfile::tempdir().unwrap());
    store(folder.path());
    let engine = open(folder.path(), &broker);
    engine
        .execute(
            "CREATE ROLE boss SUPERUSER LOGIN PASSWORD 'SCRAM-SHA-256$4096:c2FsdA==$a:b';
             CREATE ROLE clerk LOGIN; GRANT CREATE ON SCHEMA public TO clerk;
             CREATE ROLE broker LOGIN",
        )
        .unwrap();
    engine.execute(CONNECTION).unwrap();
    let run = |role: &str, sql: &str| {
        let mut session = engine.session();
        session.set_role(role).unwrap();
        session.execute(sql).map(drop)
    };
    let denied = |role: &str, sql: &str, expected: &str| {
        let error = run(role, sql).unwrap_err().to_string();
        assert!(error.contains(expected), "{sql}: {error}");
    };
    denied("clerk", TABLE, "the role \"clerk\" may not USE the connection \"prod\"");
    denied(
        "clerk",
        "CREATE SECRET s (stored = 'stored_password')",
        "may not CREATE the secret \"s\"",
    );
    denied(
        "clerk",
        "CREATE CONNECTION c TO BROKER (host = 'evil')",
        "may not CREATE the connection \"c\"",
    );
    denied("clerk", "DROP CONNECTION prod", "may not DROP the connection \"prod\"");
    denied("clerk", "DROP SECRET broker_password", "may not DROP the secret");
    denied("clerk", "GRANT USAGE ON CONNECTION prod TO clerk", "only its owner, or a superuser");
    let seen = |role: &str| {
        let mut session = engine.session();
        session.set_role(role).unwrap();
        let sql = "SELECT name FROM alluvium.connections UNION SELECT name FROM alluvium.secrets";
        let Some(Outcome::Rows(rows)) = session.execute(sql).unwrap().pop() else {
            panic!("it has rows")
        };
        lines(&rows.into_batches().unwrap()).join(" ")
    };
    assert_eq!(seen("clerk"), "");
    run("boss", "GRANT USAGE ON CONNECTION prod TO clerk").unwrap();
    assert_eq!(seen("clerk"), "prod");
    run("clerk", TABLE).unwrap();
    let inline = "CREATE TABLE u (k BIGINT) FROM BROKER (topic = 'a', host = 'evil')";
    denied("clerk", inline, "only a superuser may use the transport \"broker\"");
    let elsewhere = "CREATE TABLE u (k BIGINT) FROM BROKER prod (topic = 'a', host = 'evil')";
    denied("clerk", elsewhere, "belongs to the connection");
    let both = r#"CREATE TABLE u (k BIGINT) WITH (connector = 'broker', topic = 'a', host = 'evil') FROM BROKER prod (topic = 'a')"#;
    denied("clerk", both, "only a superuser may use the transport \"broker\"");
    run("boss", "REVOKE USAGE ON CONNECTION prod FROM clerk").unwrap();
    denied("clerk", "CREATE TABLE u (k BIGINT) FROM BROKER prod (topic = 'a')", "may not USE");
    // One that creates connections uses secrets that were granted to it.
    run("boss", "GRANT alluvium_create_connection TO broker").unwrap();
    let named = |secret: &str| {
        format!("CREATE CONNECTION c TO BROKER (host = 'a:9092', password = {secret})")
    };
    denied(
        "broker",
        &named("SECRET broker_password"),
        "may not USE the secret \"broker_password\"",
    );
    denied(
        "broker",
        &named("SECRET stored_password"),
        "only a superuser may name the stored secret",
    );
    run("boss", "GRANT USAGE ON SECRET broker_password TO broker").unwrap();
    run("broker", &named("SECRET broker_password")).unwrap();
    assert_eq!(seen("broker"), "broker_password c");
    run("broker", "GRANT USAGE ON CONNECTION c TO clerk").unwrap();
    assert_eq!(
        settled(
            &engine,
            "SELECT kind, name, role, privilege FROM alluvium.grants WHERE kind IN ('connection', 'secret')"
        ),
        [
            "connection c broker OWNER",
            "connection c clerk USAGE",
            "secret broker_password broker USAGE"
        ]
    );
    drop(engine);
    let engine = open(folder.path(), &broker);
    let mut session = engine.session();
    session.set_role("clerk").unwrap();
    session.execute("CREATE TABLE u (k BIGINT, v TEXT) FROM BROKER c (topic = 'a')").unwrap();
    // A session without roles that may use no files does not reach other systems.
    let mut session = engine.session();
    session.set_file_access(FileAccess::Nothing);
    for sql in ["CREATE SECRET s", "CREATE CONNECTION d TO BROKER (host = 'evil')"] {
        let error = session.execute(sql).unwrap_err().to_string();
        assert!(error.contains("may use no files and other systems"), "{error}");
    }
}
