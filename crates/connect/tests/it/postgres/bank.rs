//! A bank whose accounts change all the time: their sum never does.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, sleep};
use std::time::Duration;

use alluvium::Engine;

use super::server::{Server, engine, query, shared, unique};

pub const ACCOUNTS: u32 = 1000;

/// Moves money between accounts until it is stopped, and sometimes opens and closes accounts without any.
pub fn bench(server: &Server, table: &str, folder: &Path, seconds: u32) -> Child {
    let script = folder.join("transfers.sql");
    let moves = format!(
        "\\set a random(1, {ACCOUNTS})\n\\set b random(1, {ACCOUNTS})\n\\set n random(-100, 100)\n\\set c random(10000, 10100)\n\
         BEGIN;\nUPDATE {table} SET balance = balance - :n WHERE id = :a;\n\
         INSERT INTO {table} VALUES (:c, 0) ON CONFLICT DO NOTHING;\n\
         UPDATE {table} SET balance = balance + :n WHERE id = :b;\nDELETE FROM {table} WHERE id = :c AND balance = 0;\nEND;\n"
    );
    fs::write(&script, moves).unwrap();
    let mut pgbench: Command = server.client("pgbench");
    pgbench.args(["-n", "-c", "2", "-T", &seconds.to_string(), "-f"]).arg(&script).arg("postgres");
    pgbench.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

/// Watches the sum over all accounts: each epoch that changes it is one too many, but the first, of the snapshot.
fn watch(running: &Engine, stops: &Arc<AtomicBool>) -> thread::JoinHandle<Vec<String>> {
    let (mut changes, stops) = (running.subscribe("total").unwrap(), stops.clone());
    thread::spawn(move || {
        let mut seen = Vec::new();
        while !stops.load(Ordering::Relaxed) {
            let Ok(Some(change)) = changes.next_timeout(Duration::from_millis(50)) else {
                continue;
            };
            let rows = crate::workspace::lines(&[change.rows]);
            seen.push(format!("{:?} {rows:?}", &change.weights[..]));
        }
        seen
    })
}

#[test]
fn the_sum_over_all_accounts_is_the_same_at_every_epoch() {
    let rounds =
        std::env::var("ALLUVIUM_KILLS").map_or(3, |rounds: String| rounds.parse().unwrap());
    let (server, table) = (shared(), unique("bank"));
    server.sql(&format!(
        "CREATE TABLE {table} (id int PRIMARY KEY, balance bigint NOT NULL);
         INSERT INTO {table} SELECT g, 1000 FROM generate_series(1, {ACCOUNTS}) g"
    ));
    let folder = tempfile::tempdir().unwrap();
    let mut bench = bench(server, &table, folder.path(), rounds * 4);
    let mut running = engine(folder.path());
    running.execute(&server.table("id INT PRIMARY KEY, balance BIGINT NOT NULL", &table)).unwrap();
    running
        .execute("CREATE MATERIALIZED VIEW total AS SELECT SUM(balance) AS total FROM t")
        .unwrap();
    let sum = format!("{}", ACCOUNTS * 1000);
    for round in 0..rounds {
        let stops = Arc::new(AtomicBool::new(false));
        let watched = watch(&running, &stops);
        running.start().unwrap();
        sleep(Duration::from_millis(1500));
        stops.store(true, Ordering::Relaxed);
        let seen = watched.join().unwrap();
        let most = if round == 0 { 2 } else { 1 };
        assert!(seen.len() <= most, "{seen:#?}");
        assert_eq!(query(&running, "SELECT total FROM total"), std::slice::from_ref(&sum));
        drop(running);
        running = engine(folder.path());
    }
    running.start().unwrap();
    bench.wait().unwrap();
    server.check(&running, "SELECT * FROM t", &format!("SELECT * FROM {table}"));
    assert_eq!(query(&running, "SELECT total FROM total"), [sum]);
    let rows = query(&running, "SELECT rows FROM alluvium.sources");
    assert_ne!(rows, ["0"]);
}
