//! The work of operators that the engine reports.

use alluvium::Engine;

use crate::support;

/// The rows of an answer, as lines.
fn query(engine: &Engine, sql: &str) -> String {
    support::query(engine, sql).join("\n")
}

/// Commits so many rows, in epochs of as many as that.
fn insert(engine: &Engine, rows: u64, at_once: u64) {
    for begin in (0..rows).step_by(at_once as usize) {
        let end = rows.min(begin + at_once);
        let values: Vec<String> = (begin..end).map(|k| format!("({k}, {})", k % 10)).collect();
        engine
            .execute(&format!("INSERT INTO t VALUES {}", values.join(", ")))
            .expect("it is right");
    }
    engine.wait(engine.progress().committed).expect("it is right");
}

#[test]
fn operators_count_the_rows_that_they_produce() {
    for (workers, at_once) in [(1, 1), (2, 7), (1, 1000), (3, 1000)] {
        let engine = Engine::builder().workers(workers).open_in_memory().unwrap();
        engine
            .execute(
                "CREATE TABLE t (k BIGINT PRIMARY KEY, v BIGINT);
                 CREATE TABLE u (v BIGINT PRIMARY KEY, name TEXT);
                 CREATE MATERIALIZED VIEW few AS SELECT k FROM t WHERE v < 3;
                 CREATE MATERIALIZED VIEW named AS SELECT t.k, u.name FROM t JOIN u ON t.v = u.v;
                 INSERT INTO u VALUES (1, 'one'), (2, 'two')",
            )
            .unwrap();
        insert(&engine, 1000, at_once);
        let rows = query(
            &engine,
            "SELECT view, name, SUM(rows_out), COUNT(DISTINCT worker) FROM alluvium.operators
             WHERE view IN ('few', 'named') AND fingerprint IS NOT NULL GROUP BY view, name ORDER BY view, name",
        );
        let expected = format!(
            "few map k where v < 3 300 {workers}
few scan t (k, v) 1000 {workers}
named join on v = v 200 {workers}
named map k, name 200 {workers}"
        );
        assert_eq!(rows, expected, "{workers} workers");
        // The scan reads the table, and the join an index of it.
        let taken = query(
            &engine,
            "SELECT view, name, SUM(rows_in), COUNT(bytes_in) FROM alluvium.operators WHERE view IN ('few', 'named') GROUP BY view, name ORDER BY view, name",
        );
        let expected = format!(
            "few keep rows 300 {workers}
few map k where v < 3 1000 {workers}
few scan t (k, v) NULL 0
named join on v = v NULL 0
named keep rows 200 {workers}
named map k, name 200 {workers}"
        );
        assert_eq!(taken, expected, "{workers} workers");
    }
}

#[test]
fn the_time_of_large_epochs_is_measured_and_goes_with_the_operators() {
    let engine = Engine::builder().workers(2).open_in_memory().unwrap();
    engine
        .execute(
            "CREATE TABLE t (k BIGINT PRIMARY KEY, v BIGINT);
             CREATE MATERIALIZED VIEW sums AS SELECT v, SUM(k) AS k FROM t GROUP BY v;
             CREATE INDEX by_v ON t (v)",
        )
        .unwrap();
    insert(&engine, 20_000, 10_000);
    let busy = |view: &str| {
        let sql = format!(
            "SELECT COUNT(*), BOOL_AND(busy_ns > 0 AND runs > 0 AND busy_ns = minute_busy_ns) FROM alluvium.operators WHERE view = '{view}'"
        );
        query(&engine, &sql)
    };
    // The scan, the sums, their columns and the rows of the view, on two workers.
    assert_eq!((busy("t"), busy("sums")), ("2 true".to_owned(), "8 true".to_owned()));
    assert_eq!(busy("by_v"), "4 true");
    let own = "SELECT COUNT(*), BOOL_AND(busy_ns > 0) FROM alluvium.operators WHERE view IS NULL";
    assert_eq!(query(&engine, own), "2 true");
    engine.execute("DROP VIEW sums").unwrap();
    engine.execute("INSERT INTO t VALUES (-1, 1)").unwrap();
    engine.wait(engine.progress().committed).unwrap();
    assert_eq!((busy("sums"), busy("t")), ("0 NULL".to_owned(), "2 true".to_owned()));
}

#[test]
fn epochs_tell_how_far_relations_are_and_how_long_commits_take() {
    let folder = tempfile::tempdir().unwrap();
    for state in [false, true] {
        let builder = Engine::builder().workers(2);
        let engine = match state {
            true => builder.state(format!("file:{}", folder.path().display())).open().unwrap(),
            false => builder.open_in_memory().unwrap(),
        };
        let views = "CREATE TABLE t (k BIGINT PRIMARY KEY, v BIGINT);
             CREATE MATERIALIZED VIEW n AS SELECT COUNT(*) AS n FROM t; CREATE VIEW plain AS SELECT k FROM t";
        engine.execute(views).unwrap();
        insert(&engine, 100, 1);
        let told = |columns: &str| {
            query(
                &engine,
                &format!("SELECT {columns} FROM alluvium.epochs ORDER BY relation NULLS FIRST"),
            )
        };
        let durable = if state { "100" } else { "NULL" };
        let expected = format!(
            "NULL 100 {durable} 100\nn NULL NULL 100\nplain NULL NULL 100\nt NULL NULL 100"
        );
        assert_eq!(told("relation, committed, durable, complete"), expected);
        let count = |delays: &str| {
            let counts =
                format!("SELECT UNNEST({delays}) AS n FROM alluvium.epochs WHERE relation IS NULL");
            query(&engine, &format!("SELECT SUM(n) FROM ({counts}) AS counts"))
        };
        let durable = if state { "100" } else { "NULL" };
        assert_eq!((&*count("complete_delays"), &*count("durable_delays")), ("100", durable));
        let known = "SELECT complete_p50_us > 0, durable_p99_us >= durable_p50_us FROM alluvium.epochs WHERE relation IS NULL";
        assert_eq!(query(&engine, known), if state { "true true" } else { "true NULL" });
    }
}

#[test]
fn memory_is_told_by_kind_and_view() {
    let engine = Engine::builder().workers(2).memory(64 << 20).open_in_memory().unwrap();
    engine.execute("CREATE TABLE t (k BIGINT PRIMARY KEY, v BIGINT)").unwrap();
    insert(&engine, 5000, 1000);
    let rows = query(
        &engine,
        "SELECT kind, view, bytes > 0 AND kind <> 'spilled', budget FROM alluvium.memory WHERE kind IN ('counted', 'peak', 'state', 'spilled') ORDER BY kind",
    );
    let budget = 64 << 20;
    assert_eq!(
        rows,
        format!(
            "counted NULL true {budget}\npeak NULL true {budget}\nspilled NULL false NULL\nstate t true NULL"
        )
    );
    let sums = "SELECT SUM(bytes) FILTER (WHERE kind IN ('state', 'other')) = MAX(bytes) FILTER (WHERE kind = 'counted')
                FROM alluvium.memory";
    assert_eq!(query(&engine, sums), "true");
}
