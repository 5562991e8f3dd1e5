//! Views that are kept in tables there, each epoch once.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use alluvium::Engine;

use super::bank::{ACCOUNTS, bench};
use super::server::{LONG, Server, check_runs, engine, query, shared, unique};

const SUMS: &str = "SELECT name, COUNT(*) AS rows, SUM(n) AS total FROM t GROUP BY name";

/// A view that is kept in a table.
fn view(server: &Server, name: &str, table: &str, query: &str) -> String {
    format!(
        "CREATE VIEW {name} WITH ('connectors' = '[{{\"transport\": {{\"name\": \"postgres_output\", \"config\": {{
             \"url\": \"postgres://postgres@127.0.0.1:{}/postgres\", \"password\": \"${{secret:pg}}\", \"table\": \"{table}\"
         }}}}}}]') AS {query}",
        server.port()
    )
}

fn change(engine: &Engine, random: &mut fastrand::Rng) {
    for _ in 0..random.u8(1..6) {
        let (id, n) = (random.u8(..20), random.i8(..));
        let name = ["a", "b", "c''d\ne"][random.usize(..3)];
        let sql = match random.u8(..3) {
            0 => format!("DELETE FROM t WHERE id = {id}"),
            _ => format!("INSERT OR REPLACE INTO t VALUES ({id}, '{name}', {n})"),
        };
        engine.execute(&sql).unwrap();
    }
}

/// Waits until a table there has the rows of a query here.
fn check(server: &Server, engine: &Engine, here: &str, there: &str) {
    let start = Instant::now();
    loop {
        let (mut found, expected) = (server.sql(there), query(engine, here));
        found.sort();
        if found == expected {
            return;
        }
        assert!(start.elapsed() < LONG, "{found:#?} instead of {expected:#?}");
        sleep(Duration::from_millis(10));
    }
}

fn check_sums(server: &Server, engine: &Engine, table: &str) {
    let flat = |columns: &str, from: &str| {
        format!("SELECT replace(name, chr(10), ' '), {columns} FROM {from}")
    };
    let here = flat("rows, total", &format!("({SUMS}) s"));
    check(server, engine, &here, &flat("rows, total", table));
}

#[test]
fn a_table_there_is_what_a_view_is_however_often_the_engine_starts_again() {
    let (server, table) = (shared(), unique("kept"));
    server.sql(&format!(
        "CREATE TABLE {table} (total bigint, name text PRIMARY KEY, rows bigint, at timestamp DEFAULT now())"
    ));
    let folder = tempfile::tempdir().unwrap();
    let mut random = fastrand::Rng::with_seed(31);
    let mut running = engine(folder.path());
    running.execute("CREATE TABLE t (id BIGINT PRIMARY KEY, name TEXT, n BIGINT)").unwrap();
    running.execute(&view(server, "v", &table, SUMS)).unwrap();
    for round in 0..10 {
        change(&running, &mut random);
        if random.bool() {
            check_sums(server, &running, &table);
        }
        if round % 4 == 1 {
            running.checkpoint().unwrap();
        }
        if random.bool() {
            drop(running);
            running = engine(folder.path());
        }
    }
    check_sums(server, &running, &table);
    let shown = query(&running, "SELECT relation, state, exactly_once FROM alluvium.outputs");
    assert_eq!(shown, ["v|running|true"]);
}

#[test]
fn a_server_that_is_killed_gets_what_it_lacks_when_it_is_back() {
    let mut server = Server::start();
    server.sql("CREATE TABLE kept (name text PRIMARY KEY, rows bigint, total bigint)");
    let folder = tempfile::tempdir().unwrap();
    let mut random = fastrand::Rng::with_seed(37);
    let running = engine(folder.path());
    running.execute("CREATE TABLE t (id BIGINT PRIMARY KEY, name TEXT, n BIGINT)").unwrap();
    running.execute(&view(&server, "v", "kept", SUMS)).unwrap();
    let check_told = |is_told: &str| {
        let (start, told) = (Instant::now(), "SELECT error IS NOT NULL FROM alluvium.outputs");
        while query(&running, told) != [is_told] {
            assert!(start.elapsed() < LONG, "the output's error is not {is_told}");
            sleep(Duration::from_millis(10));
        }
    };
    for round in 0..3 {
        change(&running, &mut random);
        server.kill();
        change(&running, &mut random);
        let away = format!("INSERT OR REPLACE INTO t VALUES (99, 'away', {round})");
        running.execute(&away).unwrap();
        check_told("true");
        server.restart();
        check_sums(&server, &running, "kept");
        check_told("false");
    }
}

/// The process that the next test kills: it reads and writes until then.
#[test]
fn an_engine_that_writes_until_it_is_killed() {
    let Ok(folder) = std::env::var("ALLUVIUM_POSTGRES_VIEWS") else { return };
    let running = engine(&PathBuf::from(folder));
    running.start().unwrap();
    let (start, mut random) = (Instant::now(), fastrand::Rng::new());
    while start.elapsed() < LONG {
        check_runs(&running);
        sleep(Duration::from_millis(20));
        if random.u8(..40) == 0 {
            running.checkpoint().unwrap();
        }
    }
}

/// Money moves between accounts there, is summed by branch here, and the sums are kept there: they are right in all, whoever is killed.
#[test]
fn nothing_is_written_twice_and_nothing_lost_though_the_process_is_killed() {
    let rounds = std::env::var("ALLUVIUM_KILLS").map_or(3, |rounds| rounds.parse().unwrap());
    let (server, table) = (shared(), unique("branches"));
    server.sql(&format!(
        "CREATE TABLE {table} (id int PRIMARY KEY, balance bigint NOT NULL);
         INSERT INTO {table} SELECT g, 1000 FROM generate_series(1, {ACCOUNTS}) g;
         CREATE TABLE {table}_sums (branch int PRIMARY KEY, accounts bigint, total bigint)"
    ));
    let folder = tempfile::tempdir().unwrap();
    let running = engine(folder.path());
    running.execute(&server.table("id INT PRIMARY KEY, balance BIGINT NOT NULL", &table)).unwrap();
    let sums = "SELECT id % 10 AS branch, COUNT(*) AS accounts, SUM(balance) AS total FROM t GROUP BY id % 10";
    running.execute(&view(server, "sums", &format!("{table}_sums"), sums)).unwrap();
    drop(running);
    let (all, expected) =
        (format!("SELECT sum(total) FROM {table}_sums"), (ACCOUNTS * 1000).to_string());
    let mut random = fastrand::Rng::with_seed(41);
    let mut seen = 0;
    for _ in 0..rounds {
        let mut bench = bench(server, &table, folder.path(), 2);
        let mut child = process(folder.path());
        let end = Instant::now() + Duration::from_millis(random.u64(200..2_000));
        while Instant::now() < end {
            let sum = server.sql(&all).remove(0);
            assert!(sum == expected || sum == "NULL" && seen == 0, "{sum}");
            seen += u32::from(sum == expected);
        }
        child.kill().unwrap();
        child.wait().unwrap();
        bench.wait().unwrap();
    }
    let running = engine(folder.path());
    running.start().unwrap();
    let there = format!("SELECT id % 10, count(*), sum(balance) FROM {table} GROUP BY id % 10");
    server.check(&running, "SELECT * FROM sums", &there);
    check(server, &running, "SELECT * FROM sums", &format!("SELECT * FROM {table}_sums"));
}

fn process(folder: &Path) -> std::process::Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "postgres::views::an_engine_that_writes_until_it_is_killed"])
        .env("ALLUVIUM_POSTGRES_VIEWS", folder)
        .stdout(Stdio::null())
        .spawn()
        .unwrap()
}

#[test]
fn of_two_writers_of_one_name_the_later_one_writes() {
    check_fence(false);
}

#[test]
fn a_writer_that_has_lost_its_connection_does_not_take_the_table_back() {
    check_fence(true);
}

/// Cuts the connections of all engines to a server.
fn cut(server: &Server) {
    let cut = "SELECT count(pg_terminate_backend(pid)) > 0 FROM pg_stat_activity WHERE application_name = 'alluvium'";
    assert_eq!(server.sql(cut), ["t"]);
}

/// Changes a row until that fails, and returns why.
fn failure(engine: &Engine) -> String {
    let (start, mut n) = (Instant::now(), 0);
    loop {
        n += 1;
        match engine.execute(&format!("INSERT OR REPLACE INTO t VALUES (3, 'zombie', {n})")) {
            Err(error) => return error.to_string(),
            Ok(_) => assert!(start.elapsed() < LONG, "the writer goes on"),
        }
        sleep(Duration::from_millis(20));
    }
}

/// A copy of a state directory takes over, and the engine that it is a copy of must not write any more, over a new connection neither.
fn check_fence(cuts: bool) {
    let (server, table) = (&Server::start(), "fenced");
    server.sql(&format!("CREATE TABLE {table} (name text PRIMARY KEY, rows bigint, total bigint)"));
    let (folder, copy) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let first = engine(folder.path());
    first.execute("CREATE TABLE t (id BIGINT PRIMARY KEY, name TEXT, n BIGINT)").unwrap();
    first.execute(&view(server, "v", table, SUMS)).unwrap();
    first.execute("INSERT INTO t VALUES (1, 'a', 1)").unwrap();
    check_sums(server, &first, table);
    drop(first);
    let copied = Command::new("cp")
        .arg("-r")
        .arg(folder.path().join("state"))
        .arg(copy.path())
        .status()
        .unwrap();
    assert!(copied.success());
    let first = engine(folder.path());
    first.execute("INSERT INTO t VALUES (2, 'a', 2)").unwrap();
    check_sums(server, &first, table);
    let second = engine(copy.path());
    let (start, there) = (Instant::now(), format!("SELECT count(*) FROM {table} WHERE name = "));
    // Epochs up to the mark are left out: they are those of the first.
    for n in 0.. {
        second.execute(&format!("INSERT OR REPLACE INTO t VALUES (9, 'second', {n})")).unwrap();
        if server.sql(&format!("{there} 'second'")) == ["1"] {
            break;
        }
        assert!(start.elapsed() < LONG, "the copy does not write");
    }
    if cuts {
        cut(server);
    }
    let error = failure(&first);
    assert!(error.contains("another writer of the same name has taken over"), "{error}");
    assert_eq!(server.sql(&format!("{there} 'zombie'")), ["0"]);
    second.execute("INSERT INTO t VALUES (10, 'third', 1)").unwrap();
    let start = Instant::now();
    while server.sql(&format!("{there} 'third'")) != ["1"] {
        assert!(start.elapsed() < LONG, "the copy does not write any more");
        sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_database_that_has_lost_a_commit_is_told() {
    let (server, table) = (&Server::start(), "set_back");
    server.sql(&format!("CREATE TABLE {table} (name text PRIMARY KEY, rows bigint, total bigint)"));
    let folder = tempfile::tempdir().unwrap();
    let running = engine(folder.path());
    running.execute("CREATE TABLE t (id BIGINT PRIMARY KEY, name TEXT, n BIGINT)").unwrap();
    running.execute(&view(server, "v", table, SUMS)).unwrap();
    running.execute("INSERT INTO t VALUES (1, 'a', 1)").unwrap();
    check_sums(server, &running, table);
    server.sql("UPDATE alluvium_progress SET epoch = 0");
    cut(server);
    let error = failure(&running);
    assert!(error.contains("the database was set back"), "{error}");
}

#[test]
fn values_of_all_types_arrive() {
    let (server, table) = (shared(), unique("arrived"));
    server.sql(&format!(
        "CREATE TABLE {table} (id int PRIMARY KEY, b bool, r real, d float8, m numeric, s text, y bytea, a date, i time, p timestamp,
         z timestamptz, l int[], w text[], j jsonb)"
    ));
    let folder = tempfile::tempdir().unwrap();
    let running = engine(folder.path());
    running
        .execute(
            "CREATE TABLE t (id INT PRIMARY KEY, b BOOLEAN, r REAL, d DOUBLE, m DECIMAL(20, 5), s TEXT, y BYTEA, a DATE, i TIME,
             p TIMESTAMP, z TIMESTAMP WITH TIME ZONE, l INT[], w TEXT[], j TEXT)",
        )
        .unwrap();
    running
        .execute(
            "INSERT INTO t VALUES (1, true, 1.1, -0.25, 12345678901.12345, 'a,\"b\"', X'00ff', '2026-02-28', '23:59:59.999999',
             '1969-12-31 23:59:59.000001', '2026-06-01 12:00:00+05:30', [1, NULL, 3], ['x', 'y \"z\"'], '{\"a\": [1]}');
             INSERT INTO t (id, s) VALUES (2, '')",
        )
        .unwrap();
    running.execute(&view(server, "v", &table, "SELECT * FROM t")).unwrap();
    let there = format!("SELECT * FROM {table} ORDER BY id");
    let start = Instant::now();
    while server.sql(&there).len() < 2 {
        assert!(start.elapsed() < LONG, "the rows do not arrive");
        sleep(Duration::from_millis(10));
    }
    let null = ["NULL"; 8].join("|");
    assert_eq!(
        server.sql(&format!("SET timezone TO 'UTC'; {there}")),
        [
            "1|t|1.1|-0.25|12345678901.12345|a,\"b\"|\\x00ff|2026-02-28|23:59:59.999999|1969-12-31 23:59:59.000001|\
             2026-06-01 06:30:00+00|{1,NULL,3}|{x,\"y \\\"z\\\"\"}|{\"a\": [1]}"
                .to_owned(),
            format!("2|NULL|NULL|NULL|NULL||{null}"),
        ]
    );
}

#[test]
fn elements_of_lists_arrive_as_they_do_alone() {
    let (server, table) = (shared(), unique("elements"));
    server.sql(&format!(
        "CREATE TABLE {table} (id int PRIMARY KEY, y bytea[], d float8[], m numeric[], z timestamptz[], n int[])"
    ));
    let folder = tempfile::tempdir().unwrap();
    let running = engine(folder.path());
    running
        .execute(
            "CREATE TABLE t (id INT PRIMARY KEY, y BYTEA[], d DOUBLE[], m DECIMAL(30, 5)[], z TIMESTAMP WITH TIME ZONE[], n INT[]);
             INSERT INTO t VALUES (1, [X'00ff', CAST(NULL AS BYTEA)], [CAST('NaN' AS DOUBLE), CAST('-inf' AS DOUBLE)],
                 [CAST('1234567890123456789012345.12345' AS DECIMAL(30, 5))],
                 [CAST('2026-06-01 12:00:00+05:30' AS TIMESTAMP WITH TIME ZONE)], NULL)",
        )
        .unwrap();
    running.execute(&view(server, "v", &table, "SELECT * FROM t")).unwrap();
    let (there, start) = (format!("SET timezone TO 'UTC'; SELECT * FROM {table}"), Instant::now());
    while server.sql(&there).is_empty() {
        assert!(start.elapsed() < LONG, "the row does not arrive");
        sleep(Duration::from_millis(10));
    }
    let expected = "1|{\"\\\\x00ff\",NULL}|{NaN,-Infinity}|{1234567890123456789012345.12345}|{\"2026-06-01 06:30:00+00\"}|NULL";
    assert_eq!(server.sql(&there), [expected]);
}

#[test]
fn what_is_wrong_with_an_output_is_told_when_the_view_is_created() {
    let (server, table) = (shared(), unique("unfit"));
    server.sql(&format!(
        "CREATE TABLE {table} (name text PRIMARY KEY, rows bigint); CREATE TABLE {table}_bare (name text, rows bigint, total bigint)"
    ));
    let folder = tempfile::tempdir().unwrap();
    let running = engine(folder.path());
    running.execute("CREATE TABLE t (id BIGINT PRIMARY KEY, name TEXT, n BIGINT)").unwrap();
    let bare = format!("{table}_bare");
    for (table, query, expected) in [
        (&*unique("nowhere"), SUMS, "has no table"),
        (&*table, SUMS, "has no column \"total\", as the view does; it has name, rows"),
        (&*table, "SELECT COUNT(*) AS rows FROM t", "the view has no column \"name\""),
        (&*bare, SUMS, "has no primary key"),
    ] {
        let error = running.execute(&view(server, "v", table, query)).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}

/// The programs of the guide, with the tables of the guide.
#[test]
fn the_guide_has_programs_that_run() {
    let guide = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide/connect.md");
    let guide = std::fs::read_to_string(guide).unwrap();
    let guide = guide.split("\n## Postgres\n").nth(1).unwrap();
    let block = |begin: &str, end: &str| {
        guide.split(begin).nth(1).unwrap().split(end).next().unwrap().to_owned()
    };
    let server = Server::start();
    server.sql(&block("<< 'SQL'\n", "\nSQL\n"));
    let here = |program: String| {
        program.replace("127.0.0.1:5432", &format!("127.0.0.1:{}", server.port()))
    };
    let folder = tempfile::tempdir().unwrap();
    let running = engine(folder.path());
    running.execute(&here(block("```sql\n", "```"))).unwrap();
    running
        .execute(&here(block("```text\nCREATE VIEW", "```")).replacen(
            " spent",
            "CREATE VIEW spent",
            1,
        ))
        .unwrap();
    let best = "SELECT * FROM best";
    server.check(&running, best, "VALUES ('ann', 2, 15.00), ('bob', 1, 7.00)");
    assert!(guide.contains("| ann      | 2      | 15.00  |\n| bob      | 1      | 7.00   |"));
    server.sql(
        "BEGIN; DELETE FROM orders WHERE id = 2; UPDATE orders SET amount = 5 WHERE id = 3; COMMIT",
    );
    server.check(&running, best, "VALUES ('ann', 2, 15.50)");
    check(&server, &running, best, "SELECT * FROM spent");
}
