//! Opening a state directory without its last records.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use alluvium::arrow::array::{ArrayRef, Int64Array, RecordBatch};
use alluvium::{Builder, Engine, Result};
use tempfile::TempDir;

use crate::state_directory::{contents, copied, damage, open};
use crate::support::query;

fn builder(directory: &Path) -> Builder {
    Engine::builder()
        .workers(1)
        .checkpoints(Duration::MAX, u64::MAX)
        .state(format!("file:{}", directory.display()))
}

fn open_until(directory: &Path, epoch: u64) -> Result<Engine> {
    builder(directory).until(epoch).open()
}

/// A directory of ten epochs, which insert their numbers, with checkpoints of the third and the sixth, and views that are created
/// after the fourth and the eighth.
fn written() -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    let mut engine = open(directory.path()).unwrap();
    engine
        .execute(
            "CREATE TABLE t (n BIGINT); CREATE MATERIALIZED VIEW v AS SELECT SUM(n) AS s FROM t",
        )
        .unwrap();
    for n in 1..=10 {
        engine.execute(&format!("INSERT INTO t VALUES ({n})")).unwrap();
        match n {
            1 | 3 | 6 => {
                engine.execute("CHECKPOINT").unwrap();
                // Another engine begins another segment of the journal.
                drop(engine);
                engine = open(directory.path()).unwrap();
            }
            4 | 8 => {
                let view =
                    format!("CREATE MATERIALIZED VIEW behind_{n} AS SELECT MAX(n) AS m FROM t");
                engine.execute(&view).unwrap();
            }
            _ => {}
        }
    }
    drop(engine);
    drop(open(directory.path()).unwrap());
    directory
}

fn sum(engine: &Engine) -> i64 {
    query(engine, "SELECT s FROM v")[0].parse().unwrap()
}

fn names(engine: &Engine) -> Vec<String> {
    engine.relations().unwrap().into_iter().map(|relation| relation.name).collect()
}

#[test]
fn epochs_behind_one_are_left_out_and_put_aside() {
    let directory = written();
    for epoch in 3..=10_i64 {
        let copy = copied(directory.path());
        let path = copy.path();
        let engine = open_until(path, epoch as u64).unwrap();
        assert_eq!(engine.progress().committed, epoch as u64);
        assert_eq!(sum(&engine), epoch * (epoch + 1) / 2);
        // Definitions before the first epoch that is left out stay.
        let (behind_4, behind_8) = (epoch >= 4, epoch >= 8);
        let relations = names(&engine);
        assert_eq!(relations.iter().any(|name| name == "behind_4"), behind_4, "{epoch}");
        assert_eq!(relations.iter().any(|name| name == "behind_8"), behind_8, "{epoch}");
        let aside = engine.put_aside().map(Path::to_owned);
        assert_eq!(aside.is_some(), epoch < 10);
        engine.execute("INSERT INTO t VALUES (1000)").unwrap();
        if epoch % 2 == 0 {
            engine.execute("CHECKPOINT").unwrap();
        }
        drop(engine);
        assert_eq!(damage(path), [""; 0]);
        let engine = open(path).unwrap();
        assert_eq!((sum(&engine), engine.put_aside()), (epoch * (epoch + 1) / 2 + 1000, None));
        drop(engine);
        let Some(aside) = aside else { continue };
        assert_eq!(aside, path.join(format!("aside/until-{epoch}")));
        assert_eq!(damage(&aside), [""; 0]);
        let engine = open(&aside).unwrap();
        assert_eq!(sum(&engine), 55);
        assert!(names(&engine).contains(&"behind_8".to_owned()));
        // It can be taken back again, and what was put aside before stays.
        assert_eq!(sum(&open_until(path, epoch as u64).unwrap()), epoch * (epoch + 1) / 2);
        assert!(path.join(format!("aside/until-{epoch}-2")).is_dir() && aside.is_dir());
        assert_eq!(damage(path), [""; 0]);
    }
}

#[test]
fn epochs_that_cannot_be_opened_are_refused_with_those_that_can() {
    let directory = written();
    let before = contents(directory.path());
    for (epoch, expected) in [
        (
            2,
            "what was before epoch 3 is in no checkpoint that is kept; epochs 3 to 10 can be opened",
        ),
        (0, "epochs 3 to 10 can be opened"),
        (11, "it ends with epoch 10"),
    ] {
        let error = open_until(directory.path(), epoch).err().unwrap().to_string();
        assert!(error.contains(expected), "{error}");
    }
    assert_eq!(contents(directory.path()).len(), before.len());
    assert_eq!(sum(&open(directory.path()).unwrap()), 55);
    let error = Engine::builder().workers(1).until(1).open().err().unwrap().to_string();
    assert!(error.contains("without a state directory"), "{error}");
    let empty = tempfile::tempdir().unwrap();
    let error = open_until(empty.path(), 1).err().unwrap().to_string();
    assert!(error.contains("it ends with epoch 0"), "{error}");
}

#[test]
fn a_directory_without_checkpoints_is_taken_back_as_far_as_its_tables() {
    let directory = tempfile::tempdir().unwrap();
    let engine = open(directory.path()).unwrap();
    engine.execute("CREATE TABLE t (n BIGINT); INSERT INTO t VALUES (1)").unwrap();
    engine.execute("CREATE TABLE later (n BIGINT)").unwrap();
    drop(engine);
    // After the last epoch there are only definitions.
    let engine = open_until(directory.path(), 1).unwrap();
    assert_eq!(names(&engine), ["t"]);
    drop(engine);
    let engine = open_until(directory.path(), 0).unwrap();
    assert_eq!(
        (names(&engine), query(&engine, "SELECT n FROM t").len()),
        (vec!["t".to_owned()], 0)
    );
    assert_eq!(engine.execute("INSERT INTO t VALUES (2)").unwrap().len(), 1);
}

#[test]
fn a_commit_whose_weights_overflow_is_left_out() {
    let directory = tempfile::tempdir().unwrap();
    let engine = open(directory.path()).unwrap();
    engine
        .execute(
            "CREATE TABLE t (n BIGINT) WITH ('materialized' = 'false');
             CREATE MATERIALIZED VIEW v AS
                SELECT a.n FROM t AS a JOIN t AS b ON a.n = b.n JOIN t AS c ON b.n = c.n JOIN t AS d ON c.n = d.n",
        )
        .unwrap();
    let change = |engine: &Engine, n: i64, weight: i64| {
        let column: ArrayRef = Arc::new(Int64Array::from(vec![n]));
        let mut transaction = engine.begin()?;
        transaction.change("t", RecordBatch::try_from_iter([("n", column)]).unwrap(), &[weight])?;
        engine.wait(transaction.commit()?)
    };
    change(&engine, 1, 1).unwrap();
    // The weight of the row in the view is the fourth power, which is more than 2^63. This stops whoever computes it, now and at
    // each start.
    let _ = change(&engine, 2, i64::from(i32::MAX));
    drop(engine);
    let view = |engine: Result<Engine>| engine.and_then(|engine| engine.query("SELECT n FROM v"));
    assert!(view(open(directory.path())).is_err());
    let engine = open_until(directory.path(), 1).unwrap();
    assert_eq!(query(&engine, "SELECT n FROM v"), ["1"]);
    change(&engine, 3, 1).unwrap();
    assert_eq!(query(&engine, "SELECT n FROM v"), ["1", "3"]);
    drop(engine);
    assert_eq!(query(&open(directory.path()).unwrap(), "SELECT n FROM v"), ["1", "3"]);
    assert_eq!(damage(directory.path()), [""; 0]);
}
