//! Inputs whose rows come while they are read.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use alluvium::{Engine, Outcome, SourceState};
use arrow::array::{AsArray, RecordBatch};
use arrow::datatypes::Int64Type;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use tempfile::TempDir;

/// How long rows may take to arrive, on a machine that is busy with other tests.
const PATIENCE: Duration = Duration::from_secs(600);

fn table(path: &Path, options: &str) -> String {
    let path = path.display();
    format!(
        "CREATE TABLE t (id BIGINT, s VARCHAR) WITH (connector = 'file', path = '{path}'{options}, \
         materialized = 'true')"
    )
}

fn engine(path: &Path, options: &str) -> Engine {
    let engine = alluvium_connect::formats(Engine::builder().workers(1)).open_in_memory().unwrap();
    engine.execute(&table(path, options)).unwrap();
    engine
}

/// Waits until the table has so many rows, and returns the sum of their ids.
fn wait(engine: &Engine, rows: i64) -> i64 {
    let start = Instant::now();
    loop {
        let answer = engine.query("SELECT COUNT(*), COALESCE(SUM(id), 0) FROM t").unwrap();
        let value = |column| answer[0].column(column).as_primitive::<Int64Type>().value(0);
        if value(0) >= rows {
            assert_eq!(value(0), rows);
            return value(1);
        }
        assert!(start.elapsed() < PATIENCE, "{} of {rows} rows", value(0));
        for source in engine.progress().sources {
            assert!(!matches!(source.state, SourceState::Failed { .. }), "{source:?}");
        }
        thread::sleep(Duration::from_millis(5));
    }
}

fn append(path: &Path, text: &str) {
    OpenOptions::new().append(true).open(path).unwrap().write_all(text.as_bytes()).unwrap();
}

#[test]
fn rows_of_a_pipe_are_there_while_it_is_open() {
    let folder = TempDir::new().unwrap();
    let csv = ["1,a\n2,b\n3,", "c\n4,\"x\n", "y\"\n"];
    let jsonl = [
        "{\"id\": 1, \"s\": \"a\"}\n{\"id\": 2}\n{\"id\": 3,",
        "\"s\": \"c\"}\n{\"id\"",
        ": 4, \"s\": \"x\\ny\"}\n",
    ];
    for (format, [first, second, third]) in [("csv", csv), ("jsonl", jsonl)] {
        let path = folder.path().join(format!("pipe.{format}"));
        assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
        let engine = engine(&path, ", linger_ms = '20'");
        let started = {
            let engine = engine.clone();
            thread::spawn(move || engine.start())
        };
        let mut pipe = OpenOptions::new().write(true).open(&path).unwrap();
        pipe.write_all(first.as_bytes()).unwrap();
        started.join().unwrap().unwrap();
        assert_eq!(wait(&engine, 2), 3, "the third row is not whole");
        pipe.write_all(second.as_bytes()).unwrap();
        // In CSV a record may continue after the end of its line; then the row before it waits, too.
        if format == "jsonl" {
            assert_eq!(wait(&engine, 3), 6);
        }
        pipe.write_all(third.as_bytes()).unwrap();
        assert_eq!(wait(&engine, 4), 10);
        for _ in 0..2000 {
            let row = if format == "csv" { "0,\n" } else { "{\"id\": 0}\n" };
            pipe.write_all(row.as_bytes()).unwrap();
        }
        wait(&engine, 2004);
        assert!(engine.progress().committed < 1000, "rows come together");
        drop(pipe);
        engine.wait_for_sources().unwrap();
    }
}

#[test]
fn a_file_is_followed_where_it_grows() {
    let folder = TempDir::new().unwrap();
    for (name, start) in [("a.csv", "s,id\n"), ("b.csv", ""), ("c.jsonl", "")] {
        let path = folder.path().join(name);
        fs::write(&path, start).unwrap();
        let engine = engine(&path, ", follow = 'true', linger_ms = '10'");
        let row = |id: i64| match name {
            "a.csv" => format!("\"x,\n{id}\",{id}\n"),
            "b.csv" => format!("{id},x\n"),
            _ => format!("{{\"id\": {id}}}\n"),
        };
        engine.start().unwrap();
        assert_eq!(wait(&engine, 0), 0);
        let mut sum = 0;
        for id in 1..=30 {
            let row = row(id);
            let (head, tail) = row.split_at(row.len() * (id as usize % 4) / 4);
            append(&path, head);
            if id % 3 == 0 {
                // It may be read before it is whole.
                thread::sleep(Duration::from_millis(30));
            }
            append(&path, tail);
            sum += id;
            if id % 5 == 0 {
                assert_eq!(wait(&engine, id), sum, "{name}");
            }
        }
        let [source] = &engine.progress().sources[..] else { panic!() };
        assert_eq!((&source.state, source.refused), (&SourceState::Running, 0));
        // It is cut off, or another one takes its place.
        let expected = match name {
            "b.csv" => {
                fs::remove_file(&path).unwrap();
                fs::write(&path, row(31)).unwrap();
                "replaced by another file"
            }
            _ => {
                File::create(&path).unwrap();
                "shorter than what was read of it before"
            }
        };
        let error = engine.wait_for_sources().unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
        assert_eq!(wait(&engine, 30), sum);
    }
}

#[test]
fn a_followed_file_ends_with_its_table() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("a.csv");
    fs::write(&path, "1,a\n").unwrap();
    let engine = engine(&path, ", follow = 'true'");
    engine.start().unwrap();
    wait(&engine, 1);
    let waiting = {
        let engine = engine.clone();
        thread::spawn(move || engine.wait_for_sources())
    };
    engine.execute("DROP TABLE t").unwrap();
    waiting.join().unwrap().unwrap();
    append(&path, "2,b\n");
    // The same file for another table, from its start.
    engine.execute(&table(&path, "")).unwrap();
    engine.start().unwrap();
    engine.wait_for_sources().unwrap();
    assert_eq!(wait(&engine, 2), 3);
}

#[test]
fn a_followed_file_goes_on_after_a_restart() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("a.csv");
    fs::write(&path, "id,s\n").unwrap();
    let open = || {
        let state = format!("file:{}", folder.path().join("state").display());
        alluvium_connect::formats(Engine::builder().workers(1).state(state)).open().unwrap()
    };
    let engine = open();
    engine.execute(&table(&path, ", follow = 'true', linger_ms = '1'")).unwrap();
    let (mut engine, mut sum) = (engine, 0);
    for round in 1..=6 {
        engine.start().unwrap();
        for id in 1..=10 {
            append(&path, &format!("{},x\n", round * 100 + id));
            sum += round * 100 + id;
        }
        assert_eq!(wait(&engine, 10 * round), sum);
        if round % 2 == 0 {
            engine.checkpoint().unwrap();
        }
        drop(engine);
        engine = open();
        assert_eq!(wait(&engine, 10 * round), sum);
        let lag = "SELECT lag_bytes, lag_rows, lag_ms FROM alluvium.sources";
        let start = Instant::now();
        while lines(&engine, lag) != ["0 0 0"] {
            assert!(start.elapsed() < PATIENCE, "{:?}", lines(&engine, lag));
        }
        let lines_read = format!("{}:{}", path.display(), 10 * round + 1);
        assert_eq!(lines(&engine, "SELECT position FROM alluvium.sources"), [lines_read]);
    }
}

#[test]
fn what_cannot_be_followed_is_refused() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("a.csv");
    fs::write(&path, "1,a\n").unwrap();
    fs::write(folder.path().join("b.csv"), "1,a\n").unwrap();
    let engine = alluvium_connect::formats(Engine::builder().workers(1)).open_in_memory().unwrap();
    let refused = |sql: &str| engine.execute(sql).unwrap_err().to_string();
    let error = refused(&table(&path, ", follow = 'maybe'"));
    assert!(error.contains("\"follow\" is true or false, not \"maybe\""), "{error}");
    let error = refused(&table(&path, ", linger_ms = '-1'"));
    assert!(error.contains("\"linger_ms\" is a number of milliseconds"), "{error}");
    let error = refused(&table(&folder.path().join("a.parquet"), ", follow = 'true'"));
    assert!(error.contains("the format parquet cannot \"follow\" a file"), "{error}");
    let output = "CREATE VIEW v WITH (connector = 'file', path = 'v.csv', follow = 'true') AS SELECT 1 AS one";
    assert!(refused(output).contains("a file_output has no \"follow\""));
    let copy = format!(
        "CREATE TABLE c (id BIGINT, s VARCHAR); COPY c FROM '{}' (FOLLOW true)",
        path.display()
    );
    assert!(refused(&copy).contains("no option \"FOLLOW\""));
    engine.execute(&table(&folder.path().join("*.csv"), ", follow = 'true'")).unwrap();
    let error = engine.start().unwrap_err().to_string();
    assert!(error.contains("matches 2 files, and \"follow\" reads one"), "{error}");
    engine.execute("DROP TABLE t").unwrap();
    let gzip = folder.path().join("c.csv.gz");
    let mut encoder =
        flate2::write::GzEncoder::new(File::create(&gzip).unwrap(), flate2::Compression::default());
    encoder.write_all(b"1,a\n").unwrap();
    encoder.finish().unwrap();
    engine.execute(&table(&gzip, ", follow = 'true'")).unwrap();
    let error = engine.start().unwrap_err().to_string();
    assert!(error.contains("compressed, so that \"follow\" cannot read it"), "{error}");
}

/// The rows of an answer, as lines.
fn lines(engine: &Engine, sql: &str) -> Vec<String> {
    lines_of(&engine.query(sql).unwrap())
}

fn lines_of(batches: &[RecordBatch]) -> Vec<String> {
    let line = |batch: &RecordBatch| {
        let columns = batch.columns().iter();
        let options = FormatOptions::default().with_null("NULL");
        let columns: Vec<_> =
            columns.map(|it| ArrayFormatter::try_new(it, &options).unwrap()).collect();
        let of = |row| columns.iter().map(|it| it.value(row).to_string()).collect::<Vec<_>>();
        (0..batch.num_rows()).map(|row| of(row).join(" ")).collect::<Vec<_>>()
    };
    batches.iter().flat_map(line).collect()
}

#[test]
fn sources_and_outputs_tell_how_far_they_are() {
    let folder = TempDir::new().unwrap();
    let (input, output) = (folder.path().join("t.csv"), folder.path().join("changes.csv"));
    fs::write(&input, "1,a\n2,b\nx,c\n").unwrap();
    let engine = engine(&input, ", follow = 'true', linger_ms = '10'");
    let sources = "SELECT relation, number, state, error, rows, bytes, refused, minute_rows, lag_bytes, lag_rows, lag_ms,
                   last_rows IS NOT NULL FROM alluvium.sources";
    let view = format!(
        "CREATE MATERIALIZED VIEW v WITH (connector = 'file', path = '{}', mode = 'changes') AS SELECT id * 2 AS id FROM t",
        output.display()
    );
    engine.execute(&view).unwrap();
    engine.start().unwrap();
    wait(&engine, 2);
    let until = |sql: &str, expected: &str| {
        let start = Instant::now();
        loop {
            let lines = lines(&engine, sql);
            if lines == [expected] {
                break;
            }
            assert!(start.elapsed() < PATIENCE, "{lines:?}");
            thread::sleep(Duration::from_millis(5));
        }
    };
    until(sources, "t 0 running NULL 2 12 1 2 0 0 0 true");
    let outputs = "SELECT relation, mode, state, error, rows, minute_rows, lag_epochs, lag_rows, lag_bytes, lag_ms,
                   epoch > 0, last_rows IS NOT NULL FROM alluvium.outputs";
    until(outputs, "v changes running NULL 2 2 0 0 0 0 true true");
    append(&input, "4,d\n");
    wait(&engine, 3);
    until(sources, "t 0 running NULL 3 16 1 3 0 0 0 true");
    until(outputs, "v changes running NULL 3 3 0 0 0 0 true true");
    let position = lines(&engine, "SELECT position FROM alluvium.sources");
    assert_eq!(position, [format!("{}:4", input.display())]);
    assert_eq!(fs::read_to_string(&output).unwrap().lines().count(), 4);
}

#[test]
fn a_role_sees_the_sources_and_outputs_of_what_it_may_select_from() {
    let folder = TempDir::new().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let engine = alluvium_connect::formats(Engine::builder().workers(1)).open_in_memory().unwrap();
    for table in ["t", "secret"] {
        fs::write(path(table), "1\n").unwrap();
        let (input, output) = (path(table), path(&format!("of_{table}.csv")));
        engine
            .execute(&format!(
                "CREATE TABLE {table} (k BIGINT) WITH (connector = 'file', path = '{input}', format = 'csv');
                 CREATE VIEW of_{table} WITH (connector = 'file', path = '{output}') AS SELECT k + 1 AS k FROM {table}"
            ))
            .unwrap();
    }
    engine
        .execute(
            "CREATE ROLE root SUPERUSER LOGIN PASSWORD 'SCRAM-SHA-256$4096:c2FsdA==$a:b'; CREATE ROLE ada;
             GRANT SELECT ON t TO ada; GRANT SELECT ON of_t TO ada; START",
        )
        .unwrap();
    engine.wait_for_sources().unwrap();
    for (sql, all, shown) in [
        ("SELECT relation FROM alluvium.sources ORDER BY relation", "secret t", "t"),
        ("SELECT relation FROM alluvium.outputs ORDER BY relation", "of_secret of_t", "of_t"),
    ] {
        assert_eq!(lines(&engine, sql).join(" "), all);
        let mut ada = engine.session();
        ada.set_role("ada").unwrap();
        let Some(Outcome::Rows(rows)) = ada.execute(sql).unwrap().pop() else { panic!("rows") };
        let rows = rows.collect::<Result<Vec<_>, _>>().unwrap();
        assert_eq!(lines_of(&rows).join(" "), shown);
    }
}
