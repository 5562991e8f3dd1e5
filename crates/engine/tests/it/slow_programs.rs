//! Programs that are slow, each for another reason: EXPLAIN ANALYZE names the operator that makes it so, and says what would help.

use std::path::Path;
use std::sync::{Arc, RwLock};
use std::thread;

use alluvium::arrow::array::RecordBatch;
use alluvium::{Engine, Outcome, OutputMode, Sink, SinkRequest, SinkWriter};

use crate::support::{query, without_hanging};

/// An engine with a table `t` of so many rows, and a view over it.
fn engine(workers: usize, view: &str, rows: u64, key: impl Fn(u64) -> u64) -> Engine {
    let engine = Engine::builder().workers(workers).open_in_memory().expect("an engine starts");
    let view = format!("CREATE MATERIALIZED VIEW slow AS {view}");
    engine.execute("CREATE TABLE t (k BIGINT PRIMARY KEY, v BIGINT)").expect("it is right");
    engine.execute("CREATE TABLE u (v BIGINT, w BIGINT); INSERT INTO u SELECT s.v, 0 FROM generate_series(0, 99) AS s(v)").expect("it is right");
    engine.execute(&view).expect("it is right");
    for begin in (0..rows).step_by(1000) {
        let values: Vec<String> =
            (begin..begin + 1000).map(|k| format!("({k}, {})", key(k))).collect();
        engine
            .execute(&format!("INSERT INTO t VALUES {}", values.join(", ")))
            .expect("it is right");
    }
    engine.wait(engine.progress().committed).expect("it is right");
    engine
}

fn analyzed(engine: &Engine, sql: &str) -> String {
    match engine.execute(sql).expect("it is right").remove(0) {
        Outcome::Text(text) => text,
        other => panic!("{other:?}"),
    }
}

/// The line of the operator that takes the most time, without its figures, and what is said of it.
fn worst(engine: &Engine) -> (String, String) {
    let text = analyzed(engine, "EXPLAIN ANALYZE slow");
    let line = text.lines().find(|line| line.ends_with("<- 1")).unwrap_or_else(|| panic!("{text}"));
    let name =
        line.trim().split(" (0.").next().and_then(|it| it.split(" [").next()).expect("it is right");
    let said = text.lines().skip_while(|line| !line.starts_with("1. ")).skip(1);
    let said: Vec<&str> = said.take_while(|line| line.starts_with("   ")).map(str::trim).collect();
    (name.to_owned(), said.join("\n"))
}

/// What is said of the operator with this name, which is one of those that take the most time.
fn said_of(engine: &Engine, operator: &str) -> String {
    let text = analyzed(engine, "EXPLAIN ANALYZE slow");
    let is_its = |line: &str| {
        line.split_once(". ").is_some_and(|(rank, rest)| {
            rank.parse::<u8>().is_ok() && rest.starts_with(&format!("{operator}: "))
        })
    };
    let mut said = text.lines().skip_while(|line| !is_its(line));
    assert!(said.next().is_some(), "{text}");
    let said: Vec<&str> = said.take_while(|line| line.starts_with("   ")).map(str::trim).collect();
    said.join("\n")
}

#[test]
fn a_key_with_all_rows_is_named() {
    let sql = "SELECT v, MAX(k) AS k FROM t GROUP BY v";
    let said = said_of(&engine(4, sql, 20_000, |_| 7), "aggregate max(k) by v");
    assert!(said.contains(" % of it: many rows have one key"), "{said}");
}

#[test]
fn a_join_without_an_equality_is_named() {
    let sql = "SELECT COUNT(*) AS n FROM t, u WHERE (t.v + u.v) % 7 = u.w";
    let (operator, said) = worst(&engine(1, sql, 2000, |k| k % 100));
    assert_eq!(operator, "cross join");
    assert!(said.contains("it has no equality, so each change meets all rows"), "{said}");
}

#[test]
fn a_window_that_is_evaluated_again_is_named() {
    let sql = "SELECT k, NTILE(4) OVER (PARTITION BY v ORDER BY k) AS quarter FROM t";
    let (operator, said) = worst(&engine(1, sql, 20_000, |_| 1));
    assert!(
        operator.starts_with("window ntile(4) in order of k by v (re-evaluated)"),
        "{operator}"
    );
    assert!(said.contains("each change evaluates all rows of its partition again"), "{said}");
}

#[test]
fn state_that_is_never_pruned_is_named() {
    let sql = "SELECT v, MAX(k) AS k FROM t GROUP BY v";
    let engine = engine(1, sql, 20_000, |k| k / 2);
    let text = analyzed(&engine, "EXPLAIN ANALYZE VIEW slow");
    assert!(text.starts_with("\"slow\" took "), "{text}");
    let said = text.split(". aggregate max(k) by v: ").nth(1).unwrap_or_else(|| panic!("{text}"));
    let said = said.lines().nth(1).unwrap().trim();
    assert!(said.starts_with("it keeps 20000 rows, "), "{said}");
    assert!(said.contains("the key has no time, so a later row can change any group"), "{said}");
    assert!(
        text.contains("scan t (v, k) [unique: (k)] (0.") && text.contains("20000 rows out"),
        "{text}"
    );
}

/// Two views that join the same rows of `t` by the same column, and need others of them.
#[test]
fn an_index_that_views_would_share_is_named_and_is_shared() {
    let engine = Engine::builder().workers(1).open_in_memory().unwrap();
    let view = |name: &str, column: &str| {
        format!(
            "CREATE OR REPLACE MATERIALIZED VIEW {name} AS SELECT s.w, t.{column} FROM t JOIN s ON t.v = s.v;"
        )
    };
    let views = view("slow", "a") + &view("other", "b");
    let sql = "CREATE TABLE t (k BIGINT PRIMARY KEY, v BIGINT NOT NULL, a BIGINT, b BIGINT);
               CREATE TABLE s (v BIGINT PRIMARY KEY, w BIGINT); INSERT INTO s VALUES (1, 1);
               INSERT INTO t SELECT k, k % 1000, k, k FROM generate_series(1, 20000) AS i(k);";
    engine.execute(&(sql.to_owned() + &views)).unwrap();
    engine.wait(engine.progress().committed).unwrap();
    let create_index = "CREATE INDEX t_by_v ON t (v)";
    let said = said_of(&engine, "scan t (v, a)");
    let expected = format!(
        "\"slow\" and \"other\" keep the rows of t by (v), with different columns: {create_index}, and the views created again, \
         as by CREATE OR REPLACE, have them kept once"
    );
    assert_eq!(said, expected);
    engine.execute(create_index).unwrap();
    let said = said_of(&engine, "scan t (v, a)");
    let later =
        "it keeps the rows of t by (v) itself, as the index \"t_by_v\" was created after it";
    assert!(said.starts_with(later), "{said}");
    engine.execute(&views).unwrap();
    let kept = "SELECT view FROM alluvium.arrangements WHERE operator = 'Index'";
    // Workers let go of what is dropped when they next run.
    while query(&engine, kept) != ["t_by_v"] {
        thread::yield_now();
    }
    let text = analyzed(&engine, "EXPLAIN ANALYZE slow");
    assert!(text.contains("scan t") && !text.contains("keep the rows of t"), "{text}");
}

#[test]
fn state_that_another_view_keeps_as_well_is_named() {
    let largest = "SELECT v, MAX(k) AS k FROM t GROUP BY v";
    let engine = engine(1, largest, 20_000, |k| k % 1000);
    let said = said_of(&engine, "aggregate max(k) by v");
    assert!(!said.contains("keeps the same"), "{said}");
    let other =
        format!("CREATE MATERIALIZED VIEW other AS SELECT v + k AS s FROM ({largest}) AS m");
    engine.execute(&other).unwrap();
    let said = said_of(&engine, "aggregate max(k) by v");
    let same = "\"other\" keeps the same: CREATE MATERIALIZED VIEW of this part, which all of them read, has it kept once";
    assert!(said.lines().any(|line| line == same), "{said}");
    let aggregates =
        "SELECT view FROM alluvium.arrangements WHERE id LIKE 'aggregate%' ORDER BY view";
    assert_eq!(query(&engine, aggregates), ["other", "slow"]);
    let shared = "DROP VIEW slow; DROP VIEW other; CREATE MATERIALIZED VIEW largest AS SELECT v, MAX(k) AS k FROM t GROUP BY v;
                  CREATE MATERIALIZED VIEW slow AS SELECT v, k FROM largest; CREATE MATERIALIZED VIEW other AS SELECT v + k AS s FROM largest";
    engine.execute(shared).unwrap();
    // Workers let go of what is dropped when they next run.
    while query(&engine, aggregates) != ["largest"] {
        thread::yield_now();
    }
}

/// A sink whose writers wait while the gate is locked.
struct Gated(Arc<RwLock<()>>);

impl Sink for Gated {
    fn name(&self) -> &str {
        "gated"
    }

    fn handles(&self, path: &Path) -> bool {
        path.extension().is_some_and(|extension| extension == "gated")
    }

    fn create(&self, _: &SinkRequest) -> alluvium::Result<Box<dyn SinkWriter>> {
        Ok(Box::new(Self(self.0.clone())))
    }
}

impl SinkWriter for Gated {
    fn write(&mut self, _: &RecordBatch) -> alluvium::Result<()> {
        drop(self.0.read());
        Ok(())
    }

    fn flush(&mut self) -> alluvium::Result<()> {
        Ok(())
    }

    fn finish(self: Box<Self>) -> alluvium::Result<()> {
        Ok(())
    }
}

#[test]
fn an_output_that_does_not_keep_up_is_named() {
    without_hanging(|| {
        let gate = Arc::<RwLock<()>>::default();
        let engine = Engine::builder().sink(Gated(gate.clone())).open_in_memory().unwrap();
        let sql = "CREATE TABLE t (k BIGINT); CREATE MATERIALIZED VIEW slow AS SELECT k FROM t;
                   CREATE MATERIALIZED VIEW other AS SELECT COUNT(*) AS n FROM t";
        engine.execute(sql).unwrap();
        engine.output("slow", "changes.gated", None, &[], OutputMode::Changes).unwrap();
        let closed = gate.write().unwrap();
        // The writer has the first rows, of which there are none.
        let insert = |k: i32| engine.execute(&format!("INSERT INTO t VALUES ({k})")).unwrap();
        (0..1025).for_each(|k| drop(insert(k)));
        let late = "1. write changes to \"changes.gated\"\n   all commits wait for it: 1025 epochs with 1025 rows, ";
        let holds = |text: &str| text.contains(late);
        let of_other = "commits wait for the output \"changes.gated\" of \"slow\": 1025 epochs";
        let (analyze, analyze_other) = ("EXPLAIN ANALYZE slow", "EXPLAIN ANALYZE other");
        while !holds(&analyzed(&engine, analyze)) {
            thread::yield_now();
        }
        assert!(analyzed(&engine, analyze_other).contains(of_other));
        let outputs = "SELECT relation, lag_epochs, holds_commits FROM alluvium.outputs";
        assert_eq!(query(&engine, outputs), ["slow 1025 true"]);
        thread::scope(|scope| {
            scope.spawn(|| insert(1025));
            drop(closed);
        });
        while query(&engine, "SELECT rows FROM alluvium.outputs") != ["1026"] {
            thread::yield_now();
        }
        assert_eq!(query(&engine, outputs), ["slow 0 false"]);
        let text = analyzed(&engine, analyze);
        let line = "write changes to \"changes.gated\" [running] (nothing waits)";
        assert!(text.contains(line) && !text.contains("wait for it"), "{text}");
        assert!(!analyzed(&engine, analyze_other).contains("commits wait"));
    });
}
