//! Rows of a megabyte: files are read in portions of bytes, not of rows alone.

use std::path::Path;

use alluvium::{Outcome, Source, SourceRequest};
use alluvium_connect::{Csv, Json, Parquet};
use arrow::datatypes::{DataType, Field, Schema};

use crate::workspace::Workspace;

const MIB: usize = 1 << 20;

/// `count` rows of a number and `bytes` of text.
fn csv(count: usize, bytes: usize) -> String {
    (0..count).map(|id| format!("{id},{}\n", "x".repeat(bytes))).collect()
}

/// The number of rows of each portion of a file of the columns `id` and `text`.
fn portions(source: &dyn Source, path: &Path, batch_bytes: usize) -> Vec<usize> {
    let columns =
        [Field::new("id", DataType::Int32, true), Field::new("text", DataType::Utf8, true)];
    let mut request = SourceRequest::new(path, Schema::new(columns.to_vec()).into());
    (request.batch_rows, request.batch_bytes) = (1000, batch_bytes);
    let mut reader = source.open(&request).unwrap();
    let mut rows = Vec::new();
    while let Some(portion) = reader.next().unwrap() {
        rows.push(portion.rows.num_rows());
    }
    rows
}

#[test]
fn a_portion_of_long_rows_has_few() {
    let mut workspace = Workspace::new();
    workspace.file("t.csv", csv(40, MIB / 4));
    workspace.run("CREATE TABLE t FROM 't.csv' (HEADERS false)");
    let formats: [(&dyn Source, &str); 4] = [
        (&Csv, "t.csv"),
        (&Json::LINES, "t.jsonl"),
        (&Json::ARRAY, "t.json"),
        (&Parquet, "t.parquet"),
    ];
    for (source, name) in formats {
        if name != "t.csv" {
            workspace
                .run(&format!("COPY (SELECT column0 AS id, column1 AS text FROM t) TO '{name}'"));
        }
        let path = workspace.path(name);
        let rows = portions(source, &path, MIB);
        assert_eq!(rows.iter().sum::<usize>(), 40, "{name}");
        assert!(rows.iter().all(|rows| *rows <= 5), "{name}: {rows:?}");
        assert_eq!(portions(source, &path, 100 * MIB), [40], "{name}");
        // However little is asked for, there is a row.
        assert_eq!(portions(source, &path, 0).iter().max(), Some(&1), "{name}");
    }
}

#[test]
fn the_columns_of_a_file_of_long_rows_are_found_in_its_first_megabytes() {
    let mut workspace = Workspace::new();
    workspace.file("t.csv", "id,text\n".to_owned() + &csv(9, MIB) + "last,x\n");
    let text = |(id, text)| format!("{{\"id\": {id}, \"text\": \"{text}\"}}\n");
    let lines = (0..9).map(|id| text((id.to_string(), "x".repeat(MIB))));
    let lines = lines.chain([text(("\"last\"".to_owned(), "x".to_owned()))]);
    workspace.file("t.jsonl", lines.collect::<String>());
    for (file, columns) in
        [("t.csv", ["id Int64", "text Utf8"]), ("t.jsonl", ["id Int64", "text Utf8"])]
    {
        let Outcome::Copied { rows: 9, refused: 1, .. } =
            workspace.run(&format!("CREATE TABLE t FROM '{file}'"))
        else {
            panic!("nine rows are right in {file}")
        };
        assert_eq!(workspace.columns("t"), columns);
        workspace.run("DROP TABLE t");
    }
}

#[test]
fn reading_long_rows_takes_little_beside_the_budget() {
    const MEMORY: usize = 32 * MIB;
    let mut workspace = Workspace::with(|builder| builder.workers(2).memory(MEMORY));
    workspace.file("t.csv", csv(100, MIB));
    workspace.run("CREATE TABLE t (id INT, text VARCHAR)");
    assert_eq!(workspace.copied("COPY t FROM 't.csv'"), (100, 0));
    workspace.run(
        "CREATE TABLE u (id INT, text VARCHAR)
         WITH ('materialized' = 'true', 'connectors' = '[{
             \"transport\": {\"name\": \"file_input\", \"config\": {\"path\": \"t.csv\"}}, \"format\": {\"name\": \"csv\"}
         }]')",
    );
    assert_eq!(workspace.query("SELECT COUNT(*), SUM(length(text)) FROM u"), ["100|104857600"]);
    let state = workspace.engine.state();
    // A merge holds a page of each of its inputs, and a page has a row at least.
    assert!(state.memory_peak_bytes as usize <= MEMORY + 64 * MIB, "{state:?}");
}

#[test]
fn messages_about_long_values_are_short() {
    let mut workspace = Workspace::with(|builder| builder.workers(1).memory(32 * MIB));
    let long = "x".repeat(MIB);
    workspace.file("t.csv", format!("1\n{long}\n"));
    workspace.file("t.jsonl", format!("{{\"a\": 1}}\n{{\"a\": \"{long}\"}}\n"));
    workspace.run("CREATE TABLE t (a INT); CREATE TABLE s (text VARCHAR)");
    for file in ["t.csv", "t.jsonl"] {
        assert_eq!(workspace.copied(&format!("COPY t FROM '{file}'")), (1, 1));
    }
    workspace.run("CREATE MATERIALIZED VIEW v AS SELECT CAST(text AS INT) AS a FROM s");
    workspace.run("INSERT INTO s SELECT repeat('x', 1048576)");
    let longest = "SELECT COUNT(*), MAX(length(message)) < 300, MAX(length(\"row\")) < 300 FROM alluvium.errors";
    assert_eq!(workspace.query(longest), ["3|true|true"]);
    let problem = workspace.problem("SELECT CAST(text AS INT) FROM s");
    assert!(problem.chars().count() < 300 && problem.contains("xxx…xxx"), "{problem}");
}

#[test]
fn of_many_refused_rows_the_first_are_kept_and_the_others_counted() {
    let mut workspace = Workspace::with(|builder| builder.workers(1).memory(MIB));
    workspace.run("CREATE TABLE t (a INT)");
    workspace.file("t.csv", "no number\n".repeat(10_000));
    assert_eq!(workspace.copied("COPY t FROM 't.csv'"), (0, 10_000));
    let kept = workspace.query("SELECT COUNT(*) FROM alluvium.errors WHERE \"row\" <> ''");
    let kept: usize = kept[0].parse().unwrap();
    assert!(kept > 100 && kept < 1_000, "{kept}");
    let message = workspace.query("SELECT message FROM alluvium.errors WHERE \"row\" = ''");
    let expected = format!(
        "{} more rows were refused; the first 64 KiB of refused rows are kept here",
        10_000 - kept
    );
    assert_eq!(message, [expected]);
}
