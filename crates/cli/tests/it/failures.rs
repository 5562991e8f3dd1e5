//! Failures of the surroundings: each is one error, whatever fails.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

use crate::binary::binary;
use crate::shell::Run;

/// A table and a view that do not fit into a budget of one byte.
const LARGE: &str = "CREATE TABLE t (a BIGINT, b VARCHAR);
    CREATE MATERIALIZED VIEW v AS SELECT b, a, COUNT(*) AS n FROM t GROUP BY b, a;
    INSERT INTO t SELECT n, 'the row of number ' || n FROM (SELECT UNNEST(range(0, 20000)) AS n);";

/// The binary, started by a shell that first runs `limits`, with its temporary files in `folder`.
fn limited(limits: &str, folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new("sh");
    command.arg("-c").arg(format!("{limits} exec \"$0\" --memory 1 --format csv \"$@\""));
    command.arg(binary()).args(arguments).env("TMPDIR", folder);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Asserts that a run ended with one error that contains `text`, and nothing else was printed.
fn assert_one_error(run: &Run, text: &str) {
    assert_eq!(run.status, Some(1), "{run:?}");
    assert_eq!(run.output, "", "{run:?}");
    assert!(run.errors.starts_with("error: ") && run.errors.contains(text), "{run:?}");
    assert_eq!(run.errors.matches("error").count() - run.errors.matches("os error").count(), 1);
    assert!(!run.errors.contains("panicked"), "{run:?}");
}

/// A process that has read its statements up to `SELECT 'ready'`, and waits for more.
fn ready(folder: &Path) -> Child {
    let mut child = limited("", folder, &[]).stdin(Stdio::piped()).spawn().unwrap();
    let statements = format!("{LARGE} SELECT COUNT(*) AS ready FROM v;\n");
    child.stdin.as_mut().unwrap().write_all(statements.as_bytes()).unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    output.read_line(&mut line).unwrap();
    output.read_line(&mut line).unwrap();
    assert_eq!(line, "ready\r\n20000\r\n");
    child.stdout = Some(output.into_inner());
    child
}

/// The outcome of more statements.
fn ask(mut child: Child, statements: &str) -> Run {
    // A process that has failed no longer reads.
    let _ = child.stdin.take().unwrap().write_all(statements.as_bytes());
    child.wait_with_output().unwrap().into()
}

fn scratch_files(folder: &Path) -> Vec<PathBuf> {
    let directory = fs::read_dir(folder).unwrap().next().unwrap().unwrap().path();
    let files = fs::read_dir(directory).unwrap().map(|file| file.unwrap().path());
    files.filter(|file| !file.ends_with(".alluvium-scratch.lock")).collect()
}

#[test]
fn a_damaged_file_of_state_is_one_error_that_names_it() {
    let folder = TempDir::new().unwrap();
    let child = ready(folder.path());
    let files = scratch_files(folder.path());
    assert!(!files.is_empty());
    for path in &files {
        let file = File::options().read(true).write(true).open(path).unwrap();
        let mut byte = [0; 1];
        for offset in (0..file.metadata().unwrap().len()).step_by(100) {
            file.read_exact_at(&mut byte, offset).unwrap();
            file.write_all_at(&[!byte[0]], offset).unwrap();
        }
    }
    let run = ask(child, "SELECT SUM(a) FROM t WHERE b > 'a'; SELECT SUM(a) FROM v WHERE b > 'a';");
    assert_one_error(&run, ".alluvium");
}

#[test]
fn a_folder_of_state_that_was_removed_is_one_error() {
    let folder = TempDir::new().unwrap();
    let child = ready(folder.path());
    let directory = fs::read_dir(folder.path()).unwrap().next().unwrap().unwrap().path();
    fs::remove_dir_all(directory).unwrap();
    let run = ask(child, "INSERT INTO t SELECT a + 1, b FROM t; SELECT SUM(a) FROM v;");
    assert_one_error(&run, "No such file or directory");
}

#[test]
fn too_many_open_files_are_one_error() {
    let folder = TempDir::new().unwrap();
    let mut sql = LARGE.to_owned();
    for view in 0..20 {
        sql += &format!("CREATE MATERIALIZED VIEW v{view} AS SELECT b, a + {view} AS a FROM t;");
    }
    sql += "SELECT COUNT(*) FROM v19;";
    let run = limited("ulimit -n 20;", folder.path(), &["-c", &sql]).output().unwrap().into();
    assert_one_error(&run, "Too many open files");
}

#[test]
fn an_output_of_messages_that_cannot_be_written_does_not_matter() {
    let full = File::options().write(true).open("/dev/full").unwrap();
    let mut command = Command::new(binary());
    command.args(["-c", "SELECT 1 AS a; SELECT x;", "--format", "csv"]);
    let output = command.stderr(full).output().unwrap();
    assert_eq!((output.status.code(), &output.stdout[..]), (Some(1), &b"a\r\n1\r\n"[..]));

    let mut closed = Command::new(binary());
    closed.args(["-c", "SELECT x;"]).stderr(Stdio::piped()).stdout(Stdio::piped());
    let mut child = closed.spawn().unwrap();
    drop(child.stderr.take());
    let mut text = String::new();
    child.stdout.take().unwrap().read_to_string(&mut text).unwrap();
    assert_eq!((child.wait().unwrap().code(), text.as_str()), (Some(1), ""));
}

/// Data and names could make a terminal do something else than show them.
#[test]
fn control_characters_reach_no_terminal() {
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("t.csv"), "1\n\"x\u{1b}[2J\ny\"\n").unwrap();
    let program = folder.path().join("p.sql");
    let sql = "CREATE TABLE t (a INT, \"n\u{1b}[1m\" INT DEFAULT 0); COPY t (a) FROM 't.csv';
        SELECT 'a\u{1b}[31m\u{7}' AS \"c\u{9b}\" FROM t;\n.tables\n SELECT 'b\u{1b}[0m' + x\u{1b};";
    fs::write(&program, sql).unwrap();
    let output = Command::new(binary()).arg("-f").arg(&program).output().unwrap();
    let run = Run::from(output);
    assert_eq!(run.status, Some(1), "{run:?}");
    let is_control = |character: char| character.is_control() && character != '\n';
    assert!(!run.output.contains(is_control) && !run.errors.contains(is_control), "{run:?}");
    assert!(run.output.contains("a\\x1B[31m\\x07") && run.output.contains("c\\u009B"), "{run:?}");
    assert!(run.output.contains("n\\x1B[1m"), "{run:?}");
    assert!(run.errors.contains("x\\u{1b}[2J\\ny") && run.errors.contains("b\\x1B[0m"), "{run:?}");
}

#[test]
fn an_error_in_a_long_line_shows_the_part_around_it() {
    let sql = format!("SELECT '{}', x, '{}';", "a".repeat(100_000), "b".repeat(100_000));
    let program = tempfile::NamedTempFile::new().unwrap();
    fs::write(program.path(), sql).unwrap();
    let output = Command::new(binary()).arg("-f").arg(program.path()).output().unwrap();
    let run = Run::from(output);
    assert!(run.errors.contains(":1:100012: no column \"x\""), "{run:?}");
    let lines: Vec<&str> = run.errors.lines().collect();
    let caret = lines[2].chars().count() - 1;
    assert_eq!(lines[1].chars().nth(caret), Some('x'), "{run:?}");
    assert!(lines[1].chars().count() <= 202, "{run:?}");
}
