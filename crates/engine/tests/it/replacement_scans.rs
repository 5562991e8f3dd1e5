//! Queries that name what is no relation, and read what a program says stands for it.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use alluvium::arrow::array::{ArrayRef, Int64Array, RecordBatch};
use alluvium::arrow::datatypes::{DataType, Field, Schema};
use alluvium::{
    Engine, Error, FileAccess, Inferred, Outcome, Portion, Result, Session, Source, SourceReader,
    SourceRequest,
};

use crate::support::{lines, query};

/// Reads `numbers:N`: the numbers from 1 to N, as column `n`.
struct Numbers;

struct Reading(Option<RecordBatch>);

impl Source for Numbers {
    fn name(&self) -> &str {
        "numbers"
    }

    fn handles(&self, path: &Path) -> bool {
        path.to_str().is_some_and(|path| path.starts_with("numbers:"))
    }

    fn infer(&self, _: &Path, _: &[(String, String)]) -> Result<Inferred> {
        let schema = Schema::new(vec![Field::new("n", DataType::Int64, true)]);
        Ok(Inferred::new(Arc::new(schema), Vec::new()))
    }

    fn open(&self, request: &SourceRequest) -> Result<Box<dyn SourceReader>> {
        let path = request.path.to_str().and_then(|path| path.strip_prefix("numbers:"));
        let last: i64 = path.and_then(|last| last.parse().ok()).expect("a number");
        let column: ArrayRef = Arc::new(Int64Array::from_iter_values(1..=last));
        let rows = RecordBatch::try_new(request.schema.clone(), vec![column])?;
        Ok(Box::new(Reading(Some(rows))))
    }
}

impl SourceReader for Reading {
    fn next(&mut self) -> Result<Option<Portion>> {
        Ok(self.0.take().map(Portion::new))
    }
}

fn engine() -> Engine {
    let engine =
        Engine::builder().workers(2).source(Numbers).open_in_memory().expect("an engine starts");
    engine
        .execute("CREATE TABLE t (n BIGINT); INSERT INTO t VALUES (2), (3), (7)")
        .expect("a table is created");
    engine
}

/// A session for which `frame`, and a table's name, stand for the numbers up to three.
fn session(engine: &Engine) -> Session {
    let mut session = engine.session();
    session.set_replacement_scan(|name| {
        matches!(name, "frame" | "t").then(|| PathBuf::from("numbers:3"))
    });
    session
}

fn rows(session: &mut Session, sql: &str) -> Result<Vec<String>> {
    match session.execute_with(sql, &[])? {
        Outcome::Rows(rows) => Ok(lines(&rows.into_batches()?)),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_name_that_is_no_relation_stands_for_a_path() {
    let engine = engine();
    let mut session = session(&engine);
    let found = rows(&mut session, "SELECT SUM(n) FROM Frame").expect("it is read");
    assert_eq!(found, ["6"]);
    let joined = "SELECT f.n FROM frame AS f JOIN t ON f.n = t.n ORDER BY 1";
    assert_eq!(rows(&mut session, joined).expect("they are joined"), ["2", "3"]);
    let twice = "SELECT COUNT(*) FROM frame AS a, frame AS b";
    assert_eq!(rows(&mut session, twice).expect("it is read twice"), ["9"]);
    session
        .execute("INSERT INTO t SELECT n + 10 FROM frame; CREATE TABLE u AS SELECT * FROM frame")
        .expect("it is inserted");
    assert_eq!(query(&engine, "SELECT SUM(n) FROM t"), ["48"]);
    assert_eq!(query(&engine, "SELECT SUM(n) FROM u"), ["6"]);
}

#[test]
fn relations_and_names_of_the_statement_come_first() {
    let engine = engine();
    let mut session = session(&engine);
    assert_eq!(rows(&mut session, "SELECT SUM(n) FROM t").expect("a table"), ["12"]);
    let with = "WITH frame AS (SELECT 5 AS n) SELECT n FROM frame";
    assert_eq!(rows(&mut session, with).expect("a part of the statement"), ["5"]);
    session.execute("CREATE TEMPORARY TABLE frame (n BIGINT)").expect("a temporary table");
    assert_eq!(rows(&mut session, "SELECT COUNT(*) FROM frame").expect("that table"), ["0"]);
}

#[test]
fn it_is_asked_each_time() {
    let engine = engine();
    let mut session = engine.session();
    let last = Arc::new(AtomicI64::new(0));
    session.set_replacement_scan({
        let last = last.clone();
        move |_| Some(PathBuf::from(format!("numbers:{}", last.fetch_add(1, Ordering::Relaxed))))
    });
    // Plans of texts that run again are kept, but not of these.
    for expected in ["0", "1", "2", "3"] {
        let counted = rows(&mut session, "SELECT COUNT(*) FROM frame").expect("it is read");
        assert_eq!(counted, [expected]);
    }
}

#[test]
fn file_access_does_not_limit_it() {
    let engine = engine();
    let mut session = session(&engine);
    session.set_file_access(FileAccess::Nothing);
    assert_eq!(rows(&mut session, "SELECT MAX(n) FROM frame").expect("it is read"), ["3"]);
    let denied = rows(&mut session, "SELECT * FROM 'numbers:3'");
    assert!(matches!(denied, Err(Error::Denied { .. })), "{denied:?}");
}

#[test]
fn errors_say_where_they_are() {
    let engine = engine();
    let mut session = session(&engine);
    let failed = rows(&mut session, "SELECT n,\n  CAST('x' AS BIGINT) FROM frame");
    let failed = failed.expect_err("no number");
    assert_eq!(failed.position(), Some((2, 8)), "{failed}");
    let failed = rows(&mut session, "SELECT m FROM frame").expect_err("no such column");
    assert_eq!(failed.position(), Some((1, 8)), "{failed}");
    let unknown = rows(&mut session, "SELECT * FROM other").expect_err("no such name");
    assert_eq!(unknown.sqlstate().to_string(), "42P01", "{unknown}");
}

#[test]
fn views_do_not_read_it() {
    let engine = engine();
    let mut session = session(&engine);
    let error = session.execute("CREATE VIEW v AS SELECT * FROM frame").expect_err("no view");
    assert_eq!(error.sqlstate().to_string(), "42P01", "{error}");
    let error = engine.execute("SELECT * FROM frame").expect_err("another session");
    assert_eq!(error.sqlstate().to_string(), "42P01", "{error}");
}

#[test]
fn statements_that_change_rows_read_it() {
    let engine = engine();
    let mut session = session(&engine);
    let mut changed = |sql: &str| match session.execute_with(sql, &[]) {
        Ok(Outcome::Changed { rows, .. }) => rows,
        other => panic!("{sql}: {other:?}"),
    };
    assert_eq!(changed("UPDATE t SET n = t.n * 10 FROM frame AS f WHERE t.n = f.n"), 2);
    assert_eq!(changed("UPDATE t SET n = (SELECT MAX(n) FROM frame) WHERE n = 20"), 1);
    assert_eq!(changed("DELETE FROM t USING frame WHERE t.n = frame.n * 10"), 1);
    assert_eq!(changed("DELETE FROM t WHERE n IN (SELECT n FROM frame)"), 1);
    assert_eq!(query(&engine, "SELECT n FROM t"), ["7"]);
    for sql in ["UPDATE frame SET n = 1", "DELETE FROM frame", "INSERT INTO frame VALUES (1)"] {
        let error = session.execute_with(sql, &[]).expect_err("it is no table");
        assert!(
            error.to_string().contains("is not a table: only tables can be changed"),
            "{error}"
        );
    }
    let prepared = session.prepare("DELETE FROM t USING frame WHERE t.n = frame.n + $1");
    let prepared = prepared.expect("it is prepared");
    let ran = session.execute_prepared(&prepared, &[4_i64.into()]).expect("it runs");
    assert!(matches!(ran, Outcome::Changed { rows: 1, .. }), "{ran:?}");
}
