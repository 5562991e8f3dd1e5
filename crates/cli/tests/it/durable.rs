//! A state directory, and processes that are killed while they write to it.
//!
//! `ALLUVIUM_KILLS` sets the number of rounds.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use tempfile::TempDir;

use crate::binary::binary;

/// How many rounds there are by default.
const ROUNDS: u64 = 5;

/// Money moves between two tables in transactions, and into a third without one.
pub const DEFINITIONS: &str = "CREATE TABLE a (id INT PRIMARY KEY, money BIGINT);
    CREATE TABLE b (id INT PRIMARY KEY, money BIGINT);
    CREATE TABLE moved (number BIGINT);
    CREATE MATERIALIZED VIEW total AS
        SELECT SUM(money) AS s FROM (SELECT money FROM a UNION ALL SELECT money FROM b);
    CREATE MATERIALIZED VIEW moves AS SELECT COUNT(*) AS c, MAX(number) AS m FROM moved;
    BEGIN; INSERT INTO a VALUES (1, 1000000); INSERT INTO b VALUES (1, 0); COMMIT;
    SELECT 'ready' AS r;";

/// Answers of the program, one line each.
pub struct Shell {
    child: Child,
    to: ChildStdin,
    lines: Receiver<String>,
}

impl Shell {
    pub fn start(directory: &Path, workers: u64) -> Self {
        let mut child = Command::new(binary())
            .args(["--format", "csv", "--workers", &workers.to_string(), "--state"])
            .arg(directory)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (sender, lines) = channel();
        let output = BufReader::new(child.stdout.take().unwrap());
        thread::spawn(move || {
            output.lines().map_while(Result::ok).try_for_each(|l| sender.send(l))
        });
        let to = child.stdin.take().unwrap();
        Self { child, to, lines }
    }

    fn send(&mut self, sql: &str) {
        self.to.write_all(sql.as_bytes()).unwrap();
        self.to.flush().unwrap();
    }

    /// The number of its process.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// The one value that a query answers.
    pub fn value(&mut self, sql: &str) -> String {
        self.send(&format!("{sql};\n"));
        let next = || self.lines.recv_timeout(Duration::from_secs(600)).unwrap();
        let _header = next();
        next()
    }
}

#[test]
fn what_was_acknowledged_survives_kill_9_and_nothing_is_halved() {
    let rounds = std::env::var("ALLUVIUM_KILLS").map_or(ROUNDS, |rounds| rounds.parse().unwrap());
    let folder = TempDir::new().unwrap();
    let directory = folder.path().join("state");
    let mut shell = Shell::start(&directory, 1);
    assert_eq!(shell.value(DEFINITIONS), "ready");
    let mut number = 0_u64;
    // On a busy machine a program takes longer to write anything.
    let mut slower = 1;
    for round in 1..=rounds {
        // Each transaction is acknowledged by the answer after it.
        let mut acknowledged = number;
        let (to, lines) = (&mut shell.to, &shell.lines);
        thread::scope(|scope| {
            let writer = scope.spawn(move || {
                let mut sent = number;
                loop {
                    sent += 1;
                    let checkpoint = if sent.is_multiple_of(5) { "CHECKPOINT;" } else { "" };
                    let sql = format!(
                        "BEGIN; UPDATE a SET money = money - 1; INSERT INTO moved VALUES ({sent});
                         UPDATE b SET money = money + 1; COMMIT; {checkpoint} SELECT {sent} AS n;\n"
                    );
                    if to.write_all(sql.as_bytes()).is_err() {
                        return sent;
                    }
                }
            });
            let id = shell.child.id().to_string();
            let moment = Duration::from_millis(20 + round * 37 % 150) * slower;
            scope.spawn(move || {
                thread::sleep(moment);
                Command::new("kill").args(["-KILL", &id]).status().unwrap();
            });
            let answers = lines.iter().filter_map(|line| line.trim().parse().ok());
            acknowledged = answers.last().unwrap_or(acknowledged);
            number = writer.join().unwrap();
        });
        shell.child.wait().unwrap();
        shell = Shell::start(&directory, 1 + round / 3 % 2);
        let moved: u64 = shell.value("SELECT c FROM moves").trim().parse().unwrap();
        assert!(moved >= acknowledged, "{acknowledged} acknowledged and {moved} there");
        assert!(moved <= number, "{moved} of {number}");
        assert_eq!(shell.value("SELECT COALESCE(m, 0) FROM moves").trim(), moved.to_string());
        assert_eq!(shell.value("SELECT s FROM total").trim(), "1000000");
        assert_eq!(shell.value("SELECT money FROM b").trim(), moved.to_string());
        number = moved;
        slower *= if number == 0 { 2 } else { 1 };
    }
    assert!(number > 0, "something was written between the kills");
    drop(shell.to);
    assert!(shell.child.wait().unwrap().success());
}

#[test]
fn a_directory_in_use_and_a_damaged_one_are_refused_with_the_place() {
    let folder = TempDir::new().unwrap();
    let directory = folder.path().join("state");
    let mut shell = Shell::start(&directory, 1);
    assert_eq!(
        shell.value("CREATE TABLE t (n INT); INSERT INTO t VALUES (7); SELECT n FROM t"),
        "7"
    );
    let open = || {
        let mut command = Command::new(binary());
        command.args(["--state", directory.to_str().unwrap(), "-c", "SELECT n FROM t"]);
        command.output().unwrap()
    };
    let refused = open();
    let message = String::from_utf8(refused.stderr).unwrap();
    let expected = format!("is used by process {}", shell.child.id());
    assert!(!refused.status.success() && message.contains(&expected), "{message}");
    drop(shell.to);
    assert!(shell.child.wait().unwrap().success());
    assert!(open().status.success());
    let segments = std::fs::read_dir(directory.join("journal")).unwrap();
    let mut segments: Vec<_> = segments.map(|entry| entry.unwrap().path()).collect();
    segments.sort();
    let mut bytes = std::fs::read(&segments[0]).unwrap();
    bytes[70] ^= 1;
    std::fs::write(&segments[0], bytes).unwrap();
    let refused = open();
    let message = String::from_utf8(refused.stderr).unwrap();
    assert!(!refused.status.success(), "{message}");
    assert!(message.contains(segments[0].file_name().unwrap().to_str().unwrap()), "{message}");
}
