//! The configuration of a server, its log, and its signals.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use tempfile::TempDir;

use crate::binary::binary;
use crate::signals::send;

/// Checks a configuration: the status, and what is said.
fn checked(folder: &Path, text: &str, options: &[&str]) -> (Option<i32>, String) {
    let file = folder.join("serve.toml");
    fs::write(&file, text).unwrap();
    let output = Command::new(binary())
        .args(["serve", "--check", "--config"])
        .arg(&file)
        .args(options)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    (output.status.code(), said.replace(&format!("{}/", folder.display()), ""))
}

#[test]
fn a_configuration_that_is_right_is_said_to_be() {
    let folder = TempDir::new().unwrap();
    fs::create_dir(folder.path().join("data")).unwrap();
    fs::write(folder.path().join("program.sql"), "").unwrap();
    let text = "program = \"program.sql\"\npg = [\"127.0.0.1:0\", \"[::1]:0\"]\nstate = \"state\"\n\
        durability = \"interval(10)\"\nfiles = \"data\"\nconnections = 10\ngrace = \"5s\"\nidle = 60\n\
        insecure = false\nmemory = \"64M\"\nlog = \"warn\"\nset = [\"a=1\", \"b=2\"]\n";
    let right = (Some(0), "the configuration is right\n".to_owned());
    assert_eq!(checked(folder.path(), text, &[]), right);
    // Nothing was opened.
    assert!(!folder.path().join("state").exists());
    assert_eq!(checked(folder.path(), "", &[]), right);
}

#[test]
fn what_is_wrong_is_said_with_its_line() {
    let folder = TempDir::new().unwrap();
    fs::create_dir_all(folder.path().join("state/files")).unwrap();
    fs::write(folder.path().join("file"), "").unwrap();
    for (text, status, parts) in [
        (
            "\nconections = 1",
            2,
            &["serve.toml:2: there is no key \"conections\"", "connections"][..],
        ),
        ("check = true", 2, &["serve.toml:1: there is no key \"check\""]),
        ("pg = \"here\"", 2, &["serve.toml:1: pg: invalid socket address syntax"]),
        ("pg = [1.5]", 2, &["serve.toml:1: pg: expected a text or a whole number"]),
        ("grace = \"5 days\"", 2, &["serve.toml:1: grace: expected a time such as 500ms"]),
        ("log = \"loud\"", 2, &["log: expected one of off, error, warn, info, debug"]),
        ("insecure = \"yes\"", 2, &["insecure: expected true or false"]),
        ("connections = [1, 2]", 2, &["connections: expected a text or a whole number"]),
        ("connections = 0", 2, &["serve.toml:1: connections: "]),
        ("memory = \"much\"", 2, &["memory: expected a size such as 512M"]),
        ("[pg]\naddress = 1", 2, &["serve.toml:1: pg: expected a text or a whole number"]),
        ("a = 1\npg = ", 2, &["serve.toml:2: "]),
        ("pg = \"a\"\npg = \"b\"", 2, &["serve.toml:2: "]),
        ("tls_key = \"key\"", 2, &["--tls-certificate"]),
        ("durability = \"never\"", 2, &["--state"]),
        ("pg = \"0.0.0.0:0\"", 1, &["can be reached from other machines", "tls_certificate"]),
        ("tls_key = \"key\"\ntls_certificate = \"none\"", 1, &["cannot read none"]),
        ("program = \"none.sql\"", 1, &["program: cannot read none.sql"]),
        ("socket = \"none\"", 1, &["socket: none is no directory"]),
        ("files = \"none\"", 1, &["files: none: "]),
        ("files = \"file\"", 1, &["files: file is no directory"]),
        (
            "files = \"state/files\"\nstate = \"state\"",
            1,
            &["clients could use the server's own files", "state"],
        ),
        ("files = \".\"", 1, &["clients could use the server's own files", "config"]),
    ] {
        let (found, said) = checked(folder.path(), text, &[]);
        assert_eq!(found, Some(status), "{text}: {said}");
        for part in parts {
            assert!(said.contains(part), "{text}: {said}");
        }
    }
    let output = Command::new(binary())
        .args(["serve", "--check", "--config", "/nowhere/x"])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("cannot read the configuration /nowhere/x"), "{said}");
}

/// A server of this configuration, with what it writes to standard error.
struct Configured {
    child: Child,
    lines: BufReader<ChildStderr>,
    said: String,
}

impl Configured {
    fn start(folder: &Path, text: &str, change: impl FnOnce(&mut Command)) -> Self {
        let file = folder.join("serve.toml");
        fs::create_dir_all(folder.join("socket")).unwrap();
        fs::write(&file, format!("socket = \"socket\"\nmemory = \"64M\"\n{text}")).unwrap();
        let mut command = Command::new(binary());
        command.args(["serve", "--config"]).arg(&file);
        change(&mut command);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stderr.take().unwrap());
        let mut started = Self { child, lines, said: String::new() };
        started.wait_for("psql");
        started
    }

    /// Reads until a line has this text.
    fn wait_for(&mut self, text: &str) {
        loop {
            let from = self.said.len();
            assert_ne!(self.lines.read_line(&mut self.said).unwrap(), 0, "{}", self.said);
            if self.said[from..].contains(text) {
                return;
            }
        }
    }

    /// Ends it, and returns all that it has said.
    fn end(mut self) -> String {
        send("TERM", &self.child);
        self.lines.read_to_string(&mut self.said).unwrap();
        assert_eq!(self.child.wait().unwrap().code(), Some(0), "{}", self.said);
        self.said
    }
}

/// A connection of a user that has logged in over the socket.
fn connected(folder: &Path, user: &str) -> UnixStream {
    let mut stream = UnixStream::connect(folder.join("socket/.s.PGSQL.5432")).unwrap();
    let body = format!("\0\x03\0\0user\0{user}\0\0");
    stream.write_all(&(body.len() as u32 + 4).to_be_bytes()).unwrap();
    stream.write_all(body.as_bytes()).unwrap();
    answer(&mut stream);
    stream
}

/// What the server answers until it is ready; the end of the connection ends it too.
fn answer(stream: &mut UnixStream) -> String {
    let mut all = Vec::new();
    loop {
        let mut head = [0; 5];
        if stream.read_exact(&mut head).is_err() {
            break;
        }
        let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]) as usize - 4;
        let mut body = vec![0; length];
        if stream.read_exact(&mut body).is_err() || head[0] == b'Z' {
            break;
        }
        all.push(head[0]);
        all.extend(body);
    }
    String::from_utf8_lossy(&all).into_owned()
}

fn asked(stream: &mut UnixStream, sql: &str) -> String {
    let mut bytes = vec![b'Q'];
    bytes.extend((sql.len() as u32 + 5).to_be_bytes());
    bytes.extend(sql.bytes().chain([0]));
    if stream.write_all(&bytes).is_err() {
        return String::new();
    }
    answer(stream)
}

/// How many addresses of TCP a server prints.
fn addresses(said: &str) -> usize {
    said.lines().filter(|line| line.starts_with("psql") && line.contains(" -p ")).count()
}

#[test]
fn an_option_is_stronger_than_the_environment_and_that_than_the_file() {
    let folder = TempDir::new().unwrap();
    let text = "pg = \"127.0.0.1:0\"\nlog = \"off\"\n";
    let of_file = Configured::start(folder.path(), text, |_| ()).end();
    // How to connect by psql and by the shell, and the address; no log.
    assert_eq!((addresses(&of_file), of_file.lines().count()), (1, 3), "{of_file}");
    let variable = "127.0.0.1:0,127.0.0.1:0";
    let with_variable = |command: &mut Command| {
        command.env("ALLUVIUM_PG", variable);
    };
    assert_eq!(addresses(&Configured::start(folder.path(), text, with_variable).end()), 2);
    let with_both = |command: &mut Command| {
        command.env("ALLUVIUM_PG", variable);
        command.args(["--pg", variable, "--pg", "127.0.0.1:0"]);
    };
    assert_eq!(addresses(&Configured::start(folder.path(), text, with_both).end()), 3);
}

#[test]
fn a_hangup_reads_the_level_of_the_log_again() {
    let folder = TempDir::new().unwrap();
    let mut server = Configured::start(folder.path(), "log = \"warn\"", |_| ());
    drop(connected(folder.path(), "ada"));
    let file = folder.path().join("serve.toml");
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, text.replace("warn", "loud")).unwrap();
    send("HUP", &server.child);
    server.wait_for("the log stays as it is");
    fs::write(&file, text.replace("warn", "info")).unwrap();
    send("HUP", &server.child);
    // Connections from before it is read are not logged.
    let is_logged = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !is_logged.load(Ordering::Relaxed) {
                drop(connected(folder.path(), "bob"));
                thread::sleep(Duration::from_millis(50));
            }
        });
        server.wait_for("connection opened");
        is_logged.store(true, Ordering::Relaxed);
    });
    assert!(server.end().contains("connection closed"));
}

#[test]
fn the_log_has_no_secret() {
    let folder = TempDir::new().unwrap();
    let text = "pg = \"127.0.0.1:0\"\nlog = \"debug\"\nslow_statement = \"1ms\"\n";
    let mut server = Configured::start(folder.path(), text, |_| ());
    server.wait_for(" -p ");
    let mut stream = connected(folder.path(), "ada");
    for sql in [
        "CREATE ROLE ada SUPERUSER LOGIN PASSWORD 'secret-1'",
        "ALTER ROLE ada PASSWORD 'secret-2'",
        "CREATE ROLE x LOGIN PASSWORD 'secret-3' NONSENSE",
        "SELECT 'secret-4' FROM nowhere",
        "CREATE TABLE t (a VARCHAR)",
        "INSERT INTO t SELECT 'secret-5' || a FROM UNNEST(range(0, 200000)) AS r(a)",
    ] {
        asked(&mut stream, sql);
    }
    drop(stream);
    let address = server.said.lines().find(|line| line.contains(" -p ")).unwrap();
    let port = address.split_whitespace().nth(4).unwrap().to_owned();
    for (user, password) in [("ada", "secret-2"), ("ada", "secret-6"), ("nobody", "secret-7")] {
        // Where psql is not installed this tests nothing.
        let _ = Command::new("psql")
            .args(["-X", "-h", "127.0.0.1", "-p", &port, "-U", user, "-d", "alluvium", "-c", ""])
            .env("PGPASSWORD", password)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
    }
    let said = server.end();
    for secret in ["secret-", "SCRAM-SHA-256$"] {
        assert!(!said.contains(secret), "{said}");
    }
    for expected in
        ["listening", "connection opened", "connection closed", "slow statement", "stopping"]
    {
        assert!(said.contains(expected), "{expected}: {said}");
    }
}

#[test]
fn what_was_answered_is_there_after_an_end_under_load() {
    let folder = TempDir::new().unwrap();
    let text = "state = \"state\"\nlog = \"error\"\ngrace = \"5s\"\n";
    let server = Configured::start(folder.path(), text, |_| ());
    asked(&mut connected(folder.path(), "ada"), "CREATE TABLE t (a BIGINT)");
    let (begun, committed, ends) = (AtomicU64::new(0), AtomicU64::new(0), AtomicBool::new(false));
    let said = thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let mut stream = connected(folder.path(), "ada");
                while !ends.load(Ordering::Relaxed) {
                    begun.fetch_add(1, Ordering::Relaxed);
                    if !asked(&mut stream, "INSERT INTO t VALUES (1)").contains("INSERT 0 1") {
                        return;
                    }
                    committed.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        while committed.load(Ordering::Relaxed) < 40 {
            thread::sleep(Duration::from_millis(5));
        }
        let said = server.end();
        ends.store(true, Ordering::Relaxed);
        said
    });
    assert!(!said.contains("ERROR"), "{said}");
    let server = Configured::start(folder.path(), text, |_| ());
    let answer = asked(&mut connected(folder.path(), "ada"), "SELECT 'n is ' || COUNT(*) FROM t");
    let count: u64 = answer
        .rsplit("n is ")
        .next()
        .and_then(|rest| rest.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok())
        .expect(&answer);
    let (begun, committed) = (begun.into_inner(), committed.into_inner());
    assert!((committed..=begun).contains(&count), "{committed} ≤ {count} ≤ {begun}");
    server.end();
}
