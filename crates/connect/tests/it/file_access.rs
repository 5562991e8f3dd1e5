//! Which files the statements of a session may use.

use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;

use alluvium::{Error, FileAccess};
use tempfile::TempDir;

use crate::workspace::Workspace;

/// A workspace whose session may use files below `in`, beside which there are others.
struct Walled {
    workspace: Workspace,
    outside: TempDir,
}

impl Walled {
    fn new() -> Self {
        let mut workspace = Workspace::new();
        let outside = TempDir::new().unwrap();
        fs::create_dir_all(workspace.path("in/deep")).unwrap();
        fs::create_dir_all(workspace.path("inner")).unwrap();
        for file in ["in/t.csv", "in/deep/t.csv", "inner/t.csv", "t.csv"] {
            workspace.file(file, "a\n1\n");
        }
        fs::write(outside.path().join("secret.csv"), "a\n9\n").unwrap();
        workspace.session.set_file_access(FileAccess::Below(vec![workspace.path("in")]));
        Self { workspace, outside }
    }

    fn secret(&self) -> PathBuf {
        self.outside.path().join("secret.csv")
    }

    /// The message of a statement that is denied, and in which it names the file.
    fn denied(&mut self, sql: &str) -> String {
        match self.workspace.session.execute(sql) {
            Err(Error::Denied { message, position: Some(_), .. }) => message,
            other => panic!("{sql}: {other:?}"),
        }
    }
}

#[test]
fn files_below_a_directory_are_read_and_written() {
    let mut walled = Walled::new();
    let workspace = &mut walled.workspace;
    assert_eq!(workspace.query("SELECT a FROM 'in/t.csv'"), ["1"]);
    assert_eq!(workspace.query("SELECT a FROM 'in/deep/../t.csv'"), ["1"]);
    assert_eq!(workspace.query("SELECT count(*) FROM 'in/**/*.csv'"), ["2"]);
    let path = workspace.path("in/t.csv");
    assert_eq!(workspace.query(&format!("SELECT a FROM '{}'", path.display())), ["1"]);
    workspace.run("CREATE TABLE t (a BIGINT); COPY t FROM 'in/t.csv'; COPY t TO 'in/deep/new.csv'");
    assert_eq!(workspace.content("in/deep/new.csv"), "a\r\n1\r\n");
    workspace
        .run("COPY (SELECT 2 AS a) TO 'in/deep/new.csv'; CREATE TABLE u FROM 'in/deep/new.csv'");
    assert_eq!(workspace.query("SELECT * FROM u"), ["2"]);
    workspace.run(
        "CREATE TABLE i (a BIGINT) WITH (connector = 'file', path = 'in/t.csv');
         CREATE MATERIALIZED VIEW o WITH (connector = 'file', path = 'in/o.csv') AS SELECT a FROM u",
    );
    // A link that leads to a place below it.
    symlink("../t.csv", workspace.path("in/deep/link.csv")).unwrap();
    assert_eq!(workspace.query("SELECT a FROM 'in/deep/link.csv'"), ["1"]);
}

#[test]
fn nothing_leads_out_of_the_directory() {
    let mut walled = Walled::new();
    let secret = walled.secret().display().to_string();
    symlink(walled.secret(), walled.workspace.path("in/file.csv")).unwrap();
    symlink(walled.outside.path(), walled.workspace.path("in/folder")).unwrap();
    symlink(walled.outside.path().join("missing.csv"), walled.workspace.path("in/dangling.csv"))
        .unwrap();
    let paths = [
        secret.as_str(),
        "t.csv",
        "missing.csv",
        "../missing.csv",
        "inner/t.csv",
        "in/../t.csv",
        "in/missing/../../t.csv",
        "in/folder/../t.csv",
        "in/file.csv",
        "in/folder/secret.csv",
        "in/folder/missing.csv",
        "in/folder/missing/x.csv",
        "in/dangling.csv",
        "/dev/stdin.csv",
        "",
    ];
    for path in paths {
        let message = walled.denied(&format!("CREATE TABLE c FROM '{path}' (FORMAT csv)"));
        assert_eq!(message, format!("this session may not read the file \"{path}\""));
        let message = walled.denied(&format!("COPY (SELECT 1 AS a) TO '{path}' (FORMAT csv)"));
        assert_eq!(message, format!("this session may not write the file \"{path}\""));
    }
    for pattern in
        ["*.csv", "in/fo*/*.csv", "in/f*.csv", "in/*/../../t*.csv", "/**/*.csv", "in*/t.csv"]
    {
        let message = walled.denied(&format!("CREATE TABLE c FROM '{pattern}'"));
        assert_eq!(message, format!("this session may not read the file \"{pattern}\""));
    }
    assert!(!walled.outside.path().join("missing.csv").exists());
    assert_eq!(fs::read_to_string(walled.secret()).unwrap(), "a\n9\n");
    // A directory that is not there has nothing below it, and one that is has nothing beside it.
    let gone =
        FileAccess::Below(vec![walled.workspace.path("gone"), walled.workspace.path("in/deep")]);
    walled.workspace.session.set_file_access(gone);
    walled.denied("SELECT * FROM 'in/t.csv'");
    walled.denied("SELECT * FROM 'gone/t.csv'");
    assert_eq!(walled.workspace.query("SELECT a FROM 'in/deep/t.csv'"), ["1"]);
}

#[test]
fn every_statement_that_names_a_file_asks() {
    let mut walled = Walled::new();
    walled.workspace.run("CREATE TABLE t (a BIGINT); INSERT INTO t VALUES (5)");
    for sql in [
        "SELECT * FROM 't.csv'",
        "EXPLAIN SELECT * FROM 't.csv'",
        "SELECT (SELECT max(a) FROM 't.csv')",
        "INSERT INTO t SELECT * FROM 't.csv'",
        "CREATE TABLE u AS SELECT * FROM 't.csv'",
        "CREATE TABLE u FROM 't.csv'",
        "COPY t FROM 't.csv'",
        "COPY t TO 't.csv'",
        "COPY (SELECT * FROM 't.csv') TO 'in/x.csv'",
        "CREATE TABLE u (a BIGINT) WITH (connector = 'file', path = 't.csv')",
        "CREATE TABLE u (a BIGINT) WITH ('connectors' = '[{\"transport\": {\"name\": \"file_input\", \"config\": {\"path\": \"t.csv\"}}}]')",
        "CREATE MATERIALIZED VIEW v WITH (connector = 'file', path = 't.csv') AS SELECT a FROM t",
        "CREATE OR REPLACE MATERIALIZED VIEW v WITH (connector = 'file', path = 'in/../o.csv') AS SELECT a FROM t",
    ] {
        let message = walled.denied(sql);
        assert!(message.starts_with("this session may not "), "{sql}: {message}");
    }
    walled.workspace.session.set_file_access(FileAccess::Nothing);
    walled.denied("SELECT * FROM 'in/t.csv'");
    walled.workspace.session.set_file_access(FileAccess::Everything);
    assert_eq!(walled.workspace.query("SELECT a FROM 't.csv'"), ["1"]);
    assert_eq!(walled.workspace.content("t.csv"), "a\n1\n");
    assert!(!walled.workspace.path("in/x.csv").exists());
}

#[test]
fn only_regular_files_are_used_and_errors_name_paths_as_they_were_written() {
    let mut walled = Walled::new();
    let _socket = UnixListener::bind(walled.workspace.path("in/socket.csv")).unwrap();
    for path in ["in/socket.csv", "in/deep"] {
        let message = walled.denied(&format!("SELECT * FROM '{path}'"));
        assert_eq!(
            message,
            format!("\"{path}\" is no regular file, and this session uses no other")
        );
    }
    let folder = walled.workspace.folder.path().display().to_string();
    for sql in [
        "SELECT * FROM 'in/missing.csv'",
        "SELECT * FROM 'in/missing/*.csv'",
        "CREATE TABLE c FROM 'in/missing/missing.csv'",
        "COPY (SELECT 1 AS a) TO 'in/missing/x.csv'",
        "SELECT * FROM 'in/t.none'",
    ] {
        let message = walled.workspace.session.execute(sql).unwrap_err().to_string();
        assert!(message.contains("in/") && !message.contains(&folder), "{sql}: {message}");
    }
}

#[test]
fn an_engine_says_which_files_its_sessions_use_and_does_again_what_was_done() {
    let state = TempDir::new().unwrap();
    let url = format!("file:{}", state.path().display());
    let folder = TempDir::new().unwrap();
    let input = folder.path().join("t.csv");
    fs::write(&input, "a\n1\n").unwrap();
    let builder =
        || alluvium_connect::formats(alluvium::Engine::builder().workers(1).state(url.clone()));
    let engine = builder().open().unwrap();
    engine
        .execute(&format!(
            "CREATE TABLE t (a BIGINT) WITH (connector = 'file', path = '{}', materialized = 'true')",
            input.display()
        ))
        .unwrap();
    drop(engine);
    let engine = builder().file_access(FileAccess::Nothing).open().unwrap();
    engine.start().unwrap();
    engine.wait_for_sources().unwrap();
    let rows = engine.query("SELECT a FROM t").unwrap();
    assert_eq!(rows.iter().map(|rows| rows.num_rows()).sum::<usize>(), 1);
    let error = engine.query(&format!("SELECT a FROM '{}'", input.display())).unwrap_err();
    assert!(matches!(error, Error::Denied { .. }), "{error}");
}
