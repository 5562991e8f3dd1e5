//! What has to be there before a table is read, and what is said if it is not.

use std::fs;
use std::path::Path;
use std::time::Instant;

use rcgen::{CertificateParams, KeyPair};

use super::server::{LONG, Server, engine, failure, query, shared, unique};

#[test]
fn what_is_missing_upstream_is_told_when_the_table_is_started() {
    let (server, table) = (shared(), unique("missing"));
    server.sql(&format!(
        "CREATE TABLE {table} (id int PRIMARY KEY, v text); CREATE TABLE {table}_bare (id int);
         CREATE TABLE {table}_parts (id int PRIMARY KEY) PARTITION BY RANGE (id);
         CREATE PUBLICATION p_{table}_parts FOR TABLE {table}_parts;
         CREATE PUBLICATION p_{table}_bare FOR TABLE {table}_bare;
         CREATE PUBLICATION p_{table}_else FOR TABLE {table}_bare;
         CREATE PUBLICATION p_{table} FOR TABLE {table};
         SELECT 'x' FROM pg_create_logical_replication_slot('s_{table}_taken', 'pgoutput')"
    ));
    let problem = |sql: &str| {
        let folder = tempfile::tempdir().unwrap();
        let running = engine(folder.path());
        running.execute(sql).unwrap();
        running.start().unwrap_err().to_string()
    };
    let key = "id INT PRIMARY KEY";
    let with = |columns: &str, table: &str| server.connected(columns, table, "linger_ms = '1'");
    let good = with(key, &table);
    let replaced = |from: &str, to: &str| good.replace(from, to);
    for (sql, expected) in [
        (with(key, &unique("nowhere")), "has no table"),
        (replaced("publication = 'p_", "publication = 'q_"), "has no publication"),
        (
            replaced(&format!("'p_{table}'"), &format!("'p_{table}_else'")),
            "does not have the table",
        ),
        (
            with("id INT PRIMARY KEY, w TEXT", &table),
            "has no column \"w\" that is replicated; it has id, v",
        ),
        (with("id INT, v TEXT", &table), "declare PRIMARY KEY (id) here"),
        (with("id INT, v TEXT PRIMARY KEY", &table), "tells rows apart by id"),
        (with("id INT", &format!("{table}_bare")), "REPLICA IDENTITY FULL"),
        (with(key, &format!("{table}_parts")), "publish_via_partition_root"),
        (
            replaced(&format!("'s_{table}'"), &format!("'s_{table}_taken'")),
            "pg_drop_replication_slot",
        ),
        (replaced("/postgres'", "/nowhere'"), "check database"),
        (replaced("postgres@", "nobody@"), "check user and password"),
        (replaced("127.0.0.1", "169.254.169.254"), "address of the link"),
    ] {
        let error = problem(&sql);
        assert!(error.contains(expected) && error.contains("\"t\""), "{error}");
    }
}

#[test]
fn a_connector_that_is_wrong_is_refused_when_the_table_is_created() {
    let folder = tempfile::tempdir().unwrap();
    let running = engine(folder.path());
    let problem = |options: &str| {
        let sql =
            format!("CREATE TABLE t (id INT PRIMARY KEY) WITH (connector = 'postgres', {options})");
        running.execute(&sql).unwrap_err().to_string()
    };
    for (options, expected) in [
        ("host = 'a', table = 't', publication = 'p'", "needs \"slot\""),
        ("host = 'a', colour = 'red'", "no option \"colour\""),
        ("host = 'a', password = 'p-7'", "${secret:name}"),
        ("url = 'postgres://u:p-7@a/b'", "no password"),
        ("host = 'a', table = 't', publication = 'p', slot = 's', format = 'json'", "no format"),
    ] {
        let error = problem(options);
        assert!(error.contains(expected) && !error.contains("p-7"), "{error}");
    }
}

#[test]
fn a_policy_that_leaves_out_rows_is_told() {
    let (server, table) = (shared(), unique("policy"));
    server.sql(&format!(
        "CREATE TABLE {table} (id int PRIMARY KEY); INSERT INTO {table} VALUES (1), (2);
         CREATE POLICY half ON {table} USING (id = 1); ALTER TABLE {table} ENABLE ROW LEVEL SECURITY;
         CREATE ROLE {table} LOGIN REPLICATION PASSWORD '{}'; GRANT SELECT ON {table} TO {table}",
        super::server::PASSWORD
    ));
    let folder = tempfile::tempdir().unwrap();
    let running = engine(folder.path());
    let sql = server.table("id INT PRIMARY KEY", &table);
    running.execute(&sql.replace("postgres@", &format!("{table}@"))).unwrap();
    running.start().unwrap();
    let message = failure(&running);
    assert!(message.contains("BYPASSRLS"), "{message}");
}

/// A text that ends with a backslash is one literal in statements, however the server is set.
#[test]
fn names_with_backslashes_are_names() {
    let server = Server::start();
    server.sql(
        "CREATE TABLE \"odd\\\" (id int PRIMARY KEY); INSERT INTO \"odd\\\" VALUES (1);
         CREATE PUBLICATION p_odd FOR TABLE \"odd\\\";
         ALTER SYSTEM SET standard_conforming_strings = off",
    );
    server.sql("SELECT pg_reload_conf()");
    let folder = tempfile::tempdir().unwrap();
    let running = engine(folder.path());
    let sql = server.connected("id INT PRIMARY KEY", "odd", "'materialized' = 'true'");
    running.execute(&sql.replace("table = 'odd'", "table = 'odd\\'")).unwrap();
    running.start().unwrap();
    server.check(&running, "SELECT id FROM t", "VALUES (1)");
}

/// Every file below a folder has to be without the password.
fn check_without(folder: &Path, secret: &str) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => check_without(&path, secret),
            false => {
                let bytes = fs::read(&path).unwrap();
                let found = bytes.windows(secret.len()).any(|window| window == secret.as_bytes());
                assert!(!found, "{} has the password", path.display());
            }
        }
    }
}

#[test]
fn the_password_is_nowhere_in_a_state_directory_and_in_no_relation() {
    const SECRET: &str = "xyzzy-4711-plugh";
    let (server, table) = (shared(), unique("planted"));
    server.sql(&format!(
        "CREATE TABLE {table} (id int PRIMARY KEY); INSERT INTO {table} VALUES (1);
         CREATE ROLE {table} LOGIN REPLICATION PASSWORD '{SECRET}'; GRANT SELECT ON {table} TO {table};
         CREATE PUBLICATION p_{table} FOR TABLE {table}"
    ));
    let folder = tempfile::tempdir().unwrap();
    let running = engine(folder.path());
    fs::write(folder.path().join("secrets/pg"), SECRET).unwrap();
    let sql = server.connected("id INT PRIMARY KEY", &table, "'materialized' = 'true'");
    running.execute(&sql.replace("postgres@", &format!("{table}@"))).unwrap();
    running.start().unwrap();
    server.check(&running, "SELECT id FROM t", &format!("SELECT id FROM {table}"));
    running.checkpoint().unwrap();
    for relation in ["sources", "errors", "relations"] {
        let shown = query(&running, &format!("SELECT * FROM alluvium.{relation}")).join("\n");
        assert!(!shown.contains(SECRET), "{shown}");
    }
    check_without(&folder.path().join("state"), SECRET);
}

/// Gives a server a certificate that names a host, and returns it.
fn encrypt(server: &Server, host: &str) -> String {
    let key = KeyPair::generate().unwrap();
    let certificate = CertificateParams::new(vec![host.to_owned()]).unwrap();
    let certificate = certificate.self_signed(&key).unwrap().pem();
    for (file, pem) in [("server.crt", &certificate), ("server.key", &key.serialize_pem())] {
        let lines = pem.lines().map(|line| format!("('{line}')")).collect::<Vec<_>>().join(", ");
        server.sql(&format!("COPY (VALUES {lines}) TO PROGRAM 'umask 077; cat > {file}'"));
    }
    server.sql("ALTER SYSTEM SET ssl = on");
    server.sql("SELECT pg_reload_conf()");
    let start = Instant::now();
    while server.sql("SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()") != ["t"] {
        assert!(start.elapsed() < LONG, "the server does not encrypt");
    }
    certificate
}

#[test]
fn a_connection_is_encrypted_to_the_server_that_the_certificate_names() {
    let server = Server::start();
    server.sql("CREATE TABLE a (id int PRIMARY KEY); INSERT INTO a VALUES (1); CREATE PUBLICATION p_a FOR TABLE a");
    let folder = tempfile::tempdir().unwrap();
    let roots = folder.path().join("roots.pem");
    let options = format!(
        "sslmode = 'verify-full', sslrootcert = '{}', 'materialized' = 'true'",
        roots.display()
    );
    let sql = server.connected("id INT PRIMARY KEY", "a", &options);
    let start = |sql: &str| {
        let folder = tempfile::tempdir().unwrap();
        let running = engine(folder.path());
        running.execute(sql).unwrap();
        running.start().map(|()| (running, folder)).map_err(|error| error.to_string())
    };
    fs::write(&roots, "no certificate").unwrap();
    let error = start(&sql).map(drop).unwrap_err();
    assert!(error.contains("sslrootcert"), "{error}");
    fs::write(&roots, encrypt(&server, "elsewhere.example")).unwrap();
    let error = start(&sql).map(drop).unwrap_err();
    assert!(error.contains("certificate"), "{error}");
    fs::write(&roots, encrypt(&server, "127.0.0.1")).unwrap();
    let begun = Instant::now();
    let (running, _folder) = loop {
        match start(&sql) {
            Ok(started) => break started,
            // The server takes its new certificate a moment later.
            Err(error) => assert!(begun.elapsed() < LONG, "{error}"),
        }
    };
    server.check(&running, "SELECT id FROM t", "SELECT id FROM a");
    let encrypted = "SELECT bool_and(s.ssl) FROM pg_stat_ssl s JOIN pg_stat_activity USING (pid) WHERE application_name = 'alluvium'";
    assert_eq!(server.sql(encrypted), ["t"]);
}

#[test]
fn a_connection_is_made_once_and_its_secret_is_for_its_host() {
    let (server, table) = (shared(), unique("connected"));
    server.sql(&format!(
        "CREATE TABLE {table} (id int PRIMARY KEY); INSERT INTO {table} VALUES (1);
         CREATE PUBLICATION p_{table} FOR TABLE {table}"
    ));
    let folder = tempfile::tempdir().unwrap();
    let running = engine(folder.path());
    let port = server.port();
    running.execute(&format!("CREATE SECRET pg (hosts = '127.0.0.1:{port}')")).unwrap();
    let connection = |name: &str, host: &str| {
        format!(
            "CREATE CONNECTION {name} TO POSTGRES (host = '{host}', port = '{port}', database = 'postgres', password = SECRET pg)"
        )
    };
    let error = running.execute(&connection("wrong", "localhost")).unwrap_err().to_string();
    assert!(error.contains("localhost"), "{error}");
    running.execute(&connection("pg", "127.0.0.1")).unwrap();
    let of_table = format!("publication = 'p_{table}', slot = 's_{table}', table = '{table}'");
    let here = "CREATE TABLE t (id INT PRIMARY KEY)";
    let sql = format!("{here} FROM POSTGRES pg (host = 'elsewhere', {of_table})");
    let error = running.execute(&sql).unwrap_err().to_string();
    assert!(error.contains("host"), "{error}");
    running.execute(&format!("{here} FROM POSTGRES pg ({of_table})")).unwrap();
    running.execute("CREATE MATERIALIZED VIEW v AS SELECT id FROM t").unwrap();
    running.start().unwrap();
    server.check(&running, "SELECT id FROM v", "VALUES (1)");
}
