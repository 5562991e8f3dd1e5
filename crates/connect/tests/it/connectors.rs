//! Tables that are filled by connectors, and views that are written by them.

use std::fs;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, UNIX_EPOCH};

use alluvium::{OutputMode, SourceState};
use arrow::array::AsArray;
use arrow::datatypes::Int64Type;

use crate::workspace::Workspace;

const SALES: &str = "
    CREATE TABLE sale (id BIGINT, item VARCHAR, price DOUBLE) WITH ('connectors' = '[
        {\"name\": \"old\",
         \"transport\": {\"name\": \"file_input\", \"config\": {\"path\": \"old.csv\"}},
         \"format\": {\"name\": \"csv\", \"config\": {\"headers\": true}}},
        {\"transport\": {\"name\": \"file_input\", \"config\": {\"path\": \"new.jsonl\"}}}]');
    CREATE MATERIALIZED VIEW total AS SELECT item, COUNT(*) AS n, SUM(price) AS price FROM sale GROUP BY item;";

fn sales(workspace: &Workspace) {
    workspace.file("old.csv", "id,item,price\n1,nut,0.5\n2,bolt,x\n3,bolt,1.5\n");
    workspace.file("new.jsonl", "{\"id\": 4, \"item\": \"nut\", \"price\": 1}\n{\"id\": \"x\"}\n");
}

#[test]
fn connectors_start_at_the_first_statement_that_reads() {
    let mut workspace = Workspace::new();
    sales(&workspace);
    workspace.run(SALES);
    assert_eq!(workspace.query("SELECT 1"), ["1"]);
    let states = |workspace: &Workspace| {
        let sources = workspace.engine.progress().sources;
        sources.into_iter().map(|source| source.state).collect::<Vec<_>>()
    };
    assert_eq!(states(&workspace), [SourceState::Waiting, SourceState::Waiting]);
    assert_eq!(workspace.query("SELECT * FROM total"), ["bolt|1|1.5", "nut|2|1.5"]);
    assert_eq!(states(&workspace), [SourceState::Finished, SourceState::Finished]);
}

#[test]
fn sources_tell_what_they_read_and_what_they_refused() {
    let mut workspace = Workspace::new();
    sales(&workspace);
    workspace.run(SALES);
    workspace.run("START");
    workspace.engine.wait_for_sources().unwrap();
    let progress = workspace.engine.progress();
    assert_eq!(progress.committed, progress.complete);
    let told: Vec<_> = progress
        .sources
        .iter()
        .map(|source| (source.name.as_str(), source.rows, source.refused, source.messages.len()))
        .collect();
    assert_eq!(told, [("old", 2, 1, 1), ("jsonl", 1, 1, 1)]);
    for source in &progress.sources {
        assert_eq!(source.table, "sale");
        assert_eq!(source.bytes, fs::metadata(&source.path).unwrap().len());
    }
    let message = &progress.sources[0].messages[0];
    assert!(
        message.to_string().ends_with("old.csv:3: \"x\" is not a DOUBLE (column price)"),
        "{message}"
    );
    let errors = workspace.query("SELECT view, expression, message FROM alluvium.errors");
    assert_eq!(errors.len(), 2, "{errors:?}");
    assert_eq!(errors[1], "sale|old|\"x\" is not a DOUBLE (column price)");
}

#[test]
fn a_table_with_a_key_takes_its_connectors_one_after_the_other() {
    for _ in 0..10 {
        let mut workspace = Workspace::with(|builder| builder.workers(3).batch_rows(3));
        let rows = |value: &str| (0..50).map(|key| format!("{key},{value}\n")).collect::<String>();
        workspace.file("a.csv", rows("first"));
        workspace.file("b.csv", rows("second"));
        workspace.run(
            "CREATE TABLE t (k BIGINT PRIMARY KEY, v VARCHAR) WITH ('connectors' = '[
                {\"transport\": {\"name\": \"file_input\", \"config\": {\"path\": \"a.csv\"}}},
                {\"transport\": {\"name\": \"file_input\", \"config\": {\"path\": \"b.csv\"}}}]')",
        );
        assert_eq!(workspace.query("SELECT v, COUNT(*) FROM t GROUP BY v"), ["second|50"]);
    }
}

#[test]
fn a_connector_may_be_flat_and_name_several_files() {
    let mut workspace = Workspace::new();
    workspace.file("part-2.txt", "2;b\n");
    workspace.file("part-1.txt", "1;a\n-;-\n");
    workspace.run(
        "CREATE TABLE t (a INT, b VARCHAR)
         WITH (materialized = 'true', connector = 'file', path = 'part-*.txt', format = 'csv', delimiter = ';', null_value = '-')",
    );
    assert_eq!(workspace.query("SELECT * FROM t"), ["1|a", "2|b", "NULL|NULL"]);
}

#[test]
fn views_are_written_as_their_connectors_say() {
    let mut workspace = Workspace::new();
    sales(&workspace);
    workspace.run(SALES);
    workspace.run(
        "CREATE VIEW dear WITH (connector = 'file', path = 'dear.csv') AS SELECT id FROM sale WHERE price >= 1;
         CREATE MATERIALIZED VIEW items WITH ('connectors' = '[
            {\"transport\": {\"name\": \"file_output\", \"config\": {\"path\": \"items.jsonl\"}}},
            {\"transport\": {\"name\": \"file_output\", \"config\": {\"path\": \"items.csv\", \"mode\": \"changes\"}}}]')
         AS SELECT item, COUNT(*) AS n FROM sale GROUP BY item",
    );
    assert!(!workspace.path("items.jsonl").exists());
    workspace.engine.finish().unwrap();
    assert_eq!(workspace.content("dear.csv"), "epoch,weight,id\r\n1,1,3\r\n2,1,4\r\n");
    let mut items: Vec<_> = workspace.content("items.jsonl").lines().map(str::to_owned).collect();
    items.sort();
    assert_eq!(items, ["{\"item\":\"bolt\",\"n\":1}", "{\"item\":\"nut\",\"n\":2}"]);
    let mut changes: Vec<_> = workspace.content("items.csv").lines().map(str::to_owned).collect();
    changes.sort();
    let expected = ["1,1,bolt,1", "1,1,nut,1", "2,-1,nut,1", "2,1,nut,2", "epoch,weight,item,n"];
    assert_eq!(changes, expected);
}

#[test]
fn outputs_can_be_added_by_programs() {
    let mut workspace = Workspace::new();
    workspace.run("CREATE TABLE t (a INT); CREATE MATERIALIZED VIEW v AS SELECT a FROM t; INSERT INTO t VALUES (1)");
    let (held, changes) = (workspace.path("v.json"), workspace.path("t.jsonl"));
    workspace.engine.output("v", &held, None, &[], OutputMode::Contents).unwrap();
    workspace.engine.output("t", &changes, None, &[], OutputMode::Changes).unwrap();
    workspace.run("INSERT INTO t VALUES (2); DELETE FROM t WHERE a = 1");
    workspace.engine.finish().unwrap();
    assert_eq!(workspace.content("v.json").trim(), "[{\"a\":2}]");
    let expected = "{\"epoch\":1,\"weight\":1,\"a\":1}\n{\"epoch\":2,\"weight\":1,\"a\":2}\n{\"epoch\":3,\"weight\":-1,\"a\":1}\n";
    assert_eq!(workspace.content("t.jsonl"), expected);
}

#[test]
fn what_a_connector_cannot_be_is_said_when_it_is_defined() {
    let mut workspace = Workspace::new();
    let mut table =
        |options: &str| workspace.problem(&format!("CREATE TABLE t (a INT) WITH ({options})"));
    assert_eq!(
        table("connector = 'file', path = 'a.csv', colour = 'red'"),
        "table \"t\": no option \"COLOUR\" for CSV; there are HEADERS, NULL_VALUE, DELIMITER, QUOTE, ESCAPE, COMMENT, NEW_LINE, SKIP, PADDING, COLUMNS, DECIMAL_SEPARATOR, DATE_FORMAT, TIMESTAMP_FORMAT, SAMPLE and COMPRESSION"
    );
    assert_eq!(
        table("connector = 'file', path = 'a.xls'"),
        "table \"t\": nothing here reads \"a.xls\"; registered sources: csv, jsonl, json, parquet"
    );
    assert_eq!(
        table("connector = 'file', path = 'a.csv', format = 'avro'"),
        "table \"t\": nothing here reads the format \"avro\"; registered sources: csv, jsonl, json, parquet"
    );
    assert_eq!(table("connector = 'file'"), "table \"t\": the transport \"file\" needs a \"path\"");
    let unknown = table("connector = 'pulsar', path = 'a.csv'");
    let expected =
        "table \"t\": the transport \"pulsar\" is not supported here; there is \"file_input\"";
    assert!(unknown.starts_with(expected), "{unknown}");
    assert_eq!(
        table("'connectors' = '[{\"transport\": {\"name\": \"file_input\"}, \"paused\": true}]'"),
        "'paused' of a connector is not supported yet"
    );
    assert_eq!(workspace.engine.relations().unwrap().len(), 0);
}

#[test]
fn a_problem_inside_of_connectors_has_its_own_position() {
    let workspace = Workspace::new();
    let sql = "CREATE TABLE t (a INT) WITH ('connectors' = '[\n  {\"transport\": {\"name\": \"file_input\",\n    \"config\": {\"path\": \"it''s.csv\", \"port\": 1}}}]')";
    let error = workspace.engine.execute(sql).unwrap_err();
    assert_eq!(
        error.to_string(),
        "table \"t\": the transport \"file_input\" has no option \"port\""
    );
    assert_eq!(error.position(), Some((3, 37)));
}

#[test]
fn a_missing_file_is_said_when_sources_start_and_none_does() {
    let mut workspace = Workspace::new();
    workspace.file("here.csv", "1\n");
    workspace.run(
        "CREATE TABLE a (x INT) WITH (materialized = 'true', connector = 'file', path = 'here.csv');
         CREATE TABLE b (x INT) WITH (connector = 'file', path = 'gone.csv')",
    );
    assert_eq!(
        workspace.problem("START"),
        "the source \"csv\" of table \"b\": cannot open \"gone.csv\": No such file or directory (os error 2); check the path"
    );
    let states: Vec<_> =
        workspace.engine.progress().sources.into_iter().map(|source| source.state).collect();
    assert_eq!(states, [SourceState::Waiting, SourceState::Waiting]);
    workspace.run("DROP TABLE b");
    assert_eq!(workspace.query("SELECT * FROM a"), ["1"]);
}

#[test]
fn strict_makes_the_first_refused_row_fatal() {
    let mut workspace = Workspace::with(|builder| builder.workers(1).strict(true));
    sales(&workspace);
    workspace.run(SALES);
    assert_eq!(
        workspace.problem("SELECT * FROM total"),
        "the source \"old\" of table \"sale\": old.csv:3: \"x\" is not a DOUBLE (column price)"
    );
    assert_eq!(
        workspace.problem("COPY sale FROM 'old.csv'"),
        "old.csv:3: \"x\" is not a DOUBLE (column price)"
    );
}

#[test]
fn a_strict_copy_that_fails_leaves_nothing_in_its_transaction() {
    let mut workspace = Workspace::with(|builder| builder.workers(1).strict(true));
    workspace.file("t.csv", "1\n2\nx\n");
    workspace.run("CREATE TABLE t (a INT); BEGIN; INSERT INTO t VALUES (7)");
    assert_eq!(
        workspace.problem("COPY t FROM 't.csv'"),
        "t.csv:3: \"x\" is not an INTEGER (column a)"
    );
    workspace.run("COMMIT");
    assert_eq!(workspace.query("SELECT * FROM t"), ["7"]);
}

/// It was replaced before its outputs were opened, and dropped when one of them could not be.
#[test]
fn a_view_stays_if_the_outputs_of_the_one_that_would_replace_it_cannot_be_opened() {
    let mut workspace = Workspace::new();
    workspace.run("CREATE TABLE t (a BIGINT, epoch BIGINT); INSERT INTO t VALUES (1, 2)");
    workspace.run("CREATE MATERIALIZED VIEW v WITH (connector = 'file', path = 'v.csv', mode = 'changes') AS SELECT a FROM t");
    for (path, column, problem) in [
        ("missing/v.csv", "a", "missing/v.csv"),
        ("other.csv", "epoch", "a column \"epoch\" of their own"),
    ] {
        let replacement = format!(
            "CREATE OR REPLACE MATERIALIZED VIEW v WITH (connector = 'file', path = '{path}', mode = 'changes')
             AS SELECT {column} FROM t"
        );
        let message = workspace.problem(&replacement);
        assert!(message.contains(problem), "{message}");
        assert_eq!(workspace.query("SELECT a FROM v"), ["1"]);
    }
    workspace.run(
        "INSERT INTO t VALUES (3, 4);
         CREATE OR REPLACE MATERIALIZED VIEW v WITH (connector = 'file', path = 'v.csv', mode = 'changes') AS
             SELECT a + 1 AS b FROM t",
    );
    workspace.engine.finish().unwrap();
    let mut changes: Vec<_> = workspace.content("v.csv").lines().map(str::to_owned).collect();
    changes.sort();
    assert_eq!(changes, ["2,1,2", "2,1,4", "epoch,weight,b"]);
}

/// The one that replaced it was left behind without a name, and read by whoever asked for the next of that name.
#[test]
fn a_view_whose_changes_could_not_be_written_can_be_replaced_and_dropped() {
    let mut workspace = Workspace::new();
    let connectors = r#"'connectors' = '[{"transport": {"name": "file_output",
        "config": {"path": "/dev/full", "mode": "changes"}}, "format": {"name": "csv"}}]'"#;
    workspace.run("CREATE TABLE t (a BIGINT, b BIGINT)");
    for (definition, next) in [
        ("CREATE OR REPLACE MATERIALIZED VIEW v AS SELECT b AS a FROM t", "b"),
        ("DROP VIEW v", "a"),
        ("DROP TABLE t CASCADE", ""),
    ] {
        workspace.run(&format!(
            "CREATE OR REPLACE MATERIALIZED VIEW v WITH ({connectors}) AS SELECT a FROM t;
             INSERT INTO t VALUES (1, 2)"
        ));
        let problem = workspace.problem(definition);
        assert!(problem.contains("/dev/full"), "{definition}: {problem}");
        match next {
            "" => assert!(workspace.engine.relations().unwrap().is_empty()),
            column => {
                if column == "a" {
                    workspace.run("CREATE MATERIALIZED VIEW v AS SELECT a FROM t");
                }
                workspace.run(
                    "CREATE MATERIALIZED VIEW w AS SELECT * FROM v; DELETE FROM t; INSERT INTO t VALUES (1, 2)",
                );
                let expected = if column == "a" { ["1"] } else { ["2"] };
                assert_eq!(workspace.query("SELECT * FROM w"), expected, "{definition}");
                workspace.run("DROP VIEW w; DELETE FROM t");
            }
        }
    }
}

#[test]
fn strict_makes_the_first_error_of_a_view_fatal() {
    let mut workspace = Workspace::with(|builder| builder.workers(2).strict(true).batch_rows(2));
    workspace.file("t.csv", "1\n0\n");
    workspace.run(
        "CREATE TABLE t (a INT) WITH (connector = 'file', path = 't.csv');
         CREATE MATERIALIZED VIEW v AS SELECT 10 / a AS b FROM t",
    );
    // As a statement it could be told of the error already.
    workspace.engine.start().unwrap();
    let error = workspace.engine.wait_for_sources().unwrap_err().to_string();
    assert!(error.contains("view \"v\": division by zero in "), "{error}");
    assert!(error.ends_with("for the row a=0"), "{error}");
}

#[test]
fn a_table_that_only_has_connectors_passes_its_rows_on() {
    let mut workspace = Workspace::new();
    workspace.file("t.csv", "1\n2\n");
    workspace.run(
        "CREATE TABLE t (a INT) WITH (connector = 'file', path = 't.csv');
         CREATE MATERIALIZED VIEW v AS SELECT SUM(a) AS total FROM t",
    );
    assert_eq!(workspace.query("SELECT * FROM v"), ["3"]);
    let problem = workspace.problem("SELECT * FROM t");
    assert!(problem.contains("materialized"), "{problem}");
}

#[test]
fn dropping_a_table_ends_its_sources() {
    let mut workspace = Workspace::with(|builder| builder.workers(1).batch_rows(1));
    workspace.file("long.csv", "1\n".repeat(20_000));
    workspace.run(
        "CREATE TABLE t (a INT) WITH (connector = 'file', path = 'long.csv'); START; DROP TABLE t",
    );
    workspace.engine.wait_for_sources().unwrap();
    workspace.run("CREATE TABLE t (a INT)");
    assert!(workspace.query("SELECT * FROM t").is_empty());
}

/// They had the time at which their source was opened.
#[test]
fn rows_without_a_time_of_their_own_have_that_of_their_transaction() {
    let seconds = AtomicU64::new(1_000_000);
    let clock = move || UNIX_EPOCH + Duration::from_secs(seconds.fetch_add(1, Ordering::Relaxed));
    let mut workspace = Workspace::with(|builder| builder.workers(2).batch_rows(2).clock(clock));
    workspace.file("absent.csv", "id\n1\n2\n3\nno number\n5\n6\n7\n");
    workspace.file(
        "some.jsonl",
        "{\"id\": 10, \"at\": \"2001-01-01T00:00:00\"}\n{\"id\": 11}\n{\"id\": 12, \"at\": null}\n{\"id\": 13}\n",
    );
    workspace.run("COPY (SELECT * FROM (VALUES (20), (21), (22)) AS v (id)) TO 'absent.parquet'");
    let connectors = ["absent.csv", "some.jsonl", "absent.parquet"].map(|path| {
        format!(r#"{{"transport": {{"name": "file_input", "config": {{"path": "{path}"}}}}}}"#)
    });
    workspace.run(&format!(
        "CREATE TABLE t (id BIGINT, at TIMESTAMP DEFAULT LOCALTIMESTAMP, kind TEXT DEFAULT 'x')
             WITH ('materialized' = 'true', 'connectors' = '[{}]');
         CREATE VIEW fresh AS SELECT id FROM t WHERE at = LOCALTIMESTAMP;
         CREATE MATERIALIZED VIEW times AS SELECT COUNT(DISTINCT at) AS n FROM t WHERE at < TIMESTAMP '2000-01-01'",
        connectors.join(", ")
    ));
    let mut fresh = workspace.engine.subscribe("fresh").unwrap();
    workspace.run("START");
    workspace.engine.wait_for_sources().unwrap();
    workspace.run("CREATE TABLE later (a INT); INSERT INTO later VALUES (1)");
    assert_eq!(workspace.query("SELECT n FROM times"), ["8"]);
    // Each row was in the view in its own epoch, and in no other one.
    let mut seen = Vec::new();
    while let Some(change) = fresh.try_next().unwrap() {
        for (row, weight) in change.weights.iter().enumerate() {
            if *weight > 0 {
                seen.push(change.rows.column(0).as_primitive::<Int64Type>().value(row));
            }
        }
    }
    seen.sort_unstable();
    assert_eq!(seen, [1, 2, 3, 5, 6, 7, 11, 13, 20, 21, 22]);
}

#[test]
fn what_files_know_is_not_altered() {
    let mut workspace = Workspace::new();
    sales(&workspace);
    workspace.run(SALES);
    for change in
        ["ADD COLUMN n INT", "DROP COLUMN item", "RENAME COLUMN item TO i", "RENAME TO sales"]
    {
        let problem =
            workspace.problem(&format!("DROP VIEW IF EXISTS total; ALTER TABLE sale {change}"));
        assert!(problem.contains("come from a connector"), "{problem}");
    }
    workspace.run("CREATE TABLE t (n INT); CREATE MATERIALIZED VIEW v AS SELECT n FROM t");
    for (relation, alter) in
        [("v", "ALTER VIEW v RENAME TO w"), ("t", "ALTER TABLE t ADD COLUMN m INT")]
    {
        workspace.run("DROP VIEW v; CREATE MATERIALIZED VIEW v AS SELECT 1 AS n");
        let path = workspace.path(&format!("{relation}.csv"));
        workspace.engine.output(relation, path, None, &[], OutputMode::Contents).unwrap();
        let problem = workspace.problem(alter);
        assert!(problem.contains("written to a file"), "{problem}");
    }
}

#[test]
fn files_go_into_tables_of_any_schema_and_come_from_them() {
    let mut workspace = Workspace::new();
    workspace.file("in.csv", "a,b\n1,x\n2,y\n");
    workspace.run("CREATE SCHEMA s; CREATE TABLE s.t FROM 'in.csv'; CREATE TABLE public.t (a BIGINT, b VARCHAR)");
    workspace.run("COPY s.t FROM 'in.csv'");
    workspace.run("COPY public.t FROM 'in.csv'");
    assert_eq!(workspace.query("SELECT COUNT(*) FROM s.t"), ["4"]);
    workspace.run("COPY s.t (b) TO 'out.csv'");
    assert_eq!(workspace.content("out.csv").lines().count(), 5);
    // A file's name has a dot, and is no name in a schema.
    workspace.run("INSERT INTO s.t SELECT * FROM 'in.csv'");
    assert_eq!(workspace.query("SELECT COUNT(*) FROM s.t, 'in.csv' AS f WHERE t.a = f.a"), ["6"]);
    workspace.run(
        "CREATE TABLE s.u AS SELECT * FROM 'in.csv'; ALTER TABLE s.t ADD COLUMN c INT DEFAULT 3",
    );
    assert_eq!(
        workspace.query("SELECT t.c, u.b FROM s.t JOIN s.u USING (a) WHERE a = 1 LIMIT 1"),
        ["3|x"]
    );
    let problem = workspace.problem("CREATE TABLE none.t FROM 'in.csv'");
    assert!(problem.contains("no schema \"none\""), "{problem}");
}
