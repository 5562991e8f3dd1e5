//! The shell: input, output and exit status.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Output, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use tempfile::TempDir;

use crate::binary::binary;

pub fn alluvium(arguments: &[&str]) -> Command {
    let mut command = Command::new(binary());
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// The output and exit status of a run.
#[derive(Debug, PartialEq)]
pub struct Run {
    pub status: Option<i32>,
    pub output: String,
    pub errors: String,
}

impl From<Output> for Run {
    fn from(output: Output) -> Self {
        Self {
            status: output.status.code(),
            output: String::from_utf8(output.stdout).unwrap(),
            errors: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

pub fn run(arguments: &[&str]) -> Run {
    alluvium(arguments).output().unwrap().into()
}

/// Runs with `input` as standard input.
pub fn run_with(input: &str, arguments: &[&str]) -> Run {
    let mut child = alluvium(arguments).stdin(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    child.wait_with_output().unwrap().into()
}

pub fn done(output: &str) -> Run {
    Run { status: Some(0), output: output.into(), errors: String::new() }
}

pub fn write(folder: &TempDir, name: &str, content: &str) -> String {
    let path = folder.path().join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, content).unwrap();
    path.to_str().unwrap().to_string()
}

#[test]
fn statements_of_files_commands_and_the_shell_run_in_order() {
    let folder = TempDir::new().unwrap();
    let file = write(&folder, "t.sql", "INSERT INTO t VALUES (2);");
    let arguments = ["-c", "CREATE TABLE t (a INT); INSERT INTO t VALUES (1)", "-f", &file];
    let select = ["--format", "csv", "-c", "SELECT SUM(a) AS s FROM t"];
    assert_eq!(run(&[&arguments[..], &select].concat()), done("s\r\n3\r\n"));
    assert_eq!(run(&[&["shell"], &arguments[..], &select].concat()), done("s\r\n3\r\n"));
}

#[test]
fn statements_are_read_from_standard_input_by_default() {
    let program = "CREATE TABLE t (a INT, b VARCHAR);
        CREATE MATERIALIZED VIEW v AS SELECT b, SUM(a) AS s FROM t GROUP BY b;
        INSERT INTO t VALUES (1, 'x'), (2, 'x'), (NULL, NULL);
        SELECT * FROM v ORDER BY b;";
    let table = "+------+------+\n| b    | s    |\n+------+------+\n| x    | 3    |\n| NULL | NULL |\n\
        +------+------+\n";
    assert_eq!(run_with(program, &[]), done(table));
}

#[test]
fn statements_of_standard_input_run_as_they_are_read() {
    let mut child = alluvium(&["--format", "csv"]).stdin(Stdio::piped()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let mut answer = |lines: usize| {
        let mut text = String::new();
        for _ in 0..lines {
            output.read_line(&mut text).unwrap();
        }
        text
    };
    input
        .write_all(b"CREATE TABLE t (a INT); INSERT INTO\nt VALUES (1); SELECT * FROM t; SELECT")
        .unwrap();
    input.write_all(b"\n';' AS s;\n").unwrap();
    // The input stays open, so these answers were printed before it ended.
    assert_eq!(answer(4), "a\r\n1\r\ns\r\n;\r\n");
    input.write_all(b"SELECT 2 AS b;\n").unwrap();
    assert_eq!(answer(2), "b\r\n2\r\n");
    drop(input);
    assert!(child.wait().unwrap().success());
}

#[test]
fn an_error_in_standard_input_is_reported_with_its_line() {
    let found =
        run_with("SELECT 1 AS a;\n\n SELECT 2 AS b; SELECT c;\nSELECT 3;", &["--format", "jsonl"]);
    let errors = "error: <stdin>:3:24: no column \"c\"\n SELECT 2 AS b; SELECT c;\n                       ^\n";
    let output = "{\"a\":1}\n{\"b\":2}\n";
    assert_eq!(found, Run { status: Some(1), output: output.into(), errors: errors.into() });
}

#[test]
fn lines_that_begin_with_a_dot_are_shell_commands() {
    let program = "CREATE TABLE t (a INT, \"B c\" INT);\n.tables\n.mode csv\nSELECT\n.5 AS half;
        CREATE MATERIALIZED VIEW v AS SELECT a FROM t; -- .tables\n  .tables\n.quit\nSELECT 1;";
    let output = "table t (a, B c)\nhalf\r\n0.5\r\ntable t (a, B c)\nmaterialized view v (a)\n";
    assert_eq!(run_with(program, &[]), done(output));

    let help = run_with(".help", &[]);
    assert!(help.output.lines().all(|line| line.starts_with('.')), "{}", help.output);
    for (command, error) in [
        (".no", "unknown command \".no\"; .help lists the commands"),
        (".mode", "usage: .mode table|csv|json|jsonl"),
        (".mode xml", "unknown format \"xml\"; usage: .mode table|csv|json|jsonl"),
        (".timer maybe", "usage: .timer on|off"),
    ] {
        let errors = format!("error: <stdin>:1:1: {error}\n{command}\n^\n");
        assert_eq!(run_with(command, &[]), Run { status: Some(1), output: String::new(), errors });
    }
}

#[test]
fn definitions_are_shown_as_they_were_written_each_behind_those_that_it_names() {
    let definitions = "CREATE TABLE t (a INT PRIMARY KEY, \"B c\" TEXT DEFAULT 'x');\n\
                       CREATE TABLE u (\"A b\" BIGINT, s VARCHAR, l BIGINT[]);\n\
                       CREATE VIEW z AS SELECT a FROM t;\n\
                       CREATE MATERIALIZED VIEW b AS SELECT a AS x FROM z;\n\
                       LATENESS b.x 5;\nCREATE MATERIALIZED VIEW c AS SELECT x FROM b;\n";
    let created = definitions.replace(
        "CREATE TABLE u (\"A b\" BIGINT, s VARCHAR, l BIGINT[])",
        "CREATE TABLE u AS SELECT 1 AS \"A b\", 'x' AS s, [1] AS l",
    );
    let shown = definitions.replace(
        "CREATE MATERIALIZED VIEW b AS SELECT a AS x FROM z;\nLATENESS b.x 5;\n",
        "LATENESS b.x 5;\nCREATE MATERIALIZED VIEW b AS SELECT a AS x FROM z;\n",
    );
    assert_eq!(run_with(&format!("{created}.schema"), &[]), done(&shown));
    // The text that is shown makes the same again.
    assert_eq!(run_with(&format!("{shown}.schema"), &[]), done(&shown));
    let one = "CREATE VIEW z AS SELECT a FROM t;\n";
    for name in ["z", "Z", "\"z\""] {
        assert_eq!(run_with(&format!("{created}.schema {name}"), &[]), done(one));
    }
    let indexed = "CREATE TABLE t (a INT);\nCREATE INDEX \"I\" ON t (a);\n";
    assert_eq!(run_with(&format!("{indexed}.schema t"), &[]), done(indexed));
    assert_eq!(run_with(".schema", &[]), done(""));
    let errors = "error: <stdin>:1:1: there is no table or view \"nowhere\"\n.schema nowhere\n^\n";
    let found = run_with(".schema nowhere", &[]);
    assert_eq!(found, Run { status: Some(1), output: String::new(), errors: errors.into() });
}

#[test]
fn columns_of_tables_are_cut_to_their_widths() {
    let program = ".width 2 0 3\nSELECT 'äbc' AS name, 'abcdef' AS long, NULL AS none, 'abcdef' AS rest;\n\
                   .width\nSELECT 'abcdef' AS name;";
    let output = "+-----+--------+------+--------+\n\
                  | na… | long   | non… | rest   |\n\
                  +-----+--------+------+--------+\n\
                  | äb… | abcdef | NUL… | abcdef |\n\
                  +-----+--------+------+--------+\n\
                  +--------+\n\
                  | name   |\n\
                  +--------+\n\
                  | abcdef |\n\
                  +--------+\n";
    assert_eq!(run_with(program, &[]), done(output));
    let found = run_with(".width wide", &[]);
    assert_eq!(found.errors, "error: <stdin>:1:1: usage: .width [N]…\n.width wide\n^\n");
}

#[test]
fn the_timer_prints_how_long_each_statement_takes() {
    let found = run_with(
        ".timer on\nSELECT 1 AS a; SELECT 2 AS b;\n.timer off\nSELECT 3 AS c;",
        &["--format", "jsonl"],
    );
    assert_eq!(found.output, "{\"a\":1}\n{\"b\":2}\n{\"c\":3}\n");
    let times: Vec<_> = found.errors.lines().collect();
    assert_eq!(times.len(), 2, "{}", found.errors);
    assert!(
        times.iter().all(|time| time.starts_with("time: ") && time.ends_with(" s")),
        "{times:?}"
    );
}

#[test]
fn a_subscription_in_a_program_prints_a_snapshot() {
    let program = "CREATE TABLE t (a INT, b VARCHAR);
        CREATE VIEW v AS SELECT b, SUM(a) AS s FROM t GROUP BY b;
        INSERT INTO t VALUES (1, 'x'), (2, 'x');
        INSERT INTO t VALUES (3, NULL), (3, 'y');
        DELETE FROM t WHERE b = 'y';
        SUBSCRIBE v;
        SUBSCRIBE t;
        SELECT COUNT(*) AS n FROM t;";
    let mut lines: Vec<_> =
        run_with(program, &["--format", "jsonl"]).output.lines().map(str::to_string).collect();
    lines[..2].sort();
    lines[2..5].sort();
    let expected = [
        r#"{"epoch":3,"weight":1,"b":"x","s":3}"#,
        r#"{"epoch":3,"weight":1,"b":null,"s":3}"#,
        r#"{"epoch":3,"weight":1,"a":1,"b":"x"}"#,
        r#"{"epoch":3,"weight":1,"a":2,"b":"x"}"#,
        r#"{"epoch":3,"weight":1,"a":3,"b":null}"#,
        r#"{"n":3}"#,
    ];
    assert_eq!(lines, expected);
}

#[test]
fn a_program_follows_a_view_through_pipes_while_it_writes_statements() {
    let mut child = Command::new(binary())
        .args(["--format", "jsonl"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut to = child.stdin.take().unwrap();
    let (sender, lines) = mpsc::channel();
    let output = BufReader::new(child.stdout.take().unwrap());
    thread::spawn(move || output.lines().map_while(Result::ok).try_for_each(|l| sender.send(l)));
    let next = || lines.recv_timeout(Duration::from_secs(600)).unwrap();
    to.write_all(
        b"CREATE TABLE t (a INT); CREATE MATERIALIZED VIEW v AS SELECT SUM(a) AS s FROM t;
        INSERT INTO t VALUES (1); SUBSCRIBE v;\n",
    )
    .unwrap();
    assert_eq!(next(), r#"{"epoch":1,"weight":1,"s":1}"#);
    for number in 2..=20 {
        // Also before the statement after it is whole.
        to.write_all(b"INSERT INTO t VALUES (1);\nSELECT").unwrap();
        let mut changes = [next(), next()];
        changes.sort();
        let change =
            |weight, sum| format!("{{\"epoch\":{number},\"weight\":{weight},\"s\":{sum}}}");
        assert_eq!(changes, [change(-1, number - 1), change(1, number)]);
        to.write_all(b" 'answer' AS a;\n").unwrap();
        assert_eq!(next(), r#"{"a":"answer"}"#);
    }
    // Of what was committed last nothing is missing at the end.
    to.write_all(b"DELETE FROM t; INSERT INTO t VALUES (7)").unwrap();
    drop(to);
    let rest: Vec<String> = lines.iter().collect();
    assert!(rest.contains(&r#"{"epoch":22,"weight":1,"s":7}"#.to_owned()), "{rest:?}");
    assert!(child.wait().unwrap().success());
}

#[test]
fn an_empty_subscription_prints_its_columns_and_an_unknown_name_is_an_error() {
    let program = "CREATE TABLE t (a INT); SUBSCRIBE t;";
    assert_eq!(run_with(program, &["--format", "csv"]), done("epoch,weight,a\r\n"));
    let found = run_with("SUBSCRIBE nowhere;", &[]);
    let errors = "error: <stdin>:1:11: there is no table or view \"nowhere\"\nSUBSCRIBE nowhere;\n          ^\n";
    assert_eq!(found, Run { status: Some(1), output: String::new(), errors: errors.into() });
}

#[test]
fn contents_are_written_when_the_shell_ends() {
    let folder = TempDir::new().unwrap();
    let (file, none) = (folder.path().join("v.csv"), folder.path().join("none/v.csv"));
    let program = |file: &std::path::Path| {
        format!(
            "CREATE TABLE t (a INT); INSERT INTO t VALUES (1);
             CREATE MATERIALIZED VIEW v WITH (connector = 'file', path = '{}') AS SELECT a + 1 AS b FROM t",
            file.display()
        )
    };
    assert_eq!(run(&["-c", &program(&file), "-c", "INSERT INTO t VALUES (2)"]), done(""));
    let written = fs::read_to_string(&file).unwrap();
    assert_eq!(written.lines().collect::<Vec<_>>(), ["b", "2", "3"]);
    let failed = run(&["-c", &program(&none)]);
    assert!(failed.status == Some(1) && failed.errors.contains("none/v.csv"), "{failed:?}");
}

#[test]
fn completions_are_written_for_shells() {
    for shell in ["bash", "zsh", "fish"] {
        let found = run(&["completions", shell]);
        assert_eq!((found.status, found.errors.as_str()), (Some(0), ""));
        assert!(found.output.contains("alluvium") && found.output.contains("workers"), "{shell}");
    }
    assert_eq!(run(&["completions", "none"]).status, Some(2));
}

#[test]
fn each_format_prints_null_in_its_way() {
    let select = "SELECT * FROM (VALUES (1, ''), (2, NULL)) AS t (a, b) ORDER BY a";
    let formatted = |arguments: &[&str]| run(&[arguments, &["-c", select]].concat());
    let csv = ["--format", "csv"];
    assert_eq!(formatted(&csv), done("a,b\r\n1,\"\"\r\n2,\r\n"));
    assert_eq!(formatted(&[&csv[..], &["--null", "-"]].concat()), done("a,b\r\n1,\"\"\r\n2,-\r\n"));
    assert_eq!(
        formatted(&["--format", "json"]),
        done("[{\"a\":1,\"b\":\"\"},{\"a\":2,\"b\":null}]\n")
    );
    assert_eq!(
        formatted(&["--format", "jsonl"]),
        done("{\"a\":1,\"b\":\"\"}\n{\"a\":2,\"b\":null}\n")
    );
}

#[test]
fn an_error_names_file_line_and_column_and_shows_the_line() {
    let folder = TempDir::new().unwrap();
    let text = "CREATE TABLE flights (dep_time INT);\n\nSELECT 1 AS a;\n  SELECT dep FROM flights;\nSELECT 2;\n";
    let file = write(&folder, "flights.sql", text);
    let found = run(&["--format", "jsonl", "-f", &file, "-c", "SELECT 3"]);
    let errors = format!(
        "error: {file}:4:10: no column \"dep\" in \"flights\"; did you mean \"dep_time\"?\n  \
         SELECT dep FROM flights;\n         ^\n"
    );
    assert_eq!(found, Run { status: Some(1), output: "{\"a\":1}\n".into(), errors });
}

#[test]
fn an_invalid_command_line_exits_with_status_two() {
    for arguments in [&["--format", "xml"][..], &["--workers", "0"], &["-x"], &["nowhere"]] {
        let found = run(arguments);
        assert_eq!((found.status, found.output.as_str()), (Some(2), ""), "{arguments:?}");
        assert!(found.errors.starts_with("error: "), "{}", found.errors);
    }
    assert_eq!(run(&["--version"]), done(concat!("alluvium ", env!("CARGO_PKG_VERSION"), "\n")));
}

#[test]
fn a_program_that_cannot_be_read_is_an_error() {
    let found = run(&["-f", "nowhere.sql"]);
    let errors = "error: nowhere.sql: No such file or directory (os error 2)\n".to_string();
    assert_eq!(found, Run { status: Some(1), output: String::new(), errors });
}

#[test]
fn paths_are_relative_to_the_file_that_contains_them() {
    let folder = TempDir::new().unwrap();
    let file = write(
        &folder,
        "programs/t.sql",
        "CREATE TABLE t (a INT); COPY t FROM '../data/t.csv'; SELECT * FROM t;",
    );
    write(&folder, "data/t.csv", "7\n");
    assert_eq!(run(&["--format", "csv", "-f", &file]), done("a\r\n7\r\n"));
}

#[test]
fn columns_missing_in_a_file_get_their_defaults() {
    let folder = TempDir::new().unwrap();
    write(&folder, "t.csv", "a\n7\n");
    let program =
        "CREATE TABLE t (a INT, b BIGINT NOT NULL DEFAULT 2 + 3, c VARCHAR DEFAULT 'x', d INT);
        COPY t FROM 't.csv' (HEADERS true); SELECT * FROM t;";
    let file = write(&folder, "t.sql", program);
    assert_eq!(run(&["--format", "csv", "-f", &file]), done("a,b,c,d\r\n7,5,x,\r\n"));
}

#[test]
fn refused_rows_are_reported_once_and_do_not_stop_the_program() {
    let folder = TempDir::new().unwrap();
    write(&folder, "t.csv", "a,b\n1,x\none,y\n2,y\n");
    write(&folder, "u.csv", "3,x\n3\n");
    let program = "CREATE TABLE t (a INT, b VARCHAR);
        COPY t FROM 't.csv' (HEADERS true);
        COPY t FROM 'u.csv';
        SELECT SUM(a) AS s FROM t;";
    let file = write(&folder, "t.sql", program);
    let at = folder.path().display();
    let errors = format!(
        "warning: 2 input rows were refused:\n  \
         {at}/t.csv:3: \"one\" is not an INTEGER (column a)\n  \
         {at}/u.csv:2: there are 1 fields instead of 2\n"
    );
    let expected = Run { status: Some(0), output: "s\r\n6\r\n".into(), errors };
    assert_eq!(run(&["--format", "csv", "-f", &file]), expected);
}

#[test]
fn a_file_that_copy_cannot_read_is_an_error_at_the_statement() {
    let found = run(&["-c", "CREATE TABLE t (a INT);\nCOPY t FROM 'nowhere.csv';"]);
    assert_eq!(found.status, Some(1));
    let start = "error: <command>:2:6: cannot open \"nowhere.csv\": No such file or directory";
    assert!(found.errors.starts_with(start), "{}", found.errors);
    assert!(found.errors.ends_with("\nCOPY t FROM 'nowhere.csv';\n     ^\n"), "{}", found.errors);
}

#[test]
fn a_closed_pipe_ends_the_program_quietly() {
    let mut child = alluvium(&["-c", &"SELECT 1;".repeat(100)]).spawn().unwrap();
    drop(child.stdout.take());
    let found: Run = child.wait_with_output().unwrap().into();
    assert_eq!(found, done(""));
}

#[test]
fn a_view_that_gains_errors_is_reported_once_after_the_statement() {
    let program = "CREATE TABLE t (a INT);
        CREATE MATERIALIZED VIEW v AS SELECT 10 / a AS b FROM t;
        INSERT INTO t VALUES (0), (5);
        SELECT * FROM v;
        INSERT INTO t VALUES (2);
        SELECT COUNT(*) AS n FROM v;
        DELETE FROM t WHERE a = 0;
        SELECT COUNT(*) AS n FROM v;
        INSERT INTO t VALUES (0), (0);";
    let found = run_with(program, &["--format", "jsonl"]);
    assert_eq!(
        (found.status, found.output.as_str()),
        (Some(0), "{\"b\":2}\n{\"n\":2}\n{\"n\":2}\n")
    );
    let expected = ["1 row is", "2 rows are"]
        .map(|rows| format!("warning: {rows} in alluvium.errors instead of v: division by zero"));
    assert_eq!(found.errors.lines().collect::<Vec<_>>(), expected);
}

#[test]
fn commands_read_files_of_statements_and_of_rows_and_send_results_to_a_file() {
    let folder = TempDir::new().unwrap();
    let rows = write(&folder, "rows.csv", "a,b\n1,x\n2,y\n");
    let more = write(&folder, "more.csv", "a,b\n3,z\n");
    let program = write(&folder, "program.sql", "SELECT MAX(a) AS most FROM t;\n.mode csv\n");
    let results = folder.path().join("results.csv");
    let results = results.to_str().unwrap();
    let input = format!(
        ".import {rows} t\n.import {more} t\n.read {program}\n.output {results}\nSELECT b FROM t ORDER BY a;\n\
         .output\nSELECT COUNT(*) AS n FROM t;\n"
    );
    let expected = "+------+\n| most |\n+------+\n| 3    |\n+------+\nn\r\n3\r\n";
    assert_eq!(run_with(&input, &["shell"]), done(expected));
    assert_eq!(fs::read_to_string(results).unwrap(), "b\r\nx\r\ny\r\nz\r\n");
}

#[test]
fn a_file_that_reads_itself_and_one_that_is_not_there_are_errors() {
    let folder = TempDir::new().unwrap();
    let program = folder.path().join("endless.sql");
    let program = program.to_str().unwrap();
    write(&folder, "endless.sql", &format!(".read {program}\n"));
    for (command, error) in [
        (format!(".read {program}\n"), "nest at most 20 levels"),
        (".read nowhere.sql\n".to_owned(), "nowhere.sql: "),
        (".import nowhere.csv t\n".to_owned(), "nowhere.csv"),
        (".output nowhere/at/all\n".to_owned(), "nowhere/at/all: "),
        (".import t\n".to_owned(), "usage: .import FILE TABLE"),
    ] {
        let failed = run_with(&command, &["shell"]);
        assert_eq!(failed.status, Some(1), "{command}: {failed:?}");
        assert!(failed.errors.contains(error), "{command}: {failed:?}");
    }
}
