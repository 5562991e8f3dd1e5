//! `/metrics`.

use std::collections::{BTreeMap, BTreeSet};
use std::pin::pin;

use alluvium_server::{Limits, Server};
use tokio::runtime::Builder;
use tokio_postgres::{Config, NoTls};

use super::door::Door;
use super::roles::{ADA, ask, basic, door as door_with_roles};

/// The values of a text of metrics, by names with labels.
fn values(text: &str) -> BTreeMap<&str, f64> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let value = |line: &'_ str| line.rsplit(' ').next().and_then(|number| number.parse().ok());
    lines.filter_map(|line| Some((line.rsplit_once(' ')?.0, value(line)?))).collect()
}

#[test]
fn metrics_are_text_of_open_metrics() {
    let door = Door::open();
    door.engine.execute("CREATE TABLE \"a \"\"b\"\"\" (k BIGINT PRIMARY KEY); INSERT INTO \"a \"\"b\"\"\" VALUES (1)").expect("it is right");
    assert_eq!(door.sql("SELECT COUNT(*) FROM \"a \"\"b\"\"\"").status, 200);
    let answer = door.get("/metrics");
    assert_eq!(answer.status, 200);
    assert_eq!(
        answer.header("content-type"),
        "application/openmetrics-text; version=1.0.0; charset=utf-8"
    );
    let text = answer.text();
    for line in [
        "# TYPE alluvium_epochs_committed counter",
        "# TYPE alluvium_epoch_complete_delay_seconds histogram",
        "# TYPE alluvium_memory_bytes gauge",
        "alluvium_relations{state=\"running\"} 1.0",
        r#"alluvium_state_rows{relation="\"a \"\"b\"\"\""} 1.0"#,
    ] {
        assert!(text.lines().any(|other| other == line), "{line}: {text}");
    }
    let bucket =
        text.lines().find(|line| line.contains("complete_delay_seconds_bucket{le=\"+Inf\"}"));
    let count = text.lines().find(|line| line.contains("complete_delay_seconds_count"));
    let number =
        |line: Option<&str>| line.and_then(|line| line.rsplit(' ').next()).map(str::to_owned);
    assert!(number(bucket).is_some() && number(bucket) == number(count), "{text}");
    assert!(text.ends_with("# EOF\n"));
}

#[test]
fn a_role_gets_the_metrics_of_what_it_may_read() {
    let door = door_with_roles();
    door.engine.execute("CREATE TABLE secret (k BIGINT PRIMARY KEY)").expect("it is right");
    let answer = ask(&door, "GET", "/metrics", &basic(ADA));
    let text = answer.text();
    assert_eq!(answer.status, 200, "{text}");
    assert!(text.contains("relation=\"t\"") && !text.contains("secret"), "{text}");
    for all in ["alluvium_memory", "alluvium_sessions", "alluvium_server"] {
        assert!(!text.contains(all), "{text}");
    }
    let superuser = ask(&door, "GET", "/metrics", &basic(("root", "top"))).text();
    assert!(superuser.contains("secret") && superuser.contains("alluvium_server_"));
    assert_eq!(ask(&door, "GET", "/metrics", "Bearer none").status, 401);
}

#[test]
fn all_metrics_and_their_labels_are_documented() {
    let door = Door::open();
    door.run("CREATE TABLE t (k BIGINT PRIMARY KEY); INSERT INTO t VALUES (1)");
    let text = door.get("/metrics").text();
    let mut told: BTreeMap<String, (String, BTreeSet<String>)> = BTreeMap::new();
    for line in text.lines() {
        if let Some(family) = line.strip_prefix("# TYPE ") {
            let (name, kind) = family.split_once(' ').expect("a type");
            let suffix = if kind == "counter" { "_total" } else { "" };
            told.insert(format!("{name}{suffix}"), (kind.to_owned(), BTreeSet::new()));
        } else if let Some((name, labels)) = line.split_once('{') {
            let family = ["_bucket", "_sum", "_count"].iter().find_map(|end| {
                let family = name.strip_suffix(end)?;
                told.contains_key(family).then_some(family)
            });
            let (_, known) = told.get_mut(family.unwrap_or(name)).expect("a type");
            let labels = labels.rsplit_once('}').expect("a value").0.split("\",");
            known.extend(labels.filter_map(|label| Some(label.split_once('=')?.0.to_owned())));
            known.remove("le");
        }
    }
    let document = include_str!("../../../../../docs/reference/metrics.md");
    let documented = document.lines().filter_map(|line| {
        let cells: Vec<&str> = line.strip_prefix("| `alluvium_")?.split(" | ").collect();
        let labels = cells[2].split(", ").filter(|label| !label.is_empty());
        let labels = labels.map(|label| label.trim_matches('`').to_owned()).collect();
        let name = format!("alluvium_{}", cells[0].trim_end_matches('`'));
        Some((name, (cells[1].to_owned(), labels)))
    });
    let documented: BTreeMap<String, (String, BTreeSet<String>)> = documented.collect();
    let names = |of: &BTreeMap<String, (String, BTreeSet<String>)>| {
        of.iter().map(|(name, (kind, _))| format!("{name} {kind}")).collect::<Vec<_>>()
    };
    assert_eq!(names(&told), names(&documented));
    for (name, (_, labels)) in &told {
        assert!(labels.is_subset(&documented[name].1), "{name}: {labels:?}");
        let is_of_server = name.starts_with("alluvium_server_");
        assert!(!is_of_server || *labels == documented[name].1, "{name}: {labels:?}");
    }
}

#[test]
fn the_server_counts_what_clients_do() {
    let door = Door::open();
    door.run("CREATE TABLE t (k BIGINT PRIMARY KEY); INSERT INTO t VALUES (1)");
    assert_eq!(door.sql("SELECT nothing").status, 400);
    assert_eq!(door.get("/v1/relations/t").status, 200);
    assert_eq!(ask(&door, "GET", "/v1/relations/t", "Bearer none").status, 401);
    // Who shows no password or token has not tried to log in.
    assert_eq!(door.ask("GET", "/", &[("Cookie", "a=b")], b"").status, 401);
    door.wait_for_clients(0);
    let text = door.get("/metrics").text();
    let values = values(&text);
    for (name, expected) in [
        ("alluvium_server_usable", 1.0),
        ("alluvium_server_statements_total{protocol=\"http\",outcome=\"done\"}", 2.0),
        ("alluvium_server_statements_total{protocol=\"http\",outcome=\"failed\"}", 1.0),
        ("alluvium_server_statements_total{protocol=\"http\",outcome=\"canceled\"}", 0.0),
        ("alluvium_server_statements_total{protocol=\"postgres\",outcome=\"done\"}", 0.0),
        ("alluvium_server_statement_duration_seconds_count{protocol=\"http\"}", 3.0),
        ("alluvium_server_logins_total{protocol=\"http\",outcome=\"done\"}", 4.0),
        ("alluvium_server_logins_total{protocol=\"http\",outcome=\"failed\"}", 1.0),
        ("alluvium_server_connections_total{protocol=\"http\"}", 6.0),
        ("alluvium_server_connections_open{protocol=\"http\"}", 1.0),
        ("alluvium_server_clients", 1.0),
        ("alluvium_server_clients_limit", 1000.0),
    ] {
        assert_eq!(values.get(name), Some(&expected), "{name}: {text}");
    }
    for name in ["received", "sent"] {
        let name = format!("alluvium_server_{name}_bytes_total{{protocol=\"http\"}}");
        assert!(values[&*name] > 500.0, "{name}: {text}");
    }
}

#[test]
fn connections_beyond_the_limit_count_as_refused() {
    let door = Door::of(Limits::default(), None);
    let mut limits = Limits::default();
    limits.strangers = 1;
    let narrow = Door::serve(door.engine.clone(), |server: Server| server.limits(limits));
    let mut kept = narrow.raw();
    let refused = "alluvium_server_connections_refused_total{protocol=\"http\",reason=\"limit\"}";
    // One that came while another was being closed was refused itself.
    let is_refused = std::iter::repeat_with(|| {
        kept = narrow.raw();
        std::thread::sleep(std::time::Duration::from_millis(20));
        narrow.get("/healthz").status == 503
    });
    assert!(is_refused.take(500).any(|is_refused| is_refused));
    drop(kept);
    let text =
        std::iter::repeat_with(|| narrow.get("/metrics")).take(10_000).find(|it| it.status == 200);
    let text = text.expect("it is let in at last").text();
    assert!(values(&text)[refused] >= 1.0, "{text}");
}

#[test]
fn a_server_whose_engine_has_failed_says_so() {
    let door = Door::open();
    door.run("CREATE TABLE t (k BIGINT)");
    assert!(door.get("/metrics").text().contains("\nalluvium_server_usable 1\n"));
    let mut subscription = door.engine.subscribe("t").expect("the table exists");
    let subscriber = std::thread::spawn(move || {
        subscription.next();
        panic!("the subscriber gives way");
    });
    assert!(subscriber.join().is_err());
    let answer = door.get("/metrics");
    let text = answer.text();
    assert_eq!(answer.status, 200, "{text}");
    assert!(text.contains("\nalluvium_server_usable 0\n"), "{text}");
    assert!(!text.contains("alluvium_epochs_committed"), "{text}");
}

#[test]
fn clients_of_postgres_count_by_what_they_do() {
    let engine = Door::open().engine;
    let door = Door::serve(engine, |server| server.pg(([127, 0, 0, 1], 0).into()));
    let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build();
    use futures::StreamExt;
    let text = runtime.expect("a runtime").block_on(async {
        let mut config = Config::new();
        config.host("127.0.0.1").port(door.running.pg_addresses()[0].port()).user("someone");
        let (client, connection) = config.connect(NoTls).await.expect("a connection");
        tokio::spawn(connection);
        client.batch_execute("CREATE TABLE t (k BIGINT PRIMARY KEY)").await.expect("it is right");
        client.batch_execute("INSERT INTO t VALUES (1); SELECT 1").await.expect("it is right");
        client.query("SELECT k FROM t", &[]).await.expect("it is right");
        client.query("SELECT nothing", &[]).await.expect_err("there is no such column");
        client.batch_execute("SELECT 1 / 0").await.expect_err("it cannot be divided");
        let rows = client.query_raw("SUBSCRIBE t", &[] as &[&str]).await.expect("it is right");
        let mut rows = pin!(rows);
        StreamExt::next(&mut rows).await.expect("a row").expect("a row");
        let text = door.get("/metrics").text();
        client.cancel_token().cancel_query(NoTls).await.expect("a cancellation");
        while let Some(Ok(_)) = StreamExt::next(&mut rows).await {}
        text
    });
    let values = values(&text);
    for (name, expected) in [
        ("alluvium_server_statements_total{protocol=\"postgres\",outcome=\"done\"}", 3.0),
        ("alluvium_server_statements_total{protocol=\"postgres\",outcome=\"failed\"}", 2.0),
        ("alluvium_server_subscriptions{protocol=\"postgres\"}", 1.0),
        ("alluvium_server_connections_open{protocol=\"postgres\"}", 1.0),
        ("alluvium_server_logins_total{protocol=\"postgres\",outcome=\"done\"}", 1.0),
    ] {
        assert_eq!(values.get(name), Some(&expected), "{name}: {text}");
    }
    let after = door.get("/metrics").text();
    assert!(after.contains("alluvium_server_subscriptions{protocol=\"postgres\"} 0\n"), "{after}");
    assert!(
        after.contains("statements_total{protocol=\"postgres\",outcome=\"canceled\"} 0\n"),
        "{after}"
    );
}
