//! System relations that show what happens at the moment, and metrics; and to whom.

use std::collections::BTreeMap;

use alluvium::unstable::{ClientInfo, SessionParts};
use alluvium::{Engine, MetricKind, MetricValue, Outcome};

use crate::support;

/// The rows of an answer, as lines.
fn query(engine: &Engine, sql: &str) -> String {
    support::query(engine, sql).join("\n")
}

#[test]
fn locks_tell_which_keys_are_held_and_who_waits_for_them() {
    let engine = Engine::builder().workers(1).open_in_memory().unwrap();
    engine
        .execute(
            "CREATE TABLE t (a BIGINT, b TEXT, v BIGINT UNIQUE, PRIMARY KEY (a, b));
             CREATE TABLE u (k BIGINT PRIMARY KEY);
             INSERT INTO t VALUES (1, 'x', 10), (2, 'y', 20)",
        )
        .unwrap();
    assert_eq!(query(&engine, "SELECT COUNT(*) FROM alluvium.locks"), "0");
    let mut first = engine.session();
    first.execute("BEGIN; UPDATE t SET v = 11 WHERE a = 1 AND b = 'x'").unwrap();
    let locks = "SELECT relation, kind, key, mode, granted, session FROM alluvium.locks
                 ORDER BY relation, kind, key, granted DESC";
    let held = "t key (a, b) = (1, x) exclusive true NULL
t table NULL shared true NULL
t unique values (v) = (10) exclusive true NULL
t unique values (v) = (11) exclusive true NULL";
    assert_eq!(query(&engine, locks), held);
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| {
            let mut second = engine.session();
            second
                .execute("BEGIN; UPDATE t SET v = v + 1 WHERE a = 1 AND b = 'x'; COMMIT")
                .unwrap();
        });
        let waiting = "SELECT relation, key FROM alluvium.locks WHERE NOT granted";
        while query(&engine, waiting) != "t (a, b) = (1, x)" {
            std::thread::yield_now();
        }
        let holders = "SELECT COUNT(DISTINCT transaction) FROM alluvium.locks";
        assert_eq!(query(&engine, holders), "2");
        first.execute("COMMIT").unwrap();
        waits.join().unwrap();
    });
    assert_eq!(query(&engine, "SELECT COUNT(*) FROM alluvium.locks"), "0");
    assert_eq!(query(&engine, "SELECT v FROM t WHERE a = 1"), "12");
}

#[test]
fn a_role_sees_the_locks_of_what_it_may_read() {
    let engine = Engine::builder().workers(1).open_in_memory().unwrap();
    engine
        .execute(
            "CREATE TABLE t (k BIGINT PRIMARY KEY); CREATE TABLE secret (k BIGINT PRIMARY KEY);
             CREATE ROLE root SUPERUSER LOGIN PASSWORD 'SCRAM-SHA-256$4096:c2FsdA==$a:b'; CREATE ROLE ada; GRANT SELECT ON t TO ada;
             BEGIN; INSERT INTO t VALUES (1); INSERT INTO secret VALUES (2); COMMIT",
        )
        .unwrap();
    let mut writer = engine.session();
    writer.execute("BEGIN; DELETE FROM t WHERE k = 1; DELETE FROM secret WHERE k = 2").unwrap();
    let sql = "SELECT DISTINCT relation FROM alluvium.locks ORDER BY relation";
    assert_eq!(query(&engine, sql), "secret\nt");
    let mut ada = engine.session();
    ada.set_role("ada").unwrap();
    let Some(Outcome::Rows(rows)) = ada.execute(sql).unwrap().pop() else { panic!("rows") };
    let rows = rows.collect::<Result<Vec<_>, _>>().unwrap();
    assert_eq!(support::lines(&rows), ["t"]);
}

#[test]
fn compactions_tell_what_was_merged() {
    let engine = Engine::builder().workers(1).open_in_memory().unwrap();
    engine.execute("CREATE TABLE t (k BIGINT PRIMARY KEY, v TEXT)").unwrap();
    for part in 0..16 {
        let insert = format!(
            "INSERT INTO t SELECT s.v * 16 + {part}, 'value ' || s.v FROM generate_series(0, 9999) AS s(v)"
        );
        engine.execute(&insert).unwrap();
    }
    assert_eq!(query(&engine, "SELECT COUNT(*) FROM t"), "160000");
    // A merge ends while its worker has nothing else to do.
    let done = "SELECT COUNT(*) > 0 FROM alluvium.compactions WHERE state = 'done' AND kind LIKE 'merge%' AND view = 't'
                AND rows > 0 AND bytes >= 65536 AND done_bytes = bytes AND written_bytes > 0 AND age_ms >= time_ms";
    while query(&engine, done) != "true" {
        std::thread::yield_now();
    }
    let wrong = "SELECT COUNT(*) FROM alluvium.compactions WHERE done_bytes > bytes
                 OR (state = 'done') <> (written_bytes IS NOT NULL)";
    assert_eq!(query(&engine, wrong), "0");
}

#[test]
fn all_metrics_are_documented_and_no_others() {
    let engine = support::engine(1);
    let kind = |kind| match kind {
        MetricKind::Counter => ("_total", "counter"),
        MetricKind::Histogram => ("", "histogram"),
        _ => ("", "gauge"),
    };
    let families = engine.metrics().unwrap();
    let ours = families.iter().map(|family| {
        let (suffix, kind) = kind(family.kind);
        format!("| `{}{suffix}` | {kind} |", family.name)
    });
    let ours: Vec<String> = ours.collect();
    let document = include_str!("../../../../docs/reference/metrics.md");
    let documented = document.lines().filter(|line| {
        line.starts_with("| `alluvium_") && !line.starts_with("| `alluvium_server_")
    });
    let documented: Vec<String> = documented
        .map(|line| line.split(" | ").take(2).collect::<Vec<_>>().join(" | ") + " |")
        .collect();
    assert_eq!(ours, documented);
}

#[test]
fn metrics_are_those_of_what_has_been_done() {
    let engine = support::engine_with(
        2,
        "CREATE TABLE t (k BIGINT PRIMARY KEY, v BIGINT);
         CREATE MATERIALIZED VIEW sums AS SELECT v, SUM(k) AS k FROM t GROUP BY v;
         INSERT INTO t SELECT s.v, s.v % 10 FROM generate_series(0, 999) AS s(v)",
    );
    assert_eq!(query(&engine, "SELECT COUNT(*) FROM sums"), "10");
    let metrics: BTreeMap<String, MetricValue> = engine
        .metrics()
        .unwrap()
        .into_iter()
        .flat_map(|family| {
            let name = family.name;
            let metrics = family.metrics.into_iter();
            metrics.map(move |metric| {
                let labels = metric.labels.iter().map(|(_, value)| format!(" {value}"));
                (name.to_owned() + &labels.collect::<String>(), metric.value)
            })
        })
        .collect();
    let number = |name: &str| match metrics.get(name) {
        Some(MetricValue::Number(number)) => Some(*number),
        _ => None,
    };
    assert_eq!(number("alluvium_relations running"), Some(2.0));
    assert_eq!(number("alluvium_relations failed"), Some(0.0));
    assert_eq!(number("alluvium_epochs_committed"), number("alluvium_epochs_complete"));
    assert_eq!(number("alluvium_epochs_durable"), None);
    for name in [
        "alluvium_state_rows t",
        "alluvium_state_bytes sums memory",
        "alluvium_memory_bytes counted",
    ] {
        assert!(number(name).is_some_and(|number| number > 0.0), "{name}");
    }
    assert!(number("alluvium_operator_busy_seconds sums").is_some_and(|seconds| seconds > 0.0));
    assert!(number("alluvium_worker_busy_seconds 1").is_some());
    let Some(MetricValue::Histogram { buckets, sum, count, .. }) =
        metrics.get("alluvium_epoch_complete_delay_seconds")
    else {
        panic!("there is one")
    };
    assert_eq!(buckets.iter().map(|(_, count)| count).sum::<u64>(), *count);
    assert!(*count > 0 && *sum > 0.0);
}

/// What a role sees, as one line.
fn query_as(engine: &Engine, role: &str, sql: &str) -> String {
    let mut session = engine.session();
    session.set_role(role).expect("a role");
    let Some(Outcome::Rows(rows)) = session.execute(sql).expect("it is right").pop() else {
        panic!("rows")
    };
    support::lines(&rows.collect::<Result<Vec<_>, _>>().expect("rows")).join(" ")
}

#[test]
fn a_role_sees_the_metrics_of_what_it_may_select_from() {
    let engine = Engine::builder().workers(2).open_in_memory().unwrap();
    engine
        .execute(
            "CREATE TABLE t (k BIGINT PRIMARY KEY, v TEXT); CREATE TABLE secret (k BIGINT PRIMARY KEY, v TEXT);
             CREATE INDEX t_v ON t (v); CREATE INDEX secret_v ON secret (v);
             CREATE MATERIALIZED VIEW counts AS SELECT v, COUNT(*) AS n FROM t GROUP BY v;
             CREATE MATERIALIZED VIEW secrets AS SELECT v, COUNT(*) AS n FROM secret GROUP BY v;
             CREATE ROLE root SUPERUSER LOGIN PASSWORD 'SCRAM-SHA-256$4096:c2FsdA==$a:b'; CREATE ROLE ada; CREATE ROLE bob;
             GRANT SELECT ON t TO ada; GRANT SELECT ON counts TO ada",
        )
        .unwrap();
    for (table, part) in
        ["t", "secret"].iter().flat_map(|table| (0..6).map(move |part| (table, part)))
    {
        let insert = format!(
            "INSERT INTO {table} SELECT s.v * 6 + {part}, 'value ' || s.v FROM generate_series(0, 3999) AS s(v)"
        );
        engine.execute(&insert).unwrap();
    }
    engine.wait(engine.progress().committed).unwrap();
    let merged =
        "SELECT COUNT(DISTINCT view) FROM alluvium.compactions WHERE view IN ('t', 'secret')";
    while query(&engine, merged) != "2" {
        std::thread::yield_now();
    }
    // The column with the relation, and whether rows that are of none are among them.
    for (relation, column, has_others) in [
        ("operators", "view", true),
        ("arrangements", "view", false),
        ("memory", "view", true),
        ("epochs", "relation", true),
        ("compactions", "view", false),
    ] {
        let names = format!("SELECT DISTINCT {column} AS name FROM alluvium.{relation}");
        let all = query(
            &engine,
            &format!("SELECT name FROM ({names}) AS a WHERE name IS NOT NULL ORDER BY name"),
        );
        assert!(all.contains("secret") && all.lines().any(|name| name == "t"), "{relation}: {all}");
        let others = format!("SELECT COUNT(*) > 0 FROM alluvium.{relation} WHERE {column} IS NULL");
        assert_eq!(query(&engine, &others), has_others.to_string(), "{relation}");
        let hers = all.lines().filter(|name| !name.contains("secret"));
        let hers = hers.collect::<Vec<_>>().join(" ");
        let sql = format!("SELECT name FROM ({names}) AS a WHERE name IS NOT NULL ORDER BY name");
        assert_eq!(query_as(&engine, "ada", &sql), hers, "{relation}");
        assert_eq!(query_as(&engine, "bob", &sql), "", "{relation}");
        // How far the engine is, everybody who reads may know.
        let shows_others = (relation == "epochs").to_string();
        assert_eq!(query_as(&engine, "bob", &others), shows_others, "{relation}");
    }
}

#[test]
fn a_role_sees_its_own_sessions() {
    let engine = Engine::builder().workers(1).open_in_memory().unwrap();
    engine
        .execute(
            "CREATE ROLE root SUPERUSER LOGIN PASSWORD 'SCRAM-SHA-256$4096:c2FsdA==$a:b'; CREATE ROLE ada; CREATE ROLE bob",
        )
        .unwrap();
    let client = |role: &str, number| {
        let mut session = engine.session();
        session.set_role(role).unwrap();
        session.set_client(&ClientInfo {
            number: Some(number),
            protocol: "postgres",
            address: None,
        });
        session
    };
    let _clients = [client("ada", 1), client("ada", 2), client("bob", 3), client("root", 4)];
    let sql = "SELECT role || ' ' || client FROM alluvium.sessions ORDER BY client";
    assert_eq!(query(&engine, sql), "ada 1\nada 2\nbob 3\nroot 4");
    assert_eq!(query_as(&engine, "root", sql), "ada 1 ada 2 bob 3 root 4");
    assert_eq!(query_as(&engine, "ada", sql), "ada 1 ada 2");
    assert_eq!(query_as(&engine, "bob", sql), "bob 3");
}
