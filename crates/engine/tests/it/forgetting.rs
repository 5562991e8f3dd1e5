//! State that can no longer matter is forgotten.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use alluvium::{Engine, Outcome};

use crate::support::query;

/// The rows of state of a view, of all workers and operators but its contents.
fn state_rows(engine: &Engine, view: &str) -> u64 {
    let rows = query(
        engine,
        &format!(
            "SELECT COALESCE(SUM(rows), 0) FROM alluvium.arrangements
             WHERE view = '{view}' AND operator <> 'Contents'"
        ),
    );
    rows[0].parse().unwrap()
}

/// What `EXPLAIN STATE` says of a view.
fn explained(engine: &Engine, view: &str) -> String {
    match engine.session().execute(&format!("EXPLAIN STATE {view}")).unwrap().pop() {
        Some(Outcome::Text(text)) => text,
        other => panic!("it is a text, not {other:?}"),
    }
}

fn minutes(engine: &Engine, from: u32, to: u32) {
    for minute in from..to {
        let rows: Vec<String> = (0..20)
            .map(|row| {
                let at = format!("{:02}:{:02}:{:02}", minute / 60 % 24, minute % 60, row * 3);
                format!("({}, '2024-01-{:02} {at}')", row % 5, 1 + minute / 1440)
            })
            .collect();
        engine.execute(&format!("INSERT INTO t VALUES {}", rows.join(", "))).unwrap();
    }
    engine.wait(engine.progress().committed).unwrap();
}

/// For each operator that can forget, what it keeps does not grow with what has passed.
#[test]
fn state_that_can_no_longer_matter_is_forgotten() {
    let views = [
        (
            "groups",
            "SELECT DATE_TRUNC('minute', ts) AS m, n, COUNT(*) AS c, MAX(n) AS x FROM t GROUP BY 1, 2",
        ),
        (
            "second",
            "SELECT n, DATE_TRUNC('minute', ts) AS m, COUNT(DISTINCT ts) AS c FROM t GROUP BY 1, 2",
        ),
        ("medians", "SELECT DATE_TRUNC('minute', ts) AS m, MEDIAN(n) AS c FROM t GROUP BY 1"),
        ("distincts", "SELECT DISTINCT ts, n FROM t"),
        (
            "tops",
            "SELECT * FROM (SELECT ts, n, ROW_NUMBER() OVER
            (PARTITION BY DATE_TRUNC('minute', ts) ORDER BY n, ts) AS r FROM t) AS x WHERE r <= 2",
        ),
        (
            "windows",
            "SELECT n, ts, SUM(n) OVER (PARTITION BY DATE_BIN(INTERVAL '2' MINUTE, ts) ORDER BY ts) AS s FROM t",
        ),
        (
            "joins",
            "SELECT a.n, a.ts, b.ts AS other FROM t AS a JOIN t AS b ON a.n = b.n
            AND b.ts BETWEEN a.ts AND a.ts + INTERVAL '10' SECOND",
        ),
        (
            "outer",
            "SELECT a.n, a.ts, b.n AS other FROM t AS a LEFT JOIN t AS b ON a.ts = b.ts AND a.n < b.n",
        ),
        (
            "anti",
            "SELECT n, ts FROM t AS a WHERE NOT EXISTS (SELECT 1 FROM t AS b WHERE b.ts = a.ts AND b.n > a.n)",
        ),
        (
            "hops",
            "SELECT window_start, n, COUNT(*) AS c FROM TABLE(HOP(TABLE t, DESCRIPTOR(ts),
            INTERVAL '1' MINUTE, INTERVAL '3' MINUTE)) GROUP BY window_start, n",
        ),
        ("differences", "SELECT ts, n FROM t WHERE n < 3 EXCEPT SELECT ts, n FROM t WHERE n > 1"),
    ];
    for (workers, memory) in [(1, None), (2, Some(1 << 20))] {
        let mut builder = Engine::builder().workers(workers);
        if let Some(memory) = memory {
            builder = builder.memory(memory);
        }
        let engine = builder.open().unwrap();
        engine
            .execute(
                "CREATE TABLE t (n BIGINT, ts TIMESTAMP LATENESS INTERVAL '2' MINUTES)
                 WITH ('materialized' = 'false', 'append_only' = 'false')",
            )
            .unwrap();
        for (name, query) in views {
            engine.execute(&format!("CREATE VIEW {name} AS {query}")).unwrap();
        }
        let mut after = Vec::new();
        for round in 0..4 {
            minutes(&engine, 250 * round, 250 * (round + 1));
            after.push(views.map(|(name, _)| state_rows(&engine, name)));
        }
        for (number, (name, _)) in views.iter().enumerate() {
            let rows: Vec<u64> = after.iter().map(|rows| rows[number]).collect();
            let explained = explained(&engine, name);
            // About fifty rows are above the waterline. 20,000 have passed, on both sides of joins.
            let most = rows.iter().max().unwrap();
            assert!(*most < 4_000, "{name}, {workers} workers: {rows:?} rows\n{explained}");
        }
    }
}
