//! What happens to a database, and what becomes of the tables here.

use std::thread::sleep;
use std::time::{Duration, Instant};

use super::bank::{ACCOUNTS, bench};
use super::server::{LONG, Server, engine, failure, query, shared, unique};

const COLUMNS: &str = "id BIGINT PRIMARY KEY, name TEXT, n INT";

fn create(server: &Server, kind: &str, rows: u32) -> String {
    let table = unique(kind);
    server.sql(&format!(
        "CREATE TABLE {table} (id bigint PRIMARY KEY, name text, n int);
         INSERT INTO {table} SELECT g, 'name ' || g, g FROM generate_series(1, {rows}) g"
    ));
    table
}

#[test]
fn a_server_that_is_killed_and_comes_back_is_waited_for() {
    let mut server = Server::start();
    let table = create(&server, "back", 10);
    let folder = tempfile::tempdir().unwrap();
    let running = engine(folder.path());
    running.execute(&server.table(COLUMNS, &table)).unwrap();
    running.start().unwrap();
    let there = format!("SELECT * FROM {table}");
    for round in 0..3 {
        server.sql(&format!(
            "UPDATE {table} SET n = n + 1; INSERT INTO {table} VALUES (100 + {round}, 'x', 1)"
        ));
        if round == 1 {
            server.check(&running, "SELECT * FROM t", &there);
        }
        server.kill();
        sleep(Duration::from_millis(300));
        server.restart();
    }
    server.check(&running, "SELECT * FROM t", &there);
}

#[test]
fn a_table_that_is_started_while_the_server_is_away_begins_when_it_is_back() {
    let mut server = Server::start();
    let table = create(&server, "away", 10);
    let folder = tempfile::tempdir().unwrap();
    let running = engine(folder.path());
    running.execute(&server.table(COLUMNS, &table)).unwrap();
    server.kill();
    running.start().unwrap();
    sleep(Duration::from_millis(300));
    server.restart();
    server.check(&running, "SELECT * FROM t", &format!("SELECT * FROM {table}"));
}

/// Whoever looks sees no row of the snapshot, or all of them.
#[test]
fn a_snapshot_whose_connection_is_cut_is_seen_whole_or_not_at_all() {
    let server = shared();
    let table = create(server, "cut", 200_000);
    let folder = tempfile::tempdir().unwrap();
    let running = engine(folder.path());
    running.execute(&server.table(COLUMNS, &table)).unwrap();
    running.start().unwrap();
    let cut = format!(
        "SELECT count(pg_terminate_backend(active_pid)) FROM pg_replication_slots WHERE slot_name = 's_{table}' AND active"
    );
    let (start, mut cuts) = (Instant::now(), 0);
    loop {
        let seen = query(&running, "SELECT COUNT(*) FROM t");
        if seen == ["200000"] {
            break;
        }
        assert_eq!(seen, ["0"]);
        assert!(start.elapsed() < LONG, "the snapshot does not end");
        if cuts < 3 && server.sql(&cut) == ["1"] {
            cuts += 1;
        }
    }
    assert!(cuts > 0, "nothing was cut");
    server.sql(&format!("DELETE FROM {table} WHERE id % 1000 <> 0"));
    server.check(&running, "SELECT * FROM t", &format!("SELECT * FROM {table}"));
}

#[test]
fn an_engine_ends_at_once_within_a_snapshot_and_a_transaction() {
    let server = shared();
    let table = create(server, "ended", 300_000);
    let folder = tempfile::tempdir().unwrap();
    let running = engine(folder.path());
    running.execute(&server.table(COLUMNS, &table)).unwrap();
    running.start().unwrap();
    sleep(Duration::from_millis(150));
    drop(running);
    let running = engine(folder.path());
    running.start().unwrap();
    server.check(&running, "SELECT COUNT(*) FROM t", "SELECT 300000");
    server.sql(&format!("UPDATE {table} SET n = -n"));
    drop(running);
    let running = engine(folder.path());
    running.start().unwrap();
    server.check(&running, "SELECT SUM(n) FROM t", &format!("SELECT sum(n) FROM {table}"));
}

/// Other tables of a publication that change all the time leave no pause in which to look whether anybody reads.
#[test]
fn an_engine_ends_while_other_tables_of_its_publication_change() {
    let server = shared();
    let (table, other) = (create(server, "quiet", 3), unique("noisy"));
    server.sql(&format!(
        "CREATE TABLE {other} (id int PRIMARY KEY, balance bigint NOT NULL);
         INSERT INTO {other} SELECT g, 1000 FROM generate_series(1, {ACCOUNTS}) g;
         CREATE PUBLICATION p_{table} FOR TABLE {table}, {other}"
    ));
    let folder = tempfile::tempdir().unwrap();
    let running = engine(folder.path());
    running.execute(&server.connected(COLUMNS, &table, "'materialized' = 'true'")).unwrap();
    running.start().unwrap();
    server.check(&running, "SELECT * FROM t", &format!("SELECT * FROM {table}"));
    let mut bench = bench(server, &other, folder.path(), 30);
    sleep(Duration::from_millis(300));
    drop(running);
    let is_followed =
        format!("SELECT active FROM pg_replication_slots WHERE slot_name = 's_{table}'");
    while server.sql(&is_followed) != ["f"] {
        assert!(bench.try_wait().unwrap().is_none(), "it reads as long as others change");
        sleep(Duration::from_millis(10));
    }
    bench.kill().unwrap();
    bench.wait().unwrap();
}

#[test]
fn a_slot_that_is_dropped_is_told() {
    let server = shared();
    let table = create(server, "dropped", 3);
    let folder = tempfile::tempdir().unwrap();
    let running = engine(folder.path());
    running.execute(&server.table(COLUMNS, &table)).unwrap();
    running.start().unwrap();
    server.check(&running, "SELECT * FROM t", &format!("SELECT * FROM {table}"));
    drop(running);
    let start = Instant::now();
    while let Err(error) = server.try_sql(&format!("SELECT pg_drop_replication_slot('s_{table}')"))
    {
        assert!(error.contains("active") && start.elapsed() < LONG, "{error}");
    }
    let running = engine(folder.path());
    running.start().unwrap();
    let message = failure(&running);
    assert!(message.contains(&format!("the slot \"s_{table}\" is gone")), "{message}");
    assert!(message.contains("\"t\""), "{message}");
    drop(running);
    server.sql(&format!(
        "SELECT 'x' FROM pg_create_logical_replication_slot('s_{table}', 'pgoutput'); INSERT INTO {table} VALUES (9, 'x', 9)"
    ));
    let running = engine(folder.path());
    running.start().unwrap();
    assert!(failure(&running).contains("has forgotten what comes before"));
}

#[test]
fn a_slot_whose_tables_do_not_change_still_advances() {
    let server = shared();
    let table = create(server, "idle", 3);
    let folder = tempfile::tempdir().unwrap();
    let running = engine(folder.path());
    running.execute(&server.table(COLUMNS, &table)).unwrap();
    running.start().unwrap();
    server.check(&running, "SELECT * FROM t", &format!("SELECT * FROM {table}"));
    let other = unique("busy");
    server.sql(&format!("CREATE TABLE {other} AS SELECT g FROM generate_series(1, 10000) g"));
    let now = server.sql("SELECT pg_current_wal_lsn()").remove(0);
    let is_there = format!(
        "SELECT confirmed_flush_lsn >= '{now}' FROM pg_replication_slots WHERE slot_name = 's_{table}'"
    );
    let start = Instant::now();
    while server.sql(&is_there) != ["t"] {
        assert!(start.elapsed() < LONG, "the slot does not advance");
        sleep(Duration::from_millis(100));
    }
    drop(running);
    let running = engine(folder.path());
    running.start().unwrap();
    server.sql(&format!("DELETE FROM {table} WHERE id = 2"));
    server.check(&running, "SELECT * FROM t", &format!("SELECT * FROM {table}"));
    let sources =
        query(&running, "SELECT name, path, state, lag_bytes IS NOT NULL FROM alluvium.sources");
    let place = format!("postgres://127.0.0.1:{}/postgres/public.{table}", server.port());
    assert_eq!(sources, [format!("postgres|{place}|running|true")]);
}

#[test]
fn a_table_that_gives_its_name_away_is_told() {
    let server = shared();
    for (how, expected) in [
        ("ALTER TABLE {t} RENAME TO {t}_old", "_old\" from "),
        (
            "ALTER TABLE {t} RENAME TO {t}_old; CREATE TABLE {t} (id bigint PRIMARY KEY, name text, n int);
             ALTER PUBLICATION p_{t} ADD TABLE {t}; ALTER PUBLICATION p_{t} DROP TABLE {t}_old",
            "another table is called",
        ),
    ] {
        let table = create(server, "named", 3);
        let folder = tempfile::tempdir().unwrap();
        let running = engine(folder.path());
        running.execute(&server.table(COLUMNS, &table)).unwrap();
        running.start().unwrap();
        server.sql(&format!("INSERT INTO {table} VALUES (6, 'six', 6)"));
        server.check(&running, "SELECT * FROM t", &format!("SELECT * FROM {table}"));
        let now_called = if how.contains("CREATE") { table.clone() } else { format!("{table}_old") };
        server.sql(&format!(
            "{}; INSERT INTO {now_called} VALUES (7, 'seven', 7)",
            how.replace("{t}", &table)
        ));
        let message = failure(&running);
        assert!(message.contains(expected), "{message}");
    }
}

#[test]
fn a_table_that_is_altered_there_goes_on_or_says_why_not() {
    let server = shared();
    let table = create(server, "altered", 3);
    let folder = tempfile::tempdir().unwrap();
    let running = engine(folder.path());
    running.execute(&server.table(COLUMNS, &table)).unwrap();
    running.start().unwrap();
    let rows = |of: &str| format!("SELECT id, name, n FROM {of}");
    server.check(&running, &rows("t"), &rows(&table));
    server.sql(&format!(
        "INSERT INTO {table} VALUES (6, 'six', 6);
         ALTER TABLE {table} ADD COLUMN extra text DEFAULT 'x'; INSERT INTO {table} VALUES (7, 'seven', 7, 'y')"
    ));
    server.check(&running, &rows("t"), &rows(&table));
    server.sql(&format!("ALTER TABLE {table} ALTER n TYPE bigint; INSERT INTO {table} VALUES (8, 'eight', 1000000000000, 'y')"));
    server.check(&running, &rows("t"), &format!("{} WHERE id < 8", rows(&table)));
    let errors = query(&running, "SELECT message FROM alluvium.errors").join("\n");
    assert!(errors.contains("the column \"n\" is of another type"), "{errors}");
    assert!(errors.contains("1000000000000"), "{errors}");
    server.sql(&format!(
        "ALTER TABLE {table} DROP COLUMN name; INSERT INTO {table} VALUES (9, 9, 'z')"
    ));
    let message = failure(&running);
    assert!(message.contains("has no column \"name\" any more"), "{message}");
}
