//! Tables that follow tables there, beside what these are.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::server::{LONG, Server, check_runs, engine, query, shared, unique};

const COLUMNS: &str = "id BIGINT PRIMARY KEY, name TEXT, n INT";

/// Random changes of a table `(id, name, n)`, some of them in transactions of several.
fn change(server: &Server, table: &str, random: &mut fastrand::Rng) {
    let mut sql = String::new();
    for _ in 0..random.u8(1..6) {
        let (id, other, n) = (random.u8(..40), random.u8(..40), random.i8(..));
        let name =
            ["a", "b", "tab\\tnew\\nline \\\\ 'quote'", ""][random.usize(..4)].replace('\'', "''");
        sql += &match random.u8(..12) {
            0..5 => format!(
                "INSERT INTO {table} VALUES ({id}, E'{name}', {n}) ON CONFLICT (id) DO UPDATE SET name = excluded.name, n = excluded.n;"
            ),
            5 => format!("DELETE FROM {table} WHERE id = {id};"),
            6 => format!(
                "UPDATE {table} SET id = {other} + 100 WHERE id = {id} AND NOT EXISTS (SELECT FROM {table} WHERE id = {other} + 100);"
            ),
            7 => format!("UPDATE {table} SET n = NULL WHERE id < {id};"),
            8 if random.u8(..6) == 0 => {
                format!("TRUNCATE {table}; INSERT INTO {table} VALUES ({id}, 'first', {n});")
            }
            9 => format!(
                "BEGIN; DELETE FROM {table} WHERE id > {id}; INSERT INTO {table} SELECT g, 'r', g FROM generate_series(200, 210) g ON CONFLICT DO NOTHING; ROLLBACK;"
            ),
            _ => format!(
                "BEGIN; UPDATE {table} SET n = n % 100 + 1 WHERE id > {id}; DELETE FROM {table} WHERE id > 100; COMMIT;"
            ),
        };
    }
    server.sql(&sql);
}

#[test]
fn a_table_is_what_the_one_there_is_however_often_the_engine_starts_again() {
    let (server, table) = (shared(), unique("followed"));
    server.sql(&format!("CREATE TABLE {table} (id bigint PRIMARY KEY, name text, n int)"));
    let folder = tempfile::tempdir().unwrap();
    let mut random = fastrand::Rng::with_seed(23);
    change(server, &table, &mut random);
    let mut running = engine(folder.path());
    running.execute(&server.table(COLUMNS, &table)).unwrap();
    running.execute("CREATE MATERIALIZED VIEW sums AS SELECT name, COUNT(*) AS rows, SUM(n) AS total FROM t GROUP BY name").unwrap();
    running.start().unwrap();
    let check = |running: &alluvium::Engine| {
        server.check(
            running,
            "SELECT id, replace(replace(name, chr(10), ' '), chr(9), ' '), n FROM t",
            &format!(
                "SELECT id, replace(replace(name, chr(10), ' '), chr(9), ' '), n FROM {table}"
            ),
        );
        server.check(
            running,
            "SELECT rows, total FROM sums",
            &format!("SELECT count(*), sum(n) FROM {table} GROUP BY name"),
        );
    };
    for round in 0..12 {
        (0..random.u8(1..5)).for_each(|_| change(server, &table, &mut random));
        if random.bool() {
            check(&running);
        }
        if round % 4 == 2 {
            running.checkpoint().unwrap();
        }
        if random.bool() {
            drop(running);
            running = engine(folder.path());
            running.start().unwrap();
        }
    }
    check(&running);
    assert_eq!(query(&running, "SELECT message FROM alluvium.errors"), [""; 0]);
}

/// The process that the next test kills: it reads until then.
#[test]
fn an_engine_that_reads_until_it_is_killed() {
    let Ok(folder) = std::env::var("ALLUVIUM_POSTGRES_STATE") else { return };
    let running = engine(&PathBuf::from(folder));
    running.start().unwrap();
    let start = Instant::now();
    while start.elapsed() < LONG {
        check_runs(&running);
        sleep(Duration::from_millis(20));
    }
}

#[test]
fn nothing_is_lost_and_nothing_twice_though_the_process_is_killed() {
    let rounds = std::env::var("ALLUVIUM_KILLS").map_or(3, |rounds| rounds.parse().unwrap());
    let (server, table) = (shared(), unique("killed"));
    server.sql(&format!(
        "CREATE TABLE {table} (id bigint PRIMARY KEY, name text, n int);
         INSERT INTO {table} SELECT g, 'begin', g FROM generate_series(1000, 30000) g"
    ));
    let folder = tempfile::tempdir().unwrap();
    let mut random = fastrand::Rng::with_seed(29);
    let running = engine(folder.path());
    running.execute(&server.table(COLUMNS, &table)).unwrap();
    drop(running);
    for _ in 0..rounds {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "postgres::tables::an_engine_that_reads_until_it_is_killed"])
            .env("ALLUVIUM_POSTGRES_STATE", folder.path())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let end = Instant::now() + Duration::from_millis(random.u64(100..2_000));
        while Instant::now() < end {
            change(server, &table, &mut random);
        }
        child.kill().unwrap();
        child.wait().unwrap();
    }
    let running = engine(folder.path());
    running.start().unwrap();
    server.check(
        &running,
        "SELECT count(*), sum(id), sum(n), count(name) FROM t",
        &format!("SELECT count(*), sum(id), sum(n), count(name) FROM {table}"),
    );
}

/// A type there, the one here, a value as SQL has it there, and what it is here.
type Kind = (&'static str, &'static str, &'static str, &'static str);

const KINDS: &[Kind] = &[
    ("bool", "BOOLEAN", "true", "true"),
    ("int2", "SMALLINT", "-32768", "-32768"),
    ("int4", "INT", "2147483647", "2147483647"),
    ("int8", "BIGINT", "-9223372036854775808", "-9223372036854775808"),
    ("float4", "REAL", "'1.1'", "1.1"),
    ("float8", "DOUBLE", "'-Infinity'", "-inf"),
    ("numeric(20,5)", "DECIMAL(20, 5)", "123456789012345.12345", "123456789012345.12345"),
    ("numeric", "DECIMAL(38, 10)", "0.1", "0.1000000000"),
    ("text", "TEXT", "E'a\\tb\\\\c'", "a\tb\\c"),
    ("varchar(9)", "VARCHAR", "'ä€😀'", "ä€😀"),
    ("char(3)", "TEXT", "'a'", "a  "),
    ("bytea", "BYTEA", "'\\x00ff5c'", "00ff5c"),
    ("date", "DATE", "'2026-02-28'", "2026-02-28"),
    ("time", "TIME", "'23:59:59.999999'", "23:59:59.999999"),
    ("timestamp", "TIMESTAMP", "'1969-12-31 23:59:59.000001'", "1969-12-31T23:59:59.000001"),
    (
        "timestamptz",
        "TIMESTAMP WITH TIME ZONE",
        "'2026-06-01 12:00:00+05:30'",
        "2026-06-01T06:30:00Z",
    ),
    ("interval", "TEXT", "'1 year 2 mons 3 days 04:05:06.5'", "1 year 2 mons 3 days 04:05:06.5"),
    (
        "uuid",
        "TEXT",
        "'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'",
        "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
    ),
    ("json", "TEXT", "'{\"a\": [1]}'", "{\"a\": [1]}"),
    ("jsonb", "TEXT", "'{\"a\":[1]}'", "{\"a\": [1]}"),
    ("int[]", "INT[]", "'{1,NULL,3}'", "[1, NULL, 3]"),
    ("text[]", "TEXT[]", "'{a,\"b \\\"c\\\", d\",NULL}'", "[a, b \"c\", d, NULL]"),
    ("numeric[]", "DECIMAL(9, 2)[]", "'{1.5,-2.25}'", "[1.50, -2.25]"),
    ("bool[]", "BOOLEAN[]", "'{t,f}'", "[true, false]"),
    ("bytea[]", "BYTEA[]", "'{\"\\\\x00ff\",NULL}'", "[00ff, NULL]"),
    ("float8[]", "DOUBLE[]", "'{1.5,NaN,-Infinity}'", "[1.5, NaN, -inf]"),
    ("date[]", "DATE[]", "'{2026-01-02}'", "[2026-01-02]"),
    ("int4range", "TEXT", "'[1,5)'", "[1,5)"),
    ("inet", "TEXT", "'10.0.0.1/8'", "10.0.0.1/8"),
    ("money", "TEXT", "'1.5'", "$1.50"),
    ("mood", "TEXT", "'so so'", "so so"),
];

#[test]
fn values_of_all_types_are_the_same_from_the_snapshot_and_from_the_stream() {
    let (server, table) = (shared(), unique("kinds"));
    let of = |part: &dyn Fn(usize, &Kind) -> String| {
        KINDS.iter().enumerate().map(|(at, kind)| part(at, kind)).collect::<Vec<_>>().join(", ")
    };
    let there = of(&|at, (there, ..)| format!("c{at} {there}"));
    let here = of(&|at, (_, here, ..)| format!("c{at} {here}"));
    let values = of(&|_, (_, _, value, _)| (*value).to_owned());
    let nulls = of(&|_, _| "NULL".to_owned());
    server.sql(&format!(
        "CREATE TYPE mood AS ENUM ('sad', 'so so'); CREATE TABLE {table} (id int PRIMARY KEY, {there});
         INSERT INTO {table} VALUES (1, {values}), (2, {nulls})"
    ));
    let folder = tempfile::tempdir().unwrap();
    let running = engine(folder.path());
    running.execute(&server.table(&format!("id INT PRIMARY KEY, {here}"), &table)).unwrap();
    running.start().unwrap();
    server.check(&running, "SELECT id FROM t", &format!("SELECT id FROM {table}"));
    server.sql(&format!("INSERT INTO {table} VALUES (3, {values}), (4, {nulls})"));
    server.check(&running, "SELECT id FROM t", &format!("SELECT id FROM {table}"));
    assert_eq!(query(&running, "SELECT message FROM alluvium.errors"), [""; 0]);
    let mut wrong = Vec::new();
    for (at, (there, _, value, expected)) in KINDS.iter().enumerate() {
        for (id, expected) in [(1, *expected), (3, *expected), (2, "NULL"), (4, "NULL")] {
            let found = query(&running, &format!("SELECT c{at} FROM t WHERE id = {id}"));
            if found != [expected] {
                wrong.push(format!("{there} {value} in row {id} is {found:?} and not {expected}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn values_that_have_no_place_here_are_refused_one_row_at_a_time() {
    let (server, table) = (shared(), unique("refused"));
    server.sql(&format!(
        "CREATE TABLE {table} (id int PRIMARY KEY, at timestamp, n numeric);
         INSERT INTO {table} VALUES (1, 'infinity', 1), (2, '2026-01-01', 2)"
    ));
    let folder = tempfile::tempdir().unwrap();
    let running = engine(folder.path());
    let columns = "id INT PRIMARY KEY, at TIMESTAMP, n DECIMAL(9, 2)";
    running.execute(&server.table(columns, &table)).unwrap();
    running.start().unwrap();
    server.sql(&format!("INSERT INTO {table} VALUES (3, '2026-01-01', 'NaN'), (4, NULL, 4)"));
    server.check(&running, "SELECT id FROM t", "VALUES (2), (4)");
    let errors = query(&running, "SELECT \"row\", message FROM alluvium.errors");
    assert_eq!(errors.len(), 2, "{errors:?}");
    assert!(
        errors.iter().all(|error| error.starts_with(&format!("public.{table}@0/"))),
        "{errors:?}"
    );
}

/// A large value that an update does not change is not in the log.
#[test]
fn large_values_that_do_not_change_stay() {
    let server = shared();
    for identity in ["DEFAULT", "FULL"] {
        let table = unique("toasted");
        server.sql(&format!(
            "CREATE TABLE {table} (id int PRIMARY KEY, n int, doc text, other text NOT NULL);
             ALTER TABLE {table} ALTER doc SET STORAGE EXTERNAL, ALTER other SET STORAGE EXTERNAL, REPLICA IDENTITY {identity};
             INSERT INTO {table} SELECT g, g, repeat(g::text, 5000), repeat('o', 5000) FROM generate_series(1, 20) g"
        ));
        let folder = tempfile::tempdir().unwrap();
        let mut running = engine(folder.path());
        let columns = "id INT PRIMARY KEY, n INT, doc TEXT, other TEXT NOT NULL";
        running.execute(&server.table(columns, &table)).unwrap();
        running.start().unwrap();
        let rows = |name: &str| format!("SELECT id, n, md5(doc), md5(other) FROM {name}");
        server.check(&running, &rows("t"), &rows(&table));
        server.sql(&format!(
            "UPDATE {table} SET n = n + 1 WHERE id % 2 = 0;
             BEGIN; UPDATE {table} SET doc = repeat('x', 6000) WHERE id = 3; UPDATE {table} SET n = 7 WHERE id = 3;
             UPDATE {table} SET other = repeat('y', 6000) WHERE id = 3; UPDATE {table} SET n = 8 WHERE id = 3; COMMIT;
             BEGIN; DELETE FROM {table} WHERE id = 4; INSERT INTO {table} VALUES (4, 0, repeat('z', 9000), 'short');
             UPDATE {table} SET n = 44 WHERE id = 4; COMMIT"
        ));
        server.check(&running, &rows("t"), &rows(&table));
        drop(running);
        running = engine(folder.path());
        running.start().unwrap();
        server.sql(&format!("UPDATE {table} SET n = -n"));
        server.check(&running, &rows("t"), &rows(&table));
        assert_eq!(query(&running, "SELECT message FROM alluvium.errors"), [""; 0]);
    }
}

/// Rows of a table without a key are told apart by all of their values.
#[test]
fn a_table_without_a_key_has_copies_of_rows() {
    let (server, table) = (shared(), unique("copies"));
    server.sql(&format!(
        "CREATE TABLE {table} (v text, n int); ALTER TABLE {table} REPLICA IDENTITY FULL;
         INSERT INTO {table} VALUES ('a', 1), ('a', 1), ('b', NULL)"
    ));
    let folder = tempfile::tempdir().unwrap();
    let running = engine(folder.path());
    running.execute(&server.table("v TEXT, n INT", &table)).unwrap();
    running.start().unwrap();
    let there = format!("SELECT * FROM {table}");
    server.check(&running, "SELECT * FROM t", &there);
    server.sql(&format!(
        "INSERT INTO {table} VALUES ('a', 1), ('c', 3);
         DELETE FROM {table} WHERE ctid = (SELECT min(ctid) FROM {table} WHERE v = 'a');
         UPDATE {table} SET n = 5 WHERE v = 'b'"
    ));
    server.check(&running, "SELECT * FROM t", &there);
    server.sql(&format!("TRUNCATE {table}; INSERT INTO {table} VALUES ('d', 4)"));
    server.check(&running, "SELECT * FROM t", &there);
}

/// Conditions and lists of columns of a publication hold for the snapshot as for the stream, and so do partitions.
#[test]
fn a_publication_chooses_rows_and_columns_and_has_partitions() {
    let (server, table) = (shared(), unique("chosen"));
    server.sql(&format!(
        "CREATE TABLE {table} (id int PRIMARY KEY, hidden text, n int) PARTITION BY RANGE (id);
         CREATE TABLE {table}_low PARTITION OF {table} FOR VALUES FROM (0) TO (10);
         CREATE TABLE {table}_high PARTITION OF {table} FOR VALUES FROM (10) TO (99);
         CREATE PUBLICATION p_{table} FOR TABLE {table} (id, n) WHERE (id % 2 = 0) WITH (publish_via_partition_root = true);
         INSERT INTO {table} SELECT g, 'h', g FROM generate_series(1, 20) g"
    ));
    let folder = tempfile::tempdir().unwrap();
    let running = engine(folder.path());
    let columns = "id INT PRIMARY KEY, n INT, origin TEXT DEFAULT 'there'";
    running.execute(&server.connected(columns, &table, "'materialized' = 'true'")).unwrap();
    running.start().unwrap();
    let there = format!("SELECT id, n, 'there' FROM {table} WHERE id % 2 = 0");
    server.check(&running, "SELECT * FROM t", &there);
    server.sql(&format!("UPDATE {table} SET n = -1 WHERE id > 7; INSERT INTO {table} VALUES (50, 'h', 50), (51, 'h', 51)"));
    server.check(&running, "SELECT * FROM t", &there);
}

/// A table that inherits from another one is a table of its own in the stream, and so it is in the snapshot.
#[test]
fn a_snapshot_has_no_rows_of_tables_that_inherit() {
    let (server, table) = (shared(), unique("parent"));
    server.sql(&format!(
        "CREATE TABLE {table} (id bigint PRIMARY KEY, name text, n int); INSERT INTO {table} VALUES (1, 'a', 1);
         CREATE TABLE {table}_child () INHERITS ({table}); INSERT INTO {table}_child VALUES (2, 'b', 2)"
    ));
    let folder = tempfile::tempdir().unwrap();
    let running = engine(folder.path());
    running.execute(&server.table(COLUMNS, &table)).unwrap();
    running.start().unwrap();
    let there = format!("SELECT * FROM ONLY {table}");
    server.check(&running, "SELECT * FROM t", &there);
    server.sql(&format!(
        "INSERT INTO {table}_child VALUES (3, 'c', 3); INSERT INTO {table} VALUES (4, 'd', 4)"
    ));
    server.check(&running, "SELECT * FROM t", &there);
}

/// An engine without a state directory has a slot that ends with it.
#[test]
fn an_engine_in_memory_leaves_no_slot_and_reads_anew_after_its_connection_is_cut() {
    let (server, table) = (shared(), unique("memory"));
    server.sql(&format!("CREATE TABLE {table} (id bigint PRIMARY KEY, name text, n int); INSERT INTO {table} VALUES (1, 'a', 1)"));
    let secrets = tempfile::tempdir().unwrap();
    std::fs::write(secrets.path().join("pg"), super::server::PASSWORD).unwrap();
    let builder = alluvium_connect::formats(alluvium::Engine::builder().workers(1));
    let running = builder.secrets(secrets.path()).open_in_memory().unwrap();
    running.execute(&server.table(COLUMNS, &table)).unwrap();
    running.start().unwrap();
    let there = format!("SELECT * FROM {table}");
    server.check(&running, "SELECT * FROM t", &there);
    server.sql(&format!(
        "SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots WHERE slot_name = 's_{table}';
         DELETE FROM {table}; INSERT INTO {table} VALUES (2, 'b', 2)"
    ));
    server.check(&running, "SELECT * FROM t", &there);
    drop(running);
    let (start, slots) = (
        Instant::now(),
        format!("SELECT count(*) FROM pg_replication_slots WHERE slot_name = 's_{table}'"),
    );
    while server.sql(&slots) != ["0"] {
        assert!(start.elapsed() < LONG, "the slot stays");
        sleep(Duration::from_millis(20));
    }
}
