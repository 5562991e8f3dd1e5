//! psql, and what it shows of changes. Where it is not installed these tests do nothing.

use std::process::{Command, Stdio};
use std::time::Duration;

use super::psql::{printed, psql};
use super::served::served;

const TABLE: &str = "CREATE TABLE t (k BIGINT PRIMARY KEY); INSERT INTO t VALUES (1);\n";

#[test]
fn cursors_and_notifications_are_shown() {
    let Some(psql) = psql() else { return };
    let served = served();
    let input = format!(
        "{TABLE}\
BEGIN;
DECLARE c CURSOR FOR SUBSCRIBE t;
FETCH 1 FROM c;
FETCH ALL c WITH (timeout = '10ms');
COMMIT;
LISTEN t;
INSERT INTO t VALUES (2);
\\! sleep 1
SELECT 'end' AS last;
"
    );
    let shown = printed(&psql, &served, &["-At"], &input);
    let lines: Vec<&str> = shown.lines().collect();
    let begin =
        ["CREATE TABLE", "INSERT 0 1", "BEGIN", "DECLARE CURSOR", "1|1|1", "COMMIT", "LISTEN"];
    assert_eq!(lines[..begin.len()], begin, "{shown}");
    let pid = std::process::id();
    let told = format!(
        "Asynchronous notification \"t\" with payload \"2\" received from server process with PID {pid}."
    );
    assert!(lines.contains(&told.as_str()), "{shown}");
    assert!(lines.contains(&"end"), "{shown}");
}

#[test]
fn copied_changes_are_shown_until_it_is_interrupted() {
    let Some(psql) = psql() else { return };
    let served = served();
    printed(&psql, &served, &["-q"], TABLE);
    let child = Command::new(&psql)
        .args(["-X", "-h", "127.0.0.1", "-U", "someone", "-d", "alluvium", "-p"])
        .arg(served.address().port().to_string())
        .args(["-c", "COPY (SUBSCRIBE t) TO STDOUT WITH (FORMAT csv)"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("psql");
    served.wait_for_clients(1);
    std::thread::sleep(Duration::from_millis(1_000));
    let interrupted = Command::new("kill").arg("-INT").arg(child.id().to_string()).status();
    assert!(interrupted.is_ok_and(|status| status.success()));
    let output = child.wait_with_output().expect("its output");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "1,1,1\n");
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(told.contains("ERROR"), "{told}");
    served.wait_for_clients(0);
}
