//! Signals: a program ends soon, with its own status, and leaves nothing behind.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::binary::binary;
use crate::shell::Run;

/// How long a program may take to end, on a machine that is busy with other tests.
const SOON: Duration = Duration::from_secs(5);

/// The signals that end a program, and its status.
const SIGNALS: [(&str, i32); 3] = [("INT", 130), ("TERM", 143), ("HUP", 129)];

/// A query that takes minutes.
const LONG: &str = "CREATE TABLE t (a BIGINT);
    INSERT INTO t SELECT UNNEST(range(0, 5000));
    SELECT 'begun' AS begun;
    SELECT COUNT(*) FROM t AS a, t AS b, t AS c WHERE a.a + b.a + c.a = 7;";

pub fn send(signal: &str, child: &Child) {
    let sent = Command::new("kill").args([&format!("-{signal}"), &child.id().to_string()]).status();
    assert!(sent.unwrap().success());
}

/// Waits until a program has ended, for at most as long as it may take.
fn ended(mut child: Child) -> Run {
    let start = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if start.elapsed() > SOON {
            child.kill().unwrap();
            panic!("the program goes on");
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    child.wait_with_output().unwrap().into()
}

/// Starts a program that does not ignore SIGHUP, though the tests may have been started by `nohup`.
fn start(folder: &Path, arguments: &[&str]) -> Child {
    let mut command = Command::new("env");
    command.arg("--default-signal=HUP").arg(binary());
    command.args(["--memory", "1", "--format", "csv"]).args(arguments).env("TMPDIR", folder);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Reads what a program prints up to the result of `SELECT 'begun' AS begun`.
fn read_until_begun(child: &mut Child) {
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let (mut before, mut line) = (String::new(), String::new());
    while before != "begun\r\n" || line != "begun\r\n" {
        before = std::mem::take(&mut line);
        assert!(output.read_line(&mut line).unwrap() > 0, "the program ends early");
    }
    child.stdout = Some(output.into_inner());
}

fn pipe(folder: &TempDir, name: &str) -> PathBuf {
    let pipe = folder.path().join(name);
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    pipe
}

fn is_empty(folder: &Path) -> bool {
    fs::read_dir(folder).unwrap().next().is_none()
}

#[test]
fn a_signal_ends_a_query_that_runs() {
    for (signal, status) in SIGNALS {
        let folder = TempDir::new().unwrap();
        let mut child = start(folder.path(), &["-c", LONG]);
        read_until_begun(&mut child);
        std::thread::sleep(Duration::from_millis(100));
        send(signal, &child);
        let run = ended(child);
        let expected = Run { status: Some(status), output: String::new(), errors: String::new() };
        assert_eq!(run, expected, "{signal}");
        assert!(is_empty(folder.path()), "{signal}");
    }
}

#[test]
fn a_signal_ends_a_program_that_waits_for_statements() {
    for (signal, status) in SIGNALS {
        let folder = TempDir::new().unwrap();
        let mut child = start(folder.path(), &[]);
        child.stdin.as_mut().unwrap().write_all(b"SELECT 'begun' AS begun;\n").unwrap();
        read_until_begun(&mut child);
        assert!(!is_empty(folder.path()));
        std::thread::sleep(Duration::from_millis(100));
        send(signal, &child);
        assert_eq!(ended(child).status, Some(status), "{signal}");
        assert!(is_empty(folder.path()), "{signal}");
    }
}

/// A program started by `nohup` continues when its terminal is closed.
#[test]
fn a_hangup_that_is_ignored_at_the_start_stays_ignored() {
    let mut command = Command::new("sh");
    command.args(["-c", "trap '' HUP; exec \"$0\" --format csv"]).arg(binary());
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.as_mut().unwrap().write_all(b"SELECT 'begun' AS begun;\n").unwrap();
    read_until_begun(&mut child);
    send("HUP", &child);
    std::thread::sleep(Duration::from_millis(200));
    child.stdin.as_mut().unwrap().write_all(b"SELECT 7 AS a;\n").unwrap();
    drop(child.stdin.take());
    let run = ended(child);
    assert_eq!((run.status, run.output.as_str()), (Some(0), "a\r\n7\r\n"));
}

/// Opening a pipe waits for a writer, and reading it for what it writes.
#[test]
fn a_copy_from_a_pipe_says_that_it_waits_and_a_signal_ends_it() {
    let folder = TempDir::new().unwrap();
    let temporary = TempDir::new().unwrap();
    let pipe = pipe(&folder, "t.csv");
    let sql = format!("CREATE TABLE t (a INT); COPY t FROM '{}'; SELECT 1;", pipe.display());
    for writes in [false, true] {
        let mut child = start(temporary.path(), &["-c", &sql]);
        let writer = writes.then(|| {
            let mut writer = fs::OpenOptions::new().write(true).open(&pipe).unwrap();
            writer.write_all(b"1\n").unwrap();
            writer
        });
        let mut errors = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        errors.read_line(&mut line).unwrap();
        let waits =
            format!("alluvium: waiting for another program to write to \"{}\"\n", pipe.display());
        assert_eq!(line, waits);
        send("INT", &child);
        let run = ended(child);
        assert_eq!((run.status, run.output.as_str()), (Some(130), ""));
        let mut rest = String::new();
        errors.read_to_string(&mut rest).unwrap();
        assert_eq!(rest, "");
        assert!(is_empty(temporary.path()));
        drop(writer);
    }
}

/// A run whose sources do not end, with its output files.
#[test]
fn a_signal_ends_a_run_that_waits_for_its_sources() {
    let folder = TempDir::new().unwrap();
    let temporary = TempDir::new().unwrap();
    let pipe = pipe(&folder, "t.csv");
    let program = folder.path().join("p.sql");
    let sql =
        "CREATE TABLE t (a INT) WITH ('materialized' = 'true', connector = 'file', path = 't.csv');
        CREATE MATERIALIZED VIEW v AS SELECT SUM(a) AS s FROM t;
        START;";
    for (select, (signal, status)) in ["", "SELECT * FROM v;"].iter().zip(SIGNALS) {
        fs::write(&program, format!("{sql}{select}")).unwrap();
        let out = folder.path().join("out");
        let mut command = Command::new(binary());
        command.arg("run").arg(&program).arg("--output").arg(&out);
        command.env("TMPDIR", temporary.path()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = command.spawn().unwrap();
        let mut writer = fs::OpenOptions::new().write(true).open(&pipe).unwrap();
        writer.write_all(b"1\n").unwrap();
        std::thread::sleep(Duration::from_millis(200));
        send(signal, &child);
        let run = ended(child);
        assert_eq!((run.status, run.output.as_str()), (Some(status), ""), "{run:?}");
        assert!(is_empty(temporary.path()) && is_empty(&out));
    }
}

/// The second signal ends the process at once.
#[test]
fn signals_end_the_demo_and_remove_its_files() {
    for count in [1, 2] {
        for (signal, status) in SIGNALS {
            let temporary = TempDir::new().unwrap();
            let mut command = Command::new("env");
            command.arg("--default-signal=HUP").arg(binary()).arg("demo");
            command.env("TMPDIR", temporary.path()).stdout(Stdio::piped()).stderr(Stdio::piped());
            let mut child = command.spawn().unwrap();
            let mut errors = BufReader::new(child.stderr.take().unwrap());
            errors.read_line(&mut String::new()).unwrap();
            std::thread::sleep(Duration::from_millis(100));
            for _ in 0..count {
                send(signal, &child);
            }
            assert_eq!(ended(child).status, Some(status), "{count} {signal}");
            assert!(is_empty(temporary.path()), "{count} {signal}");
        }
    }
}
