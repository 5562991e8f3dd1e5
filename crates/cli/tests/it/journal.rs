//! `alluvium journal serve`, and engines with `--journal`.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::time::Duration;

use crate::binary::binary;
use crate::signals::send;

/// A server of journals.
pub(crate) struct Journals {
    child: Child,
    lines: BufReader<ChildStderr>,
    pub(crate) address: String,
}

impl Journals {
    pub(crate) fn start(directory: &Path, address: &str) -> Journals {
        let mut child = Command::new(binary())
            .args(["journal", "serve", "--listen", address, "--dir"])
            .arg(directory)
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        lines.read_line(&mut line).unwrap();
        let url = line.trim().strip_prefix("--journal http://");
        let address = url.and_then(|url| url.strip_suffix("/NAME"));
        let address = address.unwrap_or_else(|| panic!("{line}")).to_owned();
        Journals { child, lines, address }
    }

    fn kill(mut self) -> String {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        self.address.clone()
    }

    /// Ends it by a signal; its status has to be 0, and nothing went wrong.
    fn end(mut self, signal: &str) {
        send(signal, &self.child);
        let status = self.child.wait().unwrap();
        let mut rest = String::new();
        self.lines.read_to_string(&mut rest).unwrap();
        assert_eq!((status.code(), &*rest), (Some(0), ""));
    }
}

/// Also if a test fails none is left.
impl Drop for Journals {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
    }
}

fn shell(folder: &Path, address: &str) -> Command {
    let mut command = Command::new(binary());
    let journal = format!("http://{address}/orders");
    command.current_dir(folder).args(["shell", "--state", "state", "--journal", &journal]);
    command.args(["--workers", "2", "--format", "csv"]);
    command
}

/// The rows that statements print.
fn rows(folder: &Path, address: &str, sql: &str) -> String {
    let output = shell(folder, address).args(["-c", sql]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().replace('\r', "")
}

#[test]
fn engines_and_servers_that_are_killed_lose_nothing_and_double_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let journals = folder.path().join("journals");
    let mut server = Journals::start(&journals, "127.0.0.1:0");
    let address = server.address.clone();
    rows(
        folder.path(),
        &address,
        "CREATE TABLE t (n BIGINT);
         CREATE MATERIALIZED VIEW v AS SELECT n % 3 AS k, COUNT(*) AS n, SUM(n) AS s FROM t GROUP BY n % 3;",
    );
    let mut next = 1;
    let errors = folder.path().join("errors");
    for round in 0..4_u64 {
        let mut child = shell(folder.path(), &address)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(fs::File::create(&errors).unwrap())
            .spawn()
            .unwrap();
        let mut input = child.stdin.take().unwrap();
        let mut answers = BufReader::new(child.stdout.take().unwrap()).lines();
        for number in next..next + 30 {
            let statements =
                format!("INSERT INTO t VALUES ({number}); SELECT MAX(n) AS m FROM t;\n");
            input.write_all(statements.as_bytes()).unwrap();
            if number - next == 10 + round as i64 {
                // An engine that is open waits for another server at the same address.
                server = Journals::start(&journals, &server.kill());
            }
            let answer = answers.nth(1).unwrap_or_else(|| {
                panic!("{number} of round {round}: {}", fs::read_to_string(&errors).unwrap())
            });
            let answer = answer.unwrap();
            assert_eq!(answer.trim(), number.to_string());
        }
        // One more is on its way.
        let last = format!("INSERT INTO t VALUES ({});\n", next + 30);
        input.write_all(last.as_bytes()).unwrap();
        std::thread::sleep(Duration::from_millis(2 * round));
        child.kill().unwrap();
        child.wait().unwrap();
        let found =
            rows(folder.path(), &address, "SELECT COUNT(*), COUNT(DISTINCT n), MAX(n) FROM t");
        let numbers: Vec<i64> =
            found.lines().last().unwrap().split(',').map(|n| n.parse().unwrap()).collect();
        assert!(numbers[0] == numbers[1] && numbers[0] == numbers[2], "{found}");
        assert!((next + 29..=next + 30).contains(&numbers[0]), "{found}");
        next = numbers[0] + 1;
        let view = rows(folder.path(), &address, "SELECT * FROM v ORDER BY k");
        let query =
            "SELECT n % 3 AS k, COUNT(*) AS n, SUM(n) AS s FROM t GROUP BY n % 3 ORDER BY k";
        assert_eq!(view, rows(folder.path(), &address, query));
    }
    server.end("TERM");
    assert!(fs::read_to_string(journals.join("orders").join("term")).unwrap().contains("\nterm "));
}

#[test]
fn what_cannot_be_served_or_named_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let said = |arguments: &[&str], status: i32| {
        let output =
            Command::new(binary()).current_dir(folder.path()).args(arguments).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(status), "{said}");
        said
    };
    let exposed = said(&["journal", "serve", "--listen", "0.0.0.0:0", "--dir", "journals"], 1);
    assert!(exposed.contains("0.0.0.0:0 can be reached from other machines"), "{exposed}");
    let journal = "http://10.0.0.1:7301/orders";
    let plain = said(&["--state", "state", "--journal", journal, "-c", "SELECT 1"], 1);
    assert!(
        plain.contains("journal: http://10.0.0.1:7301/orders is on another machine"),
        "{plain}"
    );
    let alone = said(&["--journal", journal, "-c", "SELECT 1"], 2);
    assert!(alone.contains("--state <DIR>"), "{alone}");
    let journal = "https://10.0.0.1:7301/orders";
    let anonymous = said(&["--state", "state", "--journal", journal, "-c", "SELECT 1"], 1);
    assert!(anonymous.contains("needs a certificate"), "{anonymous}");
    let key = ["--journal-key", "key.pem"];
    let half = ["--state", "state", "--journal", journal, key[0], key[1], "-c", "SELECT 1"];
    assert!(said(&half, 2).contains("--journal-certificate <FILE>"));
    let serve = [
        "serve",
        "--check",
        "--state",
        "state",
        "--journal",
        "http://h:1/a",
        "--pg",
        "127.0.0.1:0",
    ];
    let checked = said(&serve, 1);
    assert!(checked.contains("is on another machine"), "{checked}");
    assert!(!folder.path().join("state").exists());
    let server = Journals::start(&folder.path().join("journals"), "127.0.0.1:0");
    server.end("INT");
}
