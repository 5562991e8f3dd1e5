//! The files through the binary that users get, over its standard input and output.
//!
//! The tests of the workspace build the engine with features that only tests need. The binary named by
//! `ALLUVIUM_BINARY` is built without them, so this run shows that what ships behaves as what was tested.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use sqllogictest::{
    Connection, DB, DBOutput, DefaultColumnType, Normalizer, Record, Runner, StatementExpect,
    default_validator, parse_with_name,
};

use super::suite;

/// Runs every file through the binary at `path`. Panics with all records that fail.
pub fn run(path: &Path) {
    let (mut faults, mut queries, mut skipped) = (Vec::new(), 0, 0);
    for (name, text) in suite::texts() {
        let records: Vec<Record<DefaultColumnType>> = parse_with_name(&text, &*name)
            .unwrap_or_else(|error| panic!("not a file of records: {error}"));
        // A process is one client.
        if records.iter().any(|record| connection(record) != Some(&Connection::Default)) {
            skipped += 1;
            continue;
        }
        let binary = path.to_owned();
        let mut runner = Runner::new(move || std::future::ready(Client::start(binary.clone())));
        runner.with_validator(same);
        for record in records {
            let (line, record) = match record {
                // The binary does not print how many rows a statement changed.
                Record::Statement { loc, conditions, connection, sql, expected, retry } => {
                    let expected = match expected {
                        StatementExpect::Count(_) => StatementExpect::Ok,
                        other => other,
                    };
                    let line = loc.line();
                    (line, Record::Statement { loc, conditions, connection, sql, expected, retry })
                }
                Record::Query { ref loc, .. } => {
                    queries += 1;
                    (loc.line(), record)
                }
                _ => continue,
            };
            if let Err(error) = runner.run(record) {
                faults.push(format!("{name}:{line}: {}", error.kind()));
                break;
            }
        }
    }
    let summary = format!("{queries} queries through {}", path.display());
    println!("{summary}");
    assert!(faults.is_empty(), "{summary}\n{}", faults.join("\n"));
    if suite::is_whole() {
        assert!(queries >= 500 && skipped <= 1, "{summary}, {skipped} files skipped");
    }
}

/// The connection of a record; the default one for records that need none.
fn connection(record: &Record<DefaultColumnType>) -> Option<&Connection> {
    match record {
        Record::Statement { connection, .. } | Record::Query { connection, .. } => Some(connection),
        _ => Some(&Connection::Default),
    }
}

/// Whether two results are the same, each value as the files write it.
pub(super) fn same(normalizer: Normalizer, actual: &[Vec<String>], expected: &[String]) -> bool {
    if expected.iter().any(|row| row.contains("<slt:ignore>")) {
        return default_validator(normalizer, actual, expected);
    }
    let words = |text: &str| text.split_ascii_whitespace().collect::<Vec<_>>().join(" ");
    let actual = actual.iter().map(|row| words(&row.join(" ")));
    actual.eq(expected.iter().map(|row| words(row)))
}

/// Why a statement failed.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Failure(String);

/// A process of the binary that reads statements from its standard input.
///
/// The process ends at the first error. The next one then repeats what had succeeded.
struct Client {
    binary: PathBuf,
    process: Process,
    /// The statements that have succeeded.
    done: Vec<String>,
    /// How many results were marked.
    marks: usize,
}

struct Process {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    errors: File,
}

impl Client {
    fn start(binary: PathBuf) -> Result<Self, Failure> {
        let process = Process::start(&binary)?;
        Ok(Self { binary, process, done: Vec::new(), marks: 0 })
    }

    /// The output of the process for some statements; its error messages if it fails.
    fn ask(&mut self, sql: &str) -> Result<Vec<u8>, Failure> {
        self.marks += 1;
        let mark = format!("end_of_result_{}", self.marks);
        let text = format!("{sql}\n;\nSELECT '{mark}' AS {mark};\n");
        // A process that has failed no longer reads.
        let _ = self.process.input.write_all(text.as_bytes());
        let _ = self.process.input.flush();
        let end = format!("{mark}\r\n{mark}\r\n").into_bytes();
        let mut printed = Vec::new();
        loop {
            let read = self.process.output.read_until(b'\n', &mut printed).map_err(failure)?;
            if printed.ends_with(&end) {
                printed.truncate(printed.len() - end.len());
                return Ok(printed);
            }
            if read == 0 {
                return Err(self.process.failed());
            }
        }
    }

    /// Starts a new process that has done the same as the last one.
    fn restart(&mut self) -> Result<(), Failure> {
        self.process = Process::start(&self.binary)?;
        let done = self.done.join("\n;\n");
        self.ask(&done).map(drop)
    }
}

impl Process {
    fn start(binary: &Path) -> Result<Self, Failure> {
        let errors = tempfile::tempfile().map_err(failure)?;
        let mut child = Command::new(binary)
            .args(["--format", "csv", "--null", "NULL", "--workers", "2"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(errors.try_clone().map_err(failure)?)
            .spawn()
            .map_err(failure)?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(Failure("the process has no pipes".to_owned()));
        };
        Ok(Self { child, input, output: BufReader::new(output), errors })
    }

    /// Why the process has ended.
    fn failed(&mut self) -> Failure {
        let status = self.child.wait();
        let mut text = String::new();
        let read = self
            .errors
            .seek(SeekFrom::Start(0))
            .and_then(|_| self.errors.read_to_string(&mut text));
        if read.is_err() || status.as_ref().map_or(true, |status| status.code() != Some(1)) {
            let _ = write!(text, "the process ended with {status:?}");
        }
        Failure(text)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may still wait for statements.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl DB for Client {
    type Error = Failure;
    type ColumnType = DefaultColumnType;

    fn run(&mut self, sql: &str) -> Result<DBOutput<DefaultColumnType>, Failure> {
        match self.ask(sql) {
            Ok(printed) if printed.is_empty() => {
                self.done.push(sql.to_owned());
                Ok(DBOutput::StatementComplete(0))
            }
            Ok(printed) if is_explain(sql) => {
                let text = String::from_utf8_lossy(&printed);
                let rows = text.lines().map(|line| vec![line.to_owned()]).collect();
                Ok(DBOutput::Rows { types: vec![DefaultColumnType::Text], rows })
            }
            Ok(printed) => {
                if is_change(sql) {
                    self.done.push(sql.to_owned());
                }
                table(&printed)
            }
            Err(error) => {
                self.restart()?;
                Err(error)
            }
        }
    }

    fn engine_name(&self) -> &str {
        "alluvium"
    }
}

fn is_explain(sql: &str) -> bool {
    sql.trim_start().get(..7).is_some_and(|word| word.eq_ignore_ascii_case("EXPLAIN"))
}

/// Whether a statement that returns rows changes some.
fn is_change(sql: &str) -> bool {
    let word = sql.split_ascii_whitespace().next().unwrap_or_default();
    ["INSERT", "UPDATE", "DELETE"].iter().any(|change| word.eq_ignore_ascii_case(change))
}

/// Rows as the files write them.
fn table(printed: &[u8]) -> Result<DBOutput<DefaultColumnType>, Failure> {
    let mut reader = csv::ReaderBuilder::new().flexible(true).from_reader(printed);
    let columns = reader.headers().map_err(failure)?.len();
    let mut rows = Vec::new();
    for record in reader.records() {
        rows.push(record.map_err(failure)?.iter().map(value).collect());
    }
    Ok(DBOutput::Rows { types: vec![DefaultColumnType::Any; columns], rows })
}

/// A value of the binary's CSV as the files write it: an empty text by name, bytes without a backslash, and lists,
/// structs and maps without quotes.
fn value(text: &str) -> String {
    let digits = text.strip_prefix("\\x");
    match text {
        "" => "(empty)".to_owned(),
        _ if digits.is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit())) => {
            text[1..].to_owned()
        }
        _ if text.starts_with(['[', '{'])
            && serde_json::from_str::<serde_json::Value>(text).is_ok() =>
        {
            nested(text)
        }
        _ => text.to_owned(),
    }
}

/// JSON as the files write lists, structs and maps.
pub(super) fn nested(json: &str) -> String {
    let mut text = String::new();
    let mut rest = json;
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '"' => {
                let mut values = serde_json::Deserializer::from_str(rest).into_iter::<String>();
                text.extend(values.next().and_then(Result::ok));
                values.byte_offset()
            }
            ',' | ':' => {
                text.extend([first, ' ']);
                1
            }
            'n' => {
                text.push_str("NULL");
                "null".len()
            }
            other => {
                text.push(other);
                other.len_utf8()
            }
        };
        rest = &rest[length..];
    }
    text
}

fn failure(error: impl std::fmt::Display) -> Failure {
    Failure(error.to_string())
}
