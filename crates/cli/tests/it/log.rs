//! The log of `alluvium run`: what its lines say, and in which form.

use std::process::{Command, Stdio};

use serde_json::Value;
use tempfile::TempDir;

use crate::binary::binary;
use crate::shell::write;

const PROGRAM: &str = "CREATE TABLE t (a INT, b VARCHAR)
    WITH ('materialized' = 'true', connector = 'file', path = 't.csv', headers = 'true');
CREATE MATERIALIZED VIEW sums AS SELECT b, SUM(a) AS s FROM t WHERE b <> 'secret-in-sql' GROUP BY b;
SELECT * FROM sums;
";

/// Runs a program over rows of which two are refused, and returns its standard error.
fn logged(arguments: &[&str]) -> String {
    let folder = TempDir::new().unwrap();
    write(&folder, "t.csv", "a,b\n1,x\nsecret-in-row,y\nz,secret-in-row\n");
    write(&folder, "p.sql", PROGRAM);
    let run = Command::new(binary())
        .args(["run", "p.sql", "--state", "state"])
        .args(arguments)
        .current_dir(folder.path())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(run.status.success(), "{run:?}");
    String::from_utf8(run.stderr).unwrap()
}

/// The lines in JSON.
fn lines(arguments: &[&str]) -> Vec<Value> {
    let said = logged(arguments);
    said.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

fn field<'a>(lines: &'a [Value], message: &str, field: &str) -> &'a Value {
    let line = lines.iter().find(|line| line["message"] == message);
    &line.unwrap_or_else(|| panic!("no \"{message}\" in {lines:?}"))[field]
}

#[test]
fn a_run_logs_nothing_unless_it_is_asked_to() {
    let said = logged(&[]);
    assert!(!said.contains("engine opened") && !said.contains("source started"), "{said}");
}

#[test]
fn lines_in_json_have_the_fields_of_what_happened() {
    let lines = lines(&["--log", "info", "--log-format", "json"]);
    assert_eq!(field(&lines, "engine opened", "workers"), 1);
    assert_eq!(field(&lines, "source started", "table"), "t");
    assert_eq!(field(&lines, "source refused rows", "rows"), 2);
    assert_eq!(field(&lines, "source refused rows", "level"), "WARN");
    assert_eq!(field(&lines, "source ended", "rows"), 1);
    assert_eq!(field(&lines, "checkpoint taken", "number"), 1);
    assert!(lines.iter().all(|line| line["target"].as_str().unwrap().starts_with("alluvium")));
}

#[test]
fn a_level_leaves_out_what_matters_less() {
    let lines = lines(&["--log", "warn", "--log-format", "json"]);
    let messages: Vec<_> = lines.iter().map(|line| line["message"].as_str().unwrap()).collect();
    assert_eq!(messages, ["source refused rows"]);
}

#[test]
fn lines_name_the_calls_that_they_are_of_and_have_no_values() {
    for format in ["text", "json"] {
        let said = logged(&["--log", "debug", "--log-format", format]);
        let log: String = said.lines().filter(|line| line.contains("alluvium::")).collect();
        assert!(log.contains("finish"), "{said}");
        assert!(!log.contains("secret"), "{log}");
    }
}
