//! `alluvium serve --follow` and `alluvium promote`: a process takes the place of one that is killed.
//!
//! `ALLUVIUM_PROMOTIONS` sets the number of rounds.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::binary::binary;
use crate::journal::Journals;
use crate::serve::Served;

/// How many rounds there are by default.
const ROUNDS: i64 = 3;

/// How long a test waits for what has to come.
const LONG: Duration = Duration::from_secs(60);

/// Accounts that transfers go between, and the numbers of these.
const DEFINITIONS: &str = "CREATE TABLE account (id BIGINT PRIMARY KEY, cents BIGINT);
    CREATE TABLE moved (number BIGINT);
    CREATE MATERIALIZED VIEW total AS SELECT SUM(cents) AS cents FROM account;
    INSERT INTO account SELECT id, 100 FROM generate_series(0, 9) AS g(id);";

fn journal(journals: &Journals) -> String {
    format!("http://{}/orders", journals.address)
}

fn standby(folder: &Path, state: &str, journals: &Journals) -> Served {
    let mut command = Command::new(binary());
    let url = journal(journals);
    command.current_dir(folder).env("TMPDIR", folder);
    Served::of(command.args(["serve", "--state", state, "--journal", &url, "--follow", state]))
}

/// A process that writes, and prints `MAX(number)` after each transfer.
struct Writer {
    child: Child,
    answers: std::io::Lines<BufReader<std::process::ChildStdout>>,
}

impl Writer {
    fn start(folder: &Path, state: &str, journals: &Journals) -> Writer {
        let mut command = Command::new(binary());
        let url = journal(journals);
        command.current_dir(folder).args(["shell", "--state", state, "--journal", &url]);
        let mut child = command
            .args(["--format", "csv"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let answers = BufReader::new(child.stdout.take().unwrap()).lines();
        Writer { child, answers }
    }

    fn send(&mut self, sql: &str) {
        self.child.stdin.as_mut().unwrap().write_all(sql.as_bytes()).unwrap();
    }

    /// Begins a transfer, whose answer is not waited for.
    fn transfer(&mut self, number: i64) {
        let (from, to) = (number % 10, (number * 3 + 1) % 10);
        self.send(&format!(
            "BEGIN; UPDATE account SET cents = cents - 1 WHERE id = {from}; UPDATE account SET cents = cents + 1 WHERE id = {to};
             INSERT INTO moved VALUES ({number}); COMMIT; SELECT MAX(number) AS m FROM moved;\n"
        ));
    }

    /// The answer to a transfer.
    fn answer(&mut self) -> i64 {
        let answer = self.answers.nth(1).unwrap().unwrap();
        answer.trim().parse().unwrap()
    }

    fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        // It has ended, or the test has failed.
        let _ = self.child.kill();
    }
}

/// The last line that a statement prints, or what it says.
fn ask(served: &Served, sql: &str) -> Result<String, String> {
    let mut command = Command::new(binary());
    let output = command.args(["--connect", &served.folder, "--format", "csv", "-c", sql]);
    let output = output.output().unwrap();
    match output.status.success() {
        true => {
            let text = String::from_utf8(output.stdout).unwrap().replace('\r', "");
            Ok(text.lines().last().unwrap_or_default().to_owned())
        }
        false => Err(String::from_utf8(output.stderr).unwrap()),
    }
}

/// Whether it was successful, and what it says.
fn promote(folder: &Path, state: &str) -> (bool, String) {
    let output =
        Command::new(binary()).current_dir(folder).args(["promote", state]).output().unwrap();
    (output.status.success(), String::from_utf8(output.stderr).unwrap())
}

#[test]
fn a_standby_takes_the_place_of_a_process_that_is_killed() {
    let rounds = std::env::var("ALLUVIUM_PROMOTIONS").map_or(ROUNDS, |text| text.parse().unwrap());
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let journals = Journals::start(&folder.join("journals"), "127.0.0.1:0");
    let mut states = ["a", "b"];
    let mut next = 1;
    for round in 0..rounds {
        let [state, other] = states;
        let mut writer = Writer::start(folder, state, &journals);
        if round == 0 {
            writer.send(DEFINITIONS);
        }
        writer.transfer(next);
        assert_eq!(writer.answer(), next);
        next += 1;
        let standby = standby(folder, other, &journals);
        let end = next + 10 + round % 7;
        for number in next..end {
            writer.transfer(number);
            assert_eq!(writer.answer(), number);
        }
        next = end;
        // The answer to these is not waited for.
        writer.transfer(next);
        writer.transfer(next + 1);
        std::thread::sleep(Duration::from_micros((round as u64 * 7919) % 9000));
        writer.kill();
        let (done, said) = promote(folder, other);
        assert!(done && said.contains("the standby is promoted, after epoch"), "{said}");
        let numbers = ask(
            &standby,
            "SELECT COUNT(*) || ',' || COUNT(DISTINCT number) || ',' || MAX(number) FROM moved",
        );
        let numbers = numbers.unwrap();
        let numbers: Vec<i64> =
            numbers.trim_matches('"').split(',').map(|number| number.parse().unwrap()).collect();
        assert!(numbers.iter().all(|number| *number == numbers[0]), "{numbers:?}");
        assert!((next - 1..next + 2).contains(&numbers[0]), "{numbers:?} of {next}");
        for total in ["SELECT cents FROM total", "SELECT SUM(cents) FROM account"] {
            assert_eq!(ask(&standby, total).unwrap(), "1000");
        }
        next = numbers[0] + 1;
        ask(&standby, &format!("INSERT INTO moved VALUES ({next})")).unwrap();
        next += 1;
        standby.end("TERM");
        states = [other, state];
    }
}

#[test]
fn a_standby_answers_shows_its_lag_and_says_what_it_does_not_do() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let journals = Journals::start(&folder.join("journals"), "127.0.0.1:0");
    let mut writer = Writer::start(folder, "a", &journals);
    writer.send(DEFINITIONS);
    writer.transfer(1);
    assert_eq!(writer.answer(), 1);
    let standby = standby(folder, "b", &journals);
    assert_eq!(ask(&standby, "SELECT cents FROM total").unwrap(), "1000");
    assert_eq!(ask(&standby, "SELECT COUNT(*) FROM alluvium.standby").unwrap(), "1");
    writer.transfer(2);
    assert_eq!(writer.answer(), 2);
    let begun = Instant::now();
    while ask(&standby, "SELECT MAX(number) FROM moved").unwrap() != "2" {
        assert!(begun.elapsed() < LONG);
    }
    let lag = "SELECT records_behind || ' ' || milliseconds_behind FROM alluvium.standby";
    assert_eq!(ask(&standby, lag).unwrap(), "0 0");
    let said = ask(&standby, "INSERT INTO moved VALUES (9)").unwrap_err();
    assert!(said.contains("INSERT on a standby"), "{said}");
    // A directory without a standby.
    let (done, said) = promote(folder, "nowhere");
    assert!(!done && said.contains("\"nowhere\" is no state directory"), "{said}");
    let (done, said) = promote(folder, "a");
    assert!(!done && said.contains("no standby looks at \"a\""), "{said}");
    assert!(!folder.join("a").join("promote").exists());
    let (done, said) = promote(folder, "b");
    assert!(done, "{said}");
    assert_eq!(ask(&standby, "SELECT COUNT(*) FROM alluvium.standby").unwrap(), "0");
    let (done, said) = promote(folder, "b");
    assert!(!done && said.contains("it writes already"), "{said}");
    // The former one is refused.
    writer.transfer(3);
    let mut said = String::new();
    std::io::Read::read_to_string(writer.child.stderr.as_mut().unwrap(), &mut said).unwrap();
    assert!(said.contains("another process has opened the journal \"orders\""), "{said}");
    standby.end("TERM");
}
