//! CREATE TABLE … AS with a state directory: the table has its rows, or is not there.

use alluvium_storage::SimulatedDisk;

use crate::checkpoints::on_with;
use crate::crashes::Crashes;
use crate::support::query;

/// The table and its rows were two records of the journal: a crash between them left an empty table.
#[test]
fn a_crash_leaves_the_table_with_all_rows_or_none() {
    const STATEMENTS: [&str; 4] = [
        "CREATE TABLE copied AS SELECT a.n FROM t AS a, t AS b",
        "CHECKPOINT",
        "CREATE TABLE nothing AS SELECT n FROM t WHERE n < 0",
        "INSERT INTO copied VALUES (7)",
    ];
    let crashes = Crashes {
        workers: 1,
        before: "CREATE TABLE t (n BIGINT); INSERT INTO t SELECT * FROM range(200)",
        statements: &STATEMENTS,
        step: 7,
    };
    let mut missing = 0;
    let calls = crashes.each(|call, disk, done| {
        // Dropped relations stay dropped.
        for _ in 0..2 {
            let engine = on_with(disk, 2).unwrap_or_else(|error| panic!("call {call}: {error}"));
            let is_there = engine.relations().unwrap().iter().any(|info| info.name == "copied");
            assert!(is_there || done == 0, "call {call}: it was acknowledged");
            if is_there {
                let count = query(&engine, "SELECT COUNT(*) FROM copied");
                assert!(count == ["40000"] || count == ["40001"], "call {call}: {count:?}");
            }
            let is_there = engine.relations().unwrap().iter().any(|info| info.name == "nothing");
            assert!(is_there || done < 3, "call {call}: it was acknowledged");
        }
        let engine = on_with(disk, 2).unwrap();
        if engine.execute("CREATE TABLE copied AS SELECT n FROM t").is_ok() {
            missing += 1;
            assert_eq!(query(&engine, "SELECT COUNT(*) FROM copied"), ["200"]);
        }
    });
    assert!(calls > 20, "{calls}");
    assert!(missing > 1, "{missing}");
}

/// A transaction's key is committed with the rows: who does not know whether the statement was done repeats it.
#[test]
fn a_statement_with_a_key_is_done_once() {
    let disk = SimulatedDisk::new(1);
    for _ in 0..2 {
        let engine = on_with(&disk, 1).unwrap();
        let mut session = engine.session();
        session.set_key("once");
        session.execute("CREATE TABLE t AS SELECT * FROM range(10) AS r").unwrap();
        assert_eq!(query(&engine, "SELECT COUNT(*), SUM(r) FROM t"), ["10 45"]);
    }
}

/// The place of one that has failed is free, and the table that takes it has no rows yet.
#[test]
fn another_table_of_the_name_stays() {
    let disk = SimulatedDisk::new(2);
    let engine = on_with(&disk, 1).unwrap();
    engine.execute("CREATE TABLE t (n BIGINT); INSERT INTO t VALUES (1), (0)").unwrap();
    engine.execute("CREATE TABLE copied AS SELECT 1 / n AS n FROM t").unwrap_err();
    engine.execute("CREATE TABLE copied (n BIGINT)").unwrap();
    engine.execute("CREATE TABLE none AS SELECT n FROM t WHERE n > 7").unwrap();
    drop(engine);
    for _ in 0..2 {
        let engine = on_with(&disk, 2).unwrap();
        let names: Vec<String> =
            engine.relations().unwrap().into_iter().map(|info| info.name).collect();
        assert_eq!(names, ["copied", "none", "t"]);
        engine.execute("CHECKPOINT").unwrap();
    }
}
