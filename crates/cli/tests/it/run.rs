//! `alluvium run`: files, messages and statistics.

use std::fs;
use std::path::Path;

use serde_json::Value;
use tempfile::TempDir;

use crate::binary::binary;
use crate::shell::{Run, done, run, write};

const PROGRAM: &str = "CREATE TABLE t (a INT, b VARCHAR)
    WITH ('materialized' = 'true', connector = 'file', path = 'in/t.csv', headers = 'true');
CREATE TABLE u (b VARCHAR PRIMARY KEY, c VARCHAR);
INSERT INTO u VALUES ('x', 'X'), ('y', NULL);
CREATE MATERIALIZED VIEW sums AS SELECT b, SUM(a) AS s FROM t GROUP BY b;
CREATE VIEW named AS SELECT u.c, t.a FROM t JOIN u ON t.b = u.b;
CREATE LOCAL VIEW part AS SELECT a FROM t;
";

fn folder() -> TempDir {
    let folder = TempDir::new().unwrap();
    write(&folder, "in/t.csv", "a,b\n1,x\n2,y\n3,x\n");
    write(&folder, "p.sql", PROGRAM);
    folder
}

fn lines(path: &Path) -> Vec<String> {
    let text =
        fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut lines: Vec<_> = text.lines().map(str::to_string).collect();
    // Rows of a view have no order; the header line stays first.
    let header = usize::from(path.extension().is_some_and(|extension| extension == "csv"));
    lines[header..].sort();
    lines
}

#[test]
fn views_and_changes_are_written_to_files_of_their_names() {
    let folder = folder();
    let program = folder.path().join("p.sql");
    let out = folder.path().join("a/b");
    let (program, output) = (program.to_str().unwrap(), out.to_str().unwrap());
    for workers in ["1", "2"] {
        assert_eq!(run(&["run", program, "--output", output, "--workers", workers]), done(""));
        assert_eq!(lines(&out.join("sums.csv")), ["b,s", "x,4", "y,2"]);
        let changes = lines(&out.join("named.changes.csv"));
        assert_eq!(changes[0], "epoch,weight,c,a");
        let changes: Vec<_> =
            changes[1..].iter().map(|line| line.split_once(',').unwrap().1).collect();
        assert_eq!(changes, ["1,,2", "1,X,1", "1,X,3"]);
        assert_eq!(fs::read_dir(&out).unwrap().count(), 2);
    }
    assert_eq!(run(&["run", program, "--output", output, "--format", "jsonl"]), done(""));
    assert_eq!(lines(&out.join("sums.jsonl")), [r#"{"b":"x","s":4}"#, r#"{"b":"y","s":2}"#]);
    assert_eq!(run(&["run", program, "--output", output, "--format", "json"]), done(""));
    let sums: Value = serde_json::from_slice(&fs::read(out.join("sums.json")).unwrap()).unwrap();
    assert_eq!(sums.as_array().unwrap().len(), 2);
    assert_eq!(run(&["run", program, "--output", output, "--format", "parquet"]), done(""));
    let parquet = format!("SELECT b, s FROM '{}' ORDER BY b", out.join("sums.parquet").display());
    assert_eq!(run(&["--format", "csv", "-c", &parquet]), done("b,s\r\nx,4\r\ny,2\r\n"));
}

/// Once, a second writer to the same file wrote every change again, in the middle of the first writer's lines.
#[test]
fn the_changes_of_an_existing_view_are_written_once() {
    let folder = folder();
    let again = "CREATE VIEW IF NOT EXISTS named AS SELECT 1 AS other;";
    let program = write(&folder, "p.sql", &format!("{PROGRAM}{again}"));
    let out = folder.path().join("out");
    assert_eq!(run(&["run", &program, "--output", out.to_str().unwrap()]), done(""));
    assert_eq!(lines(&out.join("named.changes.csv")).len(), 4);

    // A view that was dropped in between is a different view.
    let other = "DROP VIEW named; CREATE VIEW IF NOT EXISTS named AS SELECT c FROM u;";
    let program = write(&folder, "p.sql", &format!("{PROGRAM}{other}"));
    assert_eq!(run(&["run", &program, "--output", out.to_str().unwrap()]), done(""));
    let changes = lines(&out.join("named.changes.csv"));
    assert_eq!(changes[0], "epoch,weight,c");
    assert_eq!(changes.len(), 3);
}

#[test]
fn the_first_rows_of_views_are_printed_if_there_is_no_other_output() {
    let folder = folder();
    let rows: String = (0..50).map(|row| format!("{row},{}\n", row % 45)).collect();
    write(&folder, "in/t.csv", &format!("a,b\n{rows}"));
    let program = folder.path().join("p.sql");
    let found = run(&["run", program.to_str().unwrap()]);
    assert_eq!((found.status, found.errors.as_str()), (Some(0), ""));
    let shown: Vec<_> = found.output.lines().collect();
    assert_eq!(
        shown[..4],
        ["sums: the first 40 of 45 rows", "+----+----+", "| b  | s  |", "+----+----+"]
    );
    assert_eq!(shown.len(), 1 + 3 + 40 + 1);
    assert_eq!(shown[4], "| 0  | 45 |");

    let with_query = write(&folder, "q.sql", &format!("{PROGRAM} SELECT COUNT(*) AS n FROM sums;"));
    assert_eq!(run(&["run", &with_query, "--format", "csv"]), done("n\r\n45\r\n"));
}

#[test]
fn start_starts_sources_and_a_query_waits_for_them() {
    let folder = folder();
    let text =
        "CREATE TABLE t (a INT) WITH ('materialized' = 'true', connector = 'file', path = 'x.csv');
        INSERT INTO t VALUES (5);
        START;
        SELECT SUM(a) AS s FROM t;
        DELETE FROM t WHERE a = 2;
        SUBSCRIBE t;";
    write(&folder, "x.csv", "1\n2\n");
    let program = write(&folder, "s.sql", text);
    let found = run(&["run", &program, "--format", "jsonl"]);
    assert_eq!((found.status, found.errors.as_str()), (Some(0), ""));
    let mut shown: Vec<_> = found.output.lines().collect();
    shown[1..].sort();
    let expected =
        [r#"{"s":8}"#, r#"{"epoch":3,"weight":1,"a":1}"#, r#"{"epoch":3,"weight":1,"a":5}"#];
    assert_eq!(shown, expected);
}

#[test]
fn variables_are_set_on_the_command_line() {
    let folder = folder();
    let text = "CREATE TABLE t (a INT) WITH (connector = 'file', path = '${DIR:-in}/${FILE}');
        CREATE MATERIALIZED VIEW v AS
        SELECT a + ${PLUS} AS a, '${FILE}' AS file FROM t;\n/* ${NONE} */ SELECT * FROM v WHERE ${A} = 1;";
    let program = write(&folder, "v.sql", text);
    write(&folder, "in/o'k.csv", "1\n");
    let set = ["run", &program, "--format", "csv", "--set", "FILE=o'k.csv", "--set", "PLUS=10"];
    let errors = format!(
        "error: {program}:4:37: ${{A}} has no value: add --set A=VALUE; these are set: FILE, PLUS\n\
         /* ${{NONE}} */ SELECT * FROM v WHERE ${{A}} = 1;\n{}^\n",
        " ".repeat(36)
    );
    assert_eq!(run(&set), Run { status: Some(1), output: String::new(), errors });
    let all = [&set[..], &["--set", "A=1"]].concat();
    assert_eq!(run(&all), done("a,file\r\n11,o'k.csv\r\n"));

    // An error after a value is reported at its position in the original text.
    let all = [&set[..], &["--set", "A=1 = (1 = 1) AND a"]].concat();
    let found = run(&all);
    assert_eq!(found.status, Some(1));
    let all = [&set[..], &["--set", "A=missing"]].concat();
    let found = run(&all);
    assert!(found.errors.starts_with(&format!("error: {program}:4:37: ")), "{}", found.errors);

    for wrong in ["A", "1A=2", "=x", "a b=c"] {
        assert_eq!(run(&["run", &program, "--set", wrong]).status, Some(2), "{wrong}");
    }
}

#[test]
fn statistics_contain_rows_epochs_and_views() {
    let folder = folder();
    write(&folder, "in/t.csv", "a,b\n1,x\nnone,y\n2,y\n3,x\n");
    let program = folder.path().join("p.sql");
    let stats = folder.path().join("stats.json");
    let out = folder.path().join("out");
    let found = run(&[
        "run",
        program.to_str().unwrap(),
        "--output",
        out.to_str().unwrap(),
        "--stats",
        stats.to_str().unwrap(),
    ]);
    assert_eq!(found.status, Some(0), "{}", found.errors);
    let stats: Value = serde_json::from_slice(&fs::read(stats).unwrap()).unwrap();
    assert_eq!((&stats["rows"], &stats["refused"]), (&Value::from(3), &Value::from(1)), "{stats}");
    assert_eq!((&stats["workers"], &stats["epochs"]), (&Value::from(1), &Value::from(2)));
    assert_eq!(stats["views"], serde_json::json!({"sums": 2}));
    assert_eq!(stats["sources"][0]["table"], "t");
    assert!(
        stats["elapsed_s"].as_f64().unwrap() > 0.0 && stats["rows_per_s"].as_f64().unwrap() > 0.0
    );
    assert!(cfg!(not(target_os = "linux")) || stats["peak_rss_bytes"].as_u64().unwrap() > 1 << 20);
}

#[test]
fn ten_refused_rows_are_reported_and_strict_stops_at_the_first() {
    let folder = folder();
    let wrong: String = (0..25).map(|_| "one,x\n").collect();
    write(&folder, "in/t.csv", &format!("a,b\n{wrong}1,x\n"));
    let program = folder.path().join("p.sql");
    let program = program.to_str().unwrap();
    let at = folder.path().join("in/t.csv");
    let found = run(&["run", program, "--format", "jsonl"]);
    assert_eq!((found.status, found.output.as_str()), (Some(0), "{\"b\":\"x\",\"s\":1}\n"));
    let lines: Vec<_> = found.errors.lines().collect();
    assert_eq!(lines.len(), 12, "{}", found.errors);
    assert_eq!(lines[0], "warning: 25 input rows were refused:");
    assert_eq!(lines[1], format!("  {}:2: \"one\" is not an INTEGER (column a)", at.display()));
    assert_eq!(lines[11], "  … and 15 more in alluvium.errors");

    let found = run(&["run", program, "--strict"]);
    assert_eq!((found.status, found.output.as_str()), (Some(1), ""));
    assert!(
        found.errors.starts_with("error: ") && found.errors.contains("t.csv:2: "),
        "{}",
        found.errors
    );
}

#[test]
fn views_with_errors_are_reported_and_strict_stops_at_the_first() {
    let folder = folder();
    let text = "CREATE TABLE t (a INT);
        CREATE MATERIALIZED VIEW v AS SELECT 10 / a AS b FROM t;
        INSERT INTO t VALUES (0), (5), (0);
        SELECT * FROM v;";
    let program = write(&folder, "e.sql", text);
    let found = run(&["run", &program, "--format", "csv"]);
    assert_eq!((found.status, found.output.as_str()), (Some(0), "b\r\n2\r\n"));
    let start = "warning: 2 rows are in alluvium.errors instead of v: ";
    assert!(found.errors.starts_with(start), "{}", found.errors);
    assert_eq!(run(&["run", &program, "--strict"]).status, Some(1));
}

#[test]
fn unreadable_and_unwritable_files_are_errors() {
    let folder = folder();
    assert_eq!(run(&["run"]).status, Some(2));
    assert_eq!(
        run(&["run", "nowhere.sql"]).errors,
        "error: nowhere.sql: No such file or directory (os error 2)\n"
    );
    let program = folder.path().join("p.sql");
    let program = program.to_str().unwrap();
    assert_eq!(run(&["run", program, "--format", "parquet"]).status, Some(2));

    let found = run(&["run", program, "--output", program]);
    assert_eq!(found.status, Some(1), "{}", found.errors);
    assert!(found.errors.starts_with(&format!("error: {program}: ")), "{}", found.errors);

    fs::remove_file(folder.path().join("in/t.csv")).unwrap();
    let found = run(&["run", program]);
    assert_eq!((found.status, found.output.as_str()), (Some(1), ""));
    assert!(found.errors.contains("in/t.csv"), "{}", found.errors);

    let wrong = write(&folder, "w.sql", "SELECT 1 AS a;\n.tables\nSELECT 2;");
    let found = run(&["run", &wrong, "--format", "csv"]);
    assert_eq!((found.status, found.output.as_str()), (Some(1), "a\r\n1\r\n"));
    assert!(found.errors.starts_with(&format!("error: {wrong}:2:1: ")), "{}", found.errors);
}

/// Each large file of state stays open.
#[cfg(unix)]
#[test]
fn the_limit_of_open_files_is_raised() {
    use std::fmt::Write;
    use std::process::Command;

    let mut sql = String::from(
        "CREATE TABLE t (n BIGINT, s VARCHAR);
         INSERT INTO t SELECT n, 'the row of number ' || n FROM (SELECT UNNEST(range(0, 3000)) AS n);",
    );
    for view in 0..40 {
        write!(sql, "CREATE MATERIALIZED VIEW v{view} AS SELECT s, n + {view} AS n FROM t;")
            .unwrap();
    }
    sql.push_str("SELECT COUNT(*) AS files FROM alluvium.arrangements WHERE disk_bytes > 40000");
    let mut shell = Command::new("sh");
    shell.args(["-c", "ulimit -Sn 32; exec \"$0\" --memory 1 --format csv -c \"$1\""]);
    let output = shell.arg(binary()).arg(&sql).output().unwrap();
    let (out, err) = (String::from_utf8(output.stdout), String::from_utf8(output.stderr));
    assert_eq!((out.unwrap().as_str(), err.unwrap().as_str()), ("files\r\n41\r\n", ""));
}
