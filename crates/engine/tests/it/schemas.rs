//! Relations in schemas, through restarts and the interface for programs.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use alluvium::Engine;
use alluvium::arrow::array::{ArrayRef, Int64Array, RecordBatch};

use crate::support::{engine_with, query, settled};

fn open(directory: &Path, workers: usize) -> Engine {
    let state = format!("file:{}", directory.display());
    let builder = Engine::builder().workers(workers).state(state);
    builder.checkpoints(Duration::MAX, u64::MAX).open().unwrap()
}

fn row(n: i64) -> RecordBatch {
    let column: ArrayRef = Arc::new(Int64Array::from(vec![n]));
    RecordBatch::try_from_iter([("n", column)]).unwrap()
}

#[test]
fn programs_name_relations_as_statements_do() {
    let engine = engine_with(
        2,
        "CREATE SCHEMA s; CREATE TABLE s.t (n BIGINT PRIMARY KEY); CREATE TABLE t (n BIGINT); CREATE TABLE \"s.t\" (n BIGINT);
         CREATE MATERIALIZED VIEW s.v AS SELECT n FROM s.t",
    );
    let mut transaction = engine.begin().unwrap();
    transaction.insert("s.t", row(1)).unwrap();
    transaction.insert_columns("s.t", &["n"], row(2)).unwrap();
    transaction.insert("public.t", row(3)).unwrap();
    transaction.insert("t", row(4)).unwrap();
    transaction.insert("\"s.t\"", row(5)).unwrap();
    transaction.delete("s.t", row(2)).unwrap();
    let error = transaction.insert("s.none", row(1)).unwrap_err().to_string();
    assert!(error.contains("no table or view \"s.none\""), "{error}");
    transaction.commit().unwrap();
    assert_eq!(settled(&engine, "SELECT * FROM s.v"), ["1"]);
    assert_eq!(query(&engine, "SELECT * FROM t"), ["3", "4"]);
    assert_eq!(query(&engine, "SELECT * FROM \"s.t\""), ["5"]);
    assert_eq!(engine.view("s.t").unwrap().get(&[1_i64.into()]).unwrap().num_rows(), 1);
    let mut subscription = engine.subscribe("s.v").unwrap();
    assert_eq!(subscription.next().unwrap().unwrap().rows.num_rows(), 1);
    let mut subscription = engine.subscribe("public.t").unwrap();
    assert_eq!(subscription.next().unwrap().unwrap().rows.num_rows(), 2);
    engine.execute("DROP TABLE t").unwrap();
    assert!(subscription.next().is_none(), "it ends with its table, whatever it was called");
    let names: Vec<String> =
        engine.relations().unwrap().into_iter().map(|relation| relation.name).collect();
    assert_eq!(names, ["\"s.t\"", "s.t", "s.v"]);
    assert_eq!(engine.schemas(), ["s"]);
}

#[test]
fn schemas_and_what_is_in_them_go_on_after_a_restart() {
    for is_saved in [false, true] {
        let directory = tempfile::tempdir().unwrap();
        let again = |engine: Engine, workers| {
            if is_saved {
                engine.execute("CHECKPOINT").unwrap();
            }
            drop(engine);
            open(directory.path(), workers)
        };
        let engine = open(directory.path(), 2);
        engine
            .execute(
                "CREATE SCHEMA \"S\"; CREATE SCHEMA empty; CREATE TABLE \"S\".t (n BIGINT PRIMARY KEY, m BIGINT);
                 CREATE TABLE t (n BIGINT); CREATE TABLE \"S.t\" (n BIGINT);
                 CREATE MATERIALIZED VIEW \"S\".\"v.w\" AS SELECT SUM(m) AS s FROM \"S\".t;
                 INSERT INTO \"S\".t VALUES (1, 1), (2, 2); INSERT INTO \"S.t\" VALUES (9)",
            )
            .unwrap();
        let engine = again(engine, 3);
        engine.execute("INSERT OR REPLACE INTO \"S\".t VALUES (2, 5); DELETE FROM t").unwrap();
        assert_eq!(settled(&engine, "SELECT * FROM \"S\".\"v.w\""), ["6"]);
        assert_eq!(query(&engine, "SELECT * FROM \"S.t\""), ["9"]);
        assert_eq!(engine.schemas(), ["S", "empty"]);
        engine
            .execute(
                "ALTER VIEW \"S\".\"v.w\" RENAME TO v; DROP SCHEMA empty;
                 CREATE VIEW over AS SELECT s FROM \"S\".v; CREATE TABLE \"S\".u (n INT); ALTER TABLE \"S\".u ADD COLUMN m INT",
            )
            .unwrap();
        let engine = again(engine, 1);
        assert_eq!(settled(&engine, "SELECT * FROM over"), ["6"]);
        engine.execute("DROP SCHEMA \"S\" CASCADE").unwrap();
        let engine = again(engine, 2);
        let names = "SELECT table_name FROM information_schema.tables";
        assert_eq!(query(&engine, names), ["S.t", "t"]);
        assert_eq!(engine.schemas(), [""; 0]);
    }
}

/// Sequences used to outlive their schema.
#[test]
fn a_schema_goes_with_its_sequences() {
    let engine = engine_with(
        1,
        "CREATE SCHEMA s; CREATE SEQUENCE s.q; CREATE TABLE t (a BIGINT DEFAULT nextval('s.q'), b INT)",
    );
    let refused = engine.execute("DROP SCHEMA s").unwrap_err().to_string();
    assert!(refused.contains("\"t\" takes values of \"s.q\""), "{refused}");
    engine.execute("DROP TABLE t").unwrap();
    assert!(engine.execute("DROP SCHEMA s").is_err());
    engine.execute("DROP SCHEMA s CASCADE").unwrap();
    assert!(engine.sequences().is_empty());
    engine.execute("CREATE SCHEMA s; CREATE SEQUENCE s.q").unwrap();
}
