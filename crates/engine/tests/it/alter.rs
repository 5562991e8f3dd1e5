//! ALTER: rows stay, through restarts and on other numbers of workers.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::mpsc;
use std::time::Duration;

use alluvium::arrow::array::{ArrayRef, Int64Array, RecordBatch};
use alluvium::{Conflict, Engine, Error};

use crate::checkpoints::{DEFINITIONS, Minutes, RELATIONS, change, change_named, shown, with};
use crate::crashes::Crashes;
use crate::support::{engine, engine_with, query, settled, without_hanging};

/// An engine with a state directory, which takes checkpoints when it is told to.
fn open(directory: &Path, workers: usize, memory: Option<usize>) -> Engine {
    let state = format!("file:{}", directory.display());
    let builder = Engine::builder().workers(workers).memory(memory);
    builder.state(state).checkpoints(Duration::MAX, u64::MAX).open().unwrap()
}

fn failure(engine: &Engine, sql: &str) -> String {
    engine.execute(sql).unwrap_err().to_string()
}

/// The columns of a relation with their types, NULL, key and default.
fn described(engine: &Engine, name: &str) -> Vec<String> {
    match engine.execute(&format!("DESCRIBE {name}")).unwrap().pop() {
        Some(alluvium::Outcome::Rows(rows)) => {
            crate::support::batch_lines(&rows.into_batches().unwrap()[0])
        }
        other => panic!("DESCRIBE has rows, not {other:?}"),
    }
}

/// Statements, and what `t` or another table holds after each.
const STEPS: &[(&str, &str, &[&str])] = &[
    ("CREATE TABLE t (id BIGINT PRIMARY KEY, v VARCHAR, w INT)", "t", &[]),
    ("INSERT INTO t VALUES (1, 'a', 10), (2, 'b', NULL)", "t", &["1 a 10", "2 b NULL"]),
    ("ALTER TABLE t ADD COLUMN x BIGINT", "t", &["1 a 10 NULL", "2 b NULL NULL"]),
    ("INSERT OR REPLACE INTO t VALUES (2, 'c', 20, 5)", "t", &["1 a 10 NULL", "2 c 20 5"]),
    (
        "ALTER TABLE t ADD COLUMN y VARCHAR NOT NULL DEFAULT 'd'",
        "t",
        &["1 a 10 NULL d", "2 c 20 5 d"],
    ),
    ("INSERT INTO t (id) VALUES (3)", "t", &["1 a 10 NULL d", "2 c 20 5 d", "3 NULL NULL NULL d"]),
    ("ALTER TABLE t DROP COLUMN v", "t", &["1 10 NULL d", "2 20 5 d", "3 NULL NULL d"]),
    ("UPDATE t SET y = 'e' WHERE w IS NULL", "t", &["1 10 NULL d", "2 20 5 d", "3 NULL NULL e"]),
    ("ALTER TABLE t RENAME COLUMN w TO v", "t", &["1 10 NULL d", "2 20 5 d", "3 NULL NULL e"]),
    ("DELETE FROM t WHERE v = 10", "t", &["2 20 5 d", "3 NULL NULL e"]),
    ("ALTER TABLE t RENAME TO u", "u", &["2 20 5 d", "3 NULL NULL e"]),
    ("INSERT OR REPLACE INTO u VALUES (2, 1, 1, 'f')", "u", &["2 1 1 f", "3 NULL NULL e"]),
    ("ALTER TABLE u RENAME COLUMN id TO key", "u", &["2 1 1 f", "3 NULL NULL e"]),
    ("INSERT OR REPLACE INTO u VALUES (3, 2, 2, 'g')", "u", &["2 1 1 f", "3 2 2 g"]),
    // The old name is free, for a table of the old shape too.
    ("CREATE TABLE t (id BIGINT PRIMARY KEY, v VARCHAR, w INT)", "t", &[]),
    ("INSERT INTO t VALUES (7, 'new', 7)", "u", &["2 1 1 f", "3 2 2 g"]),
    ("ALTER TABLE t DROP COLUMN IF EXISTS none", "t", &["7 new 7"]),
    ("ALTER TABLE t ADD COLUMN IF NOT EXISTS v INT", "t", &["7 new 7"]),
    ("ALTER TABLE IF EXISTS none ADD COLUMN v INT", "t", &["7 new 7"]),
    ("ALTER TABLE t ADD COLUMN a INT; ALTER TABLE t DROP COLUMN a", "t", &["7 new 7"]),
    // Copies of rows stay as many.
    ("CREATE TABLE bag (a INT, b INT)", "bag", &[]),
    (
        "INSERT INTO bag VALUES (1, 1), (1, 1), (1, 2), (NULL, NULL)",
        "bag",
        &["1 1", "1 1", "1 2", "NULL NULL"],
    ),
    ("ALTER TABLE bag DROP COLUMN b", "bag", &["1", "1", "1", "NULL"]),
    ("DELETE FROM bag WHERE a = 1; INSERT INTO bag VALUES (5)", "bag", &["5", "NULL"]),
    ("CREATE MATERIALIZED VIEW s AS SELECT COUNT(*) AS n, SUM(v) AS v FROM u", "s", &["2 3"]),
    ("DELETE FROM u WHERE key = 2", "s", &["1 2"]),
    ("CREATE TABLE k (a BIGINT, b VARCHAR)", "k", &[]),
    ("INSERT INTO k VALUES (2, 'two'), (1, 'one')", "k", &["1 one", "2 two"]),
    ("ALTER TABLE k ADD PRIMARY KEY (a)", "k", &["1 one", "2 two"]),
    ("INSERT OR REPLACE INTO k VALUES (1, 'uno')", "k", &["1 uno", "2 two"]),
    ("ALTER TABLE k ADD CONSTRAINT short CHECK (length(b) < 5)", "k", &["1 uno", "2 two"]),
    ("UPDATE k SET b = 'due' WHERE a = 2", "k", &["1 uno", "2 due"]),
];

/// Goes through the steps, and restarts after each: from a checkpoint after some of them, and else from the
/// journal.
fn goes_through(workers: &[usize], memory: Option<usize>, is_saved: impl Fn(usize) -> bool) {
    let directory = tempfile::tempdir().unwrap();
    let mut engine = open(directory.path(), workers[0], memory);
    for (place, (sql, table, rows)) in STEPS.iter().enumerate() {
        engine.execute(sql).unwrap();
        let select = format!("SELECT * FROM {table}");
        assert_eq!(settled(&engine, &select), *rows, "{sql}");
        if is_saved(place) {
            engine.execute("CHECKPOINT").unwrap();
        }
        let (epoch, columns) = (engine.progress().committed, described(&engine, table));
        drop(engine);
        engine = open(directory.path(), workers[place % workers.len()], memory);
        assert_eq!(query(&engine, &select), *rows, "{sql}, again");
        assert_eq!(engine.progress().committed, epoch, "{sql}");
        assert_eq!(described(&engine, table), columns, "{sql}");
    }
}

#[test]
fn altered_tables_keep_their_rows_through_restarts_from_the_journal() {
    goes_through(&[1], None, |_| false);
    goes_through(&[2, 1, 3], None, |_| false);
}

#[test]
fn altered_tables_keep_their_rows_through_checkpoints_and_other_numbers_of_workers() {
    goes_through(&[3, 1, 2, 4], None, |place| place % 3 > 0);
    goes_through(&[2, 3], Some(1), |place| place % 2 > 0);
}

#[test]
fn without_a_journal_tables_are_altered_as_well() {
    for workers in [1, 3] {
        let engine = engine(workers);
        for (sql, table, rows) in STEPS {
            engine.execute(sql).unwrap();
            assert_eq!(settled(&engine, &format!("SELECT * FROM {table}")), *rows, "{sql}");
        }
    }
}

/// Relations are renamed with all that they keep, under every kind of operator, and under views of rows that are kept nowhere.
#[test]
fn renamed_relations_go_on() {
    let renamed = RELATIONS.iter().filter(|name| **name != "alluvium.errors");
    let renamed = renamed.chain(&["ticks", "rich"]);
    for (workers, memory) in [(1, None), (3, None), (2, Some(1))] {
        let directory = tempfile::tempdir().unwrap();
        let clock = Minutes::default();
        let opened = |workers| {
            let state = format!("file:{}", directory.path().display());
            let builder = with(&clock).workers(workers).memory(memory).state(state);
            builder.checkpoints(Duration::MAX, u64::MAX).open().unwrap()
        };
        let judge = with(&clock).workers(1).open_in_memory().unwrap();
        judge.execute(DEFINITIONS).unwrap();
        let mut engine = opened(workers);
        engine.execute(DEFINITIONS).unwrap();
        let rename = |engine: &Engine, from: &str, to: &str| {
            for view in renamed.clone() {
                let sql = format!("ALTER TABLE {view}{from} RENAME TO {view}{to}");
                engine.execute(&sql).unwrap();
            }
        };
        for round in 0..3 {
            clock.store(round as u64 * 17, Ordering::Relaxed);
            change(&engine, round);
            change(&judge, round);
            rename(&engine, "", "_of_old");
            change_named(&engine, round + 50, "_of_old");
            change(&judge, round + 50);
            if round == 1 {
                engine.execute("CHECKPOINT").unwrap();
            }
            if round > 0 {
                drop(engine);
                engine = opened(workers + round as usize - 1);
                engine.execute("SELECT * FROM noted_of_old").unwrap();
            }
            rename(&engine, "_of_old", "");
            assert_eq!(shown(&engine), shown(&judge), "round {round}");
        }
    }
}

#[test]
fn a_renamed_recursion_goes_on_without_a_journal() {
    for workers in [1, 3] {
        let engine = engine_with(
            workers,
            "CREATE TABLE e (a INT, b INT); INSERT INTO e VALUES (1, 2), (2, 3), (3, 1);
             CREATE MATERIALIZED VIEW r AS WITH RECURSIVE p(a, b) AS (
                 SELECT a, b FROM e UNION SELECT p.a, e.b FROM p JOIN e ON p.b = e.a) SELECT a, COUNT(*) AS n FROM p GROUP BY a",
        );
        assert_eq!(settled(&engine, "SELECT * FROM r"), ["1 3", "2 3", "3 3"]);
        engine.execute("ALTER VIEW r RENAME TO reached; DELETE FROM e WHERE a = 3").unwrap();
        assert_eq!(settled(&engine, "SELECT * FROM reached"), ["1 2", "2 1"]);
        engine
            .execute("ALTER VIEW reached RENAME TO r; INSERT INTO e VALUES (3, 4), (4, 2)")
            .unwrap();
        assert_eq!(settled(&engine, "SELECT * FROM r"), ["1 3", "2 3", "3 3", "4 3"]);
    }
}

#[test]
fn local_and_plain_views_are_renamed() {
    let directory = tempfile::tempdir().unwrap();
    let engine = open(directory.path(), 2, None);
    engine
        .execute(
            "CREATE TABLE t (n INT); INSERT INTO t VALUES (1), (2);
             CREATE LOCAL VIEW l AS SELECT n + 1 AS m FROM t;
             CREATE VIEW p AS SELECT SUM(n) AS s FROM t;
             ALTER VIEW l RENAME TO \"L 2\"; ALTER VIEW p RENAME TO p2;
             CREATE MATERIALIZED VIEW m AS SELECT SUM(m) AS s FROM \"L 2\"",
        )
        .unwrap();
    engine.execute("ALTER VIEW \"L 2\" RENAME TO l; ALTER VIEW l RENAME TO \"L 2\"").unwrap();
    let check = |engine: &Engine, sum: &str| {
        assert_eq!(settled(engine, "SELECT * FROM m"), [sum]);
        let mut subscription = engine.subscribe("p2").unwrap();
        let first = subscription.next().unwrap().unwrap();
        assert_eq!(first.rows.num_rows(), 1);
    };
    check(&engine, "5");
    engine.execute("CHECKPOINT; INSERT INTO t VALUES (5)").unwrap();
    drop(engine);
    let engine = open(directory.path(), 3, None);
    check(&engine, "11");
    engine.execute("DROP VIEW m; ALTER MATERIALIZED VIEW IF EXISTS m RENAME TO x").unwrap();
    engine.execute("ALTER VIEW \"L 2\" RENAME TO l; SELECT * FROM l").unwrap();
}

#[test]
fn what_reads_a_relation_is_named() {
    let engine = engine_with(
        1,
        "CREATE TABLE t (a INT, b INT); CREATE VIEW v AS SELECT a FROM t; CREATE VIEW w AS SELECT b FROM t",
    );
    for change in ["ADD COLUMN c INT", "DROP COLUMN b", "RENAME COLUMN a TO x"] {
        let error = failure(&engine, &format!("ALTER TABLE t {change}"));
        assert!(error.contains("\"v\", \"w\""), "{error}");
    }
    let error = failure(&engine, "ALTER TABLE v ADD COLUMN x INT");
    assert!(error.contains("write ALTER VIEW"), "{error}");
    let error = failure(&engine, "ALTER VIEW t RENAME TO x");
    assert!(error.contains("write ALTER TABLE"), "{error}");
    let error = failure(&engine, "ALTER MATERIALIZED VIEW v RENAME TO x");
    assert!(error.contains("is a view"), "{error}");
    let error = engine.execute("SELECT 1;\nALTER VIEW v RENAME TO w").unwrap_err();
    assert!(error.to_string().contains("there is already a view \"w\""), "{error}");
    assert_eq!(error.position(), Some((2, 24)));
}

#[test]
fn columns_that_cannot_be_added_or_dropped_are_named_where_they_stand() {
    let engine =
        engine_with(2, "CREATE TABLE t (id INT PRIMARY KEY, a INT); CREATE TABLE one (a INT)");
    engine.execute("INSERT INTO t VALUES (1, 2)").unwrap();
    let refused = |sql: &str, what: &str, column: u64| {
        let error = engine.execute(sql).unwrap_err();
        assert!(error.to_string().contains(what), "{sql}: {error}");
        assert_eq!(error.position().map(|(_, column)| column), Some(column), "{sql}: {error}");
    };
    refused("ALTER TABLE t DROP COLUMN id", "PRIMARY KEY", 27);
    refused("ALTER TABLE one DROP COLUMN a", "only one", 29);
    refused("ALTER TABLE t DROP COLUMN b", "no column \"b\"", 27);
    refused("ALTER TABLE t ADD COLUMN a BIGINT", "already", 26);
    refused("ALTER TABLE t RENAME COLUMN a TO id", "already", 34);
    refused("ALTER TABLE t RENAME COLUMN x TO y", "no column \"x\"", 29);
    refused("ALTER TABLE t ADD COLUMN c INT PRIMARY KEY", "PRIMARY KEY", 26);
    refused("ALTER TABLE t ADD COLUMN c NOSUCHTYPE", "NOSUCHTYPE", 26);
    refused("ALTER TABLE t ADD COLUMN c INT NOT NULL", "give it a DEFAULT", 13);
    refused("ALTER TABLE none ADD COLUMN c INT", "no table", 13);
    refused("ALTER TABLE t ADD COLUMN c INT, ADD COLUMN d INT", "several", 1);
    refused("ALTER TABLE t ALTER COLUMN a TYPE BIGINT", "ALTER COLUMN", 1);
    refused("ALTER TABLE t ADD COLUMN c INT DEFAULT 1 / 0", "", 13);
    refused("ALTER TABLE t DROP COLUMN a CASCADE", "CASCADE", 1);
    assert_eq!(query(&engine, "SELECT * FROM t"), ["1 2"]);
    // Without rows nothing is missing.
    engine.execute("ALTER TABLE one ADD COLUMN c INT NOT NULL").unwrap();
    assert!(failure(&engine, "INSERT INTO one (a) VALUES (1)").contains("NULL"));
}

#[test]
fn a_default_is_evaluated_once_at_the_time_of_the_statement() {
    let directory = tempfile::tempdir().unwrap();
    let clock = Minutes::default();
    let opened = || {
        let state = format!("file:{}", directory.path().display());
        with(&clock).workers(2).state(state).open().unwrap()
    };
    let engine = opened();
    engine.execute("CREATE TABLE t (n INT); INSERT INTO t VALUES (1), (2)").unwrap();
    clock.store(60, Ordering::Relaxed);
    engine.execute("ALTER TABLE t ADD COLUMN at TIMESTAMP DEFAULT NOW()").unwrap();
    clock.store(120, Ordering::Relaxed);
    engine.execute("INSERT INTO t (n) VALUES (3)").unwrap();
    let rows = ["1 1970-01-01T01:00:00", "2 1970-01-01T01:00:00", "3 1970-01-01T02:00:00"];
    assert_eq!(query(&engine, "SELECT * FROM t"), rows);
    drop(engine);
    clock.store(180, Ordering::Relaxed);
    assert_eq!(query(&opened(), "SELECT * FROM t"), rows);
}

#[test]
fn a_table_with_lateness_keeps_its_waterline_under_other_names() {
    let directory = tempfile::tempdir().unwrap();
    let engine = open(directory.path(), 2, None);
    let tables = "SELECT name, late_rows, waterline FROM alluvium.tables";
    engine
        .execute(
            "CREATE TABLE t (id INT PRIMARY KEY, n BIGINT LATENESS 10);
             INSERT INTO t VALUES (1, 100); INSERT INTO t VALUES (2, 5);
             ALTER TABLE t RENAME COLUMN n TO m",
        )
        .unwrap();
    assert_eq!(query(&engine, tables), ["t 1 m >= 90"]);
    engine.execute("INSERT INTO t VALUES (3, 89), (4, 91); ALTER TABLE t RENAME TO u").unwrap();
    assert_eq!(query(&engine, tables), ["u 2 m >= 90"]);
    engine.execute("INSERT INTO u VALUES (5, 89), (6, 110)").unwrap();
    for change in ["ADD COLUMN c INT", "DROP COLUMN m"] {
        let error = failure(&engine, &format!("ALTER TABLE u {change}"));
        assert!(error.contains("LATENESS"), "{error}");
    }
    drop(engine);
    let engine = open(directory.path(), 3, None);
    assert_eq!(query(&engine, tables), ["u 3 m >= 100"]);
    engine.execute("CHECKPOINT").unwrap();
    drop(engine);
    let engine = open(directory.path(), 1, None);
    engine.execute("INSERT INTO u VALUES (7, 99)").unwrap();
    assert_eq!(query(&engine, "SELECT * FROM u"), ["1 100", "4 91", "6 110"]);
    assert_eq!(query(&engine, tables), ["u 4 m >= 100"]);
}

#[test]
fn a_view_with_lateness_keeps_its_name() {
    let engine = engine_with(
        2,
        "CREATE TABLE t (n BIGINT); CREATE MATERIALIZED VIEW v AS SELECT n FROM t; LATENESS v.n 10;
         INSERT INTO t VALUES (100)",
    );
    let error = failure(&engine, "ALTER VIEW v RENAME TO w");
    assert!(error.contains("LATENESS"), "{error}");
    engine.execute("INSERT INTO t VALUES (1), (95)").unwrap();
    assert_eq!(settled(&engine, "SELECT * FROM v"), ["100", "95"]);
}

#[test]
fn a_table_of_the_columns_of_a_query_is_altered() {
    let directory = tempfile::tempdir().unwrap();
    let engine = open(directory.path(), 2, None);
    engine.execute("CREATE TABLE t AS SELECT 1 AS a, 'x' AS \"B c\"; ALTER TABLE t ADD COLUMN d INT DEFAULT 4").unwrap();
    assert_eq!(query(&engine, "SELECT a, \"B c\", d FROM t"), ["1 x 4"]);
    engine
        .execute("CHECKPOINT; INSERT INTO t (a) VALUES (2); ALTER TABLE t DROP COLUMN \"B c\"")
        .unwrap();
    drop(engine);
    let engine = open(directory.path(), 1, None);
    assert_eq!(query(&engine, "SELECT * FROM t"), ["1 4", "2 4"]);
    let info = engine.relations().unwrap().remove(0);
    assert_eq!(info.definition.as_deref(), Some("CREATE TABLE t (a BIGINT, d INT DEFAULT 4)"));
}

#[test]
fn rows_that_have_passed_through_have_passed_through_the_altered_table() {
    let directory = tempfile::tempdir().unwrap();
    let engine = open(directory.path(), 2, None);
    engine
        .execute(
            "CREATE TABLE t (n INT) WITH ('materialized' = 'false', 'append_only' = 'true');
             CREATE TABLE unused (n INT) WITH ('materialized' = 'false');
             INSERT INTO t VALUES (1); ALTER TABLE t ADD COLUMN m INT; ALTER TABLE t RENAME TO s;
             ALTER TABLE unused ADD COLUMN m INT NOT NULL",
        )
        .unwrap();
    let check = |engine: Engine| {
        let error = failure(&engine, "CREATE VIEW v AS SELECT m FROM s");
        assert!(error.contains("have passed through \"s\""), "{error}");
        engine.execute("CREATE VIEW v AS SELECT m FROM unused; DROP VIEW v; CHECKPOINT").unwrap();
    };
    check(engine);
    check(open(directory.path(), 3, None));
}

#[test]
fn an_append_only_table_stays_append_only() {
    let engine = engine_with(
        2,
        "CREATE TABLE t (n INT) WITH ('append_only' = 'true'); INSERT INTO t VALUES (1);
         ALTER TABLE t ADD COLUMN m INT DEFAULT 2; ALTER TABLE t RENAME TO u; INSERT INTO u VALUES (3, 4)",
    );
    assert_eq!(query(&engine, "SELECT * FROM u"), ["1 2", "3 4"]);
    assert!(failure(&engine, "DELETE FROM u").contains("append_only"));
}

#[test]
fn subscriptions_and_handles_of_an_altered_table_end() {
    for change in ["ADD COLUMN c INT", "RENAME COLUMN b TO c", "RENAME TO t"] {
        let engine = engine_with(
            2,
            "CREATE TABLE s (a BIGINT PRIMARY KEY, b INT); INSERT INTO s VALUES (1, 2)",
        );
        let mut subscription = engine.subscribe("s").unwrap();
        let handle = engine.view("s").unwrap();
        assert_eq!(subscription.next().unwrap().unwrap().rows.num_rows(), 1);
        engine.execute(&format!("ALTER TABLE s {change}")).unwrap();
        assert!(subscription.next().is_none(), "{change}");
        // Until something else is committed, the rows that were there can be read.
        engine.execute("CREATE TABLE other (a INT); INSERT INTO other VALUES (1)").unwrap();
        let error = handle.get(&[1_i64.into()]).unwrap_err();
        assert!(error.to_string().contains("has been dropped"), "{error}");
    }
}

/// A statement that was planned once is planned again, and rows of the old shape are refused.
#[test]
fn statements_that_were_planned_before_are_planned_anew() {
    let engine = engine_with(2, "CREATE TABLE t (a BIGINT, b BIGINT); INSERT INTO t VALUES (1, 2)");
    for _ in 0..3 {
        assert_eq!(query(&engine, "SELECT * FROM t"), ["1 2"]);
        engine.execute("UPDATE t SET b = 2").unwrap();
    }
    engine.execute("ALTER TABLE t DROP COLUMN a; ALTER TABLE t RENAME COLUMN b TO c").unwrap();
    assert_eq!(query(&engine, "SELECT * FROM t"), ["2"]);
    assert!(failure(&engine, "UPDATE t SET b = 2").contains("\"b\""));
    let column: ArrayRef = std::sync::Arc::new(Int64Array::from(vec![1]));
    let rows = RecordBatch::try_from_iter([("a", column.clone()), ("b", column)]).unwrap();
    let mut transaction = engine.begin().unwrap();
    let error = transaction.insert("t", rows).unwrap_err().to_string();
    assert!(error.contains("2 columns are given for the 1 columns"), "{error}");
}

#[test]
fn alter_waits_for_no_transaction_and_none_can_have_it_inside() {
    let engine = engine_with(2, "CREATE TABLE t (a INT); INSERT INTO t VALUES (1)");
    for reads in [true, false] {
        let mut session = engine.session();
        session.execute("BEGIN; INSERT INTO t (a) VALUES (2)").unwrap();
        if reads {
            session.execute("SELECT * FROM t").unwrap();
        }
        let error = session.execute("ALTER TABLE t ADD COLUMN b INT").unwrap_err().to_string();
        assert!(error.contains("COMMIT first"), "{error}");
        let other = engine.clone();
        without_hanging(move || {
            other.execute("ALTER TABLE t ADD COLUMN b INT DEFAULT 7").unwrap();
        });
        let refused = session.execute("COMMIT");
        let refused = refused.unwrap_err();
        assert!(
            matches!(refused, Error::Conflict { kind: Conflict::Serialization, .. }),
            "{refused}"
        );
        assert!(refused.to_string().contains("\"t\""), "{refused}");
        drop(session);
        assert_eq!(query(&engine, "SELECT * FROM t"), ["1 7"]);
        engine.execute("ALTER TABLE t DROP COLUMN b").unwrap();
    }
}

/// No reader sees a table without its rows while it is rewritten.
#[test]
fn readers_see_all_rows_while_a_table_is_altered() {
    let engine = engine_with(
        2,
        "CREATE TABLE t (a BIGINT, b BIGINT); INSERT INTO t SELECT v, v FROM UNNEST(range(0, 20000)) AS r(v)",
    );
    let (reading, stop) = (engine.clone(), mpsc::channel::<()>());
    let (end, ended) = stop;
    let reader = std::thread::spawn(move || {
        let mut reads = 0;
        while ended.try_recv().is_err() {
            match reading.query("SELECT COUNT(*) FROM t") {
                Ok(rows) => assert_eq!(crate::support::lines(&rows), ["20000"]),
                // Its table may have gone while it was planned.
                Err(error) => assert!(error.to_string().contains("meanwhile"), "{error}"),
            }
            reads += 1;
        }
        reads
    });
    for round in 0..10 {
        engine.execute(&format!("ALTER TABLE t ADD COLUMN c{round} INT DEFAULT {round}")).unwrap();
        engine.execute("ALTER TABLE t DROP COLUMN b; ALTER TABLE t ADD COLUMN b INT").unwrap();
    }
    end.send(()).unwrap();
    assert!(reader.join().unwrap() > 0);
}

/// A table that is larger than the memory is rewritten through files.
#[test]
fn a_table_that_is_larger_than_the_budget_is_altered_within_it() {
    let budget = 32 << 20;
    let directory = tempfile::tempdir().unwrap();
    let engine = open(directory.path(), 2, Some(budget));
    engine.execute("CREATE TABLE t (k BIGINT PRIMARY KEY, v VARCHAR)").unwrap();
    for part in 0..8 {
        let (from, to) = (part * 10_000, (part + 1) * 10_000);
        let sql = format!(
            "INSERT INTO t SELECT v, repeat(v::VARCHAR, 200) FROM UNNEST(range({from}, {to})) AS r(v)"
        );
        engine.execute(&sql).unwrap();
    }
    let sum = query(&engine, "SELECT COUNT(*), SUM(length(v)) FROM t");
    engine.execute("ALTER TABLE t ADD COLUMN c INT DEFAULT 5").unwrap();
    assert_eq!(query(&engine, "SELECT COUNT(*), SUM(length(v)) FROM t"), sum);
    assert_eq!(query(&engine, "SELECT SUM(c) FROM t"), ["400000"]);
    let peak = engine.state().memory_peak_bytes;
    assert!(peak < 2 * budget as u64, "{peak} bytes");
}

#[test]
fn a_megabyte_and_a_table_of_nothing_are_altered() {
    let engine = engine_with(
        2,
        "CREATE TABLE t (a VARCHAR, b VARCHAR); INSERT INTO t VALUES (repeat('x', 1000000), 'y'), (NULL, NULL);
         ALTER TABLE t DROP COLUMN b; ALTER TABLE t ADD COLUMN c VARCHAR DEFAULT repeat('z', 1000);
         CREATE TABLE nothing (a INT); ALTER TABLE nothing ADD COLUMN b INT; ALTER TABLE nothing DROP COLUMN a",
    );
    assert_eq!(query(&engine, "SELECT length(a), length(c) FROM t"), ["1000000 1000", "NULL 1000"]);
    assert_eq!(query(&engine, "SELECT * FROM nothing"), [""; 0]);
}

/// An engine that ends at any moment has the table as it was, or as it is.
#[test]
fn a_stopped_engine_is_altered_as_a_whole() {
    let directory = tempfile::tempdir().unwrap();
    let engine = open(directory.path(), 2, None);
    engine.execute("CREATE TABLE t (a INT); INSERT INTO t VALUES (1), (2)").unwrap();
    let interrupt = engine.interrupt();
    interrupt.request();
    let alter = || engine.execute("ALTER TABLE t ADD COLUMN b INT DEFAULT 3");
    let interrupted = interrupt.watch(alter);
    interrupt.clear();
    assert!(matches!(interrupted, Err(Error::Interrupted)), "{interrupted:?}");
    assert_eq!(query(&engine, "SELECT * FROM t"), ["1", "2"]);
    drop(engine);
    assert_eq!(query(&open(directory.path(), 1, None), "SELECT * FROM t"), ["1", "2"]);
}

/// If any call of the disk fails, and even if the machine loses power then, each ALTER has happened as a whole or not at all.
#[test]
fn after_a_crash_or_failure_at_any_call_a_table_is_as_one_statement_left_it() {
    const STATEMENTS: [&str; 5] = [
        "ALTER TABLE t ADD COLUMN b INT DEFAULT 7",
        "ALTER TABLE t RENAME TO u",
        "CHECKPOINT",
        "ALTER TABLE u DROP COLUMN a",
        "ALTER VIEW v RENAME TO w",
    ];
    const STATES: [(&str, &[&str]); 6] = [
        ("SELECT * FROM t", &["1", "2", "3"]),
        ("SELECT * FROM t", &["1 7", "2 7", "3 7"]),
        ("SELECT * FROM u", &["1 7", "2 7", "3 7"]),
        ("SELECT * FROM u", &["1 7", "2 7", "3 7"]),
        ("SELECT u.*, v.n FROM u, v", &["7 3", "7 3", "7 3"]),
        ("SELECT u.*, w.n FROM u, w", &["7 3", "7 3", "7 3"]),
    ];
    let is_in = |engine: &Engine, state: usize| {
        let (sql, rows) = STATES[state];
        engine.query(sql).is_ok_and(|found| crate::support::lines(&found) == rows)
    };
    let crashes = Crashes {
        workers: 2,
        before: "CREATE TABLE t (a INT); INSERT INTO t VALUES (1), (2), (3); CREATE TABLE other (a INT);
             CREATE MATERIALIZED VIEW v AS SELECT COUNT(*) AS n FROM other; INSERT INTO other VALUES (1), (2), (3)",
        statements: &STATEMENTS,
        step: 5,
    };
    let calls = crashes.each_in_a_state(is_in, |_, _| {});
    assert!(calls > 20, "{calls}");
}

#[test]
fn constraints_are_added_to_tables_whose_rows_keep_them() {
    let engine = engine_with(
        2,
        "CREATE TABLE t (a BIGINT, b DOUBLE, c VARCHAR);
         INSERT INTO t VALUES (1, 0.0, 'x'), (1, -0.0, 'y'), (2, NULL, 'z');
         CREATE TABLE keyed (k BIGINT PRIMARY KEY);
         CREATE TABLE seen (k BIGINT); CREATE MATERIALIZED VIEW v AS SELECT k FROM seen",
    );
    let refused = |sql: &str| {
        let error = engine.execute(sql).unwrap_err();
        format!("{}: {error}", error.sqlstate())
    };
    for (sql, code, what) in [
        ("ALTER TABLE t ADD PRIMARY KEY (a)", "23505", "(a) = (1)"),
        ("ALTER TABLE t ADD PRIMARY KEY (a, b)", "23505", "(a, b) = (1, "),
        ("ALTER TABLE t ADD PRIMARY KEY (b, c)", "23502", "\"b\""),
        ("ALTER TABLE t ADD CHECK (a < 2)", "23514", "a < 2"),
        ("ALTER TABLE t ADD CHECK (d > 1)", "42703", "\"d\""),
        ("ALTER TABLE t ADD PRIMARY KEY (d)", "42703", "\"d\""),
        ("ALTER TABLE t ADD UNIQUE (a)", "23505", "(a) = (1)"),
        ("ALTER TABLE keyed ADD PRIMARY KEY (k)", "42000", "already"),
        ("ALTER TABLE seen ADD PRIMARY KEY (k)", "42000", "\"v\""),
    ] {
        let refused = refused(sql);
        assert!(refused.starts_with(code) && refused.contains(what), "{sql}: {refused}");
    }
    assert_eq!(query(&engine, "SELECT count(*) FROM t"), ["3"]);
    engine.execute("ALTER TABLE t ADD CONSTRAINT whole PRIMARY KEY (c, a)").unwrap();
    engine.execute("ALTER TABLE t ADD CONSTRAINT small CHECK (a < 10)").unwrap();
    assert!(refused("INSERT INTO t VALUES (1, 5, 'x')").starts_with("23505"));
    assert!(refused("INSERT INTO t VALUES (11, 5, 'x')").contains("small"));
    assert!(refused("INSERT INTO t VALUES (NULL, 5, 'x')").starts_with("23502"));
    engine
        .execute("INSERT INTO t VALUES (1, 5, 'x') ON CONFLICT (a, c) DO UPDATE SET b = 7")
        .unwrap();
    assert_eq!(query(&engine, "SELECT * FROM t ORDER BY c"), ["1 0.0 y", "1 7.0 x", "2 NULL z"]);
}
