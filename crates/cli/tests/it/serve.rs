//! `alluvium serve`: from a program to clients, to a signal, and again.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

use crate::binary::binary;
use crate::signals::send;

const PROGRAM: &str = "CREATE TABLE bid (auction BIGINT, price BIGINT);
    CREATE MATERIALIZED VIEW best AS SELECT auction, MAX(price) AS price FROM bid GROUP BY auction;
    INSERT INTO bid VALUES (1, 10), (1, 30), (2, 20);";

/// A server, and where its socket and its port are.
pub(crate) struct Served {
    child: Child,
    lines: BufReader<std::process::ChildStderr>,
    pub(crate) folder: String,
    pub(crate) port: u16,
}

impl Served {
    pub(crate) fn start(program: &Path, state: &Path, temporary: &Path) -> Self {
        let mut command = Command::new(binary());
        command.arg("serve").arg(program).arg("--state").arg(state).env("TMPDIR", temporary);
        Self::of(&mut command)
    }

    /// Starts `alluvium serve`, which has these options.
    pub(crate) fn of(command: &mut Command) -> Self {
        let mut child = command
            .args(["--pg", "127.0.0.1:0", "--memory", "64M"])
            .env("ALLUVIUM_SLOW_STATEMENT", "0")
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap());
        let mut words = Vec::new();
        while words.len() < 2 {
            let mut line = String::new();
            assert_ne!(lines.read_line(&mut line).unwrap(), 0);
            if line.starts_with("psql") {
                words.push(line.split_whitespace().map(str::to_owned).collect::<Vec<_>>());
            }
        }
        let (folder, port) = (words[0][2].clone(), words[1][4].parse().unwrap());
        Self { child, lines, folder, port }
    }

    /// Ends it by a signal; its status has to be 0, and nothing went wrong.
    pub(crate) fn end(mut self, signal: &str) {
        send(signal, &self.child);
        let status = self.child.wait().unwrap();
        let mut rest = String::new();
        self.lines.read_to_string(&mut rest).unwrap();
        assert_eq!(status.code(), Some(0), "{rest}");
        assert!(!rest.contains("WARN") && !rest.contains("rror"), "{rest}");
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // It has ended, or the test has failed.
        let _ = self.child.kill();
    }
}

/// The answer to a query, as the bytes of its messages.
fn asked(mut stream: impl Read + Write, sql: &str) -> String {
    let mut bytes = b"\0\0\0\x11\0\x03\0\0user\0me\0\0".to_vec();
    bytes.push(b'Q');
    bytes.extend((sql.len() as u32 + 5).to_be_bytes());
    bytes.extend(sql.bytes().chain([0]));
    bytes.extend(b"X\0\0\0\x04");
    stream.write_all(&bytes).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    String::from_utf8_lossy(&answer).into_owned()
}

#[test]
fn a_program_is_served_and_resumed() {
    let folder = TempDir::new().unwrap();
    let (program, state) = (folder.path().join("program.sql"), folder.path().join("state"));
    let temporary = TempDir::new().unwrap();
    fs::write(&program, PROGRAM).unwrap();
    for (round, signal) in ["TERM", "INT"].iter().enumerate() {
        let served = Served::start(&program, &state, temporary.path());
        let stream = TcpStream::connect(("127.0.0.1", served.port)).unwrap();
        let answer = asked(stream, "SELECT 'n is ' || COUNT(*) FROM bid");
        assert!(answer.contains(&format!("n is {}", 3 + round)), "{answer}");
        let socket = format!("{}/.s.PGSQL.5432", served.folder);
        let answer = asked(UnixStream::connect(&socket).unwrap(), "INSERT INTO bid VALUES (3, 1)");
        assert!(answer.contains("INSERT 0 1"), "{answer}");
        served.end(signal);
        assert_eq!(fs::read_dir(temporary.path()).unwrap().count(), 0);
    }
}

#[test]
fn addresses_that_others_reach_are_refused() {
    let output = Command::new(binary()).args(["serve", "--pg", "0.0.0.0:0"]).output().unwrap();
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1));
    assert!(message.contains("0.0.0.0:0 can be reached from other machines"), "{message}");
    let output = Command::new(binary())
        .args(["serve", "--check", "--insecure", "--pg", "0.0.0.0:0"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn clients_may_not_use_files() {
    let folder = TempDir::new().unwrap();
    let (program, state) = (folder.path().join("program.sql"), folder.path().join("state"));
    fs::write(&program, PROGRAM).unwrap();
    let served = Served::start(&program, &state, folder.path());
    for sql in [
        "SELECT * FROM '/etc/passwd'",
        "COPY bid TO '/tmp/bids.csv'",
        "COPY bid FROM '/etc/passwd'",
        "CREATE TABLE t (a VARCHAR) WITH ('connectors' = '[{\"transport\": {\"name\": \"file_input\", \"config\": {\"path\": \"/etc/passwd\"}}, \"format\": {\"name\": \"csv\"}}]')",
    ] {
        let answer = asked(TcpStream::connect(("127.0.0.1", served.port)).unwrap(), sql);
        assert!(answer.contains("42501"), "{sql}: {answer}");
    }
    served.end("TERM");
}
